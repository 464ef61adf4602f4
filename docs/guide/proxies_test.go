package guide_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar"
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
	address, err := server.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(context.Background()) }()
	client, err := fulmar.NewClient(fulmar.ClientConfig{Target: address.String()})
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
