package policy

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/observe"
)

// Circuit is the state of a Breaker.
//
//	closed --- FailurePercent of MinCalls or more failed --> open
//	open ----- Pause is over, and a call comes ------------> probing
//	probing -- as many calls as Probes succeeded ----------> closed, with nothing counted
//	probing -- a call failed ------------------------------> open
//
// A call counts in the state in which it began, so what was sent before a breaker opened
// does not decide about what comes after. While probing one call runs at a time, and if it
// does not end within 10 s (BreakerProbeTime) the next may; what the first one says then
// still counts.
//
// Safe for concurrent use, and without a lock while closed.
type Circuit struct {
	base   time.Time
	config atomic.Pointer[circuitConfig]
	// word has the number of changes of state, and the state.
	word atomic.Uint64
	// From refusedFrom until refusedUntil, both since base, calls are refused without
	// another look.
	refusedFrom, refusedUntil atomic.Int64
	refused                   atomic.Uint64

	mu sync.Mutex
	// since is when it came into its state, and probeSince when the last probe began.
	since, probeSince time.Duration
	probing           bool
	probes            uint64
	succeeded         int
}

// circuitConfig is a Breaker that is on, with its defaults.
type circuitConfig struct {
	failurePercent, minCalls, probes int
	pause                            time.Duration
	window                           *window
}

// Circuits are in one of these states.
const (
	// CircuitOff: the Breaker has no FailurePercent.
	CircuitOff CircuitPosition = iota
	// CircuitClosed lets all calls through.
	CircuitClosed
	// CircuitOpen refuses all.
	CircuitOpen
	// CircuitProbing lets one through at a time.
	CircuitProbing
)

// CircuitPosition is what a Circuit does with calls.
type CircuitPosition uint8

// String says it in a word.
func (p CircuitPosition) String() string {
	switch p {
	case CircuitOff:
		return "off"
	case CircuitClosed:
		return "closed"
	case CircuitOpen:
		return "open"
	case CircuitProbing:
		return "probing"
	}
	return fmt.Sprintf("position %d", uint8(p))
}

const (
	positionBits = 2
	positionMask = 1<<positionBits - 1
)

func position(word uint64) CircuitPosition { return CircuitPosition(word & positionMask) }

// Pass lets a call through a Circuit.
type Pass struct{ word, probe uint64 }

// Probe reports whether the call finds out if the Circuit can be closed.
func (p Pass) Probe() bool { return p.probe != 0 }

// Result is what a call says about whether its target works.
type Result uint8

// The results.
const (
	// Silent: it says nothing.
	Silent Result = iota
	// Succeeded: it works. An answer that the caller does not like shows that too.
	Succeeded
	// Failed: it does not.
	Failed
)

// breakerCodes are those that count as failures by default.
const breakerCodes = Codes(1<<codeUnknown | 1<<codeDeadlineExceeded | 1<<codeResourceExhausted | 1<<codeInternal | 1<<codeUnavailable | 1<<codeDataLoss)

// Judge returns what a call says that ended with a code. Calls with declared exceptions and
// business errors have the code 0 here.
func (b Breaker) Judge(code observe.Code) Result {
	set := b.Codes
	if set == 0 {
		set = breakerCodes
	}
	switch {
	case set.Has(code):
		return Failed
	case code == codeCanceled:
		return Silent // Whoever made the call did not wait for what would have become of it.
	}
	return Succeeded
}

// NewCircuit returns a Circuit that is closed, or off, at now.
func NewCircuit(config Breaker, now time.Time) *Circuit {
	c := &Circuit{base: now}
	c.enter(CircuitClosed, 0)
	c.Configure(config, now)
	return c
}

// Configure changes how it judges from now on. State and counts stay, unless it is switched
// off: then it forgets both.
func (c *Circuit) Configure(config Breaker, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	passed, old := now.Sub(c.base), c.config.Load()
	if config.FailurePercent <= 0 {
		c.config.Store(nil)
		c.enter(CircuitClosed, passed)
		return
	}
	next := &circuitConfig{
		failurePercent: config.FailurePercent,
		minCalls:       limits.Or(config.MinCalls, limits.BreakerCalls, 1),
		probes:         limits.Or(config.Probes, 1, 1),
		pause:          limits.Or(config.Pause, limits.BreakerPause, limits.PolicyWindowMin),
	}
	length := max(limits.Or(config.Window, limits.BreakerWindow, limits.PolicyWindowMin)/windowBuckets, 1)
	switch {
	case old == nil:
		next.window = &window{length: length}
		c.since = passed
	case old.window.length == length:
		next.window = old.window
	default:
		next.window = old.window.withLength(length, passed)
	}
	c.config.Store(next)
	if position(c.word.Load()) == CircuitOpen {
		c.refuse(c.since, c.since+next.pause)
	}
}

