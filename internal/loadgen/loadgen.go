// Package loadgen makes calls in a closed loop, as fast as replies come, or in
// an open loop, at a constant rate, and times them.
//
// It knows nothing about what is called. Tests and the benchmark module use it.
package loadgen

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Call makes one call and checks its reply. It is used by one goroutine at a
// time. It has no context: one that all callers shared would be a point of
// contention that callers in the field do not have, so a call that may hang
// needs a deadline of its own.
type Call func() error

// Config says what to run. The zero value is not valid: Callers and Duration
// are required.
type Config struct {
	// Callers are the calls that may be in flight at once, each on a goroutine
	// of its own.
	Callers []Call
	// Rate is how many calls a second fall due, spread evenly, whoever is free
	// making the next one. 0 is the closed loop: every caller makes its next
	// call when it has checked the reply to the one before.
	Rate float64
	// Start is when the first call of an open loop falls due, and when the
	// warm-up begins. Default: now.
	Start time.Time
	// Ramp is how long it takes until all callers of a closed loop have begun,
	// one after the other. Clients connect for their first calls, and hundreds of
	// connections at once are another thing to measure. In an open loop the rate
	// sees to it. At most WarmUp.
	Ramp time.Duration
	// WarmUp runs before the window, Duration is the window. Only the window is
	// measured.
	WarmUp, Duration time.Duration
	// Grace is how long after the window an open loop may take to make the calls
	// that fell due inside. Default: as long as the window.
	Grace time.Duration

	// Turns are those of a closed loop that shares the machine with others.
	Turns Turns

	// Latency is told how long a call of the window took: in the closed loop
	// from its start, in the open loop from when it fell due, so that a call
	// that waits for a slow one before it counts the wait. Callers use it
	// concurrently. Nil: nobody asks.
	Latency func(caller int, latency time.Duration)
	// Refused is told the same about calls that end with ErrRefused. Nil: nobody asks.
	Refused func(caller int, latency time.Duration)
	// OnWindow is called when the window opens and when it closes, with all
	// callers at work: the place to read clocks. Nil: nobody asks.
	OnWindow func(opens bool)
}

// Turns let closed loops of several processes share a machine by the clock: number Index
// of Of begins calls in its turn only, which lasts Slice. Whatever else the machine does
// meets all of them. The warm-up begins with the next round of turns, and it and the window
// are made longer until they are whole rounds. The zero value is for whoever is alone.
type Turns struct {
	Slice     time.Duration
	Index, Of int
}

// round is how long it takes until everybody had a turn.
func (t Turns) round() time.Duration { return time.Duration(t.Of) * t.Slice }

// wait returns for how long from now on the turn lasts, or else how long it takes to come.
func (t Turns) wait(now time.Time) (mine bool, left time.Duration) {
	at := time.Duration((now.UnixNano() - int64(t.Index)*int64(t.Slice)) % int64(t.round()))
	if at < t.Slice {
		return true, t.Slice - at
	}
	return false, t.round() - at
}

// whole returns the least number of whole rounds that is at least d.
func (t Turns) whole(d time.Duration) time.Duration {
	return (d + t.round() - 1) / t.round() * t.round()
}

// Result is what a run came to.
type Result struct {
	// Calls finished within the window, which lasted Elapsed.
	Calls   uint64
	Elapsed time.Duration
	// Refused calls of the window: they neither count as Calls nor as Failed.
	Refused uint64
	// Due is how many calls of an open loop fell due within the window; Missed
	// of them had not been made when Grace ended, and were given to Latency with
	// the time that they had waited by then.
	Due, Missed uint64
	// Failed calls over the whole run, warm-up included, and what the first one
	// said.
	Failed uint64
	First  error
}

// PerSecond returns calls finished in a second of the window.
func (r Result) PerSecond() float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(r.Calls) / r.Elapsed.Seconds()
}

// failuresMax ends a run: whoever fails so often is not measured any more, and
// a server that refuses at once must not be hammered.
const failuresMax = 100

// callersMax and rateMax bound what a typing error can ask for.
const (
	callersMax = 1 << 20
	rateMax    = 1e9
	turnsMax   = 100
)

func (c Config) validate() error {
	switch {
	case len(c.Callers) == 0 || len(c.Callers) > callersMax:
		return fmt.Errorf("loadgen: %d callers (want 1 to %d)", len(c.Callers), callersMax)
	case !(c.Rate >= 0 && c.Rate <= rateMax):
		return fmt.Errorf("loadgen: a rate of %v calls a second (limit %v)", c.Rate, float64(rateMax))
	case c.Ramp < 0 || c.Ramp > c.WarmUp:
		return fmt.Errorf("loadgen: callers begin within %v, the warm-up is %v", c.Ramp, c.WarmUp)
	case c.Turns != (Turns{}) && (c.Rate != 0 || c.Turns.Of < 1 || c.Turns.Of > turnsMax || c.Turns.Index < 0 || c.Turns.Index >= c.Turns.Of ||
		c.Turns.Slice < time.Millisecond || c.Turns.Slice > time.Minute):
		return fmt.Errorf("loadgen: turn %d of %d of %v, at %v calls a second (want at most %d turns of %v to %v, in a closed loop)",
			c.Turns.Index, c.Turns.Of, c.Turns.Slice, c.Rate, turnsMax, time.Millisecond, time.Minute)
	case c.WarmUp < 0 || c.Duration <= 0 || c.Grace < 0:
		return fmt.Errorf("loadgen: warm-up %v, duration %v, grace %v: the duration must be positive, the others not negative", c.WarmUp, c.Duration, c.Grace)
	}
	return nil
}

