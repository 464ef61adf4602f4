package fulmar_test

import (
	"context"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

func stubOfNothing() *testservice.Stub {
	return &testservice.Stub{OnNothing: func(context.Context) error { return nil }}
}

// TestGRPC_PingsKeepNoIdleConnection has a peer that makes one call and then nothing but
// pings, no more of them than are allowed: the connection is idle all the same.
func TestGRPC_PingsKeepNoIdleConnection(t *testing.T) {
	config := fulmar.ServerConfig{IdleTimeout: time.Minute}
	simulate(t, simnet.Config{}, config, fulmar.ClientConfig{}, stubOfNothing(), func(s *simulation) {
		peer := s.http2Peer(http2.Config{})
		peer.listen(30 * time.Second)
		id := peer.send(grpcMessage([]byte{0}, false), true)
		peer.listen(time.Second)
		if peer.status[id]["grpc-status"] != "0" {
			t.Fatalf("the call was answered with %v", peer.status[id])
		}
		start, closed := time.Now(), false
		for !closed && time.Since(start) < 5*time.Minute {
			if !peer.http2.Ping(0) {
				t.Fatal("a ping was not answered")
			}
			closed = peer.listen(11 * time.Second)
		}
		if took := time.Since(start); !closed || !peer.goAway || took < 55*time.Second || took > 75*time.Second {
			t.Errorf("closed %v after %v, GOAWAY %v; want that after a minute", closed, took, peer.goAway)
		}
	})
}
