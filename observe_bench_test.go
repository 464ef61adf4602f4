package fulmar_test

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/observe"
)

// BenchmarkObserved is what observing both sides of a call costs.
func BenchmarkObserved(b *testing.B) {
	var seen atomic.Int64
	metrics := observe.NewMetrics(observe.MetricsConfig{}).Observer()
	log := observe.Log(slog.New(slog.NewTextHandler(io.Discard, nil)), observe.LogConfig{})
	all := observe.Observer{Event: func(*observe.Call, any, observe.Event) { seen.Add(1) }}
	for _, test := range []struct {
		name      string
		observers []observe.Observer
	}{
		{"nobody", nil},
		{"metrics", []observe.Observer{metrics}},
		{"metrics and log", []observe.Observer{metrics, log}},
		{"every phase", []observe.Observer{all}},
	} {
		b.Run(test.name, func(b *testing.B) { benchmarkObserved(b, test.observers) })
	}
}

func benchmarkObserved(b *testing.B, observers []observe.Observer) {
	address := serveBenchmark(b, fulmar.ServerConfig{Observers: observers}, func(s *fulmar.Server) {
		testservice.RegisterEchoServer(s, adder())
	})
	client := benchmarkClient(b, fulmar.ClientConfig{Target: address, Observers: observers})
	api := testservice.NewEchoClient(client)
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if _, err := api.Add(context.Background(), 1, 2); err != nil {
				b.Error(err)
			}
		}
	})
}
