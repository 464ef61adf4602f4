package eventloop

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/net/nettest"
	"golang.org/x/sys/unix"
)

// TestSocket_IsANetConn runs the conformance test of package net on both ends of
// connections that pollers watch.
func TestSocket_IsANetConn(t *testing.T) {
	l, _ := unserved(t, Config{})
	pipe := func(wrap func(*socket) net.Conn) nettest.MakePipe {
		return func() (net.Conn, net.Conn, func(), error) {
			a, b, err := newSocketPair(l)
			if err != nil {
				return nil, nil, nil, err
			}
			first, second := wrap(a), wrap(b)
			return first, second, func() { _, _ = first.Close(), second.Close() }, nil
		}
	}
	t.Run("socket", func(t *testing.T) {
		nettest.TestConn(t, pipe(func(s *socket) net.Conn { busyConn(l, s); return s }))
	})
	t.Run("connection", func(t *testing.T) {
		nettest.TestConn(t, pipe(func(s *socket) net.Conn { return busyConn(l, s) }))
	})
}

// TestNewListener_ASocketThatCannotBeUsedIsClosed: nobody else has the socket that
// Listen or ListenFile has made. An interval that the kernel refuses stands for
// other failures, such as no free descriptor.
func TestNewListener_ASocketThatCannotBeUsedIsClosed(t *testing.T) {
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if _, err := newListener(socket, Config{Engine: EngineEpoll, KeepAlive: 10 * time.Hour}, true); !errors.Is(err, unix.EINVAL) {
		t.Fatalf("newListener = %v, want that an argument is invalid", err)
	}
	if err := socket.(*net.TCPListener).SetDeadline(time.Now()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("SetDeadline = %v, want that the socket is closed", err)
	}
}

// TestSocket_ErrorsAreThoseOfPackageNet compares with what *net.TCPConn says.
func TestSocket_ErrorsAreThoseOfPackageNet(t *testing.T) {
	l, _ := unserved(t, Config{})
	a, b := socketPair(t, l)
	busyConn(l, a)
	busyConn(l, b)
	plain, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for what, conn := range map[string]net.Conn{"socket": a, "net": plain} {
		past := time.Unix(1, 0)
		if err := conn.SetDeadline(past); err != nil {
			t.Errorf("%s: SetDeadline: %v", what, err)
		}
		one := make([]byte, 1)
		_, readErr := conn.Read(one)
		_, writeErr := conn.Write(one)
		for operation, err := range map[string]error{"read": readErr, "write": writeErr} {
			var opError *net.OpError
			if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &opError) || opError.Op != operation || !opError.Timeout() {
				t.Errorf("%s: %s after its deadline: %v", what, operation, err)
			}
		}
		if err := conn.Close(); err != nil {
			t.Errorf("%s: Close: %v", what, err)
		}
		_, readErr = conn.Read(one)
		_, writeErr = conn.Write(one)
		for operation, err := range map[string]error{"read": readErr, "write": writeErr, "close": conn.Close(), "set": conn.SetDeadline(past)} {
			if !errors.Is(err, net.ErrClosed) {
				t.Errorf("%s: %s after Close: %v", what, operation, err)
			}
		}
	}
}

// TestSocket_DescriptorStaysWhileItIsUsed is about the number of a descriptor:
// the naive version closes it in Close, and then another socket gets it while a
// goroutine that was about to write still has the number.
func TestSocket_DescriptorStaysWhileItIsUsed(t *testing.T) {
	l, _ := unserved(t, Config{})
	a, b := socketPair(t, l)
	// What has expired is part of the same number as how many use the descriptor.
	if err := a.SetDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if err := a.acquire(0); err != nil {
		t.Fatal("acquire of an open socket failed:", err)
	}
	fd := a.fd
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if a.acquire(0) == nil {
		t.Error("acquire of a closed socket succeeded")
	}
	c, d := socketPair(t, l)
	for _, s := range []*socket{c, d} {
		if s.fd == fd {
			t.Error("a descriptor in use was given to another socket")
		}
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
		t.Errorf("the descriptor in use: %v", err)
	}
	a.release()
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != unix.EBADF {
		t.Errorf("the descriptor after its last use: %v", err)
	}
	if b.fd == fd {
		t.Error("both ends have one descriptor")
	}
}

