package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/protobuf"
)

// handler is what a method of the test's service does.
type handler func(ctx context.Context, in []byte) ([]byte, error)

// serve starts a server whose service test.Echo has the given methods, and returns its
// address and what stops it gracefully.
func serve(t testing.TB, config fulmar.ServerConfig, methods map[string]handler) (address string, stop func() error) {
	t.Helper()
	config.Address = "127.0.0.1:0"
	server, err := fulmar.NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	desc := &fulmar.ServiceDesc{Name: "test.Echo"}
	for name, handle := range methods {
		desc.Methods = append(desc.Methods, &fulmar.MethodDesc{
			Service: "test.Echo", Name: name, Codec: protobuf.Codec{},
			NewRequest: func() any { return new(wrapperspb.BytesValue) },
			Invoke: func(ctx context.Context, _, request any) (any, error) {
				out, err := handle(ctx, request.(*wrapperspb.BytesValue).Value)
				if err != nil {
					return nil, err
				}
				return wrapperspb.Bytes(out), nil
			},
		})
	}
	server.RegisterService(desc, t)
	addr, err := server.Listen()
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(context.Background()) }()
	stop = sync.OnceValue(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		return errors.Join(server.Shutdown(ctx), <-served)
	})
	t.Cleanup(func() { _ = stop() })
	return addr.String(), stop
}

func dial(t *testing.T, address string, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func call(ctx context.Context, conn *grpc.ClientConn, method string, in []byte, options ...grpc.CallOption) ([]byte, error) {
	out := new(wrapperspb.BytesValue)
	err := conn.Invoke(ctx, "/test.Echo/"+method, wrapperspb.Bytes(in), out, options...)
	return out.Value, err
}

func echo(_ context.Context, in []byte) ([]byte, error) { return in, nil }

// within bounds the wait of a test for what must happen.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestUnary_EchoesMessagesOfAllSizes(t *testing.T) {
	address, _ := serve(t, fulmar.ServerConfig{}, map[string]handler{"Say": echo})
	conn := dial(t, address, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	for _, size := range []int{0, 1, 100, 4 << 10, 16 << 10, 100 << 10, 3 << 20, 10 << 20} {
		for _, packed := range []bool{false, true} {
			var options []grpc.CallOption
			if packed {
				options = append(options, grpc.UseCompressor(gzip.Name))
			}
			in := bytes.Repeat([]byte("fulmar "), size/7+1)[:size]
			out, err := call(within(t), conn, "Say", in, options...)
			if err != nil || !bytes.Equal(in, out) {
				t.Errorf("%d bytes, gzip %v: got %d bytes, %v", size, packed, len(out), err)
			}
		}
	}
}

func TestUnary_TellsErrorsWithDetails(t *testing.T) {
	rich, err := status.New(codes.FailedPrecondition, "no: 100% ü").WithDetails(&errdetails.ErrorInfo{Reason: "EMPTY"})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := proto.Marshal(rich.Proto())
	if err != nil {
		t.Fatal(err)
	}
	address, _ := serve(t, fulmar.ServerConfig{MaxMessageBytes: 1 << 20}, map[string]handler{
		"Detailed": func(context.Context, []byte) ([]byte, error) {
			return nil, fulmar.NewError(fulmar.FailedPrecondition, "no: 100% ü").WithDetails(raw)
		},
		"Plain": func(context.Context, []byte) ([]byte, error) { return nil, errors.New("what") },
		"Panic": func(context.Context, []byte) ([]byte, error) { panic("boo") },
		"Business": func(context.Context, []byte) ([]byte, error) {
			return nil, fulmar.NewBusinessError(1001, "limit", map[string]string{"a": "b"})
		},
		"Say":  echo,
		"Long": func(context.Context, []byte) ([]byte, error) { return make([]byte, 3<<20), nil },
	})
	conn := dial(t, address)
	_, err = call(within(t), conn, "Detailed", nil)
	got := status.Convert(err)
	if got.Code() != codes.FailedPrecondition || got.Message() != "no: 100% ü" || len(got.Details()) != 1 ||
		got.Details()[0].(*errdetails.ErrorInfo).GetReason() != "EMPTY" {
		t.Errorf("detailed: %v %v", err, got.Details())
	}
	var trailer metadata.MD
	for method, want := range map[string]codes.Code{"Plain": codes.Unknown, "Panic": codes.Internal, "Business": codes.Internal, "Missing": codes.Unimplemented, "Long": codes.Internal} {
		_, err := call(within(t), conn, method, nil, grpc.Trailer(&trailer))
		if status.Code(err) != want {
			t.Errorf("%s: %v, want %v", method, err, want)
		}
		if method == "Business" && (strings.Join(trailer["biz-status"], "") != "1001" || strings.Join(trailer["biz-extra"], "") != `{"a":"b"}`) {
			t.Errorf("business error: %v", trailer)
		}
		if refused := strings.Join(trailer["fulmar-executed"], "") == "no"; refused != (method == "Missing") {
			t.Errorf("%s: refused before the handler: %v", method, refused)
		}
	}
	if _, err := call(within(t), conn, "Say", make([]byte, 2<<20)); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("message that is too long: %v", err)
	}
	if _, err := call(within(t), conn, "Say", make([]byte, 2<<20), grpc.UseCompressor(gzip.Name)); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("message that is too long when it is inflated: %v", err)
	}
	if err := conn.Invoke(within(t), "/test.Other/Say", &wrapperspb.BytesValue{}, &wrapperspb.BytesValue{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("unknown service: %v", err)
	}
}

