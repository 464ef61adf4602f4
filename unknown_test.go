package fulmar_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// proxy serves no service but forwards every call, to a server for stub.
func proxy(t *testing.T, protocol fulmar.Protocol, config fulmar.ServerConfig, stub *testservice.Stub) (front, back *running) {
	t.Helper()
	back = serve(t, fulmar.ServerConfig{}, stub)
	config.UnknownHandler = fulmar.Forward(dialAny(t, fulmar.ClientConfig{Target: back.address, Protocol: protocol, Caller: "proxy"}))
	return serveAny(t, config, func(fulmar.Registrar) {}), back
}

// unknown is a server with nothing but handler.
func unknown(t *testing.T, handler fulmar.UnknownHandler) *running {
	t.Helper()
	return serveAny(t, fulmar.ServerConfig{UnknownHandler: handler}, func(fulmar.Registrar) {})
}

// TestForward_EveryProtocol sends calls of all kinds over each protocol into a proxy
// and over each out of it.
func TestForward_EveryProtocol(t *testing.T) {
	for _, out := range allProtocols {
		t.Run("to "+out.String(), func(t *testing.T) {
			told := make(chan string, 1)
			front, _ := proxy(t, out, fulmar.ServerConfig{}, &testservice.Stub{
				OnEcho: func(_ context.Context, message *testservice.Message) (*testservice.Message, error) {
					if message.Text == "refused" {
						return nil, &testservice.Refused{Reason: "full", Limit: 7}
					}
					return message, nil
				},
				OnVersion: func(context.Context) (string, error) {
					return "", fulmar.NewBusinessError(1001, "not today", map[string]string{"left": "3"})
				},
				OnAdd: func(context.Context, int32, int32) (int32, error) {
					return 0, fulmar.NewError(fulmar.NotFound, "no such sum")
				},
				OnNothing: func(context.Context) error { return nil },
				OnNotify:  func(_ context.Context, text string) error { told <- text; return nil },
			})
			eachProtocol(t, func(t *testing.T, in fulmar.Protocol) {
				api := dial(t, fulmar.ClientConfig{Target: front.address, Protocol: in})
				ctx := t.Context()
				for _, length := range []int{0, 1_000, 20_000, limits.LinkedStringBytes - 60, limits.LinkedStringBytes, 1 << 20} {
					sent := &testservice.Message{Text: strings.Repeat("x", length)}
					if got, err := api.Echo(ctx, sent); err != nil || got.Text != sent.Text {
						t.Errorf("%d bytes: another message came back, %v", length, err)
					}
				}
				var refused *testservice.Refused
				if _, err := api.Echo(ctx, &testservice.Message{Text: "refused"}); !errors.As(err, &refused) || refused.Limit != 7 {
					t.Errorf("a declared exception arrives as %v", err)
				}
				if err := api.Nothing(ctx); err != nil {
					t.Error(err)
				}
				checkForwardedErrors(t, api, carriesHead(in), carriesHead(out))
				if err := api.Notify(ctx, in.String()); err != nil {
					t.Error(err)
				} else if text := <-told; text != in.String() {
					t.Errorf("the oneway call arrives with %q", text)
				}
			})
		})
	}
}

func carriesHead(p fulmar.Protocol) bool { return p == fulmar.TTHeader || p == fulmar.TTHeaderFramed }

// checkForwardedErrors calls methods that fail, as far as the protocols on both sides
// of the proxy carry why.
func checkForwardedErrors(t *testing.T, api testservice.EchoClient, in, out bool) {
	t.Helper()
	_, err := api.Version(t.Context())
	var business *fulmar.BusinessError
	if got := errors.As(err, &business); got != (in && out) {
		t.Errorf("the business error arrives as %v", err)
	} else if got && (business.Status() != 1001 || business.Message() != "not today" || business.Extra()["left"] != "3") {
		t.Errorf("the business error arrives as %d, %q, %v", business.Status(), business.Message(), business.Extra())
	}
	if err == nil || !strings.Contains(err.Error(), "not today") {
		t.Errorf("the business error arrives as %v", err)
	}
	_, err = api.Add(t.Context(), 1, 2)
	e := asError(t, err)
	if !strings.Contains(e.Error(), "no such sum") || e.Origin() != fulmar.OriginRemote {
		t.Errorf("the handler's error arrives as %v", err)
	}
	switch {
	case in && out && (e.Code() != fulmar.NotFound || e.Executed() != fulmar.ExecutedYes):
		t.Errorf("the handler's error arrives as %v, want not found, executed", err)
	case in && !out && e.Executed() != fulmar.ExecutedMaybe:
		t.Errorf("who cannot know whether the handler ran says %v", e.Executed())
	}
}

