package transport

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// TestGRPC_TrailersNameNoEncoding: what they say of it is about no message, and whoever
// receives is reading the other one while they arrive.
func TestGRPC_TrailersNameNoEncoding(t *testing.T) {
	const messages = 5
	text := strings.Repeat("a message that takes a while to inflate ", 5000)
	body := packed(newGzip(1), []byte(text))
	prefixed := make([]byte, grpc.PrefixSize, grpc.PrefixSize+len(body))
	grpc.PutPrefix(prefixed, len(body), true)
	prefixed = append(prefixed, body...)
	for _, trailing := range []string{"", "identity", "snappy"} {
		peer := scripted(t, PoolConfig{}, func(s *grpcScript, event *http2.Event) {
			if event.Kind != http2.EventHeaders {
				return
			}
			id := event.Stream
			_ = s.http2.Headers(id, []http2.Field{{Name: ":status", Value: "200"}, {Name: "content-type", Value: "application/grpc"}, {Name: "grpc-encoding", Value: "gzip"}}, false)
			for range messages {
				_, _ = s.http2.Data(id, prefixed, false)
				s.send()
			}
			trailers := []http2.Field{{Name: "grpc-status", Value: "0"}}
			if trailing != "" {
				trailers = append(trailers, http2.Field{Name: "grpc-encoding", Value: trailing})
			}
			_ = s.http2.Headers(id, trailers, true)
			s.http2.Release(id)
		})
		for range 10 {
			request, err := peer.NewRequest(Method{Name: "m", Qualified: "m", Payload: wire.PayloadProtobuf, Streams: true}, RequestHead{Service: "s"})
			if err != nil {
				t.Fatal(err)
			}
			stream, err := peer.OpenStream(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			got, err := receivesAll(stream)
			if len(got) != messages || err != io.EOF || got[messages-1] != text {
				t.Fatalf("trailers with %q: %d messages, %v", trailing, len(got), err)
			}
		}
	}
}

// TestGRPC_WhatWaitsIsBounded has a server that stops reading, while callers begin calls and
// give them up: what waits for it has a limit, and calls go on when it reads again.
func TestGRPC_WhatWaitsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := make(chan struct{})
		peer := newScriptedPeer(t, PoolConfig{Connections: 1}, func(s *grpcScript) {
			s.send()
			<-reads
			s.serve(func(s *grpcScript, event *http2.Event) {
				if event.Kind == http2.EventData && event.End {
					s.answer(event.Stream, "a", "0")
				}
			})
		})
		long := []Pair{{Key: "k", Value: strings.Repeat("v", 8<<10)}}
		call := func(patience time.Duration) error {
			ctx, cancel := context.WithCancel(t.Context()) // who runs out of time takes the server for dead
			defer time.AfterFunc(patience, cancel).Stop()
			defer cancel()
			request, err := peer.NewRequest(Method{Name: "m", Qualified: "m", Payload: wire.PayloadProtobuf}, RequestHead{Service: "s", Metadata: long})
			if err != nil {
				return err
			}
			defer request.Release()
			response, err := peer.Do(ctx, request)
			if err == nil {
				response.Release()
			}
			return err
		}
		for range 1000 {
			if err := call(time.Millisecond); err == nil {
				t.Fatal("a server that does not read has answered")
			}
		}
		conn := peer.grpc.conns[0].(*grpcConn)
		conn.mu.Lock()
		unsent := conn.http2.Unsent()
		conn.mu.Unlock()
		if unsent < 2*limits.UnsentBytes || unsent > 2*limits.UnsentBytes+64<<10 {
			t.Errorf("%d bytes wait", unsent)
		}
		if conn.barren() {
			t.Error("the server is said to take no streams")
		}
		waits := make(chan error, 1)
		go func() { waits <- call(time.Minute) }()
		synctest.Wait()
		begun := time.Now()
		close(reads)
		if err := <-waits; err != nil || time.Since(begun) > time.Millisecond {
			t.Errorf("a call when the server reads again: %v after %v", err, time.Since(begun))
		}
	})
}
