package eventloop

import (
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// TestDetach_RepliesBeforeItLeaveWhoeverGoesOn: the poller takes the connection
// before the call that lets go has looked whether it must go on, and the bytes that
// its event is about have been read. A white-box test, because nothing else can make
// it come at that moment.
func TestDetach_RepliesBeforeItLeaveWhoeverGoesOn(t *testing.T) {
	release := make(chan struct{})
	l, _ := serveInside(t, Config{Dispatch: DispatchSpawn, Pollers: 1}, func(c *Conn) error {
		request, err := c.Reader().Next(1)
		if err != nil {
			return err
		}
		if request[0] == 'a' {
			c.Writer().AppendString("a")
			return nil
		}
		// What Detach does.
		engine, turn := c.listener.engine.(*epollEngine), c.served.turn.Load()
		c.reader.Commit()
		replies := c.writer.Len() > 0
		c.served.turn.Store(turn | 1)
		seized := make(chan struct{})
		go func() {
			defer close(seized)
			l := engine.pollers[0].newLeader()
			engine.readable(c, l)
			l.retire()
		}()
		<-seized
		if engine.mustGoOn(c, replies) {
			c.goOn()
		}
		<-release
		return nil
	})
	defer close(release)
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Write([]byte("ab")); err != nil {
		t.Fatal(err)
	}
	client.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.ReadFull(client, make([]byte, 1)); err != nil {
		t.Errorf("the reply of the call before: %v", err)
	}
}

// TestDetached_AnswersEndsTheMeasuredTime of the handlers that are measured, one of eight.
func TestDetached_AnswersEndsTheMeasuredTime(t *testing.T) {
	var measured, told atomic.Int32
	l, _ := serveInside(t, Config{Dispatch: DispatchSpawn}, func(c *Conn) error {
		if _, err := c.Reader().Next(1); err != nil {
			return err
		}
		call := c.Detach()
		timed := c.listener.engine.(*epollEngine).choice.timing(call.turn)
		before := timed.answered.Load()
		call.Answers()
		if call.Answers(); timed.conn.Load() == c {
			measured.Add(1)
			if before == 0 && timed.answered.Load() > 0 {
				told.Add(1)
			}
		}
		if !call.Attach() {
			t.Error("others have the connection")
			return io.EOF
		}
		c.Writer().AppendString("a")
		return nil
	})
	Detached{}.Answers() // of a connection that nobody serves
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	client.SetDeadline(time.Now().Add(10 * time.Second))
	for range 4 * sampled {
		if _, err := client.Write([]byte("a")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(client, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if measured.Load() != 4 || told.Load() != 4 {
		t.Errorf("%d handlers of %d were measured, and %d of them until their answers, want 4", measured.Load(), 4*sampled, told.Load())
	}
}
