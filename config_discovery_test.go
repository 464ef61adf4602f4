package fulmar_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// registryOf is a registry that has one list for every service, and registers nothing.
type registryOf struct{ list cluster.Static }

func (registryOf) Register(context.Context, string, cluster.Instance) (cluster.Registration, error) {
	return nil, errors.New("this registry registers nothing")
}

func (r registryOf) Resolver(service string) (cluster.Resolver, error) {
	if service != "shop" {
		return nil, errors.New("only the shop is known")
	}
	return r.list, nil
}

// clientDiscovery are the fields that say where the servers are.
func clientDiscovery() map[string]field[fulmar.ClientConfig] {
	elsewhere := cluster.Static{{Address: "somewhere:1"}}
	// called returns the address at which a call fails.
	called := func(t *testing.T, config fulmar.ClientConfig) string {
		config.Dial = dialNowhere
		client, err := fulmar.NewClient(config)
		if err != nil {
			return "refused"
		}
		defer client.Close()
		return asError(t, testservice.NewEchoClient(client).Nothing(context.Background())).Address()
	}
	return map[string]field[fulmar.ClientConfig]{
		"Resolver": {
			observe: func(t *testing.T, config fulmar.ClientConfig) any {
				config.Target = "name:1"
				return called(t, config)
			},
			settings: []setting{{nil, "name:1"}, {elsewhere, "somewhere:1"}},
		},
		"Registries": {
			observe: func(t *testing.T, config fulmar.ClientConfig) any {
				config.Target = "mine:///shop"
				return called(t, config)
			},
			settings: []setting{{nil, "refused"}, {map[string]cluster.Registry{"mine": registryOf{elsewhere}}, "somewhere:1"}},
		},
	}
}

// TestClientConfig_RefusesRegistries that cannot be those of a target.
func TestClientConfig_RefusesRegistries(t *testing.T) {
	for scheme, want := range map[string]string{"static": "need no registry", "unix": "need no registry", "": "a scheme has", "Etcd": "a scheme has", "a b": "a scheme has"} {
		err := (fulmar.ClientConfig{Target: "a:1", Registries: map[string]cluster.Registry{scheme: registryOf{}}}).Validate()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", scheme, err, want)
		}
	}
	if err := (fulmar.ClientConfig{Target: "a:1", Registries: map[string]cluster.Registry{"etcd": nil}}).Validate(); err == nil || !strings.Contains(err.Error(), "is nil") {
		t.Error(err)
	}
	registries := map[string]cluster.Registry{"mine": registryOf{}}
	if err := (fulmar.ClientConfig{Target: "mine:///other", Registries: registries}).Validate(); err == nil || !strings.Contains(err.Error(), "only the shop is known") {
		t.Error(err)
	}
	if err := (fulmar.ClientConfig{Target: "yours:///shop", Registries: registries}).Validate(); err == nil || !strings.Contains(err.Error(), "mine:///service") {
		t.Error(err)
	}
}

// registrar is a registry that remembers what is registered, for as long as it is.
type registrar struct {
	registryOf
	mu        sync.Mutex
	announced map[string]cluster.Instance
	changed   chan struct{}
	// fail is what Register and Withdraw return.
	fail error
}

func newRegistrar() *registrar {
	return &registrar{announced: map[string]cluster.Instance{}, changed: make(chan struct{}, 100)}
}

func (r *registrar) Register(_ context.Context, service string, instance cluster.Instance) (cluster.Registration, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.changed <- struct{}{} }()
	if r.fail != nil {
		return nil, r.fail
	}
	r.announced[service] = instance
	return recorded{r, service}, nil
}

func (r *registrar) get(service string) (cluster.Instance, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	instance, ok := r.announced[service]
	return instance, ok
}

type recorded struct {
	*registrar
	service string
}

func (r recorded) Withdraw(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.changed <- struct{}{} }()
	delete(r.announced, r.service)
	return r.fail
}

// serverDiscovery are the fields that announce a server.
func serverDiscovery() map[string]field[fulmar.ServerConfig] {
	// announced serves until the server is announced, and returns as what.
	announced := func(t *testing.T, config fulmar.ServerConfig) (instance cluster.Instance, service string) {
		registry, _ := config.Registry.(*registrar)
		if registry == nil {
			serve(t, config, adder())
			return cluster.Instance{}, "nothing"
		}
		if err := config.Validate(); err != nil {
			return cluster.Instance{}, "refused"
		}
		serve(t, config, adder())
		<-registry.changed
		registry.mu.Lock()
		defer registry.mu.Unlock()
		for service, instance := range registry.announced {
			return instance, service
		}
		return cluster.Instance{}, "nothing"
	}
	return map[string]field[fulmar.ServerConfig]{
		"Registry": {
			observe: func(t *testing.T, config fulmar.ServerConfig) any {
				if config.Registry != nil {
					config.Service = "shop"
				}
				_, service := announced(t, config)
				return service
			},
			settings: []setting{{nil, "nothing"}, {newRegistrar(), "shop"}},
		},
		"Service": {
			observe: func(t *testing.T, config fulmar.ServerConfig) any {
				config.Registry = newRegistrar()
				_, service := announced(t, config)
				return service
			},
			settings: []setting{{nil, "refused"}, {"shop", "shop"}},
		},
		"Advertise": {
			observe: func(t *testing.T, config fulmar.ServerConfig) any {
				config.Registry, config.Service = newRegistrar(), "shop"
				instance, _ := announced(t, config)
				return fmt.Sprint(strings.HasPrefix(instance.Address, "127.0.0.1:"), instance.Weight)
			},
			settings: []setting{{nil, "true 0"}, {cluster.Instance{Weight: 7}, "true 7"}, {cluster.Instance{Address: "a:1"}, "false 0"}},
		},
	}
}
