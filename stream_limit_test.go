package fulmar_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// TestStreams_MessageLimit: a server takes no message longer than its limit, whatever the
// client may send.
func TestStreams_MessageLimit(t *testing.T) {
	config := fulmar.ServerConfig{MaxMessageBytes: 1000}
	eachStreamingWay(t, &feed{}, config, fulmar.ClientConfig{}, func(t *testing.T, s *streaming) {
		// Over TTHeader the client knows behind the first call what the server takes.
		for _, length := range []int{900, 1001} {
			want := fulmar.Code(0)
			if length > 1000 {
				want = fulmar.ResourceExhausted
			}
			swap, err := s.api.Swap(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err = swap.Send(&testservice.Item{Name: strings.Repeat("x", length)}); err == nil {
				_, err = swap.Recv()
			}
			if fulmar.CodeOf(err) != want {
				t.Errorf("a message of %d bytes: %v", length, err)
			}
			swap.Cancel()
		}
	})
}

// TestStreams_OverBudget: a message for which there is no room ends its stream. Others of the
// connection go on.
func TestStreams_OverBudget(t *testing.T) {
	for _, way := range directWays {
		if way == "local" {
			continue // Nothing arrives in parts.
		}
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStreaming(t, way, &feed{}, fulmar.ServerConfig{MaxBufferedBytes: 1 << 20}, fulmar.ClientConfig{})
				open := func() fulmar.BidiStreamingClient[testservice.Item, testservice.Item] {
					swap, err := s.api.Swap(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					return swap
				}
				exchange := func(swap fulmar.BidiStreamingClient[testservice.Item, testservice.Item], length int) error {
					sent := swap.Send(&testservice.Item{Name: strings.Repeat("x", length)})
					_, err := swap.Recv()
					return errors.Join(err, sent)
				}
				good := open()
				if err := exchange(good, 1); err != nil {
					t.Fatal(err)
				}
				before := s.server.Stats().BufferedBytes
				for range 3 {
					long := open()
					if err := exchange(long, 4<<20); fulmar.CodeOf(err) != fulmar.ResourceExhausted {
						t.Errorf("a message of 4 MiB: %v", err)
					}
					long.Cancel()
					if held := s.server.Stats().BufferedBytes; held != before {
						t.Errorf("behind its end, the budget counts %d bytes more", held-before)
					}
					if err := exchange(good, 1000); err != nil {
						t.Errorf("another stream of the connection: %v", err)
					}
				}
				good.Cancel()
			})
		})
	}
}
