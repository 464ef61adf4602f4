package fulmar_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// trace records what happens in which order, from any goroutine.
type trace struct {
	mu    sync.Mutex
	lines []string
}

func (r *trace) add(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
}

// interceptor records when it is entered and left.
func (r *trace) interceptor(name string) fulmar.UnaryInterceptor {
	return func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
		r.add(call.Side().String() + " " + name + " in")
		err := next(ctx, call)
		r.add(call.Side().String() + " " + name + " out " + fulmar.CodeOf(err).String())
		return err
	}
}

func TestInterceptors_RunInOrderAroundTheCall(t *testing.T) {
	var got trace
	server := serve(t, fulmar.ServerConfig{
		Interceptors: []fulmar.UnaryInterceptor{got.interceptor("a"), got.interceptor("b")},
	}, &testservice.Stub{OnNothing: func(context.Context) error { got.add("handler"); return errors.New("no") }})
	api := dial(t, fulmar.ClientConfig{
		Target:       server.address,
		Interceptors: []fulmar.UnaryInterceptor{got.interceptor("c"), got.interceptor("d")},
	})
	if err := api.Nothing(context.Background()); err == nil {
		t.Error("Nothing succeeded")
	}
	want := []string{
		"client c in", "client d in", "server a in", "server b in", "handler",
		"server b out unknown", "server a out unknown", "client d out unknown", "client c out unknown",
	}
	if !slices.Equal(got.lines, want) {
		t.Errorf("the order was\n%q, want\n%q", got.lines, want)
	}
}

func TestInterceptors_SeeTheCall(t *testing.T) {
	check := func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
		if call.Service() != "Echo" || call.Method() != "add" || call.Oneway() || call.Protocol() != fulmar.TTHeader || call.Peer() == "" {
			t.Errorf("%v: %s.%s, oneway %v, %v, peer %q", call.Side(), call.Service(), call.Method(), call.Oneway(), call.Protocol(), call.Peer())
		}
		request, err := call.Request()
		if args, ok := request.(*testservice.EchoAddArgs); err != nil || !ok || args.Left != 40 {
			t.Errorf("%v: request %+v, %v", call.Side(), request, err)
		}
		if err := next(ctx, call); err != nil {
			return err
		}
		result, ok := call.Reply().(*testservice.EchoAddResult)
		if !ok || result.Success != thrift.Some[int32](42) {
			t.Errorf("%v: reply %+v", call.Side(), call.Reply())
		}
		return nil
	}
	server := serve(t, fulmar.ServerConfig{Interceptors: []fulmar.UnaryInterceptor{check}}, adder())
	api := dial(t, fulmar.ClientConfig{Target: server.address, Interceptors: []fulmar.UnaryInterceptor{check}})
	if sum, err := api.Add(context.Background(), 40, 2); sum != 42 || err != nil {
		t.Errorf("Add = %d, %v", sum, err)
	}
}

// TestInterceptors_MayRefuseBeforeDecoding: a refused call costs no decoding,
// which shows in that a broken request is refused for the interceptor's reason.
func TestInterceptors_MayRefuseBeforeDecoding(t *testing.T) {
	refuse := func(context.Context, fulmar.Unary, fulmar.UnaryNext) error {
		return fulmar.NewError(fulmar.PermissionDenied, "not you")
	}
	server := serve(t, fulmar.ServerConfig{Interceptors: []fulmar.UnaryInterceptor{refuse}}, &testservice.Stub{})
	conn := connect(t, server.address)
	write(t, conn, frame(message(thriftwire.Call, "echo", 1, []byte{0xff})))
	wantException(t, conn, 1, thriftwire.ExceptionInternalError, "not you")
}

