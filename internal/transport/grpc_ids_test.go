package transport

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// spendStreams leaves a connection only the last few of the 2^30 streams that it can have.
func spendStreams(c *grpcConn, left uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := reflect.ValueOf(c.http2).Elem().FieldByName("nextID")
	*(*uint32)(unsafe.Pointer(next.UnsafeAddr())) = 1<<31 + 1 - 2*left
}

// numbering answers with the number of the connection, but those calls that wait.
func numbering(s *grpcScript, event *http2.Event) {
	if event.Kind == http2.EventData && event.End && string(event.Data[5:]) != "wait" {
		s.answer(event.Stream, fmt.Sprint(s.number), "0")
	}
}

// TestGRPC_ConnectionsWithoutStreams: one that has had all streams that it can have makes room
// for another one, whether its last call has ended or goes on.
func TestGRPC_ConnectionsWithoutStreams(t *testing.T) {
	for name, c := range map[string]struct {
		last        string
		connections int
	}{"that has ended": {"q", 1}, "that goes on": {"wait", 2}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				peer := scripted(t, PoolConfig{Connections: c.connections}, numbering)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if got, err := grpcDo(ctx, peer, "q"); got != "0" || err != nil {
					t.Fatalf("%q, %v", got, err)
				}
				spent := peer.grpc.conns[0].(*grpcConn)
				spendStreams(spent, 1)
				lastly := make(chan error, 1)
				lastCtx, giveUp := context.WithCancel(ctx)
				go func() {
					_, err := grpcDo(lastCtx, peer, c.last)
					lastly <- err
				}()
				synctest.Wait()
				for range 3 {
					if got, err := grpcDo(ctx, peer, "q"); got != "1" || err != nil {
						t.Fatalf("%q, %v; want an answer on the second connection", got, err)
					}
				}
				giveUp()
				if err := <-lastly; (err != nil) != (c.last == "wait") {
					t.Errorf("the last call on the first one: %v", err)
				}
				synctest.Wait()
				if err := spent.failure(); err == nil || spent.err == nil || !errors.Is(spent.err, errLeaving) {
					t.Errorf("the first connection: %v, want it closed", err)
				}
			})
		})
	}
}

// TestGRPC_CallsBehindTheLastStream: who finds that a connection has had all of them makes it
// leave, also if it has no call whose end would.
func TestGRPC_CallsBehindTheLastStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer := scripted(t, PoolConfig{Connections: 1}, numbering)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for number := range 3 {
			want := fmt.Sprint(number)
			if got, err := grpcDo(ctx, peer, "q"); got != want || err != nil {
				t.Fatalf("%q, %v; want %q", got, err, want)
			}
			spendStreams(peer.grpc.conns[0].(*grpcConn), 0)
		}
	})
}
