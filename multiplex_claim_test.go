package fulmar_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// paused is a context whose Deadline waits for resume once the client shares a
// connection: that is between a call's getting its sequence id and its being
// written.
type paused struct {
	context.Context
	shares func() bool
	resume chan struct{}
}

func (p *paused) Deadline() (time.Time, bool) {
	if p.shares() {
		<-p.resume
	}
	return p.Context.Deadline()
}

// verdicts are the calls of failing, by what they ask for, and what a client
// makes of them. Most codes are such that Thrift has no type for.
func verdicts() map[string]struct {
	code     fulmar.Code
	executed fulmar.Executed
} {
	return map[string]struct {
		code     fulmar.Code
		executed fulmar.Executed
	}{
		"code":         {fulmar.NotFound, fulmar.ExecutedYes},
		"not executed": {fulmar.Unavailable, fulmar.ExecutedYes},
		"error":        {fulmar.Unknown, fulmar.ExecutedYes},
		"intercepted":  {fulmar.PermissionDenied, fulmar.ExecutedNo},
		"panic":        {fulmar.Internal, fulmar.ExecutedYes},
		"nil":          {fulmar.Internal, fulmar.ExecutedYes},
	}
}

// TestMultiplex_AssumedServersSayWhatTheyKnow: a client that takes it for granted
// that a server can share connections tells it what it can do itself, so that it
// learns code and Executed of every failure: on the first call, on later ones,
// and when all come at once.
func TestMultiplex_AssumedServersSayWhatTheyKnow(t *testing.T) {
	intercept := func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
		if request, err := call.Request(); err == nil && request.(*testservice.EchoEchoArgs).Message.Text == "intercepted" {
			return fulmar.NewError(fulmar.PermissionDenied, "no")
		}
		return next(ctx, call)
	}
	config := fulmar.ServerConfig{Interceptors: []fulmar.UnaryInterceptor{intercept}}
	eachHeaded(t, func(t *testing.T, protocol fulmar.Protocol) {
		for _, atOnce := range []int{1, 50} {
			for name, want := range verdicts() {
				client := fulmar.ClientConfig{Protocol: protocol, AssumeMultiplexed: true}
				simulate(t, simnet.Config{}, config, client, failing(), func(s *simulation) {
					for range 3 {
						call(atOnce, func(int) {
							_, err := s.api.Echo(context.Background(), &testservice.Message{Text: name})
							if e := asError(t, err); e.Code() != want.code || e.Executed() != want.executed || e.Origin() != fulmar.OriginRemote {
								t.Errorf("%s, %d at once: %v: code %v, %v; want %v, %v", name, atOnce, e, e.Code(), e.Executed(), want.code, want.executed)
							}
						}).Wait()
					}
					synctest.Wait() // connections that nobody needs any more may still be closing
					if stats := s.client.Stats(); stats.Connections != 1 || stats.Multiplexed != 1 {
						t.Errorf("%s: %+v", name, stats)
					}
				})
			}
		}
	})
}

// TestMultiplex_NoCallOvertakesTheOneThatClaims: the call that tells the server
// what the client can do is the first on the connection, also if others are
// ready before it.
func TestMultiplex_NoCallOvertakesTheOneThatClaims(t *testing.T) {
	const others = 10
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{AssumeMultiplexed: true}, failing(), func(s *simulation) {
		ctx := &paused{Context: context.Background(), resume: make(chan struct{}), shares: func() bool { return s.client.Stats().Multiplexed > 0 }}
		ask := func(ctx context.Context) {
			_, err := s.api.Echo(ctx, &testservice.Message{Text: "code"}, fulmar.Timeout(-1))
			if e := asError(t, err); e.Code() != fulmar.NotFound || e.Executed() != fulmar.ExecutedYes {
				t.Errorf("%v: code %v, %v", e, e.Code(), e.Executed())
			}
		}
		first := call(1, func(int) { ask(ctx) })
		synctest.Wait()
		behind := call(others, func(int) { ask(context.Background()) })
		synctest.Wait()
		close(ctx.resume)
		first.Wait()
		behind.Wait()
		synctest.Wait()
		if stats := s.client.Stats(); stats.Connections != 1 {
			t.Errorf("%+v", stats)
		}
	})
}

// TestMultiplex_ClaimsOnceAndFirst on every connection, however many calls begin
// at once, one way or not, and again on the connection that follows.
func TestMultiplex_ClaimsOnceAndFirst(t *testing.T) {
	const calls = 60 // fewer than make the client open another
	var mu sync.Mutex
	var seen []string // for each connection, a letter for each of its calls
	serve := func(conn net.Conn) {
		mu.Lock()
		number := len(seen)
		seen = append(seen, "")
		mu.Unlock()
		for {
			call, err := nextHeaded(conn)
			if err != nil {
				return
			}
			letter := "-"
			if caps, claimed := call.strings["fulmar-caps"]; claimed && caps == "mux" {
				letter = "C"
			}
			mu.Lock()
			seen[number] += letter
			last := len(seen[number]) == calls
			mu.Unlock()
			if string(call.Name) == "add" {
				answerAdd(t, conn, call)
			}
			if last {
				// Not before the client knows that it has sent the last one.
				time.Sleep(time.Second)
				return
			}
		}
	}
	withFake(t, simnet.Config{}, fulmar.ClientConfig{AssumeMultiplexed: true}, serve, func(client *fulmar.Client) {
		api := testservice.NewEchoClient(client)
		for range 3 {
			call(calls, func(i int) {
				if i%2 == 0 {
					if err := api.Notify(context.Background(), "x"); err != nil {
						t.Errorf("Notify: %v", err)
					}
				} else if sum, err := api.Add(context.Background(), 1, 2); sum != 3 || err != nil {
					t.Errorf("Add = %d, %v", sum, err)
				}
			}).Wait()
			time.Sleep(2 * time.Second) // The peer closes the connection.
		}
	})
	want := "C" + strings.Repeat("-", calls-1)
	if len(seen) != 3 {
		t.Errorf("%d connections were opened", len(seen))
	}
	for i, got := range seen {
		if got != want {
			t.Errorf("connection %d: %s, want %s", i, got, want)
		}
	}
}
