package calls_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/interop/peer"
)

// What a header changes between Fulmar and Kitex beside the calls themselves.

// eachHeader runs a test for every transport with a header.
func eachHeader(t *testing.T, names []string, test func(t *testing.T, name string, transport transport)) {
	eachPeer(t, names, func(t *testing.T, name string, transport transport) {
		if transport.hasHeader() {
			test(t, name, transport)
		}
	})
}

func TestInbound_KitexSaysHowLongACallMayTake(t *testing.T) {
	// So long that what a busy machine takes for the way makes no difference.
	for _, timeout := range []time.Duration{0, time.Minute} {
		eachHeader(t, []string{peer.Kitex}, func(t *testing.T, name string, transport transport) {
			server := serve(t, func(call fulmar.Call) {
				deadline, told := call.Deadline()
				if left := time.Until(deadline); told != (timeout > 0) || left > timeout || told && left < timeout/2 {
					t.Errorf("the deadline is in %v (there is one: %v), want %v", left, told, timeout)
				}
			})
			outcomes := peer.Call(t, name, transport.name, server.address, "courier.json", "-case", "caller", "-timeout", timeout.String())
			expectOutcomes(t, []string{"caller"}, outcomes)
		})
	}
}

func TestOutbound_KitexIsToldHowLongACallMayTake(t *testing.T) {
	eachHeader(t, []string{peer.Kitex}, func(t *testing.T, name string, transport transport) {
		api := connect(t, peer.Serve(t, name, transport.name), transport)
		left, err := api.Remaining(t.Context(), fulmar.Timeout(time.Minute))
		if err != nil || left > 60_000 || left < 30_000 {
			t.Errorf("Kitex knows of %d ms, %v; want 60000 or a little less", left, err)
		}
	})
}

// Persistent metadata goes on with every call, transient metadata does not,
// whoever stands in the middle.
func TestOutbound_MetadataGoesOnThroughBoth(t *testing.T) {
	everyHop, oneHop := map[string]string{"tenant": "blue", "Trace-Id": "a1"}, map[string]string{"hop": "one"}
	eachHeader(t, []string{peer.Kitex, peer.KitexPlain}, func(t *testing.T, name string, transport transport) {
		library := &library{}
		ctx := library.Call(everyHop, oneHop).Context
		kitex := peer.Serve(t, name, transport.name)
		fulmar := serve(t, expectProtocol(t, transport)).address
		for _, way := range []struct{ through, to string }{{kitex, fulmar}, {fulmar, kitex}, {fulmar, fulmar}} {
			got, err := connect(t, way.through, transport).Relay(ctx, way.to)
			if err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(got.EveryHop, everyHop) || len(got.OneHop) != 0 {
				t.Errorf("through %s to %s (Kitex is %s): %v arrived for every hop and %v for one", way.through, way.to, kitex, got.EveryHop, got.OneHop)
			}
		}
	})
}

// A Kitex server that stops says so, with crrst in replies and with a control
// packet where it multiplexes; what runs is answered all the same.
func TestOutbound_CallsEndWellWhenKitexStops(t *testing.T) {
	eachHeader(t, []string{peer.Kitex, peer.KitexPlain}, func(t *testing.T, name string, transport transport) {
		server := peer.Start(t, name, transport.name)
		api := connect(t, server.Address, transport)
		outcome := make(chan error, 1)
		go func() {
			held, err := api.Hold(context.Background(), t.Name(), 300)
			if err == nil && !held {
				err = errors.New("it was not held")
			}
			outcome <- err
		}()
		if held, err := api.Held(t.Context(), t.Name()); err != nil || !held {
			t.Fatalf("%v, %v", held, err)
		}
		if err := api.Release(t.Context(), t.Name()); err != nil {
			t.Fatal(err)
		}
		server.Stop()
		if err := <-outcome; err != nil {
			t.Errorf("the call that was running: %v", err)
		}
	})
}

// A Fulmar server that stops answers what runs, and Kitex's clients take it.
func TestInbound_CallsEndWellWhenFulmarStops(t *testing.T) {
	eachHeader(t, []string{peer.Kitex, peer.KitexPlain}, func(t *testing.T, name string, transport transport) {
		started := make(chan struct{})
		server := serve(t, func(fulmar.Call) { close(started) })
		stopped := make(chan error, 1)
		go func() {
			<-started
			stopped <- server.Shutdown(context.Background())
		}()
		expectOutcomes(t, []string{"slow"}, peer.Call(t, name, transport.name, server.address, "courier.json", "-case", "slow"))
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
}
