package policy_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/policy"
	"golang.org/x/time/rate"
)

// The token bucket of x/time keeps tokens in a float64. Times are drawn to the nanosecond,
// so that no call comes at the very moment for which that would be rounded.
func TestLimiter_DoesWhatTheTokenBucketDoes(t *testing.T) {
	allowed, refused := 0, 0
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 71))
		limit := policy.Limit{PerSecond: []int{1, 4, 10, 125, 1000, 20_000}[random.IntN(6)], Burst: 1 + random.IntN(50)}
		start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		ours, now := policy.NewLimiter(limit, start), start
		oracle := rate.NewLimiter(rate.Limit(limit.PerSecond), limit.Burst)
		for call := range 2000 {
			load := 0.5 + random.Float64()
			if random.IntN(100) == 0 {
				load = 0.01 // A quiet time.
			}
			now = now.Add(1 + time.Duration(random.ExpFloat64()/load/float64(limit.PerSecond)*float64(time.Second)))
			refusal, _ := ours.Allow(now)
			got := refusal == policy.NotRefused
			if want := oracle.AllowN(now, 1); got != want {
				t.Fatalf("seed %d, %+v, call %d at %v: allowed %v, x/time %v with %v tokens", seed, limit, call, now.Sub(start), got, want, oracle.TokensAt(now))
			}
			if got {
				allowed++
			} else {
				refused++
			}
		}
	}
	if allowed < 100_000 || refused < 10_000 {
		t.Errorf("%d calls were allowed and %d refused: too few of one to say much", allowed, refused)
	}
}
