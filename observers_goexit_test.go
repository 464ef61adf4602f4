package fulmar_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/observe"
)

// goexitObservers returns observers each of which ends the goroutine in one place.
func goexitObservers() map[string]observe.Observer {
	in := func(phase observe.Phase) observe.Observer {
		return observe.Observer{Phases: observe.SetOf(phase), Event: func(*observe.Call, any, observe.Event) { runtime.Goexit() }}
	}
	return map[string]observe.Observer{
		"Begin":     {Begin: func(context.Context, *observe.Call) (context.Context, any) { runtime.Goexit(); return nil, nil }},
		"picked":    in(observe.PhasePicked),
		"connected": in(observe.PhaseConnected),
		"written":   in(observe.PhaseWritten),
		"first":     in(observe.PhaseFirstByte),
		"started":   in(observe.PhaseStarted),
		"received":  in(observe.PhaseReceived),
		"decoded":   in(observe.PhaseDecoded),
		"handled":   in(observe.PhaseHandled),
		"encoded":   in(observe.PhaseEncoded),
		"done":      in(observe.PhaseDone),
	}
}

// TestObservers_GoexitAtTheServer: a call whose goroutine an observer ends is answered,
// and the other observers, before and behind it, learn of its end. The call is one that
// is served, or refused.
func TestObservers_GoexitAtTheServer(t *testing.T) {
	missing, err := fulmar.RawMethod("Echo", "missing", false)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range goexitObservers() {
		t.Run(name, func(t *testing.T) {
			eachProtocol(t, func(t *testing.T, protocol fulmar.Protocol) {
				var before, behind recorder
				server := serve(t, fulmar.ServerConfig{Observers: []observe.Observer{before.observer(), bad, behind.observer()}}, adder())
				client := dialAny(t, fulmar.ClientConfig{Target: server.address, Protocol: protocol})
				sum, err := testservice.NewEchoClient(client).Add(t.Context(), 40, 2)
				if name == "done" && (sum != 42 || err != nil) || name != "done" && err != nil && fulmar.CodeOf(err) != fulmar.Internal {
					t.Errorf("Add = %d, %v", sum, err)
				}
				if err := client.Call(t.Context(), missing, &fulmar.Raw{0}, new(fulmar.Raw)); fulmar.CodeOf(err) != fulmar.Unimplemented {
					t.Errorf("an unknown method: %v", err)
				}
				// A server waits a second for what open connections may have sent.
				if err := errors.Join(client.Close(), server.stop()); err != nil {
					t.Fatal(err)
				}
				begun := 0
				for _, r := range []*recorder{&before, &behind} {
					for i := range r.calls {
						begun++
						if done := r.done(t, i); i == 1 && fulmar.Code(done.Code) != fulmar.Unimplemented && name != "Begin" {
							t.Errorf("the refused call ended in %+v", done)
						}
					}
				}
				if want := 4; name != "Begin" && begun != want || name == "Begin" && begun != want/2 {
					t.Errorf("the others saw %d calls in all (of %d)", begun, want)
				}
			})
		})
	}
}

