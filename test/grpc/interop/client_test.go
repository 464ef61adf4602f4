package interop_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // so that the server can
	"google.golang.org/grpc/interop"
	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/fulmar-rpc/fulmar"
)

// serveThere serves the test service of grpc-go until the test ends.
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

// dial returns a client of Fulmar for that.
func dial(t *testing.T) *fulmar.Client {
	t.Helper()
	client, err := fulmar.NewClient(fulmar.ClientConfig{Target: serveThere(t), Protocol: fulmar.GRPC, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

type (
	outRequest  = testpb.StreamingOutputCallRequest
	outResponse = testpb.StreamingOutputCallResponse
	inRequest   = testpb.StreamingInputCallRequest
	inResponse  = testpb.StreamingInputCallResponse
)

// wants returns a request for answers of these sizes.
func wants(sizes ...int32) *outRequest {
	request := new(outRequest)
	for _, size := range sizes {
		request.ResponseParameters = append(request.ResponseParameters, &testpb.ResponseParameters{Size: size})
	}
	return request
}

// Sizes are those of the descriptions of the cases.
var (
	requestSizes  = []int{27182, 8, 1828, 45904}
	responseSizes = []int32{31415, 9, 2653, 58979}
)

func duplex(ctx context.Context, t *testing.T, client *fulmar.Client, options ...fulmar.CallOption) fulmar.BidiStreamingClient[outRequest, outResponse] {
	t.Helper()
	stream, err := fulmar.OpenBidiStream[outRequest, outResponse](ctx, client, fullDuplexCall, options...)
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func TestClient_InteropUnary(t *testing.T) {
	client := dial(t)
	if err := client.Call(t.Context(), emptyCall, new(testpb.Empty), new(testpb.Empty)); err != nil {
		t.Errorf("empty_unary: %v", err)
	}
	large := new(testpb.SimpleResponse)
	err := client.Call(t.Context(), unaryCall, &testpb.SimpleRequest{ResponseSize: 314159, Payload: payload(271828)}, large)
	if err != nil || len(large.GetPayload().GetBody()) != 314159 {
		t.Errorf("large_unary: %d bytes, %v", len(large.GetPayload().GetBody()), err)
	}
	for _, text := range []string{"test status message", "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n"} {
		status := &testpb.EchoStatus{Code: 2, Message: text}
		failed := new(fulmar.Error)
		err := client.Call(t.Context(), unaryCall, &testpb.SimpleRequest{ResponseStatus: status}, new(testpb.SimpleResponse))
		if !errors.As(err, &failed) || failed.Code() != fulmar.Unknown || failed.Message() != text {
			t.Errorf("status_code_and_message, special_status_message: %v", err)
		}
		stream := duplex(t.Context(), t, client)
		if err := stream.Send(&outRequest{ResponseStatus: status}); err != nil {
			t.Error(err)
		}
		_ = stream.CloseSend()
		if _, err := stream.Recv(); !errors.As(err, &failed) || failed.Code() != fulmar.Unknown || failed.Message() != text {
			t.Errorf("status_code_and_message in a stream: %v", err)
		}
	}
	for _, method := range []*fulmar.MethodDesc{
		{Service: testServiceName, Name: "UnimplementedCall", Codec: emptyCall.Codec},
		{Service: "grpc.testing.UnimplementedService", Name: "UnimplementedCall", Codec: emptyCall.Codec},
	} {
		if err := client.Call(t.Context(), method, new(testpb.Empty), new(testpb.Empty)); fulmar.CodeOf(err) != fulmar.Unimplemented {
			t.Errorf("unimplemented_method, unimplemented_service: %v", err)
		}
	}
}

func TestClient_InteropStreams(t *testing.T) {
	client := dial(t)
	in, err := fulmar.OpenClientStream[inRequest, inResponse](t.Context(), client, streamingInputCall)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, size := range requestSizes {
		sum += size
		if err := in.Send(&inRequest{Payload: payload(int32(size))}); err != nil {
			t.Error(err)
		}
	}
	if answer, err := in.CloseAndRecv(); err != nil || int(answer.GetAggregatedPayloadSize()) != sum {
		t.Errorf("client_streaming: %v, %v", answer, err)
	}
	out, err := fulmar.OpenServerStream[outRequest, outResponse](t.Context(), client, streamingOutputCall, wants(responseSizes...))
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for answer, err := range out.All() {
		if err != nil || len(answer.GetPayload().GetBody()) != int(responseSizes[count]) {
			t.Fatalf("server_streaming: answer %d: %v", count, err)
		}
		count++
	}
	if count != len(responseSizes) {
		t.Errorf("server_streaming: %d answers", count)
	}
	ping := duplex(t.Context(), t, client)
	for i, size := range requestSizes {
		request := wants(responseSizes[i])
		request.Payload = payload(int32(size))
		if err := ping.Send(request); err != nil {
			t.Error(err)
		}
		if answer, err := ping.Recv(); err != nil || len(answer.GetPayload().GetBody()) != int(responseSizes[i]) {
			t.Fatalf("ping_pong: %v", err)
		}
	}
	_ = ping.CloseSend()
	if _, err := ping.Recv(); err != io.EOF {
		t.Errorf("ping_pong: %v", err)
	}
	empty := duplex(t.Context(), t, client)
	_ = empty.CloseSend()
	if _, err := empty.Recv(); err != io.EOF {
		t.Errorf("empty_stream: %v", err)
	}
}

func TestClient_InteropEnds(t *testing.T) {
	client := dial(t)
	late, err := fulmar.OpenBidiStream[outRequest, outResponse](t.Context(), client, fullDuplexCall, fulmar.Timeout(time.Millisecond))
	if err == nil { // else the time was over before
		_ = late.Send(&outRequest{Payload: payload(27182)})
		_, err = late.Recv()
	}
	if fulmar.CodeOf(err) != fulmar.DeadlineExceeded {
		t.Errorf("timeout_on_sleeping_server: %v", err)
	}
	in, err := fulmar.OpenClientStream[inRequest, inResponse](t.Context(), client, streamingInputCall)
	if err != nil {
		t.Fatal(err)
	}
	in.Cancel()
	if _, err := in.CloseAndRecv(); fulmar.CodeOf(err) != fulmar.Canceled {
		t.Errorf("cancel_after_begin: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	first := duplex(ctx, t, client)
	if err := first.Send(wants(31415)); err != nil {
		t.Error(err)
	}
	if _, err := first.Recv(); err != nil {
		t.Error(err)
	}
	cancel()
	if _, err := first.Recv(); fulmar.CodeOf(err) != fulmar.Canceled {
		t.Errorf("cancel_after_first_response: %v", err)
	}
	ctx = fulmar.WithTransient(fulmar.WithTransient(t.Context(), echoInitial, "test_initial_metadata_value"), echoTrailing, "\x0a\x0b\x0a\x0b\x0a\x0b")
	var metadata map[string]string
	err = client.Call(ctx, unaryCall, &testpb.SimpleRequest{ResponseSize: 1}, new(testpb.SimpleResponse), fulmar.ReceiveMetadata(&metadata))
	if err != nil || metadata[echoInitial] != "test_initial_metadata_value" || metadata[echoTrailing] != "\x0a\x0b\x0a\x0b\x0a\x0b" {
		t.Errorf("custom_metadata: %v, %q", err, metadata)
	}
	echoed := duplex(ctx, t, client)
	if err := echoed.Send(wants(1)); err != nil {
		t.Error(err)
	}
	_ = echoed.CloseSend()
	if header, err := echoed.Header(); err != nil || header[echoInitial] != "test_initial_metadata_value" {
		t.Errorf("custom_metadata in a stream: header %q, %v", header, err)
	}
	for _, err := range echoed.All() {
		if err != nil {
			t.Error(err)
		}
	}
	if trailer := echoed.Trailer(); trailer[echoTrailing] != "\x0a\x0b\x0a\x0b\x0a\x0b" {
		t.Errorf("custom_metadata in a stream: trailer %q", trailer)
	}
}

// TestClient_InteropSoaks: calls that share a client, and calls with a client of their own.
func TestClient_InteropSoaks(t *testing.T) {
	address := serveThere(t)
	config := fulmar.ClientConfig{Target: address, Protocol: fulmar.GRPC, Timeout: time.Minute, ConnectTimeout: time.Minute}
	shared, err := fulmar.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	call := func(client *fulmar.Client) error {
		response := new(testpb.SimpleResponse)
		err := client.Call(t.Context(), unaryCall, &testpb.SimpleRequest{ResponseSize: soakResponse, Payload: payload(soakRequest)}, response)
		if length := len(response.GetPayload().GetBody()); err == nil && length != soakResponse {
			err = fmt.Errorf("an answer of %d bytes", length)
		}
		return err
	}
	for name, one := range map[string]func() error{
		"rpc_soak": func() error { return call(shared) },
		"channel_soak": func() error {
			client, err := fulmar.NewClient(config)
			if err != nil {
				return err
			}
			return errors.Join(call(client), client.Close())
		},
	} {
		var all sync.WaitGroup
		for range soakWorkers {
			all.Go(func() {
				for range soakCalls / soakWorkers {
					if err := one(); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
			})
		}
		all.Wait()
	}
	if err := shared.Close(); err != nil {
		t.Error(err)
	}
}
