package registrytest

import (
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/cluster/registries"
	"github.com/fulmar-rpc/fulmar/internal/testservers"
)

// Kind is a kind of registry, such as etcd: what the scenarios need to know of it.
type Kind struct {
	// Server returns a server that keeps its data in a folder, encrypted if there are files
	// for that, and is not started. If it cannot be found on this machine, tests are
	// skipped.
	Server func(folder string, files *testservers.TLSFiles) (*testservers.Server, error)
	// Open makes a Registry for the server at an address, encrypted unless encryption is
	// nil. What it announces lives for Lease.
	Open func(address string, common registries.Common, encryption *tls.Config) (Registry, error)
	// Stats returns what happened in one that Open made.
	Stats func(Registry) Stats
	// Operator connects to the server at an address as an operator does, until the test
	// ends.
	Operator func(t testing.TB, address string) Operator

	// ErrClosed is what a Registry returns that is closed.
	ErrClosed error
	// Reconnecting is how much longer than Lease it may take until an instance is
	// announced again whose server was away from the registry: what its client pauses.
	Reconnecting time.Duration
	// Value returns what the registry has of an instance with weight 10.
	Value func(address string) string
	// Odd is a value, at oddAddress, of weight -7 in the zone "west".
	Odd string
	// Broken are values that are no instances, by their names; brokenAddress is one of
	// them. Foreign are values at names that belong to something else.
	Broken, Foreign map[string]string
}

// Registry is one that whoever made it closes.
type Registry interface {
	cluster.Registry
	io.Closer
}

// Operator looks at a registry, and changes it, past those who announce and look up. Names
// are those of values of Service.
type Operator interface {
	// Count returns how many values there are, -1 if that cannot be told now.
	Count() int
	// Put writes values by their names, new ones or in place of those that there are.
	Put(t testing.TB, values map[string]string)
	// Remove removes the value of a name.
	Remove(t testing.TB, name string)
	// Empty removes all values.
	Empty(t testing.TB)
}

// Stats are what happened in a Registry since it was made.
type Stats struct {
	// Announced is how often instances were announced, Failures how often that, or looking
	// after them, failed.
	Announced, Failures int64
	// Delivered is how many lists were delivered, Broken how many values were no instances,
	// LeftOut how many were left out because there are too many.
	Delivered, Broken, LeftOut int64
}

const (
	// Service is the name that everything is announced under.
	Service = "orders"
	// Lease is how long an announcement lives without a sign of life: as short as etcd
	// allows.
	Lease = 2 * time.Second
	// Slack is what a busy machine takes longer, and Patience bounds what must happen.
	Slack    = 2 * time.Second
	Patience = time.Minute

	// Newcomer is an instance that is none of Addresses.
	Newcomer = "10.9.9.9:8888"

	oddAddress    = "10.8.8.8:1"
	brokenAddress = "10.0.0.3:1"
)

// Hasty is a configuration with which outages are over in seconds.
func Hasty() registries.Common {
	return registries.Common{
		RequestTimeout: time.Second, BackoffMin: 20 * time.Millisecond, BackoffMax: 300 * time.Millisecond,
		CheckInterval: 300 * time.Millisecond, DeliverInterval: 20 * time.Millisecond, HoldTime: 30 * time.Second,
		Logger: slog.New(slog.DiscardHandler),
	}
}

// Unhurried is one with which requests succeed, however busy the machine is.
func Unhurried() registries.Common {
	common := Hasty()
	common.RequestTimeout = Patience / 2
	return common
}

// required is a variable whose value "required" says that a test without a server has failed.
// In "make test" it is skipped, since Debian's packages may be out of reach; "make chaos" is
// about the outages.
const required = "FULMAR_REGISTRIES"

// Run starts a server that ends with the test, and skips the test if there is none and none is
// required.
func (k Kind) Run(t testing.TB) *testservers.Server {
	t.Helper()
	return k.run(t, nil)
}

func (k Kind) run(t testing.TB, files *testservers.TLSFiles) *testservers.Server {
	t.Helper()
	server, err := k.Server(t.TempDir(), files)
	if absent := errors.Is(err, testservers.ErrAbsent) || errors.Is(err, exec.ErrNotFound); absent && os.Getenv(required) != "required" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	Start(t, server)
	return server
}

// Start starts a server again.
func Start(t testing.TB, server *testservers.Server) {
	t.Helper()
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Network puts a network that fails in front of a server.
func Network(t testing.TB, server *testservers.Server) *testservers.Proxy {
	t.Helper()
	proxy, err := testservers.NewProxy(server.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	return proxy
}

// Open returns a Registry that the end of the test closes.
func Open[C any, R io.Closer](t testing.TB, make func(C) (R, error), config C) R {
	t.Helper()
	registry, err := make(config)
	if err != nil {
		t.Fatal(err)
	}
	// Errors are those of a server that has ended before.
	t.Cleanup(func() { _ = registry.Close() })
	return registry
}

// open returns one of the kind with a configuration.
func (k Kind) open(t testing.TB, address string, common registries.Common) Registry {
	t.Helper()
	return k.openEncrypted(t, address, common, nil)
}

func (k Kind) openEncrypted(t testing.TB, address string, common registries.Common, encryption *tls.Config) Registry {
	t.Helper()
	return Open(t, func(common registries.Common) (Registry, error) { return k.Open(address, common, encryption) }, common)
}
