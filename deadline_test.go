package fulmar_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
)

// toldTimeouts answers calls after a while and notes what timeouts they tell.
type toldTimeouts struct {
	t     *testing.T
	think time.Duration
	// shares: the peer says that it can multiplex.
	shares bool

	mu   sync.Mutex
	told []string
}

func (p *toldTimeouts) answerLater(conn net.Conn) {
	for {
		call, err := nextHeaded(conn)
		if err != nil {
			return
		}
		text, ok := call.ints[wire.KeyTimeout]
		if !ok {
			text = "none"
		}
		p.mu.Lock()
		p.told = append(p.told, text)
		p.mu.Unlock()
		time.Sleep(p.think)
		answer := reply(p.t, call, []byte{0})
		if !p.shares {
			answer = headed(p.t, ttheader.Head{Sequence: call.HeaderSequence}, message(thriftwire.Reply, string(call.Name), call.Sequence, []byte{0}))
		}
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
}

// TestDeadline_IsToldInMilliseconds: rounded up, because 0 would be no limit,
// and not at all if there is none.
func TestDeadline_IsToldInMilliseconds(t *testing.T) {
	for _, test := range []struct {
		option  time.Duration
		context time.Duration
		want    string
	}{
		{0, 0, strconv.FormatInt(limits.CallTimeout.Milliseconds(), 10)},
		{2 * time.Second, 0, "2000"},
		{1500 * time.Microsecond, 0, "2"},
		{time.Nanosecond, 0, "1"},
		{time.Second, 300*time.Millisecond + 1, "301"},
		{100 * time.Hour, 0, "360000000"},
		{-1, 0, "none"},
		{-1, time.Minute, "60000"},
	} {
		for _, shares := range []bool{false, true} {
			peer := &toldTimeouts{t: t, shares: shares}
			withFake(t, simnet.Config{}, fulmar.ClientConfig{}, peer.answerLater, func(client *fulmar.Client) {
				api := testservice.NewEchoClient(client)
				for range 2 { // on a new connection, and on one that was used
					ctx, cancel := context.WithCancel(context.Background())
					if test.context > 0 {
						ctx, cancel = context.WithTimeout(ctx, test.context)
					}
					var options []fulmar.CallOption
					if test.option != 0 {
						options = append(options, fulmar.Timeout(test.option))
					}
					if err := api.Nothing(ctx, options...); err != nil {
						t.Error(err)
					}
					cancel()
				}
			})
			for _, told := range peer.told {
				if told != test.want || len(peer.told) != 2 {
					t.Errorf("option %v, context %v, shared %v: the server is told %v, want %s", test.option, test.context, shares, peer.told, test.want)
				}
			}
		}
	}
}

// TestDeadline_WhatIsLeftIsTold: a call that had to wait before it was sent, for
// a connection or for a place on one, has less time for the server.
func TestDeadline_WhatIsLeftIsTold(t *testing.T) {
	const think = 300 * time.Millisecond
	afterWait := strconv.FormatInt((time.Second - limits.CapabilityWait).Milliseconds(), 10)
	cases := map[string]struct {
		shares bool
		config fulmar.ClientConfig
		want   []string
	}{
		"for another call":                      {false, fulmar.ClientConfig{MaxConnections: 1}, []string{"1000", "700", "400"}},
		"for the connection to be shared":       {true, fulmar.ClientConfig{MaxConnections: 1}, []string{"1000", "700", "700"}},
		"for one that is known to multiplex":    {true, fulmar.ClientConfig{AssumeMultiplexed: true}, []string{"1000", "1000", "1000"}},
		"not at all, with connections of one's": {false, fulmar.ClientConfig{}, []string{"1000", afterWait, afterWait}},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			peer := &toldTimeouts{t: t, shares: test.shares, think: think}
			withFake(t, simnet.Config{}, test.config, func(conn net.Conn) {
				if !test.shares {
					peer.answerLater(conn)
					return
				}
				// One that answers each call after the same time.
				serveConcurrently(t, conn, peer)
			}, func(client *fulmar.Client) {
				api := testservice.NewEchoClient(client)
				var calls sync.WaitGroup
				for range 3 {
					calls.Go(func() {
						if err := api.Nothing(context.Background(), fulmar.Timeout(time.Second)); err != nil {
							t.Error(err)
						}
					})
					synctest.Wait()
				}
				calls.Wait()
			})
			if len(peer.told) != len(test.want) {
				t.Fatalf("told %v, want %v", peer.told, test.want)
			}
			for i, told := range peer.told {
				if told != test.want[i] {
					t.Errorf("told %v, want %v", peer.told, test.want)
				}
			}
		})
	}
}

