//go:build linux

package main

import (
	"errors"
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fulmar-rpc/fulmar/bench/netsuite"
)

// connection is a socket. The goroutine that polls reads from it, and at most one
// other one handles what has arrived.
type connection struct {
	fd int
	// slot is where a directory of slots has it, place where the server has it.
	slot  uint32
	place int

	mu    sync.Mutex
	input []byte // what was received, and no handler has taken
	busy  bool   // a handler runs
	ended bool   // nothing more will be read: the handler closes the descriptor
	dead  bool   // nothing more can be written

	// spare and output are the handler's.
	spare, output []byte
}

const (
	// readBytes is how much one read asks for, as Netpoll begins with.
	readBytes = 8 << 10
	// inputMax bounds what a client can make the server keep.
	inputMax = netsuite.PayloadMax + 1<<20
	// writePatience is how long a handler waits for a client that takes no bytes,
	// in ms.
	writePatience = 10_000
)

// receive reads once. start tells that a handler has to be started, more that the
// connection goes on.
func (c *connection) receive() (start, more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead || len(c.input) > inputMax {
		return false, false
	}
	c.input = slices.Grow(c.input, readBytes)
	n, err := transfer(unix.SYS_READ, c.fd, c.input[len(c.input):cap(c.input)])
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		return false, true
	case err != nil || n == 0:
		return false, false
	}
	c.input = c.input[:len(c.input)+n]
	start, c.busy = !c.busy, true
	return start, true
}

// handle replies to requests until none is complete.
func (c *connection) handle() {
	for {
		requests, err := c.take()
		if err != nil {
			c.fail()
		}
		if len(requests) == 0 {
			return
		}
		c.output = c.output[:0]
		for rest := requests; len(rest) > 0; {
			size, err := netsuite.FrameBytes(rest) // take has checked it.
			if err != nil {
				break
			}
			c.output = append(c.output, netsuite.Handle(rest[:size])...)
			rest = rest[size:]
		}
		c.spare = requests[:0]
		if err := c.write(c.output); err != nil {
			c.fail()
		}
	}
}

// take returns the complete requests that have arrived. If there are none, the
// handler is done, and nothing of the connection may be used.
func (c *connection) take() ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	size, err := complete(c.input)
	if size == 0 || c.dead || err != nil {
		c.busy = false
		if c.ended {
			_ = unix.Close(c.fd) // Nobody is left who could be told.
		}
		return nil, err
	}
	requests := c.input[:size]
	c.input = append(c.spare, c.input[size:]...)
	return requests, nil
}

// complete returns how many bytes at the start of input are complete frames.
func complete(input []byte) (int, error) {
	size := 0
	for len(input)-size >= netsuite.LengthBytes {
		next, err := netsuite.FrameBytes(input[size:])
		if err != nil {
			return size, err
		}
		if len(input)-size < next {
			break
		}
		size += next
	}
	return size, nil
}

// fail makes the goroutine that polls notice that the connection is over.
func (c *connection) fail() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = true
	if !c.ended || c.busy { // Otherwise the descriptor may be somebody else's.
		_ = unix.Shutdown(c.fd, unix.SHUT_RDWR)
	}
}

// end tells that nothing more will be read.
func (c *connection) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if !c.busy {
		_ = unix.Close(c.fd)
	}
}

func (c *connection) write(p []byte) error {
	for len(p) > 0 {
		n, err := transfer(unix.SYS_WRITE, c.fd, p)
		switch err {
		case nil:
			p = p[n:]
		case unix.EINTR:
		case unix.EAGAIN:
			if err := c.waitToWrite(); err != nil {
				return err
			}
		default:
			return err
		}
	}
	return nil
}

// waitToWrite waits until the client takes bytes, as Netpoll's handlers do.
func (c *connection) waitToWrite() error {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLOUT}}, writePatience)
	if err == nil && n == 0 {
		return errors.New("the client takes no bytes")
	}
	if err == unix.EINTR {
		return nil
	}
	return err
}

// transfer reads or writes without waiting, and so without telling the scheduler,
// as Netpoll does. SIGPIPE does not come of it: Go ignores it for descriptors
// above 2.
//
// unsafe: the address of the first byte, within the expression of the system call
// as package unsafe asks for. p must not be empty.
func transfer(call uintptr, fd int, p []byte) (int, error) {
	n, _, errno := unix.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
