package eventloop_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

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

func TestLog_RefusedConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logged := new(recorder)
		s := serveSim(t, simnet.New(simnet.Config{}), eventloop.Config{MaxConnections: 1, Logger: logged.logger()}, echoLines)
		client := s.connect()
		send(t, client, "x\n")
		expect(t, client, "x\n")
		if got := logged.String(); got != "" {
			t.Errorf("logged before the limit was reached: %s", got)
		}
		for range 3 * limits.PeerLogsPerSecond {
			expectEnd(t, s.connect(), "")
		}
		if got := s.Stats(); got.Refused != 3*limits.PeerLogsPerSecond || got.Accepted != 1 || got.Open != 1 {
			t.Errorf("Stats() = %+v", got)
		}
		lines := logged.String()
		if got := strings.Count(lines, "connection refused: too many are open"); got != limits.PeerLogsPerSecond {
			t.Errorf("%d lines, want %d", got, limits.PeerLogsPerSecond)
		}
		first := "peer=client-1." + s.Addr().String() + " limit=1"
		if !strings.Contains(lines, first) {
			t.Errorf("no %q in\n%s", first, lines)
		}
	})
}

// TestLog_WriteStalls: several writers wait for one peer that takes nothing.
func TestLog_WriteStalls(t *testing.T) {
	for name, write := range map[string]func(*eventloop.Conn, []byte) error{
		"Write": func(conn *eventloop.Conn, p []byte) error { _, err := conn.Write(p); return err },
		"WriteBuffers": func(conn *eventloop.Conn, p []byte) error {
			_, err := conn.WriteBuffers([][]byte{p})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const writers = 3
				failed := make(chan error, writers)
				logged := new(recorder)
				s := serveSim(t, simnet.New(simnet.Config{}), eventloop.Config{WriteStallTimeout: time.Second, Logger: logged.logger()},
					func(conn *eventloop.Conn) error {
						for range writers {
							go func() { failed <- write(conn, make([]byte, 1<<20)) }()
						}
						return conn.Reader().Skip(conn.Reader().Len())
					})
				client := s.connect()
				send(t, client, "x")
				if err := receive(t, s.closed, "OnClose"); !errors.Is(err, eventloop.ErrWriteStalled) {
					t.Errorf("OnClose got %v", err)
				}
				for range writers {
					if receive(t, failed, "a writer") == nil {
						t.Error("a write to a peer that takes nothing succeeded")
					}
				}
				if got := s.Stats().WriteStalls; got != 1 {
					t.Errorf("WriteStalls = %d, want 1", got)
				}
				lines := logged.String()
				for _, part := range []string{"the peer takes no bytes", "peer=" + client.LocalAddr().String(), "limit 1s", "bytes written"} {
					if !strings.Contains(lines, part) {
						t.Errorf("no %q in\n%s", part, lines)
					}
				}
				if got := strings.Count(lines, "\n"); got != 1 {
					t.Errorf("%d lines, want 1", got)
				}
			})
		})
	}
}

func TestStats_CountsPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveSim(t, simnet.New(simnet.Config{}), eventloop.Config{
			Logger: silence(), OnClose: func(*eventloop.Conn, error) { panic("on purpose") },
		}, func(*eventloop.Conn) error { panic("on purpose") })
		client := s.connect()
		send(t, client, "x")
		expectEnd(t, client, "")
		client.Close()
		synctest.Wait()
		if got := s.Stats(); got.Panics != 2 || got.Accepted != 1 || got.Open != 0 {
			t.Errorf("Stats() = %+v", got)
		}
	})
}

// TestStats_StayAfterTheEnd: whoever collects them may come late.
func TestStats_StayAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveSim(t, simnet.New(simnet.Config{}), eventloop.Config{}, echoLines)
		client := s.connect()
		send(t, client, "x\n")
		expect(t, client, "x\n")
		s.stop()
		if got, want := s.Stats(), (eventloop.Stats{Accepted: 1, BytesRead: 2, BytesWritten: 2}); got != want {
			t.Errorf("Stats() = %+v, want %+v", got, want)
		}
	})
}
