package eventloop

import (
	"sync"
	"sync/atomic"
	"time"
)

// What DispatchAuto decides by. One request costs the leader about 5 us in
// system calls, whatever the handler does; starting a goroutine for it costs 1
// to 3 us more. So handlers run inline while they are short, and none waits.
const (
	// inlineMost is the mean time of a request, with its system calls, above
	// which handlers are spawned.
	inlineMost = 20 * time.Microsecond

	// spawnLeast is the mean time of a spawned handler below which they run
	// inline again: less than inlineMost, so that the choice does not swing.
	spawnLeast = 10 * time.Microsecond

	// slowCall is a handler that should not run inline.
	slowCall = time.Millisecond

	// rescuesMost in a second are the most for which inline is kept. With one,
	// the connections of a poller wait for up to two monitorTicks.
	rescuesMost = 8

	// judged is after how many spawned handlers inline is considered: never while
	// one of them is slow, so where one in a thousand is that happens once in 60
	// times. Not before a pause that doubles with each time that it was wrong.
	judged   = 4096
	pauseMin = 50 * time.Millisecond
	pauseMax = 10 * time.Second

	// busyEvents within busyTime make it worth while to run a monitor; without
	// one nothing runs inline.
	busyEvents  = 64
	busyTime    = 20 * time.Millisecond
	monitorTick = time.Millisecond
	// idleTicks without an event end the monitor.
	idleTicks = 20
)

// choice decides whether handlers run on the goroutine that polls. Safe for
// concurrent use.
//
//	spawn --- judged handlers were short, and events are many ---> inline
//	inline -- mean too long, or too many rescues, or few events --> spawn
type choice struct {
	mode Dispatch
	// leaders returns who leads, for the monitor.
	leaders func(yield func(*leader) bool)

	// busy: the monitor runs. inline: the last decision of DispatchAuto.
	busy, inline atomic.Bool
	// mean is the moving average of ranInline, in nanoseconds.
	mean atomic.Int64
	// Spawned handlers since the last judgement: how many, how long in all, how
	// many of them slow.
	calls, nanoseconds, slow atomic.Int64
	// events counts since the monitor last looked.
	events atomic.Int64

	mu sync.Mutex
	// window began at windowStart.
	windowStart  time.Time
	windowEvents int
	rescueStart  time.Time
	rescues      int
	pause        time.Duration
	notBefore    time.Time
	closed       chan struct{}
	done         sync.WaitGroup
}

func newChoice(mode Dispatch, leaders func(yield func(*leader) bool)) *choice {
	return &choice{mode: mode, leaders: leaders, closed: make(chan struct{})}
}

// runInline reports where the next handler runs.
func (c *choice) runInline() bool {
	switch c.mode {
	case DispatchInline:
		return true
	case DispatchSpawn:
		return false
	default:
		return c.inline.Load()
	}
}

// arrived counts a batch of events.
func (c *choice) arrived(events int) {
	if c.mode != DispatchAuto {
		return
	}
	if c.busy.Load() {
		c.events.Add(int64(events))
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.windowEvents += events; c.windowEvents < busyEvents {
		return
	}
	now := time.Now()
	if now.Sub(c.windowStart) <= busyTime && c.busy.CompareAndSwap(false, true) {
		select {
		case <-c.closed:
		default:
			c.done.Add(1)
			go c.monitor()
		}
	}
	c.windowStart, c.windowEvents = now, 0
}

// ranInline says that a batch of handlers has run on its leader.
func (c *choice) ranInline(handlers int, took time.Duration) {
	if c.mode != DispatchAuto {
		return
	}
	// Of many batches the last eight count most; a handful of handlers more or
	// less makes no difference to that.
	mean := c.mean.Load()
	mean += (int64(took)/int64(handlers) - mean) / 8
	c.mean.Store(mean)
	if mean > int64(inlineMost) {
		c.spawn()
	}
}

// ranSpawned says how long a spawned handler took.
func (c *choice) ranSpawned(took time.Duration) {
	c.nanoseconds.Add(int64(took))
	if took >= slowCall {
		c.slow.Add(1)
	}
	if calls := c.calls.Add(1); calls%judged == 0 {
		c.judge(calls)
	}
}

// measures reports whether ranSpawned is wanted.
func (c *choice) measures() bool { return c.mode == DispatchAuto && c.busy.Load() }

// judge decides for inline if the handlers allow it.
func (c *choice) judge(calls int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fast := c.nanoseconds.Load() < calls*int64(spawnLeast) && c.slow.Load() == 0
	if fast && c.busy.Load() && !time.Now().Before(c.notBefore) {
		c.mean.Store(0)
		c.inline.Store(true)
	}
	c.forget()
}

func (c *choice) forget() {
	c.calls.Store(0)
	c.nanoseconds.Store(0)
	c.slow.Store(0)
}

// rescued counts a handler that made its leader lose the role.
func (c *choice) rescued() {
	if c.mode != DispatchAuto {
		return
	}
	c.mu.Lock()
	now := time.Now()
	if now.Sub(c.rescueStart) > time.Second {
		c.rescueStart, c.rescues = now, 0
	}
	c.rescues++
	over := c.rescues > rescuesMost
	c.mu.Unlock()
	if over {
		c.spawn()
	}
}

// spawn decides against inline, for longer each time.
func (c *choice) spawn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.inline.CompareAndSwap(true, false) {
		return
	}
	now := time.Now()
	if now.Sub(c.notBefore) > pauseMax {
		c.pause = 0 // inline was right for a long time
	}
	c.pause = min(max(2*c.pause, pauseMin), pauseMax)
	c.notBefore = now.Add(c.pause)
	c.rescues = 0
	c.forget()
}

// monitor takes the role from leaders whose handlers take too long, while there
// is much to do.
func (c *choice) monitor() {
	defer c.done.Done()
	ticker := time.NewTicker(monitorTick)
	defer ticker.Stop()
	seen := map[*leader]uint64{}
	for idle := 0; idle < idleTicks || !c.rest(); {
		select {
		case <-c.closed:
			return
		case <-ticker.C:
		}
		idle++
		if c.events.Swap(0) > 0 {
			idle = 0
		}
		now := make(map[*leader]uint64, len(seen))
		for l := range c.leaders {
			state := l.state.Load()
			if state&1 == 1 && state != lost && seen[l] == state {
				l.take(state)
				continue
			}
			now[l] = state
			if state&1 == 1 {
				idle = 0 // it is in a handler, which may need rescue
			}
		}
		seen = now
	}
}

// rest says that no monitor runs any more, unless it is still needed.
func (c *choice) rest() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inline.Store(false)
	// After this nobody enters a handler inline, and who did is seen here.
	for l := range c.leaders {
		if state := l.state.Load(); state&1 == 1 && state != lost {
			return false
		}
	}
	c.busy.Store(false)
	return true
}

// close ends the monitor.
func (c *choice) close() {
	c.mu.Lock()
	close(c.closed)
	c.mu.Unlock()
	c.done.Wait()
}