func TestUnary_CarriesMetadataBothWays(t *testing.T) {
	address, _ := serve(t, fulmar.ServerConfig{}, map[string]handler{"Say": func(ctx context.Context, _ []byte) ([]byte, error) {
		info, _ := fulmar.CallFrom(ctx)
		text, _ := info.Metadata().Transient("x-text")
		binary, _ := info.Metadata().Transient("x-bytes-bin")
		persistent, _ := info.Metadata().Persistent("TENANT_ID")
		err := errors.Join(fulmar.SetReplyMetadata(ctx, "x-back", "there"), fulmar.SetReplyMetadata(ctx, "x-back-bin", "\x00\xff"))
		return fmt.Appendf(nil, "%s|%x|%s", text, binary, persistent), err
	}})
	conn := dial(t, address)
	ctx := metadata.AppendToOutgoingContext(within(t), "x-text", "one", "x-text", "two", "x-bytes-bin", "\x00\x01", "rpc-persist-tenant-id", "7")
	var header metadata.MD
	out, err := call(ctx, conn, "Say", nil, grpc.Header(&header))
	if err != nil || string(out) != "one,two|0001|7" {
		t.Errorf("got %q, %v", out, err)
	}
	if strings.Join(header["x-back"], "") != "there" || strings.Join(header["x-back-bin"], "") != "\x00\xff" {
		t.Errorf("headers of the answer: %v", header)
	}
}

func TestUnary_EndsWithItsCaller(t *testing.T) {
	ended, entered := make(chan error, 2), make(chan time.Duration, 2)
	address, _ := serve(t, fulmar.ServerConfig{}, map[string]handler{"Wait": func(ctx context.Context, _ []byte) ([]byte, error) {
		deadline, ok := ctx.Deadline()
		if !ok {
			entered <- 0
		} else {
			entered <- time.Until(deadline)
		}
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	}})
	conn := dial(t, address)
	ctx, cancel := context.WithCancel(within(t))
	go func() {
		<-entered
		cancel()
	}()
	if _, err := call(ctx, conn, "Wait", nil); status.Code(err) != codes.Canceled {
		t.Errorf("canceled call: %v", err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the handler's context ended with %v", err)
	}
	ctx, cancel = context.WithTimeout(within(t), 50*time.Millisecond)
	defer cancel()
	if _, err := call(ctx, conn, "Wait", nil); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("call with a deadline: %v", err)
	}
	if left := <-entered; left <= 0 || left > 50*time.Millisecond {
		t.Errorf("the handler had %v", left)
	}
	<-ended
}

func TestUnary_ManyCallersOnOneConnection(t *testing.T) {
	address, _ := serve(t, fulmar.ServerConfig{}, map[string]handler{"Say": echo})
	conn := dial(t, address)
	var callers sync.WaitGroup
	for i := range 100 {
		callers.Go(func() {
			for j := range 50 {
				in := bytes.Repeat([]byte{byte(i), byte(j)}, 10+i*j%3000)
				out, err := call(within(t), conn, "Say", in)
				if err != nil || !bytes.Equal(in, out) {
					t.Errorf("caller %d, call %d: %d bytes, %v", i, j, len(out), err)
					return
				}
			}
		})
	}
	callers.Wait()
}

// TestShutdown_LosesNoCall stops servers under load. Callers that were told go to the next
// server, as behind a balancer: not one call may fail.
func TestShutdown_LosesNoCall(t *testing.T) {
	first, stop := serve(t, fulmar.ServerConfig{}, map[string]handler{"Say": echo})
	second, _ := serve(t, fulmar.ServerConfig{}, map[string]handler{"Say": echo})
	var stopped atomic.Bool
	conn := dial(t, "passthrough:///any", grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		address := first
		if stopped.Load() {
			address = second
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}))
	var callers sync.WaitGroup
	var made, afterwards atomic.Int64
	const enough = 500
	begun, again, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	for range 20 {
		callers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if _, err := call(within(t), conn, "Say", []byte("x"), grpc.WaitForReady(true)); err != nil {
					t.Errorf("call %d: %v", made.Load(), err)
					return
				}
				switch made.Add(1) {
				case enough:
					close(begun)
				case afterwards.Load():
					close(again)
				}
			}
		})
	}
	select {
	case <-begun:
	case <-within(t).Done():
		t.Fatal("no calls are made")
	}
	stopped.Store(true)
	if err := stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	afterwards.Store(made.Load() + enough)
	select {
	case <-again:
	case <-within(t).Done():
		t.Error("no calls are made after the stop")
	}
	close(done)
	callers.Wait()
}