// run is one run in progress.
type run struct {
	config  Config
	start   time.Time
	finish  time.Time // when the window closes, and when an open loop gives up
	giveUp  time.Time
	taken   atomic.Uint64 // calls of the open loop that somebody has taken on
	stopped atomic.Bool   // no call is begun any more
	inside  atomic.Bool   // the window is open
	// turn is nil while the turn of this closed loop lasts, else it holds a channel that is
	// closed when it comes.
	turn    atomic.Pointer[chan struct{}]
	callers []caller

	failed atomic.Uint64
	first  error // written by the caller that failed first, read when all have ended
}

// caller counts the calls of one goroutine. It fills cache lines of its own: a
// counter shared by all callers would cost them more than the rest of the loop.
type caller struct {
	calls, refused atomic.Uint64
	_              [112]byte
}

// Run makes calls until the window of config has passed and returns what was
// measured. It returns when every call has ended; an error only if config is
// not valid, ctx ended, or calls kept failing.
func Run(ctx context.Context, config Config) (Result, error) {
	if err := config.validate(); err != nil {
		return Result{}, err
	}
	if config.Grace == 0 {
		config.Grace = config.Duration
	}
	if config.Latency == nil {
		config.Latency = func(int, time.Duration) {}
	}
	if config.Refused == nil {
		config.Refused = func(int, time.Duration) {}
	}
	if config.OnWindow == nil {
		config.OnWindow = func(bool) {}
	}
	if config.Start.IsZero() {
		config.Start = time.Now()
	}
	if turns := config.Turns; turns.Of > 0 {
		config.Start = config.Start.Add(time.Duration(int64(turns.round()) - config.Start.UnixNano()%int64(turns.round())))
		config.WarmUp, config.Duration = turns.whole(config.WarmUp), turns.whole(config.Duration)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &run{config: config, callers: make([]caller, len(config.Callers)), start: config.Start}
	r.finish = r.start.Add(config.WarmUp + config.Duration)
	r.giveUp = r.finish.Add(config.Grace)
	var group sync.WaitGroup
	ended := make(chan struct{})
	if config.Turns.Of > 0 {
		left := r.checkTurn()
		group.Go(func() { r.takeTurns(ended, left) })
	}
	for i, call := range config.Callers {
		group.Go(func() {
			if config.Rate > 0 {
				r.openLoop(ctx, cancel, i, call)
			} else {
				r.closedLoop(ctx, cancel, i, call)
			}
		})
	}
	result := r.watch(ctx)
	close(ended)
	group.Wait()
	result.Failed, result.First = r.failed.Load(), r.first
	if err := context.Cause(ctx); err != nil {
		return result, err
	}
	r.countMissed(&result)
	return result, nil
}

// watch opens and closes the window.
func (r *run) watch(ctx context.Context) Result {
	defer r.stopped.Store(true)
	var result Result
	if !sleepUntil(ctx, r.start.Add(r.config.WarmUp)) {
		return result
	}
	r.config.OnWindow(true)
	before, refused, opened := r.count(), r.countRefused(), time.Now()
	r.inside.Store(true)
	finish := r.finish
	if r.config.Rate == 0 {
		// A window that opened late, because OnWindow took its time or the machine is
		// busy, is as long as any other. In an open loop it is known which calls count.
		finish = opened.Add(r.config.Duration)
	}
	if !sleepUntil(ctx, finish) {
		return result
	}
	r.inside.Store(false)
	result.Calls, result.Elapsed = r.count()-before, time.Since(opened)
	result.Refused = r.countRefused() - refused
	r.config.OnWindow(false)
	return result
}

func (r *run) count() uint64 {
	var calls uint64
	for i := range r.callers {
		calls += r.callers[i].calls.Load()
	}
	return calls
}

func (r *run) countRefused() uint64 {
	var calls uint64
	for i := range r.callers {
		calls += r.callers[i].refused.Load()
	}
	return calls
}

// takeTurns lets callers begin calls in their turns, the first of which, or the time
// until then, has left to go.
func (r *run) takeTurns(ended <-chan struct{}, left time.Duration) {
	for timer := time.NewTimer(left); ; timer.Reset(r.checkTurn()) {
		select {
		case <-timer.C:
		case <-ended:
			timer.Stop()
			r.openTurn()
			return
		}
	}
}

// checkTurn opens or closes the turn, as the clock says, and returns for how long.
func (r *run) checkTurn() time.Duration {
	mine, left := r.config.Turns.wait(time.Now())
	if mine {
		r.openTurn()
	} else if r.turn.Load() == nil {
		waits := make(chan struct{})
		r.turn.Store(&waits)
	}
	return left
}

// openTurn lets callers begin calls.
func (r *run) openTurn() {
	if waits := r.turn.Swap(nil); waits != nil {
		close(*waits)
	}
}

func (r *run) closedLoop(ctx context.Context, cancel context.CancelCauseFunc, id int, call Call) {
	self := &r.callers[id]
	turn := time.Duration(float64(r.config.Ramp) * float64(id) / float64(len(r.callers)))
	sleepUntil(ctx, r.start.Add(turn))
	begun := time.Now()
	for !r.stopped.Load() && ctx.Err() == nil {
		if waits := r.turn.Load(); waits != nil {
			<-*waits
			begun = time.Now()
			continue
		}
		err := call()
		ended := time.Now()
		if told := r.ended(self, err, cancel); told != nil && r.inside.Load() {
			told(id, ended.Sub(begun))
		}
		begun = ended
	}
}

// openLoop takes on one call after the other until those of the window are
// done. Which calls belong to the window is known beforehand: those that fall
// due in it. The rate holds until the window closes for the last of them, so
// the tail of the window meets the same load as its beginning.
func (r *run) openLoop(ctx context.Context, cancel context.CancelCauseFunc, id int, call Call) {
	self := &r.callers[id]
	for {
		due := r.due(r.taken.Add(1) - 1)
		if !due.Before(r.finish) {
			return
		}
		if !sleepUntil(ctx, due) || time.Now().After(r.giveUp) {
			// The call was taken on but not made.
			if r.measured(due) {
				r.config.Latency(id, max(time.Since(due), 0))
			}
			return
		}
		err := call()
		ended := time.Now()
		if told := r.ended(self, err, cancel); told != nil && r.measured(due) {
			told(id, ended.Sub(due))
		}
	}
}

// ended counts a call, and returns who is to be told its latency, or nil.
func (r *run) ended(self *caller, err error, cancel context.CancelCauseFunc) func(caller int, latency time.Duration) {
	switch {
	case err == nil:
		self.calls.Add(1)
		return r.config.Latency
	case errors.Is(err, ErrRefused):
		self.refused.Add(1)
		return r.config.Refused
	}
	r.fail(err, cancel)
	return nil
}

// due returns when call number n of an open loop is to be made.
func (r *run) due(n uint64) time.Time {
	return r.start.Add(time.Duration(float64(n) / r.config.Rate * float64(time.Second)))
}

// measured tells whether a call that fell due then belongs to the window.
func (r *run) measured(due time.Time) bool {
	return !due.Before(r.start.Add(r.config.WarmUp)) && due.Before(r.finish)
}

// countMissed tells which calls of the window nobody came round to. It runs
// when all callers have ended.
func (r *run) countMissed(result *Result) {
	if r.config.Rate == 0 {
		return
	}
	first := r.indexAt(r.config.WarmUp)
	last := r.indexAt(r.config.WarmUp + r.config.Duration)
	result.Due = last - first
	now := time.Now()
	for n := max(r.taken.Load(), first); n < last; n++ {
		r.config.Latency(int(n%uint64(len(r.callers))), max(now.Sub(r.due(n)), 0))
	}
	made := r.count() + r.countRefused() + r.failed.Load()
	if made < last {
		result.Missed = min(last-made, result.Due)
	}
}

// indexAt returns the number of the first call that falls due at or after d.
func (r *run) indexAt(d time.Duration) uint64 {
	at := r.start.Add(d)
	n := uint64(d.Seconds() * r.config.Rate)
	for n > 0 && !r.due(n-1).Before(at) {
		n--
	}
	for r.due(n).Before(at) {
		n++
	}
	return n
}

func (r *run) fail(err error, cancel context.CancelCauseFunc) {
	n := r.failed.Add(1)
	if n == 1 {
		r.first = err
	}
	if n == failuresMax {
		cancel(fmt.Errorf("loadgen: %w: %d calls failed, one of them with: %w", ErrFailing, failuresMax, err))
	}
}

// ErrFailing is what Run returns if calls keep failing.
var ErrFailing = errors.New("stopped")

// ErrRefused is what a call returns, wrapped or not, that may be refused: under more
// load than the called can bear that is no failure.
var ErrRefused = errors.New("refused")

// shortSleep is how late a caller may notice that ctx has ended. Below it
// sleepUntil does without a timer of its own: an open loop sleeps before every
// call, and two allocations each time would be a good part of what it costs.
const shortSleep = 20 * time.Millisecond

// sleepUntil reports whether ctx is still going on at t.
func sleepUntil(ctx context.Context, t time.Time) bool {
	switch d := time.Until(t); {
	case d > 0 && d < shortSleep:
		time.Sleep(d)
	case d > 0:
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}
