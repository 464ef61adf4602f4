package fulmar_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// TestMaxConnectionAge_OfSharedConnections: one that is old gets no more calls, and
// closes when those it has have ended.
func TestMaxConnectionAge_OfSharedConnections(t *testing.T) {
	const age = time.Minute
	if took := secondConnection(t, fulmar.ClientConfig{MaxConnectionAge: age}); took < age*9/10 || took > age*12/10+time.Second {
		t.Errorf("a new connection after %v, want %v, or a tenth less, or two more", took, age)
	}

	stub := adder()
	stub.OnNothing = func(context.Context) error { time.Sleep(2 * age); return nil }
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{MaxConnectionAge: age}, stub, func(s *simulation) {
		fill(t, s.api, 1)
		long := make(chan error, 1)
		go func() { long <- s.api.Nothing(context.Background(), fulmar.Timeout(-1)) }()
		time.Sleep(age * 13 / 10)
		fill(t, s.api, 1)
		if stats := s.client.Stats(); stats.Connections != 2 || stats.Multiplexed != 1 {
			t.Errorf("%+v while an old connection has a call, want it and a new one that takes calls", stats)
		}
		if err := <-long; err != nil {
			t.Errorf("the call on the old connection: %v", err)
		}
		synctest.Wait()
		if stats := s.client.Stats(); stats.Connections > 1 {
			t.Errorf("%+v after its last call, want it closed", stats)
		}
	})
}

// TestMaxConnectionAge_Differs: connections that were opened together do not end
// together.
func TestMaxConnectionAge_Differs(t *testing.T) {
	ages := map[time.Duration]bool{}
	for range 8 {
		ages[secondConnection(t, fulmar.ClientConfig{Protocol: fulmar.Framed, MaxConnectionAge: 10 * time.Minute})] = true
	}
	if len(ages) == 1 {
		t.Errorf("all connections lived for the same time, %v", ages)
	}
}

// TestMaxConnectionAge_OfIdleConnections: one that has grown old while it was idle gets
// no call more, and neither does the place that it had go lost.
func TestMaxConnectionAge_OfIdleConnections(t *testing.T) {
	const age = time.Minute
	client := fulmar.ClientConfig{Protocol: fulmar.Framed, MaxConnectionAge: age, IdleTimeout: -1, MaxConnections: 1}
	simulate(t, simnet.Config{}, fulmar.ServerConfig{IdleTimeout: -1}, client, adder(), func(s *simulation) {
		for i := range uint64(3) {
			fill(t, s.api, 1)
			synctest.Wait()
			if stats := s.server.Stats().Network; stats.Accepted != i+1 || stats.Open != 1 {
				t.Errorf("%d connections, %d open; want %d and 1", stats.Accepted, stats.Open, i+1)
			}
			time.Sleep(2 * age)
		}
		if n := s.client.Stats().Connections; n != 1 {
			t.Errorf("%d connections, want 1", n)
		}
	})
}

func TestShortConnections_AreForOneCall(t *testing.T) {
	for _, protocol := range []fulmar.Protocol{fulmar.Framed, fulmar.TTHeader} {
		simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{Protocol: protocol, ShortConnections: true}, adder(), func(s *simulation) {
			for range 5 {
				fill(t, s.api, 1)
			}
			synctest.Wait()
			if stats := s.server.Stats().Network; stats.Accepted != 5 || stats.Open != 0 {
				t.Errorf("%v: %d connections for 5 calls, %d of them open; want 5 and none", protocol, stats.Accepted, stats.Open)
			}
		})
	}
	err := fulmar.ClientConfig{Target: "a:1", ShortConnections: true, AssumeMultiplexed: true}.Validate()
	if err == nil || !strings.Contains(err.Error(), "ShortConnections: ") {
		t.Errorf("with AssumeMultiplexed: %v", err)
	}
}

func TestClient_WarmUp(t *testing.T) {
	for _, protocol := range []fulmar.Protocol{fulmar.Framed, fulmar.TTHeader} {
		simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{Protocol: protocol}, adder(), func(s *simulation) {
			for range 3 {
				if err := s.client.WarmUp(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			if n := s.client.Stats().Connections; n != 1 {
				t.Errorf("%v: %d connections after three times, want 1", protocol, n)
			}
			fill(t, s.api, 1)
			if n := s.server.Stats().Network.Accepted; n != 1 {
				t.Errorf("%v: %d connections after the first call, want the one that was there", protocol, n)
			}
			s.network.Partition(simAddress, true)
			s.network.Cut(simAddress)
			synctest.Wait()
			// The connection is gone, which shows when it is used; a new one cannot be had.
			if _, err := s.api.Add(context.Background(), 1, 2); err == nil {
				t.Error("a call through a partition succeeded")
			}
			synctest.Wait()
			var err *fulmar.Error
			if !errors.As(s.client.WarmUp(context.Background()), &err) {
				t.Errorf("%v: WarmUp without a server succeeded", protocol)
			} else if err.Code() != fulmar.Unavailable || err.Phase() != fulmar.PhaseConnect || err.Address() != simAddress || err.Executed() != fulmar.ExecutedNo {
				t.Errorf("%v: WarmUp without a server: %v", protocol, err)
			}
			s.network.Partition(simAddress, false)
		})
	}
}

// TestClient_WarmUpOfSeveral: a server that is not there does not keep the others
// from being connected to, and is named.
func TestClient_WarmUpOfSeveral(t *testing.T) {
	first, second := serve(t, fulmar.ServerConfig{}, adder()), serve(t, fulmar.ServerConfig{}, adder())
	gone := nobody(t)
	client := dialAny(t, fulmar.ClientConfig{Target: "static:///" + first.address + "," + gone + "," + second.address})
	err := client.WarmUp(context.Background())
	var failed *fulmar.Error
	if !errors.As(err, &failed) || failed.Address() != gone {
		t.Errorf("WarmUp: %v; want an error about %s", err, gone)
	}
	if n := client.Stats().Connections; n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := client.WarmUp(ctx); fulmar.CodeOf(err) != fulmar.Canceled {
		t.Errorf("WarmUp with a context that has ended: %v", err)
	}
}

// TestMaxConnectionAgeGrace_BeginsWithTheNews: calls that began before the client was told that the
// connection is old have all of the time to end.
func TestMaxConnectionAgeGrace_BeginsWithTheNews(t *testing.T) {
	const takes, grace = 300 * time.Millisecond, 400 * time.Millisecond
	stub := &testservice.Stub{OnNothing: func(context.Context) error { time.Sleep(takes); return nil }}
	server := fulmar.ServerConfig{MaxConnectionAge: 10 * time.Second, MaxConnectionAgeGrace: grace}
	simulate(t, simnet.Config{}, server, fulmar.ClientConfig{Protocol: fulmar.GRPC}, stub, func(s *simulation) {
		for start := time.Now(); time.Since(start) < time.Minute; {
			if err := s.api.Nothing(s.t.Context()); err != nil {
				t.Errorf("after %v: %v", time.Since(start), err)
			}
		}
		if n := s.server.Stats().Network.Accepted; n < 5 || n > 8 {
			t.Errorf("%d connections in a minute, want one each ten seconds or so", n)
		}
	})
}