// TestSlots_AnEventOfAClosedSocketFindsNothing: the slot of a closed socket is
// used again at once. The naive version has only its index in the event.
func TestSlots_AnEventOfAClosedSocketFindsNothing(t *testing.T) {
	var table slots
	var sockets []*socket
	for range 2*slotsPerBlock + 1 {
		s := new(socket)
		table.add(s)
		sockets = append(sockets, s)
	}
	for i, s := range sockets {
		if table.find(s.token) != s {
			t.Fatalf("socket %d is not found", i)
		}
	}
	old := sockets[slotsPerBlock]
	table.remove(old.token)
	if table.find(old.token) != nil {
		t.Error("a removed socket is found")
	}
	successor := new(socket)
	table.add(successor)
	if successor.token.slot != old.token.slot {
		t.Fatalf("the slot of the removed socket is not used again, which this test needs: %+v", successor.token)
	}
	if table.find(old.token) != nil {
		t.Error("an event of the removed socket finds its successor")
	}
	table.remove(old.token) // late, or twice
	if table.find(successor.token) != successor {
		t.Error("removing the old socket again removed its successor")
	}
	for _, unknown := range []token{{slot: 1 << 30}, {slot: 3*slotsPerBlock + 1, generation: 1}, {slot: 1, generation: 7}} {
		if table.find(unknown) != nil {
			t.Errorf("%+v is found", unknown)
		}
	}
}

