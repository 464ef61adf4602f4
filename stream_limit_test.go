package fulmar_test

import (
	"strings"
	"testing"

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
