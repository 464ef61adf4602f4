package client_test

import (
	"context"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/protoservice"
)

// BenchmarkUnary compares clients that call one server of grpc-go, with 100 callers and
// 1 KB.
func BenchmarkUnary(b *testing.B) {
	_, address := serve(b, &pantry{})
	_, pantry := dial(b, fulmar.ClientConfig{Target: address})
	b.Run("fulmar", func(b *testing.B) {
		callers(b, func(ctx context.Context, jar *protoservice.Jar) error {
			_, err := pantry.Put(ctx, jar)
			return err
		})
	})
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	b.Run("grpc-go", func(b *testing.B) {
		callers(b, func(ctx context.Context, jar *protoservice.Jar) error {
			return conn.Invoke(ctx, "/fulmar.test.v1.Pantry/Put", jar, new(protoservice.Jar))
		})
	})
}

func callers(b *testing.B, call func(ctx context.Context, jar *protoservice.Jar) error) {
	b.ReportAllocs()
	const callers = 100
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			request := jar(1000)
			for range b.N/callers + min(1, max(0, b.N%callers-i)) {
				if err := call(b.Context(), request); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}
