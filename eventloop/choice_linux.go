package eventloop

import (
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// What DispatchAuto decides by. To hand a handler to another goroutine costs 1 to
// 3 us, and the second thread takes the processor from whoever needs it: at 64
// connections, with the peers on the same two processors, 90 thousand calls a
// second in place of 118. So handlers run inline while they are short, and hardly
// any waits.
const (
	// inlineMost is the mean time of a handler above which handlers are spawned:
	// enough for one that writes its reply itself, and so short that others can
	// wait for it. At spawnLeast inline is tried: less, so that the choice does not
	// swing.
	inlineMost = 14 * time.Microsecond
	spawnLeast = 11 * time.Microsecond

	// slowCall is what a handler counts as at most: the system may not have let
	// its thread run for 4 ms, which says nothing about the handler. Not more than
	// one in slowShare that are spawned may be as long.
	slowCall  = 100 * time.Microsecond
	slowShare = 32

	// One of sampled handlers is measured, since two looks at a clock are 0.1 us,
	// and judged are looked at together. After a rest judgedFirst will do if they take spawnLeast
	// in the mean, and none slowCall: bursts of 50 ms had come to half of their time before 1,000
	// handlers had run.
	sampled     = 8
	judged      = 128
	judgedFirst = 16

	// Of rescuedOf inline handlers at most rescuesMost may lose the role: 1 in
	// 2,000. More than that, and inline was a mistake: a rescue costs about 20 us of
	// processor time, and lets the other connections of the poller wait. With 1 in
	// 1,000, slowmix-c64 of suite net, it took 0.90 of the processor time of
	// spawning and made 0.97 of its calls a second, but at equal load its 99th
	// percentile was 2.8 ms in place of 2.1 (8 interleaved runs). Whether handlers
	// wait is not known while they are spawned, where processors are scarce and
	// threads wait too; so inline is tried again after a pause, which grows by
	// pauseFactor with each mistake. At most releasesMost may give the role away, 1 in
	// 128, who let nobody wait: 20 us are 0.2 us for each handler then. In
	// shared-128-512 writers wait for their peer now and then; counted as rescues they
	// made DispatchAuto spawn for a third of the time.
	//
	// After a mistake inline is on trial, for as many handlers: the monitor hurries, and
	// one rescue ends it. Without that, and with 50 ms and 4 in place of the numbers
	// below, the 99th percentile of slowmix-c64 was 1.19 times netpoll's, with it 1.06
	// (15 interleaved runs of 1 s).
	rescuedOf    = 4096
	rescuesMost  = 2
	releasesMost = 32
	pauseMin     = 100 * time.Millisecond
	pauseFactor  = 8
	pauseMax     = 30 * time.Second

	// busyCalls handlers within busyTime make it worth while to run a monitor;
	// without one nothing runs inline.
	busyCalls = 64
	busyTime  = 20 * time.Millisecond

	// The monitor looks at each tick. It takes the role from a leader whose
	// handler waits, and from one that has been in the same call for heldMost, or in
	// calls for the same connection for turnMost, and may only be computing. Ticks are
	// quick while there are rescues: slowmix-c64 of suite net, where 1 of 1,000
	// handlers sleeps, made 103 thousand calls a second with ticks every 0.5 ms and 95
	// with 1 ms. Quicker ones cost too much: in echo-128-c64, which needs no rescue,
	// 1,000 ticks a second took 4 % of the calls, 10,000 took 40 %. Measured with other
	// constants here.
	calmTick  = 2 * time.Millisecond
	quickTick = 500 * time.Microsecond
	heldMost  = time.Millisecond
	turnMost  = 4 * heldMost
	// turnTime is after how long a connection that has more requests leaves its
	// poller if its handlers take as long as others: from then on it pays to let a
	// second processor help. If they take longer, turnMost ends its turn.
	turnTime = 200 * time.Microsecond
	// idleTime without a handler ends the monitor.
	idleTime = 20 * time.Millisecond
)

// choice decides whether handlers run on the goroutine that polls. Safe for
// concurrent use.
//
//	spawn --- judged handlers were short, and events are many ---> inline
//	inline -- mean too long, or too many rescues or releases, or few events --> spawn
type choice struct {
	mode Dispatch
	// left counts calls whose goroutines have lost the role and keep their buffers.
	left atomic.Int64
	// leaders returns who leads, for the monitor, which newTicker wakes.
	leaders   func(yield func(*leader) bool)
	newTicker func() (ticker, error)

	// busy: the monitor runs. inline: the last decision of DispatchAuto.
	busy, inline atomic.Bool
	// Handlers measured since the last judgement: how many, how long in all, how
	// many of them slow.
	measured, total, slow atomic.Int64
	// recent counts handlers since the monitor last looked.
	recent atomic.Int64
	// quick asks the monitor for quick ticks.
	quick atomic.Bool
	// long: handlers take so long that it pays to let all processors have some.
	long atomic.Bool
	// turn is how many handlers of a connection fit into turnTime.
	turn atomic.Int64

	// timings are handlers that are being measured now, by their turns; base is when the choice
	// was made.
	timings [timingsMost]timing
	base    time.Time
	// fresh: nothing was judged since the monitor was started.
	fresh atomic.Bool

	mu sync.Mutex
	// windowCalls were made since windowStart.
	windowStart time.Time
	windowCalls int
	// rescues and releases happened in the last among inline handlers.
	rescues, releases int
	among             int64
	// trial: inline was a mistake before, so one rescue will do.
	trial bool
	// pause is how long handlers are spawned since the last mistake, until notBefore.
	pause     time.Duration
	notBefore time.Time
	closed    bool
	// ticker is that of the monitor; nil if none runs.
	ticker ticker
	done   sync.WaitGroup
}

func newChoice(mode Dispatch, leaders func(yield func(*leader) bool)) *choice {
	c := &choice{mode: mode, leaders: leaders, newTicker: newTimerTicker, base: time.Now()}
	c.turn.Store(turnCallsMost)
	return c
}

// runInline reports where the next handler runs.
func (c *choice) runInline() bool {
	switch c.mode {
	case DispatchInline:
		// One that waits keeps a buffer.
		return c.left.Load() < limits.LeftBuffers
	case DispatchSpawn:
		return false
	default:
		return c.inline.Load()
	}
}

// arrived counts handlers, one of which is to be measured if it returns true.
func (c *choice) arrived(handlers int) (measure bool) {
	switch c.mode {
	case DispatchInline:
		return false
	case DispatchSpawn:
		return true // for judge says whether they are long
	}
	if c.busy.Load() {
		c.recent.Add(int64(handlers))
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.windowCalls += handlers; c.windowCalls < busyCalls {
		return false
	}
	now := time.Now()
	if now.Sub(c.windowStart) <= busyTime {
		c.startMonitorLocked()
	}
	c.windowStart, c.windowCalls = now, 0
	return false
}

// startMonitorLocked starts the monitor, unless one runs. Without a timer for it
// handlers are spawned, as if there were little to do.
func (c *choice) startMonitorLocked() {
	if c.closed || c.ticker != nil {
		return
	}
	ticker, err := c.newTicker()
	if err != nil {
		return
	}
	c.ticker = ticker
	c.forgetLocked()
	c.fresh.Store(true)
	c.busy.Store(true)
	c.done.Add(1)
	go c.monitor(ticker)
}

// ran says how long a handler took.
func (c *choice) ran(took time.Duration) {
	if took >= slowCall {
		c.slow.Add(1)
		took = slowCall
	}
	c.total.Add(int64(took))
	calls := c.measured.Add(1)
	if calls%judged == 0 || calls == judgedFirst && c.fresh.Load() && c.slow.Load() == 0 && c.total.Load() <= judgedFirst*int64(spawnLeast) {
		c.judge(calls)
	}
}

// timing is a handler that is being measured.
type timing struct {
	// conn is nil while nobody uses the timing.
	conn atomic.Pointer[Conn]
	turn atomic.Uint32
	// began is when it began, answered when its call came to its answer, 0 if it has not, both
	// since choice.base.
	began, answered atomic.Int64
}

// timingsMost bounds how many handlers are measured up to their answers at a time. Those
// that find the place of their turn taken are measured to their end.
const timingsMost = 16

// timing returns the place of a turn. Of the turns of a connection that goes on without one
// call after the other, one of sampled is measured.
func (c *choice) timing(turn uint32) *timing { return &c.timings[turn/2/sampled%timingsMost] }

// begins is told of a handler that is measured from now on. It has the place of its turn,
// unless that is another's who began less than slowCall ago: one that takes longer counts as
// slowCall, and may be a stream, which takes for ever. Who loses a place so is measured to the
// end; should two of one connection meet here, one of them may be measured wrongly.
func (c *choice) begins(conn *Conn, turn uint32) {
	t, now := c.timing(turn), int64(time.Since(c.base))
	before := t.conn.Load()
	if before != nil && now-t.began.Load() < int64(slowCall) || !t.conn.CompareAndSwap(before, conn) {
		return
	}
	t.began.Store(now)
	t.answered.Store(0)
	t.turn.Store(turn)
}

// answers is told that a call has come to its answer.
func (c *choice) answers(conn *Conn, turn uint32) {
	if t := c.timing(turn); t.conn.Load() == conn && t.turn.Load() == turn && t.answered.Load() == 0 {
		t.answered.Store(int64(time.Since(c.base)))
	}
}

// ends returns how long a handler took that began at a time, up to its answer if that is
// known.
func (c *choice) ends(conn *Conn, turn uint32, began time.Time) (took time.Duration) {
	took = time.Since(began)
	t := c.timing(turn)
	if t.conn.Load() != conn || t.turn.Load() != turn {
		return took
	}
	if answered := t.answered.Load(); answered > 0 {
		took = min(max(time.Duration(answered)-began.Sub(c.base), 0), took)
	}
	t.conn.CompareAndSwap(conn, nil)
	return took
}

// judge looks at the handlers that were measured.
func (c *choice) judge(calls int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fresh.Store(false)
	mean := time.Duration(c.total.Load() / calls)
	slow := c.slow.Load()
	c.forgetLocked()
	c.long.Store(mean > inlineMost)
	c.turn.Store(min(max(int64(turnTime/max(mean, 1)), turnCallsLeast), turnCallsMost))
	if c.inline.Load() {
		if c.among += calls * sampled; c.among >= rescuedOf {
			c.quick.Store(c.rescues > 0)
			c.trial = false
			c.rescues, c.releases, c.among = 0, 0, 0
		}
		if mean > inlineMost {
			c.mistakenLocked()
		}
		return
	}
	now := time.Now()
	room := c.left.Load() < limits.LeftBuffers // else each try would leave one more
	if mean <= spawnLeast && slow <= calls/slowShare && room && c.busy.Load() && !now.Before(c.notBefore) {
		c.forgiveLocked(now)
		c.rescues, c.releases, c.among = 0, 0, 0
		c.trial = c.pause > 0
		c.quick.Store(c.trial)
		c.inline.Store(true)
	}
}

func (c *choice) forgetLocked() {
	c.measured.Store(0)
	c.total.Store(0)
	c.slow.Store(0)
}

// lost counts a handler that made its leader lose the role, rescued if it was taken
// and not given away.
func (c *choice) lost(rescued bool) {
	if c.mode != DispatchAuto {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if rescued {
		c.quick.Store(c.inline.Load())
		c.rescues++
	} else {
		c.releases++
	}
	if c.rescues > rescuesMost || c.trial && rescued || c.releases > releasesMost || c.left.Load() >= limits.LeftBuffers {
		c.mistakenLocked()
	}
}

// forgiveLocked forgets mistakes after which inline was right, or not tried, for long.
func (c *choice) forgiveLocked(now time.Time) {
	if now.Sub(c.notBefore) > pauseMax {
		c.pause = 0
	}
}

// mistakenLocked decides against inline, for longer each time.
func (c *choice) mistakenLocked() {
	if !c.inline.CompareAndSwap(true, false) {
		return
	}
	c.quick.Store(false) // nobody is to be rescued
	now := time.Now()
	c.forgiveLocked(now)
	c.pause = min(max(pauseFactor*c.pause, pauseMin), pauseMax)
	c.notBefore = now.Add(c.pause)
	c.forgetLocked()
}

// monitor takes the role from leaders whose handlers take too long, while there
// is much to do.
func (c *choice) monitor(ticker ticker) {
	defer c.done.Done()
	defer ticker.close()
	watch := watch{seen: map[*leader]sight{}, now: map[*leader]sight{}}
	tick, idle := time.Duration(0), time.Duration(0)
	for idle < idleTime || !c.rest() {
		next := calmTick
		if c.quick.Load() {
			next = quickTick
		}
		if next != tick {
			tick = next
			ticker.set(tick)
		}
		if !ticker.wait() {
			return
		}
		idle += tick
		if c.recent.Swap(0) > 0 || watch.look(c.leaders, tick) {
			idle = 0
		}
	}
}

// watch is what the monitor has seen of leaders at its last tick.
type watch struct{ seen, now map[*leader]sight }

// sight is a call that a leader has been in, and a turn of a connection for which it
// has been in calls, for a time each.
type sight struct {
	state, turn    uint64
	held, turnHeld time.Duration
}

// look takes the role from leaders that need it. It reports whether some are in
// calls.
func (w *watch) look(leaders func(yield func(*leader) bool), tick time.Duration) (calling bool) {
	clear(w.now)
	for l := range leaders {
		state := l.state.Load()
		if !inCall(state) {
			continue
		}
		calling = true
		sight := sight{state: state, turn: l.turns.Load()}
		before, ok := w.seen[l]
		if ok && before.state == sight.state {
			sight.held = before.held + tick
		}
		if ok && before.turn == sight.turn {
			sight.turnHeld = before.turnHeld + tick
		}
		if sight.held >= heldMost || sight.turnHeld >= turnMost || nobodyElseRuns() {
			l.rescue(state)
		} else {
			w.now[l] = sight
		}
	}
	w.seen, w.now = w.now, w.seen
	return calling
}

// nobodyElseRuns reports whether all goroutines but the caller wait: then so does
// a handler that has not returned.
func nobodyElseRuns() bool {
	samples := []metrics.Sample{{Name: runningGoroutines}, {Name: runnableGoroutines}}
	metrics.Read(samples)
	return samples[0].Value.Kind() == metrics.KindUint64 && samples[0].Value.Uint64()+samples[1].Value.Uint64() == 1
}

// goroutinesWait reports whether some wait for a processor. samples is memory for
// it.
func goroutinesWait(samples *[1]metrics.Sample) bool {
	samples[0].Name = runnableGoroutines
	metrics.Read(samples[:])
	return samples[0].Value.Kind() == metrics.KindUint64 && samples[0].Value.Uint64() > 0
}

// Metrics of the runtime; to read them takes 0.2 us.
const (
	runningGoroutines  = "/sched/goroutines/running:goroutines"
	runnableGoroutines = "/sched/goroutines/runnable:goroutines"
)

// rest says that no monitor runs any more, unless it is still needed.
func (c *choice) rest() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inline.Store(false)
	// After this nobody enters a handler inline, and who did is seen here.
	for l := range c.leaders {
		if inCall(l.state.Load()) {
			return false
		}
	}
	c.quick.Store(false) // the next monitor has nobody to rescue at first
	c.busy.Store(false)
	c.ticker = nil
	return true
}

// close ends the monitor.
func (c *choice) close() {
	c.mu.Lock()
	c.closed = true
	if c.ticker != nil {
		c.ticker.close()
	}
	c.mu.Unlock()
	c.done.Wait()
}
