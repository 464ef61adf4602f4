package etcd_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/fulmar-rpc/fulmar/cluster/registries"
	"github.com/fulmar-rpc/fulmar/contrib/etcd"
	"github.com/fulmar-rpc/fulmar/internal/registrytest"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/internal/testservers"
)

func TestMain(m *testing.M) {
	done, err := registrytest.Begin(kind(), os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if !done {
		testkit.Main(m)
	}
}

// prefix is what the keys of the service begin with.
const prefix = "kitex/registry-etcd/" + registrytest.Service + "/"

// kind is what the scenarios need to know of etcd.
func kind() registrytest.Kind {
	return registrytest.Kind{
		Server: testservers.NewEtcd,
		Open: func(address string, common registries.Common, encryption *tls.Config) (registrytest.Registry, error) {
			config := hasty(address)
			config.Common, config.TLS = common, encryption
			return etcd.New(config)
		},
		Stats: func(registry registrytest.Registry) registrytest.Stats {
			stats := registry.(*etcd.Registry).Stats()
			return registrytest.Stats{
				Announced: stats.Announced, Failures: stats.BeatFailures,
				Delivered: stats.Delivered, Broken: stats.BrokenValues, LeftOut: stats.LeftOut,
			}
		},
		Operator:  func(t testing.TB, address string) registrytest.Operator { return operator{tool(t, address)} },
		ErrClosed: etcd.ErrClosed,
		Value: func(address string) string {
			return fmt.Sprintf(`{"network":"tcp","address":%q,"weight":10,"tags":null}`, address)
		},
		Odd: `{"network":"tcp","address":"10.8.8.8:1","weight":-7,"tags":{"zone":"west"}}`,
		Broken: map[string]string{
			"a": "", "10.0.0.3:1": "{", "c": "null", "d": `{"network":"tcp","address":"10.0.0.1"}`,
			"e": `{"network":"icmp","address":"10.0.0.1:1"}`, "f": `{"network":"tcp","address":"10.0.0.1:0"}`,
			"g": `{"network":"tcp","address":"\u001b[2J:80"}`, "h": strings.Repeat("[", 5000),
			"i": strings.Repeat("x", 1_400_000), "j": `{"network":"tcp","address":"x:1","weight":1e99}`,
		},
		Foreign: map[string]string{"other/10.0.0.1:80": `{"network":"tcp","address":"10.7.7.7:1"}`},
	}
}

// hasty is a configuration with which outages are over in seconds.
func hasty(address string) etcd.Config {
	return etcd.Config{Endpoints: []string{address}, TTL: registrytest.Lease, Common: registrytest.Hasty()}
}

// unhurried is one with which requests succeed, however busy the machine is.
func unhurried(address string) etcd.Config {
	return etcd.Config{Endpoints: []string{address}, TTL: registrytest.Lease, Common: registrytest.Unhurried()}
}

// tool is a client of etcd as an operator has it.
func tool(t testing.TB, address string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{address}, DialTimeout: registrytest.Patience, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	return client
}

// operator looks at the keys of the service.
type operator struct{ client *clientv3.Client }

// Count returns how many there are.
func (o operator) Count() int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	found, err := o.client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return -1
	}
	return int(found.Count)
}

// Put writes values.
func (o operator) Put(t testing.TB, values map[string]string) {
	t.Helper()
	for batch := range registrytest.Batches(values) {
		var puts []clientv3.Op
		for _, name := range batch {
			puts = append(puts, clientv3.OpPut(prefix+name, values[name]))
		}
		if _, err := o.client.Txn(registrytest.Bounded(t)).Then(puts...).Commit(); err != nil {
			t.Fatal(batch, err)
		}
	}
}

// Remove removes a key.
func (o operator) Remove(t testing.TB, name string) {
	t.Helper()
	if _, err := o.client.Delete(registrytest.Bounded(t), prefix+name); err != nil {
		t.Fatal(err)
	}
}

// Empty removes all keys.
func (o operator) Empty(t testing.TB) {
	t.Helper()
	if _, err := o.client.Delete(registrytest.Bounded(t), prefix, clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
}
