package fulmar_test

import (
	"context"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// BenchmarkCall_Echo1K is one caller after the other on loopback, and many at
// once on connections of their own. Comparisons with other frameworks belong
// into the bench module.
func BenchmarkCall_Echo1K(b *testing.B) {
	server, err := fulmar.NewServer(fulmar.ServerConfig{Address: "127.0.0.1:0"})
	if err != nil {
		b.Fatal(err)
	}
	testservice.RegisterEchoServer(server, &testservice.Stub{})
	address, err := server.Listen()
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	client, err := fulmar.NewClient(fulmar.ClientConfig{Target: address.String()})
	if err != nil {
		b.Fatal(err)
	}
	api := testservice.NewEchoClient(client)
	call := func(b *testing.B) {
		message := &testservice.Message{Text: strings.Repeat("x", 1<<10)}
		if _, err := api.Echo(context.Background(), message); err != nil {
			b.Error(err)
		}
	}
	b.Run("sequential", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			call(b)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.SetParallelism(32)
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				call(b)
			}
		})
	})
	_ = client.Close()
	stop()
	if err := <-served; err != nil {
		b.Error(err)
	}
}
