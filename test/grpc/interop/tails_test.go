package interop_test

import (
	"testing"

	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/protobuf/proto"

	"github.com/fulmar-rpc/fulmar"
)

// tailed returns a message of 16,381 bytes: behind its prefix of five, two are left for a second
// DATA frame.
func tailed(t *testing.T) *inRequest {
	t.Helper()
	request := &inRequest{Payload: payload(16300)}
	request.Payload.Body = append(request.Payload.Body, make([]byte, 16381-proto.Size(request))...)
	if size := proto.Size(request); size != 16381 {
		t.Fatalf("a message of %d bytes", size)
	}
	return request
}

// manyTails are more than HTTP2TinyData, with what other frames excuse.
const manyTails = 4000

// TestTails_OfMessages: messages whose last DATA frame has two bytes are no attack, from one
// side nor from the other.
func TestTails_OfMessages(t *testing.T) {
	request := tailed(t)
	want := int32(manyTails * len(request.GetPayload().GetBody()))
	t.Run("from grpc-go", func(t *testing.T) {
		conn := connect(t, serve(t))
		defer func() { _ = conn.Close() }()
		stream, err := testgrpc.NewTestServiceClient(conn).StreamingInputCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range manyTails {
			if stream.Send(request) != nil {
				break // CloseAndRecv says why
			}
		}
		if answer, err := stream.CloseAndRecv(); err != nil || answer.GetAggregatedPayloadSize() != want {
			t.Errorf("%v, %v", answer, err)
		}
	})
	t.Run("from grpc-go's server", func(t *testing.T) {
		client := dial(t)
		size := int32(len(request.GetPayload().GetBody())) // and the answer is as long, but for the field's number
		stream, err := fulmar.OpenServerStream[outRequest, outResponse](t.Context(), client, streamingOutputCall, wants(repeatedly(manyTails, size)...))
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		for answer, err := range stream.All() {
			if err != nil || proto.Size(answer) != 16381 {
				t.Fatalf("answer %d of %d bytes: %v", count, proto.Size(answer), err)
			}
			count++
		}
		if count != manyTails {
			t.Errorf("%d answers", count)
		}
	})
}

func repeatedly(n int, size int32) (sizes []int32) {
	for range n {
		sizes = append(sizes, size)
	}
	return sizes
}
