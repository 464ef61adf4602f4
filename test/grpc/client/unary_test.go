package client_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/protoservice"
)

func TestClient_Unary(t *testing.T) {
	_, address := serve(t, &pantry{})
	client, pantry := dial(t, fulmar.ClientConfig{Target: address})
	for _, n := range []int{0, 1, 1000, 100_000, 3_000_000} {
		want := jar(n)
		got, err := pantry.Put(t.Context(), want)
		if err != nil || !proto.Equal(got, want) {
			t.Fatalf("jar of %d: %v", n, err)
		}
	}
	if _, err := pantry.Clear(t.Context(), &emptypb.Empty{}); err != nil {
		t.Errorf("a message without bytes: %v", err)
	}
	method, err := fulmar.RawProtobufMethod("fulmar.test.v1.Pantry", "Clear", false)
	if err != nil {
		t.Fatal(err)
	}
	raw, reply := fulmar.Raw{}, fulmar.Raw{}
	if err := client.Call(t.Context(), method, &raw, &reply); err != nil || len(reply) != 0 {
		t.Errorf("raw: %q, %v", reply, err)
	}
	if stats := client.Stats(); stats.Connections != 1 {
		t.Errorf("%d connections for calls one after the other, want 1", stats.Connections)
	}
}

func TestClient_ErrorsOfTheServer(t *testing.T) {
	_, address := serve(t, &pantry{})
	client, pantry := dial(t, fulmar.ClientConfig{Target: address})
	_, err := pantry.Find(t.Context(), &protoservice.FindRequest{})
	var failed *fulmar.Error
	if !errors.As(err, &failed) {
		t.Fatalf("%T %v", err, err)
	}
	if failed.Code() != fulmar.NotFound || failed.Message() != "no jar of that name: ü %" || failed.Origin() != fulmar.OriginRemote || failed.Address() != address {
		t.Errorf("got %v from %v", failed, failed.Origin())
	}
	var details status.Status
	if err := proto.Unmarshal(failed.Details(), &details); err != nil || len(details.Details) != 1 || details.Code != 5 {
		t.Errorf("details %v, %v", &details, err)
	}
	method, err := fulmar.RawProtobufMethod("fulmar.test.v1.Pantry", "Nothing", false)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Call(t.Context(), method, &fulmar.Raw{}, &fulmar.Raw{}); fulmar.CodeOf(err) != fulmar.Unimplemented {
		t.Errorf("an unknown method: %v", err)
	}
}

// echoMetadata answers with what it got: a header, and trailers.
func echoMetadata(ctx context.Context, jar *protoservice.Jar) (*protoservice.Jar, error) {
	in, _ := metadata.FromIncomingContext(ctx)
	for key, values := range in {
		if strings.HasPrefix(key, ":") || strings.HasPrefix(key, "grpc-") || slices.Contains([]string{"content-type", "user-agent"}, key) {
			continue
		}
		for _, value := range values {
			if key == "later-bin" {
				_ = grpc.SetTrailer(ctx, metadata.Pairs(key, value))
			} else {
				_ = grpc.SetHeader(ctx, metadata.Pairs(key, value))
			}
		}
	}
	_ = grpc.SetTrailer(ctx, metadata.Pairs("twice", "a", "twice", "b"))
	return jar, nil
}

func TestClient_Metadata(t *testing.T) {
	_, address := serve(t, &pantry{put: echoMetadata})
	_, pantry := dial(t, fulmar.ClientConfig{Target: address, Caller: "cook"})
	ctx := fulmar.WithTransient(t.Context(), "authorization", "Bearer of a token")
	ctx = fulmar.WithTransient(ctx, "now-bin", "\x00\xff")
	ctx = fulmar.WithTransient(ctx, "later-bin", "\x01\xfe")
	ctx = fulmar.WithTransient(ctx, "USER_ID", "7")
	ctx = fulmar.WithPersistent(ctx, "TRACE", "t")
	var got map[string]string
	if _, err := pantry.Put(ctx, jar(1), fulmar.ReceiveMetadata(&got)); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"authorization": "Bearer of a token", "now-bin": "\x00\xff", "later-bin": "\x01\xfe", "source-service": "cook",
		"rpc-transit-user-id": "7", "rpc-persist-trace": "t", "twice": "a,b",
	}
	if !maps.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	for key, value := range map[string]string{"grpc-timeout": "1", "content-type": "x", "a b": "c", "ok": "new\nline", "UPSTREAM_X": "1"} {
		if _, err := pantry.Put(fulmar.WithTransient(t.Context(), key, value), jar(1)); fulmar.CodeOf(err) != fulmar.InvalidArgument {
			t.Errorf("%q: %q: %v", key, value, err)
		}
	}
}