// Allow reports whether a call may go on at now. Done must follow if it may.
func (c *Circuit) Allow(now time.Time) (pass Pass, allowed bool) {
	config := c.config.Load()
	if config == nil {
		return Pass{}, true
	}
	word := c.word.Load()
	if position(word) == CircuitClosed {
		return Pass{word: word}, true
	}
	passed := now.Sub(c.base)
	if at := int64(passed); c.refusedFrom.Load() <= at && at < c.refusedUntil.Load() {
		c.refused.Add(1)
		return Pass{}, false
	}
	if pass, allowed = c.look(passed); !allowed {
		c.refused.Add(1)
	}
	return pass, allowed
}

// look decides about a call that comes while the circuit is not closed.
func (c *Circuit) look(passed time.Duration) (pass Pass, allowed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	config := c.config.Load()
	if config == nil {
		return Pass{}, true
	}
	switch position(c.word.Load()) {
	case CircuitOpen:
		if passed < c.since-limits.ClockSlack {
			// The clock was set back: a pause must not last as long as that.
			c.since = passed
			c.refuse(passed, passed+config.pause)
		}
		if passed < c.since+config.pause {
			return Pass{}, false
		}
		c.enter(CircuitProbing, passed)
		c.probing, c.succeeded = false, 0
	case CircuitProbing:
		age := passed - c.probeSince
		if c.probing && -limits.ClockSlack <= age && age < limits.BreakerProbeTime {
			return Pass{}, false
		}
	default:
		return Pass{word: c.word.Load()}, true
	}
	c.probes++
	c.probing, c.probeSince = true, passed
	c.refuse(passed, passed+limits.BreakerProbeTime)
	return Pass{word: c.word.Load(), probe: c.probes}, true
}

// Done says what became of a call that was allowed.
func (c *Circuit) Done(pass Pass, now time.Time, result Result) {
	config := c.config.Load()
	if config == nil || pass.word == 0 {
		return
	}
	if pass.probe != 0 {
		c.probed(pass, now.Sub(c.base), result)
		return
	}
	if result == Silent || pass.word != c.word.Load() {
		return
	}
	passed := now.Sub(c.base)
	config.window.add(passed, result == Failed)
	if result != Failed {
		return // One more that succeeds is no reason to open.
	}
	calls, failures := config.window.sum(passed)
	if calls < config.minCalls || failures*100 < calls*config.failurePercent {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if pass.word == c.word.Load() {
		c.open(passed)
	}
}

// probed takes the result of a probe.
func (c *Circuit) probed(pass Pass, passed time.Duration, result Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if pass.word != c.word.Load() {
		return
	}
	if pass.probe == c.probes {
		c.probing = false
		c.refuse(0, 0)
	}
	switch result {
	case Failed:
		c.open(passed)
	case Succeeded:
		config := c.config.Load()
		if c.succeeded++; c.succeeded < config.probes {
			return
		}
		fresh := *config
		fresh.window = &window{length: config.window.length}
		c.config.Store(&fresh)
		c.enter(CircuitClosed, passed)
	}
}

// open refuses calls from now on. The caller has the lock and has seen that the state is
// another one: where it is off there is none.
func (c *Circuit) open(passed time.Duration) {
	c.refuse(passed, passed+c.config.Load().pause)
	c.enter(CircuitOpen, passed)
}

// enter changes the state, and with its number what passes are worth. Whoever sees the new
// one sees what was set before.
func (c *Circuit) enter(to CircuitPosition, passed time.Duration) {
	c.since = passed
	c.word.Store((c.word.Load()>>positionBits+1)<<positionBits | uint64(to))
}

func (c *Circuit) refuse(from, until time.Duration) {
	c.refusedFrom.Store(int64(from))
	c.refusedUntil.Store(int64(until))
}

// CircuitState is what a Circuit shows of itself.
type CircuitState struct {
	Position CircuitPosition
	// Since is when it came into its position.
	Since time.Time
	// Until is when it will probe, if it is open.
	Until time.Time
	// Calls are those within Window, if it is closed, and Failures those of them that
	// failed.
	Calls, Failures int
	// Refused is how many calls were refused so far.
	Refused uint64
}

// String says it in a line.
func (s CircuitState) String() string {
	switch s.Position {
	case CircuitClosed:
		return fmt.Sprintf("closed, %d of %d calls failed", s.Failures, s.Calls)
	case CircuitOpen:
		return fmt.Sprintf("open since %s until %s", s.Since.Format(time.RFC3339Nano), s.Until.Format(time.RFC3339Nano))
	}
	return s.Position.String()
}

// Show returns its state at now.
func (c *Circuit) Show(now time.Time) CircuitState {
	c.mu.Lock()
	defer c.mu.Unlock()
	state := CircuitState{Since: c.base.Add(c.since), Refused: c.refused.Load()}
	config := c.config.Load()
	if config == nil {
		return state
	}
	state.Position = position(c.word.Load())
	switch state.Position {
	case CircuitOpen:
		state.Until = state.Since.Add(config.pause)
	case CircuitClosed:
		state.Calls, state.Failures = config.window.sum(now.Sub(c.base))
	}
	return state
}
