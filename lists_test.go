package fulmar_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// pushes is a resolver that delivers what a test says.
type pushes struct {
	next chan func(ctx context.Context, deliver func([]cluster.Instance)) error
	runs atomic.Int64
}

func newPushes() *pushes {
	return &pushes{next: make(chan func(context.Context, func([]cluster.Instance)) error, 100)}
}

// Resolve is that of cluster.Resolver.
func (p *pushes) Resolve(ctx context.Context, deliver func([]cluster.Instance)) error {
	p.runs.Add(1)
	for {
		select {
		case do := <-p.next:
			if err := do(ctx, deliver); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// push delivers a list.
func (p *pushes) push(addresses ...string) {
	p.next <- func(_ context.Context, deliver func([]cluster.Instance)) error {
		list := make([]cluster.Instance, len(addresses))
		for i, address := range addresses {
			list[i].Address = address
		}
		deliver(list)
		return nil
	}
	synctest.Wait()
}

// withLists is withSeveral for a client whose list is pushed.
func withLists(t *testing.T, n int, config fulmar.ClientConfig, test func(s *several, p *pushes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &several{t: t, network: simnet.New(simnet.Config{}), stops: map[string]func(){}, drains: map[string]func(){}, dials: map[string]int{}}
		for i := range n {
			s.addresses = append(s.addresses, fmt.Sprintf("server%d:1", i))
		}
		p := newPushes()
		config.Target, config.Dial, config.Resolver = "mine:///shop", s.dial, p
		var err error
		if s.client, err = fulmar.NewClient(config); err != nil {
			t.Fatal(err)
		}
		s.api = testservice.NewEchoClient(s.client)
		test(s, p)
		if err := s.client.Close(); err != nil {
			t.Error(err)
		}
		for _, stop := range s.stops {
			stop()
		}
	})
}

// TestLists_CallsWaitForTheFirst within their own time, and say what they waited for.
func TestLists_CallsWaitForTheFirst(t *testing.T) {
	withLists(t, 1, fulmar.ClientConfig{}, func(s *several, p *pushes) {
		stub, _ := whoServes()
		s.serve(stub, s.addresses...)
		expect := func(because string, want fulmar.Code, call func() error) {
			t.Helper()
			e := asError(t, call())
			if e.Code() != want || e.Phase() != fulmar.PhaseResolve || e.Executed() != fulmar.ExecutedNo || e.Address() != "mine:///shop" ||
				!strings.Contains(e.Error(), because) || !strings.Contains(e.Error(), "resolving the target, mine:///shop") {
				t.Errorf("%v: code %v, phase %v, address %q", e, e.Code(), e.Phase(), e.Address())
			}
		}
		start := time.Now()
		within := func(timeout time.Duration) func() error {
			return func() error { return s.api.Nothing(context.Background(), fulmar.Timeout(timeout)) }
		}
		expect("no list of instances has come within 100ms (", fulmar.Unavailable, within(100*time.Millisecond))
		if took := time.Since(start); took != 100*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		p.next <- func(ctx context.Context, _ func([]cluster.Instance)) error {
			cluster.Report(ctx, errors.New("the registry is away"))
			return nil
		}
		synctest.Wait()
		expect("no list of instances has come within 100ms: the registry is away", fulmar.Unavailable, within(100*time.Millisecond))
		expect("canceled by the caller", fulmar.Canceled, func() error {
			ctx, cancel := context.WithCancel(context.Background())
			defer time.AfterFunc(time.Second, cancel).Stop()
			return s.api.Nothing(ctx)
		})
		expect("no list of instances", fulmar.Unavailable, func() error {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			return s.client.WarmUp(ctx)
		})
		result := make(chan error, 1)
		go func() { _, err := s.api.Add(context.Background(), 1, 2); result <- err }()
		time.Sleep(time.Second)
		p.push(s.addresses...)
		if err := <-result; err != nil {
			t.Error(err)
		}
		if stats := s.client.Stats(); stats.Instances != 1 || stats.Lists != 1 || stats.LookupFailures != 1 {
			t.Errorf("%+v", stats)
		}
	})
}

// TestLists_CloseEndsWaiting: of calls, and of the resolver, which it waits for.
func TestLists_CloseEndsWaiting(t *testing.T) {
	withLists(t, 1, fulmar.ClientConfig{}, func(s *several, p *pushes) {
		result := make(chan error, 1)
		go func() { result <- s.api.Nothing(context.Background()) }()
		synctest.Wait()
		var ended atomic.Bool
		p.next <- func(ctx context.Context, deliver func([]cluster.Instance)) error {
			<-ctx.Done()
			time.Sleep(time.Second)
			deliver([]cluster.Instance{{Address: "late:1"}})
			ended.Store(true)
			return ctx.Err()
		}
		synctest.Wait()
		_ = s.client.Close()
		if !ended.Load() {
			t.Error("Close did not wait for the resolver")
		}
		for range 2 {
			if e := asError(t, <-result); e.Code() != fulmar.Canceled || !strings.Contains(e.Error(), "client is closed") {
				t.Error(e)
			}
			result <- s.api.Nothing(context.Background())
		}
	})
}

// TestLists_AnEmptyOneIsKeptOut for a while, once there was a good one, and calls go on.
func TestLists_AnEmptyOneIsKeptOut(t *testing.T) {
	withLists(t, 2, fulmar.ClientConfig{}, func(s *several, p *pushes) {
		stub, _ := whoServes()
		s.serve(stub, s.addresses...)
		p.push()
		e := asError(t, s.api.Nothing(context.Background()))
		if e.Code() != fulmar.Unavailable || e.Phase() != fulmar.PhaseResolve || !strings.Contains(e.Error(), "the list of them is empty") || e.Executed() != fulmar.ExecutedNo {
			t.Error(e)
		}
		// One that may wait for a server does.
		waiting := make(chan error, 1)
		go func() { _, err := s.api.Add(context.Background(), 1, 2, fulmar.WaitForReady(true)); waiting <- err }()
		time.Sleep(time.Second)
		p.push(s.addresses...)
		if err := <-waiting; err != nil {
			t.Error(err)
		}
		p.push()
		time.Sleep(limits.EmptyListPatience - time.Millisecond)
		s.add(16)
		p.push(s.addresses[0]) // another list ends that
		time.Sleep(2 * limits.EmptyListPatience)
		s.add(16)
		p.push()
		time.Sleep(limits.EmptyListPatience / 2)
		p.push() // and the same again does not
		time.Sleep(limits.EmptyListPatience/2 - time.Millisecond)
		s.add(16)
		time.Sleep(2 * time.Millisecond)
		if err := s.api.Nothing(context.Background()); !strings.Contains(fmt.Sprint(err), "the list of them is empty") {
			t.Errorf("after the patience: %v", err)
		}
		if stats := s.client.Stats(); stats.KeptOut != 2 || stats.Instances != 0 {
			t.Errorf("%+v", stats)
		}
		p.push(s.addresses...)
		time.Sleep(limits.ListPause)
		s.add(16)
	})
}

// TestLists_OnlyALastingEmptyOneIsUsed: one that the source did not stand by for all of the
// time is not, whatever came between.
func TestLists_OnlyALastingEmptyOneIsUsed(t *testing.T) {
	away := errors.New("the registry is away")
	for name, c := range map[string]struct {
		then func(p *pushes)
		// stands: the source stands by its list again when that is over.
		stands bool
	}{
		"reports": {func(p *pushes) {
			for range 30 {
				p.next <- func(ctx context.Context, _ func([]cluster.Instance)) error { cluster.Report(ctx, away); return nil }
				time.Sleep(limits.ResolvePauseMax)
			}
		}, true},
		"nonsense": {func(p *pushes) { p.push("nowhere", "") }, false},
		"ends": {func(p *pushes) {
			p.next <- func(context.Context, func([]cluster.Instance)) error { return away }
		}, false},
		"panics": {func(p *pushes) {
			p.next <- func(context.Context, func([]cluster.Instance)) error { panic("a bug") }
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			withLists(t, 2, fulmar.ClientConfig{}, func(s *several, p *pushes) {
				stub, _ := whoServes()
				s.serve(stub, s.addresses...)
				p.push(s.addresses...)
				time.Sleep(limits.ListPause)
				p.push()
				time.Sleep(limits.EmptyListPatience / 2)
				c.then(p)
				time.Sleep(limits.EmptyListPatience - limits.ResolvePauseMax - time.Millisecond)
				s.add(8)
				if !c.stands {
					time.Sleep(2 * limits.EmptyListPatience)
					s.add(8)
					p.push()
					time.Sleep(limits.EmptyListPatience - time.Millisecond)
					s.add(8)
				}
				time.Sleep(2 * time.Millisecond)
				if err := s.api.Nothing(context.Background()); !strings.Contains(fmt.Sprint(err), "the list of them is empty") {
					t.Errorf("after a minute without another word: %v", err)
				}
			})
		})
	}
}

// TestLists_WhoLeavesFinishes: no new calls go there, running ones end as they would
// have, and its connections close behind them and not before.
func TestLists_WhoLeavesFinishes(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol fulmar.Protocol) {
		withLists(t, 2, fulmar.ClientConfig{Protocol: protocol, Timeout: -1, IdleTimeout: -1}, func(s *several, p *pushes) {
			var held holder
			release := held.begin()
			s.serve(held.stub(), s.addresses[0])
			stub, served := whoServes()
			s.serve(stub, s.addresses[1])
			p.push(s.addresses[0])
			results := make(chan error, 3)
			for range cap(results) {
				go func() { results <- s.api.Nothing(context.Background()) }()
			}
			synctest.Wait()
			p.push(s.addresses[1])
			time.Sleep(limits.ListPause)
			for range 20 {
				if _, err := s.api.Add(context.Background(), 1, 2); err != nil {
					t.Error(err)
				}
			}
			if count := served(); count[s.addresses[1]] != 20 {
				t.Errorf("served: %v", count)
			}
			time.Sleep(10 * limits.LeavePause)
			if n := s.client.Stats().Connections; n < 2 {
				t.Errorf("%d connections while calls run", n)
			}
			release()
			for range cap(results) {
				if err := <-results; err != nil {
					t.Error(err)
				}
			}
			time.Sleep(2 * limits.LeavePause)
			synctest.Wait()
			if n := s.client.Stats().Connections; n != 1 {
				t.Errorf("%d connections, want that to the one which is left", n)
			}
		})
	})
}

