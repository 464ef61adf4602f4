package fulmar_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/observe"
)

// TestClient_CloseTellsHandlers: those of calls in progress learn that nobody waits,
// however the call has its connection.
func TestClient_CloseTellsHandlers(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol fulmar.Protocol) {
		for _, calls := range []int{1, 4} {
			var hang atomic.Bool
			started := make(chan struct{}, calls)
			server := serve(t, fulmar.ServerConfig{DrainTimeout: 5 * time.Second}, &testservice.Stub{OnNothing: func(ctx context.Context) error {
				if !hang.Load() {
					return nil
				}
				started <- struct{}{}
				<-ctx.Done()
				return nil
			}})
			client, err := fulmar.NewClient(fulmar.ClientConfig{Target: server.address, Protocol: protocol, Timeout: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			api := testservice.NewEchoClient(client)
			if err := api.Nothing(t.Context()); err != nil {
				t.Fatal(err)
			}
			hang.Store(true)
			failed := make(chan error, calls)
			for range calls {
				go func() { failed <- api.Nothing(t.Context()) }()
			}
			for range calls {
				<-started
			}
			if err := client.Close(); err != nil {
				t.Error(err)
			}
			for range calls {
				if err := <-failed; fulmar.CodeOf(err) != fulmar.Canceled {
					t.Errorf("the call ended in %v", err)
				}
			}
			// Handlers that were not told run until the time to stop is over.
			if err := server.stop(); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestClient_CloseLosesNoOnewayCall that was handed over before, although another call on
// its connection waits; and what is idle ends in good order.
func TestClient_CloseLosesNoOnewayCall(t *testing.T) {
	const oneways = 100
	var notified atomic.Int64
	done := make(chan struct{})
	started, finish := make(chan struct{}), make(chan struct{})
	var seen recorder
	server := serve(t, fulmar.ServerConfig{Observers: []observe.Observer{seen.observer()}}, &testservice.Stub{
		OnNothing: func(ctx context.Context) error { close(started); <-finish; return nil },
		OnVersion: func(context.Context) (string, error) { return "1", nil },
		OnNotify: func(context.Context, string) error {
			if notified.Add(1) == oneways {
				close(done)
			}
			return nil
		},
	})
	client, err := fulmar.NewClient(fulmar.ClientConfig{Target: server.address, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	api := testservice.NewEchoClient(client)
	if _, err := api.Version(t.Context()); err != nil { // from now on calls share the connection
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() { failed <- api.Nothing(t.Context()) }()
	<-started
	for range oneways {
		if err := api.Notify(t.Context(), "lost?"); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	<-done
	close(finish)
	if err := <-failed; err == nil {
		t.Error("the call that waited succeeded")
	}
	if err := server.stop(); err != nil {
		t.Error(err)
	}
	for _, c := range seen.connections {
		if c.Kind == observe.ConnectionClosed && c.Err != nil {
			t.Errorf("a connection ended in %v", c.Err)
		}
	}
}
