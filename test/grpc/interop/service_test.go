package interop_test

import (
	"context"
	"time"

	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/protobuf"
)

// testService is what interop/server of grpc-go serves, with the methods of Fulmar.
type testService struct{}

// Where callers of the case custom_metadata have what they want back.
const (
	echoInitial  = "x-grpc-test-echo-initial"
	echoTrailing = "x-grpc-test-echo-trailing-bin"
)

func payload(size int32) *testpb.Payload { return &testpb.Payload{Body: make([]byte, size)} }

func wantedStatus(status *testpb.EchoStatus) error {
	if status.GetCode() == 0 {
		return nil
	}
	return fulmar.NewError(fulmar.Code(status.GetCode()), status.GetMessage())
}

// serverID is what the server calls itself to who asks.
const serverID = "the only one"

func (testService) unary(ctx context.Context, request *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	call, _ := fulmar.CallFrom(ctx)
	if value, ok := call.Metadata().Transient(echoInitial); ok {
		if err := fulmar.SetReplyMetadata(ctx, echoInitial, value); err != nil {
			return nil, err
		}
	}
	if value, ok := call.Metadata().Transient(echoTrailing); ok {
		if err := fulmar.SetReplyTrailer(ctx, echoTrailing, value); err != nil {
			return nil, err
		}
	}
	if err := wantedStatus(request.GetResponseStatus()); err != nil {
		return nil, err
	}
	response := &testpb.SimpleResponse{Payload: payload(request.GetResponseSize())}
	if request.GetFillServerId() {
		response.ServerId = serverID
	}
	return response, nil
}

func (testService) serverStream(request *testpb.StreamingOutputCallRequest, stream fulmar.ServerStreamingServer[testpb.StreamingOutputCallResponse]) error {
	return respond(stream.Context(), request, stream.Send)
}

// respond sends what a request asks for.
func respond(ctx context.Context, request *testpb.StreamingOutputCallRequest, send func(*testpb.StreamingOutputCallResponse) error) error {
	for _, wanted := range request.GetResponseParameters() {
		if pause := wanted.GetIntervalUs(); pause > 0 {
			timer := time.NewTimer(time.Duration(pause) * time.Microsecond)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return ctx.Err()
			}
		}
		if err := send(&testpb.StreamingOutputCallResponse{Payload: payload(wanted.GetSize())}); err != nil {
			return err
		}
	}
	return nil
}

func (testService) clientStream(stream fulmar.ClientStreamingServer[testpb.StreamingInputCallRequest, testpb.StreamingInputCallResponse]) error {
	sum := 0
	for request, err := range stream.All() {
		if err != nil {
			return err
		}
		sum += len(request.GetPayload().GetBody())
	}
	return stream.SendAndClose(&testpb.StreamingInputCallResponse{AggregatedPayloadSize: int32(sum)})
}

func (testService) bidi(stream fulmar.BidiStreamingServer[testpb.StreamingOutputCallRequest, testpb.StreamingOutputCallResponse]) error {
	call, _ := fulmar.CallFrom(stream.Context())
	if value, ok := call.Metadata().Transient(echoInitial); ok {
		if err := stream.SendHeader(map[string]string{echoInitial: value}); err != nil {
			return err
		}
	}
	if value, ok := call.Metadata().Transient(echoTrailing); ok {
		if err := fulmar.SetReplyMetadata(stream.Context(), echoTrailing, value); err != nil {
			return err
		}
	}
	for request, err := range stream.All() {
		if err != nil {
			return err
		}
		if err := wantedStatus(request.GetResponseStatus()); err != nil {
			return err
		}
		if err := respond(stream.Context(), request, stream.Send); err != nil {
			return err
		}
	}
	return nil
}

const testServiceName = "grpc.testing.TestService"

// The methods, as generated code would have them: the messages are grpc-go's.
var (
	emptyCall = &fulmar.MethodDesc{
		Service: testServiceName, Name: "EmptyCall", Codec: protobuf.Binary,
		NewRequest: func() any { return new(testpb.Empty) },
		Invoke:     func(context.Context, any, any) (any, error) { return new(testpb.Empty), nil },
	}
	unaryCall = &fulmar.MethodDesc{
		Service: testServiceName, Name: "UnaryCall", Codec: protobuf.Binary,
		NewRequest: func() any { return new(testpb.SimpleRequest) },
		Invoke: func(ctx context.Context, implementation, request any) (any, error) {
			return implementation.(testService).unary(ctx, request.(*testpb.SimpleRequest))
		},
	}
	streamingOutputCall = &fulmar.MethodDesc{
		Service: testServiceName, Name: "StreamingOutputCall", Codec: protobuf.Binary, ServerStreams: true,
		InvokeStream: fulmar.ServeServerStream(func(implementation any, request *testpb.StreamingOutputCallRequest, stream fulmar.ServerStreamingServer[testpb.StreamingOutputCallResponse]) error {
			return implementation.(testService).serverStream(request, stream)
		}),
	}
	streamingInputCall = &fulmar.MethodDesc{
		Service: testServiceName, Name: "StreamingInputCall", Codec: protobuf.Binary, ClientStreams: true,
		InvokeStream: fulmar.ServeClientStream(func(implementation any, stream fulmar.ClientStreamingServer[testpb.StreamingInputCallRequest, testpb.StreamingInputCallResponse]) error {
			return implementation.(testService).clientStream(stream)
		}),
	}
	fullDuplexCall = &fulmar.MethodDesc{
		Service: testServiceName, Name: "FullDuplexCall", Codec: protobuf.Binary, ClientStreams: true, ServerStreams: true,
		InvokeStream: fulmar.ServeBidiStream(func(implementation any, stream fulmar.BidiStreamingServer[testpb.StreamingOutputCallRequest, testpb.StreamingOutputCallResponse]) error {
			return implementation.(testService).bidi(stream)
		}),
	}
	testServiceDesc = &fulmar.ServiceDesc{
		Name: testServiceName, Methods: []*fulmar.MethodDesc{emptyCall, unaryCall, streamingOutputCall, streamingInputCall, fullDuplexCall},
	}
)
