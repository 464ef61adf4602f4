package eventloop_test

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/fulmar-rpc/fulmar/eventloop"
)

// serveResumed serves connections that are not read before the function says so.
func serveResumed(t *testing.T) (s *server, resume func()) {
	opened := make(chan *eventloop.Conn, 1)
	s = serve(t, eventloop.Config{OnOpen: func(conn *eventloop.Conn) {
		conn.PauseReading()
		opened <- conn
	}}, echoLines)
	return s, func() { receive(t, opened, "OnOpen").ResumeReading() }
}

// TestEdges_BytesAndTheEndAreReportedTogether: a read that gets less than there is room for has
// not got the end, which is not reported a second time.
func TestEdges_BytesAndTheEndAreReportedTogether(t *testing.T) {
	s, resume := serveResumed(t)
	client := s.connect()
	send(t, client, "whole\nhal")
	closeWrite(t, client)
	resume()
	expectEnd(t, client, "whole\n")
	if err := receive(t, s.closed, "OnClose"); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("OnClose got %v", err)
	}
}

// TestEdges_ReadsStopAtUrgentData: what is behind it has been reported, too.
func TestEdges_ReadsStopAtUrgentData(t *testing.T) {
	s, resume := serveResumed(t)
	client := s.connect()
	send(t, client, "be")
	sendUrgent(t, client)
	send(t, client, "hind\n")
	resume()
	expect(t, client, "behind\n")
}

func sendUrgent(t *testing.T, client net.Conn) {
	t.Helper()
	raw, err := client.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var sent error
	if err := raw.Control(func(fd uintptr) { sent = syscall.Sendto(int(fd), []byte("!"), syscall.MSG_OOB, nil) }); err != nil || sent != nil {
		t.Fatal(err, sent)
	}
}
