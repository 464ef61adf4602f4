//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/fulmar-rpc/fulmar/bench/papernet"
)

// loop is how the goroutine that polls waits: the pseudo code of the article, with
// and without its two changes.
type loop struct {
	name string
	// switches lets it look with msec 0 after it had events, and wait with msec -1
	// only after it had none.
	switches bool
	// yields lets other goroutines run before it waits.
	yields bool
	// raw makes calls with msec 0 without telling the scheduler, as Netpoll does.
	raw bool
}

func loops() []loop {
	return []loop{
		{name: papernet.MsecBlock},
		{name: papernet.Switch, switches: true},
		{name: papernet.SwitchGosched, switches: true, yields: true},
		{name: papernet.SwitchRaw, switches: true, yields: true, raw: true},
	}
}

func loopOf(name string) loop {
	for _, l := range loops() {
		if l.name == name {
			return l
		}
	}
	return loop{}
}

// server echoes what clients of suite net send. One goroutine polls, accepts and
// reads; each request is handled on a goroutine of its own, as Netpoll did when
// the article was written.
type server struct {
	loop      loop
	directory directory
	epoll     int
	tcp       bool
	listening *connection
	wake      *connection
	// connections keeps all connections reachable, as pointers asks for. A
	// connection that is removed stays until the batch is over.
	connections []*connection
	removed     []*connection
	handlers    sync.WaitGroup
	stopping    bool
}

// serve serves until ctx ends. It closes the listener.
func serve(ctx context.Context, listener net.Listener, l loop, d directory) error {
	defer listener.Close()
	s := &server{loop: l, directory: d}
	_, s.tcp = listener.(*net.TCPListener)
	fd, err := duplicate(listener)
	if err != nil {
		return err
	}
	s.listening = &connection{fd: fd}
	defer unix.Close(fd)
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return os.NewSyscallError("eventfd", err)
	}
	s.wake = &connection{fd: wake}
	if s.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return errors.Join(os.NewSyscallError("epoll_create1", err), unix.Close(wake))
	}
	defer unix.Close(s.epoll)
	told := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		_, err := unix.Write(wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		told <- err
	})
	err = errors.Join(s.register(s.listening), s.register(s.wake))
	if err == nil {
		err = s.run()
	}
	for _, c := range append([]*connection(nil), s.connections...) {
		c.fail()
		s.end(c)
	}
	s.handlers.Wait()
	// Nobody may write to the descriptor when it is somebody else's.
	if !stop() {
		err = errors.Join(err, <-told)
	}
	return errors.Join(err, unix.Close(wake))
}

// duplicate returns a descriptor of the listening socket that package net does not
// poll. It does not block, like the original.
func duplicate(listener net.Listener) (int, error) {
	socket, ok := listener.(syscall.Conn)
	if !ok {
		return 0, fmt.Errorf("listener %T has no descriptor", listener)
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, err
	}
	var fd int
	var failed error
	err = raw.Control(func(original uintptr) { fd, failed = unix.FcntlInt(original, unix.F_DUPFD_CLOEXEC, 0) })
	return fd, errors.Join(err, failed)
}

func (s *server) register(c *connection) error {
	event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP}
	setData(&event, s.directory.add(c))
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(s.epoll, unix.EPOLL_CTL_ADD, c.fd, &event))
}

// run is the loop of the article.
func (s *server) run() error {
	events := make([]unix.EpollEvent, eventsMax)
	msec := -1
	for !s.stopping {
		n, err := epollWait(s.epoll, events, msec, s.loop.raw && msec == 0)
		if err != nil && err != unix.EINTR {
			return os.NewSyscallError("epoll_pwait", err)
		}
		if n <= 0 {
			msec = -1
			if s.loop.yields {
				runtime.Gosched()
			}
			continue
		}
		if s.loop.switches {
			msec = 0
		}
		for i := range events[:n] {
			if err := s.handle(s.directory.find(data(&events[i]))); err != nil {
				return err
			}
		}
		clear(s.removed)
		s.removed = s.removed[:0]
	}
	return nil
}

func (s *server) handle(c *connection) error {
	switch c {
	case nil:
		return nil
	case s.wake:
		s.stopping = true
		return nil
	case s.listening:
		return s.accept()
	}
	switch start, more := c.receive(); {
	case !more:
		s.end(c)
	case start:
		s.handlers.Go(c.handle)
	}
	return nil
}

// acceptMax is how many connections are accepted before others are looked at.
const acceptMax = 64

func (s *server) accept() error {
	for range acceptMax {
		fd, _, err := unix.Accept4(s.listening.fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		switch err {
		case nil:
		case unix.EAGAIN:
			return nil
		case unix.EINTR, unix.ECONNABORTED:
			continue
		default:
			return os.NewSyscallError("accept4", err)
		}
		c := &connection{fd: fd, place: len(s.connections)}
		if s.tcp {
			err = os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1))
		}
		if err = errors.Join(err, s.register(c)); err != nil {
			return errors.Join(err, unix.Close(fd))
		}
		s.connections = append(s.connections, c)
	}
	return nil
}

// end forgets a connection. Its descriptor is closed when its handler is done, so
// that no other connection gets the number before.
func (s *server) end(c *connection) {
	_ = unix.EpollCtl(s.epoll, unix.EPOLL_CTL_DEL, c.fd, nil) // It is registered; to fail would change nothing.
	s.directory.remove(c)
	last := len(s.connections) - 1
	s.connections[c.place] = s.connections[last]
	s.connections[c.place].place = c.place
	s.connections[last] = nil
	s.connections = s.connections[:last]
	s.removed = append(s.removed, c)
	c.end()
}
