package guide_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/observe"
)

// timed logs how long a call takes.
func timed(logger *slog.Logger) fulmar.UnaryInterceptor {
	return func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
		start := time.Now()
		err := next(ctx, call)
		logger.Info("called", "method", call.Method(), "took", time.Since(start), "code", fulmar.CodeOf(err))
		return err
	}
}

// guard refuses calls of peers that say they are of another tenant.
func guard(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
	served, _ := fulmar.CallFrom(ctx)
	if tenant, _ := served.Metadata().Persistent("TENANT"); tenant != "north" {
		return fulmar.NewError(fulmar.PermissionDenied, "not your server")
	}
	return next(ctx, call)
}

// inRange refuses sums that are too large, by what is in the request.
func inRange(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
	request, err := call.Request()
	if err != nil {
		return err
	}
	if sum, ok := request.(*testservice.EchoAddArgs); ok && sum.Left > 700 {
		return fulmar.NewError(fulmar.OutOfRange, "at most 700")
	}
	return next(ctx, call)
}

// guarded is a configuration with interceptors of all kinds.
func guarded(logger *slog.Logger) fulmar.ServerConfig {
	config := fulmar.ServerConfig{
		Address: "127.0.0.1:0",
		// In this order, the first outermost; nothing is decoded yet.
		Interceptors: []fulmar.UnaryInterceptor{
			timed(logger),
			fulmar.OnlyFor(guard, testservice.EchoServiceName),
		},
		// Inside of these, with the request decoded.
		DecodedInterceptors: []fulmar.UnaryInterceptor{
			fulmar.OnlyFor(inRange, testservice.EchoAddFullMethodName),
		},
	}
	return config
}

// printing is an interceptor that says when it begins and ends.
func printing(name string) fulmar.UnaryInterceptor {
	return func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
		fmt.Println(call.Side(), name, "begins", call.Method())
		err := next(ctx, call)
		fmt.Println(call.Side(), name, "ends")
		return err
	}
}

// decodings are observers that say when a message is decoded.
func decodings() []observe.Observer {
	return []observe.Observer{{
		Phases: observe.SetOf(observe.PhaseDecoded),
		Event:  func(call *observe.Call, _ any, _ observe.Event) { fmt.Println(call.Side, "decodes", call.Method) },
	}}
}

// order is a service that says when it runs.
type order struct{ testservice.Stub }

func (*order) Add(_ context.Context, left, right int32) (int32, error) {
	fmt.Println("server handler: add")
	return left + right, nil
}

func (*order) Version(context.Context) (string, error) {
	fmt.Println("server handler: version")
	return "1", nil
}

// printingServer serves with interceptors of all kinds that print.
func printingServer() (*fulmar.Server, error) {
	server, err := fulmar.NewServer(fulmar.ServerConfig{
		Address: "127.0.0.1:0",
		Interceptors: []fulmar.UnaryInterceptor{
			printing("all"),
			fulmar.OnlyFor(printing("service"), testservice.EchoServiceName),
			fulmar.OnlyFor(printing("method"), testservice.EchoAddFullMethodName),
			fulmar.OnlyFor(printing("other service"), testservice.CalculatorServiceName),
		},
		DecodedInterceptors: []fulmar.UnaryInterceptor{
			printing("decoded all"),
			fulmar.OnlyFor(printing("decoded service"), testservice.EchoServiceName),
			fulmar.OnlyFor(printing("decoded method"), testservice.EchoAddFullMethodName),
		},
		Observers: decodings(),
	})
	if err == nil {
		testservice.RegisterEchoServer(server, &order{})
	}
	return server, err
}

// printingClient is a client with interceptors that print.
func printingClient(address string) (*fulmar.Client, error) {
	return fulmar.NewClient(fulmar.ClientConfig{
		Target: address,
		Interceptors: []fulmar.UnaryInterceptor{
			printing("all"),
			fulmar.OnlyFor(printing("service"), testservice.EchoServiceName),
			fulmar.OnlyFor(printing("method"), testservice.EchoAddFullMethodName),
		},
		Observers: decodings(),
	})
}

// printOrder makes two calls.
func printOrder() error {
	server, err := printingServer()
	if err != nil {
		return err
	}
	address, err := server.Listen()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	client, err := printingClient(address.String())
	if err != nil {
		return err
	}
	api := testservice.NewEchoClient(client)
	sum, err := api.Add(ctx, 40, 2)
	fmt.Println("add:", sum, err)
	version, err := api.Version(ctx)
	fmt.Println("version:", version, err)
	_ = client.Close()
	stop()
	return <-served
}

// The order of interceptors of a client and of a server, for all calls, for a service
// and for a method, before and after decoding.
func Example_interceptors() {
	if err := printOrder(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// client all begins add
	// client service begins add
	// client method begins add
	// server all begins add
	// server service begins add
	// server method begins add
	// server decodes add
	// server decoded all begins add
	// server decoded service begins add
	// server decoded method begins add
	// server handler: add
	// server decoded method ends
	// server decoded service ends
	// server decoded all ends
	// server method ends
	// server service ends
	// server all ends
	// client decodes add
	// client method ends
	// client service ends
	// client all ends
	// add: 42 <nil>
	// client all begins version
	// client service begins version
	// server all begins version
	// server service begins version
	// server decodes version
	// server decoded all begins version
	// server decoded service begins version
	// server handler: version
	// server decoded service ends
	// server decoded all ends
	// server service ends
	// server all ends
	// client decodes version
	// client service ends
	// client all ends
	// version: 1 <nil>
}

func TestInterceptors_GuardTheServer(t *testing.T) {
	var logged bytes.Buffer
	server, err := fulmar.NewServer(guarded(slog.New(slog.NewTextHandler(&logged, nil))))
	if err != nil {
		t.Fatal(err)
	}
	testservice.RegisterEchoServer(server, &order{})
	address, stop := serveUntil(t, server)
	client, err := fulmar.NewClient(fulmar.ClientConfig{Target: address})
	if err != nil {
		t.Fatal(err)
	}
	api := testservice.NewEchoClient(client)
	ours := fulmar.WithPersistent(t.Context(), "TENANT", "north")
	if _, err := api.Add(t.Context(), 1, 2); fulmar.CodeOf(err) != fulmar.PermissionDenied {
		t.Errorf("without a tenant: %v", err)
	}
	if _, err := api.Add(ours, 701, 2); fulmar.CodeOf(err) != fulmar.OutOfRange {
		t.Errorf("too large: %v", err)
	}
	if sum, err := api.Add(ours, 1, 2); sum != 3 || err != nil {
		t.Errorf("Add = %d, %v", sum, err)
	}
	_ = client.Close()
	stop()
	if lines := bytes.Count(logged.Bytes(), []byte("msg=called method=add")); lines != 3 {
		t.Errorf("%d calls were logged: %s", lines, logged.String())
	}
}
