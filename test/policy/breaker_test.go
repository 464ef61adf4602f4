package policy_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/fulmar-rpc/fulmar/policy"
	"github.com/sony/gobreaker/v2"
)

var errFailed = errors.New("failed")

// scenario is a random breaker. The pause ends between two seconds and everything happens
// at full ones: what libraries do at the very moment in which a bucket or a pause ends
// differs, and says nothing.
type scenario struct {
	random *rand.Rand
	config policy.Breaker
}

func newScenario(seed uint64) scenario {
	random := rand.New(rand.NewPCG(seed, 70))
	return scenario{random, policy.Breaker{
		// Failsafe-go rounds shares to hundredths, so these are compared where that does nothing.
		FailurePercent: 25 * (1 + random.IntN(4)), MinCalls: 4 * (1 + random.IntN(5)), Probes: 1 + random.IntN(3),
		Window: 10 * time.Second, Pause: time.Duration(1+random.IntN(8))*time.Second + 500*time.Millisecond,
	}}
}

// run makes calls, of which some fail, in stretches in which more or fewer do. step makes
// one and is told when time has to pass before.
func (s scenario) run(calls int, step func(call int, wait time.Duration, failed bool) (goOn bool)) {
	failing := 0
	for call := range calls {
		if call%50 == 0 {
			failing = []int{0, 20, 60, 100}[s.random.IntN(4)]
		}
		var wait time.Duration
		if s.random.IntN(3) == 0 {
			wait = time.Duration(1+s.random.IntN(3)) * time.Second
		}
		if !step(call, wait, s.random.IntN(100) < failing) {
			return
		}
	}
}

// seen is which of the states were there when calls were compared.
type seen [policy.CircuitProbing + 1]int

func (s seen) check(t *testing.T, least int) {
	t.Helper()
	for state := policy.CircuitClosed; state <= policy.CircuitProbing; state++ {
		if s[state] < least {
			t.Errorf("%d calls were compared while %v, want %d", s[state], state, least)
		}
	}
}

// Gobreaker opens with a failure only, knows generations, and ignores what began in another
// one, as we do; calls overlap here. Its half-open state lets several through at once, so
// what happens there is compared with one at a time.
func TestCircuit_DoesWhatGobreakerDoes(t *testing.T) {
	var states seen
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			s := newScenario(seed)
			s.config.Probes = 1
			oracle := gobreaker.NewTwoStepCircuitBreaker[any](gobreaker.Settings{
				MaxRequests: 1, Interval: s.config.Window, BucketPeriod: s.config.Window / 10, Timeout: s.config.Pause,
				ReadyToTrip: func(counts gobreaker.Counts) bool {
					return int(counts.Requests) >= s.config.MinCalls && int(counts.TotalFailures)*100 >= int(counts.Requests)*s.config.FailurePercent
				},
			})
			ours := policy.NewCircuit(s.config, time.Now())
			type running struct {
				pass policy.Pass
				done func(error)
			}
			var calls []running
			s.run(500, func(call int, wait time.Duration, failed bool) bool {
				time.Sleep(wait)
				pass, allowed := ours.Allow(time.Now())
				done, err := oracle.Allow()
				if allowed != (err == nil) {
					t.Fatalf("seed %d, call %d: allowed %v, gobreaker %v; %+v", seed, call, allowed, err, ours.Show(time.Now()))
				}
				if allowed {
					calls = append(calls, running{pass, done})
				}
				// Gobreaker counts a call when it begins and we when it ends, so while closed
				// calls end at once; those that are left for later end in another state.
				for len(calls) > 0 && (s.random.IntN(20) > 0 || ours.Show(time.Now()).Position == policy.CircuitClosed) {
					last := calls[len(calls)-1]
					calls = calls[:len(calls)-1]
					if failed {
						ours.Done(last.pass, time.Now(), policy.Failed)
						last.done(errFailed)
					} else {
						ours.Done(last.pass, time.Now(), policy.Succeeded)
						last.done(nil)
					}
				}
				position := ours.Show(time.Now()).Position
				states[position]++
				want := map[gobreaker.State]policy.CircuitPosition{
					gobreaker.StateClosed: policy.CircuitClosed, gobreaker.StateOpen: policy.CircuitOpen, gobreaker.StateHalfOpen: policy.CircuitProbing,
				}[oracle.State()]
				// Gobreaker is half-open when the time has come, ours when a call has.
				if position != want && (position != policy.CircuitOpen || want != policy.CircuitProbing) {
					t.Fatalf("seed %d, call %d: %v, gobreaker %v", seed, call, position, want)
				}
				return true
			})
		})
	}
	states.check(t, 100)
}

// Failsafe-go does the same with calls that end before the next begins, but it opens for a
// success too, if that is the call which completes the least number. Then the history ends.
func TestCircuit_DoesWhatFailsafeDoes(t *testing.T) {
	var states seen
	differences := 0
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			s := newScenario(seed)
			oracle := circuitbreaker.NewBuilder[any]().
				WithFailureRateThreshold(float64(s.config.FailurePercent)/100, uint(s.config.MinCalls), s.config.Window).
				WithSuccessThreshold(uint(s.config.Probes)).WithDelay(s.config.Pause).Build()
			ours := policy.NewCircuit(s.config, time.Now())
			s.run(500, func(call int, wait time.Duration, failed bool) bool {
				time.Sleep(wait)
				pass, allowed := ours.Allow(time.Now())
				if want := oracle.TryAcquirePermit(); allowed != want {
					t.Fatalf("seed %d, call %d: allowed %v, failsafe-go %v; %+v", seed, call, allowed, want, ours.Show(time.Now()))
				}
				if !allowed {
					states[policy.CircuitOpen]++
					return true
				}
				states[ours.Show(time.Now()).Position]++
				if failed {
					ours.Done(pass, time.Now(), policy.Failed)
					oracle.RecordFailure()
				} else {
					ours.Done(pass, time.Now(), policy.Succeeded)
					oracle.RecordSuccess()
				}
				state := ours.Show(time.Now())
				if !failed && state.Position == policy.CircuitClosed && oracle.IsOpen() {
					differences++
					return false
				}
				want := map[circuitbreaker.State]policy.CircuitPosition{
					circuitbreaker.ClosedState: policy.CircuitClosed, circuitbreaker.OpenState: policy.CircuitOpen, circuitbreaker.HalfOpenState: policy.CircuitProbing,
				}[oracle.State()]
				if state.Position != want {
					t.Fatalf("seed %d, call %d: %+v, failsafe-go %v with %d of %d", seed, call, state, want, oracle.Metrics().Failures(), oracle.Metrics().Executions())
				}
				return true
			})
		})
	}
	states.check(t, 100)
	if differences == 0 {
		t.Error("failsafe-go opened for no success, so the comparison need not end there")
	}
}
