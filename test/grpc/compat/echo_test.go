package compat_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
)

// mirror is a service that sends back what came, as it came.
type mirror struct {
	testpb.UnimplementedTestServiceServer
}

// UnaryCall sends it in front of its message.
func (mirror) UnaryCall(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	return &testpb.SimpleResponse{}, grpc.SetHeader(ctx, md)
}

// EmptyCall sends it behind its message.
func (mirror) EmptyCall(ctx context.Context, _ *testpb.Empty) (*testpb.Empty, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	return &testpb.Empty{}, grpc.SetTrailer(ctx, md)
}

// FullDuplexCall does both.
func (mirror) FullDuplexCall(stream testpb.TestService_FullDuplexCallServer) error {
	md, _ := metadata.FromIncomingContext(stream.Context())
	stream.SetTrailer(md)
	return errors.Join(stream.SendHeader(md), stream.Send(&testpb.StreamingOutputCallResponse{}))
}

// mirrored returns header and trailer of unary calls, and of a stream.
func mirrored(t *testing.T, conn closer, sent metadata.MD) (back [4]metadata.MD) {
	t.Helper()
	ctx, cancel := context.WithTimeout(metadata.NewOutgoingContext(t.Context(), sent), time.Minute)
	defer cancel()
	api := testpb.NewTestServiceClient(conn)
	if _, err := api.UnaryCall(ctx, &testpb.SimpleRequest{}, grpc.Header(&back[0])); err != nil {
		t.Error(err)
	}
	if _, err := api.EmptyCall(ctx, &testpb.Empty{}, grpc.Trailer(&back[1])); err != nil {
		t.Error(err)
	}
	stream, err := api.FullDuplexCall(ctx, grpc.Header(&back[2]), grpc.Trailer(&back[3]))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = stream.Recv()
	}
	if err != io.EOF {
		t.Error(err)
	}
	for _, md := range back {
		md.Delete("content-type")         // of the answer, which clients of grpc-go show
		md.Delete("grpc-accept-encoding") // what a caller takes, which servers of grpc-go say to it
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	return back
}

// TestMirror_TheSame: metadata that goes back as it came is what it is with grpc-go.
func TestMirror_TheSame(t *testing.T) {
	here, there := serveBoth(t, mirror{})
	sent := metadata.MD{"tag": {"a", "b"}, "raw-bin": {" \x00 ", " "}, "te": {"trailers"}, "authorization": {"x"}}
	want := mirrored(t, dialThere(t, there), sent)
	for name, conn := range map[string]closer{"both": dialHere(t, here), "service": dialThere(t, here), "client": dialHere(t, there)} {
		got := mirrored(t, conn, sent)
		for i := range got {
			if !maps.EqualFunc(got[i], want[i], slices.Equal) {
				t.Errorf("%s, %d: %q, want %q", name, i, got[i], want[i])
			}
		}
	}
}