// TestLists_FlapsCostNoConnections: half of the instances come and go many times a second.
func TestLists_FlapsCostNoConnections(t *testing.T) {
	const n = 20
	withLists(t, n, fulmar.ClientConfig{}, func(s *several, p *pushes) {
		stub, _ := whoServes()
		s.serve(stub, s.addresses...)
		p.push(s.addresses...)
		s.add(400)
		for _, address := range s.addresses {
			s.dialled(address)
		}
		before := s.client.Stats()
		const flaps, pause = 400, 50 * time.Millisecond
		for i := range flaps {
			p.push(s.addresses[:n/(1+i%2)]...)
			s.add(8)
			time.Sleep(pause)
		}
		dials := 0
		for _, address := range s.addresses {
			dials += s.dialled(address)
		}
		lists := s.client.Stats().Lists - before.Lists
		if most := uint64(2 * flaps * pause / limits.ListPause); lists > most || lists < most/4 {
			t.Errorf("%d lists were used of %d, at most %d should be", lists, flaps, most)
		}
		if dials > n/10 {
			t.Errorf("%d connections were opened", dials)
		}
	})
}

// TestLists_AllAreOthers: connections to those that leave do not end at the same time.
func TestLists_AllAreOthers(t *testing.T) {
	const n = 40
	withLists(t, 2*n, fulmar.ClientConfig{}, func(s *several, p *pushes) {
		stub, _ := whoServes()
		s.serve(stub, s.addresses...)
		p.push(s.addresses[:n]...)
		if err := s.client.WarmUp(context.Background()); err != nil {
			t.Fatal(err)
		}
		p.push(s.addresses[n:]...)
		last := s.client.Stats().Connections
		for range 30 {
			time.Sleep(time.Second)
			synctest.Wait()
			left := s.client.Stats().Connections
			// Four of forty have a second of the ten, and one more may lie across its end.
			if closed := last - left; closed > n/8 {
				t.Errorf("%d of %d were closed in a second", closed, n)
			}
			last = left
		}
		if last != 0 {
			t.Errorf("%d are left", last)
		}
	})
}