// TestObservers_GoexitAtTheClient ends the goroutine of the caller, who asked for it. The
// client goes on, with the one connection that it may have, and no call gets what was
// another's. So do the other observers, and a local server, which stops.
func TestObservers_GoexitAtTheClient(t *testing.T) {
	for name, bad := range goexitObservers() {
		if name == "handled" {
			continue // there is none
		}
		t.Run(name, func(t *testing.T) {
			test := func(t *testing.T, config fulmar.ClientConfig) {
				var before, behind recorder
				event, begin, ends := bad.Event, bad.Begin, atomic.Bool{}
				bad := bad
				if event != nil {
					bad.Event = func(call *observe.Call, value any, e observe.Event) {
						if ends.Load() {
							event(call, value, e)
						}
					}
				} else {
					bad.Begin = func(ctx context.Context, call *observe.Call) (context.Context, any) {
						if ends.Load() {
							return begin(ctx, call)
						}
						return ctx, nil
					}
				}
				config.Logger, config.MaxConnections = slog.New(slog.DiscardHandler), 1
				config.Observers = []observe.Observer{before.observer(), bad, behind.observer()}
				api := dial(t, config)
				for i := range int32(8) {
					ends.Store(i%2 == 0)
					ended := make(chan error, 1)
					go func() {
						err := errors.New("the goroutine ended")
						defer func() { ended <- err }()
						var sum int32
						if sum, err = api.Add(t.Context(), 40, i); err == nil && sum != 40+i {
							err = fmt.Errorf("40 + %d = %d", i, sum)
						}
					}()
					if err := <-ended; (err == nil) != (i%2 == 1) {
						t.Errorf("call %d: %v", i, err)
					}
				}
				for i := range before.calls {
					before.done(t, i)
				}
				for i := range behind.calls {
					behind.done(t, i)
				}
				want := 8
				if name == "Begin" {
					want /= 2
				}
				if len(before.calls) != 8 || len(behind.calls) != want {
					t.Errorf("the others saw %d and %d calls", len(before.calls), len(behind.calls))
				}
			}
			server := serve(t, fulmar.ServerConfig{}, adder())
			eachProtocol(t, func(t *testing.T, protocol fulmar.Protocol) {
				test(t, fulmar.ClientConfig{Target: server.address, Protocol: protocol})
			})
			t.Run("multiplexed", func(t *testing.T) {
				test(t, fulmar.ClientConfig{Target: server.address, AssumeMultiplexed: true})
			})
			t.Run("local", func(t *testing.T) { test(t, fulmar.ClientConfig{Local: server.server}) })
		})
	}
}

// TestObservers_GoexitWhereAConnectionEnds loses neither the connection's place nor the
// client: with one connection for one call each, the next call gets another.
func TestObservers_GoexitWhereAConnectionEnds(t *testing.T) {
	server := serve(t, fulmar.ServerConfig{}, adder())
	bad := observe.Observer{Connection: func(c observe.Connection) {
		if c.Kind == observe.ConnectionClosed {
			runtime.Goexit()
		}
	}}
	client, err := fulmar.NewClient(fulmar.ClientConfig{
		Target: server.address, Protocol: fulmar.Framed, ShortConnections: true, MaxConnections: 1, Timeout: time.Minute,
		Logger: slog.New(slog.DiscardHandler), Observers: []observe.Observer{bad},
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		ended := make(chan bool)
		go func() {
			answered := false
			defer func() { ended <- answered }()
			_, err := testservice.NewEchoClient(client).Add(t.Context(), 40, 2)
			answered = err != nil // a failure, and no end of the goroutine
		}()
		if <-ended {
			t.Error("a call failed")
		}
	}
	closed := make(chan error, 1)
	go func() {
		defer close(closed)
		closed <- client.Close()
	}()
	<-closed
	if open := client.Stats().Connections; open != 0 {
		t.Errorf("%d connections are open", open)
	}
}

// TestObservers_GoexitOfConnections: an observer of connections that ends the goroutine
// keeps nothing from the others.
func TestObservers_GoexitOfConnections(t *testing.T) {
	bad := observe.Observer{Connection: func(observe.Connection) { runtime.Goexit() }}
	var atServer, atClient recorder
	server := serve(t, fulmar.ServerConfig{Observers: []observe.Observer{bad, atServer.observer()}}, adder())
	client := dialAny(t, fulmar.ClientConfig{Target: server.address, Logger: slog.New(slog.DiscardHandler), Observers: []observe.Observer{bad, atClient.observer()}})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = testservice.NewEchoClient(client).Add(t.Context(), 40, 2) // may end the goroutine
	}()
	<-ended
	if err := server.stop(); err != nil {
		t.Fatal(err)
	}
	for side, seen := range map[string]*recorder{"client": &atClient, "server": &atServer} {
		seen.mu.Lock()
		if len(seen.connections) == 0 {
			t.Errorf("%s: the observer behind was told of no connection", side)
		}
		seen.mu.Unlock()
	}
}
