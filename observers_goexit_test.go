package fulmar_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"testing"

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
		"Begin":    {Begin: func(context.Context, *observe.Call) (context.Context, any) { runtime.Goexit(); return nil, nil }},
		"started":  in(observe.PhaseStarted),
		"received": in(observe.PhaseReceived),
		"decoded":  in(observe.PhaseDecoded),
		"handled":  in(observe.PhaseHandled),
		"encoded":  in(observe.PhaseEncoded),
		"done":     in(observe.PhaseDone),
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
				if err := server.stop(); err != nil {
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

// TestObservers_GoexitAtTheClient ends the goroutine of the caller, who asked for it.
func TestObservers_GoexitAtTheClient(t *testing.T) {
	server := serve(t, fulmar.ServerConfig{}, adder())
	log := slog.New(slog.DiscardHandler)
	for name, bad := range goexitObservers() {
		if name == "received" || name == "handled" {
			continue
		}
		var before, behind recorder
		client := dialAny(t, fulmar.ClientConfig{Target: server.address, Logger: log, Observers: []observe.Observer{before.observer(), bad, behind.observer()}})
		ended := make(chan error, 1)
		go func() {
			err := errors.New("the goroutine ended")
			defer func() { ended <- err }()
			_, err = testservice.NewEchoClient(client).Add(t.Context(), 40, 2)
		}()
		if err := <-ended; err == nil {
			t.Errorf("%s: the goroutine went on", name)
		}
		if before.done(t, 0); name != "Begin" {
			behind.done(t, 0)
		} else if len(behind.calls) != 0 {
			t.Errorf("%s: the observer behind was told of %d calls", name, len(behind.calls))
		}
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