// serveConcurrently answers every call of a connection after the peer's time.
func serveConcurrently(t *testing.T, conn net.Conn, peer *toldTimeouts) {
	var mu sync.Mutex
	var answers sync.WaitGroup
	defer answers.Wait()
	for {
		call, err := nextHeaded(conn)
		if err != nil {
			return
		}
		peer.mu.Lock()
		peer.told = append(peer.told, call.ints[wire.KeyTimeout])
		peer.mu.Unlock()
		answers.Go(func() {
			time.Sleep(peer.think)
			mu.Lock()
			defer mu.Unlock()
			_, _ = conn.Write(reply(t, call, []byte{0}))
		})
	}
}

// TestDeadline_GoesDownTheChain: what a server passes on is what is left of its
// own caller's time.
func TestDeadline_GoesDownTheChain(t *testing.T) {
	peer := &toldTimeouts{t: t, shares: true}
	withFake(t, simnet.Config{}, fulmar.ClientConfig{}, peer.answerLater, func(downstream *fulmar.Client) {
		toDownstream := testservice.NewEchoClient(downstream)
		server, conn := servePipe(t, &testservice.Stub{OnNothing: func(ctx context.Context) error {
			time.Sleep(500 * time.Millisecond)
			return toDownstream.Nothing(ctx, fulmar.Timeout(time.Minute))
		}})
		for _, key := range []string{"2000", "2000000"} {
			call := headed(t, ttheader.Head{Sequence: 1, Ints: []ttheader.IntPair{{Key: wire.KeyTimeout, Value: key}}}, message(thriftwire.Call, "nothing", 1, []byte{0}))
			write(t, conn, call)
			if answer := readHeaded(t, conn); answer.Type != thriftwire.Reply {
				t.Errorf("the answer is %v", answer.Type)
			}
		}
		_ = conn.Close()
		server()
	})
	if want := []string{"1500", "60000"}; len(peer.told) != 2 || peer.told[0] != want[0] || peer.told[1] != want[1] {
		t.Errorf("the second server is told %v, want %v", peer.told, want)
	}
}

// servePipe serves a stub on a network of its own, in the bubble of the caller,
// and returns one connection to it.
func servePipe(t *testing.T, stub *testservice.Stub) (stop func(), conn net.Conn) {
	t.Helper()
	network := simnet.New(simnet.Config{})
	listener, err := network.Listen(simAddress)
	if err != nil {
		t.Fatal(err)
	}
	stop = serveOn(t, listener, stub)
	if conn, err = network.Dial(context.Background(), "tcp", simAddress); err != nil {
		t.Fatal(err)
	}
	return stop, conn
}

// TestDeadline_FromAnyPeer: what of a peer's word counts, for the handler's
// context and for Call.Deadline alike.
func TestDeadline_FromAnyPeer(t *testing.T) {
	const none = time.Duration(0)
	cases := map[string]time.Duration{
		"1":                             time.Millisecond,
		"250":                           250 * time.Millisecond,
		"3600000":                       limits.PeerTimeout,
		"3600001":                       limits.PeerTimeout,
		"9223372036854775807":           limits.PeerTimeout,
		"9223372036854775808":           limits.PeerTimeout,
		"99999999999999999999999999999": limits.PeerTimeout,
		"0":                             none,
		"-1":                            none,
		"-99999999999999999999999":      none,
		"":                              none,
		"1s":                            none,
		"1.5":                           none,
		" 1":                            none,
		"0x10":                          none,
		"soon":                          none,
	}
	stub := adder()
	got := make(chan time.Duration, 1)
	stub.OnNothing = func(ctx context.Context) error {
		call, _ := fulmar.CallFrom(ctx)
		deadline, ok := ctx.Deadline()
		told, toldOK := call.Deadline()
		if ok != toldOK || !deadline.Equal(told) {
			t.Errorf("the context ends at %v (%v), the call's deadline is %v (%v)", deadline, ok, told, toldOK)
		}
		if !ok {
			got <- none
			return nil
		}
		got <- time.Until(deadline)
		return nil
	}
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, stub, func(s *simulation) {
		conn := s.connect()
		for text, want := range cases {
			for _, flags := range []uint16{0, wire.FlagOutOfOrder} {
				head := ttheader.Head{Flags: flags, Sequence: 1, Ints: []ttheader.IntPair{{Key: wire.KeyTimeout, Value: text}}}
				write(t, conn, headed(t, head, message(thriftwire.Call, "nothing", 1, []byte{0})))
				if left := <-got; left != want {
					t.Errorf("%q: the handler has %v, want %v", text, left, want)
				}
				readHeaded(t, conn)
			}
		}
		_ = conn.Close()
	})
}

