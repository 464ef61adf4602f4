package eventloop

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// choosing is a choice whose leaders are made up.
type choosing struct {
	*choice
	t *testing.T
	// leads is the one leader.
	leads leader
}

// inBubble runs a test of DispatchAuto, whose time is virtual.
func inBubble(t *testing.T, test func(c *choosing)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &choosing{t: t}
		c.choice = newChoice(DispatchAuto, func(yield func(*leader) bool) { yield(&c.leads) })
		c.newTicker = newBubbleTicker
		test(c)
		c.close()
	})
}

// bubbleTicker is a ticker whose time is virtual.
type bubbleTicker struct {
	*time.Ticker
	closed chan struct{}
	period time.Duration
}

func newBubbleTicker() (ticker, error) {
	return &bubbleTicker{Ticker: time.NewTicker(time.Hour), closed: make(chan struct{})}, nil
}

func (b *bubbleTicker) set(period time.Duration) {
	b.period = period
	b.Reset(period)
}

func (b *bubbleTicker) wait() bool {
	select {
	case <-b.C:
		return true
	case <-b.closed:
		return false
	}
}

func (b *bubbleTicker) close() {
	select {
	case <-b.closed:
	default:
		b.Stop()
		close(b.closed)
	}
}

// pass lets time pass while there is much to do.
func (c *choosing) pass(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(calmTick) {
		c.arrived(busyCalls)
		synctest.Wait()
	}
}

// calls are handlers that were measured.
func (c *choosing) calls(n int, took time.Duration) {
	for range n {
		c.ran(took)
	}
}

func (c *choosing) expect(inline bool, when string) {
	c.t.Helper()
	if c.runInline() != inline {
		c.t.Errorf("inline is %v %s", !inline, when)
	}
}

// becomeInline makes the choice decide for inline.
func (c *choosing) becomeInline() {
	c.t.Helper()
	c.pass(5 * calmTick)
	for range 2 * judged {
		if c.calls(1, 5*time.Microsecond); c.measured.Load() == 0 && c.inline.Load() {
			return
		}
	}
	c.t.Fatal("inline is false after short handlers")
}

// TestChoice_AnswersDoNotCount: a handler is measured up to its answer, if that is told while
// it is measured, of the same call, and if no other has its place.
func TestChoice_AnswersDoNotCount(t *testing.T) {
	inBubble(t, func(c *choosing) {
		const turn, rounds = 6, 2 * sampled * timingsMost
		conn, other := new(Conn), new(Conn)
		for name, test := range map[string]struct {
			conn *Conn
			turn uint32
			took time.Duration
		}{
			"its answer":           {conn, turn, time.Microsecond},
			"another turn's":       {conn, turn + 2, 3 * time.Microsecond},
			"one of long ago":      {conn, turn + rounds, 3 * time.Microsecond},
			"another connection's": {other, turn, 3 * time.Microsecond},
		} {
			time.Sleep(time.Microsecond)
			c.answers(conn, turn) // nobody asked
			began := time.Now()
			c.begins(conn, turn)
			c.begins(other, turn) // finds the place taken
			time.Sleep(time.Microsecond)
			c.answers(test.conn, test.turn)
			time.Sleep(time.Microsecond)
			c.answers(test.conn, test.turn) // the first one counts
			time.Sleep(time.Microsecond)
			if took := c.ends(other, turn, began); took != 3*time.Microsecond {
				t.Errorf("%s: a handler without a place took %v", name, took)
			}
			if took := c.ends(conn, turn, began); took != test.took {
				t.Errorf("%s: the handler took %v, want %v", name, took, test.took)
			}
		}
	})
}

// TestChoice_StreamsKeepNoPlace: handlers that never end are not in the way of those that are
// measured later, and take nothing from them when they end after all.
func TestChoice_StreamsKeepNoPlace(t *testing.T) {
	inBubble(t, func(c *choosing) {
		stream, conn := new(Conn), new(Conn)
		opened := time.Now()
		for place := range uint32(timingsMost) {
			c.begins(stream, 2*sampled*place)
		}
		time.Sleep(slowCall)
		began := time.Now()
		c.begins(conn, 2)
		time.Sleep(time.Microsecond)
		c.answers(conn, 2)
		time.Sleep(time.Microsecond)
		if took := c.ends(stream, 0, opened); took != slowCall+2*time.Microsecond {
			t.Errorf("the stream took %v", took)
		}
		if took := c.ends(conn, 2, began); took != time.Microsecond {
			t.Errorf("a handler behind streams took %v, want 1us", took)
		}
	})
}

