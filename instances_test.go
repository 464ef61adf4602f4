package fulmar_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// several are servers at addresses of an in-memory network, a client of all of
// them, and what it dials.
type several struct {
	t         *testing.T
	network   *simnet.Network
	addresses []string
	client    *fulmar.Client
	api       testservice.EchoClient
	// stops end the servers that run, drains do it gracefully.
	stops, drains map[string]func()

	mu    sync.Mutex
	dials map[string]int
}

// codedProtocols carry the code of an error, and whether a call was executed; framed Thrift
// does not.
var codedProtocols = []fulmar.Protocol{fulmar.TTHeader, fulmar.GRPC}

// withSeveral runs test over TTHeader and gRPC, or the protocol of config, each time inside a
// bubble with n addresses, at which nobody listens yet. Framed Thrift carries no codes.
func withSeveral(t *testing.T, n int, config fulmar.ClientConfig, test func(s *several)) {
	t.Helper()
	protocols := codedProtocols
	if config.Protocol != 0 {
		protocols = []fulmar.Protocol{config.Protocol}
	}
	for _, protocol := range protocols {
		config.Protocol = protocol
		t.Run(protocol.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSeveral(t, n, config)
				test(s)
				s.close()
			})
		})
	}
}

func newSeveral(t *testing.T, n int, config fulmar.ClientConfig) *several {
	s := &several{t: t, network: simnet.New(simnet.Config{}), stops: map[string]func(){}, drains: map[string]func(){}, dials: map[string]int{}}
	for i := range n {
		s.addresses = append(s.addresses, fmt.Sprintf("server%d:1", i))
	}
	config.Target, config.Dial = "static:///"+strings.Join(s.addresses, ","), s.dial
	var err error
	if s.client, err = fulmar.NewClient(config); err != nil {
		t.Fatal(err)
	}
	s.api = testservice.NewEchoClient(s.client)
	return s
}

func (s *several) close() {
	if err := s.client.Close(); err != nil {
		s.t.Error(err)
	}
	for _, stop := range s.stops {
		stop()
	}
}

func (s *several) dial(ctx context.Context, network, address string) (net.Conn, error) {
	s.mu.Lock()
	s.dials[address]++
	s.mu.Unlock()
	return s.network.Dial(ctx, network, address)
}

// dialled returns how often an address was dialled since it was last asked.
func (s *several) dialled(address string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer delete(s.dials, address)
	return s.dials[address]
}

// serve starts a server at each of the addresses.
func (s *several) serve(stub *testservice.Stub, addresses ...string) {
	s.t.Helper()
	s.serveAny(func(registrar fulmar.Registrar) { testservice.RegisterEchoServer(registrar, stub) }, addresses...)
}

// serveAny is serve for any services.
func (s *several) serveAny(register func(fulmar.Registrar), addresses ...string) {
	s.t.Helper()
	for _, address := range addresses {
		listener, err := s.network.Listen(address)
		if err != nil {
			s.t.Fatal(err)
		}
		server, err := fulmar.NewServer(fulmar.ServerConfig{Listener: listener})
		if err != nil {
			s.t.Fatal(err)
		}
		register(server)
		served := make(chan struct{})
		go func() { defer close(served); _ = server.Serve(context.Background()) }()
		s.stops[address] = func() { _ = server.Close(); <-served; delete(s.stops, address) }
		s.drains[address] = func() { _ = server.Shutdown(context.Background()); <-served; delete(s.stops, address) }
	}
}

// whoServes is a stub whose calls count at the address that serves them.
func whoServes() (stub *testservice.Stub, count func() map[string]int) {
	var mu sync.Mutex
	served := map[string]int{}
	stub = &testservice.Stub{OnAdd: func(ctx context.Context, left, right int32) (int32, error) {
		call, _ := fulmar.CallFrom(ctx)
		mu.Lock()
		defer mu.Unlock()
		served[call.Local()]++
		return left + right, nil
	}}
	return stub, func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		found := served
		served = map[string]int{}
		return found
	}
}

