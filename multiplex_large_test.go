package fulmar_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// TestMultiplex_LargeRepliesStayWhole: a reply that the socket takes in parts is not
// interrupted by short ones, which are written where they were read.
func TestMultiplex_LargeRepliesStayWhole(t *testing.T) {
	for name, secure := range map[string]bool{"plain": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			serverConfig, clientConfig := fulmar.ServerConfig{}, fulmar.ClientConfig{MaxConnections: 1}
			if secure {
				a := newAuthority(t)
				serverConfig.TLS.Files = a.files("server")
				clientConfig.TLS.Files = a.files("client")
			}
			server := serve(t, serverConfig, &testservice.Stub{
				OnAdd: func(_ context.Context, left, right int32) (int32, error) { return left + right, nil },
				OnEcho: func(ctx context.Context, message *testservice.Message) (*testservice.Message, error) {
					return message, nil
				},
			})
			clientConfig.Target = server.address
			api := testservice.NewEchoClient(dialAny(t, clientConfig))
			large := strings.Repeat("0123456789abcdef", 12<<20/16)
			stop := make(chan struct{})
			// Without deadlines: where memory for sockets is short, systems drop what has
			// arrived, and it takes TCP seconds to send it again.
			var short sync.WaitGroup
			for i := range int32(8) {
				short.Go(func() {
					for n := int32(0); ; n++ {
						select {
						case <-stop:
							return
						default:
						}
						if sum, err := api.Add(context.Background(), n, i, fulmar.Timeout(-1)); err != nil || sum != n+i {
							t.Errorf("Add(%d, %d) = %d, %v", n, i, sum, err)
							return
						}
					}
				})
			}
			for range 4 {
				reply, err := api.Echo(context.Background(), &testservice.Message{Text: large}, fulmar.Timeout(-1))
				if err != nil || reply.Text != large {
					t.Errorf("a large reply came back changed, or not at all: %v", err)
					break
				}
			}
			close(stop)
			short.Wait()
		})
	}
}