func TestClient_DeadlineAndCancellation(t *testing.T) {
	told, begun := make(chan error, 10), make(chan struct{}, 10)
	_, address := serve(t, &pantry{put: func(ctx context.Context, _ *protoservice.Jar) (*protoservice.Jar, error) {
		if _, ok := ctx.Deadline(); !ok {
			t.Error("the server knows no deadline")
		}
		begun <- struct{}{}
		<-ctx.Done()
		told <- ctx.Err()
		return nil, ctx.Err()
	}})
	client, pantry := dial(t, fulmar.ClientConfig{Target: address})
	_, err := pantry.Put(t.Context(), jar(1), fulmar.Timeout(30*time.Millisecond))
	if fulmar.CodeOf(err) != fulmar.DeadlineExceeded {
		t.Errorf("deadline: %v", err)
	}
	<-begun
	<-told
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	if _, err := pantry.Put(ctx, jar(1)); fulmar.CodeOf(err) != fulmar.Canceled {
		t.Errorf("canceled: %v", err)
	}
	if err := <-told; !errors.Is(err, context.Canceled) {
		t.Errorf("the handler ended with %v", err)
	}
	if stats := client.Stats(); stats.Connections != 1 {
		t.Errorf("%d connections, want the same one", stats.Connections)
	}
}

func TestClient_Gzip(t *testing.T) {
	_, address := serve(t, &pantry{put: func(ctx context.Context, jar *protoservice.Jar) (*protoservice.Jar, error) {
		return jar, grpc.SetSendCompressor(ctx, "gzip")
	}})
	_, large := dial(t, fulmar.ClientConfig{Target: address, MaxMessageBytes: 1 << 20})
	want := jar(1000_000)
	if got, err := large.Put(t.Context(), want); err != nil || !proto.Equal(got, want) {
		t.Errorf("inflated: %v", err)
	}
	// An answer that is longer than allowed only when it is inflated.
	_, address = serve(t, &pantry{put: func(ctx context.Context, _ *protoservice.Jar) (*protoservice.Jar, error) {
		return want, grpc.SetSendCompressor(ctx, "gzip")
	}})
	_, small := dial(t, fulmar.ClientConfig{Target: address, MaxMessageBytes: 100_000})
	if _, err := small.Put(t.Context(), jar(1)); fulmar.CodeOf(err) != fulmar.ResourceExhausted {
		t.Errorf("a message that is too long when it is inflated: %v", err)
	}
}

func TestClient_ManyCallers(t *testing.T) {
	for _, streams := range []uint32{0, 3} {
		t.Run(fmt.Sprint(streams), func(t *testing.T) {
			var options []grpc.ServerOption
			if streams > 0 {
				options = append(options, grpc.MaxConcurrentStreams(streams))
			}
			_, address := serve(t, &pantry{}, options...)
			client, pantry := dial(t, fulmar.ClientConfig{Target: address, MaxConnections: 4})
			var group sync.WaitGroup
			for i := range 100 {
				group.Go(func() {
					for j := range 30 {
						want := jar(i*j + i)
						got, err := pantry.Put(t.Context(), want)
						if err != nil || !proto.Equal(got, want) {
							t.Error(err)
							return
						}
					}
				})
			}
			group.Wait()
			if stats := client.Stats(); stats.Connections > 4 {
				t.Errorf("%d connections", stats.Connections)
			}
		})
	}
}

// TestClient_GracefulStop stops servers one after the other while calls go on. None may
// fail: those that the server has taken end, others go to the next one.
func TestClient_GracefulStop(t *testing.T) {
	var p pantry
	server, address := serve(t, &p)
	var current atomic.Value
	current.Store(address)
	_, pantry := dial(t, fulmar.ClientConfig{
		Target: address, MaxConnectionAge: 100 * time.Millisecond, ConnectTimeout: 5 * time.Second,
		Dial: func(ctx context.Context, network, _ string) (conn net.Conn, err error) {
			for {
				at := current.Load()
				conn, err = new(net.Dialer).DialContext(ctx, network, at.(string))
				if err == nil || at == current.Load() {
					return conn, err
				}
			}
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var calls atomic.Int64
	made := make(chan struct{})
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			for ctx.Err() == nil {
				if _, err := pantry.Put(t.Context(), jar(100)); err != nil {
					t.Error(err)
				} else {
					calls.Add(1)
				}
				select {
				case made <- struct{}{}:
				case <-ctx.Done():
				}
			}
		})
	}
	for range 10 {
		for range 200 {
			<-made
		}
		next, address := serve(t, &p)
		current.Store(address)
		server.GracefulStop()
		server = next
	}
	cancel()
	group.Wait()
	if p.calls.Load() != calls.Load() {
		t.Errorf("the servers ran %d calls, the client made %d", p.calls.Load(), calls.Load())
	}
}
