package grpccompat_test

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/contrib/grpccompat"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// patience bounds what must happen.
const patience = time.Minute

// service is a service of grpc-go, written as such, with functions for some methods.
type service struct {
	testpb.UnimplementedTestServiceServer
	unary  func(ctx context.Context, request *testpb.SimpleRequest) (*testpb.SimpleResponse, error)
	output func(request *testpb.StreamingOutputCallRequest, stream testpb.TestService_StreamingOutputCallServer) error
	duplex func(stream testpb.TestService_FullDuplexCallServer) error
}

// UnaryCall answers with the payload of the request.
func (s *service) UnaryCall(ctx context.Context, request *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	if s.unary != nil {
		return s.unary(ctx, request)
	}
	return &testpb.SimpleResponse{Payload: request.GetPayload()}, nil
}

// StreamingOutputCall answers with messages of the sizes that are wanted.
func (s *service) StreamingOutputCall(request *testpb.StreamingOutputCallRequest, stream testpb.TestService_StreamingOutputCallServer) error {
	if s.output != nil {
		return s.output(request, stream)
	}
	for _, wanted := range request.GetResponseParameters() {
		if err := stream.Send(&testpb.StreamingOutputCallResponse{Payload: body(int(wanted.GetSize()))}); err != nil {
			return err
		}
	}
	return nil
}

// StreamingInputCall answers with how many bytes have come.
func (s *service) StreamingInputCall(stream testpb.TestService_StreamingInputCallServer) error {
	sum := 0
	for {
		message, err := stream.Recv()
		if err == io.EOF {
			return stream.SendAndClose(&testpb.StreamingInputCallResponse{AggregatedPayloadSize: int32(sum)})
		}
		if err != nil {
			return err
		}
		sum += len(message.GetPayload().GetBody())
	}
}

// FullDuplexCall answers each message with its payload.
func (s *service) FullDuplexCall(stream testpb.TestService_FullDuplexCallServer) error {
	if s.duplex != nil {
		return s.duplex(stream)
	}
	for {
		message, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.Send(&testpb.StreamingOutputCallResponse{Payload: message.GetPayload()}); err != nil {
			return err
		}
	}
}

func body(size int) *testpb.Payload { return &testpb.Payload{Body: make([]byte, size)} }

// setting is what a test has around its service.
type setting struct {
	server       fulmar.ServerConfig
	registrar    grpccompat.ServerConfig
	client       grpccompat.ClientConfig
	alsoRegister func(*grpccompat.Registrar)
}

// eachWay runs a test with calls over a socket, and within the process.
func eachWay(t *testing.T, s *service, with setting, test func(t *testing.T, client *grpccompat.Client)) {
	t.Helper()
	for _, way := range []string{"socket", "local"} {
		t.Run(way, func(t *testing.T) { test(t, connect(t, s, with, way == "local")) })
	}
}

// connect serves a service until the test ends, and returns a client for it.
func connect(t *testing.T, s testpb.TestServiceServer, with setting, local bool) *grpccompat.Client {
	t.Helper()
	with.server.Address, with.server.Logger = cmp.Or(with.server.Address, "127.0.0.1:0"), slog.New(slog.DiscardHandler)
	server, err := fulmar.NewServer(with.server)
	if err != nil {
		t.Fatal(err)
	}
	registrar := grpccompat.NewRegistrar(server, with.registrar)
	testpb.RegisterTestServiceServer(registrar, s)
	if with.alsoRegister != nil {
		with.alsoRegister(registrar)
	}
	address, err := server.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	if local {
		with.client.Local = server
	} else {
		with.client.Target = cmp.Or(with.client.Target, address.String())
	}
	with.client.Timeout, with.client.ConnectTimeout = patience, patience
	client, err := grpccompat.NewClient(with.client)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		stop()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return client
}

// ask makes a unary call.
func ask(ctx context.Context, client grpc.ClientConnInterface, options ...grpc.CallOption) (*testpb.SimpleResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return testpb.NewTestServiceClient(client).UnaryCall(ctx, &testpb.SimpleRequest{Payload: body(7)}, options...)
}