// TestForward_SaysWhetherTheCallWasExecuted: the proxy's handler ran in every case.
func TestForward_SaysWhetherTheCallWasExecuted(t *testing.T) {
	front, back := proxy(t, fulmar.TTHeader, fulmar.ServerConfig{}, &testservice.Stub{
		OnNothing: func(context.Context) error { panic("a secret") },
	})
	client := dialAny(t, fulmar.ClientConfig{Target: front.address})
	call := func(method string) *fulmar.Error {
		t.Helper()
		request, reply := fulmar.Raw{0}, fulmar.Raw(nil)
		return asError(t, client.Call(t.Context(), rawMethod(t, "Echo", method), &request, &reply))
	}
	if e := call("nothing"); e.Code() != fulmar.Internal || e.Executed() != fulmar.ExecutedYes || strings.Contains(e.Error(), "secret") {
		t.Errorf("a handler that panics: %v", e)
	}
	if e := call("missing"); e.Code() != fulmar.Unimplemented || e.Executed() != fulmar.ExecutedNo {
		t.Errorf("a method that the called server does not know: %v", e)
	}
	if err := back.stop(); err != nil {
		t.Fatal(err)
	}
	e := call("nothing")
	if e.Code() != fulmar.Unavailable || e.Executed() != fulmar.ExecutedNo {
		t.Errorf("a called server that is gone: %v", e)
	}
	if strings.Contains(e.Error(), back.address) {
		t.Errorf("%v tells the address of a server behind", e)
	}
}

// TestUnknown_OwnErrorsAreExecuted: only Forward speaks for another handler.
func TestUnknown_OwnErrorsAreExecuted(t *testing.T) {
	gone := dialAny(t, fulmar.ClientConfig{Target: "127.0.0.1:1"})
	front := unknown(t, func(ctx context.Context, request fulmar.Raw) (fulmar.Raw, error) {
		var reply fulmar.Raw
		return reply, gone.Call(ctx, rawMethod(t, "", "other"), &request, &reply)
	})
	_, err := dial(t, fulmar.ClientConfig{Target: front.address}).Version(t.Context())
	if e := asError(t, err); e.Code() != fulmar.Unavailable || e.Executed() != fulmar.ExecutedYes {
		t.Errorf("got %v, want unavailable, executed", err)
	}
}

// TestForward_KeepsMetadata: as any handler that calls on, and back.
func TestForward_KeepsMetadata(t *testing.T) {
	eachHeaded(t, func(t *testing.T, protocol fulmar.Protocol) {
		var at string
		var from fulmar.Call
		front, _ := proxy(t, protocol, fulmar.ServerConfig{}, &testservice.Stub{OnVersion: func(ctx context.Context) (string, error) {
			at = seen(ctx)
			from, _ = fulmar.CallFrom(ctx)
			return "1", errors.Join(fulmar.SetReplyMetadata(ctx, "COST", "3"))
		}})
		api := dial(t, fulmar.ClientConfig{Target: front.address, Protocol: protocol, Caller: "front"})
		for range 2 { // on a connection of its own, and on a shared one
			ctx := fulmar.WithTransient(fulmar.WithPersistent(t.Context(), "TRACE", "1"), "HOP", "first")
			var back map[string]string
			if _, err := api.Version(ctx, fulmar.ReceiveMetadata(&back)); err != nil {
				t.Fatal(err)
			}
			if want := "persistent TRACE=1"; at != want {
				t.Errorf("behind the proxy a handler sees %q, want %q", at, want)
			}
			if from.Service() != "Echo" || from.CallerService() != "proxy" || from.CallerMethod() != "version" {
				t.Errorf("behind the proxy the call is for %s, from %s.%s", from.Service(), from.CallerService(), from.CallerMethod())
			}
			if len(back) != 1 || back["COST"] != "3" {
				t.Errorf("the caller gets back %v", back)
			}
		}
	})
}

