package eventloop

import (
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// leading returns a poller that nobody leads, and who would.
func leading(t *testing.T, dispatch Dispatch) (*poller, *leader) {
	t.Helper()
	_, e := unserved(t, Config{Dispatch: dispatch, Pollers: 1})
	p, err := newPoller(e)
	if err != nil {
		t.Fatal(err)
	}
	return p, p.leader.Load()
}

// TestRole_EntersOnlyWhileSomebodyLooks: a leader enters handlers while the monitor
// ends and begins. In none of them may it be without a monitor, unless it has lost
// the role: the naive version looks once whether it may, and then enters.
func TestRole_EntersOnlyWhileSomebodyLooks(t *testing.T) {
	p, l := leading(t, DispatchAuto)
	c := newChoice(DispatchAuto, func(yield func(*leader) bool) { yield(l) })
	p.engine.choice = c
	var over atomic.Bool
	var ends sync.WaitGroup
	ends.Add(1)
	go func() { // the monitor, and the judge
		defer ends.Done()
		for !over.Load() {
			c.busy.Store(true)
			c.inline.Store(true)
			for !c.rest() && !over.Load() {
			}
		}
	}()
	entered := 0
	for attempt := 0; attempt < 3_000_000 || entered == 0 && attempt < 300_000_000; attempt++ {
		if !l.enter() {
			if attempt%1024 == 0 {
				runtime.Gosched() // there may be one processor
			}
			continue
		}
		entered++
		// The monitor ends after a look at l, and l is in a call.
		if !c.busy.Load() {
			t.Fatal("a handler runs inline and nobody would take the role")
		}
		if !l.leave() {
			t.Fatal("the role is lost")
		}
	}
	over.Store(true)
	ends.Wait()
	p.discard()
	if entered == 0 {
		t.Error("no handler was entered, so this test shows nothing")
	}
}

// TestRole_IsGivenAwayByTheCallOfThatConnection: somebody closes a connection whose
// call has let go, and is late: the poller runs a call of another one, which has let
// go, too. The naive version takes the role from it, and nobody goes on with its
// connection.
func TestRole_IsGivenAwayByTheCallOfThatConnection(t *testing.T) {
	detached, release := make(chan *Conn, 1), make(chan struct{})
	defer close(release)
	_, e := serveInside(t, Config{Dispatch: DispatchInline, Pollers: 1}, func(c *Conn) error {
		request, err := c.Reader().Next(1)
		if err != nil {
			return err
		}
		if request[0] == 'w' {
			c.Detach()
			detached <- c
			<-release
			return nil
		}
		_, err = c.WriteBuffers([][]byte{request})
		return err
	})
	client, err := net.Dial("tcp", e.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Write([]byte("we")); err != nil {
		t.Fatal(err)
	}
	c := <-detached
	l := e.pollers[0].leader.Load()
	if l.give(&Conn{}) || e.pollers[0].leader.Load() != l {
		t.Error("the role went away for another connection")
	}
	l.release(c)
	if e.pollers[0].leader.Load() == l {
		t.Error("the role did not go away")
	}
	if err := client.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(client, make([]byte, 1)); err != nil {
		t.Errorf("the request behind: %v", err)
	}
}
