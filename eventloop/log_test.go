package eventloop_test

import (
	"context"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
)

// everySecondFails is a listener whose every second accept fails, so that the
// pause between two never grows.
type everySecondFails struct {
	net.Listener
	accepts int
}

func (l *everySecondFails) Accept() (net.Conn, error) {
	if l.accepts++; l.accepts%2 == 1 {
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return l.Listener.Accept()
}

// TestLog_FailedAcceptsAreBounded: 50 accepts fail within 250 ms.
func TestLog_FailedAcceptsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := simnet.New(simnet.Config{})
		socket, err := network.Listen("server")
		if err != nil {
			t.Fatal(err)
		}
		logged := new(recorder)
		s := serveSocket(t, &everySecondFails{Listener: socket}, eventloop.Config{Logger: logged.logger()}, echoLines)
		for range 50 {
			client, err := network.Dial(context.Background(), "tcp", "server")
			if err != nil {
				t.Fatal(err)
			}
			send(t, client, "x\n")
			expect(t, client, "x\n")
			client.Close()
		}
		if got := s.Stats().AcceptErrors; got < 50 {
			t.Errorf("%d accepts failed, want 50", got)
		}
		if got := strings.Count(logged.String(), "accept failed"); got != limits.PeerLogsPerSecond {
			t.Errorf("%d lines, want %d", got, limits.PeerLogsPerSecond)
		}
	})
}