// TestForward_AddsReplyMetadata to what the handler around it sets before and after.
func TestForward_AddsReplyMetadata(t *testing.T) {
	back := unknown(t, func(ctx context.Context, request fulmar.Raw) (fulmar.Raw, error) {
		for key, value := range map[string]string{"COST": "3", "BACK": "yes", "LATER": "1"} {
			if err := fulmar.SetReplyMetadata(ctx, key, value); err != nil {
				return nil, err
			}
		}
		return request, nil
	})
	forward := fulmar.Forward(dialAny(t, fulmar.ClientConfig{Target: back.address}))
	front := unknown(t, func(ctx context.Context, request fulmar.Raw) (fulmar.Raw, error) {
		before := errors.Join(fulmar.SetReplyMetadata(ctx, "COST", "1"), fulmar.SetReplyMetadata(ctx, "OWN", "x"))
		reply, err := forward(ctx, request)
		return reply, errors.Join(before, err, fulmar.SetReplyMetadata(ctx, "LATER", "2"))
	})
	client := dialAny(t, fulmar.ClientConfig{Target: front.address})
	var got map[string]string
	request, reply := fulmar.Raw{0}, fulmar.Raw(nil)
	if err := client.Call(t.Context(), rawMethod(t, "S", "m"), &request, &reply, fulmar.ReceiveMetadata(&got)); err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"COST": "3", "BACK": "yes", "OWN": "x", "LATER": "2"}; !maps.Equal(got, want) {
		t.Errorf("the caller gets back %v, want %v", got, want)
	}
}

// TestForward_ShortensDeadlines: each hop has what the one before has left.
func TestForward_ShortensDeadlines(t *testing.T) {
	const between, long = 10 * time.Minute, 30 * time.Second // the timeout of a client in between, and less than all have
	eachHeaded(t, func(t *testing.T, protocol fulmar.Protocol) {
		var last time.Time
		second, _ := proxy(t, protocol, fulmar.ServerConfig{}, &testservice.Stub{OnNothing: func(ctx context.Context) error {
			call, _ := fulmar.CallFrom(ctx)
			last, _ = call.Deadline()
			return nil
		}})
		var first time.Time
		forward := fulmar.Forward(dialAny(t, fulmar.ClientConfig{Target: second.address, Protocol: protocol, Timeout: between}))
		middle := unknown(t, func(ctx context.Context, request fulmar.Raw) (fulmar.Raw, error) {
			call, _ := fulmar.CallFrom(ctx)
			first, _ = call.Deadline()
			return forward(ctx, request)
		})
		api := dial(t, fulmar.ClientConfig{Target: middle.address, Protocol: protocol, Timeout: -1})
		if err := api.Nothing(t.Context(), fulmar.Timeout(long)); err != nil {
			t.Fatal(err)
		}
		// What is told is how long, so the way adds to the time; but no hop begins anew with
		// the timeout of its client.
		if first.IsZero() || last.IsZero() || last.After(time.Now().Add(long)) {
			t.Errorf("deadlines %v and then %v", first, last)
		}
		err := api.Nothing(t.Context(), fulmar.Timeout(-1))
		if left := time.Until(last); err != nil || left > between {
			t.Errorf("without a deadline of the caller the last handler has %v, want the timeout of the client in between; %v", left, err)
		}
	})
}

// TestForward_RefusesWhatTheClientMayNotSend: the limit is that of the way on.
func TestForward_RefusesWhatTheClientMayNotSend(t *testing.T) {
	called := false
	back := unknown(t, func(context.Context, fulmar.Raw) (fulmar.Raw, error) {
		called = true
		return fulmar.Raw{0}, nil
	})
	forward := fulmar.Forward(dialAny(t, fulmar.ClientConfig{Target: back.address, MaxMessageBytes: 1 << 10}))
	front := unknown(t, forward)
	_, err := dial(t, fulmar.ClientConfig{Target: front.address}).Echo(t.Context(), &testservice.Message{Text: strings.Repeat("x", 2<<10)})
	e := asError(t, err)
	if e.Code() != fulmar.ResourceExhausted || e.Executed() != fulmar.ExecutedNo || !strings.Contains(e.Error(), "limit 1024") {
		t.Errorf("got %v, want resource exhausted with the limit, not executed", err)
	}
	if called {
		t.Error("the call went on")
	}
	if _, err := forward(t.Context(), fulmar.Raw{0}); err == nil || !strings.Contains(err.Error(), "not in a handler") {
		t.Errorf("Forward outside of a call: %v", err)
	}
}

