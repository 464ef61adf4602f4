package etcd_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/cluster/registries"
	"github.com/fulmar-rpc/fulmar/contrib/etcd"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/internal/testservers"
)

// announcerVariable makes the test program one that announces an instance, so that a test
// can stop it as a process: its value is the address of etcd.
const announcerVariable = "FULMAR_TEST_ANNOUNCE"

func TestMain(m *testing.M) {
	if address := os.Getenv(announcerVariable); address != "" {
		if err := announceUntilInputEnds(address); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// More at a time than processors, unless it is said how many: they wait for leases.
	if err := flag.Set("test.parallel", "4"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	testkit.Main(m)
}

const (
	// patience bounds what must happen.
	patience = time.Minute
	// lease is how long an announcement lives here: as short as etcd allows.
	lease   = 2 * time.Second
	service = "orders"
	// slack is what a busy machine takes longer.
	slack = 2 * time.Second
)

// real starts an etcd that ends with the test.
func real(t *testing.T) *testservers.Server {
	t.Helper()
	return realWith(t, nil)
}

func realWith(t *testing.T, files *testservers.TLSFiles) *testservers.Server {
	t.Helper()
	server, err := testservers.NewEtcd(t.TempDir(), files)
	if errors.Is(err, testservers.ErrAbsent) || errors.Is(err, exec.ErrNotFound) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	start(t, server)
	return server
}

func start(t *testing.T, server *testservers.Server) {
	t.Helper()
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// network puts a network that fails in front of a server.
func network(t *testing.T, server *testservers.Server) *testservers.Proxy {
	t.Helper()
	proxy, err := testservers.NewProxy(server.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	return proxy
}

// hasty is a configuration with which outages are over in seconds.
func hasty(address string) etcd.Config {
	return etcd.Config{
		Endpoints: []string{address}, TTL: lease,
		Common: registries.Common{
			RequestTimeout: time.Second,
			BackoffMin:     20 * time.Millisecond, BackoffMax: 300 * time.Millisecond,
			CheckInterval: 300 * time.Millisecond, DeliverInterval: 20 * time.Millisecond, HoldTime: 30 * time.Second,
			Logger: slog.New(slog.DiscardHandler),
		},
	}
}

// patient is one with which requests succeed, however busy the machine is.
func patient(address string) etcd.Config {
	config := hasty(address)
	config.RequestTimeout = patience / 2
	return config
}

// open returns a Registry that the end of the test closes.
func open(t *testing.T, config etcd.Config) *etcd.Registry {
	t.Helper()
	registry, err := etcd.New(config)
	if err != nil {
		t.Fatal(err)
	}
	// Errors are those of an etcd that has ended before.
	t.Cleanup(func() { _ = registry.Close() })
	return registry
}

// tool is a client of etcd as an operator has it.
func tool(t *testing.T, address string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{address}, DialTimeout: patience, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// bounded is a context for what must happen.
func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for !is() {
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// addresses are n addresses that nobody listens at.
func addresses(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("10.%d.%d.%d:8888", i>>16&255, i>>8&255, i&255)
	}
	slices.Sort(list)
	return list
}

// announce registers an instance. On a busy machine an attempt may take too long.
func announce(t *testing.T, registry *etcd.Registry, address string) (registration cluster.Registration) {
	t.Helper()
	eventually(t, "the instance is announced", func() (ok bool) {
		var err error
		registration, err = registry.Register(bounded(t), service, cluster.Instance{Address: address})
		return err == nil
	})
	return registration
}

// lookups is what a client has: the last list that was delivered, and what all of them
// were like. Safe for concurrent use.
type lookups struct {
	mu       sync.Mutex
	last     []cluster.Instance
	known    bool
	shortest int // since know

	cancel context.CancelFunc
	ended  chan error
}

// look resolves the service until the test ends.
func look(t *testing.T, registry *etcd.Registry) *lookups {
	t.Helper()
	resolver, err := registry.Resolver(service)
	if err != nil {
		t.Fatal(err)
	}
	l := &lookups{ended: make(chan error, 1)}
	var ctx context.Context
	ctx, l.cancel = context.WithCancel(context.Background())
	go func() {
		l.ended <- resolver.Resolve(ctx, func(list []cluster.Instance) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.last = list
			if l.known {
				l.shortest = min(l.shortest, len(list))
			}
		})
	}()
	t.Cleanup(l.stop)
	return l
}

// stop ends the resolver and waits for it.
func (l *lookups) stop() {
	l.cancel()
	err := <-l.ended
	l.ended <- err
}

// addresses returns those of the last list.
func (l *lookups) addresses() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := []string{}
	for _, instance := range l.last {
		list = append(list, instance.Address)
	}
	return list
}

// kept checks that no list lost more than a quarter of n instances, which is when they
// are held.
func (l *lookups) kept(t *testing.T, n int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shortest < n-n/4 {
		t.Errorf("a list of %d of %d instances was delivered", l.shortest, n)
	}
}

// know waits until a list is exactly these addresses.
func (l *lookups) know(t *testing.T, want []string) {
	t.Helper()
	eventually(t, fmt.Sprintf("a list of %d instances", len(want)), func() bool { return slices.Equal(l.addresses(), want) })
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.known {
		l.known, l.shortest = true, len(want)
	}
}

// keys returns how many instances of the service etcd has.
func keys(t *testing.T, client *clientv3.Client) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	found, err := client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return -1
	}
	return int(found.Count)
}

const prefix = "kitex/registry-etcd/" + service + "/"

// announceUntilInputEnds is what the test program does as a process of its own.
func announceUntilInputEnds(address string) error {
	registry, err := etcd.New(hasty(address))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := registry.Register(ctx, service, cluster.Instance{Address: "10.0.0.9:8888"}); err != nil {
		return err
	}
	// It is said that it is, and waited until nobody wants it to be.
	fmt.Println("announced")
	_, _ = os.Stdin.Read(make([]byte, 1))
	return registry.Close()
}
