package fulmar_test

import (
	"context"
	"maps"
	"testing"
	"testing/synctest"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
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
