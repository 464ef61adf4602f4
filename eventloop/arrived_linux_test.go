package eventloop_test

import (
	"net"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
)

// TestReader_ArrivedIsNotBeforeTheBytes: while the poller is busy with one of many
// connections that it knows to be readable, more bytes come on the others. Those that it
// gets to later must not seem to be as old as its look at all of them: calls with a
// short deadline would be refused that have not expired.
func TestReader_ArrivedIsNotBeforeTheBytes(t *testing.T) {
	const others, stale = 40, 8 // so many handlers may be told the same time
	entered, release := make(chan struct{}), make(chan struct{})
	seen := make(chan time.Time, others)
	s := serve(t, onePoller(eventloop.DispatchInline), func(conn *eventloop.Conn) error {
		reader := conn.Reader()
		if reader.Buffered()[0] == 'w' {
			entered <- struct{}{}
			<-release
		} else {
			seen <- reader.Arrived()
		}
		return reader.Skip(reader.Len())
	})
	first, second := s.connect(), s.connect()
	var rest []net.Conn
	for range others {
		rest = append(rest, s.connect())
		send(t, rest[len(rest)-1], "a")
		receive(t, seen, "a connection that is served")
	}
	send(t, first, "w")
	receive(t, entered, "the first handler")
	// All of these are readable when the poller looks again, this one before the others.
	send(t, second, "w")
	for _, conn := range rest {
		send(t, conn, "b")
	}
	release <- struct{}{}
	receive(t, entered, "the second handler")
	wrote := time.Now()
	for _, conn := range rest {
		send(t, conn, "c")
	}
	release <- struct{}{}
	early := 0
	for range rest {
		if receive(t, seen, "the others").Before(wrote) {
			early++
		}
	}
	if early > stale {
		t.Errorf("%d of %d connections have bytes that seem to have come before they were sent, want %d at most", early, others, stale)
	}
}
