// Package fulmartest is an in-memory network for tests of services: servers and
// clients with everything that they have in production but sockets, and faults when
// the test wants them.
//
//	network := fulmartest.NewNetwork(t)
//	server := network.Server(t, func(s *fulmar.Server) { orders.RegisterOrdersServer(s, &shop{}) })
//	api := orders.NewOrdersClient(network.Client(t, server))
//	network.Cut(server, time.Second)
//
// It works inside a bubble of testing/synctest, where delays and timeouts take no time,
// and outside. What it makes ends with the test. No port is opened, so tests may run
// beside each other.
package fulmartest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
)

// Config describes a Network. The zero value is a perfect one.
type Config struct {
	// Seed decides the random choices of the network: jitter and splits. A test that
	// fails logs it. Default: another one in each run.
	Seed uint64
	// Delay is how long bytes take from one end to the other; connecting takes twice as
	// long. Default: 0.
	Delay time.Duration
	// DelayJitter is the most that is added to Delay, anew for each write. Bytes stay in
	// order. Default: 0.
	DelayJitter time.Duration
	// SplitPercent is how many of 100 writes arrive in two to four pieces. Default: 0.
	SplitPercent int
	// BufferBytes is what one direction of a connection holds before its writer has to
	// wait. Default: about what Linux starts a loopback connection with.
	BufferBytes int

	// Server is what Network.Server configures servers with. Listener, Address and
	// LocalOnly must not be set. Default for the Logger: the log of the test.
	Server fulmar.ServerConfig
	// Client is what Network.Client configures clients with. Target, Local and Dial must
	// not be set.
	Client fulmar.ClientConfig
}

// Network connects servers and clients in memory. Safe for concurrent use. In a bubble
// of testing/synctest it must be made inside.
type Network struct {
	config Config
	sim    *simnet.Network

	mu      sync.Mutex
	servers int
}

// NewNetwork returns a perfect network, whose servers and clients have the defaults.
func NewNetwork(t testing.TB) *Network { return NewNetworkWith(t, Config{}) }

// NewNetworkWith returns a network as config says.
func NewNetworkWith(t testing.TB, config Config) *Network {
	t.Helper()
	for config.Seed == 0 {
		config.Seed = rand.Uint64()
	}
	if config.SplitPercent < 0 || config.SplitPercent > 100 {
		t.Fatalf("fulmartest: SplitPercent: %d is not in 0 to 100", config.SplitPercent)
	}
	if config.Delay < 0 || config.DelayJitter < 0 || config.BufferBytes < 0 {
		// With a negative buffer every write would wait for ever.
		t.Fatalf("fulmartest: Delay, DelayJitter and BufferBytes must not be negative: %v, %v, %d", config.Delay, config.DelayJitter, config.BufferBytes)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("fulmartest: the seed was %d; Config.Seed repeats its choices", config.Seed)
		}
	})
	return &Network{config: config, sim: simnet.New(simnet.Config{
		Seed:         config.Seed,
		Delay:        config.Delay,
		DelayJitter:  config.DelayJitter,
		SplitPercent: config.SplitPercent,
		BufferBytes:  config.BufferBytes,
	})}
}

// Seed returns what decides the random choices.
func (n *Network) Seed() uint64 { return n.config.Seed }

// Client returns a client of one server, or of several that answer for each other, with
// the configuration of the network. It is closed when t ends.
func (n *Network) Client(t testing.TB, servers ...*Server) *fulmar.Client {
	t.Helper()
	return n.ClientWith(t, n.config.Client, servers...)
}

// ClientWith is Client with a configuration of its own.
func (n *Network) ClientWith(t testing.TB, config fulmar.ClientConfig, servers ...*Server) *fulmar.Client {
	t.Helper()
	switch {
	case len(servers) == 0:
		t.Fatalf("fulmartest: a client of no server")
	case config.Target != "" || config.Local != nil || config.Dial != nil:
		t.Fatalf("fulmartest: Target, Local and Dial of a client are the network's")
	}
	addresses := make([]string, len(servers))
	for i, server := range servers {
		if server.network != n {
			// Here its address may be another server's.
			t.Fatalf("fulmartest: a client of %s, which is on another network", server.address)
		}
		addresses[i] = server.address
	}
	if config.Target = addresses[0]; len(addresses) > 1 {
		config.Target = "static:///" + strings.Join(addresses, ",")
	}
	config.Dial = n.sim.Dial
	client, err := fulmar.NewClient(config)
	if err != nil {
		t.Fatalf("fulmartest: %v", err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Errorf("fulmartest: closing a client: %v", err)
		}
	})
	return client
}

// nextAddress returns an address that no server has.
func (n *Network) nextAddress() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.servers++
	return fmt.Sprintf("server-%d:8888", n.servers)
}

// testLog writes to the log of a test until that ends.
type testLog struct {
	mu    sync.Mutex
	t     testing.TB
	ended bool
}

// Write implements io.Writer.
func (l *testLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.t.Logf("%s", strings.TrimSuffix(string(line), "\n"))
	}
	return len(line), nil
}

func (l *testLog) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
}

// methodMatches reports whether a name, of a service or of a method, is that of a call.
func methodMatches(name, service, method string) bool {
	return name == "" || name == service || name == service+"."+method
}
