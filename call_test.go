package fulmar_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/thrift"
)

func TestCall_ReachesEveryKindOfMethod(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol fulmar.Protocol) {
		notified := make(chan string, 1)
		server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{
			OnVersion: func(context.Context) (string, error) { return "1.0", nil },
			OnAdd:     func(_ context.Context, left, right int32) (int32, error) { return left + right, nil },
			OnNothing: func(context.Context) error { return nil },
			OnNotify:  func(_ context.Context, text string) error { notified <- text; return nil },
		})
		api := dial(t, fulmar.ClientConfig{Target: server.address, Protocol: protocol})
		ctx := context.Background()

		want := &testservice.Message{
			Text:   "größe",
			Number: thrift.Some[int64](0),
			Parts:  []testservice.Message{{Text: "part", Parts: []testservice.Message{}, Labels: map[string]string{}}},
			Labels: map[string]string{"k": "v"},
		}
		for range 3 {
			got, err := api.Echo(ctx, want)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("Echo = %+v, %v; want %+v", got, err, want)
			}
		}
		if sum, err := api.Add(ctx, 40, 2); sum != 42 || err != nil {
			t.Errorf("Add = %d, %v; want 42", sum, err)
		}
		if err := api.Nothing(ctx); err != nil {
			t.Errorf("Nothing: %v", err)
		}
		if version, err := api.Version(ctx); version != "1.0" || err != nil {
			t.Errorf("Version = %q, %v; want 1.0", version, err)
		}
		if err := api.Notify(ctx, "hello"); err != nil {
			t.Errorf("Notify: %v", err)
		}
		if text := <-notified; text != "hello" {
			t.Errorf("Notify arrived as %q", text)
		}
	})
}

func TestCall_ConcurrentCallsGetTheirOwnReplies(t *testing.T) {
	server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{})
	api := dial(t, fulmar.ClientConfig{Target: server.address, MaxConnections: 8})
	var wait sync.WaitGroup
	for caller := range 32 {
		wait.Go(func() {
			for call := range 50 {
				want := fmt.Sprintf("%d/%d %s", caller, call, strings.Repeat("x", call*37))
				got, err := api.Echo(context.Background(), &testservice.Message{Text: want})
				if err != nil || got.Text != want {
					t.Errorf("Echo(%.20q) = %+v, %v", want, got, err)
					return
				}
			}
		})
	}
	wait.Wait()
}

func TestCall_DeclaredExceptionsAreErrors(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol fulmar.Protocol) {
		server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{
			OnEcho: func(_ context.Context, message *testservice.Message) (*testservice.Message, error) {
				return nil, fmt.Errorf("wrapped: %w", &testservice.Refused{Reason: message.Text, Limit: 3})
			},
		})
		api := dial(t, fulmar.ClientConfig{Target: server.address, Protocol: protocol})
		for range 2 {
			reply, err := api.Echo(context.Background(), &testservice.Message{Text: "why"})
			var refused *testservice.Refused
			if !errors.As(err, &refused) || refused.Reason != "why" || refused.Limit != 3 || reply != nil {
				t.Fatalf("Echo = %v, %v; want Refused", reply, err)
			}
		}
	})
}

// TestCall_HandlerErrorsArriveAsRemote: with the code that the handler gave and
// the word that it ran, where the protocol has room for both.
func TestCall_HandlerErrorsArriveAsRemote(t *testing.T) {
	cases := map[string]struct {
		err error
		// code is what arrives with a header, bare what arrives without.
		code, bare fulmar.Code
		text       string
	}{
		"plain":            {errors.New("no luck"), fulmar.Unknown, fulmar.Internal, "no luck"},
		"with a code":      {fulmar.NewError(fulmar.NotFound, "no such thing"), fulmar.NotFound, fulmar.Internal, "no such thing"},
		"invalid argument": {fulmar.Errorf(fulmar.InvalidArgument, "bad %s", "name"), fulmar.InvalidArgument, fulmar.InvalidArgument, "bad name"},
		"unimplemented":    {fulmar.NewError(fulmar.Unimplemented, "later"), fulmar.Unimplemented, fulmar.Unimplemented, "later"},
		"wrapped":          {fmt.Errorf("outer: %w", fulmar.NewError(fulmar.Aborted, "inner")), fulmar.Aborted, fulmar.Internal, "outer: inner"},
		"not UTF-8":        {errors.New("a\xffb"), fulmar.Unknown, fulmar.Internal, "a\uFFFDb"},
		"typed nil":        {(*testservice.Refused)(nil), fulmar.Unknown, fulmar.Internal, "Refused"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{
				OnNothing: func(context.Context) error { return test.err },
			})
			for _, protocol := range allProtocols {
				code, executed := test.bare, fulmar.ExecutedMaybe
				if protocol >= fulmar.TTHeader {
					code, executed = test.code, fulmar.ExecutedYes
				}
				api := dial(t, fulmar.ClientConfig{Target: server.address, Protocol: protocol})
				e := asError(t, api.Nothing(context.Background()))
				if e.Code() != code || e.Origin() != fulmar.OriginRemote || e.Executed() != executed || !strings.Contains(e.Message(), test.text) {
					t.Errorf("%v: %v: code %v, origin %v, %v; want %v with %q", protocol, e, e.Code(), e.Origin(), e.Executed(), code, test.text)
				}
			}
		})
	}
}