// TestUnknown_LimitsApply: what bounds calls of services bounds these.
func TestUnknown_LimitsApply(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol fulmar.Protocol) {
		front := serveAny(t, fulmar.ServerConfig{
			MaxMessageBytes: 1 << 10,
			UnknownHandler: func(_ context.Context, request fulmar.Raw) (fulmar.Raw, error) {
				return slices.Concat(request, make([]byte, 1<<10)), nil
			},
		}, func(fulmar.Registrar) {})
		client := dialAny(t, fulmar.ClientConfig{Target: front.address, Protocol: protocol})
		call := func(length int) error {
			request, reply := textStruct(length), fulmar.Raw(nil)
			return client.Call(t.Context(), rawMethod(t, "S", "m"), &request, &reply)
		}
		err := call(2 << 10)
		if !strings.Contains(fmt.Sprint(err), "limit 1024") || carriesHead(protocol) && fulmar.CodeOf(err) != fulmar.ResourceExhausted {
			t.Errorf("a request above the limit: %v", err)
		}
		if err := call(100); err == nil || !strings.Contains(err.Error(), "cannot be encoded") {
			t.Errorf("a reply above the limit: %v", err)
		}
	})
}

// textStruct is a struct with a string of some length.
func textStruct(length int) fulmar.Raw {
	head := []byte{byte(thriftwire.String), 0, 1, byte(length >> 24), byte(length >> 16), byte(length >> 8), byte(length)}
	return slices.Concat(head, bytes.Repeat([]byte{'x'}, length), []byte{0})
}

// TestUnknown_Handlers: what a handler knows, and what becomes of what it does.
func TestUnknown_Handlers(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol fulmar.Protocol) {
		var method string
		var oneway bool
		notified := make(chan struct{}, 1)
		front := unknown(t, func(ctx context.Context, request fulmar.Raw) (fulmar.Raw, error) {
			call, _ := fulmar.CallFrom(ctx)
			method, oneway = call.Service()+"/"+call.Method(), call.Oneway()
			switch call.Method() {
			case "panics":
				panic("in a handler")
			case "silent":
				return nil, nil
			case "oneway":
				notified <- struct{}{}
				return nil, errors.New("nobody hears this")
			}
			return request, nil
		})
		client := dialAny(t, fulmar.ClientConfig{Target: front.address, Protocol: protocol})
		request, reply := textStruct(5), fulmar.Raw(nil)
		for _, test := range []struct{ method, fails string }{
			{"panics", "panic in the handler"}, {"silent", "neither a result nor an error"}, {"echo", ""},
		} {
			err := client.Call(t.Context(), rawMethod(t, "Shop", test.method), &request, &reply)
			if (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Errorf("%s: %v, want %q", test.method, err, test.fails)
			}
		}
		if !bytes.Equal(reply, request) {
			t.Errorf("echo returned % x", reply)
		}
		service := ""
		if carriesHead(protocol) {
			service = "Shop"
		}
		if want := service + "/echo"; method != want || oneway {
			t.Errorf("the handler served %q, oneway %v; want %q", method, oneway, want)
		}
		notify, err := fulmar.RawMethod("Shop", "oneway", true)
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Call(t.Context(), notify, &request, nil); err != nil {
			t.Error(err)
		}
		<-notified
		if !oneway {
			t.Error("the handler takes a oneway call for another one")
		}
		// The connection has nothing in it that nobody asked for.
		if err := client.Call(t.Context(), rawMethod(t, "Shop", "echo"), &request, &reply); err != nil {
			t.Error(err)
		}
	})
}

