package fulmar_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// fading is a peer that shares a connection, answers its first calls, and is
// played by then afterwards; on later connections it answers all.
type fading struct {
	t      *testing.T
	then   func(conn net.Conn, call headedMessage)
	opened atomic.Int64
}

func (p *fading) serve(conn net.Conn) {
	first := p.opened.Add(1) == 1
	for i := 0; ; i++ {
		call, err := nextHeaded(conn)
		switch {
		case err != nil:
			return
		case first && i > 0:
			p.then(conn, call)
		default:
			answerAdd(p.t, conn, call)
		}
	}
}

// mute answers nothing, misaddress calls that there are none of.
func (p *fading) mute(net.Conn, headedMessage) {}

func (p *fading) misaddress(conn net.Conn, call headedMessage) {
	call.HeaderSequence += 1000
	answerAdd(p.t, conn, call)
}

// answerEven answers calls of add with an even sum only.
func (p *fading) answerEven(conn net.Conn, call headedMessage) {
	if addition(call)%2 == 0 {
		answerAdd(p.t, conn, call)
	}
}

// TestMultiplex_LeavesPeersThatAnswerNothing: after so many calls that timed out
// in a row, or one in a long silence. Until then calls go on using the
// connection, which a slow method must not cost.
func TestMultiplex_LeavesPeersThatAnswerNothing(t *testing.T) {
	cases := map[string]struct {
		then    func(*fading) func(net.Conn, headedMessage)
		timeout time.Duration
		// calls is how many of them time out before the connection is left.
		calls int
	}{
		"short calls, silence":          {func(p *fading) func(net.Conn, headedMessage) { return p.mute }, limits.SilenceTimeout / 10, limits.SilentCalls},
		"nearly long calls, silence":    {func(p *fading) func(net.Conn, headedMessage) { return p.mute }, limits.SilenceTimeout - 1, limits.SilentCalls},
		"long calls, silence":           {func(p *fading) func(net.Conn, headedMessage) { return p.mute }, limits.SilenceTimeout, 1},
		"short calls, foreign answers":  {func(p *fading) func(net.Conn, headedMessage) { return p.misaddress }, limits.SilenceTimeout / 10, limits.SilentCalls},
		"longer calls, foreign answers": {func(p *fading) func(net.Conn, headedMessage) { return p.misaddress }, 2 * limits.SilenceTimeout, limits.SilentCalls},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			peer := &fading{t: t}
			peer.then = test.then(peer)
			withFake(t, simnet.Config{}, fulmar.ClientConfig{Timeout: test.timeout}, peer.serve, func(client *fulmar.Client) {
				api := testservice.NewEchoClient(client)
				add := func() error { time.Sleep(time.Nanosecond); _, err := api.Add(context.Background(), 1, 2); return err }
				if err := add(); err != nil {
					t.Fatal(err)
				}
				for i := range test.calls {
					if stats := client.Stats(); stats.Multiplexed != 1 || peer.opened.Load() != 1 {
						t.Errorf("after %d calls that timed out: %+v, %d connections were opened", i, stats, peer.opened.Load())
					}
					if e := asError(t, add()); e.Code() != fulmar.DeadlineExceeded || e.Executed() != fulmar.ExecutedMaybe {
						t.Errorf("call %d: %v", i, e)
					}
				}
				for range 3 {
					if err := add(); err != nil {
						t.Errorf("a later call: %v", err)
					}
				}
				if stats := client.Stats(); stats.Connections != 1 || stats.Multiplexed != 1 || peer.opened.Load() != 2 {
					t.Errorf("after all: %+v, %d connections were opened", stats, peer.opened.Load())
				}
			})
		})
	}
}

// TestMultiplex_SlowCallsKeepTheirConnection: calls that time out, however many
// there are, while others are answered, beside them or in between.
func TestMultiplex_SlowCallsKeepTheirConnection(t *testing.T) {
	const rounds, timeout = 4 * limits.SilentCalls, limits.SilenceTimeout / 10
	for _, beside := range []bool{true, false} {
		peer := &fading{t: t}
		peer.then = peer.answerEven
		withFake(t, simnet.Config{}, fulmar.ClientConfig{Timeout: timeout}, peer.serve, func(client *fulmar.Client) {
			api := testservice.NewEchoClient(client)
			add := func(right int32) error {
				time.Sleep(time.Nanosecond)
				_, err := api.Add(context.Background(), 0, right)
				return err
			}
			slow := func(int) {
				if err := add(1); fulmar.CodeOf(err) != fulmar.DeadlineExceeded {
					t.Errorf("a slow call: %v", err)
				}
			}
			quick := func() {
				if err := add(2); err != nil {
					t.Errorf("a quick call: %v", err)
				}
			}
			quick()
			for range rounds {
				if beside {
					calls := call(2*limits.SilentCalls, slow)
					time.Sleep(timeout / 2)
					quick()
					calls.Wait()
					continue
				}
				for range limits.SilentCalls - 1 {
					slow(0)
				}
				quick()
			}
			if stats := client.Stats(); stats.Connections != 1 || stats.Multiplexed != 1 || peer.opened.Load() != 1 {
				t.Errorf("beside %v: %+v, %d connections were opened", beside, stats, peer.opened.Load())
			}
		})
	}
}
