package policy_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/fulmar-rpc/fulmar/policy"
)

// A bulkhead that nobody waits for is a limit of calls that run at once.
func TestLimiter_DoesWhatTheBulkheadDoes(t *testing.T) {
	allowed, refused := 0, 0
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 72))
		limit := policy.Limit{Running: 1 + random.IntN(20)}
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		ours, oracle := policy.NewLimiter(limit, now), bulkhead.New[any](uint(limit.Running))
		running, ending := 0, 0
		for call := range 1000 {
			if call%50 == 0 {
				ending = 20 + random.IntN(60) // of 100 steps, so that there are stretches with many and with few
			}
			now = now.Add(time.Duration(random.IntN(1000)) * time.Microsecond)
			if running > 0 && random.IntN(100) < ending {
				ours.Done()
				oracle.ReleasePermit()
				running--
				continue
			}
			refusal, _ := ours.Allow(now)
			got := refusal == policy.NotRefused
			if want := oracle.TryAcquirePermit(); got != want || !got && refusal != policy.RefusedByRunning || got == (running == limit.Running) {
				t.Fatalf("seed %d, %+v, call %d while %d run: %v, bulkhead %v", seed, limit, call, running, refusal, want)
			}
			if got {
				running++
				allowed++
			} else {
				refused++
			}
			if state := ours.Show(now); state.Running != running {
				t.Fatalf("seed %d, call %d: %d run, it says %d", seed, call, running, state.Running)
			}
		}
	}
	if allowed < 50_000 || refused < 10_000 {
		t.Errorf("%d calls were allowed and %d refused: too few of one to say much", allowed, refused)
	}
}
