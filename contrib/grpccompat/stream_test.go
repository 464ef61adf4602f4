package grpccompat_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/contrib/grpccompat"
)

// TestStream_AllKinds: stubs and services of grpc-go, in each direction.
func TestStream_AllKinds(t *testing.T) {
	eachWay(t, &service{}, setting{}, func(t *testing.T, client *grpccompat.Client) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		api := testpb.NewTestServiceClient(client)
		output, err := api.StreamingOutputCall(ctx, &testpb.StreamingOutputCallRequest{ResponseParameters: []*testpb.ResponseParameters{{Size: 3}, {Size: 1 << 20}, {Size: 0}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int{3, 1 << 20, 0} {
			if message, err := output.Recv(); err != nil || len(message.GetPayload().GetBody()) != size {
				t.Errorf("%d bytes, %v; want %d", len(message.GetPayload().GetBody()), err, size)
			}
		}
		for range 2 {
			if _, err := output.Recv(); err != io.EOF {
				t.Error(err)
			}
		}
		input, err := api.StreamingInputCall(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if err := input.Send(&testpb.StreamingInputCallRequest{Payload: body(1000)}); err != nil {
				t.Error(err)
			}
		}
		if sum, err := input.CloseAndRecv(); err != nil || sum.GetAggregatedPayloadSize() != 10_000 {
			t.Errorf("%v, %v", sum, err)
		}
		duplex, err := api.FullDuplexCall(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			if err := duplex.Send(&testpb.StreamingOutputCallRequest{Payload: body(i)}); err != nil {
				t.Error(err)
			}
			if message, err := duplex.Recv(); err != nil || len(message.GetPayload().GetBody()) != i {
				t.Errorf("%v, %v", message, err)
			}
		}
		if err := duplex.CloseSend(); err != nil {
			t.Error(err)
		}
		if _, err := duplex.Recv(); err != io.EOF {
			t.Error(err)
		}
	})
}

// TestStream_Metadata: header at once or with the first message, trailer, and errors.
func TestStream_Metadata(t *testing.T) {
	s := &service{duplex: func(stream testpb.TestService_FullDuplexCallServer) error { return sendMetadata(t, stream) }}
	want := map[string]string{"at once": "1 2 3", "message": "1 2", "neither": "1 2"}
	eachWay(t, s, setting{}, func(t *testing.T, client *grpccompat.Client) {
		for way, values := range want {
			var optHeader, optTrailer metadata.MD
			finished := 0
			stream, err := testpb.NewTestServiceClient(client).FullDuplexCall(
				metadata.AppendToOutgoingContext(t.Context(), "way", way), grpc.Header(&optHeader), grpc.Trailer(&optTrailer), grpc.OnFinish(func(err error) {
					if finished++; status.Code(err) != codes.OutOfRange {
						t.Errorf("%s: it ended with %v", way, err)
					}
				}))
			if err != nil {
				t.Fatal(err)
			}
			header, err := stream.Header()
			if err != nil || strings.Join(header.Get("h"), " ") != values {
				t.Errorf("%s: header %q, %v", way, header, err)
			}
			if err := stream.CloseSend(); err != nil {
				t.Error(err)
			}
			if way == "message" {
				if _, err := stream.Recv(); err != nil {
					t.Error(err)
				}
			}
			for range 2 {
				if _, err := stream.Recv(); status.Code(err) != codes.OutOfRange || status.Convert(err).Message() != "that is all" {
					t.Errorf("%s: ended with %v", way, err)
				}
			}
			if got := strings.Join(stream.Trailer().Get("t"), " "); got != "1 2" || finished != 1 {
				t.Errorf("%s: trailer %q, finished %d times", way, got, finished)
			}
			if strings.Join(optHeader.Get("h"), " ") != values || strings.Join(optTrailer.Get("t"), " ") != "1 2" {
				t.Errorf("%s: by options: header %q, trailer %q", way, optHeader, optTrailer)
			}
		}
	})
}

// sendMetadata is a handler that sends it in the way that its caller asks for.
func sendMetadata(t *testing.T, stream testpb.TestService_FullDuplexCallServer) error {
	md, _ := metadata.FromIncomingContext(stream.Context())
	if method, ok := grpc.Method(stream.Context()); !ok || method != testpb.TestService_FullDuplexCall_FullMethodName {
		t.Errorf("the method is %q", method)
	}
	way := md.Get("way")[0]
	if err := errors.Join(stream.SetHeader(metadata.Pairs("h", "1")), grpc.SetHeader(stream.Context(), metadata.Pairs("h", "2"))); err != nil {
		t.Error(err)
	}
	stream.SetTrailer(metadata.Pairs("t", "1"))
	if err := grpc.SetTrailer(stream.Context(), metadata.Pairs("t", "2")); err != nil {
		t.Error(err)
	}
	switch way {
	case "at once":
		if err := stream.SendHeader(metadata.Pairs("h", "3")); err != nil {
			t.Error(err)
		}
		if err := stream.SendHeader(nil); err == nil {
			t.Error("two headers were sent")
		}
		_, err := stream.Recv()
		if err != io.EOF {
			t.Error(err)
		}
	case "message":
		if err := stream.Send(&testpb.StreamingOutputCallResponse{}); err != nil {
			t.Error(err)
		}
		if err := stream.SetHeader(metadata.Pairs("late", "1")); err == nil {
			t.Error("a header was set behind a message")
		}
	}
	return status.Error(codes.OutOfRange, "that is all")
}

// TestStream_Cancel: the handler learns of a caller that goes, and the caller of its deadline.
func TestStream_Cancel(t *testing.T) {
	gone := make(chan error, 1)
	s := &service{duplex: func(stream testpb.TestService_FullDuplexCallServer) error {
		if err := stream.Send(&testpb.StreamingOutputCallResponse{}); err != nil {
			t.Error(err)
		}
		<-stream.Context().Done()
		_, err := stream.Recv()
		gone <- err
		return stream.Context().Err()
	}}
	eachWay(t, s, setting{}, func(t *testing.T, client *grpccompat.Client) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stream, err := testpb.NewTestServiceClient(client).FullDuplexCall(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Error(err)
		}
		cancel()
		if _, err := stream.Recv(); status.Code(err) != codes.Canceled {
			t.Errorf("the caller got %v", err)
		}
		if err := <-gone; status.Code(err) != codes.Canceled {
			t.Errorf("the handler got %v", err)
		}
	})
}

// TestStream_Cardinality: a server that breaks the rules of the method's kind.
func TestStream_Cardinality(t *testing.T) {
	const method = "/grpc.testing.TestService/FullDuplexCall"
	for sent, want := range map[int]codes.Code{0: codes.Internal, 1: codes.OK, 2: codes.Internal} {
		s := &service{duplex: func(stream testpb.TestService_FullDuplexCallServer) error {
			for range sent {
				if err := stream.Send(&testpb.StreamingOutputCallResponse{Payload: body(5)}); err != nil {
					return err
				}
			}
			return nil
		}}
		eachWay(t, s, setting{}, func(t *testing.T, client *grpccompat.Client) {
			stream, err := client.NewStream(t.Context(), &grpc.StreamDesc{StreamName: "FullDuplexCall", ClientStreams: true}, method)
			if err != nil {
				t.Fatal(err)
			}
			got := new(testpb.StreamingOutputCallResponse)
			err = stream.RecvMsg(got)
			if status.Code(err) != want || want == codes.OK && len(got.GetPayload().GetBody()) != 5 {
				t.Errorf("%d messages: %v, %v", sent, got, err)
			}
		})
	}
}

// TestStream_Interceptors: those of grpc-go on both sides, in their order, with a stream of
// their own.
func TestStream_Interceptors(t *testing.T) {
	var mu sync.Mutex
	var steps []string
	note := func(step string) {
		mu.Lock()
		defer mu.Unlock()
		steps = append(steps, step)
	}
	with := setting{
		server: fulmar.ServerConfig{StreamInterceptors: []fulmar.StreamInterceptor{func(ctx context.Context, call fulmar.Stream, next fulmar.StreamNext) error {
			note("fulmar")
			return next(ctx, call)
		}}},
		registrar: grpccompat.ServerConfig{StreamInterceptors: []grpc.StreamServerInterceptor{
			func(implementation any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
				if !info.IsServerStream || info.IsClientStream || info.FullMethod != testpb.TestService_StreamingOutputCall_FullMethodName {
					t.Errorf("%+v", info)
				}
				note("server")
				return handler(implementation, counting{stream, note})
			},
		}},
		client: grpccompat.ClientConfig{StreamInterceptors: []grpc.StreamClientInterceptor{
			func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
				note("client")
				return streamer(ctx, desc, cc, method, options...)
			},
		}},
	}
	eachWay(t, &service{}, with, func(t *testing.T, client *grpccompat.Client) {
		steps = nil
		stream, err := testpb.NewTestServiceClient(client).StreamingOutputCall(t.Context(), &testpb.StreamingOutputCallRequest{ResponseParameters: []*testpb.ResponseParameters{{Size: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Error(err)
		}
		if _, err := stream.Recv(); err != io.EOF {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if got, want := strings.Join(steps, ", "), "client, fulmar, server, receives, sends"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// counting is a stream that an interceptor has wrapped.
type counting struct {
	grpc.ServerStream
	note func(string)
}

func (c counting) SendMsg(message any) error {
	c.note("sends")
	return c.ServerStream.SendMsg(message)
}

func (c counting) RecvMsg(message any) error {
	c.note("receives")
	return c.ServerStream.RecvMsg(message)
}
