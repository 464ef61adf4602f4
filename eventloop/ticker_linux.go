package eventloop

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ticker lets the monitor wait. Tests whose time is virtual have their own.
type ticker interface {
	// set changes the time between two ticks.
	set(period time.Duration)
	// wait returns false when the ticker is closed.
	wait() bool
	close()
}

// timerTicker is a timer of the kernel. Those of Go come up to a millisecond late
// when a processor has nothing to do, because the runtime then waits for whole
// milliseconds.
type timerTicker struct{ file *os.File }

func newTimerTicker() (ticker, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	return timerTicker{os.NewFile(uintptr(fd), "timer")}, nil
}

func (t timerTicker) set(period time.Duration) {
	interval := unix.NsecToTimespec(int64(period))
	raw, err := t.file.SyscallConn()
	if err != nil {
		return // it is closed, and wait says so
	}
	_ = raw.Control(func(fd uintptr) {
		// It cannot fail for a timer and a period that is none but positive.
		_ = unix.TimerfdSettime(int(fd), 0, &unix.ItimerSpec{Interval: interval, Value: interval}, nil)
	})
}

func (t timerTicker) wait() bool {
	var ticks [8]byte
	_, err := t.file.Read(ticks[:])
	return err == nil
}

func (t timerTicker) close() { _ = t.file.Close() }
