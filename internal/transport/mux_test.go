package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/wire"
)

// countingConn counts the writes of a client.
type countingConn struct {
	net.Conn
	writes *atomic.Int32
}

func (c countingConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// newMuxPeer returns a Peer that dials a server with one method, m, which handle serves.
func newMuxPeer(t *testing.T, writes *atomic.Int32, handle func(*Inbound)) *Peer {
	t.Helper()
	return newMuxPeerOf(t, limits.MultiplexedConnections, writes, handle)
}

// newMuxPeerOf is newMuxPeer with so many connections at most.
func newMuxPeerOf(t *testing.T, connections int, writes *atomic.Int32, handle func(*Inbound)) *Peer {
	t.Helper()
	network := simnet.New(simnet.Config{})
	listener, err := network.Listen("server")
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(ServerConfig{
		ConnectionCalls: limits.ConnectionCalls,
		Allowed:         wire.SetOf(wire.TTHeader), Limits: limits.DefaultMessage(), BufferedBytes: 1 << 30, Logger: slog.New(slog.DiscardHandler),
		Lookup: func(_, method []byte, _ wire.Payload) any { return string(method) },
		Handle: func(_ context.Context, call *Inbound) { call.LetGo(); handle(call) },
	})
	served := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	serving, err := eventloop.NewListener(listener, server.EventLoop(eventloop.Config{}))
	if err != nil {
		t.Fatal(err)
	}
	go func() { served <- server.Serve(ctx, serving) }()
	peer := NewPeer(PoolConfig{
		Dial: func(ctx context.Context) (*eventloop.Conn, error) {
			conn, err := network.Dial(ctx, "tcp", "server")
			if err != nil {
				return nil, err
			}
			return eventloop.NewConn(countingConn{conn, writes}, eventloop.Config{ReadBufferBytes: ReadBufferBytes(limits.DefaultMessage())}), nil
		},
		Protocol: wire.TTHeader, Limits: limits.DefaultMessage(), Connections: connections, Waiting: 1000, Multiplexed: true,
	})
	t.Cleanup(func() {
		peer.Close()
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return peer
}

// muxDo makes a call of method m.
func muxDo(ctx context.Context, peer *Peer) error {
	request, err := peer.NewRequest(Method{Name: "m", Qualified: "m"}, RequestHead{})
	if err != nil {
		return err
	}
	defer request.Release()
	request.Body().Append([]byte{0})
	response, err := peer.Do(ctx, request)
	if err != nil {
		return err
	}
	response.Release()
	return nil
}

func answer(call *Inbound) error {
	reply, err := call.NewReply("m", ReplyHead{})
	if err != nil {
		return err
	}
	defer reply.Release()
	reply.Body().Append([]byte{0})
	return reply.Send()
}

// TestMux_CallersAnsweredTogetherWriteTogether: 32 callers get their replies at once, and
// call again at once. The first of them must not write alone.
func TestMux_CallersAnsweredTogetherWriteTogether(t *testing.T) {
	const callers, rounds = 32, 50
	var writes atomic.Int32
	var mu sync.Mutex
	// All calls of a round wait until the last of them is there.
	waiting, round := 0, make(chan struct{})
	peer := newMuxPeer(t, &writes, func(call *Inbound) {
		mu.Lock()
		mine := round
		if waiting++; waiting == callers {
			close(round)
			waiting, round = 0, make(chan struct{})
		}
		mu.Unlock()
		<-mine
		if err := answer(call); err != nil {
			t.Error(err)
		}
	})
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for range rounds {
				if err := muxDo(t.Context(), peer); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	// How they meet is up to the scheduler: 110 to 330 writes here, 720 and more if nobody
	// waits for others.
	const most = 500
	if got := writes.Load(); got > most {
		t.Errorf("%d writes for %d calls of %d callers", got, callers*rounds, callers)
	}
}

// TestMux_DeadlinesOfAllCalls: many calls on one connection, each with a deadline of its
// own, of a server that answers none of them, end in the order of their deadlines and
// soon after them.
func TestMux_DeadlinesOfAllCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 200
		var writes atomic.Int32
		quit := make(chan struct{})
		peer := newMuxPeer(t, &writes, func(*Inbound) { <-quit })
		defer close(quit)
		start := time.Now()
		var mu sync.Mutex
		var ended []int
		var group sync.WaitGroup
		for i := range calls {
			group.Go(func() {
				// Some in each order, and some at the same time.
				deadline := start.Add(time.Duration(1+(i*73%calls)/2*2) * time.Second)
				err := muxDo(deadlineContext{t.Context(), deadline}, peer)
				mu.Lock()
				defer mu.Unlock()
				ended = append(ended, int(deadline.Sub(start)/time.Second))
				late := time.Since(deadline)
				if err == nil || late < 0 || late > calls*expireSpacing {
					t.Errorf("a call ended %v after its deadline with %v", late, err)
				}
			})
		}
		group.Wait()
		if !slices.IsSorted(ended) || len(ended) != calls {
			t.Errorf("calls ended in this order of deadlines: %v", ended)
		}
	})
}

// TestMux_ShortDeadlinesAmongManyCalls: calls that come one after the other with hardly
// any time do not make the connection look at all others for each of them.
func TestMux_ShortDeadlinesAmongManyCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const others, short = 500, limits.SilentCalls // then the connection is left
		var writes atomic.Int32
		quit := make(chan struct{})
		peer := newMuxPeerOf(t, 1, &writes, func(*Inbound) { <-quit })
		defer close(quit)
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		for range others {
			group.Go(func() { _ = muxDo(deadlineContext{ctx, time.Now().Add(time.Hour)}, peer) })
		}
		synctest.Wait()
		start := time.Now()
		for range short {
			deadline := time.Now().Add(time.Microsecond)
			if err := muxDo(deadlineContext{t.Context(), deadline}, peer); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			if late := time.Since(deadline); late > (others+1)*expireSpacing {
				t.Errorf("a call ended %v after its deadline", late)
			}
		}
		if took := time.Since(start); took < (short-1)*others*expireSpacing {
			t.Errorf("%d deadlines were looked at within %v", short, took)
		}
		cancel()
		group.Wait()
	})
}

