package policy

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// Budget is the state of a RetryBudget. In any time it allows Percent of the calls in it
// and PerSecond for each second, and once what quiet times have left. It begins with that
// too: a client whose first call fails may try again. Safe for concurrent use.
type Budget struct {
	// calls counts all of them; nothing else is done for one that needs nothing.
	calls atomic.Uint64

	mu sync.Mutex
	budgetRates
	// left is what there was at the last look, at a time and after so many calls.
	left float64
	at   time.Time
	seen uint64
}

// budgetRates are a RetryBudget with its defaults.
type budgetRates struct{ perCall, perSecond, saved float64 }

func (b RetryBudget) rates() budgetRates {
	perSecond := float64(limits.Or(b.PerSecond, limits.RetriesPerSecond, 0))
	rates := budgetRates{
		perCall:   float64(limits.Or(b.Percent, limits.RetryPercent, 0)) / 100,
		perSecond: perSecond,
		saved:     max(limits.RetriesSaved, perSecond),
	}
	if rates.perCall == 0 && rates.perSecond == 0 {
		rates.saved = 0 // It is switched off, and what was saved with it.
	}
	return rates
}

// NewBudget returns a Budget in which nothing is used at now.
func NewBudget(config RetryBudget, now time.Time) *Budget {
	b := &Budget{budgetRates: config.rates(), at: now}
	b.left = b.saved
	return b
}

// Configure changes what is allowed from now on. What is left stays, as far as the new
// configuration lets it be saved.
func (b *Budget) Configure(config RetryBudget, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.earn(now)
	b.budgetRates = config.rates()
	b.left = min(b.left, b.saved)
}

// Call counts a call, whose first attempt needs nothing.
func (b *Budget) Call() { b.calls.Add(1) }

// Take reports whether there may be one more attempt, and counts it.
func (b *Budget) Take(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.earn(now)
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

// Show returns how many attempts there may be at once at now, and what that may grow to.
func (b *Budget) Show(now time.Time) (left, most int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.earn(now)
	return int(b.left), int(b.saved)
}

// earn adds what the calls and the time since the last look are worth.
func (b *Budget) earn(now time.Time) {
	calls := b.calls.Load()
	earned := float64(calls-b.seen) * b.perCall
	b.seen = calls
	switch passed := now.Sub(b.at); {
	case passed > 0:
		earned += passed.Seconds() * b.perSecond
		b.at = now
	case passed < -limits.ClockSlack:
		// The clock was set back. Within the slack nothing is done, or two goroutines that
		// look at it in turns would earn the same time again and again.
		b.at = now
	}
	b.left = min(b.left+earned, b.saved)
}
