package interop_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// serve serves the test service until the test ends.
func serve(t *testing.T) (address string) {
	t.Helper()
	return serveWith(t, func(server *fulmar.Server) { server.RegisterService(testServiceDesc, testService{}) })
}

// serveWith serves what register adds.
func serveWith(t *testing.T, register func(*fulmar.Server)) (address string) {
	t.Helper()
	server, err := fulmar.NewServer(fulmar.ServerConfig{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	register(server)
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

// notRun are the cases of interop/client that do not run here, with the reasons.
func notRun() map[string]string {
	const cloud = "it needs credentials of Google's cloud"
	const orca = "Fulmar does not report load in ORCA's form, which is for balancers that xDS configures"
	return map[string]string{
		"compute_engine_creds": cloud, "service_account_creds": cloud, "jwt_token_creds": cloud, "per_rpc_creds": cloud,
		"oauth2_auth_token": cloud, "google_default_credentials": cloud, "compute_engine_channel_credentials": cloud,
		"orca_per_rpc": orca, "orca_oob": orca,
	}
}

// TestServer_InteropCases: every case of interop/client, but those of notRun. What is wrong
// ends the process, with a text that names it.
func TestServer_InteropCases(t *testing.T) {
	address := serve(t)
	conn := connect(t, address)
	client := testgrpc.NewTestServiceClient(conn)
	cases := map[string]func(ctx context.Context){
		"empty_unary":                 func(ctx context.Context) { interop.DoEmptyUnaryCall(ctx, client) },
		"large_unary":                 func(ctx context.Context) { interop.DoLargeUnaryCall(ctx, client) },
		"client_streaming":            func(ctx context.Context) { interop.DoClientStreaming(ctx, client) },
		"server_streaming":            func(ctx context.Context) { interop.DoServerStreaming(ctx, client) },
		"ping_pong":                   func(ctx context.Context) { interop.DoPingPong(ctx, client) },
		"empty_stream":                func(ctx context.Context) { interop.DoEmptyStream(ctx, client) },
		"timeout_on_sleeping_server":  func(ctx context.Context) { interop.DoTimeoutOnSleepingServer(ctx, client) },
		"cancel_after_begin":          func(ctx context.Context) { interop.DoCancelAfterBegin(ctx, client) },
		"cancel_after_first_response": func(ctx context.Context) { interop.DoCancelAfterFirstResponse(ctx, client) },
		"status_code_and_message":     func(ctx context.Context) { interop.DoStatusCodeAndMessage(ctx, client) },
		"special_status_message":      func(ctx context.Context) { interop.DoSpecialStatusMessage(ctx, client) },
		"custom_metadata":             func(ctx context.Context) { interop.DoCustomMetadata(ctx, client) },
		"pick_first_unary":            func(ctx context.Context) { interop.DoPickFirstUnary(ctx, client) },
		"unimplemented_method":        func(ctx context.Context) { interop.DoUnimplementedMethod(ctx, conn) },
		"unimplemented_service": func(ctx context.Context) {
			interop.DoUnimplementedService(ctx, testgrpc.NewUnimplementedServiceClient(conn))
		},
		"rpc_soak": func(ctx context.Context) {
			soak(ctx, address, func() (*grpc.ClientConn, func()) { return conn, func() {} })
		},
		"channel_soak": func(ctx context.Context) {
			soak(ctx, address, func() (*grpc.ClientConn, func()) {
				own := connect(t, address)
				return own, func() { _ = own.Close() }
			})
		},
	}
	for name, reason := range notRun() {
		t.Run(name, func(t *testing.T) { t.Skip(reason) })
	}
	ran := 0
	for name, run := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			run(ctx)
			if err := ctx.Err(); err != nil {
				t.Errorf("the case took too long: %v", err)
			}
			ran++
		})
	}
	if ran != len(cases) {
		t.Errorf("%d of %d cases have ended well", ran, len(cases))
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

func connect(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Error(err)
	}
	return conn
}

// What a soak does: calls of the sizes that interop/client has, some at a time.
const soakWorkers, soakCalls, soakRequest, soakResponse = 4, 40, 271828, 314159

// soak makes calls on the connections that channel returns. None may fail; how long one
// takes says nothing on a machine that others use too.
func soak(ctx context.Context, address string, channel func() (*grpc.ClientConn, func())) {
	interop.DoSoakTest(ctx, interop.SoakTestConfig{
		RequestSize: soakRequest, ResponseSize: soakResponse, PerIterationMaxAcceptableLatency: time.Minute, OverallTimeout: time.Minute,
		ServerAddr: address, NumWorkers: soakWorkers, Iterations: soakCalls, ChannelForTest: channel,
	})
}
