package grpccompat_test

import (
	"context"
	"io"
	"testing"

	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/contrib/grpccompat"
)

// TestNil_IsEmpty: messages that are nil, of handlers, stubs and interceptors of grpc-go, arrive as
// empty ones, also within the process, and interceptors of Fulmar see those.
func TestNil_IsEmpty(t *testing.T) {
	s := &service{
		unary: func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) { return nil, nil },
		output: func(_ *testpb.StreamingOutputCallRequest, stream testpb.TestService_StreamingOutputCallServer) error {
			return stream.Send(nil)
		},
	}
	untyped := false
	seen := 0
	with := setting{
		registrar: grpccompat.ServerConfig{UnaryInterceptors: []grpc.UnaryServerInterceptor{
			func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
				if response, err := handler(ctx, request); !untyped || err != nil {
					return response, err
				}
				return nil, nil
			},
		}},
		server: fulmar.ServerConfig{DecodedInterceptors: []fulmar.UnaryInterceptor{func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
			if request, err := call.Request(); err != nil || !request.(*testpb.SimpleRequest).ProtoReflect().IsValid() {
				t.Errorf("the request is %v, %v", request, err)
			}
			seen++
			return next(ctx, call)
		}}},
	}
	eachWay(t, s, with, func(t *testing.T, client *grpccompat.Client) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		api := testpb.NewTestServiceClient(client)
		seen = 0
		for _, untyped = range []bool{false, true} {
			if response, err := api.UnaryCall(ctx, nil); err != nil || !response.ProtoReflect().IsValid() {
				t.Errorf("untyped: %v: %v, %v", untyped, response, err)
			}
			if err := client.Invoke(ctx, testpb.TestService_UnaryCall_FullMethodName, nil, new(testpb.SimpleResponse)); err != nil {
				t.Errorf("a request without type: %v", err)
			}
		}
		if seen != 4 {
			t.Errorf("the server saw %d calls", seen)
		}
		output, err := api.StreamingOutputCall(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := output.Recv(); err != nil {
			t.Error(err)
		}
		if _, err := output.Recv(); err != io.EOF {
			t.Error(err)
		}
		input, err := api.StreamingInputCall(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := input.Send(nil); err != nil {
			t.Error(err)
		}
		if sum, err := input.CloseAndRecv(); err != nil || sum.GetAggregatedPayloadSize() != 0 {
			t.Errorf("%v, %v", sum, err)
		}
	})
}
