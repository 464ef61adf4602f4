package transport

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// streamsAllowed is a frame of settings with how many streams a server takes.
func streamsAllowed(streams uint32) []byte {
	b := make([]byte, http2.FrameHeaderSize, http2.FrameHeaderSize+6)
	http2.PutFrameHeader(b, 6, http2.FrameSettings, 0, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(http2.SettingMaxConcurrentStreams))
	return binary.BigEndian.AppendUint32(b, streams)
}

// roomServer takes no streams on connections that begin, which it tells began of, and counts them.
type roomServer struct {
	mu     sync.Mutex
	opened int
	began  func(s *grpcScript)
}

func (r *roomServer) connections() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.opened
}

func (r *roomServer) peer(t *testing.T, config PoolConfig) *Peer {
	t.Helper()
	return newScriptedPeer(t, config, func(s *grpcScript) {
		r.mu.Lock()
		r.opened++
		r.mu.Unlock()
		s.http2.Swap(linkbuf.New(s.pool)).Release() // its settings, in place of which others are sent
		_, _ = s.Write(streamsAllowed(0))
		if r.began != nil {
			r.began(s)
		}
		s.serve(func(s *grpcScript, event *http2.Event) {
			if event.Kind == http2.EventData && event.End {
				s.answer(event.Stream, "a", "0")
			}
		})
	})
}

// callFor makes a call that may take so long.
func callFor(t *testing.T, peer *Peer, d time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	_, err := grpcDo(ctx, peer, "q")
	return err
}

// TestStreamPeer_NoStreams: calls to a server that takes no streams wait on the connection that
// there is, and further ones are opened as rarely as those that fail.
func TestStreamPeer_NoStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &roomServer{}
		peer := server.peer(t, PoolConfig{Connections: 100})
		err := callFor(t, peer, time.Second/2)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "takes no streams now (limit 0)") {
			t.Errorf("got %v", err)
		}
		if n := peer.Stats().Connections; n != 1 {
			t.Errorf("%d connections for one call, want 1", n)
		}
		var group sync.WaitGroup
		for range 60 {
			for range 5 {
				group.Go(func() { _ = callFor(t, peer, time.Second) })
			}
			group.Wait()
		}
		// After a second, and after pauses that double: 1, 3, 7, 15, 31, 63.
		if n := peer.Stats().Connections; n > 7 {
			t.Errorf("%d connections in a minute, want 7 at most", n)
		}
	})
}

// TestStreamPeer_NoStreamsButElsewhere: where there are other instances calls have time left for
// them, and who takes nothing counts as who cannot be connected to.
func TestStreamPeer_NoStreamsButElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer := new(roomServer).peer(t, PoolConfig{Elsewhere: true, ConnectTimeout: time.Minute})
		err := callFor(t, peer, 2*time.Second)
		failed := new(CallError)
		if !errors.As(err, &failed) || failed.Sent || !failed.Refused || !strings.Contains(err.Error(), "half of the time") {
			t.Errorf("got %v, %+v", err, failed)
		}
	})
}

// TestStreamPeer_RoomLater: settings with room let those go on that wait, on the connection that
// has it.
func TestStreamPeer_RoomLater(t *testing.T) {
	for name, short := range map[string]bool{"shared": false, "short": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &roomServer{began: func(s *grpcScript) {
					time.AfterFunc(300*time.Millisecond, func() { _, _ = s.Write(streamsAllowed(2)) })
				}}
				peer := server.peer(t, PoolConfig{Short: short})
				const calls = 25
				want := calls
				if !short {
					want = 1
				}
				var group sync.WaitGroup
				for range calls {
					group.Go(func() {
						if _, err := grpcDo(t.Context(), peer, "q"); err != nil {
							t.Error(err)
						}
					})
				}
				group.Wait()
				if n := server.connections(); n != want {
					t.Errorf("%d connections for %d calls, want %d", n, calls, want)
				}
			})
		})
	}
}

// TestStreamPeer_Closed: who comes when the client has been closed is told so at once.
func TestStreamPeer_Closed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer := new(roomServer).peer(t, PoolConfig{})
		peer.Close()
		if err := peer.grpc.wait(t.Context(), false); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

// TestStreamPeer_RoomElsewhere: behind a balancer the next connection is another server's, which
// calls need not wait for longer than a pause.
func TestStreamPeer_RoomElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &roomServer{began: func(s *grpcScript) {
			if s.number > 0 {
				_, _ = s.Write(streamsAllowed(2))
			}
		}}
		peer := server.peer(t, PoolConfig{})
		if err := callFor(t, peer, 2*limits.GrowPauseMin); err != nil {
			t.Error(err)
		}
		if n := server.connections(); n != 2 {
			t.Errorf("%d connections, want 2", n)
		}
	})
}

// TestStreamPeer_NoStreamsAndClosed: a server that closes what it takes nothing on does not get
// the next connection at once.
func TestStreamPeer_NoStreamsAndClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &roomServer{began: func(s *grpcScript) {
			time.AfterFunc(time.Millisecond, func() { _ = s.Close() })
		}}
		peer := server.peer(t, PoolConfig{})
		err := callFor(t, peer, 9*limits.GrowPauseMin/2)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "took no streams") {
			t.Errorf("got %v", err)
		}
		if n := server.connections(); n < 2 || n > 5 {
			t.Errorf("%d connections, want one in %v", n, limits.GrowPauseMin)
		}
	})
}

// TestStreamPeer_ShortNoStreams: a connection for a single call closes when that cannot be made
// on it.
func TestStreamPeer_ShortNoStreams(t *testing.T) {
	for name, timeout := range map[string]time.Duration{"connect timeout": time.Second / 2, "deadline": time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &roomServer{}
				peer := server.peer(t, PoolConfig{Short: true, ConnectTimeout: timeout})
				for i := range 20 {
					err := callFor(t, peer, time.Second)
					failed := new(CallError)
					if !errors.As(err, &failed) || failed.Sent || !strings.Contains(err.Error(), "takes no streams (limit 0)") {
						t.Errorf("call %d: %v", i, err)
					}
				}
				synctest.Wait()
				if stats := peer.Stats(); stats.Connections != 0 {
					t.Errorf("%+v", stats)
				}
			})
		})
	}
}

// fullConn is a connection whose room is gone before its call comes.
type fullConn struct{ *grpcConn }

func (fullConn) call(context.Context, *Request) (*Response, error) {
	return nil, &CallError{Phase: PhaseAcquire, Err: errFull}
}

// TestStreamPeer_ShortFull: a call whose connection has no room any more is made on few others,
// and leaves none behind.
func TestStreamPeer_ShortFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &roomServer{began: func(s *grpcScript) { _, _ = s.Write(streamsAllowed(1)) }}
		peer := server.peer(t, PoolConfig{Short: true})
		start := peer.grpc.start
		peer.grpc.start = func(g *streamPeer, lent *ClientConn) streamConn {
			return fullConn{start(g, lent).(*grpcConn)}
		}
		if err := callFor(t, peer, time.Second); !errors.Is(err, errFull) {
			t.Errorf("got %v", err)
		}
		if n := server.connections(); n != 1+limits.GRPCRetries {
			t.Errorf("%d connections, want %d", n, 1+limits.GRPCRetries)
		}
		synctest.Wait()
		if stats := peer.Stats(); stats.Connections != 0 {
			t.Errorf("%+v", stats)
		}
	})
}