// TestUnknown_HostileResults: bytes that are no struct, or more than one, are refused
// by whoever decodes them. A protocol that would take the rest for the next message
// does not get them.
func TestUnknown_HostileResults(t *testing.T) {
	forged := message(thriftwire.Reply, "version", 2, []byte{byte(thriftwire.String), 0, 0, 0, 0, 0, 1, 'x', 0})
	eachProtocol(t, func(t *testing.T, protocol fulmar.Protocol) {
		for name, body := range map[string]fulmar.Raw{
			"no struct":      {0xff, 1, 2, 3},
			"cut off":        textStruct(100)[:50],
			"more behind it": slices.Concat(fulmar.Raw{0}, forged),
			"deep":           slices.Concat(bytes.Repeat([]byte{byte(thriftwire.Struct), 0, 1}, 1000), make([]byte, 1001)),
		} {
			front := unknown(t, func(ctx context.Context, _ fulmar.Raw) (fulmar.Raw, error) {
				if call, _ := fulmar.CallFrom(ctx); call.Method() == "nothing" {
					return fulmar.Raw{0}, nil
				}
				return body, nil
			})
			api := dial(t, fulmar.ClientConfig{Target: front.address, Protocol: protocol})
			if version, err := api.Version(t.Context()); fulmar.CodeOf(err) != fulmar.Internal && fulmar.CodeOf(err) != fulmar.ResourceExhausted {
				t.Errorf("%s: the caller gets %q, %v", name, version, err)
			} else if protocol == fulmar.Bare && !strings.Contains(err.Error(), "the reply cannot be encoded") {
				t.Errorf("%s: %v, want it refused before it is sent", name, err)
			}
			if err := api.Nothing(t.Context()); err != nil {
				t.Errorf("%s: the next call: %v", name, err)
			}
		}
	})
}

// TestUnknown_InterceptorsRunAround: in the order of the configuration, with the bytes
// as request, and able to answer.
func TestUnknown_InterceptorsRunAround(t *testing.T) {
	var order []string
	note := func(name string) fulmar.UnaryInterceptor {
		return func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
			order = append(order, name+" before "+call.Service()+"."+call.Method())
			err := next(ctx, call)
			order = append(order, fmt.Sprintf("%s after %d bytes", name, len(*call.Reply().(*fulmar.Raw))))
			return err
		}
	}
	answer := fulmar.OnlyFor(func(_ context.Context, call fulmar.Unary, _ fulmar.UnaryNext) error {
		request, err := call.Request()
		return errors.Join(err, call.SetReply(request.(*fulmar.Raw)))
	}, "Shop.answered")
	front := serveAny(t, fulmar.ServerConfig{
		Interceptors: []fulmar.UnaryInterceptor{note("a"), note("b"), answer},
		UnknownHandler: func(context.Context, fulmar.Raw) (fulmar.Raw, error) {
			order = append(order, "handler")
			return fulmar.Raw{0}, nil
		},
	}, func(fulmar.Registrar) {})
	client := dialAny(t, fulmar.ClientConfig{Target: front.address})
	for _, method := range []string{"served", "answered"} {
		order = nil
		request, reply := textStruct(2), fulmar.Raw(nil)
		if err := client.Call(t.Context(), rawMethod(t, "Shop", method), &request, &reply); err != nil {
			t.Fatal(err)
		}
		want := "a before Shop.M, b before Shop.M, handler, b after 1 bytes, a after 1 bytes"
		if method == "answered" {
			want = "a before Shop.M, b before Shop.M, b after 10 bytes, a after 10 bytes"
		}
		if got := strings.Join(order, ", "); got != strings.ReplaceAll(want, "M", method) {
			t.Errorf("%s: %s\nwant %s", method, got, want)
		}
	}
}