func TestChoice_FixedOnes(t *testing.T) {
	for mode, inline := range map[Dispatch]bool{DispatchSpawn: false, DispatchInline: true} {
		c := newChoice(mode, func(func(*leader) bool) { t.Error("there is a monitor") })
		for range 100 {
			if measures := c.arrived(busyCalls); measures == inline {
				t.Errorf("dispatch %d measures handlers: %v", mode, measures)
			}
			c.lost(true)
		}
		for range judged {
			c.ran(1)
		}
		if c.runInline() != inline {
			t.Errorf("dispatch %d: inline is %v", mode, c.runInline())
		}
		c.left.Store(limits.LeftBuffers)
		if c.runInline() {
			t.Errorf("dispatch %d: inline with %d handlers that were left behind", mode, limits.LeftBuffers)
		}
		c.close()
	}
}

func TestChoice_SpawnUntilHandlersAreShort(t *testing.T) {
	for name, test := range map[string]struct {
		events int
		calls  func(c *choosing)
		inline bool
	}{
		"short":          {busyCalls, func(c *choosing) { c.calls(judged, spawnLeast) }, true},
		"short at first": {busyCalls, func(c *choosing) { c.calls(judgedFirst, spawnLeast) }, true},
		"too few":        {busyCalls, func(c *choosing) { c.calls(judgedFirst-1, 1) }, false},
		// They are judged with the others: a judgement of their own would be against them, and
		// those that are left too few for another one.
		"one slow at first":       {busyCalls, func(c *choosing) { c.calls(1, slowCall); c.calls(judged-1, 1) }, true},
		"too long at first":       {busyCalls, func(c *choosing) { c.calls(judgedFirst, spawnLeast+1); c.calls(judged-judgedFirst, 1) }, true},
		"too long":                {busyCalls, func(c *choosing) { c.calls(judged, spawnLeast+1) }, false},
		"few are slow":            {busyCalls, func(c *choosing) { c.calls(judged/slowShare, time.Second); c.calls(judged-judged/slowShare, 1) }, true},
		"some are slow":           {busyCalls, func(c *choosing) { c.calls(judged/slowShare+1, time.Second); c.calls(judged-judged/slowShare-1, 1) }, false},
		"some were slow before":   {busyCalls, func(c *choosing) { c.calls(judged, time.Second); c.calls(judged, 1) }, true},
		"there are few of them":   {busyCalls - 1, func(c *choosing) { c.calls(judged, 1) }, false},
		"there are none any more": {busyCalls, func(c *choosing) { time.Sleep(2 * idleTime); c.calls(judged, 1) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(c *choosing) {
				c.expect(false, "at first")
				c.arrived(busyCalls - 1) // the window begins with the first events after long
				c.arrived(1)
				c.arrived(test.events)
				if c.busy.Load() != (test.events == busyCalls) {
					t.Errorf("handlers are measured: %v", c.busy.Load())
				}
				test.calls(c)
				c.expect(test.inline, "in the end")
			})
		})
	}
}

// TestChoice_WithoutATimerNothingRunsInline: descriptors may be used up.
func TestChoice_WithoutATimerNothingRunsInline(t *testing.T) {
	inBubble(t, func(c *choosing) {
		c.newTicker = func() (ticker, error) { return nil, errors.New("too many open files") }
		c.pass(5 * calmTick)
		c.calls(judged, 1)
		c.expect(false, "without a monitor")
		c.newTicker = newBubbleTicker
		c.becomeInline()
	})
}

func TestChoice_EventsThatComeSlowlyAreFew(t *testing.T) {
	inBubble(t, func(c *choosing) {
		for range 10 * busyCalls {
			c.arrived(1)
			time.Sleep(busyTime/busyCalls + time.Millisecond)
		}
		if c.busy.Load() {
			t.Error("a monitor runs for few events")
		}
	})
}

func TestChoice_InlineUntilHandlersAreLong(t *testing.T) {
	inBubble(t, func(c *choosing) {
		c.becomeInline()
		c.calls(10*judged, inlineMost)
		c.expect(true, "with handlers that are just short enough")
		for range 10 {
			c.calls(judged/16, time.Second) // the system did not let the thread run
			c.calls(judged-judged/16, 5*time.Microsecond)
		}
		c.expect(true, "with few handlers that took long")
		c.calls(judged, inlineMost+1)
		c.expect(false, "with long handlers")
	})
}

// TestChoice_LongHandlersEndATurnEarlier: others wait for turnTime at most, if
// handlers take as long as they did.
func TestChoice_LongHandlersEndATurnEarlier(t *testing.T) {
	inBubble(t, func(c *choosing) {
		for took, turn := range map[time.Duration]int64{
			1: turnCallsMost, turnTime / 20: 20, turnTime / 10: 10, slowCall: turnCallsLeast,
		} {
			c.calls(judged, took)
			if got := c.turn.Load(); got != turn {
				t.Errorf("a turn has %d handlers of %v, want %d", got, took, turn)
			}
			if got, want := c.long.Load(), took > inlineMost; got != want {
				t.Errorf("handlers of %v are shared out: %v", took, got)
			}
		}
	})
}