// TestDeadline_EndsOneCallOfAConnection: the context of its handler ends, the
// others on the connection and the connection itself go on.
func TestDeadline_EndsOneCallOfAConnection(t *testing.T) {
	stub := adder()
	var mu sync.Mutex
	ended := map[string]time.Duration{}
	stub.OnEcho = func(ctx context.Context, message *testservice.Message) (*testservice.Message, error) {
		start := time.Now()
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
		}
		mu.Lock()
		ended[message.Text] = time.Since(start)
		mu.Unlock()
		return message, ctx.Err()
	}
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, stub, func(s *simulation) {
		conn := s.connect()
		for i, timeout := range []string{"100", "2000", "0"} {
			head := flagged(int32(i))
			head.Ints = []ttheader.IntPair{{Key: wire.KeyTimeout, Value: timeout}}
			write(t, conn, headed(t, head, message(thriftwire.Call, "echo", int32(i), body(t, &testservice.EchoEchoArgs{Message: &testservice.Message{Text: timeout}}))))
		}
		for _, want := range []thriftwire.MessageType{thriftwire.Exception, thriftwire.Exception, thriftwire.Reply} {
			if answer := readHeaded(t, conn); answer.Type != want {
				t.Errorf("call %d was answered by %v, want %v", answer.HeaderSequence, answer.Type, want)
			}
		}
		write(t, conn, headed(t, flagged(9), addCall(t, 9, 1, 2)))
		wantHeadedSum(t, conn, 9, 3)
		_ = conn.Close()
	})
	for text, want := range map[string]time.Duration{"100": 100 * time.Millisecond, "2000": 2 * time.Second, "0": 10 * time.Second} {
		if ended[text] != want {
			t.Errorf("the call with a timeout of %s ms ran for %v", text, ended[text])
		}
	}
}

// TestDeadline_OfTheClientEndsTheHandler: also on a shared connection, which
// cannot be reset for it.
func TestDeadline_OfTheClientEndsTheHandler(t *testing.T) {
	eachHeaded(t, func(t *testing.T, protocol fulmar.Protocol) {
		stub := adder()
		ended := make(chan error, 2)
		stub.OnNothing = func(ctx context.Context) error {
			<-ctx.Done()
			ended <- ctx.Err()
			return ctx.Err()
		}
		stub.OnNotify = func(ctx context.Context, _ string) error {
			<-ctx.Done()
			ended <- ctx.Err()
			return nil
		}
		simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{Protocol: protocol}, stub, func(s *simulation) {
			if _, err := s.api.Add(context.Background(), 1, 2); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			if err := s.api.Notify(context.Background(), "x", fulmar.Timeout(100*time.Millisecond)); err != nil {
				t.Error(err)
			}
			if err := s.api.Nothing(context.Background(), fulmar.Timeout(100*time.Millisecond)); fulmar.CodeOf(err) != fulmar.DeadlineExceeded {
				t.Errorf("Nothing: %v", err)
			}
			for range 2 {
				if err := <-ended; !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 100*time.Millisecond {
					t.Errorf("a handler's context ended with %v after %v", err, time.Since(start))
				}
			}
		})
	})
}

// TestDeadline_OfAnEarlierCallDoesNotCount: a connection's own deadline stays from
// call to call while it is early enough, so it may pass during a call that has more
// time, or before one, and is moved when a call has less.
func TestDeadline_OfAnEarlierCallDoesNotCount(t *testing.T) {
	var think atomic.Pointer[func(ctx context.Context)]
	server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{OnNothing: func(ctx context.Context) error {
		(*think.Load())(ctx)
		return nil
	}})
	client := dialAny(t, fulmar.ClientConfig{Target: server.address, Protocol: fulmar.Framed})
	api := testservice.NewEchoClient(client)
	call := func(thinks func(ctx context.Context), timeout time.Duration) error {
		think.Store(&thinks)
		return api.Nothing(context.Background(), fulmar.Timeout(timeout))
	}
	atOnce := func(context.Context) {}
	// A short call has succeeded, and deadline is not before its. On a busy machine it may
	// need more time; who gets too little loses its connection.
	connections := uint64(1)
	short := func() (deadline time.Time) {
		for timeout := 100 * time.Millisecond; ; timeout *= 2 {
			err := call(atOnce, timeout)
			if deadline = time.Now().Add(timeout); err == nil {
				return deadline
			}
			if connections++; timeout > time.Minute {
				t.Fatal(err)
			}
		}
	}
	passed := func(deadline time.Time) func(context.Context) {
		return func(context.Context) {
			ctx, cancel := context.WithDeadline(context.Background(), deadline)
			defer cancel()
			<-ctx.Done()
		}
	}

	if err := call(passed(short()), time.Hour); err != nil {
		t.Errorf("the earlier deadline passed during the call: %v", err)
	}
	passed(short())(context.Background())
	if err := call(atOnce, time.Hour); err != nil {
		t.Errorf("the earlier deadline passed before the call: %v", err)
	}
	if err := call(atOnce, 2*time.Hour); err != nil {
		t.Fatal(err)
	}
	if n := server.server.Stats().Network.Accepted; n > connections {
		t.Errorf("%d connections, want %d for all calls", n, connections)
	}
	err := call(func(ctx context.Context) { <-ctx.Done() }, 20*time.Millisecond)
	if code := asError(t, err).Code(); code != fulmar.DeadlineExceeded {
		t.Errorf("a call with less time than the one before: %v", err)
	}
}