func TestInterceptors_MayAnswerThemselves(t *testing.T) {
	answer := func(_ context.Context, call fulmar.Unary, _ fulmar.UnaryNext) error {
		return call.SetReply(&testservice.EchoAddResult{Success: thrift.Some[int32](7)})
	}
	server := serve(t, fulmar.ServerConfig{Interceptors: []fulmar.UnaryInterceptor{answer}}, &testservice.Stub{})
	if sum, err := dial(t, fulmar.ClientConfig{Target: server.address}).Add(context.Background(), 1, 2); sum != 7 || err != nil {
		t.Errorf("Add = %d, %v; want the interceptor's 7", sum, err)
	}
	api := dial(t, fulmar.ClientConfig{Target: server.address, Interceptors: []fulmar.UnaryInterceptor{answer}})
	if _, err := api.Add(context.Background(), 1, 2); err == nil {
		t.Error("SetReply on the client side succeeded")
	}
}

func TestInterceptors_PanicsCostOneCall(t *testing.T) {
	bad := func(context.Context, fulmar.Unary, fulmar.UnaryNext) error { panic("interceptor") }
	server := serve(t, fulmar.ServerConfig{Interceptors: []fulmar.UnaryInterceptor{bad}}, &testservice.Stub{})
	api := dial(t, fulmar.ClientConfig{Target: server.address, MaxConnections: 1})
	for range 20 {
		if e := asError(t, api.Nothing(context.Background())); e.Code() != fulmar.Internal || e.Origin() != fulmar.OriginRemote {
			t.Fatalf("Nothing: %v", e)
		}
	}
}

// TestOnlyFor_ChoosesByServiceAndMethod has the same interceptor at both ends.
// Names are compared exactly, and inherited methods are those of the service
// that inherits them.
func TestOnlyFor_ChoosesByServiceAndMethod(t *testing.T) {
	cases := map[string]struct {
		names []string
		want  []string
	}{
		"service":          {[]string{testservice.EchoServiceName}, []string{"add", "nothing", "version"}},
		"method":           {[]string{testservice.EchoAddFullMethodName}, []string{"add"}},
		"methods":          {[]string{testservice.EchoNothingFullMethodName, testservice.EchoAddFullMethodName}, []string{"add", "nothing"}},
		"inherited method": {[]string{testservice.EchoVersionFullMethodName}, []string{"version"}},
		"parent":           {[]string{testservice.BaseServiceName, testservice.BaseVersionFullMethodName}, nil},
		"another service":  {[]string{testservice.CalculatorServiceName, testservice.CalculatorAddFullMethodName}, nil},
		"almost":           {[]string{"add", "echo.add", "Echo.Add", "x.Echo.add", "Echo.add.x"}, nil},
		"none":             {nil, nil},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			var seen trace
			record := func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
				seen.add(call.Side().String() + " " + call.Method())
				return next(ctx, call)
			}
			chosen := []fulmar.UnaryInterceptor{fulmar.OnlyFor(record, test.names...)}
			server := serve(t, fulmar.ServerConfig{Interceptors: chosen}, &testservice.Stub{
				OnAdd:     func(context.Context, int32, int32) (int32, error) { return 0, nil },
				OnNothing: func(context.Context) error { return nil },
				OnVersion: func(context.Context) (string, error) { return "1", nil },
			})
			api := dial(t, fulmar.ClientConfig{Target: server.address, Interceptors: chosen})
			if _, err := api.Add(t.Context(), 1, 2); err != nil {
				t.Error(err)
			}
			if err := api.Nothing(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := api.Version(t.Context()); err != nil {
				t.Error(err)
			}
			var want []string
			for _, method := range test.want {
				want = append(want, "client "+method, "server "+method)
			}
			if !slices.Equal(seen.lines, want) {
				t.Errorf("it ran for %q, want %q", seen.lines, want)
			}
		})
	}
}

