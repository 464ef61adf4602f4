package compat_test

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip" // so that the server can
	"google.golang.org/grpc/interop"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/contrib/grpccompat"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// serveHere serves grpc-go's test service on a server of Fulmar until the test ends.
func serveHere(t *testing.T) (address string) {
	t.Helper()
	server, err := fulmar.NewServer(fulmar.ServerConfig{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	testpb.RegisterTestServiceServer(grpccompat.NewRegistrar(server, grpccompat.ServerConfig{}), interop.NewTestServer())
	listening, err := server.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return listening.String()
}

// serveThere serves it on one of grpc-go.
func serveThere(t *testing.T) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	testpb.RegisterTestServiceServer(server, interop.NewTestServer())
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// closer is a connection of either.
type closer interface {
	grpc.ClientConnInterface
	Close() error
}

func dialHere(t *testing.T, address string) closer {
	t.Helper()
	client, err := grpccompat.NewClient(grpccompat.ClientConfig{ClientConfig: fulmar.ClientConfig{Target: address, Timeout: time.Minute, ConnectTimeout: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func dialThere(t *testing.T, address string) closer {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestInterop: every case of interop/client that needs neither credentials of a cloud nor a
// load balancer, and a soak in place of rpc_soak and channel_soak, which take connections of
// grpc-go only. What is wrong ends the process, with a text that names it.
func TestInterop(t *testing.T) {
	for name, way := range map[string]struct {
		serve func(*testing.T) string
		dial  func(*testing.T, string) closer
	}{
		"both":    {serveHere, dialHere},
		"service": {serveHere, dialThere},
		"client":  {serveThere, dialHere},
	} {
		t.Run(name, func(t *testing.T) {
			conn := way.dial(t, way.serve(t))
			client := testpb.NewTestServiceClient(conn)
			gzip := grpc.UseCompressor("gzip")
			cases := map[string]func(ctx context.Context){
				"empty_unary":                 func(ctx context.Context) { interop.DoEmptyUnaryCall(ctx, client) },
				"large_unary":                 func(ctx context.Context) { interop.DoLargeUnaryCall(ctx, client) },
				"large_unary, gzip":           func(ctx context.Context) { interop.DoLargeUnaryCall(ctx, client, gzip) },
				"client_streaming":            func(ctx context.Context) { interop.DoClientStreaming(ctx, client) },
				"server_streaming":            func(ctx context.Context) { interop.DoServerStreaming(ctx, client) },
				"ping_pong":                   func(ctx context.Context) { interop.DoPingPong(ctx, client) },
				"ping_pong, gzip":             func(ctx context.Context) { interop.DoPingPong(ctx, client, gzip) },
				"empty_stream":                func(ctx context.Context) { interop.DoEmptyStream(ctx, client) },
				"timeout_on_sleeping_server":  func(ctx context.Context) { interop.DoTimeoutOnSleepingServer(ctx, client) },
				"cancel_after_begin":          func(ctx context.Context) { interop.DoCancelAfterBegin(ctx, client) },
				"cancel_after_first_response": func(ctx context.Context) { interop.DoCancelAfterFirstResponse(ctx, client) },
				"status_code_and_message":     func(ctx context.Context) { interop.DoStatusCodeAndMessage(ctx, client) },
				"special_status_message":      func(ctx context.Context) { interop.DoSpecialStatusMessage(ctx, client) },
				"custom_metadata":             func(ctx context.Context) { interop.DoCustomMetadata(ctx, client) },
				"unimplemented_service": func(ctx context.Context) {
					interop.DoUnimplementedService(ctx, testpb.NewUnimplementedServiceClient(conn))
				},
				"unimplemented_method": func(ctx context.Context) {
					err := conn.Invoke(ctx, "/grpc.testing.TestService/UnimplementedCall", &testpb.Empty{}, &testpb.Empty{})
					if status.Code(err) != codes.Unimplemented {
						t.Errorf("unimplemented_method: %v", err)
					}
				},
				"soak": func(ctx context.Context) { soak(ctx, t, client) },
			}
			for name, run := range cases {
				t.Run(name, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					run(ctx)
					if err := ctx.Err(); err != nil {
						t.Errorf("the case took too long: %v", err)
					}
				})
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// soak makes many large calls, some at a time.
func soak(ctx context.Context, t *testing.T, client testpb.TestServiceClient) {
	t.Helper()
	const workers, calls, size = 4, 50, 100_000
	failed := make(chan error, workers)
	for range workers {
		go func() {
			for range calls {
				response, err := client.UnaryCall(ctx, &testpb.SimpleRequest{ResponseSize: size, Payload: &testpb.Payload{Body: make([]byte, size)}})
				if err == nil && len(response.GetPayload().GetBody()) != size {
					err = status.Errorf(codes.DataLoss, "%d bytes", len(response.GetPayload().GetBody()))
				}
				if err != nil {
					failed <- err
					return
				}
			}
			failed <- nil
		}()
	}
	for range workers {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
}
