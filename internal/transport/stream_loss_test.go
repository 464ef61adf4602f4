package transport

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/wire"
)

// TestStream_PeerVanishes: a client that is killed says nothing of its streams; its system
// closes the connection.
func TestStream_PeerVanishes(t *testing.T) {
	onEachCarrier(t, func(t *testing.T, protocol wire.Protocol) {
		told := make(chan error, 2)
		pair := newStreamPair(t, protocol, func(ctx context.Context, call *Inbound) {
			if call.Target == "half-closed" {
				<-ctx.Done()
				told <- ctx.Err()
				return
			}
			_, err := call.Stream.Receive(0)
			told <- err
		})
		half := pair.open(t.Context(), t, "half-closed")
		if err := half.CloseSend(); err != nil {
			t.Error(err)
		}
		whole := pair.open(t.Context(), t, "open")
		synctest.Wait()
		for _, conn := range pair.conns {
			_ = conn.Close()
		}
		for range 2 {
			if err := <-told; !errors.Is(err, context.Canceled) {
				t.Errorf("a handler was told %v", err)
			}
		}
		half.Release()
		whole.Release()
	})
}

// TestStream_MuchInBothDirections: two sides that each have more to send than the other one
// reads do not wait for each other.
func TestStream_MuchInBothDirections(t *testing.T) {
	const streams, messages, size = 48, 12, 200 << 10
	onEachCarrier(t, func(t *testing.T, protocol wire.Protocol) {
		pair := newStreamPair(t, protocol, echo)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var all sync.WaitGroup
		message := strings.Repeat("m", size)
		for range streams {
			stream := pair.open(ctx, t, "echo")
			all.Go(func() {
				if err := sends(stream, slices.Repeat([]string{message}, messages)...); err != nil {
					t.Error(err)
				}
				_ = stream.CloseSend()
			})
			all.Go(func() {
				got, err := receivesAll(stream)
				if len(got) != messages || err != io.EOF {
					t.Errorf("%d messages, %v", len(got), err)
				}
			})
			t.Cleanup(stream.Release)
		}
		all.Wait()
	})
}

// TestStream_RestOnABrokenConnection: a connection that is not read, because answers wait to
// be written, ends when they never will be.
func TestStream_RestOnABrokenConnection(t *testing.T) {
	onEachCarrier(t, func(t *testing.T, protocol wire.Protocol) {
		pair := newStreamPair(t, protocol, echo)
		stream := pair.open(t.Context(), t, "echo")
		synctest.Wait()
		broken := errors.New("nobody takes it")
		var err error
		if protocol == wire.GRPC {
			c := pair.peer.grpc.conns[0].(*grpcConn)
			c.mu.Lock()
			c.writeErr = broken
			turns := c.gathering.turns
			c.mu.Unlock()
			err = c.awaitRoom(turns)
		} else {
			c := pair.peer.streams.conns[0].(*ttstreamConn)
			c.rests(broken)
			err = c.rest()
		}
		if !errors.Is(err, broken) {
			t.Errorf("the connection goes on after %v", err)
		}
		stream.Release()
	})
}

// TestStream_LastMessage: it ends what the client sends, and nothing waits for a clock.
func TestStream_LastMessage(t *testing.T) {
	onEachCarrier(t, func(t *testing.T, protocol wire.Protocol) {
		told := make(chan error, 1)
		pair := newStreamPair(t, protocol, func(_ context.Context, call *Inbound) {
			messages, err := receivesAll(call.Stream)
			if len(messages) != 1 {
				t.Errorf("%d messages", len(messages))
			}
			told <- err
			_ = call.FinishStream(ReplyHead{})
		})
		for range 20 {
			began := time.Now()
			stream := pair.open(t.Context(), t, "down")
			stream.Room().AppendString("the only one")
			if err := stream.Send(true); err != nil {
				t.Error(err)
			}
			if err := <-told; err != io.EOF {
				t.Errorf("the handler was told %v", err)
			}
			if _, err := stream.Receive(0); err != io.EOF {
				t.Errorf("receiving: %v", err)
			}
			stream.Release()
			if took := time.Since(began); took > sweepInterval/2 {
				t.Errorf("it took %v where nothing takes time", took)
			}
		}
	})
}

// TestStream_LostBeforeItLeft: whether the server may have seen a stream depends on whether
// its header has been written, or is being written.
func TestStream_LostBeforeItLeft(t *testing.T) {
	onEachCarrier(t, func(t *testing.T, protocol wire.Protocol) {
		pair := newStreamPair(t, protocol, echo)
		written := pair.open(t.Context(), t, "echo")
		defer written.Release()
		synctest.Wait()
		var conn streamConn
		var mu sync.Locker
		var writing *bool
		if protocol == wire.GRPC {
			c := pair.peer.grpc.conns[0].(*grpcConn)
			conn, mu, writing = c, &c.mu, &c.writing
		} else {
			c := pair.peer.streams.conns[0].(*ttstreamConn)
			conn, mu, writing = c, &c.mu, &c.writer.writing
		}
		mu.Lock()
		*writing = true // by this test, which takes nothing
		mu.Unlock()
		waiting := pair.open(t.Context(), t, "echo")
		defer waiting.Release()
		conn.fail(errors.New("broken"))
		for name, stream := range map[string]Stream{"written": written, "waiting": waiting} {
			_, err := stream.Receive(0)
			failed := new(CallError)
			if !errors.As(err, &failed) || failed.Sent != (name == "written") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
