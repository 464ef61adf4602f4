package client_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/encoding/gzip" // so that the server can
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/protoservice"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// pantry is what the server of grpc-go serves.
type pantry struct {
	// put is called for each call of Put, if it is set.
	put   func(ctx context.Context, jar *protoservice.Jar) (*protoservice.Jar, error)
	calls atomic.Int64
}

func (p *pantry) find(_ context.Context, request *protoservice.FindRequest) (*protoservice.Jar, error) {
	s, err := status.New(codes.NotFound, "no jar of that name: ü %").WithDetails(durationpb.New(time.Minute))
	if err != nil {
		return nil, err
	}
	if request.Name == "" {
		return nil, s.Err()
	}
	return &protoservice.Jar{Name: request.Name}, nil
}

// method describes one to grpc-go, as its generator does.
func method[Request any](name string, call func(p *pantry, ctx context.Context, request *Request) (any, error)) grpc.MethodDesc {
	return grpc.MethodDesc{MethodName: name, Handler: func(srv any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		request := new(Request)
		if err := decode(request); err != nil {
			return nil, err
		}
		return call(srv.(*pantry), ctx, request)
	}}
}

func desc() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{ServiceName: "fulmar.test.v1.Pantry", HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{
		method("Find", func(p *pantry, ctx context.Context, request *protoservice.FindRequest) (any, error) {
			return p.find(ctx, request)
		}),
		method("Put", func(p *pantry, ctx context.Context, jar *protoservice.Jar) (any, error) {
			p.calls.Add(1)
			if p.put != nil {
				return p.put(ctx, jar)
			}
			return jar, nil
		}),
		method("Clear", func(_ *pantry, _ context.Context, request *emptypb.Empty) (any, error) { return request, nil }),
	}}
}

// serve starts a server of grpc-go.
func serve(t testing.TB, p *pantry, options ...grpc.ServerOption) (*grpc.Server, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(options...)
	server.RegisterService(desc(), p)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		server.Stop()
		<-ended
	})
	return server, listener.Addr().String()
}

// dial returns a client of ours.
func dial(t testing.TB, config fulmar.ClientConfig) (*fulmar.Client, protoservice.PantryClient) {
	t.Helper()
	config.Protocol = fulmar.GRPC
	client, err := fulmar.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client, protoservice.NewPantryClient(client)
}

func jar(n int) *protoservice.Jar {
	return &protoservice.Jar{Name: fmt.Sprint(n), Content: &protoservice.Jar_Text{Text: strings.Repeat("x", n)}}
}
