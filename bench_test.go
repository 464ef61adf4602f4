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
	address := serveBenchmark(b, fulmar.ServerConfig{}, func(s *fulmar.Server) {
		testservice.RegisterEchoServer(s, &testservice.Stub{})
	})
	client := benchmarkClient(b, fulmar.ClientConfig{Target: address})
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
}

// serveBenchmark serves what is registered on loopback until the benchmark ends, and returns
// where.
func serveBenchmark(b *testing.B, config fulmar.ServerConfig, register func(*fulmar.Server)) string {
	config.Address = "127.0.0.1:0"
	server, err := fulmar.NewServer(config)
	if err != nil {
		b.Fatal(err)
	}
	register(server)
	address, err := server.Listen()
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	b.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			b.Error(err)
		}
	})
	return address.String()
}

// benchmarkClient returns a client that is closed when the benchmark ends.
func benchmarkClient(b *testing.B, config fulmar.ClientConfig) *fulmar.Client {
	client, err := fulmar.NewClient(config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := client.Close(); err != nil {
			b.Error(err)
		}
	})
	return client
}