// add makes n calls, at most 8 at a time, each of which must succeed.
func (s *several) add(n int) {
	s.t.Helper()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range n / 8 {
				if sum, err := s.api.Add(context.Background(), 1, 2); sum != 3 || err != nil {
					s.t.Errorf("%d, %v", sum, err)
				}
			}
		})
	}
	all.Wait()
}

// TestInstances_OneRefuses: no call fails because of one server that is not
// there. Nobody dials it before its pause ends, then one call does, and when it
// is back it gets its share.
func TestInstances_OneRefuses(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol fulmar.Protocol) {
		withSeveral(t, 3, fulmar.ClientConfig{Protocol: protocol}, func(s *several) {
			stub, served := whoServes()
			s.serve(stub, s.addresses[1:]...)
			gone := s.addresses[0]
			for s.client.Stats().Ejected == 0 {
				s.add(8)
			}
			if n := s.dialled(gone); n < 1 || n > 8 {
				t.Errorf("%d dials to who refuses, by 8 calls at a time", n)
			}
			for pause := limits.EjectPauseMin; pause <= limits.EjectPauseMax; pause *= 2 {
				s.add(24)
				time.Sleep(pause - time.Millisecond)
				s.add(24)
				if n := s.dialled(gone); n != 0 {
					t.Errorf("%d dials within the pause of %v", n, pause)
				}
				time.Sleep(time.Millisecond)
				s.add(24)
				if n := s.dialled(gone); n != 1 {
					t.Errorf("%d dials after the pause of %v, want one", n, pause)
				}
			}
			if count := served(); count[gone] != 0 || count[s.addresses[1]] == 0 || count[s.addresses[2]] == 0 {
				t.Errorf("served: %v", count)
			}
			s.serve(stub, gone)
			time.Sleep(limits.EjectPauseMax)
			s.add(24)
			served()
			s.add(240)
			if count := served(); count[gone] < 10 || s.client.Stats().Ejected != 0 {
				t.Errorf("back again, of 240 calls: %v, %d are ejected", count, s.client.Stats().Ejected)
			}
		})
	})
}

// TestInstances_OneStops: when a server has closed its connections at once, the
// calls that come after it go to the others.
func TestInstances_OneStops(t *testing.T) {
	withSeveral(t, 3, fulmar.ClientConfig{}, func(s *several) {
		stub, served := whoServes()
		s.serve(stub, s.addresses...)
		s.add(80)
		s.stops[s.addresses[1]]()
		synctest.Wait() // until the client knows: what it sends before that may be executed
		served()
		s.add(800)
		if count := served(); count[s.addresses[1]] != 0 || count[s.addresses[0]]+count[s.addresses[2]] != 800 {
			t.Errorf("served: %v", count)
		}
	})
}

// TestInstances_AllRefuse: the error has both addresses that were tried, and is
// one that may be repeated.
func TestInstances_AllRefuse(t *testing.T) {
	withSeveral(t, 3, fulmar.ClientConfig{}, func(s *several) {
		for range 5 {
			time.Sleep(time.Millisecond)
			_, err := s.api.Add(context.Background(), 1, 2)
			e := asError(t, err)
			if e.Code() != fulmar.Unavailable || e.Executed() != fulmar.ExecutedNo || e.Phase() != fulmar.PhaseConnect || !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("%v: code %v, %v", err, e.Code(), e.Executed())
			}
			tried := 0
			for _, address := range s.addresses {
				n := s.dialled(address)
				tried += n
				if strings.Contains(err.Error(), address) != (n == 1) || strings.Contains(e.Message(), address) {
					t.Errorf("%s was dialled %d times: %v (message %q)", address, n, err, e.Message())
				}
			}
			if tried != 2 || !strings.Contains(e.Error(), ", "+e.Address()+", after ") || !strings.Contains(e.Error(), "before that server") {
				t.Errorf("%d were tried: %v", tried, err)
			}
		}
		if n := s.client.Stats().Ejected; n != 3 {
			t.Errorf("%d are ejected", n)
		}
		// One is there again: it is found at once, not after its pause.
		stub, _ := whoServes()
		s.serve(stub, s.addresses[2])
		failed := 0
		for range 4 {
			time.Sleep(time.Millisecond)
			if _, err := s.api.Add(context.Background(), 1, 2); err != nil {
				failed++
			}
		}
		if failed > 1 || s.client.Stats().Ejected != 2 {
			t.Errorf("%d calls failed, %d are ejected", failed, s.client.Stats().Ejected)
		}
	})
}