// TestConn_SocketThatCannotBeWatchedIsClosed: the naive version waits for events
// of a socket that epoll has refused. A regular file stands for it.
func TestConn_SocketThatCannotBeWatchedIsClosed(t *testing.T) {
	closed := make(chan error, 1)
	l, engine := serveInside(t, Config{OnClose: func(_ *Conn, err error) { closed <- err }}, func(*Conn) error { return nil })
	path := filepath.Join(t.TempDir(), "file")
	fd, err := unix.Open(path, unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	s, err := engine.adopt(fd)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.wait(&s.in); !errors.Is(err, unix.EPERM) {
		t.Errorf("waiting for it: %v, want the error of epoll", err)
	}
	l.admit(s)
	if err := <-closed; !errors.Is(err, unix.EPERM) {
		t.Errorf("OnClose got %v, want the error of epoll", err)
	}
}

// TestConn_DeadlineThatPassesWhileItIsOwnedIsSeen: the deadline passes between a
// read that found nothing and the decision to wait. The naive version waits.
func TestConn_DeadlineThatPassesWhileItIsOwnedIsSeen(t *testing.T) {
	l, engine := unserved(t, Config{})
	s, _ := socketPair(t, l)
	c := busyConn(l, s)
	if err := c.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	c.served.drained = true // by a read before the deadline
	if next := engine.await(c, false); next != actionFinish || !errors.Is(c.cause, os.ErrDeadlineExceeded) {
		t.Errorf("next is %v because of %v, want the end because of the deadline", next, c.cause)
	}
}

// TestSocket_DeadlinesOfEachMessageTakeNoMemory: the timer is used again.
func TestSocket_DeadlinesOfEachMessageTakeNoMemory(t *testing.T) {
	l, _ := unserved(t, Config{})
	s, _ := socketPair(t, l)
	c := busyConn(l, s)
	for name, set := range map[string]func(time.Time) error{"read": c.SetReadDeadline, "write": c.SetWriteDeadline, "both": s.SetDeadline} {
		if got := testing.AllocsPerRun(100, func() {
			if err := set(time.Now().Add(time.Hour)); err != nil {
				t.Error(err)
			}
		}); got != 0 {
			t.Errorf("%s: %v allocations for a deadline, want none", name, got)
		}
	}
}

// TestSocket_ADeadlineThatWasReplacedDoesNotPass: its timer has fired already when
// the next deadline is set. The naive version ends that one, or forgets it.
func TestSocket_ADeadlineThatWasReplacedDoesNotPass(t *testing.T) {
	l, _ := unserved(t, Config{})
	s, _ := socketPair(t, l)
	busyConn(l, s)
	for _, replace := range []time.Time{time.Now().Add(time.Hour), {}} {
		for _, d := range []*direction{&s.in, &s.out} {
			if err := errors.Join(s.setDeadline(d, time.Now().Add(time.Hour)), s.setDeadline(d, replace)); err != nil {
				t.Fatal(err)
			}
			d.expiry.fire() // late
			if err := s.unusable(d); err != nil {
				t.Errorf("a deadline that was replaced has passed: %v", err)
			}
		}
	}
	// Those that were not replaced pass, also if all they say is the time on the wall.
	for range 3 {
		if err := s.SetReadDeadline(time.Now().Add(time.Millisecond).Round(0)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Read = %v, want that its deadline has passed", err)
		}
		s.in.expiry.fire() // again, for nothing
	}
	// One that has passed already needs no timer, and ends the one there is.
	if err := errors.Join(s.SetWriteDeadline(time.Now().Add(time.Hour)), s.SetWriteDeadline(time.Unix(1, 0))); err != nil {
		t.Fatal(err)
	}
	if err := s.unusable(&s.out); !errors.Is(err, os.ErrDeadlineExceeded) || !s.out.expiry.due.IsZero() {
		t.Errorf("a deadline in the past: %v, the next is due at %v", err, s.out.expiry.due)
	}
}

// TestSocket_ADescriptorForOthers is SyscallConn.
func TestSocket_ADescriptorForOthers(t *testing.T) {
	l, _ := unserved(t, Config{})
	a, b := socketPair(t, l)
	busyConn(l, a)
	busyConn(l, b)
	raw, err := a.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 3)
	read := make(chan error, 1)
	go func() {
		read <- raw.Read(func(fd uintptr) bool {
			_, err := unix.Read(int(fd), got)
			return err != unix.EAGAIN
		})
	}()
	if _, err := b.Write([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	if err := <-read; err != nil || !bytes.Equal(got, []byte("abc")) {
		t.Errorf("read %q, %v", got, err)
	}
	_ = a.Close()
	if err := raw.Control(func(uintptr) { t.Error("a closed descriptor was handed out") }); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Control after Close: %v", err)
	}
	if err := raw.Write(func(uintptr) bool { return true }); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Write after Close: %v", err)
	}
}

// TestPoller_WhatABatchStartedRunsBeforeTheNext: on one processor. The naive
// version polls on as long as there are events, and what it has started waits
// until the scheduler takes the processor from it.
func TestPoller_WhatABatchStartedRunsBeforeTheNext(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	l, engine := unserved(t, Config{Pollers: 1})
	a, b := socketPair(t, l)
	// A poller of its own, whose leader is this test, with an event for ever.
	mine, err := newPoller(engine)
	if err != nil {
		t.Fatal(err)
	}
	defer mine.free()
	if _, err := b.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := mine.watch(a, 0, readEvents); err != nil {
		t.Fatal(err)
	}
	if !engine.single {
		t.Fatal("the engine does not know that there is one processor")
	}
	leader := mine.leader.Load()
	defer leader.retire()
	for round := range 100 {
		done := make(chan struct{})
		go close(done)
		// Twice, because once in 61 times the scheduler takes the one that has
		// yielded.
		for range 2 {
			if err := leader.wait(); err != nil || leader.count != 1 {
				t.Fatalf("round %d: %d events, %v", round, leader.count, err)
			}
		}
		select {
		case <-done:
		default:
			t.Fatalf("round %d: the next events came before what the batch had started", round)
		}
	}
}