// TestLists_ChurnUnderLoad: servers come, announce themselves, and go as they should,
// while calls are made: none fails, and each server that is there gets some.
func TestLists_ChurnUnderLoad(t *testing.T) {
	withLists(t, 6, fulmar.ClientConfig{}, func(s *several, p *pushes) {
		stub, served := whoServes()
		there := slices.Clone(s.addresses[:3])
		s.serve(stub, there...)
		p.push(there...)
		var stop atomic.Bool
		var calls atomic.Int64
		var callers sync.WaitGroup
		for range 8 {
			callers.Go(func() {
				for !stop.Load() {
					calls.Add(1)
					if _, err := s.api.Add(context.Background(), 1, 2); err != nil {
						t.Error(err)
					}
					time.Sleep(5 * time.Millisecond)
				}
			})
		}
		for round := range 12 {
			gone, new := there[0], s.addresses[(round+3)%len(s.addresses)]
			there = append(there[1:], new)
			s.serve(stub, new)
			p.push(there...)
			time.Sleep(limits.WithdrawPause)
			s.drains[gone]()
			time.Sleep(limits.ListPause)
			served()
			time.Sleep(time.Second)
			if count := served(); len(count) != 3 || count[gone] != 0 {
				t.Errorf("round %d: %v served, there are %v", round, count, there)
			}
		}
		stop.Store(true)
		if callers.Wait(); calls.Load() < 20_000 {
			t.Errorf("only %d calls", calls.Load())
		}
	})
}

