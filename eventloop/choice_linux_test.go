package eventloop

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
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
		test(c)
		c.close()
	})
}

// pass lets time pass while there is much to do.
func (c *choosing) pass(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(monitorTick) {
		c.arrived(busyEvents)
		synctest.Wait()
	}
}

// spawnedCalls are handlers that ran beside the poller.
func (c *choosing) spawnedCalls(n int, took time.Duration) {
	for range n {
		c.ranSpawned(took)
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
	c.pass(5 * monitorTick)
	c.spawnedCalls(judged, 5*time.Microsecond)
	c.expect(true, "after short handlers")
}

func TestChoice_FixedOnes(t *testing.T) {
	for mode, inline := range map[Dispatch]bool{DispatchSpawn: false, DispatchInline: true} {
		c := newChoice(mode, func(func(*leader) bool) { t.Error("there is a monitor") })
		for range 100 {
			c.arrived(busyEvents)
			c.ranInline(1, time.Hour)
			c.rescued()
		}
		if c.runInline() != inline || c.measures() {
			t.Errorf("dispatch %d: inline is %v, measures %v", mode, c.runInline(), c.measures())
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
		"short":                   {busyEvents, func(c *choosing) { c.spawnedCalls(judged, spawnLeast-1) }, true},
		"too few":                 {busyEvents, func(c *choosing) { c.spawnedCalls(judged-1, 1) }, false},
		"too long":                {busyEvents, func(c *choosing) { c.spawnedCalls(judged, spawnLeast) }, false},
		"one is slow":             {busyEvents, func(c *choosing) { c.ranSpawned(slowCall); c.spawnedCalls(judged-1, 1) }, false},
		"one was slow before":     {busyEvents, func(c *choosing) { c.ranSpawned(slowCall); c.spawnedCalls(2*judged-1, 1) }, true},
		"there are few of them":   {busyEvents - 1, func(c *choosing) { c.spawnedCalls(judged, 1) }, false},
		"there are none any more": {busyEvents, func(c *choosing) { time.Sleep(2 * idleTicks * monitorTick); c.spawnedCalls(judged, 1) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(c *choosing) {
				c.expect(false, "at first")
				c.arrived(busyEvents - 1) // the window begins with the first events after long
				c.arrived(1)
				c.arrived(test.events)
				if c.measures() != (test.events == busyEvents) {
					t.Errorf("measures is %v", c.measures())
				}
				test.calls(c)
				c.expect(test.inline, "in the end")
			})
		})
	}
}

func TestChoice_EventsThatComeSlowlyAreFew(t *testing.T) {
	inBubble(t, func(c *choosing) {
		for range 10 * busyEvents {
			c.arrived(1)
			time.Sleep(busyTime/busyEvents + monitorTick)
		}
		if c.measures() {
			t.Error("a monitor runs for few events")
		}
	})
}

func TestChoice_InlineUntilHandlersAreLong(t *testing.T) {
	inBubble(t, func(c *choosing) {
		c.becomeInline()
		for range 1000 {
			c.ranInline(64, 64*inlineMost)
		}
		c.expect(true, "with handlers that are just short enough")
		for range 1000 {
			c.ranInline(64, 64*2*inlineMost)
		}
		c.expect(false, "with long handlers")
	})
}

func TestChoice_InlineUntilManyAreRescued(t *testing.T) {
	inBubble(t, func(c *choosing) {
		c.becomeInline()
		for range 10 {
			for range rescuesMost {
				c.rescued()
			}
			c.expect(true, "with few rescues in a second")
			c.pass(time.Second + monitorTick)
		}
		for range rescuesMost + 1 {
			c.rescued()
		}
		c.expect(false, "with many rescues in a second")
	})
}

// TestChoice_ARescueIsNotALongHandler: who takes a role over begins in the middle
// of a batch. The naive version takes its time from the beginning of the world.
func TestChoice_ARescueIsNotALongHandler(t *testing.T) {
	l, engine := unserved(t, Config{Dispatch: DispatchAuto, Pollers: 1})
	p, err := newPoller(engine) // whose leader is this test
	if err != nil {
		t.Fatal(err)
	}
	defer p.free()
	l.ForceInline()
	successor := p.leader.Load()
	successor.inlined = 3
	p.wake() // it must not wait
	_ = successor.wait()
	successor.retire()
	if mean := time.Duration(engine.choice.mean.Load()); mean != 0 {
		t.Errorf("the mean time of a handler is %v though none was measured", mean)
	}
}

func TestChoice_FewEventsEndInline(t *testing.T) {
	inBubble(t, func(c *choosing) {
		c.becomeInline()
		c.pass(time.Second)
		c.expect(true, "while there is much to do")
		time.Sleep((idleTicks + 2) * monitorTick)
		c.expect(false, "when there is nothing to do")
		if c.measures() {
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
		if c.rest() || !c.measures() {
			t.Error("the monitor ends though a leader is in a handler")
		}
		c.expect(false, "when the monitor is about to end")
		c.leads.state.Store(lost)
		if !c.rest() || c.measures() {
			t.Error("the monitor goes on though nobody leads in a handler")
		}
		c.spawnedCalls(judged, 1)
		c.expect(false, "without a monitor")
	})
}

// TestChoice_EachMistakeCostsALongerPause: until inline was right for a long time.
func TestChoice_EachMistakeCostsALongerPause(t *testing.T) {
	inBubble(t, func(c *choosing) {
		pause := pauseMin
		mistake := func(round int) {
			c.becomeInline()
			c.spawn()
			c.expect(false, "after a mistake")
			c.pass(pause - 10*monitorTick)
			c.spawnedCalls(judged, 1)
			c.expect(false, fmt.Sprintf("%v after mistake %d", pause-10*monitorTick, round))
			c.pass(10 * monitorTick)
			pause = min(2*pause, pauseMax)
		}
		for round := range 10 {
			mistake(round)
		}
		if pause != pauseMax {
			t.Errorf("the pause is %v in the end, want %v", pause, pauseMax)
		}
		c.becomeInline()
		c.pass(pauseMax + 10*monitorTick)
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
		c.arrived(busyEvents)
		c.arrived(busyEvents)
		if !c.measures() {
			t.Fatal("no monitor runs, which this test needs")
		}
		c.close()
		c.arrived(busyEvents) // whoever is late starts nothing: the bubble would not end
	})
}
