//go:build unix

package fulmar_test

import (
	"context"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// BenchmarkLocal_Echo compares a server of the same process with the same server
// behind sockets: one caller after the other, and many at once.
func BenchmarkLocal_Echo(b *testing.B) {
	server, err := fulmar.NewServer(fulmar.ServerConfig{Address: "127.0.0.1:0"})
	if err != nil {
		b.Fatal(err)
	}
	unix := "unix://" + filepath.Join(b.TempDir(), "s")
	second, err := fulmar.NewServer(fulmar.ServerConfig{Address: unix})
	if err != nil {
		b.Fatal(err)
	}
	for _, s := range []*fulmar.Server{server, second} {
		testservice.RegisterEchoServer(s, &testservice.Stub{})
		if _, err := s.Listen(); err != nil {
			b.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		served := make(chan error, 1)
		go func() { served <- s.Serve(ctx) }()
		b.Cleanup(func() { stop(); <-served })
	}
	address, _ := server.Listen()
	for _, way := range []struct {
		name   string
		config fulmar.ClientConfig
	}{
		{"local", fulmar.ClientConfig{Local: server}},
		{"unix", fulmar.ClientConfig{Target: unix}},
		{"tcp", fulmar.ClientConfig{Target: address.String()}},
	} {
		client, err := fulmar.NewClient(way.config)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = client.Close() })
		api := testservice.NewEchoClient(client)
		for _, size := range []struct {
			name  string
			bytes int
		}{{"128B", 128}, {"1K", 1 << 10}, {"64K", 64 << 10}} {
			message := &testservice.Message{Text: strings.Repeat("x", size.bytes)}
			call := func(b *testing.B) {
				if _, err := api.Echo(context.Background(), message); err != nil {
					b.Error(err)
				}
			}
			b.Run(way.name+"/"+size.name+"/sequential", func(b *testing.B) {
				b.ReportAllocs()
				defer reportProcessor(b)()
				for b.Loop() {
					call(b)
				}
			})
			b.Run(way.name+"/"+size.name+"/parallel", func(b *testing.B) {
				b.ReportAllocs()
				b.SetParallelism(32)
				defer reportProcessor(b)()
				b.RunParallel(func(p *testing.PB) {
					for p.Next() {
						call(b)
					}
				})
			})
		}
	}
}

// reportProcessor measures the processor time of the process beside the time of the
// clock, which says little while others use the machine.
func reportProcessor(b *testing.B) (stop func()) {
	used := func() int64 {
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			b.Fatal(err)
		}
		return usage.Utime.Nano() + usage.Stime.Nano()
	}
	before := used()
	return func() { b.ReportMetric(float64(used()-before)/float64(b.N), "cpu-ns/op") }
}
