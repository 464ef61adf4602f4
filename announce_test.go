package fulmar_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
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

// announced is a server in a bubble that is announced in a registry.
type announced struct {
	server *fulmar.Server
	// served gets what Serve returns.
	served chan error
	stop   context.CancelFunc
}

func announce(t *testing.T, network *simnet.Network, config fulmar.ServerConfig) *announced {
	t.Helper()
	listener, err := network.Listen("shop:1")
	if err != nil {
		t.Fatal(err)
	}
	config.Listener, config.Service = listener, "shop"
	a := &announced{served: make(chan error, 1)}
	if a.server, err = fulmar.NewServer(config); err != nil {
		t.Fatal(err)
	}
	testservice.RegisterEchoServer(a.server, adder())
	ctx, cancel := context.WithCancel(context.Background())
	a.stop = cancel
	go func() { a.served <- a.server.Serve(ctx) }()
	return a
}

// TestAnnounce_WhileItServes: the server is announced when it accepts calls, and a graceful
// stop takes it out first, and then goes on for a while as before.
func TestAnnounce_WhileItServes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, registry := simnet.New(simnet.Config{}), newRegistrar()
		client, err := fulmar.NewClient(fulmar.ClientConfig{Target: "shop:1", Dial: network.Dial})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		call := func() error { _, err := testservice.NewEchoClient(client).Add(context.Background(), 1, 2); return err }
		var hook time.Time
		a := announce(t, network, fulmar.ServerConfig{Registry: registry, Advertise: cluster.Instance{Weight: 3, Zone: "a"}, BeforeStop: func(context.Context) error {
			if hook = time.Now(); hook.IsZero() {
				return nil
			}
			if _, there := registry.get("shop"); there {
				t.Error("it is still announced when BeforeStop is called")
			}
			return nil
		}})
		synctest.Wait()
		if got, _ := registry.get("shop"); got.Address != "shop:1" || got.Weight != 3 || got.Zone != "a" {
			t.Errorf("announced is %+v", got)
		}
		if err := call(); err != nil {
			t.Error(err)
		}
		start := time.Now()
		a.stop()
		synctest.Wait()
		if _, there := registry.get("shop"); there || !hook.Equal(start) {
			t.Errorf("announced: %v, BeforeStop %v after the stop began", there, hook.Sub(start))
		}
		time.Sleep(limits.WithdrawPause - time.Millisecond)
		if err := call(); err != nil {
			t.Errorf("while clients do not know: %v", err)
		}
		if err := <-a.served; err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took < limits.WithdrawPause || took > limits.WithdrawPause+5*time.Second {
			t.Errorf("the stop took %v", took)
		}
		if err := call(); err == nil {
			t.Error("it still serves")
		}
	})
}

// TestAnnounce_WhenTheRegistryIsAway: the server serves all the same, and is announced when
// the registry is back; a stop does not wait for that.
func TestAnnounce_WhenTheRegistryIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, registry := simnet.New(simnet.Config{}), newRegistrar()
		registry.fail = errors.New("the registry is away")
		a := announce(t, network, fulmar.ServerConfig{Registry: registry})
		client, err := fulmar.NewClient(fulmar.ClientConfig{Target: "shop:1", Dial: network.Dial})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if _, err := testservice.NewEchoClient(client).Add(context.Background(), 1, 2); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if tries := len(registry.changed); tries < 5 || tries > 8 {
			t.Errorf("%d tries within a minute", tries)
		}
		registry.mu.Lock()
		registry.fail = nil
		registry.mu.Unlock()
		time.Sleep(limits.RegisterPauseMax)
		synctest.Wait()
		if _, there := registry.get("shop"); !there {
			t.Error("it is not announced although the registry is back")
		}
		registry.mu.Lock()
		registry.fail = errors.New("the registry is away again")
		registry.mu.Unlock()
		a.stop()
		if err := <-a.served; err == nil || !strings.Contains(err.Error(), "server stop: Registry: the registry is away again") {
			t.Errorf("Serve returned %v", err)
		}
		// One that was never announced stops at once.
		b := announce(t, network, fulmar.ServerConfig{Registry: registry})
		synctest.Wait()
		start := time.Now()
		b.stop()
		if err := <-b.served; err != nil || time.Since(start) >= limits.WithdrawPause {
			t.Errorf("Serve returned %v after %v", err, time.Since(start))
		}
	})
}

// broken is a registry whose code has bugs.
type broken struct {
	registryOf
	register, withdraw func(ctx context.Context)
}

func (b broken) Register(ctx context.Context, _ string, _ cluster.Instance) (cluster.Registration, error) {
	b.register(ctx)
	return b, nil
}

func (b broken) Withdraw(ctx context.Context) error { b.withdraw(ctx); return nil }

