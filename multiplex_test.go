package fulmar_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// call makes calls at once and returns what ends when all have.
func call(calls int, one func(i int)) *sync.WaitGroup {
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() { one(i) })
	}
	return &all
}

// TestMultiplex_CallersShareFewConnections: also when all of them come at once,
// before it is known whether the server can do that.
func TestMultiplex_CallersShareFewConnections(t *testing.T) {
	eachHeaded(t, func(t *testing.T, protocol fulmar.Protocol) {
		for _, delay := range []time.Duration{0, limits.CapabilityWait / 5} {
			simulate(t, simnet.Config{Delay: delay}, fulmar.ServerConfig{}, fulmar.ClientConfig{Protocol: protocol}, napper(), func(s *simulation) {
				var most atomic.Int64
				call(200, func(i int) {
					for range 10 {
						if sum, err := s.api.Add(context.Background(), 1, int32(i)); sum != int32(i)+1 || err != nil {
							t.Errorf("Add = %d, %v", sum, err)
						}
						most.Store(max(most.Load(), int64(s.client.Stats().Connections)))
					}
				}).Wait()
				synctest.Wait() // connections that nobody needs any more may still be closing
				stats := s.client.Stats()
				if accepted := s.server.Stats().Network.Accepted; accepted > limits.MultiplexedConnections || most.Load() > limits.MultiplexedConnections || stats.Multiplexed != stats.Connections || stats.LateReplies != 0 {
					t.Errorf("delay %v: %d connections were opened, %d at a time; %+v", delay, accepted, most.Load(), stats)
				}
			})
		}
	})
}

// TestMultiplex_OpensTheNextWhenAllAreBusy: with so many calls on each, and not
// before.
func TestMultiplex_OpensTheNextWhenAllAreBusy(t *testing.T) {
	stub := napper()
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{Timeout: time.Minute}, stub, func(s *simulation) {
		if _, err := s.api.Add(context.Background(), 0, 0); err != nil {
			t.Fatal(err)
		}
		var calls []*sync.WaitGroup
		nap := func(count int, milliseconds int32) {
			calls = append(calls, call(count, func(int) {
				if _, err := s.api.Add(context.Background(), milliseconds, 0); err != nil {
					t.Error(err)
				}
			}))
			synctest.Wait()
		}
		const long = 10000
		for connections := 1; connections <= limits.MultiplexedConnections; connections++ {
			nap(limits.MultiplexedGrow, long)
			if stats := s.client.Stats(); stats.Connections != connections {
				t.Errorf("with %d calls: %+v, want %d connections", connections*limits.MultiplexedGrow, stats, connections)
			}
			// Its first call has the next connection to itself until it ends.
			nap(1, 1)
			time.Sleep(2 * time.Millisecond)
			if stats, want := s.client.Stats(), min(connections+1, limits.MultiplexedConnections); stats.Connections != want || stats.Multiplexed != want {
				t.Errorf("with one call more: %+v, want %d connections", stats, want)
			}
		}
		for _, all := range calls {
			all.Wait()
		}
	})
}

// TestMultiplex_CallsThatGiveUpLeaveAtOnce: their places are free for others,
// the connection stays, and the answers that still come are counted.
func TestMultiplex_CallsThatGiveUpLeaveAtOnce(t *testing.T) {
	var held holder
	stub := held.stub()
	stub.OnAdd = adder().OnAdd
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{Timeout: time.Minute}, stub, func(s *simulation) {
		release := held.begin()
		if _, err := s.api.Add(context.Background(), 1, 2); err != nil {
			t.Fatal(err)
		}
		const rounds = 3
		for range rounds {
			ctx, cancel := context.WithCancel(context.Background())
			calls := call(limits.MultiplexedGrow-1, func(int) {
				err := s.api.Nothing(ctx)
				if e := asError(t, err); e.Code() != fulmar.Canceled || e.Executed() != fulmar.ExecutedMaybe || e.Phase() != fulmar.PhaseWait {
					t.Errorf("a call that gave up: %v: %v, phase %v", e, e.Executed(), e.Phase())
				}
			})
			synctest.Wait()
			start := time.Now()
			cancel()
			calls.Wait()
			if took := time.Since(start); took != 0 {
				t.Errorf("giving up took %v", took)
			}
			// Were they still counted, these would open another connection.
			if _, err := s.api.Add(context.Background(), 1, 2); err != nil {
				t.Error(err)
			}
		}
		if stats := s.client.Stats(); stats.Connections != 1 || stats.Multiplexed != 1 || stats.LateReplies != 0 {
			t.Errorf("before the answers: %+v", stats)
		}
		release()
		synctest.Wait()
		if stats := s.client.Stats(); stats.Connections != 1 || stats.LateReplies != rounds*(limits.MultiplexedGrow-1) {
			t.Errorf("after the answers: %+v", stats)
		}
	})
}