// TestCall_DownstreamAddressesStayHere: a handler that passes on the error of
// its own call tells its caller what happened, not where.
func TestCall_DownstreamAddressesStayHere(t *testing.T) {
	nowhere, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	backend := nowhere.Addr().String()
	if err := nowhere.Close(); err != nil {
		t.Fatal(err)
	}
	downstream := dial(t, fulmar.ClientConfig{Target: backend})
	server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{
		OnNothing: func(ctx context.Context) error {
			return fmt.Errorf("asking the backend: %w", downstream.Nothing(ctx))
		},
	})
	api := dial(t, fulmar.ClientConfig{Target: server.address})
	e := asError(t, api.Nothing(context.Background()))
	if strings.Contains(e.Message(), backend) || !strings.Contains(e.Message(), "asking the backend") || !strings.Contains(e.Message(), "refused") {
		t.Errorf("the message is %q; want the reason without %s", e.Message(), backend)
	}
}

func TestCall_NobodyThere(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	api := dial(t, fulmar.ClientConfig{Target: address})
	e := asError(t, api.Nothing(context.Background()))
	if e.Code() != fulmar.Unavailable || e.Executed() != fulmar.ExecutedNo || e.Phase() != fulmar.PhaseConnect || e.Address() != address {
		t.Errorf("%v: code %v, %v, phase %v, address %q", e, e.Code(), e.Executed(), e.Phase(), e.Address())
	}
}

func TestCall_MissingReply(t *testing.T) {
	server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{
		OnEcho: func(context.Context, *testservice.Message) (*testservice.Message, error) { return nil, nil },
	})
	api := dial(t, fulmar.ClientConfig{Target: server.address})
	_, err := api.Echo(context.Background(), &testservice.Message{})
	if e := asError(t, err); e.Code() != fulmar.Internal || e.Message() != "neither a result nor an error" {
		t.Errorf("Echo: %v", err)
	}
	if text := err.Error(); !strings.HasPrefix(text, "Echo.echo: internal: neither") || strings.Count(text, "echo") != 1 {
		t.Errorf("%q does not name the method once", text)
	}
}

func TestCall_PanicsCostOneCall(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol fulmar.Protocol) {
		server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{
			OnEcho: func(_ context.Context, message *testservice.Message) (*testservice.Message, error) {
				switch message.Text {
				case "panic":
					panic("a secret")
				case "goexit":
					runtime.Goexit()
				}
				return message, nil
			},
			OnNotify: func(context.Context, string) error { panic("oneway") },
		})
		api := dial(t, fulmar.ClientConfig{Target: server.address, Protocol: protocol, MaxConnections: 1})
		ctx := context.Background()
		for range 50 {
			for _, how := range []string{"panic", "goexit"} {
				_, err := api.Echo(ctx, &testservice.Message{Text: how})
				if e := asError(t, err); e.Code() != fulmar.Internal || strings.Contains(err.Error(), "secret") {
					t.Fatalf("Echo(%s): %v", how, err)
				}
			}
			if err := api.Notify(ctx, "x"); err != nil {
				t.Fatal(err)
			}
			if _, err := api.Echo(ctx, &testservice.Message{}); err != nil {
				t.Fatalf("the connection did not survive: %v", err)
			}
		}
		for _, text := range []string{"a secret", "runtime.Goexit", "oneway", "call_test.go"} {
			if !strings.Contains(server.log.String(), text) {
				t.Errorf("the log does not mention %q", text)
			}
		}
	})
}