// TestChoice_OneConnectionDoesNotKeepItsPoller: the monitor takes the role from a
// leader that has been with one connection for long, in whatever number of calls.
// The naive version looks at each call for itself.
func TestChoice_OneConnectionDoesNotKeepItsPoller(t *testing.T) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	defer func() { close(stop); <-stopped }()
	go func() { // so that the handler is not all that does not run
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				runtime.Gosched()
			}
		}
	}()
	for name, test := range map[string]struct {
		another bool // connection each time
		rescued bool
	}{"one connection": {false, true}, "several": {true, false}} {
		l, e := serveInside(t, Config{Dispatch: DispatchInline, Pollers: 1}, func(*Conn) error { return nil })
		p, err := newPoller(e)
		if err != nil {
			t.Fatal(err)
		}
		leads := p.leader.Load()
		watch := watch{seen: map[*leader]sight{}, now: map[*leader]sight{}}
		for range 4 {
			if test.another {
				leads.turns.Add(1)
			}
			if !leads.enter() {
				t.Fatal("the leader may not run handlers")
			}
			watch.look(func(yield func(*leader) bool) { yield(leads) }, turnMost/2)
			if !leads.leave() {
				break
			}
		}
		rescued := l.Stats().Loop.Rescues > 0
		if rescued != test.rescued {
			t.Errorf("%s: rescued is %v", name, rescued)
		}
		if !rescued {
			p.discard()
			continue
		}
		leads.retire()
		p.close()
	}
}

func TestChoice_InlineUntilManyAreRescued(t *testing.T) {
	inBubble(t, func(c *choosing) {
		c.becomeInline()
		rescue := func(times int) {
			for range times {
				c.lost(true)
			}
		}
		for range 10 {
			rescue(rescuesMost)
			c.expect(true, "with few rescues")
			c.calls(rescuedOf/sampled, 1)
		}
		rescue(rescuesMost + 1)
		c.expect(false, "with many rescues")
	})
}

// TestChoice_InlineIsOnTrialAfterAMistake: each rescue lets others wait, and the
// mistake is likely to be one still.
func TestChoice_InlineIsOnTrialAfterAMistake(t *testing.T) {
	inBubble(t, func(c *choosing) {
		c.becomeInline()
		for range rescuesMost + 1 {
			c.lost(true)
		}
		c.expect(false, "after a mistake")
		c.lost(true) // of another poller
		if c.quick.Load() {
			t.Error("the monitor hurries though no handler runs inline")
		}
		again := func() {
			t.Helper()
			c.pass(pauseMin * pauseFactor)
			c.calls(judged, 1)
			c.expect(true, "on trial")
			if !c.quick.Load() {
				t.Error("the monitor does not hurry on trial")
			}
		}
		again()
		c.lost(false)
		c.expect(true, "after a release")
		c.lost(true)
		c.expect(false, "after a rescue")
		again()
		c.calls(rescuedOf/sampled, 1)
		c.lost(true)
		c.expect(true, "after a rescue when the trial is over")
		c.calls(judged, inlineMost+1)
		c.expect(false, "after another mistake")
		c.pass(2*pauseMax + calmTick)
		c.calls(judged, 1)
		c.lost(true)
		c.expect(true, "after a rescue a long time later")
	})
}

// TestChoice_InlineUntilManyGiveTheRoleAway: that lets nobody wait, so more may.
func TestChoice_InlineUntilManyGiveTheRoleAway(t *testing.T) {
	inBubble(t, func(c *choosing) {
		c.becomeInline()
		for range 10 {
			for range releasesMost {
				c.lost(false)
			}
			c.expect(true, "with few that gave the role away")
			if c.quick.Load() {
				t.Error("the monitor hurries though nobody has to be rescued")
			}
			c.calls(rescuedOf/sampled, 1)
		}
		for range releasesMost + 1 {
			c.lost(false)
		}
		c.expect(false, "with many that gave the role away")
	})
}

// TestChoice_InlineUntilManyAreLeftBehind: each keeps a buffer, for as long as it
// likes.
func TestChoice_InlineUntilManyAreLeftBehind(t *testing.T) {
	inBubble(t, func(c *choosing) {
		c.becomeInline()
		c.left.Store(limits.LeftBuffers - 1)
		c.lost(true)
		c.expect(true, "with less than there may be")
		c.left.Store(limits.LeftBuffers)
		c.lost(true)
		c.expect(false, "with as many")
		// The naive version tries again after each pause, and leaves one more behind.
		c.pass(2 * pauseMin)
		c.calls(judged, 1)
		c.expect(false, "while as many are left")
		c.left.Store(limits.LeftBuffers - 1)
		c.calls(judged, 1)
		c.expect(true, "when one has returned")
	})
}