// TestInstances_SentOnce: a call whose request was sent is not tried elsewhere,
// however it ends.
func TestInstances_SentOnce(t *testing.T) {
	for name, end := range map[string]func(s *several){
		"connections break": func(s *several) {
			for _, address := range s.addresses {
				s.network.Cut(address)
			}
		},
		"nothing happens": func(*several) {},
	} {
		t.Run(name, func(t *testing.T) {
			withSeveral(t, 3, fulmar.ClientConfig{}, func(s *several) {
				var executed atomic.Int32
				release := make(chan struct{})
				s.serve(&testservice.Stub{OnNothing: func(context.Context) error {
					executed.Add(1)
					<-release
					return nil
				}}, s.addresses...)
				result := make(chan error, 1)
				go func() { result <- s.api.Nothing(context.Background()) }()
				synctest.Wait()
				end(s)
				e := asError(t, <-result)
				close(release)
				if n := executed.Load(); n != 1 || e.Executed() != fulmar.ExecutedMaybe {
					t.Errorf("executed %d times: %v", n, e)
				}
				if !strings.HasPrefix(e.Address(), "server") || strings.Contains(e.Error(), "before that") || s.client.Stats().Ejected != 0 {
					t.Errorf("address %q, %d are ejected: %v", e.Address(), s.client.Stats().Ejected, e)
				}
			})
		})
	}
}

// TestInstances_OneVanishes: connecting to it takes half of a call's time at
// most, so the call succeeds elsewhere, also with less time than the connect
// timeout.
func TestInstances_OneVanishes(t *testing.T) {
	for _, timeout := range []time.Duration{2 * limits.DialPatience, limits.ConnectTimeout, limits.CallTimeout, -1} {
		withSeveral(t, 2, fulmar.ClientConfig{Timeout: timeout}, func(s *several) {
			stub, _ := whoServes()
			s.serve(stub, s.addresses...)
			s.network.Partition(s.addresses[0], true)
			start := time.Now()
			for s.client.Stats().Ejected == 0 && time.Since(start) < time.Minute {
				if sum, err := s.api.Add(context.Background(), 1, 2); sum != 3 || err != nil {
					t.Errorf("timeout %v: %d, %v", timeout, sum, err)
				}
				time.Sleep(time.Microsecond)
			}
			want := limits.ConnectTimeout
			if timeout > 0 {
				want = min(want, timeout/2)
			}
			if took := time.Since(start).Round(time.Millisecond); took != want {
				t.Errorf("timeout %v: ejected after %v, want %v", timeout, took, want)
			}
		})
	}
}