// TestLists_TheRegistryIsAway: the last list stays in use, with the ejection of who is
// gone, and a resolver that fails or panics is asked again.
func TestLists_TheRegistryIsAway(t *testing.T) {
	withLists(t, 3, fulmar.ClientConfig{}, func(s *several, p *pushes) {
		stub, served := whoServes()
		s.serve(stub, s.addresses...)
		p.push(s.addresses...)
		for range 4 {
			p.next <- func(context.Context, func([]cluster.Instance)) error { return errors.New("the registry is away") }
			p.next <- func(context.Context, func([]cluster.Instance)) error { panic("a bug") }
		}
		s.stops[s.addresses[0]]()
		synctest.Wait()
		for range 60 {
			s.add(8)
			time.Sleep(time.Second)
		}
		if count := served(); count[s.addresses[1]] == 0 || count[s.addresses[2]] == 0 {
			t.Errorf("served: %v", count)
		}
		if stats := s.client.Stats(); stats.LookupFailures != 8 || p.runs.Load() != 9 || stats.Instances != 3 {
			t.Errorf("%+v, %d runs", stats, p.runs.Load())
		}
		p.push(s.addresses[1:]...)
		if n := s.client.Stats().Instances; n != 2 {
			t.Errorf("%d instances after the registry came back", n)
		}
	})
}

// TestLists_TroubleIsSaidOnce however often it is met: one line until it is another, or
// until there was a list in between.
func TestLists_TroubleIsSaidOnce(t *testing.T) {
	log := &logRecorder{}
	withLists(t, 1, fulmar.ClientConfig{Logger: slog.New(slog.NewTextHandler(log, nil))}, func(_ *several, p *pushes) {
		fail := func(times int, text string) {
			for range times {
				p.next <- func(context.Context, func([]cluster.Instance)) error { return errors.New(text) }
			}
			time.Sleep(time.Minute)
		}
		fail(5, "the registry is away")
		fail(2, "the registry has no leader")
		p.push("a:1")
		fail(2, "the registry has no leader")
	})
	for text, want := range map[string]int{"the registry is away": 1, "the registry has no leader": 2} {
		if lines := strings.Count(log.String(), text); lines != want {
			t.Errorf("%q is in %d lines, want %d", text, lines, want)
		}
	}
}

// TestLists_Nonsense is left out, or kept out if nothing else is in the list.
func TestLists_Nonsense(t *testing.T) {
	withLists(t, 1, fulmar.ClientConfig{}, func(s *several, p *pushes) {
		stub, _ := whoServes()
		s.serve(stub, s.addresses...)
		p.push("", "nowhere", "a:0", s.addresses[0], "a:b", "static:///a:1", s.addresses[0], strings.Repeat("x", 1<<20))
		if stats := s.client.Stats(); stats.Instances != 1 || stats.LookupFailures != 6 {
			t.Errorf("%+v", stats)
		}
		time.Sleep(limits.ListPause)
		p.push("nowhere")
		time.Sleep(2 * limits.EmptyListPatience)
		s.add(8)
		huge := make([]string, limits.Instances+10)
		for i := range huge {
			huge[i] = fmt.Sprintf("server%d:1", i)
		}
		p.push(huge...)
		if stats := s.client.Stats(); stats.Instances != limits.Instances {
			t.Errorf("%+v", stats)
		}
	})
}

