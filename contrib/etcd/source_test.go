package etcd_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/contrib/etcd"
	"github.com/fulmar-rpc/fulmar/internal/registrytest"
	"github.com/fulmar-rpc/fulmar/policy"
)

// documents is what a Source has delivered. Safe for concurrent use.
type documents struct {
	mu       sync.Mutex
	texts    []string
	versions []string
}

// watch watches a source until the test ends.
func watch(t *testing.T, source *etcd.Source) *documents {
	t.Helper()
	d := &documents{}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- source.Watch(ctx, func(document []byte, version string) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.texts, d.versions = append(d.texts, string(document)), append(d.versions, version)
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return d
}

func (d *documents) last() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.texts) == 0 {
		return ""
	}
	return d.texts[len(d.texts)-1]
}

func (d *documents) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.texts)
}

func TestSource_Document(t *testing.T) {
	t.Parallel()
	server := kind().Run(t)
	behind := registrytest.Network(t, server)
	client := tool(t, server.Address)
	registry := registrytest.Open(t, etcd.New, hasty(behind.Address))
	source, err := registry.Document("policies/orders")
	if err != nil {
		t.Fatal(err)
	}
	put := func(value string) {
		t.Helper()
		if _, err := client.Put(registrytest.Bounded(t), "policies/orders", value); err != nil {
			t.Fatal(err)
		}
	}
	put("one")
	if _, err := client.Put(registrytest.Bounded(t), "policies/orders2", "another key"); err != nil {
		t.Fatal(err)
	}
	got := watch(t, source)
	registrytest.Eventually(t, "the first document", func() bool { return got.last() == "one" })
	put("two")
	registrytest.Eventually(t, "the second document", func() bool { return got.last() == "two" })

	// What is removed, or too long, changes nothing; neither does an outage.
	if _, err := client.Delete(registrytest.Bounded(t), "policies/orders"); err != nil {
		t.Fatal(err)
	}
	put(strings.Repeat("x", 1_100_000))
	registrytest.Eventually(t, "it was seen", func() bool { return registry.Stats().BrokenValues > 0 })
	behind.Cut()
	put("three")
	registrytest.Pass(registrytest.Lease / 4)
	if last := got.last(); last != "two" {
		t.Errorf("during the outage: %.20q", last)
	}
	behind.Restore()
	registrytest.Eventually(t, "the third document", func() bool { return got.last() == "three" })
	if n := got.count(); n != 3 {
		t.Errorf("%d documents", n)
	}
	for _, version := range got.versions {
		if !strings.HasPrefix(version, "etcd revision ") {
			t.Errorf("version %q", version)
		}
	}
	if _, err := registry.Document(""); err == nil {
		t.Error("there is a document without a key")
	}
}

func TestSource_Kitex(t *testing.T) {
	t.Parallel()
	server := kind().Run(t)
	client := tool(t, server.Address)
	registry := registrytest.Open(t, etcd.New, hasty(server.Address))
	put := func(key, value string) {
		t.Helper()
		if _, err := client.Put(registrytest.Bounded(t), "/KitexConfig/"+key, value); err != nil {
			t.Fatal(err)
		}
	}
	source, err := registry.KitexClientPolicy("shop", "orders", "Orders")
	if err != nil {
		t.Fatal(err)
	}
	got := watch(t, source)
	document := func() (d policy.Document) {
		_ = json.Unmarshal([]byte(got.last()), &d)
		return d
	}
	registrytest.Eventually(t, "a document without settings", func() bool { return got.count() == 1 })
	put("shop/orders/rpc_timeout", `{"*":{"rpc_timeout_ms":300},"place":{"rpc_timeout_ms":70,"conn_timeout_ms":5}}`)
	registrytest.Eventually(t, "timeouts", func() bool {
		d := document()
		return d.Client.Timeout == 300*time.Millisecond && d.Client.Methods["Orders.place"].Timeout == 70*time.Millisecond
	})
	put("shop/orders/circuit_break", `{"place":{"enable":true,"err_rate":0.3,"min_sample":50}}`)
	registrytest.Eventually(t, "breakers", func() bool { return document().Client.Methods["Orders.place"].Breaker.FailurePercent == 30 })
	before := got.last()

	// What breaks stays as it was; what is removed is gone.
	put("shop/orders/rpc_timeout", `{"*":`)
	put("shop/orders/degradation", `{"enable":true,"percentage":3}`)
	registrytest.Eventually(t, "problems", func() bool {
		var fields []string
		for _, problem := range source.Problems() {
			fields = append(fields, problem.Error())
		}
		text := strings.Join(fields, "\n")
		return strings.Contains(text, "/KitexConfig/shop/orders/rpc_timeout: (all): it is broken: kitex config: unexpected end of JSON input; what it was before stays in force") &&
			strings.Contains(text, "/KitexConfig/shop/orders/degradation: (all): there is no equivalent") &&
			strings.Contains(text, "/KitexConfig/shop/orders/rpc_timeout: place.conn_timeout_ms: ")
	})
	if now := got.last(); now != before {
		t.Errorf("the policy changed from %s to %s", before, now)
	}
	if _, err := client.Delete(registrytest.Bounded(t), "/KitexConfig/shop/orders/rpc_timeout"); err != nil {
		t.Fatal(err)
	}
	registrytest.Eventually(t, "no timeouts", func() bool { return document().Client.Timeout == 0 })

	limits, err := registry.KitexServerPolicy("orders")
	if err != nil {
		t.Fatal(err)
	}
	put("orders/limit", `{"connection_limit":100,"qps_limit":2000}`)
	gotLimits := watch(t, limits)
	registrytest.Eventually(t, "a limit", func() bool {
		var d policy.Document
		return json.Unmarshal([]byte(gotLimits.last()), &d) == nil && d.Server.Limit.PerSecond == 2000 && d.Server.Connections == 100
	})
	put("orders/limit", `{"connection_limit":99999999,"qps_limit":2000}`)
	registrytest.Eventually(t, "a problem", func() bool { return len(limits.Problems()) > 0 })
	if problems := limits.Problems(); len(problems) != 1 || problems[0].Key != "/KitexConfig/orders/limit" || problems[0].Field != "connection_limit" {
		t.Errorf("%+v", problems)
	}
	if _, err := registry.KitexClientPolicy("a/b", "orders"); err == nil {
		t.Error("there is a policy for a client with a slash")
	}
}