// TestUnknown_BesideServices: what is registered is served here, and nothing that is
// meant for another service.
func TestUnknown_BesideServices(t *testing.T) {
	var passed []string
	handler := func(ctx context.Context, _ fulmar.Raw) (fulmar.Raw, error) {
		call, _ := fulmar.CallFrom(ctx)
		passed = append(passed, call.Service()+"/"+call.Method())
		return fulmar.Raw{0}, nil
	}
	stub := &testservice.Stub{OnNothing: func(context.Context) error { return nil },
		OnAdd: func(_ context.Context, left, right int32) (int32, error) { return left + right, nil }}
	front := serveAny(t, fulmar.ServerConfig{UnknownHandler: handler}, func(registrar fulmar.Registrar) {
		testservice.RegisterEchoServer(registrar, stub)
		testservice.RegisterCalculatorServer(registrar, stub)
	})
	call := func(protocol fulmar.Protocol, qualified bool, service, method string) error {
		client := dialAny(t, fulmar.ClientConfig{Target: front.address, Protocol: protocol, QualifiedNames: qualified})
		request, reply := fulmar.Raw{0}, fulmar.Raw(nil)
		return client.Call(t.Context(), rawMethod(t, service, method), &request, &reply)
	}
	for _, test := range []struct {
		protocol        fulmar.Protocol
		qualified       bool
		service, method string
		passed          string
	}{
		{fulmar.TTHeader, false, "Echo", "nothing", ""},
		{fulmar.TTHeader, false, "", "nothing", ""},
		{fulmar.TTHeader, false, "Shop", "nothing", "Shop/nothing"},
		{fulmar.TTHeader, false, "Shop", "add", "Shop/add"},
		{fulmar.TTHeader, false, "Echo", "other", "Echo/other"},
		{fulmar.TTHeader, true, "Echo", "nothing", ""},
		{fulmar.TTHeader, true, "Shop", "nothing", "Shop/nothing"},
		{fulmar.Framed, false, "Shop", "nothing", ""}, // does not name its service
		{fulmar.Framed, false, "Shop", "buy", "/buy"},
		{fulmar.Framed, true, "Shop", "nothing", "Shop/nothing"},
		{fulmar.Framed, true, "", "buy", "/buy"},
	} {
		passed = nil
		err := call(test.protocol, test.qualified, test.service, test.method)
		if got := strings.Join(passed, " "); err != nil || got != test.passed {
			t.Errorf("%v %s.%s, qualified %v: the handler got %q, want %q; %v", test.protocol, test.service, test.method, test.qualified, got, test.passed, err)
		}
	}
	passed = nil
	if err := call(fulmar.Framed, false, "", "add"); fulmar.CodeOf(err) != fulmar.Unimplemented || len(passed) > 0 {
		t.Errorf("a method of two services: %v, the handler got %v", err, passed)
	}
	conn := connect(t, front.address)
	for i, name := range []string{":add", "Shop:", "Shop:a:b"} {
		if _, err := conn.Write(frame(message(thriftwire.Call, name, int32(i), []byte{0}))); err != nil {
			t.Fatal(err)
		}
		if header, _ := readFrame(t, conn); header.Type != thriftwire.Exception || len(passed) > 0 {
			t.Errorf("%q: answered with a %v, the handler got %v", name, header.Type, passed)
		}
	}
}

// TestUnknown_BytesStayUntilTheirTime has many calls look into what they were given
// while others come and go. Builds with checks overwrite what is given back.
func TestUnknown_BytesStayUntilTheirTime(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol fulmar.Protocol) {
		var mu sync.Mutex
		var kept []fulmar.Raw
		back := unknown(t, func(_ context.Context, request fulmar.Raw) (fulmar.Raw, error) {
			if len(request) >= limits.LinkedStringBytes {
				mu.Lock()
				kept = append(kept, request)
				mu.Unlock()
			}
			return request, nil
		})
		front := unknown(t, fulmar.Forward(dialAny(t, fulmar.ClientConfig{Target: back.address, Protocol: protocol})))
		client := dialAny(t, fulmar.ClientConfig{Target: front.address, Protocol: protocol})
		var group sync.WaitGroup
		for caller := range 8 {
			group.Go(func() {
				letter := byte('a' + caller)
				var replies []fulmar.Raw
				for _, length := range []int{1, 1_000, 20_000, limits.LinkedStringBytes - 100, 40_000, 300_000, 100, 100_000, 5} {
					request, reply := textOf(length, letter), fulmar.Raw(nil)
					if err := client.Call(context.Background(), rawMethod(t, "S", "m"), &request, &reply); err != nil {
						t.Error(err)
					}
					replies = append(replies, reply)
				}
				for _, reply := range replies {
					if !bytes.Equal(reply, textOf(len(reply)-8, letter)) {
						t.Errorf("caller %d: a reply of %d bytes has changed", caller, len(reply))
					}
				}
			})
		}
		group.Wait()
		for _, request := range kept {
			if !bytes.Equal(request, textOf(len(request)-8, request[7])) {
				t.Errorf("a request of %d bytes has changed after its handler", len(request))
			}
		}
	})
}

// textOf is textStruct of another letter.
func textOf(length int, letter byte) fulmar.Raw {
	raw := textStruct(length)
	copy(raw[7:7+length], bytes.Repeat([]byte{letter}, length))
	return raw
}