// deadlineContext is what a client gives its calls: it leaves the deadline to others.
type deadlineContext struct {
	context.Context
	deadline time.Time
}

func (c deadlineContext) Deadline() (time.Time, bool)          { return c.deadline, true }
func (c deadlineContext) Source() (context.Context, time.Time) { return c.Context, c.deadline }

// lateContext is a deadlineContext whose caller is held up between being counted among
// the calls of a connection and sending.
type lateContext struct {
	deadlineContext
	held <-chan time.Time
}

func (c lateContext) Deadline() (time.Time, bool) {
	<-c.held
	return c.deadline, true
}

// TestMux_DeadlinesOfCallsThatAreNotSentYet: a call whose deadline passes while its caller
// is on the way to the sender is sent all the same, and says so. Its memory was given back
// while the sender read it, and that ended the process.
func TestMux_DeadlinesOfCallsThatAreNotSentYet(t *testing.T) {
	for _, method := range []Method{{Name: "m", Qualified: "m"}, {Name: "m", Qualified: "m", Oneway: true}} {
		synctest.Test(t, func(t *testing.T) {
			var writes, handled atomic.Int32
			peer := newMuxPeer(t, &writes, func(call *Inbound) {
				handled.Add(1)
				if err := answer(call); err != nil {
					t.Error(err)
				}
			})
			// The first call opens the connection.
			if err := muxDo(t.Context(), peer); err != nil {
				t.Fatal(err)
			}
			request, err := peer.NewRequest(method, RequestHead{})
			if err != nil {
				t.Fatal(err)
			}
			request.Body().Append([]byte{0})
			late := lateContext{deadlineContext{t.Context(), time.Now().Add(time.Second)}, time.After(2 * time.Second)}
			_, err = peer.Do(late, request)
			var failed *CallError
			if !errors.As(err, &failed) || !errors.Is(err, context.DeadlineExceeded) || !failed.Sent {
				t.Errorf("the late call ended in %#v", err)
			}
			request.Release()
			synctest.Wait()
			if got := handled.Load(); got != 2 {
				t.Errorf("%d calls were served, want the late one as well", got)
			}
			for range 10 {
				if err := muxDo(t.Context(), peer); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestMux_RequestsAreUsedAgain: what a call leaves behind in memory that the next one
// takes does not show.
func TestMux_RequestsAreUsedAgain(t *testing.T) {
	var writes atomic.Int32
	seen := make(chan RequestHead, 1)
	peer := newMuxPeer(t, &writes, func(call *Inbound) {
		seen <- call.Head
		if err := answer(call); err != nil {
			t.Error(err)
		}
	})
	for i := range 20 {
		head := RequestHead{}
		if i%2 == 0 {
			head = RequestHead{Service: "s", ToService: "to", FromService: "from", FromMethod: "fm", Timeout: time.Minute,
				Metadata: []Pair{{Prefix: wire.PersistentPrefix, Key: "K", Value: fmt.Sprint(i)}}}
		}
		request, err := peer.NewRequest(Method{Name: "m", Qualified: "m"}, head)
		if err != nil {
			t.Fatal(err)
		}
		request.Body().Append([]byte{0})
		response, err := peer.Do(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		got := <-seen
		if got.FromService != head.FromService || got.FromMethod != head.FromMethod || got.Timeout != head.Timeout || len(got.Metadata) != len(head.Metadata) {
			t.Errorf("call %d: the server saw %+v, the client sent %+v", i, got, head)
		}
		response.Release()
		request.Release()
	}
}
