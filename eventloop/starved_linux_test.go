package eventloop

import (
	"encoding/binary"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestLeader_StarvedComesBackSoon: 300 goroutines compute on the one processor, 50 us or
// so each at a time. A leader that calls runtime.Gosched is behind all of them, which is
// how it finds out that it is starved, and then it is not any more. A white-box test,
// because from outside only times can be seen.
func TestLeader_StarvedComesBackSoon(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	_, engine := unserved(t, Config{Pollers: 1})
	p, err := newPoller(engine)
	if err != nil {
		t.Fatal(err)
	}
	defer p.discard()
	var turns atomic.Int64
	var stop atomic.Bool
	var all sync.WaitGroup
	defer all.Wait()
	defer stop.Store(true)
	const others = 300
	for range others {
		all.Go(func() {
			for !stop.Load() {
				for x := uint32(0); x < 50_000 && !stop.Load(); x++ {
				}
				turns.Add(1)
				runtime.Gosched()
			}
		})
	}
	for turns.Load() < others {
		runtime.Gosched()
	}
	l := p.leader.Load()
	l.busy = true
	yield := func() int64 {
		before := turns.Load()
		l.yield()
		return turns.Load() - before
	}
	// What has just been preempted goes before it, or behind.
	if n := yield(); n < others/2 {
		t.Errorf("others had %d turns, so there is nothing to see here", n)
	}
	if !p.starved.Load() {
		t.Fatal("the leader has not noticed")
	}
	// The system may take the thread away for so long that the runtime ends the turn of
	// the leader, too: so one of some.
	fewest := int64(others)
	for range 10 {
		fewest = min(fewest, yield())
	}
	if fewest > others/3 {
		t.Errorf("others had %d turns before the leader came back", fewest)
	}
}

// TestLeader_YieldsToNobody: where what can run belongs to another processor, a leader that
// yields again and again lets nobody run, and would do so until the system lets that other
// processor go on.
func TestLeader_YieldsToNobody(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	_, engine := unserved(t, Config{Pollers: 1})
	p, err := newPoller(engine)
	if err != nil {
		t.Fatal(err)
	}
	defer p.discard()
	l := p.leader.Load()
	l.busy = true
	// The system may take the thread away meanwhile: so most of some.
	const tries = 20
	alone := 0
	for range tries {
		// One try that took long, because the system did something else, is about itself only.
		p.starved.Store(false)
		if !l.yield() {
			alone++
		}
	}
	p.starved.Store(false)
	if alone <= tries/2 {
		t.Errorf("%d times of %d the leader took itself for others", tries-alone, tries)
	}
	for range tries {
		var ran atomic.Bool
		go func() { // for longer than a yield takes by itself
			for x := uint32(0); x < 50_000; x++ {
				ran.Store(true)
			}
		}()
		if others := l.yield(); ran.Load() && !others {
			t.Error("a goroutine ran, and the leader has not noticed")
		}
	}
}

// TestAlarm_WakesThePollerOfTheRuntime each time it rings: whoever waits there for its file
// goes on.
func TestAlarm_WakesThePollerOfTheRuntime(t *testing.T) {
	var a alarm
	defer a.free()
	for range 3 {
		a.ring(napTime)
		if a.file == nil {
			t.Fatal("there is no timer")
		}
		var rings [8]byte
		if n, err := a.file.Read(rings[:]); err != nil || n != len(rings) || binary.NativeEndian.Uint64(rings[:]) != 1 {
			t.Fatalf("%d bytes, %v: %v", n, rings, err)
		}
	}
}

// TestLeader_Rests: a leader that was kept from the only processor, and who leads after it, does not
// go back to Gosched for a while; with two processors it may at once.
func TestLeader_Rests(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	_, engine := unserved(t, Config{Pollers: 1})
	p, err := newPoller(engine)
	if err != nil {
		t.Fatal(err)
	}
	defer p.discard()
	l := p.newLeader()
	if !l.rested() {
		t.Error("a leader that nobody has kept has to rest")
	}
	p.starvedAt = time.Now().Add(time.Hour)
	if l.rested() || p.newLeader().rested() {
		t.Error("a leader has rested before it was kept")
	}
	if engine.single = false; !l.rested() {
		t.Error("with two processors a leader has to rest")
	}
	engine.single = true
	if p.starvedAt = time.Now().Add(-starvedRest); !l.rested() {
		t.Error("a leader rests for too long")
	}
}
