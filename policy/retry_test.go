package policy_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/observe"
	"github.com/fulmar-rpc/fulmar/policy"
)

// longest draws the longest wait.
func longest(n int64) int64 { return n - 1 }

// failure is one that is tried again by default, changed by the functions.
func failure(changes ...func(*policy.Failure)) policy.Failure {
	f := policy.Failure{Attempt: 1, Code: 14, Executed: policy.ExecutedNo, Sent: true, Others: true, Left: time.Second}
	for _, change := range changes {
		change(&f)
	}
	return f
}

// TestRetry_ObeysWishes of code of the user, as far as that is for it to say.
func TestRetry_ObeysWishes(t *testing.T) {
	const internal, invalidArgument = observe.Code(13), observe.Code(3)
	for _, test := range []struct {
		retry    policy.Retry
		code     observe.Code
		executed policy.Executed
		wish     policy.Wish
		want     policy.Reason
	}{
		{policy.Retry{Idempotent: true}, invalidArgument, policy.ExecutedYes, policy.WishAgain, policy.RetryIdempotent},
		{policy.Retry{Idempotent: true}, internal, policy.ExecutedYes, policy.WishAgain, policy.RetryIdempotent},
		{policy.Retry{Idempotent: true}, internal, policy.ExecutedYes, policy.WishNone, policy.RetryOtherCode},
		{policy.Retry{}, internal, policy.ExecutedYes, policy.WishAgain, policy.RetryMayHaveRun},
		{policy.Retry{Idempotent: true}, 14, policy.ExecutedYes, policy.WishNot, policy.RetryOtherCode},
		{policy.Retry{Idempotent: true}, 14, policy.ExecutedNo, policy.WishNot, policy.RetryNotExecuted},
	} {
		f := failure()
		f.Code, f.Executed, f.Wish = test.code, test.executed, test.wish
		if got := test.retry.Decide(f, nil); got.Reason != test.want {
			t.Errorf("%+v: %v", test, got.Reason)
		}
	}
}