// TestInstances_ShortCallsEjectNobody: that a call with little time could not
// connect says nothing of the instance, and a caller who gives up neither.
func TestInstances_ShortCallsEjectNobody(t *testing.T) {
	withSeveral(t, 2, fulmar.ClientConfig{}, func(s *several) {
		for _, address := range s.addresses {
			s.network.Partition(address, true)
		}
		for _, timeout := range []time.Duration{limits.DialPatience, time.Millisecond} {
			e := asError(t, s.api.Nothing(context.Background(), fulmar.Timeout(timeout)))
			if e.Executed() != fulmar.ExecutedNo || !strings.Contains(e.Error(), "half of the time that was left") || s.client.Stats().Ejected != 0 {
				t.Errorf("timeout %v: %v; %d are ejected", timeout, e, s.client.Stats().Ejected)
			}
			for _, address := range s.addresses {
				// What the first call has begun goes on for the second one.
				if n := s.dialled(address); (n == 1) != (timeout == limits.DialPatience) {
					t.Errorf("timeout %v: %s was dialled %d times", timeout, address, n)
				}
			}
		}
		time.Sleep(limits.ConnectTimeout) // until the dials have ended
		ctx, cancel := context.WithCancel(context.Background())
		stop := time.AfterFunc(limits.ConnectTimeout/2, cancel)
		defer stop.Stop()
		e := asError(t, s.api.Nothing(ctx))
		if e.Code() != fulmar.Canceled || s.client.Stats().Ejected != 0 || strings.Contains(e.Error(), "before that") {
			t.Errorf("%v; %d are ejected", e, s.client.Stats().Ejected)
		}
		if n := s.dialled(s.addresses[0]) + s.dialled(s.addresses[1]); n != 1 {
			t.Errorf("%d dials for a caller who gave up", n)
		}
	})
}

// TestInstances_OwnFaultEjectsNobody: a process without file descriptors cannot
// connect to anybody.
func TestInstances_OwnFaultEjectsNobody(t *testing.T) {
	client := dialAny(t, fulmar.ClientConfig{Target: "static:///a:1,b:1", Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.EMFILE}
	}})
	err := testservice.NewEchoClient(client).Nothing(context.Background())
	if !errors.Is(err, syscall.EMFILE) || client.Stats().Ejected != 0 {
		t.Errorf("%v; %d are ejected", err, client.Stats().Ejected)
	}
}

// TestInstances_RequestsThatCannotBeEncoded fail alike everywhere, and say
// nothing of an instance.
func TestInstances_RequestsThatCannotBeEncoded(t *testing.T) {
	withSeveral(t, 2, fulmar.ClientConfig{MaxMessageBytes: 100}, func(s *several) {
		_, err := s.api.Echo(context.Background(), &testservice.Message{Text: strings.Repeat("x", 1000)})
		if e := asError(t, err); e.Phase() != fulmar.PhaseEncode || strings.Contains(err.Error(), "before that") {
			t.Error(err)
		}
		if n := s.dialled(s.addresses[0]) + s.dialled(s.addresses[1]); n != 0 {
			t.Errorf("%d dials", n)
		}
	})
}

// TestInstances_Close: calls in progress end, later ones fail, also at
// instances that were never called.
func TestInstances_Close(t *testing.T) {
	// With gRPC nobody can tell whether a connection is there that no call has used.
	withSeveral(t, 3, fulmar.ClientConfig{Protocol: fulmar.TTHeader}, func(s *several) {
		var held holder
		release := held.begin()
		s.serve(held.stub(), s.addresses[:2]...)
		s.network.Partition(s.addresses[1], true)
		const calls = 30
		results := make(chan error, calls)
		for range calls {
			go func() { results <- s.api.Nothing(context.Background()) }()
		}
		time.Sleep(time.Millisecond)
		if stats := s.client.Stats(); stats.Connections < 2 || stats.Multiplexed != 0 {
			t.Errorf("while calls run and connect: %+v", stats)
		}
		_ = s.client.Close()
		for range calls {
			if e := asError(t, <-results); e.Code() != fulmar.Canceled || !strings.Contains(e.Error(), "client is closed") {
				t.Errorf("a call in progress: %v", e)
			}
		}
		release()
		for range 10 {
			e := asError(t, s.api.Nothing(context.Background()))
			if e.Code() != fulmar.Canceled || e.Executed() != fulmar.ExecutedNo || strings.Contains(e.Error(), "before that") {
				t.Errorf("a later call: %v", e)
			}
		}
	})
}

