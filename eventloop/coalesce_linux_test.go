package eventloop

import (
	"net"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// scriptedCoalescer is a coalescer whose waits take what a test says.
type scriptedCoalescer struct {
	coalescer
	now time.Time
}

// crowded returns one that has seen events of so many connections in turn.
func crowded(connections int) *scriptedCoalescer {
	s := &scriptedCoalescer{coalescer{pause: time.Microsecond}, time.Now()}
	s.turns(connections)
	return s
}

// turns has so many connections take turns for as long as it takes to be seen.
func (s *scriptedCoalescer) turns(connections int) {
	for i := range coalesceEvents {
		s.saw(uint32(i % connections))
	}
}

// slept is how long Linux makes the shortest pause.
const slept = 60 * time.Microsecond

// sleeps is busy and waits n times, and returns before how many of these waits it slept, if so
// many events gather then.
func (s *scriptedCoalescer) sleeps(n int, busy, took time.Duration, events int) (count int) {
	for range n {
		s.now = s.now.Add(busy)
		wait := took
		if s.worth(s.now) {
			count++
			s.gathered(events)
			wait += slept
		}
		s.now = s.now.Add(wait)
		s.waited(s.now, wait)
	}
	return count
}

// TestCoalescer_SleepsWhereManyKeepItBusy is a white-box test: when to sleep is a matter of times,
// which only a script can give.
func TestCoalescer_SleepsWhereManyKeepItBusy(t *testing.T) {
	const us = time.Microsecond
	for name, c := range map[string]struct {
		connections int
		busy, took  time.Duration
		events      int
		least, most int
	}{
		"many, busy":                       {100, 100 * us, 20 * us, 4, 190, 200},
		"just enough":                      {coalesceCrowd, 100 * us, 20 * us, 4, 190, 200},
		"few":                              {coalesceCrowd - 1, 100 * us, 20 * us, 1, 0, 0},
		"as busy as idle":                  {100, 20 * us, 20 * us, 4, 0, 0},
		"idle for most of the time":        {100, 20 * us, 60 * us, 4, 0, 0},
		"hardly anything to do":            {100, 20 * us, time.Second, 1, 0, 0},
		"seldom and for long":              {100, 2 * time.Millisecond, time.Second, 1, 0, 10},
		"less comes than a pause is long":  {100, 60 * us, 20 * us, 2, 20, 150},
		"callers wait for it":              {64, 100 * us, 20 * us, 17, 2, 5},
		"all that may come meanwhile come": {64, 100 * us, 20 * us, 16, 190, 200},
	} {
		if n := crowded(c.connections).sleeps(200, c.busy, c.took, c.events); n < c.least || n > c.most {
			t.Errorf("%s: it sleeps before %d of 200 waits, want %d to %d", name, n, c.least, c.most)
		}
	}
}

func TestCoalescer_FollowsWhatChanges(t *testing.T) {
	const us = time.Microsecond
	s := crowded(100)
	s.sleeps(100, 100*us, 20*us, 4)
	if s.sleeps(1, 60*us, time.Minute, 4); s.sleeps(100, 100*us, 20*us, 4) < 70 {
		t.Error("one long pause ends it for long")
	}
	if s.turns(2); s.sleeps(10, 100*us, 20*us, 1) != 0 {
		t.Error("it sleeps where two connections are left of many")
	}
	if s.turns(100); s.sleeps(10, 100*us, 20*us, 4) != 10 {
		t.Error("it does not sleep when there are many again")
	}
	s.pause = 0
	if s.sleeps(10, 100*us, 20*us, 4) != 0 {
		t.Error("it sleeps although it is off")
	}
}

// TestCoalescer_LeaderFindsWhatGathered: a leader that slept takes what came meanwhile, without
// another wait, and waits if nothing did.
func TestCoalescer_LeaderFindsWhatGathered(t *testing.T) {
	for name, test := range map[string]struct {
		configured time.Duration
		coalesced  uint64
	}{"by default": {0, 1}, "off": {-1, 0}} {
		l, engine := unserved(t, Config{CoalesceTime: test.configured, SpinTime: -1})
		p, err := newPoller(engine)
		if err != nil {
			t.Fatal(err)
		}
		p.coalescer.crowd, p.coalescer.busy = coalesceEvents, time.Hour
		leader := p.leader.Load()
		p.wake()
		if err := leader.waitLonger(); err != nil || leader.count != 1 {
			t.Errorf("%s: %d events, %v", name, leader.count, err)
		}
		if loop := l.Stats().Loop; loop.Coalesced != test.coalesced || loop.Parks != 1-test.coalesced {
			t.Errorf("%s: it slept %d times and waited %d times, want %d times", name, loop.Coalesced, loop.Parks, test.coalesced)
		}
		p.discard()
	}
}

// TestCoalescer_LeaderSeesWhoTakesTurns: events of many make a crowd.
func TestCoalescer_LeaderSeesWhoTakesTurns(t *testing.T) {
	const connections = coalesceCrowd + 4
	_, engine := unserved(t, Config{})
	p, err := newPoller(engine)
	if err != nil {
		t.Fatal(err)
	}
	defer p.discard()
	for i := range int32(connections) {
		fd, err := unix.Eventfd(1, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		if err := unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: i}); err != nil {
			t.Fatal(err)
		}
	}
	leader := p.leader.Load()
	for range coalesceEvents/connections + 1 { // each look brings one event of each
		if err := leader.wait(); err != nil {
			t.Fatal(err)
		}
	}
	if p.coalescer.crowd != connections {
		t.Errorf("it has seen %d connections, want %d", p.coalescer.crowd, connections)
	}
}

// TestCoalescer_OthersHaveTheOnlyProcessor: where a leader that coalesces has the only processor,
// the runtime looks at its own poller all the same.
func TestCoalescer_OthersHaveTheOnlyProcessor(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	_, engine := unserved(t, Config{})
	p, err := newPoller(engine)
	if err != nil {
		t.Fatal(err)
	}
	defer p.discard()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	accepted := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			err = conn.Close()
		}
		accepted <- err
	}()
	client, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(client)
	runtime.Gosched() // it accepts, and waits
	// Package net would have the runtime look at its poller.
	if err := unix.Connect(client, &unix.SockaddrInet4{Port: listener.Addr().(*net.TCPAddr).Port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	leader := p.leader.Load()
	// With others that want the processor it may take some of them.
	for range 1000 {
		leader.pause()
		if len(accepted) > 0 {
			break
		}
	}
	select {
	case err := <-accepted:
		if err != nil {
			t.Error(err)
		}
	default:
		t.Error("nobody has accepted the connection")
	}
	for range coalesceParks {
		leader.pause()
	}
	if leader.nap == nil {
		t.Error("it never left the processor to others")
	}
}