func TestRetry_Decides(t *testing.T) {
	mayHaveRun := func(f *policy.Failure) { f.Executed = policy.ExecutedMaybe }
	ran := func(f *policy.Failure) { f.Executed = policy.ExecutedYes }
	notSent := func(f *policy.Failure) { f.Sent = false }
	alone := func(f *policy.Failure) { f.Others = false }
	inChain := func(f *policy.Failure) { f.ChainRetries = true }
	code := func(code observe.Code) func(*policy.Failure) { return func(f *policy.Failure) { f.Code = code } }
	attempt := func(n int) func(*policy.Failure) { return func(f *policy.Failure) { f.Attempt = n } }
	pushBack := func(d time.Duration) func(*policy.Failure) { return func(f *policy.Failure) { f.PushBack = d } }
	left := func(d time.Duration) func(*policy.Failure) { return func(f *policy.Failure) { f.Left = d } }
	answered := func(f *policy.Failure) { f.Answered = true }
	again := func(delay time.Duration, budget bool, reason policy.Reason) policy.Decision {
		return policy.Decision{Again: true, Delay: delay, Budget: budget, Reason: reason}
	}
	not := func(reason policy.Reason) policy.Decision { return policy.Decision{Reason: reason} }
	idempotent := policy.Retry{Idempotent: true}
	three := policy.Retry{Attempts: 3}
	tests := []struct {
		name    string
		retry   policy.Retry
		failure policy.Failure
		want    policy.Decision
	}{
		{"refused, elsewhere at once", policy.Retry{}, failure(), again(0, true, policy.RetryNotExecuted)},
		{"not sent, without budget", policy.Retry{}, failure(notSent), again(0, false, policy.RetryNotExecuted)},
		{"refused by the only one", policy.Retry{}, failure(alone), not(policy.RetryNoAttempts)},
		{"refused by the only one, which may be asked again", policy.Retry{Attempts: 2}, failure(alone), again(20*time.Millisecond, true, policy.RetryNotExecuted)},
		{"stays at the instance", policy.Retry{SameInstance: true}, failure(), again(20*time.Millisecond, true, policy.RetryNotExecuted)},
		{"second refusal waits", three, failure(attempt(2)), again(40*time.Millisecond, true, policy.RetryNotExecuted)},
		{"any code if it did not run", policy.Retry{}, failure(code(2)), again(0, true, policy.RetryNotExecuted)},
		{"success", idempotent, failure(code(0)), not(policy.RetrySucceeded)},
		{"part of an answer", idempotent, failure(answered), not(policy.RetryAnswered)},
		{"wrong call", policy.Retry{}, failure(code(3)), not(policy.RetryAtFault)},
		{"canceled", idempotent, failure(code(1)), not(policy.RetryAtFault)},
		{"wrong call, asked for", policy.Retry{Codes: policy.CodesOf(3)}, failure(code(3)), again(0, true, policy.RetryNotExecuted)},
		{"may have run", policy.Retry{}, failure(mayHaveRun), not(policy.RetryMayHaveRun)},
		{"ran", policy.Retry{Codes: policy.CodesOf(14)}, failure(ran), not(policy.RetryMayHaveRun)},
		{"may run twice", idempotent, failure(mayHaveRun), again(20*time.Millisecond, true, policy.RetryIdempotent)},
		{"ran, may run twice", idempotent, failure(ran), again(20*time.Millisecond, true, policy.RetryIdempotent)},
		{"attempt timed out", idempotent, failure(mayHaveRun, code(4)), again(20*time.Millisecond, true, policy.RetryIdempotent)},
		{"ran, code that says nothing", idempotent, failure(ran, code(13)), not(policy.RetryOtherCode)},
		{"ran, code asked for", policy.Retry{Idempotent: true, Codes: policy.CodesOf(13)}, failure(ran, code(13)), again(20*time.Millisecond, true, policy.RetryIdempotent)},
		{"ran, only the codes asked for", policy.Retry{Idempotent: true, Codes: policy.CodesOf(13)}, failure(ran), not(policy.RetryOtherCode)},
		{"two attempts", policy.Retry{}, failure(attempt(2)), not(policy.RetryNoAttempts)},
		{"three attempts", three, failure(attempt(3)), not(policy.RetryNoAttempts)},
		{"off", policy.Retry{Attempts: -1}, failure(), not(policy.RetryNoAttempts)},
		{"server says no", policy.Retry{}, failure(pushBack(-1)), not(policy.RetryPushedBack)},
		{"server says when", policy.Retry{Attempts: 2}, failure(alone, pushBack(100*time.Millisecond)), again(120*time.Millisecond, true, policy.RetryNotExecuted)},
		{"server says when, another one may now", policy.Retry{}, failure(pushBack(100 * time.Millisecond)), again(0, true, policy.RetryNotExecuted)},
		{"server says when, second refusal", three, failure(attempt(2), pushBack(100*time.Millisecond)), again(140*time.Millisecond, true, policy.RetryNotExecuted)},
		{"handler says when", idempotent, failure(ran, pushBack(100*time.Millisecond)), again(120*time.Millisecond, true, policy.RetryIdempotent)},
		{"server says too late", policy.Retry{Attempts: 2}, failure(alone, pushBack(time.Second)), not(policy.RetryNoTime)},
		{"server says nonsense", policy.Retry{Attempts: 2}, failure(alone, pushBack(math.MaxInt64)), not(policy.RetryNoTime)},
		{"caller tries again", policy.Retry{}, failure(inChain), not(policy.RetryInChain)},
		{"caller tries again, not sent", policy.Retry{}, failure(inChain, notSent), again(0, false, policy.RetryNotExecuted)},
		{"caller tries again, ignored", policy.Retry{IgnoreChain: true}, failure(inChain), again(0, true, policy.RetryNotExecuted)},
		{"time is over", policy.Retry{}, failure(left(0)), not(policy.RetryNoTime)},
		{"too little time to wait", policy.Retry{Attempts: 2}, failure(alone, left(20*time.Millisecond)), not(policy.RetryNoTime)},
		{"just time enough", policy.Retry{Attempts: 2}, failure(alone, left(20*time.Millisecond+1)), again(20*time.Millisecond, true, policy.RetryNotExecuted)},
		{"no deadline", policy.Retry{Attempts: 2}, failure(alone, left(-1)), again(20*time.Millisecond, true, policy.RetryNotExecuted)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := test.retry.Decide(test.failure, longest); got != test.want {
				t.Errorf("decided %+v (%v), want %+v (%v)", got, got.Reason, test.want, test.want.Reason)
			}
		})
	}
}

func TestDecision_AsksTheBudget(t *testing.T) {
	off := policy.NewBudget(policy.RetryBudget{Percent: -1, PerSecond: -1}, epoch())
	sent := policy.Retry{}.Decide(failure(), longest)
	if got := sent.Spend(off, epoch()); got != (policy.Decision{Reason: policy.RetryNoBudget}) {
		t.Errorf("without budget it is %+v", got)
	}
	some := policy.NewBudget(policy.RetryBudget{}, epoch())
	left := func() int {
		n, _ := some.Show(epoch())
		return n
	}
	if got := sent.Spend(some, epoch()); got != sent || left() != limits.RetriesSaved-1 {
		t.Errorf("with a budget it is %+v, and %d are left", got, left())
	}
	free := policy.Retry{}.Decide(failure(func(f *policy.Failure) { f.Sent = false }), longest)
	if got := free.Spend(off, epoch()); got != free {
		t.Errorf("what was not sent became %+v", got)
	}
	no := policy.Decision{Reason: policy.RetryAtFault, Budget: true}
	if got := no.Spend(some, epoch()); got != no || left() != limits.RetriesSaved-1 {
		t.Errorf("what is not tried again became %+v, and %d are left", got, left())
	}
}

