package fulmar_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// BenchmarkCall_BesideStream is one caller of 1 KiB after the other on loopback, beside a stream
// of the same client that brings messages of a size as fast as they are received, on the same
// connection and on one of its own. It is why unary calls over TTHeader do not share the
// connections of streams (ADR-0060).
func BenchmarkCall_BesideStream(b *testing.B) {
	for _, way := range []struct {
		name     string
		protocol fulmar.Protocol
		apart    bool
	}{{"grpc/shared", fulmar.GRPC, false}, {"grpc/apart", fulmar.GRPC, true}, {"ttheader/apart", fulmar.TTHeader, false}} {
		for _, size := range []int{1 << 10, 64 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("%s/%dKiB", way.name, size>>10), func(b *testing.B) {
				benchmarkBesideStream(b, way.protocol, way.apart, size)
			})
		}
	}
}

func benchmarkBesideStream(b *testing.B, protocol fulmar.Protocol, apart bool, size int) {
	address := serveBenchmark(b, fulmar.ServerConfig{}, func(s *fulmar.Server) {
		testservice.RegisterEchoServer(s, &testservice.Stub{})
		testservice.RegisterFeedServer(s, &feed{})
	})
	newClient := func() *fulmar.Client {
		return benchmarkClient(b, fulmar.ClientConfig{Target: address, Protocol: protocol, MaxConnections: 1})
	}
	streams := newClient()
	unary := streams
	if apart {
		unary = newClient()
	}
	streaming, end := context.WithCancel(context.Background())
	stream, err := testservice.NewFeedClient(streams).List(streaming, &testservice.Item{Name: strings.Repeat("s", size), Count: 1 << 30})
	if err != nil {
		b.Fatal(err)
	}
	received := make(chan error, 1)
	go func() {
		for {
			if _, err := stream.Recv(); err != nil {
				received <- err
				return
			}
		}
	}()
	api, message := testservice.NewEchoClient(unary), &testservice.Message{Text: strings.Repeat("x", 1<<10)}
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		if _, err := api.Echo(context.Background(), message); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
	end()
	if err := <-received; err == io.EOF {
		b.Error("the stream ended before the calls")
	}
}
