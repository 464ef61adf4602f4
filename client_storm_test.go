package fulmar_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// BenchmarkClient_Storm begins many calls at once, each with 50 ms, of a client without
// connections, for three seconds: what a restart of the server, or a deployment of the
// client, does. It prints how many calls succeed and fail in a second.
func BenchmarkClient_Storm(b *testing.B) {
	const callers, timeout, lasts = 200, 50 * time.Millisecond, 3 * time.Second
	a := newAuthority(b)
	for name, secure := range map[string]bool{"mTLS": true, "TCP": false} {
		b.Run(name, func(b *testing.B) {
			serverConfig, clientConfig := fulmar.ServerConfig{}, fulmar.ClientConfig{Protocol: fulmar.Framed, Timeout: timeout}
			if secure {
				serverConfig.TLS.Files, clientConfig.TLS.Files = a.files("server"), a.files("client")
			}
			s := serve(b, serverConfig, echoing())
			clientConfig.Target = s.address
			var succeeded, failed atomic.Int64
			for b.Loop() {
				client, err := fulmar.NewClient(clientConfig)
				if err != nil {
					b.Fatal(err)
				}
				api := testservice.NewEchoClient(client)
				over := time.Now().Add(lasts)
				var all sync.WaitGroup
				for range callers {
					all.Go(func() {
						for time.Now().Before(over) {
							if api.Nothing(context.Background()) == nil {
								succeeded.Add(1)
							} else {
								failed.Add(1)
							}
						}
					})
				}
				all.Wait()
				client.Close()
			}
			b.ReportMetric(float64(succeeded.Load())/b.Elapsed().Seconds(), "succeeded/s")
			b.ReportMetric(float64(failed.Load())/b.Elapsed().Seconds(), "failed/s")
		})
	}
}
