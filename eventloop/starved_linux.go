package eventloop

import (
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// A goroutine that calls runtime.Gosched waits behind all that can run, and those that
// become able to run on a processor go before it, up to 61 of them. If each is a call
// that computes for a millisecond, nobody looks at the network for 60 to 190 ms (scenario
// S13 without MaxRunningCalls). One that waits in the runtime's poller is looked at every
// 10 ms then, and waits in the same way. A timer's goroutine is the next to run when its
// time has come and the goroutine before it ends or has had 10 ms. So a leader that is
// starved sleeps for a moment.
const (
	// starvedLeast is how long others must keep the leader from the processors.
	starvedLeast = time.Millisecond
	// starvedRest is for how long nobody must have kept a leader from the only processor before
	// it calls Gosched again. What had come meanwhile is a chain: each call makes the next one
	// able to run, which goes first, and in one of three windows of governance/overload-10x the
	// leader came back after 400 ms, when all calls were late and none had been refused.
	starvedRest = 100 * time.Millisecond
	// starvedLong is what it takes to begin with that. With a millisecond in its place the 99th
	// percentile of slowmix-c64 of suite net, where 1 of 1,000 handlers sleeps, was 1.07 and
	// 1.16 times as long (8 and 20 rounds, of which no output was kept), and with 5 ms 1.05.
	starvedLong = 5 * time.Millisecond
	// othersLeast is how long a yield takes if anybody ran meanwhile; without, 0.3 us.
	othersLeast = 2 * time.Microsecond
	// napTime is how long it sleeps then. To wake it and look takes 1 to 2 us.
	napTime = 200 * time.Microsecond
	// starvedCalls of a connection may wait as goroutines then, of 16 KiB each. Without a
	// bound S13's server took 4 to 10 times its memory at 10x, and not twice.
	starvedCalls = 64
)

// mayStarve: others may want the processors for so long that the leader should not
// wait for events while they can run.
func (l *leader) mayStarve() bool {
	e := l.poller.engine
	return l.poller.starved.Load() || !e.single && e.choice.long.Load()
}

// yield lets others run, and comes back soon. It reports whether there were any.
func (l *leader) yield() (others bool) {
	if l.poller.starved.Load() {
		l.sleep()
		return true
	}
	if !l.busy {
		// Nobody was given anything to run.
		runtime.Gosched()
		return false
	}
	began := time.Now()
	runtime.Gosched()
	took := time.Since(began)
	if took >= starvedLeast {
		l.poller.starved.Store(true)
	}
	if took >= starvedLong {
		l.poller.starvedAt = began.Add(took)
	}
	return took >= othersLeast
}

// rested reports whether a leader that was starved can go back to Gosched.
func (l *leader) rested() bool {
	return !l.poller.engine.single || time.Since(l.poller.starvedAt) >= starvedRest
}

// sleep sleeps for napTime, and notes if others kept it from waking.
func (l *leader) sleep() {
	began := time.Now()
	l.sleepFor(napTime)
	if now := time.Now(); now.Sub(began) >= napTime+starvedLeast {
		l.poller.starvedAt = now
	}
}

// sleepFor sleeps while others have the processor. It wakes whether or not that gets idle
// meanwhile. One that is idle waits in the runtime's poller for whole milliseconds, and looks at
// the timers of Go only then: with handlers of 0.8 ms and eight callers, one processor had
// nothing to do for 1.1 of 7.2 ms although the next calls had arrived. A timer of the kernel in
// that poller wakes it.
func (l *leader) sleepFor(d time.Duration) {
	if l.nap == nil {
		l.nap = time.NewTimer(d)
	} else {
		l.nap.Reset(d)
	}
	l.poller.alarm.ring(d)
	<-l.nap.C
}

// alarm wakes a processor that waits in the runtime's poller, once. It belongs to the leader.
// Where the system has no timer for it there is none.
type alarm struct {
	fd   int
	file *os.File
	made bool
}

// ring wakes it behind d.
func (a *alarm) ring(d time.Duration) {
	if !a.made {
		a.made = true
		if fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err == nil {
			// The runtime's poller watches it from now on, at its edges: nobody has to read.
			a.fd, a.file = fd, os.NewFile(uintptr(fd), "alarm")
		}
	}
	if a.file != nil {
		// It cannot fail for a timer and a time that is positive.
		_ = unix.TimerfdSettime(a.fd, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}, nil)
	}
}

func (a *alarm) free() {
	if a.file != nil {
		_ = a.file.Close()
	}
}
