package fulmar_test

import (
	"context"
	"errors"
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

// TestOnlyFor_ChoosesByServiceAndMethod: names are compared exactly.
func TestOnlyFor_ChoosesByServiceAndMethod(t *testing.T) {
	cases := map[string]struct {
		names []string
		want  string
	}{
		"service":         {[]string{"Echo"}, "add nothing"},
		"method":          {[]string{"Echo.add"}, "add"},
		"both":            {[]string{"Echo.nothing", "Echo.add"}, "add nothing"},
		"another service": {[]string{"Calculator", "Calculator.add", "add", "echo.add", "Echo:add"}, ""},
		"none":            {nil, ""},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			var seen []string
			record := func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
				seen = append(seen, call.Method())
				return next(ctx, call)
			}
			server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{
				OnAdd:     func(context.Context, int32, int32) (int32, error) { return 0, nil },
				OnNothing: func(context.Context) error { return nil },
			})
			api := dial(t, fulmar.ClientConfig{Target: server.address, Interceptors: []fulmar.UnaryInterceptor{fulmar.OnlyFor(record, test.names...)}})
			if _, err := api.Add(context.Background(), 1, 2); err != nil {
				t.Error(err)
			}
			if err := api.Nothing(context.Background()); err != nil {
				t.Error(err)
			}
			if got := strings.Join(seen, " "); got != test.want {
				t.Errorf("it ran for %q, want %q", got, test.want)
			}
		})
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
	client, err := fulmar.NewClient(fulmar.ClientConfig{Target: address.String(), QualifiedNames: true})
	if err != nil {
		t.Fatal(err)
	}
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
