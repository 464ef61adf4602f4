package guide_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/protoservice"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// newProxy forwards everything to backend.
func newProxy(backend *fulmar.Client) (*fulmar.Server, error) {
	server, err := fulmar.NewServer(fulmar.ServerConfig{
		Address:        "127.0.0.1:0",
		UnknownHandler: fulmar.Forward(backend),
	})
	return server, err
}

// newStreamingProxy forwards streams as well.
func newStreamingProxy(backend *fulmar.Client) (*fulmar.Server, error) {
	server, err := fulmar.NewServer(fulmar.ServerConfig{
		Address:              "127.0.0.1:0",
		UnknownHandler:       fulmar.Forward(backend),
		UnknownStreamHandler: fulmar.ForwardStreams(backend),
	})
	return server, err
}

// trusting passes on who the caller says he is.
func trusting(backend *fulmar.Client) func(context.Context, *fulmar.ServerMessages) error {
	forward := fulmar.ForwardStreams(backend)
	return func(ctx context.Context, messages *fulmar.ServerMessages) error {
		call, _ := fulmar.CallFrom(ctx)
		if token, ok := call.Metadata().Transient("authorization"); ok {
			ctx = fulmar.WithTransient(ctx, "authorization", token)
		}
		return forward(ctx, messages)
	}
}

// routed chooses by the service, and refuses what nobody may call from outside.
func routed(backends map[string]*fulmar.Client) fulmar.UnknownHandler {
	forward := map[string]fulmar.UnknownHandler{}
	for service, client := range backends {
		forward[service] = fulmar.Forward(client)
	}
	return func(ctx context.Context, request fulmar.Raw) (fulmar.Raw, error) {
		call, _ := fulmar.CallFrom(ctx)
		next := forward[call.Service()]
		if next == nil {
			return nil, fulmar.NewError(fulmar.PermissionDenied, "no such service here")
		}
		return next(ctx, request)
	}
}

// callRaw makes one call without generated code.
func callRaw(ctx context.Context, client *fulmar.Client, arguments []byte) ([]byte, error) {
	method, err := fulmar.RawMethod("Echo", "version", false)
	if err != nil {
		return nil, err
	}
	request, result := fulmar.Raw(arguments), fulmar.Raw{}
	err = client.Call(ctx, method, &request, &result)
	return result, err
}

// serveUntilTheEnd serves until the test ends and returns a client.
func serveUntilTheEnd(t *testing.T, server *fulmar.Server) *fulmar.Client {
	t.Helper()
	return serveIn(t, server, fulmar.TTHeader)
}

func serveIn(t *testing.T, server *fulmar.Server, protocol fulmar.Protocol) *fulmar.Client {
	t.Helper()
	address, err := server.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(context.Background()) }()
	client, err := fulmar.NewClient(fulmar.ClientConfig{Target: address.String(), Protocol: protocol})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Close()
		if err := server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return client
}

func TestProxies_Forward(t *testing.T) {
	behind, err := fulmar.NewServer(fulmar.ServerConfig{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	testservice.RegisterEchoServer(behind, &testservice.Stub{OnVersion: func(context.Context) (string, error) { return "1.2", nil }})
	backend := serveUntilTheEnd(t, behind)
	proxy, err := newProxy(backend)
	if err != nil {
		t.Fatal(err)
	}
	router, err := fulmar.NewServer(fulmar.ServerConfig{
		Address:        "127.0.0.1:0",
		UnknownHandler: routed(map[string]*fulmar.Client{"Echo": serveUntilTheEnd(t, proxy)}),
	})
	if err != nil {
		t.Fatal(err)
	}
	outside := serveUntilTheEnd(t, router)
	if version, err := testservice.NewEchoClient(outside).Version(t.Context()); err != nil || version != "1.2" {
		t.Errorf("through both: %q, %v", version, err)
	}
	result, err := callRaw(t.Context(), outside, []byte{0})
	if err != nil || !bytes.Contains(result, []byte("1.2")) {
		t.Errorf("through both: % x, %v", result, err)
	}
	_, err = testservice.NewCalculatorClient(outside).Add(t.Context(), 1, 2)
	if fulmar.CodeOf(err) != fulmar.PermissionDenied || !strings.Contains(err.Error(), "no such service here") {
		t.Errorf("another service: %v", err)
	}
}

func TestProxies_ForwardStreams(t *testing.T) {
	behind, err := fulmar.NewServer(fulmar.ServerConfig{
		Address: "127.0.0.1:0",
		UnknownStreamHandler: func(ctx context.Context, messages *fulmar.ServerMessages) error {
			call, _ := fulmar.CallFrom(ctx)
			token, _ := call.Metadata().Transient("authorization")
			return fulmar.NewError(fulmar.PermissionDenied, call.Service()+"."+call.Method()+", "+token)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	backend := serveIn(t, behind, fulmar.GRPC)
	plain, err := newStreamingProxy(backend)
	if err != nil {
		t.Fatal(err)
	}
	knows, err := fulmar.NewServer(fulmar.ServerConfig{Address: "127.0.0.1:0", UnknownStreamHandler: trusting(backend)})
	if err != nil {
		t.Fatal(err)
	}
	for want, proxy := range map[string]*fulmar.Server{
		"fulmar.test.v1.Shelf.Swap, ":   plain,
		"fulmar.test.v1.Shelf.Swap, me": knows,
	} {
		shelf := protoservice.NewShelfClient(serveIn(t, proxy, fulmar.GRPC))
		swap, err := shelf.Swap(fulmar.WithTransient(t.Context(), "authorization", "me"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = swap.Recv()
		var refused *fulmar.Error
		if !errors.As(err, &refused) || refused.Code() != fulmar.PermissionDenied || refused.Message() != want {
			t.Errorf("the call ends with %v, want %s", err, want)
		}
	}
}