func TestRetry_WaitsLongerEachTime(t *testing.T) {
	tests := []struct {
		name  string
		retry policy.Retry
		want  []time.Duration
	}{
		{"defaults", policy.Retry{}, []time.Duration{20e6, 40e6, 80e6, 160e6, 320e6, 640e6, 1e9, 1e9}},
		{"given", policy.Retry{BackoffMin: 3 * time.Millisecond, BackoffMax: 5 * time.Millisecond}, []time.Duration{3e6, 5e6, 5e6}},
		{"off", policy.Retry{BackoffMin: -1}, []time.Duration{0, 0, 0}},
		{"without a bound", policy.Retry{BackoffMin: time.Hour, BackoffMax: -1}, []time.Duration{1 * time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 16 * time.Hour, 24 * time.Hour}},
	}
	for _, test := range tests {
		for i, want := range test.want {
			if got := test.retry.Backoff(i+1, longest); got != want {
				t.Errorf("%s: after %d attempts at most %v, want %v", test.name, i+1, got, want)
			}
		}
	}
	for _, attempt := range []int{-1, 0, math.MaxInt32} {
		if got := (policy.Retry{}).Backoff(attempt, longest); got < 0 || got > time.Second {
			t.Errorf("after %d attempts %v", attempt, got)
		}
	}
}

// Full jitter: what is drawn goes from 0 to the bound, evenly.
func TestRetry_DrawsItsWaits(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var parts [10]int
	const draws = 10000
	for range draws {
		wait := policy.Retry{BackoffMin: 10 * time.Millisecond, BackoffMax: time.Second}.Backoff(4, random.Int64N)
		parts[min(int(wait/(8*time.Millisecond)), 9)]++
	}
	for i, n := range parts {
		if n < draws/10*8/10 || n > draws/10*12/10 {
			t.Errorf("%d of %d waits are in part %d of ten", n, draws, i)
		}
	}
	if got := (policy.Retry{}).Backoff(1, nil); got < 0 || got > limits.RetryBackoffMin {
		t.Errorf("the default generator drew %v", got)
	}
}

// Whatever is known and configured, these hold.
func TestRetry_NeverDoesHarm(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 100_000 {
		retry := policy.Retry{
			Attempts: random.IntN(5) - 1, Idempotent: random.IntN(2) == 0, Codes: policy.Codes(random.Uint32() & random.Uint32() & 0x1fffe),
			SameInstance: random.IntN(2) == 0, IgnoreChain: random.IntN(2) == 0,
		}
		f := policy.Failure{
			Attempt: 1 + random.IntN(5), Code: observe.Code(random.IntN(17)), Executed: policy.Executed(random.IntN(3)),
			Sent: random.IntN(2) == 0, Answered: random.IntN(4) == 0, PushBack: time.Duration(random.IntN(3)-1) * 50 * time.Millisecond,
			ChainRetries: random.IntN(2) == 0, Others: random.IntN(2) == 0, Left: time.Duration(random.IntN(4)-1) * 40 * time.Millisecond,
		}
		d := retry.Decide(f, random.Int64N)
		switch {
		case d.Again != (d.Reason >= policy.RetryNotExecuted), !d.Again && (d.Delay != 0 || d.Budget):
			t.Fatalf("%+v does not fit together", d)
		case !d.Again:
			continue
		}
		switch {
		case f.Code == 0, f.Answered:
			t.Fatalf("%+v was tried again", f)
		case f.Executed != policy.ExecutedNo && !retry.Idempotent:
			t.Fatalf("%+v may run twice with %+v", f, retry)
		case f.PushBack < 0, d.Delay < f.PushBack && (f.Executed != policy.ExecutedNo || f.Attempt > 1 || !f.Others || retry.SameInstance):
			t.Fatalf("%+v comes after %v", f, d.Delay)
		case f.Left >= 0 && d.Delay >= f.Left:
			t.Fatalf("%+v comes after %v", f, d.Delay)
		case f.Sent && !d.Budget:
			t.Fatalf("%+v needs no budget", f)
		case f.Sent && f.ChainRetries && !retry.IgnoreChain:
			t.Fatalf("%+v multiplies", f)
		case f.Attempt >= 4:
			t.Fatalf("%+v is tried again with %+v", f, retry)
		}
	}
}

func TestHedge_RunsBeside(t *testing.T) {
	tests := []struct {
		hedge policy.Hedge
		want  int
	}{
		{policy.Hedge{}, 1},
		{policy.Hedge{After: -1, Attempts: 3}, 1},
		{policy.Hedge{Attempts: 3}, 1},
		{policy.Hedge{After: time.Millisecond}, 2},
		{policy.Hedge{After: time.Millisecond, Attempts: 3}, 3},
		{policy.Hedge{After: time.Millisecond, Attempts: -1}, 1},
	}
	for _, test := range tests {
		if got := test.hedge.AttemptsBeside(); got != test.want {
			t.Errorf("%+v runs %d attempts, want %d", test.hedge, got, test.want)
		}
	}
}

func TestReason_HasWords(t *testing.T) {
	seen := map[string]bool{}
	for reason := policy.RetryUndecided; reason <= policy.RetryIdempotent; reason++ {
		if text := reason.String(); seen[text] || text == "" || text == (policy.Reason(200)).String() {
			t.Errorf("reason %d is called %q", reason, text)
		} else {
			seen[text] = true
		}
	}
}
