package fulmar_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

func stubOfNothing() *testservice.Stub {
	return &testservice.Stub{OnNothing: func(context.Context) error { return nil }}
}

// TestGRPC_Bombs has a peer send messages that take long to inflate and are too long then:
// each is refused, and a few more end the connection.
func TestGRPC_Bombs(t *testing.T) {
	config := fulmar.ServerConfig{MaxMessageBytes: 300 << 10}
	simulate(t, simnet.Config{}, config, fulmar.ClientConfig{}, stubOfNothing(), func(s *simulation) {
		peer := s.http2Peer(http2.Config{})
		peer.listen(time.Second)
		bomb := packed(make([]byte, 1<<20))
		send := func() (id uint32, closed bool) {
			id = peer.send(grpcMessage(bomb, true), true, http2.Field{Name: "grpc-encoding", Value: "gzip"})
			return id, peer.listen(time.Second)
		}
		// What says how long it is costs nothing.
		for range 30 {
			if id, closed := send(); closed || peer.status[id]["grpc-status"] != "8" {
				t.Fatalf("a bomb that says so: %v, closed %v", peer.status[id], closed)
			}
		}
		copy(bomb[len(bomb)-4:], []byte{9, 0, 0, 0})
		refused, closed := 0, false
		for !closed && refused < 100 {
			var id uint32
			if id, closed = send(); !closed && peer.status[id]["grpc-status"] != "8" {
				t.Fatalf("a bomb: %v", peer.status[id])
			}
			refused++
		}
		if want := limits.HTTP2PeerErrors/limits.GRPCBombErrors + 1; !closed || !peer.goAway || refused != want {
			t.Errorf("closed %v, GOAWAY %v after %d bombs, want that after %d", closed, peer.goAway, refused, want)
		}
		if held := s.server.Stats().BufferedBytes; held != 0 {
			t.Errorf("behind them, the budget counts %d bytes", held)
		}
	})
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

// TestGRPC_SlowHandlersAreNotSlowPeers has requests that arrive in pieces, and nothing
// behind them: that the call takes long then is not the peer's fault.
func TestGRPC_SlowHandlersAreNotSlowPeers(t *testing.T) {
	stub := &testservice.Stub{OnNothing: func(ctx context.Context) error {
		select {
		case <-time.After(40 * time.Second):
		case <-ctx.Done():
		}
		return ctx.Err()
	}}
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, stub, func(s *simulation) {
		ack := append([]byte(http2.Preface), 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0)
		for name, pieces := range map[string]int{"all at once": 1, "in two": 2} {
			peer := s.http2Peer(http2.Config{})
			peer.send(grpcMessage([]byte{0}, false), true)
			full := peer.http2.Swap(linkbuf.New(peer.pool))
			all := bytes.Join(full.Slices(nil), nil)
			full.Release()
			// The peer's own settings, and that it knows the server's: nothing is left to be said.
			all = append(ack, all[len(http2.Preface)+9+int(all[len(http2.Preface)+2]):]...)
			if pieces == 2 {
				write(t, peer.conn, all[:len(all)-3])
				synctest.Wait()
				all = all[len(all)-3:]
			}
			write(t, peer.conn, all)
			start := time.Now()
			_ = peer.conn.SetReadDeadline(start.Add(50 * time.Second))
			for buf := make([]byte, 1000); ; {
				if _, err := peer.conn.Read(buf); errors.Is(err, os.ErrDeadlineExceeded) {
					break
				} else if err != nil {
					t.Errorf("%s: after %v: %v", name, time.Since(start), err)
					break
				}
			}
		}
	})
}