// TestInstances_CloseBeforeTheFirstCall: nobody is dialled afterwards.
func TestInstances_CloseBeforeTheFirstCall(t *testing.T) {
	withSeveral(t, 2, fulmar.ClientConfig{}, func(s *several) {
		stub, _ := whoServes()
		s.serve(stub, s.addresses...)
		_ = s.client.Close()
		_, err := s.api.Add(context.Background(), 1, 2)
		if n := s.dialled(s.addresses[0]) + s.dialled(s.addresses[1]); n != 0 || fulmar.CodeOf(err) != fulmar.Canceled {
			t.Errorf("%d dials: %v", n, err)
		}
	})
}

// TestInstances_StatsAddUp over all instances.
func TestInstances_StatsAddUp(t *testing.T) {
	withSeveral(t, 3, fulmar.ClientConfig{}, func(s *several) {
		if stats := s.client.Stats(); stats.Connections != 0 || stats.Ejected != 0 || stats.LateReplies != 0 || stats.Instances != 0 {
			t.Errorf("before the first call: %+v", stats)
		}
		stub, _ := whoServes()
		s.serve(stub, s.addresses...)
		s.add(80)
		stats := s.client.Stats()
		dialled := 0
		for _, address := range s.addresses {
			dialled += s.dialled(address)
		}
		if stats.Multiplexed < 3 || stats.Connections < 3 || stats.Connections > dialled || stats.Ejected != 0 {
			t.Errorf("%d dials, then %+v", dialled, stats)
		}
	})
}

// TestInstances_ListOfOne is called like a single address.
func TestInstances_ListOfOne(t *testing.T) {
	withSeveral(t, 1, fulmar.ClientConfig{}, func(s *several) {
		e := asError(t, s.api.Nothing(context.Background()))
		if e.Address() != s.addresses[0] || s.dialled(s.addresses[0]) != 1 || strings.Contains(e.Error(), "before that") {
			t.Error(e)
		}
	})
}

// TestInstances_DoNotLeakAddresses: what a handler returns of a call that was
// tried at two addresses names neither to its own caller.
func TestInstances_DoNotLeakAddresses(t *testing.T) {
	inner := dial(t, fulmar.ClientConfig{Target: "static:///secret-a:1,secret-b:1", Dial: dialNowhere})
	server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{OnNothing: func(ctx context.Context) error {
		err := inner.Nothing(ctx)
		if !strings.Contains(err.Error(), "secret-a") || !strings.Contains(err.Error(), "secret-b") {
			t.Errorf("the handler sees %v", err)
		}
		return fmt.Errorf("asking: %w", err)
	}})
	err := dial(t, fulmar.ClientConfig{Target: server.address}).Nothing(context.Background())
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), errNowhere.Error()) {
		t.Errorf("the caller sees %v", err)
	}
}

// TestInstances_RollingRestart: three servers stop gracefully and start again,
// one after the other, under load, and no call fails.
func TestInstances_RollingRestart(t *testing.T) {
	withSeveral(t, 3, fulmar.ClientConfig{}, func(s *several) {
		stub, served := whoServes()
		s.serve(stub, s.addresses...)
		var stop atomic.Bool
		var calls, failed atomic.Int64
		var callers sync.WaitGroup
		for range 8 {
			callers.Go(func() {
				for !stop.Load() {
					calls.Add(1)
					if _, err := s.api.Add(context.Background(), 1, 2); err != nil {
						failed.Add(1)
						t.Error(err)
					}
					time.Sleep(20 * time.Millisecond)
				}
			})
		}
		for _, address := range s.addresses {
			time.Sleep(time.Second)
			s.drains[address]()
			served()
			time.Sleep(time.Second)
			if count := served(); count[address] != 0 || len(count) != 2 {
				t.Errorf("while %s is gone: %v", address, count)
			}
			s.serve(stub, address)
			time.Sleep(4 * limits.EjectPauseMin) // twice as long as it was gone
			served()
			time.Sleep(time.Second)
			if count := served(); len(count) != 3 {
				t.Errorf("after %s is back: %v", address, count)
			}
		}
		stop.Store(true)
		callers.Wait()
		if calls.Load() < 5000 || failed.Load() != 0 {
			t.Errorf("%d of %d calls failed", failed.Load(), calls.Load())
		}
	})
}
