package eventloop

import (
	"runtime"
	"syscall"
	"time"
)

// readSpin has who reads a dialled connection look again for a while before it waits, as a
// poller does. That is for connections that many calls share: where the ends take turns, a
// client that sleeps has to be woken for each reply, which takes time of both sides.
// bidi-1k-c16 made 1.04 times as many messages with it and a hundred callers 1.06 times as
// many calls, each for less of the processor, one caller 0.94 times as many for 1.03 of it
// ([decision 28]).
//
// [decision 28]: https://github.com/fulmar-rpc/fulmar/blob/main/docs/adr/0028-epoll-engine.md
type readSpin struct {
	spinner
	// began is since when the reader waits; zero while it does not.
	began time.Time
	// room is what a call of fillSpinning reads into.
	room []byte
}

// readBudget is what all dialled connections may waste together: there can be thousands.
var readBudget spinBudget

// newReadSpin returns nil if nothing spins here.
func newReadSpin(config *Config) *readSpin {
	r := &readSpin{spinner: newSpinner(config.SpinTime, &readBudget)}
	if r.most <= 0 {
		return nil
	}
	return r
}

// again tries to read where nothing was there. It does so once before each wait.
func (r *readSpin) again(fd int, room []byte) (n int, err error) {
	n, err = 0, syscall.EAGAIN
	if !r.began.IsZero() {
		return n, err
	}
	r.began = time.Now()
	if !r.worth(r.began) {
		return n, err
	}
	spun := time.Duration(0)
	for err == syscall.EAGAIN && spun < r.most {
		// Whoever else is ready runs first.
		runtime.Gosched()
		n, err = retryRead(fd, room)
		spun = time.Since(r.began)
	}
	r.tried(spun, err != syscall.EAGAIN)
	return n, err
}

// over is told that a wait is, if there was one.
func (r *readSpin) over() {
	if !r.began.IsZero() {
		r.waited(time.Since(r.began), 1)
		r.began = time.Time{}
	}
}
