package zookeeper_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fulmar-rpc/fulmar/cluster/registries"
	"github.com/fulmar-rpc/fulmar/contrib/zookeeper"
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

// path is the node of the service.
const path = "/" + registrytest.Service

// kind is what the scenarios need to know of ZooKeeper.
func kind() registrytest.Kind {
	return registrytest.Kind{
		Server: testservers.NewZooKeeper,
		Open: func(address string, common registries.Common, encryption *tls.Config) (registrytest.Registry, error) {
			config := hasty(address)
			config.Common, config.TLS = common, encryption
			return zookeeper.New(config)
		},
		Stats: func(registry registrytest.Registry) registrytest.Stats {
			stats := registry.(*zookeeper.Registry).Stats()
			return registrytest.Stats{
				Announced: stats.Announced, Failures: stats.AnnounceFailures,
				Delivered: stats.Delivered, Broken: stats.BrokenValues, LeftOut: stats.LeftOut,
			}
		},
		Operator:  func(t testing.TB, address string) registrytest.Operator { return operator{tool(t, address)} },
		ErrClosed: zookeeper.ErrClosed,
		// The client pauses for a second before each connection: the old session is refused
		// at the first, and the second one may be for a server that has lost its data.
		Reconnecting: 3 * time.Second,
		Value:        func(string) string { return `{"Weight":10,"Tags":null}` },
		Odd:          `{"Weight":-7,"Tags":{"zone":"west"}}`,
		Broken: map[string]string{
			"a": `{"Weight":1}`, "10.0.0.1:0": `{"Weight":1}`, "10.0.0.2:1": "", "10.0.0.3:1": "{",
			"10.0.0.4:1": strings.Repeat("[", 5000), "10.0.0.5:1": strings.Repeat("x", 900_000),
			"10.0.0.6:1": `{"Weight":1e99}`, "10.0.0.7:1": `[]`, "10.0.0.9:99999": `{}`, "x y:1": `{}`,
		},
	}
}

// hasty is a configuration with which outages are over in seconds.
func hasty(address string) zookeeper.Config {
	return zookeeper.Config{Servers: []string{address}, SessionTimeout: registrytest.Lease, Common: registrytest.Hasty()}
}

// unhurried is one with which requests succeed, however busy the machine is.
func unhurried(address string) zookeeper.Config {
	return zookeeper.Config{Servers: []string{address}, SessionTimeout: registrytest.Lease, Common: registrytest.Unhurried()}
}

// tool is a client of ZooKeeper as an operator has it.
func tool(t testing.TB, address string) *zk.Conn {
	t.Helper()
	client, events, err := zk.Connect([]string{address}, registrytest.Patience/10,
		zk.WithDialer(impatient), zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		for range events { // its end is the end of the client
		}
	})
	return client
}

// impatient connects an operator. If a server that starts drops the request for a session, the
// client would wait for nearly seven times as long as one lives, 40 s, and see nothing of
// what a scenario waits for.
func impatient(network, address string, limit time.Duration) (net.Conn, error) {
	conn, err := net.DialTimeout(network, address, limit)
	if err != nil {
		return nil, err
	}
	return &impatientConn{Conn: conn}, nil
}

// impatientConn is read from and given deadlines by one goroutine at a time.
type impatientConn struct {
	net.Conn

	answered bool
}

func (c *impatientConn) SetReadDeadline(deadline time.Time) error {
	if most := time.Now().Add(registrytest.Lease); !c.answered && deadline.After(most) {
		deadline = most
	}
	return c.Conn.SetReadDeadline(deadline)
}

func (c *impatientConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.answered = c.answered || n > 0
	return n, err
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// operator looks at the nodes of the service.
type operator struct{ client *zk.Conn }

// Count returns how many there are.
func (o operator) Count() int {
	names, _, err := o.client.Children(path)
	if errors.Is(err, zk.ErrNoNode) {
		return 0
	}
	if err != nil {
		return -1
	}
	return len(names)
}

// Put makes nodes, all of a batch or, if some are there already, one by one.
func (o operator) Put(t testing.TB, values map[string]string) {
	t.Helper()
	anybody := zk.WorldACL(zk.PermAll)
	if _, err := o.client.Create(path, nil, 0, anybody); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		t.Fatal(err)
	}
	for batch := range registrytest.Batches(values) {
		var requests []any
		for _, name := range batch {
			requests = append(requests, &zk.CreateRequest{Path: path + "/" + name, Data: []byte(values[name]), Acl: anybody})
		}
		_, err := o.client.Multi(requests...)
		if err == nil {
			continue
		}
		for _, name := range batch {
			_, err := o.client.Create(path+"/"+name, []byte(values[name]), 0, anybody)
			if errors.Is(err, zk.ErrNodeExists) {
				_, err = o.client.Set(path+"/"+name, []byte(values[name]), -1)
			}
			if err != nil {
				t.Fatal(name, err)
			}
		}
	}
}

// Remove removes a node.
func (o operator) Remove(t testing.TB, name string) {
	t.Helper()
	if err := o.client.Delete(path+"/"+name, -1); err != nil {
		t.Fatal(err)
	}
}

// Empty removes all nodes. Some may be there again at once.
func (o operator) Empty(t testing.TB) {
	t.Helper()
	names, _, err := o.client.Children(path)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, name := range names {
		all[name] = ""
	}
	for batch := range registrytest.Batches(all) {
		var requests []any
		for _, name := range batch {
			requests = append(requests, &zk.DeleteRequest{Path: path + "/" + name, Version: -1})
		}
		if _, err := o.client.Multi(requests...); err != nil {
			t.Fatal(err)
		}
	}
}
