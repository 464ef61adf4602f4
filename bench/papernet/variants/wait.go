//go:build linux

package main

import (
	"errors"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fulmar-rpc/fulmar/bench/contestant"
	"github.com/fulmar-rpc/fulmar/bench/papernet"
)

// epollWait waits for events for msec milliseconds, without end if that is -1.
// Raw, it does not tell the scheduler that it is in the kernel, so it must not
// wait. It is epoll_pwait without a mask of signals, because newer architectures
// lack epoll_wait; the difference is a comparison with null in the kernel.
//
// unsafe: the address of the first event, within the expression of the system
// call as package unsafe asks for. events must not be empty.
func epollWait(epoll int, events []unix.EpollEvent, msec int, raw bool) (int, error) {
	var n uintptr
	var errno unix.Errno
	if raw {
		n, _, errno = unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epoll), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), uintptr(msec), 0, 0)
	} else {
		n, _, errno = unix.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(epoll), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), uintptr(msec), 0, 0)
	}
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// wait is one call of epoll_wait while an event is there.
type wait struct {
	name string
	msec int
	raw  bool
}

func waits() []wait {
	return []wait{
		{papernet.Msec0, 0, false},
		{papernet.MsecBlock, -1, false},
		{papernet.Msec0Raw, 0, true},
		{papernet.MsecBlockRaw, -1, true},
	}
}

// eventsMax is how many events one call returns, as Netpoll begins with.
const eventsMax = 128

// repeat waits for an event that is always there: a counter that nobody reads.
func (w wait) repeat() (contestant.Repeat, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return contestant.Repeat{}, err
	}
	counter, err := unix.Eventfd(1, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return contestant.Repeat{}, errors.Join(err, unix.Close(epoll))
	}
	closeBoth := func() error { return errors.Join(unix.Close(counter), unix.Close(epoll)) }
	if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, counter, &unix.EpollEvent{Events: unix.EPOLLIN}); err != nil {
		return contestant.Repeat{}, errors.Join(err, closeBoth())
	}
	events := make([]unix.EpollEvent, eventsMax)
	return contestant.Repeat{Close: closeBoth, Times: func(n int) (time.Duration, error) {
		begun := time.Now()
		for range n {
			found, err := epollWait(epoll, events, w.msec, w.raw)
			if err == unix.EINTR { // The runtime interrupts threads to preempt goroutines.
				continue
			}
			if err != nil || found != 1 {
				return 0, errors.Join(errors.New("epoll_wait without the event that is there"), err)
			}
		}
		return time.Since(begun), nil
	}}, nil
}