// TestMultiplex_TimeoutsKeepAConnectionThatIsAlive, and leave one on which not a
// byte has come since the call began: its peer may be gone.
func TestMultiplex_TimeoutsKeepAConnectionThatIsAlive(t *testing.T) {
	for _, alive := range []bool{true, false} {
		simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{Timeout: time.Second}, napper(), func(s *simulation) {
			add := func(milliseconds int32) error { _, err := s.api.Add(context.Background(), milliseconds, 0); return err }
			if err := add(0); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
			calls := call(1, func(int) {
				if err := add(5000); fulmar.CodeOf(err) != fulmar.DeadlineExceeded {
					t.Errorf("a call of 5 s: %v", err)
				}
			})
			time.Sleep(500 * time.Millisecond)
			if alive {
				if err := add(0); err != nil {
					t.Error(err)
				}
			}
			calls.Wait()
			if err := add(0); err != nil {
				t.Errorf("the next call: %v", err)
			}
			if accepted := s.server.Stats().Network.Accepted; (accepted == 1) != alive {
				t.Errorf("alive %v: %d connections were opened", alive, accepted)
			}
		})
	}
}

// TestMultiplex_OnewayReturnsAtOnce, although the handlers take their time, and
// takes no place on the connection afterwards.
func TestMultiplex_OnewayReturnsAtOnce(t *testing.T) {
	var held holder
	stub := held.stub()
	stub.OnAdd = adder().OnAdd
	stub.OnNotify = func(ctx context.Context, _ string) error { return stub.OnNothing(ctx) }
	const calls = 3 * limits.MultiplexedGrow
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, stub, func(s *simulation) {
		release := held.begin()
		if _, err := s.api.Add(context.Background(), 1, 2); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for range calls {
			if err := s.api.Notify(context.Background(), "x"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.api.Add(context.Background(), 1, 2); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if stats := s.client.Stats(); stats.Connections != 1 || stats.Multiplexed != 1 || time.Since(start) != 0 {
			t.Errorf("after %v: %+v", time.Since(start), stats)
		}
		release()
	})
	if n := held.started.Load(); n != calls {
		t.Errorf("%d oneway calls were executed, want %d", n, calls)
	}
}

// TestMultiplex_CloseEndsCallsInFlight, exactly once, and leaves nothing open.
func TestMultiplex_CloseEndsCallsInFlight(t *testing.T) {
	var held holder
	stub := held.stub()
	stub.OnAdd = adder().OnAdd
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, stub, func(s *simulation) {
		defer held.begin()()
		if _, err := s.api.Add(context.Background(), 1, 2); err != nil {
			t.Fatal(err)
		}
		// One of them has a connection to itself, which is to be the next one.
		calls := call(limits.MultiplexedGrow+10, func(int) {
			err := s.api.Nothing(context.Background())
			if e := asError(t, err); e.Code() != fulmar.Canceled || e.Executed() != fulmar.ExecutedMaybe || !strings.Contains(e.Error(), "client is closed") {
				t.Errorf("a call in flight: %v: %v", e, e.Executed())
			}
		})
		synctest.Wait()
		start := time.Now()
		if err := s.client.Close(); err != nil {
			t.Error(err)
		}
		calls.Wait()
		if e := asError(t, s.api.Nothing(context.Background())); e.Code() != fulmar.Canceled || e.Executed() != fulmar.ExecutedNo {
			t.Errorf("a later call: %v", e)
		}
		if stats := s.client.Stats(); stats.Connections != 0 || stats.Multiplexed != 0 || time.Since(start) != 0 {
			t.Errorf("after %v: %+v", time.Since(start), stats)
		}
	})
}

