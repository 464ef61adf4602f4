package server_test

import (
	"context"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/fulmar-rpc/fulmar"
)

// BenchmarkUnary compares servers that a client of grpc-go calls, over four connections,
// with 100 callers and 1 KB. The client takes most of the time.
func BenchmarkUnary(b *testing.B) {
	b.Run("fulmar", func(b *testing.B) {
		address, _ := serve(b, fulmar.ServerConfig{}, map[string]handler{"Say": echo})
		callers(b, address)
	})
	b.Run("grpc-go", func(b *testing.B) {
		server := grpc.NewServer()
		server.RegisterService(&grpc.ServiceDesc{ServiceName: "test.Echo", HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{
			MethodName: "Say",
			Handler: func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				in := new(wrapperspb.BytesValue)
				if err := decode(in); err != nil {
					return nil, err
				}
				return wrapperspb.Bytes(in.Value), nil
			},
		}}}, b)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- server.Serve(listener) }()
		callers(b, listener.Addr().String())
		server.Stop()
		<-served
	})
}

func callers(b *testing.B, address string) {
	b.Helper()
	const callers, connections = 100, 4
	var conns []*grpc.ClientConn
	for range connections {
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			b.Fatal(err)
		}
		conns = append(conns, conn)
		defer func() { _ = conn.Close() }()
	}
	in := make([]byte, 1000)
	b.ReportAllocs()
	b.ResetTimer()
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			for range b.N/callers + min(1, max(0, b.N%callers-i)) {
				if _, err := call(b.Context(), conns[i%connections], "Say", in); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}
