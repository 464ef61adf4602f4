package fulmar_test

import (
	"context"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// serverGRPC are fields that connections in gRPC obey, observed in virtual time.
func serverGRPC() map[string]field[fulmar.ServerConfig] {
	// A tenth less or more, and how often observeAge looks.
	about := func(age time.Duration) span { return span{age - age/10, age + age/10 + 2*ageStep} }
	return map[string]field[fulmar.ServerConfig]{
		"PingAfter": {
			observe: observePing,
			settings: []setting{
				{20 * time.Second, soonAfter(20*time.Second + limits.HTTP2AnswerTimeout)},
				{nil, soonAfter(limits.ServerPingAfter + limits.HTTP2AnswerTimeout)}, {-1, never},
			},
		},
		"MaxConnectionAge": {
			observe: func(t *testing.T, config fulmar.ServerConfig) any {
				told, _ := observeAge(t, config)
				return told
			},
			settings: []setting{
				{30 * time.Minute, about(30 * time.Minute)}, {nil, about(limits.ServerConnectionAge)}, {-1, never},
			},
		},
		"MaxConnectionAgeGrace": {
			observe: func(t *testing.T, config fulmar.ServerConfig) any {
				config.MaxConnectionAge = 30 * time.Minute
				_, closed := observeAge(t, config)
				return closed
			},
			settings: []setting{
				{20 * time.Minute, span{20*time.Minute - ageStep, 20*time.Minute + ageStep}},
				{nil, span{limits.ServerAgeGrace - ageStep, limits.ServerAgeGrace + ageStep}}, {-1, never},
			},
		},
	}
}

// stubUntilEnd has a method that ends with its context.
func stubUntilEnd() *testservice.Stub {
	return &testservice.Stub{OnNothing: func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}}
}

// observePing observes when the server closes the connection of a peer that begins a call
// and does nothing any more.
func observePing(t *testing.T, config fulmar.ServerConfig) (took any) {
	simulate(t, simnet.Config{}, config, fulmar.ClientConfig{}, stubUntilEnd(), func(s *simulation) {
		peer := s.http2Peer(http2.Config{})
		peer.listen(time.Second) // The settings of both sides are acknowledged.
		peer.send(grpcMessage([]byte{0}, false), true)
		full := peer.http2.Swap(linkbuf.New(peer.pool))
		for _, piece := range full.Slices(nil) {
			write(t, peer.conn, piece)
		}
		full.Release()
		took = closedAfter(t, peer.conn, time.Now())
		_ = peer.conn.Close()
	})
	return took
}

// ageStep is how often observeAge looks.
const ageStep = 20 * time.Second

// observeAge observes when the server tells a peer with a call in progress to go elsewhere,
// and how long after that it closes the connection.
func observeAge(t *testing.T, config fulmar.ServerConfig) (told, closed time.Duration) {
	told, closed = never, never
	config.PingAfter = -1 // The peer's clock stands still, and it would take offence.
	simulate(t, simnet.Config{}, config, fulmar.ClientConfig{}, stubUntilEnd(), func(s *simulation) {
		peer := s.http2Peer(http2.Config{})
		peer.send(grpcMessage([]byte{0}, false), true)
		start := time.Now()
		for time.Since(start) < 4*time.Hour {
			over := peer.listen(ageStep)
			if peer.goAway && told == never {
				told = time.Since(start)
			}
			if over {
				closed = time.Since(start) - told
				break
			}
		}
		peer.close()
	})
	return told, closed
}

// TestGRPC_OldConnectionsLoseNoCall has a client call a server whose connections live for
// seconds: it goes from one to the next.
func TestGRPC_OldConnectionsLoseNoCall(t *testing.T) {
	opened := 0
	server := fulmar.ServerConfig{MaxConnectionAge: 2 * time.Second}
	client := fulmar.ClientConfig{Protocol: fulmar.GRPC}
	stub := stubOfNothing()
	simulate(t, simnet.Config{Delay: time.Millisecond}, server, client, stub, func(s *simulation) {
		for range 1000 {
			if err := s.api.Nothing(context.Background()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		opened = int(s.server.Stats().Network.Accepted)
	})
	if opened < 3 {
		t.Errorf("%d connections in more than 10 s, want one for each 2 s", opened)
	}
}

// TestGRPC_StreamsOfAConnection: a client may have as many as MaxConnectionCalls says, more
// and less than by default.
func TestGRPC_StreamsOfAConnection(t *testing.T) {
	for most, want := range map[int]int{0: limits.HTTP2Streams, 3: 3, 400: 400} {
		simulate(t, simnet.Config{}, fulmar.ServerConfig{MaxConnectionCalls: most}, fulmar.ClientConfig{}, stubUntilEnd(), func(s *simulation) {
			peer := s.http2Peer(http2.Config{})
			peer.listen(time.Second)
			if got := peer.http2.Room(); got != want {
				t.Errorf("MaxConnectionCalls %d: room for %d streams, want %d", most, got, want)
			}
			for range want {
				peer.send(grpcMessage([]byte{0}, false), true)
			}
			peer.listen(time.Second)
			if len(peer.resets) != 0 || s.server.Stats().Calls != want {
				t.Errorf("MaxConnectionCalls %d: %d streams were reset, %d calls run", most, len(peer.resets), s.server.Stats().Calls)
			}
			peer.close()
		})
	}
}

// TestGRPC_AnswersTakenSlowly has a peer that opens its window by a byte now and then: what
// is held for it is given back in the end.
func TestGRPC_AnswersTakenSlowly(t *testing.T) {
	stub := &testservice.Stub{OnVersion: func(context.Context) (string, error) { return string(make([]byte, 200_000)), nil }}
	config := fulmar.ServerConfig{WriteStallTimeout: 5 * time.Second}
	simulate(t, simnet.Config{}, config, fulmar.ClientConfig{}, stub, func(s *simulation) {
		peer := s.http2Peer(http2.Config{StreamWindow: 2, StreamWindowMax: 2})
		id := peer.send(grpcMessage([]byte{0}, false), true, http2.Field{Name: ":path", Value: "/Echo/version"})
		peer.listen(time.Second)
		start := time.Now()
		for len(peer.resets) == 0 && time.Since(start) < 10*time.Minute {
			peer.http2.Consume(id, 1, 0)
			peer.listen(3 * time.Second)
		}
		if took := time.Since(start); peer.resets[id] != http2.Cancel || took > 15*time.Second || len(peer.data[id]) < 3 {
			t.Errorf("after %v and %d bytes: %v", took, len(peer.data[id]), peer.resets)
		}
		if held := s.server.Stats().BufferedBytes; held != 0 {
			t.Errorf("the budget counts %d bytes", held)
		}
	})
}
