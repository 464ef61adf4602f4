package compat_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// silent is a service that answers with messages that are nil, and says how many bytes came.
type silent struct {
	testpb.UnimplementedTestServiceServer
	came chan string
}

func (s *silent) note(message proto.Message, err error) error {
	s.came <- fmt.Sprintf("%T of %d bytes, valid %v, %v", message, proto.Size(message), message.ProtoReflect().IsValid(), err)
	return err
}

// EmptyCall has no error either, in the words that some say it with.
func (s *silent) EmptyCall(_ context.Context, request *testpb.Empty) (*testpb.Empty, error) {
	return nil, s.note(request, status.Error(codes.OK, ""))
}

// UnaryCall answers with nothing.
func (s *silent) UnaryCall(_ context.Context, request *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	return nil, s.note(request, nil)
}

// StreamingInputCall takes two messages.
func (s *silent) StreamingInputCall(stream testpb.TestService_StreamingInputCallServer) error {
	for range 2 {
		if err := s.note(stream.Recv()); err != nil {
			return err
		}
	}
	return stream.SendAndClose(nil)
}

// StreamingOutputCall sends two messages.
func (s *silent) StreamingOutputCall(request *testpb.StreamingOutputCallRequest, stream testpb.TestService_StreamingOutputCallServer) error {
	if err := s.note(request, nil); err != nil {
		return err
	}
	if err := stream.Send(nil); err != nil {
		return err
	}
	return stream.SendMsg(nil)
}

// TestNil_IsEmpty: messages that are nil arrive as empty ones, from stubs and from handlers, as they
// do with grpc-go on both sides.
func TestNil_IsEmpty(t *testing.T) {
	s := &silent{came: make(chan string, 8)}
	here, there := serveBoth(t, s)
	ask := func(conn closer) (told []string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		api := testpb.NewTestServiceClient(conn)
		note := func(message proto.Message, err error) {
			told = append(told, fmt.Sprintf("%d bytes, valid %v, %v", proto.Size(message), message.ProtoReflect().IsValid(), err))
			for len(s.came) > 0 {
				told = append(told, <-s.came)
			}
		}
		note(api.EmptyCall(ctx, nil))
		note(api.UnaryCall(ctx, nil))
		response := new(testpb.SimpleResponse)
		note(response, conn.Invoke(ctx, testpb.TestService_UnaryCall_FullMethodName, nil, response))
		input, err := api.StreamingInputCall(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := input.Send(nil); err != nil {
			t.Error(err)
		}
		if err := input.SendMsg(nil); err != nil {
			t.Error(err)
		}
		note(input.CloseAndRecv())
		output, err := api.StreamingOutputCall(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			note(output.Recv())
		}
		if _, err := output.Recv(); err != io.EOF {
			t.Error(err)
		}
		return told
	}
	asked := func(dial func(*testing.T, string) closer, address string) []string {
		conn := dial(t, address)
		told := ask(conn)
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		return told
	}
	want := asked(dialThere, there)
	if len(want) != 12 {
		t.Fatalf("%d lines of grpc-go: %q", len(want), want)
	}
	for name, got := range map[string][]string{"both": asked(dialHere, here), "service": asked(dialThere, here), "client": asked(dialHere, there)} {
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