// TestLists_HugeNonsense: the one that can be called is found behind a million that are
// there twice, or are none, and the log has one line for each list, with how many they are.
func TestLists_HugeNonsense(t *testing.T) {
	const many = 1_000_000
	log := &logRecorder{}
	withLists(t, 2, fulmar.ClientConfig{Logger: slog.New(slog.NewTextHandler(log, nil))}, func(s *several, p *pushes) {
		stub, served := whoServes()
		s.serve(stub, s.addresses[1])
		huge := func(i int) []string { return make([]string, i, i+1) }
		twice, wrong := huge(many), huge(many)
		for i := range twice {
			twice[i] = s.addresses[0]
		}
		p.push(append(twice, s.addresses[1])...)
		if stats := s.client.Stats(); stats.Instances != 2 || stats.LookupFailures != 0 {
			t.Errorf("%+v", stats)
		}
		s.add(8)
		if served()[s.addresses[1]] == 0 {
			t.Error("the last of the list was not called")
		}
		time.Sleep(limits.ListPause)
		p.push(append(wrong, s.addresses[1])...)
		if stats := s.client.Stats(); stats.Instances != 1 || stats.LookupFailures != many {
			t.Errorf("%+v", stats)
		}
		time.Sleep(limits.ListPause)
		p.push(wrong...)
		if stats := s.client.Stats(); stats.Instances != 1 || stats.LookupFailures != 2*many+1 {
			t.Errorf("%+v", stats)
		}
		long := make([]string, limits.Instances+7)
		for i := range long {
			long[i] = fmt.Sprintf("other%d:1", i)
		}
		time.Sleep(limits.ListPause)
		p.push(append([]string{"nowhere"}, long...)...)
	})
	var left, none int
	for line := range strings.Lines(log.String()) {
		for _, part := range []string{"instances=1 wrong=1000000 error=", "instances=10000 wrong=1 error=", "too_many=7 limit=10000"} {
			if strings.Contains(line, "instances are left out") && strings.Contains(line, part) {
				left++
			}
		}
		if strings.Contains(line, "a list of 1000000 instances has none that can be called: ") {
			none++
		}
		if strings.Contains(line, "suppressed") {
			t.Error(line)
		}
	}
	if left != 3 || none != 1 || strings.Count(log.String(), "left out") != 2 {
		t.Errorf("the log is\n%s", log.String())
	}
}

// TestLists_OfAResolverThatEnds: its last list is the last one; without any it is asked
// again.
func TestLists_OfAResolverThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			resolver cluster.Resolver
			want     string
		}{{cluster.Static{{Address: "a:1"}}, "connecting, a:1"}, {cluster.Static{}, "the list of them is empty"}, {silent{}, "ended without a list"}} {
			client, err := fulmar.NewClient(fulmar.ClientConfig{Target: "x", Resolver: c.resolver, Dial: dialNowhere})
			if err != nil {
				t.Fatal(err)
			}
			if err := testservice.NewEchoClient(client).Nothing(context.Background()); !strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			_ = client.Close()
		}
	})
}

// silent is a resolver that has nothing to say.
type silent struct{}

func (silent) Resolve(context.Context, func([]cluster.Instance)) error { return nil }

// TestTarget_DNS looks a name up that every machine has, and expects it in the server's
// certificate, where the address is not.
func TestTarget_DNS(t *testing.T) {
	a := newAuthority(t)
	server := serve(t, fulmar.ServerConfig{TLS: fulmar.ServerTLS{Config: &tls.Config{Certificates: []tls.Certificate{
		a.issue("localhost", func(c *x509.Certificate) { c.IPAddresses = nil }),
	}}}}, adder())
	_, port, err := net.SplitHostPort(server.address)
	if err != nil {
		t.Fatal(err)
	}
	secure := fulmar.ClientTLS{Config: &tls.Config{RootCAs: a.pool()}}
	client := dialAny(t, fulmar.ClientConfig{Target: "dns:///localhost:" + port, TLS: secure})
	if sum, err := testservice.NewEchoClient(client).Add(context.Background(), 1, 2); sum != 3 || err != nil {
		t.Errorf("%d, %v", sum, err)
	}
	if stats := client.Stats(); stats.Instances < 1 || stats.Lists != 1 {
		t.Errorf("%+v", stats)
	}
	_, err = dial(t, fulmar.ClientConfig{Target: server.address, TLS: secure}).Add(context.Background(), 1, 2)
	if e := asError(t, err); e.Phase() != fulmar.PhaseHandshake {
		t.Errorf("by its address: %v", err)
	}
}
