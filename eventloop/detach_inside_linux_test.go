package eventloop

import (
	"io"
	"net"
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
