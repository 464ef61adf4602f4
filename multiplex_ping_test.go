package fulmar_test

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
)

// TestPing_EndsCallsOfAServerThatIsStopped: its connection is there, so nothing but
// the missing answer tells.
func TestPing_EndsCallsOfAServerThatIsStopped(t *testing.T) {
	for name, test := range map[string]struct {
		after, want time.Duration
	}{
		"default": {0, 2 * limits.PingAfter},
		"set":     {time.Second, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{PingAfter: test.after}, adder(), func(s *simulation) {
				fill(t, s.api, 1)
				s.network.Stall(simAddress, true)
				time.Sleep(time.Nanosecond) // what is sent at the same moment gets through
				start := time.Now()
				_, failed := s.api.Add(context.Background(), 1, 2, fulmar.Timeout(-1))
				err := asError(t, failed)
				if took := time.Since(start); took != test.want || err.Code() != fulmar.Unavailable || err.Executed() != fulmar.ExecutedMaybe || !strings.Contains(err.Error(), "ping") {
					t.Errorf("%v after %v, want it unavailable after %v", err, took, test.want)
				}
				s.network.Stall(simAddress, false)
				fill(t, s.api, 1)
			})
		})
	}
}

// TestPing_LeavesSlowCallsAlone: a server that answers pings may take its time, and a
// connection that is leaving is asked as well.
func TestPing_LeavesSlowCallsAlone(t *testing.T) {
	stub := adder()
	stub.OnNothing = func(context.Context) error { time.Sleep(time.Hour); return nil }
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{MaxConnectionAge: time.Minute}, stub, func(s *simulation) {
		fill(t, s.api, 1)
		before := s.server.Stats().Network.BytesRead
		if err := s.api.Nothing(context.Background(), fulmar.Timeout(-1)); err != nil {
			t.Error(err)
		}
		const pings = time.Hour / limits.PingAfter
		if got := s.server.Stats().Network.BytesRead - before; got < 50*uint64(pings) {
			t.Errorf("%d bytes arrived in an hour, want about %d pings", got, pings)
		}
		if stats := s.server.Stats(); stats.Network.Accepted != 1 {
			t.Errorf("%d connections, want one", stats.Network.Accepted)
		}
		synctest.Wait()
		if stats := s.client.Stats(); stats.Connections != 0 {
			t.Errorf("%+v after the last call of an old connection, want it closed", stats)
		}
	})
}

// TestPing_IsForServersOfOurs: others would take it for a call. pingless counts the
// messages that are no pings.
func TestPing_IsForServersOfOurs(t *testing.T) {
	for name, test := range map[string]struct {
		client fulmar.ClientConfig
		pings  bool
	}{
		"a server of ours":  {fulmar.ClientConfig{}, true},
		"off":               {fulmar.ClientConfig{PingAfter: -1}, false},
		"assumed, as Kitex": {fulmar.ClientConfig{AssumeMultiplexed: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var pings atomic.Int64
			peer := func(conn net.Conn) {
				for calls := 0; ; {
					call, err := nextHeaded(conn)
					if err != nil {
						return
					}
					if string(call.Name) == wire.PingMethod {
						pings.Add(1)
						// The client may have closed its connection meanwhile.
						_, _ = conn.Write(reply(t, call, []byte{0}))
						continue
					}
					if calls++; calls > 1 {
						time.Sleep(time.Millisecond)
						continue // the second call is never answered
					}
					if test.client.AssumeMultiplexed {
						// Without a word about what it can do.
						head := ttheader.Head{Sequence: call.HeaderSequence}
						write(t, conn, headed(t, head, message(thriftwire.Reply, "add", call.Sequence, sumBody(t, addition(call)))))
						continue
					}
					answerAdd(t, conn, call)
				}
			}
			withFake(t, simnet.Config{}, test.client, peer, func(client *fulmar.Client) {
				fill(t, testservice.NewEchoClient(client), 1)
				_, err := testservice.NewEchoClient(client).Add(context.Background(), 1, 2, fulmar.Timeout(time.Minute))
				if fulmar.CodeOf(err) != fulmar.DeadlineExceeded {
					t.Errorf("a call that is not answered: %v", err)
				}
			})
			if got := pings.Load() > 0; got != test.pings {
				t.Errorf("%d pings, want some: %v", pings.Load(), test.pings)
			}
		})
	}
}

// TestPing_IsAnsweredByTheTransport: not by a handler for unknown methods, which
// would send it on.
func TestPing_IsAnsweredByTheTransport(t *testing.T) {
	stub := adder()
	stub.OnNothing = func(context.Context) error { time.Sleep(time.Minute); return nil }
	var unknown atomic.Int64
	config := fulmar.ServerConfig{UnknownHandler: func(context.Context, fulmar.Raw) (reply fulmar.Raw, err error) {
		unknown.Add(1)
		return reply, nil
	}}
	simulate(t, simnet.Config{}, config, fulmar.ClientConfig{}, stub, func(s *simulation) {
		fill(t, s.api, 1)
		if err := s.api.Nothing(context.Background(), fulmar.Timeout(-1)); err != nil {
			t.Error(err)
		}
	})
	if n := unknown.Load(); n > 0 {
		t.Errorf("the handler for unknown methods got %d pings", n)
	}
}