func TestCall_FromTellsTheHandler(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol fulmar.Protocol) {
		calls := make(chan fulmar.Call, 1)
		server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{
			OnNothing: func(ctx context.Context) error {
				call, ok := fulmar.CallFrom(ctx)
				if !ok {
					return errors.New("no call")
				}
				calls <- call
				return nil
			},
		})
		api := dial(t, fulmar.ClientConfig{Target: server.address, Protocol: protocol})
		if err := api.Nothing(context.Background()); err != nil {
			t.Fatal(err)
		}
		call := <-calls
		if call.Service() != "Echo" || call.Method() != "nothing" || call.Oneway() || call.Protocol() != protocol || call.Local() != server.address || call.Peer() == "" {
			t.Errorf("CallFrom = %+v", call)
		}
		if _, ok := call.Deadline(); ok != (protocol >= fulmar.TTHeader) {
			t.Errorf("a deadline: %v, which only headers carry", ok)
		}
		if _, ok := fulmar.CallFrom(context.Background()); ok {
			t.Error("a call outside of one")
		}
	})
}

// TestCall_OnewayIsTold: handlers and the interceptors of both sides know which
// calls have no reply.
func TestCall_OnewayIsTold(t *testing.T) {
	seen := make(chan bool, 3)
	look := func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
		seen <- call.Oneway()
		return next(ctx, call)
	}
	handle := func(ctx context.Context) error {
		call, ok := fulmar.CallFrom(ctx)
		if !ok {
			t.Error("a handler without a call")
		}
		seen <- call.Oneway()
		return nil
	}
	server := serve(t, fulmar.ServerConfig{Interceptors: []fulmar.UnaryInterceptor{look}}, &testservice.Stub{
		OnNothing: handle,
		OnNotify:  func(ctx context.Context, _ string) error { return handle(ctx) },
	})
	api := dial(t, fulmar.ClientConfig{Target: server.address, Interceptors: []fulmar.UnaryInterceptor{look}})
	for _, oneway := range []bool{true, false} {
		var err error
		if oneway {
			err = api.Notify(context.Background(), "x")
		} else {
			err = api.Nothing(context.Background())
		}
		if err != nil {
			t.Error(err)
		}
		for _, who := range []string{"the client's interceptor", "the server's interceptor", "the handler"} {
			if got := <-seen; got != oneway {
				t.Errorf("%s saw oneway %v, want %v", who, got, oneway)
			}
		}
	}
}

func TestCall_DeadlinesAndCancellation(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol fulmar.Protocol) {
		release := make(chan struct{})
		server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{
			OnNothing: func(context.Context) error { <-release; return nil },
			OnAdd:     func(_ context.Context, left, right int32) (int32, error) { return left + right, nil },
		})
		t.Cleanup(func() { close(release) })
		api := dial(t, fulmar.ClientConfig{Target: server.address, Protocol: protocol})

		timeout, err := waitsForReply(t, 50*time.Millisecond, func(timeout time.Duration) error {
			return api.Nothing(context.Background(), fulmar.Timeout(timeout))
		})
		e := asError(t, err)
		if e.Code() != fulmar.DeadlineExceeded || e.Executed() != fulmar.ExecutedMaybe || e.Phase() != fulmar.PhaseWait || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("timeout: %v; %v, phase %v", err, e.Executed(), e.Phase())
		}
		if want := "no result within " + timeout.String(); e.Message() != want {
			t.Errorf("timeout: message %q, want %q", e.Message(), want)
		}

		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(10*time.Millisecond, cancel)
		err = api.Nothing(ctx)
		if e := asError(t, err); e.Code() != fulmar.Canceled || !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		err = api.Nothing(ctx)
		if e := asError(t, err); e.Code() != fulmar.Canceled || e.Executed() != fulmar.ExecutedNo {
			t.Errorf("cancelled before: %v", err)
		}
		// The late replies must not reach other calls.
		if sum, err := api.Add(context.Background(), 1, 2); sum != 3 || err != nil {
			t.Errorf("Add afterwards = %d, %v", sum, err)
		}
	})
}

func TestCall_RefusesNilArguments(t *testing.T) {
	server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{})
	api := dial(t, fulmar.ClientConfig{Target: server.address})
	_, err := api.Echo(context.Background(), nil)
	if e := asError(t, err); e.Code() != fulmar.InvalidArgument || e.Executed() != fulmar.ExecutedNo || e.Phase() != fulmar.PhaseEncode {
		t.Errorf("Echo(nil): %v", err)
	}
}