// TestOnlyFor_KnowsServicesWithPackages: the last dot of a method's name is the
// one before the method.
func TestOnlyFor_KnowsServicesWithPackages(t *testing.T) {
	guarded := errors.New("guarded")
	guard := func(context.Context, fulmar.Unary, fulmar.UnaryNext) error { return guarded }
	passed := errors.New("passed")
	pass := func(context.Context, fulmar.Unary, fulmar.UnaryNext) error { return passed }
	for name, want := range map[string]error{
		"acme.v1.Echo": guarded, "acme.v1.Echo.version": guarded,
		"acme.v1": passed, "acme": passed, "Echo.version": passed, "acme.v1.Echo.add": passed,
	} {
		client := dialAny(t, fulmar.ClientConfig{
			Target: "127.0.0.1:1", Interceptors: []fulmar.UnaryInterceptor{fulmar.OnlyFor(guard, name), pass},
		})
		method := &fulmar.MethodDesc{Service: "acme.v1.Echo", Name: "version", Codec: thrift.Binary}
		if err := client.Call(t.Context(), method, &testservice.BaseVersionArgs{}, &testservice.BaseVersionResult{}); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}

func TestOnlyFor_MistakesPanic(t *testing.T) {
	pass := func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error { return next(ctx, call) }
	for _, name := range []string{
		"", " ", ".", "Echo.", ".add", "Echo..add", "Echo add", " Echo", "Echo\n", "Echo:add", "/Echo/add", "Echo.*", "1Echo", "Echo.2", "Écho", "Echo.add,Echo.nothing",
	} {
		want := fmt.Sprintf("OnlyFor: %q cannot be the name of a service or method", name)
		if text := mustPanic(t, func() { fulmar.OnlyFor(pass, testservice.EchoServiceName, name) }); !strings.Contains(text, want) {
			t.Errorf("%q: %q, want %q", name, text, want)
		}
	}
	if text := mustPanic(t, func() { fulmar.OnlyFor(nil, testservice.EchoServiceName) }); !strings.Contains(text, "interceptor is nil") {
		t.Errorf("nil: %q", text)
	}
}

func TestServer_SeveralServices(t *testing.T) {
	log := &logRecorder{}
	server, err := fulmar.NewServer(fulmar.ServerConfig{Address: "127.0.0.1:0", Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	testservice.RegisterEchoServer(server, &testservice.Stub{
		OnAdd:     func(_ context.Context, left, right int32) (int32, error) { return left + right, nil },
		OnNothing: func(context.Context) error { return nil },
	})
	testservice.RegisterCalculatorServer(server, &testservice.Stub{
		OnAdd: func(_ context.Context, left, right int32) (int32, error) { return 100 * (left + right), nil },
	})
	address, err := server.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	conn := connect(t, address.String())
	call := func(name string) {
		write(t, conn, frame(message(thriftwire.Call, name, 1, body(t, &testservice.EchoAddArgs{Left: 1, Right: 2}))))
	}
	call("Echo:add")
	wantSum(t, conn, 1, 3)
	call("Calculator:add")
	wantSum(t, conn, 1, 300)
	call("add")
	wantException(t, conn, 1, thriftwire.ExceptionUnknownMethod, `in several services (Echo, Calculator): call it as "Service:add"`)
	write(t, conn, frame(message(thriftwire.Call, "nothing", 2, []byte{0})))
	if header, _ := readFrame(t, conn); header.Type != thriftwire.Reply {
		t.Errorf("a method of one service only was answered by a %v", header.Type)
	}
	_ = conn.Close()
	if text := log.String(); !strings.Contains(text, "methods=[add]") || !strings.Contains(text, "service=Calculator") {
		t.Errorf("nothing warned of the ambiguous method: %s", text)
	}
	client := dialAny(t, fulmar.ClientConfig{Target: address.String(), QualifiedNames: true})
	if sum, err := testservice.NewCalculatorClient(client).Add(context.Background(), 1, 2); sum != 300 || err != nil {
		t.Errorf("Calculator.Add with a qualified name = %d, %v; want 300", sum, err)
	}
	if sum, err := testservice.NewEchoClient(client).Add(context.Background(), 1, 2); sum != 3 || err != nil {
		t.Errorf("Echo.Add with a qualified name = %d, %v; want 3", sum, err)
	}
	_ = client.Close()
	cancel()
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if logged := log.String(); strings.Count(logged, "call refused") != 1 || !strings.Contains(logged, "method=add") {
		t.Errorf("logged %q, want one refused call of add", logged)
	}
}
