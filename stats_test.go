package fulmar_test

import (
	"context"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// TestStats_CountCallsAndConnections: both sides count what they hold now, and
// nothing is left when nothing happens.
func TestStats_CountCallsAndConnections(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{OnNothing: func(context.Context) error {
		entered <- struct{}{}
		<-release
		return nil
	}})
	client := dialAny(t, fulmar.ClientConfig{Target: server.address})
	api := testservice.NewEchoClient(client)
	if stats := client.Stats(); stats.Connections != 0 || stats.Multiplexed != 0 || stats.LateReplies != 0 || stats.PoliciesRefused != 0 {
		t.Errorf("before the first call: %+v", stats)
	}
	const calls = 5
	done := make(chan error, calls)
	for range calls {
		go func() { done <- api.Nothing(context.Background()) }()
	}
	for range calls {
		<-entered
	}
	stats := server.server.Stats()
	if stats.Calls != calls || stats.Network.Open == 0 || stats.Network.Accepted < stats.Network.Open || stats.Network.BytesRead == 0 {
		t.Errorf("while %d calls run: %+v", calls, stats)
	}
	if open := client.Stats().Connections; open != int(stats.Network.Open) {
		t.Errorf("the client counts %d connections, the server %d", open, stats.Network.Open)
	}
	close(release)
	for range calls {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if stats := client.Stats(); stats.Multiplexed == 0 || stats.Multiplexed > stats.Connections || stats.LateReplies != 0 {
		t.Errorf("after all calls: %+v", stats)
	}
	if err := server.stop(); err != nil {
		t.Fatal(err)
	}
	if stats := server.server.Stats(); stats.Calls != 0 || stats.BufferedBytes != 0 || stats.Network.Open != 0 {
		t.Errorf("after the end: %+v", stats)
	}
}
