package policy_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	"github.com/fulmar-rpc/fulmar/observe"
	"github.com/fulmar-rpc/fulmar/policy"
)

// coded is the outcome of an attempt; that of 0 is a success.
type coded observe.Code

func (c coded) Error() string { return fmt.Sprintf("code %d", uint32(c)) }

// retried are codes of which some are retried: canceled, deadline exceeded, not found,
// resource exhausted, internal and unavailable.
var retried = []observe.Code{1, 4, 5, 8, 13, 14}

// retries is a random policy, and the outcomes of the attempts of a call.
type retries struct {
	config   policy.Retry
	outcomes []coded
}

func newRetries(seed uint64) (r retries) {
	random := rand.New(rand.NewPCG(seed, 73))
	var codes []observe.Code
	for _, code := range retried {
		if random.IntN(2) == 0 {
			codes = append(codes, code)
		}
	}
	codes = append(codes, retried[random.IntN(len(retried))]) // without any the default ones count
	least := time.Duration(1 + random.IntN(int(100*time.Millisecond)))
	r.config = policy.Retry{
		Attempts: 1 + random.IntN(8), Idempotent: true, Codes: policy.CodesOf(codes...),
		BackoffMin: least, BackoffMax: least * time.Duration(1+random.IntN(40)) * 3 / 2,
	}
	for range r.config.Attempts + 1 {
		outcome := coded(codes[random.IntN(len(codes))])
		switch random.IntN(10) {
		case 0:
			outcome = 0
		case 1:
			outcome = coded(retried[random.IntN(len(retried))])
		}
		r.outcomes = append(r.outcomes, outcome)
	}
	return r
}

// ours returns when the attempts of the call begin. draw chooses each pause from what it may be.
func (r retries) ours(draw func(n int64) int64) (begin []time.Duration, reason policy.Reason) {
	at := time.Duration(0)
	for i, outcome := range r.outcomes {
		begin = append(begin, at)
		decision := r.config.Decide(policy.Failure{
			Attempt: i + 1, Code: observe.Code(outcome), Executed: policy.ExecutedYes, Sent: true, Left: -1,
		}, draw)
		if !decision.Again {
			return begin, decision.Reason
		}
		at += decision.Delay
	}
	return begin, policy.RetryUndecided
}

// oracle is ours by failsafe-go. Attempts take no time.
func (r retries) oracle() (begin []time.Duration) {
	retry := retrypolicy.NewBuilder[any]().
		WithMaxAttempts(r.config.Attempts).WithBackoff(r.config.BackoffMin, r.config.BackoffMax).
		HandleIf(func(_ any, err error) bool {
			var outcome coded
			return errors.As(err, &outcome) && r.config.Codes.Has(observe.Code(outcome))
		}).Build()
	start := time.Now()
	_ = failsafe.With[any](retry).Run(func() error {
		begin = append(begin, time.Since(start))
		if outcome := r.outcomes[len(begin)-1]; outcome != 0 {
			return outcome
		}
		return nil
	})
	return begin
}

// Failsafe-go waits for as long as it says and ours for a time drawn from 0 up to that, so what
// is compared are the longest pauses; with any others there are as many attempts, and none
// begins later.
func TestRetry_DoesWhatFailsafeDoes(t *testing.T) {
	reasons := map[policy.Reason]int{}
	for seed := range uint64(3000) {
		synctest.Test(t, func(t *testing.T) {
			r := newRetries(seed)
			want := r.oracle()
			got, reason := r.ours(func(n int64) int64 { return n - 1 })
			reasons[reason]++
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, %+v, outcomes %v: attempts at %v (%v), failsafe-go %v", seed, r.config, r.outcomes, got, reason, want)
			}
			drawn, _ := r.ours(rand.New(rand.NewPCG(seed, 74)).Int64N)
			if len(drawn) != len(want) {
				t.Fatalf("seed %d: %d attempts, failsafe-go %d", seed, len(drawn), len(want))
			}
			for i := range drawn {
				if drawn[i] > want[i] {
					t.Fatalf("seed %d, %+v: attempt %d at %v, failsafe-go %v", seed, r.config, i+1, drawn[i], want[i])
				}
			}
		})
	}
	for _, reason := range []policy.Reason{policy.RetrySucceeded, policy.RetryNoAttempts, policy.RetryOtherCode, policy.RetryAtFault} {
		if reasons[reason] < 20 {
			t.Errorf("%d calls ended because of %q: too few to say much", reasons[reason], reason)
		}
	}
}
