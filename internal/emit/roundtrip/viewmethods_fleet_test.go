package roundtrip_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/viewmethods/golden/viewmethods"
)

// TestViewMethods_AreTriedAtAnotherInstance sends the same view a second time: to one of
// two servers after the other has refused the call, or was not there.
func TestViewMethods_AreTriedAtAnotherInstance(t *testing.T) {
	var refusals atomic.Int64
	refuse := func(context.Context, fulmar.Unary, fulmar.UnaryNext) error {
		refusals.Add(1)
		return fulmar.Errorf(fulmar.Unavailable, "not me")
	}
	g := &gate{}
	_, good := serveGate(t, g, fulmar.ServerConfig{})
	_, refusing := serveGate(t, &gate{}, fulmar.ServerConfig{Interceptors: []fulmar.UnaryInterceptor{refuse}, Logger: slog.New(slog.DiscardHandler)})
	// Nobody listens there any more.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := listener.Addr().String()
	listener.Close()
	for name, other := range map[string]string{"refusing": refusing, "gone": gone} {
		for _, protocol := range []fulmar.Protocol{fulmar.TTHeader, fulmar.Framed} {
			t.Run(fmt.Sprint(name, " ", protocol), func(t *testing.T) {
				if name == "refusing" && protocol == fulmar.Framed {
					t.Skip("framed Thrift cannot say that a call was not executed")
				}
				client, err := fulmar.NewClient(fulmar.ClientConfig{Target: "static:///" + other + "," + good, Protocol: protocol})
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close()
				api := viewmethods.NewGateClient(client)
				before := refusals.Load()
				for round := range 20 {
					order := orderOf(fmt.Sprint(round), []int{0, 100, 3000}[round%3])
					v := viewOf(t, order)
					v.SetID(int64(round)) // so that it is put together each time
					answer, err := api.Pass(t.Context(), v)
					if err != nil {
						t.Fatalf("round %d: %v", round, err)
					}
					order.ID = int64(round)
					wantOrder(t, g.orders[len(g.orders)-1], order)
					order.Region = "passed " + order.Region
					wantOrder(t, answer, order)
				}
				if name == "refusing" && refusals.Load() == before {
					t.Error("no call was refused")
				}
				if ejected := client.Stats().Ejected; name == "gone" && ejected != 1 {
					t.Errorf("%d instances are left alone, want the one that is gone", ejected)
				}
			})
		}
	}
}

// TestViewMethods_LongRequestsAreBounded keeps views of more than a server may hold: of
// calls that have ended nothing is counted any more, of those that run everything is, and
// what is too much is refused.
func TestViewMethods_LongRequestsAreBounded(t *testing.T) {
	const calls, room = 8, 1 << 20
	held := &holding{entered: make(chan struct{}, calls), release: make(chan struct{})}
	server, address := serveGate(t, &held.gate, fulmar.ServerConfig{MaxBufferedBytes: room, Logger: slog.New(slog.DiscardHandler),
		DecodedInterceptors: []fulmar.UnaryInterceptor{held.intercept}})
	order := orderOf("long", 0)
	order.Image = []byte(strings.Repeat("x", room/5))
	for name, config := range map[string]fulmar.ClientConfig{
		"TTHeader": {Target: address}, "framed": {Target: address, Protocol: fulmar.Framed}, "local": {Local: server},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := fulmar.NewClient(config)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			api, v := viewmethods.NewGateClient(client), viewOf(t, order)
			held.holds.Store(false)
			for round := range 3 * calls {
				_, err := api.Take(t.Context(), v)
				// Calls count until they have ended, which is after their replies have left.
				for began := time.Now(); isOverloaded(err) && time.Since(began) < 2*time.Second; runtime.Gosched() {
					_, err = api.Take(t.Context(), v)
				}
				if err != nil {
					t.Fatalf("call %d: %v", round, err)
				}
			}
			held.holds.Store(true)
			ended := make(chan error, calls)
			for range calls {
				go func() {
					_, err := api.Take(t.Context(), v)
					ended <- err
				}()
			}
			refused := 0
			for range calls {
				select {
				case <-held.entered:
				case err := <-ended:
					if !isOverloaded(err) {
						t.Errorf("a call too many: %v", err)
					}
					refused++
				}
			}
			// A fifth each, and something for heads: four fit, or fewer where several arrive.
			if refused < calls-4 || refused == calls {
				t.Errorf("%d calls of %d were refused, want %d", refused, calls, calls-4)
			}
			for range calls - refused {
				held.release <- struct{}{}
			}
			for range calls - refused {
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func isOverloaded(err error) bool {
	e, ok := errors.AsType[*fulmar.Error](err)
	return ok && strings.Contains(e.Error(), "overloaded")
}

// holding is a gate of which calls wait once their views are read.
type holding struct {
	gate
	holds            atomic.Bool
	entered, release chan struct{}
}

func (h *holding) intercept(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
	if h.holds.Load() {
		h.entered <- struct{}{}
		<-h.release
	}
	return next(ctx, call)
}