// TestAnnounce_BrokenRegistries: what panics is an error, what hangs does not hold up the
// stop.
func TestAnnounce_BrokenRegistries(t *testing.T) {
	fine := func(context.Context) {}
	panics := func(context.Context) { panic("a bug") }
	hangs := func(ctx context.Context) { <-ctx.Done(); time.Sleep(time.Hour) }
	for name, c := range map[string]struct {
		registry cluster.Registry
		want     string
	}{
		"Register panics": {broken{register: panics, withdraw: fine}, "<nil>"},
		"Withdraw panics": {broken{register: fine, withdraw: panics}, "server stop: Registry: it panicked: a bug"},
		"Register hangs":  {broken{register: hangs, withdraw: fine}, "server stop: Registry: it did not return within"},
		"Withdraw hangs":  {broken{register: fine, withdraw: hangs}, "server stop: Registry: it did not return within"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := announce(t, simnet.New(simnet.Config{}), fulmar.ServerConfig{Registry: c.registry})
				synctest.Wait()
				start := time.Now()
				a.stop()
				if err := <-a.served; !strings.Contains(fmt.Sprint(err), c.want) || time.Since(start) > limits.WithdrawTimeout+limits.WithdrawPause {
					t.Errorf("Serve returned %v after %v", err, time.Since(start))
				}
				time.Sleep(2 * time.Hour) // until what hangs has ended
			})
		})
	}
}

// TestAnnounce_CloseWaitsForNobody: without grace there is nothing to wait for.
func TestAnnounce_CloseWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := newRegistrar()
		a := announce(t, simnet.New(simnet.Config{}), fulmar.ServerConfig{Registry: registry})
		synctest.Wait()
		start := time.Now()
		_ = a.server.Close()
		<-a.served
		if _, there := registry.get("shop"); there || time.Since(start) > limits.WithdrawPause/2 {
			t.Errorf("announced: %v, after %v", there, time.Since(start))
		}
		a.stop()
	})
}

func TestServerConfig_Announcement(t *testing.T) {
	registry := newRegistrar()
	for want, config := range map[string]fulmar.ServerConfig{
		"Service is set, but Registry is not":   {Service: "shop"},
		"Advertise is set, but Registry is not": {Advertise: cluster.Instance{Weight: 1}},
		"Registry is set, but Service is empty": {Registry: registry},
		"Registry and LocalOnly are both set":   {Registry: registry, Service: "shop", LocalOnly: true},
		`Advertise: "nowhere" is not host:port`: {Registry: registry, Service: "shop", Advertise: cluster.Instance{Address: "nowhere"}},
	} {
		if err := config.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestAnnounce_AddressOfTheListener: others can reach what is announced.
func TestAnnounce_AddressOfTheListener(t *testing.T) {
	t.Parallel() // it waits most of its time
	path := filepath.Join(t.TempDir(), "shop.socket")
	abstract := fmt.Sprintf("unix:@shop-tests-%d", os.Getpid()) // who tests beside us has others
	for address, reached := range map[string]func(host string) bool{
		"127.0.0.1:0":    func(host string) bool { return host == "127.0.0.1" },
		"0.0.0.0:0":      func(host string) bool { ip := net.ParseIP(host); return ip != nil && !ip.IsUnspecified() },
		":0":             func(host string) bool { ip := net.ParseIP(host); return ip != nil && !ip.IsUnspecified() },
		"unix://" + path: func(host string) bool { return host == "unix://"+path },
		abstract:         func(host string) bool { return host == abstract },
	} {
		if strings.HasPrefix(address, "unix:@") && runtime.GOOS != "linux" {
			continue
		}
		registry := newRegistrar()
		server := serve(t, fulmar.ServerConfig{Address: address, Registry: registry, Service: "shop"}, adder())
		<-registry.changed
		got, _ := registry.get("shop")
		host := got.Address
		if !strings.HasPrefix(address, "unix:") {
			host, _, _ = net.SplitHostPort(got.Address)
		}
		if !reached(host) {
			t.Errorf("%s is announced as %q", address, got.Address)
		}
		if _, err := dial(t, fulmar.ClientConfig{Target: got.Address}).Add(context.Background(), 1, 2); err != nil {
			t.Errorf("%s, announced as %q: %v", address, got.Address, err)
		}
		if err := server.stop(); err != nil {
			t.Error(err)
		}
	}
}

// TestDirectory_FindsServers: with real sockets and a folder, servers start, stop and come
// back under load, and no call fails.
func TestDirectory_FindsServers(t *testing.T) {
	directory := cluster.Directory{Path: filepath.Join(t.TempDir(), "registry")}
	another := func() *running {
		return serve(t, fulmar.ServerConfig{Registry: directory, Service: "shop"}, adder())
	}
	servers := []*running{another(), another()}
	client := dialAny(t, fulmar.ClientConfig{Target: "file://" + directory.Path + "/shop"})
	api := testservice.NewEchoClient(client)
	// The first call waits for the list; that may be one without instances, if the client
	// is faster than the servers.
	if _, err := api.Add(context.Background(), 1, 2, fulmar.WaitForReady(true)); err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	var calls atomic.Int64
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for !stop.Load() {
				calls.Add(1)
				if _, err := api.Add(context.Background(), 1, 2); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	waitFor := func(instances int) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); client.Stats().Instances != instances; {
			if time.Now().After(deadline) {
				t.Fatalf("%d instances, want %d", client.Stats().Instances, instances)
			}
			if _, err := api.Add(context.Background(), 1, 2); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 2 {
		waitFor(2)
		servers = append(servers, another())
		waitFor(3)
		if err := servers[0].stop(); err != nil {
			t.Error(err)
		}
		servers = servers[1:]
	}
	stop.Store(true)
	callers.Wait()
	if calls.Load() < 100 {
		t.Errorf("only %d calls", calls.Load())
	}
}
