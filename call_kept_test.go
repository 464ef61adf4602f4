package fulmar_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"weak"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/observe"
)

// TestCall_WhoKeepsItKeepsNoMessage: a handler may keep its context and an observer its
// call for as long as they like, whoever else looks at the call. Requests and replies are
// garbage when it has ended.
func TestCall_WhoKeepsItKeepsNoMessage(t *testing.T) {
	for _, intercepted := range []bool{false, true} {
		for _, observed := range []bool{false, true} {
			t.Run(fmt.Sprintf("intercepted %v, observed %v", intercepted, observed), func(t *testing.T) {
				var server fulmar.ServerConfig
				var client fulmar.ClientConfig
				var mu sync.Mutex
				var kept []any
				keep := func(value any) {
					mu.Lock()
					defer mu.Unlock()
					kept = append(kept, value)
				}
				if intercepted {
					server.Interceptors = []fulmar.UnaryInterceptor{func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
						return next(ctx, call)
					}}
				}
				if observed {
					server.Observers = []observe.Observer{{Event: func(call *observe.Call, _ any, _ observe.Event) { keep(call) }}}
					client.Observers = server.Observers
				}
				messages := make(chan weak.Pointer[testservice.Message], 4)
				client.Target = serve(t, server, &testservice.Stub{OnEcho: func(ctx context.Context, message *testservice.Message) (*testservice.Message, error) {
					keep(ctx)
					reply := &testservice.Message{Text: message.Text}
					messages <- weak.Make(message)
					messages <- weak.Make(reply)
					return reply, nil
				}}).address
				echoOnce(t, dial(t, client), messages)
				for i := range 4 {
					if !isGarbage(<-messages) {
						t.Errorf("message %d of 4 is there still: at the server request and reply, at the client those", i)
					}
				}
				runtime.KeepAlive(kept)
			})
		}
	}
}

// echoOnce makes one call, on whose stack its messages do not stay.
//
//go:noinline
func echoOnce(t *testing.T, api testservice.EchoClient, messages chan<- weak.Pointer[testservice.Message]) {
	request := &testservice.Message{Text: "kept by nobody"}
	reply, err := api.Echo(t.Context(), request)
	if err != nil || reply.Text != request.Text {
		t.Fatal(reply, err)
	}
	messages <- weak.Make(request)
	messages <- weak.Make(reply)
}

// isGarbage waits until nothing refers to a message any more. The server may be about to
// return from its handler.
func isGarbage(message weak.Pointer[testservice.Message]) bool {
	for range 100 {
		if message.Value() == nil {
			return true
		}
		runtime.GC()
	}
	return false
}

// TestCall_AClientsContextKeepsNoMessage: an interceptor of a client may keep the context,
// as a trace does that ends later, or a context that it has made of it.
func TestCall_AClientsContextKeepsNoMessage(t *testing.T) {
	for _, observed := range []bool{false, true} {
		t.Run(fmt.Sprintf("observed %v", observed), func(t *testing.T) {
			var kept []any
			config := fulmar.ClientConfig{Interceptors: []fulmar.UnaryInterceptor{func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
				derived, cancel := context.WithCancel(ctx)
				kept = append(kept, ctx, derived, cancel)
				return next(derived, call)
			}}}
			if observed {
				config.Observers = []observe.Observer{{Event: func(*observe.Call, any, observe.Event) {}}}
			}
			config.Target = serve(t, fulmar.ServerConfig{}, &testservice.Stub{OnEcho: func(_ context.Context, message *testservice.Message) (*testservice.Message, error) {
				return message, nil
			}}).address
			messages := make(chan weak.Pointer[testservice.Message], 2)
			echoOnce(t, dial(t, config), messages)
			for _, what := range []string{"request", "reply"} {
				if !isGarbage(<-messages) {
					t.Errorf("the %s is there still", what)
				}
			}
			runtime.KeepAlive(kept)
		})
	}
}

// TestCall_AnInterceptorMayKeepIt: what it says stays as it was.
func TestCall_AnInterceptorMayKeepIt(t *testing.T) {
	var kept fulmar.Unary
	config := fulmar.ClientConfig{Interceptors: []fulmar.UnaryInterceptor{func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
		kept = call
		return next(ctx, call)
	}}}
	config.Target = serve(t, fulmar.ServerConfig{}, adder()).address
	api := dial(t, config)
	fill(t, api, 1)
	first := kept
	fill(t, api, 1)
	request, err := first.Request()
	if err != nil || request == nil || first.Reply() == nil || first.Method() != "add" {
		t.Errorf("a call that has ended is %q with %v, %v (%v)", first.Method(), request, first.Reply(), err)
	}
}
