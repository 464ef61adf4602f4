package roundtrip_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/viewmethods/golden/viewmethods"
)

// TestViewMethods_LentStaysUntilTheHandlerReturns has many handlers read all of views that
// are lent, hand them to another server and answer with them, while other calls come over
// the same connections. Builds with checks overwrite what was given back.
func TestViewMethods_LentStaysUntilTheHandlerReturns(t *testing.T) {
	g := &gate{}
	clients := gateClients(t, g)
	onward := gateClients(t, &gate{})["TTHeader"]
	g.lend = func(ctx context.Context, order viewmethods.OrderView, key string) (viewmethods.OrderView, error) {
		runtime.Gosched()
		s, err := order.Struct()
		if err != nil || !s.Equal(numbered(order.ID())) || key != fmt.Sprint(order.ID()) {
			return order, fmt.Errorf("the handler of %d sees %v with %s, %w", order.ID(), &order, key, err)
		}
		if order.ID()%2 == 0 {
			return order, nil
		}
		order.SetRegion("lent " + order.Region())
		passed, err := onward.Lend(ctx, order, key)
		if err != nil || passed.Region() != order.Region() {
			return order, fmt.Errorf("onward: %v, %w", passed.Region(), err)
		}
		return order, nil
	}
	for name, api := range clients {
		t.Run(name, func(t *testing.T) {
			var group sync.WaitGroup
			for caller := range int64(8) {
				group.Go(func() {
					for i := range int64(12) {
						id := caller*100 + i
						want := numbered(id)
						order, err := viewmethods.NewOrderView(want)
						if err != nil {
							t.Error(err)
							return
						}
						got, err := api.Lend(t.Context(), order, fmt.Sprint(id))
						if id%2 == 1 {
							want.Region = "lent " + want.Region
						}
						if s, decodeErr := got.Struct(); err != nil || decodeErr != nil || !s.Equal(want) {
							t.Errorf("call %d: %v, %v: another order came back", id, err, decodeErr)
						}
					}
				})
			}
			group.Wait()
		})
	}
}

// TestViewMethods_LentEndsWithTheCall keeps views that are lent, of handlers that end in
// every way in which they can.
func TestViewMethods_LentEndsWithTheCall(t *testing.T) {
	ends := map[string]func() error{
		"returns":             func() error { return nil },
		"fails":               func() error { return errors.New("no") },
		"declared":            func() error { return &viewmethods.Closed{Until: "noon"} },
		"panics":              func() error { panic("no") },
		"ends the goroutine":  func() error { runtime.Goexit(); return nil },
		"panics with a value": func() error { panic(errors.New("no")) },
	}
	type call struct {
		name          string
		want          *viewmethods.Order
		kept, changed viewmethods.OrderView
		region        string
		image         []byte
		breaksOff     bool // then its lease ends before the client gets an answer
	}
	var calls []*call
	t.Run("calls", func(t *testing.T) { // at the end of which the server stops
		g := &gate{}
		for name, api := range gateClients(t, g) {
			for how, end := range ends {
				for _, parcels := range []int{1, 100, 3000} {
					c := &call{name: fmt.Sprintf("%s, %s, %d parcels", name, how, parcels), want: orderOf("north", parcels),
						breaksOff: strings.HasPrefix(how, "panics") || how == "ends the goroutine"}
					g.lend = func(_ context.Context, order viewmethods.OrderView, _ string) (viewmethods.OrderView, error) {
						if last := len(calls) - 1; last >= 0 {
							expectEnded(t, calls[last].name, calls[last].breaksOff, func() { calls[last].kept.ID() })
						}
						c.kept, c.changed, c.region, c.image = order, order, order.Region(), order.Image()
						c.changed.SetID(1)
						return order, end()
					}
					if _, err := api.Lend(t.Context(), viewOf(t, c.want), ""); (err == nil) != (how == "returns") {
						t.Errorf("%s: %v", c.name, err)
					}
					calls = append(calls, c)
				}
			}
		}
	})
	for _, c := range calls {
		for what, use := range map[string]func(){"read": func() { c.kept.ID() }, "written": func() { c.changed.AppendTo(nil) }} {
			if text := panicOf(use); !strings.Contains(text, "request of Gate.lend") {
				t.Errorf("%s: %s too late it panics with %q", c.name, what, text)
			}
		}
		if c.region != c.want.Region || string(c.image) != string(c.want.Image) {
			t.Errorf("%s: what the view returned is %q and %q now", c.name, c.region, c.image)
		}
	}
}

// expectEnded waits until use panics because of the end of the call before, if that was not to
// be there at once: the server sends the reply first, and so the next call may come before it.
func expectEnded(t *testing.T, name string, atOnce bool, use func()) {
	t.Helper()
	for began := time.Now(); ; runtime.Gosched() {
		text := panicOf(use)
		if strings.Contains(text, "request of Gate.lend") {
			return
		}
		if atOnce || text != "" || time.Since(began) > 2*time.Second {
			t.Errorf("%s: used by the next call it panics with %q", name, text)
			return
		}
	}
}

// TestViewMethods_LentAfterAnInterceptor has it used by whoever keeps the arguments.
func TestViewMethods_LentAfterAnInterceptor(t *testing.T) {
	var kept *viewmethods.GateLendArgs
	t.Run("call", func(t *testing.T) {
		_, address := serveGate(t, &gate{}, fulmar.ServerConfig{Logger: slog.New(slog.DiscardHandler), Interceptors: []fulmar.UnaryInterceptor{
			func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
				request, err := call.Request()
				if err != nil {
					return err
				}
				kept = request.(*viewmethods.GateLendArgs)
				kept.Order.SetRegion("changed")
				return next(ctx, call)
			}}})
		client, err := fulmar.NewClient(fulmar.ClientConfig{Target: address})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		order, err := viewmethods.NewGateClient(client).Lend(t.Context(), viewOf(t, orderOf("north", 1)), "")
		if err != nil || order.Region() != "changed" {
			t.Fatalf("%v, %v", err, &order)
		}
	})
	if text := panicOf(func() { kept.Order.ID() }); !strings.Contains(text, "Gate.lend") {
		t.Errorf("used too late it panics with %q", text)
	}
}

// reusing registers the methods of a service whose arguments are to be used again.
type reusing struct{ fulmar.Registrar }

func (r reusing) RegisterService(desc *fulmar.ServiceDesc, implementation any) {
	again := &fulmar.ServiceDesc{Name: desc.Name}
	for _, method := range desc.Methods {
		again.Methods = append(again.Methods, &fulmar.MethodDesc{
			Service: method.Service, Name: method.Name, Codec: method.Codec, NewRequest: method.NewRequest,
			InvokeInto: func(context.Context, any, any, any) error { return nil },
		})
	}
	r.Registrar.RegisterService(again, implementation)
}

// TestViewMethods_WhatIsLentIsNotUsedAgain: arguments that are lent are not those of another
// call, for which their lease would begin anew.
func TestViewMethods_WhatIsLentIsNotUsedAgain(t *testing.T) {
	server, err := fulmar.NewServer(fulmar.ServerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if text := panicOf(func() { viewmethods.RegisterGateServer(reusing{server}, &gate{}) }); !strings.Contains(text, "method lend of service Gate lends its arguments") {
		t.Errorf("registering it: %q", text)
	}
}
