package fulmar_test

import (
	"context"
	"io"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// TestStreams_HeaderBehindTheEnd: what the server has said in front is there however the
// stream ended, and a stream that ended without it has none.
func TestStreams_HeaderBehindTheEnd(t *testing.T) {
	service := &feed{swap: func(stream fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error {
		call, _ := fulmar.CallFrom(stream.Context())
		how, _ := call.Metadata().Transient("how")
		if how == "error" || how == "nothing" {
			return fulmar.NewError(fulmar.NotFound, "not here")
		}
		if err := stream.SendHeader(map[string]string{"h": "1"}); err != nil {
			return err
		}
		if how == "canceled" {
			<-stream.Context().Done()
		}
		return fulmar.NewError(fulmar.NotFound, "not here")
	}}
	eachStreamingWay(t, service, fulmar.ServerConfig{}, fulmar.ClientConfig{}, func(t *testing.T, s *streaming) {
		for how, want := range map[string]struct {
			code   fulmar.Code
			header map[string]string
		}{
			"nothing":  {fulmar.NotFound, nil},
			"header":   {fulmar.NotFound, map[string]string{"h": "1"}},
			"canceled": {fulmar.Canceled, map[string]string{"h": "1"}},
		} {
			swap, err := s.api.Swap(fulmar.WithTransient(t.Context(), "how", how))
			if err != nil {
				t.Fatal(err)
			}
			if how == "canceled" {
				if _, err := swap.Header(); err != nil {
					t.Error(err)
				}
				swap.Cancel()
			}
			if _, err := swap.Recv(); fulmar.CodeOf(err) != want.code {
				t.Errorf("%s: %v", how, err)
			}
			if header, err := swap.Header(); err != nil || !maps.Equal(header, want.header) {
				t.Errorf("%s: header %q, %v", how, header, err)
			}
		}
	})
}

// TestStreams_CanceledAtOnce: behind the end of its context a stream has no messages, though
// some have arrived, and nobody has noticed that end.
func TestStreams_CanceledAtOnce(t *testing.T) {
	eachStreamingWay(t, &feed{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, func(t *testing.T, s *streaming) {
		for range 20 {
			ctx, cancel := context.WithCancel(t.Context())
			list, err := s.api.List(ctx, &testservice.Item{Name: "a", Count: 3})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := list.Recv(); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			cancel()
			for range 2 {
				if item, err := list.Recv(); fulmar.CodeOf(err) != fulmar.Canceled {
					t.Errorf("got %v, %v", item, err)
				}
			}
		}
	})
}

// TestStreams_TrailersOfAClientAreAnEnd: no client of gRPC sends any, but in HTTP/2 they end a
// request.
func TestStreams_TrailersOfAClientAreAnEnd(t *testing.T) {
	config := fulmar.ServerConfig{UnknownStreamHandler: func(_ context.Context, messages *fulmar.ServerMessages) error {
		for {
			var message fulmar.Raw
			if err := messages.Recv(&message); err != nil {
				if err == io.EOF {
					return nil
				}
				return err
			}
		}
	}}
	simulate(t, simnet.Config{}, config, fulmar.ClientConfig{}, &testservice.Stub{}, func(s *simulation) {
		peer := s.http2Peer(http2.Config{})
		id := peer.send(grpcMessage([]byte{0}, false), false, http2.Field{Name: ":path", Value: "/Any/thing"})
		peer.listen(time.Second)
		if status := peer.status[id]["grpc-status"]; status != "" {
			t.Fatalf("the stream has ended too early: %v", peer.status[id])
		}
		if err := peer.http2.Headers(id, []http2.Field{{Name: "checksum", Value: "1"}}, true); err != nil {
			t.Fatal(err)
		}
		peer.listen(time.Second)
		if status := peer.status[id]["grpc-status"]; status != "0" {
			t.Errorf("the handler has not seen the end: %v, %v", peer.status[id], peer.resets)
		}
	})
}