// TestChoice_TicksAreQuickWhileThereAreRescues: that is what they cost their time
// for.
func TestChoice_TicksAreQuickWhileThereAreRescues(t *testing.T) {
	inBubble(t, func(c *choosing) {
		c.becomeInline()
		period := func(want time.Duration, when string) {
			t.Helper()
			c.pass(3 * calmTick)
			if got := c.ticker.(*bubbleTicker).period; got != want {
				t.Errorf("a tick is %v %s, want %v", got, when, want)
			}
		}
		period(calmTick, "at first")
		c.lost(true)
		period(quickTick, "after a rescue")
		c.calls(rescuedOf/sampled, 1)
		period(quickTick, "in the calls after that one")
		c.calls(rescuedOf/sampled, 1)
		period(calmTick, "when many calls needed none")
	})
}

// TestChoice_TicksAreCalmWhileHandlersAreSpawned: the monitor ended while it hurried,
// and a new one has nobody to rescue.
func TestChoice_TicksAreCalmWhileHandlersAreSpawned(t *testing.T) {
	inBubble(t, func(c *choosing) {
		c.becomeInline()
		c.lost(true)
		time.Sleep(idleTime + 2*calmTick)
		if c.busy.Load() {
			t.Fatal("the monitor has not ended, which this test needs")
		}
		c.pass(5 * calmTick)
		c.expect(false, "when there is much to do again")
		if got := c.ticker.(*bubbleTicker).period; got != calmTick {
			t.Errorf("a tick is %v while handlers are spawned, want %v", got, calmTick)
		}
	})
}

func TestChoice_FewEventsEndInline(t *testing.T) {
	inBubble(t, func(c *choosing) {
		c.becomeInline()
		c.pass(time.Second)
		c.expect(true, "while there is much to do")
		time.Sleep(idleTime + 2*calmTick)
		c.expect(false, "when there is nothing to do")
		if c.busy.Load() {
			t.Error("the monitor has not ended")
		}
		c.becomeInline() // it comes back
	})
}

// TestChoice_NobodyIsLeftBehindInline: a handler begins just when the monitor is
// about to end. The naive version ends without another look, and nobody takes
// the role from the leader.
func TestChoice_NobodyIsLeftBehindInline(t *testing.T) {
	inBubble(t, func(c *choosing) {
		c.becomeInline()
		c.leads.state.Store(3)
		if c.rest() || !c.busy.Load() {
			t.Error("the monitor ends though a leader is in a handler")
		}
		c.expect(false, "when the monitor is about to end")
		c.leads.state.Store(lost)
		if !c.rest() || c.busy.Load() {
			t.Error("the monitor goes on though nobody leads in a handler")
		}
		c.calls(judged, 1)
		c.expect(false, "without a monitor")
	})
}

// TestChoice_EachMistakeCostsALongerPause: until inline was right for a long time.
func TestChoice_EachMistakeCostsALongerPause(t *testing.T) {
	inBubble(t, func(c *choosing) {
		pause := pauseMin
		mistake := func(round int) {
			c.becomeInline()
			c.calls(judged, time.Second)
			c.expect(false, "after a mistake")
			c.pass(pause - 10*calmTick)
			c.calls(judged, 1)
			c.expect(false, fmt.Sprintf("%v after mistake %d", pause-10*calmTick, round))
			c.pass(10 * calmTick)
			pause = min(pauseFactor*pause, pauseMax)
		}
		for round := range 10 {
			mistake(round)
		}
		if pause != pauseMax {
			t.Errorf("the pause is %v in the end, want %v", pause, pauseMax)
		}
		c.becomeInline()
		c.pass(pauseMax + 10*calmTick)
		c.expect(true, "for a long time")
		pause = pauseMin
		mistake(10)
		c.becomeInline()
	})
}

func TestChoice_CloseEndsTheMonitor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var leads leader
		leads.state.Store(1)
		c := newChoice(DispatchAuto, func(yield func(*leader) bool) { yield(&leads) })
		c.newTicker = newBubbleTicker
		c.arrived(busyCalls)
		c.arrived(busyCalls)
		if !c.busy.Load() {
			t.Fatal("no monitor runs, which this test needs")
		}
		c.close()
		c.arrived(busyCalls) // whoever is late starts nothing: the bubble would not end
	})
}