// TestMultiplex_LearnsWhyALongRequestWasRefused, on a shared connection too:
// the server stops reading while the client still writes.
func TestMultiplex_LearnsWhyALongRequestWasRefused(t *testing.T) {
	const limit = 64 << 10
	server := serve(t, fulmar.ServerConfig{MaxMessageBytes: limit}, adder())
	for _, size := range []int{limit, 12 << 20} {
		for range 10 {
			api := dial(t, fulmar.ClientConfig{Target: server.address})
			if _, err := api.Add(context.Background(), 1, 2); err != nil {
				t.Fatal(err)
			}
			_, err := api.Echo(context.Background(), &testservice.Message{Text: strings.Repeat("x", size)})
			if e := asError(t, err); e.Origin() != fulmar.OriginRemote || e.Executed() != fulmar.ExecutedNo || !strings.Contains(e.Message(), "limit 65536") {
				t.Fatalf("Echo of %d bytes: %v", size, err)
			}
			if sum, err := api.Add(context.Background(), 1, 2); sum != 3 || err != nil {
				t.Fatalf("Add afterwards = %d, %v", sum, err)
			}
		}
	}
}

// TestMultiplex_LongAndShortCallsTogether: every caller gets its own answer,
// whatever its length, and a long one arrives whole.
func TestMultiplex_LongAndShortCallsTogether(t *testing.T) {
	server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{})
	client := dialAny(t, fulmar.ClientConfig{Target: server.address})
	api := testservice.NewEchoClient(client)
	call(16, func(caller int) {
		for i := range 20 {
			length := []int{0, 10, 1000, 70_000, 1_000_000}[(caller+i)%5]
			want := fmt.Sprintf("%d/%d %s", caller, i, strings.Repeat("x", length))
			if got, err := api.Echo(context.Background(), &testservice.Message{Text: want}); err != nil || got.Text != want {
				t.Errorf("Echo(%.20q of %d bytes): %v", want, len(want), err)
				return
			}
		}
	}).Wait()
	if stats := client.Stats(); stats.Connections > limits.MultiplexedConnections || stats.LateReplies != 0 {
		t.Errorf("%+v", stats)
	}
}

// TestMultiplex_RestartsCostNoCall: two servers take turns at an address while
// calls are made, each of them is told to stop when the other one serves (S11 of
// the fault scenarios).
func TestMultiplex_RestartsCostNoCall(t *testing.T) {
	const callers, callsOfEach, rounds = 50, 100, 8
	addresses := []string{"server:1", "server:2"}
	for _, delay := range []time.Duration{0, 3 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			network := simnet.New(simnet.Config{Delay: delay, DelayJitter: delay})
			var current atomic.Int64
			start := func(number int64) (stop func()) {
				listener, err := network.Listen(addresses[number%2])
				if err != nil {
					t.Fatal(err)
				}
				return serveOn(t, listener, napper())
			}
			client, err := fulmar.NewClient(fulmar.ClientConfig{Target: simAddress, Dial: func(ctx context.Context, kind, _ string) (net.Conn, error) {
				return network.Dial(ctx, kind, addresses[current.Load()%2])
			}})
			if err != nil {
				t.Fatal(err)
			}
			api := testservice.NewEchoClient(client)
			stop := start(0)
			calls := call(callers, func(caller int) {
				for i := range int32(callsOfEach) {
					if sum, err := api.Add(context.Background(), i%50, int32(caller)); sum != i%50+int32(caller) || err != nil {
						t.Errorf("call %d of %d: %d, %v", i, caller, sum, err)
					}
				}
			})
			for number := range int64(rounds) {
				time.Sleep(100 * time.Millisecond)
				next := start(number + 1)
				current.Store(number + 1)
				time.Sleep(20 * time.Millisecond) // for connections that are being opened
				stop()
				stop = next
			}
			calls.Wait()
			if err := client.Close(); err != nil {
				t.Error(err)
			}
			stop()
		})
	}
}

// serveOn serves a stub on a listener until what it returns is called, which
// waits for the server's end.
func serveOn(t *testing.T, listener net.Listener, stub *testservice.Stub) (stop func()) {
	t.Helper()
	server, err := fulmar.NewServer(fulmar.ServerConfig{Listener: listener})
	if err != nil {
		t.Fatal(err)
	}
	testservice.RegisterEchoServer(server, stub)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	return func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	}
}
