package etcd

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/cluster/registries"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// logging returns a Registry without an etcd, and its log.
func logging(t *testing.T, config Config) (*Registry, *bytes.Buffer) {
	t.Helper()
	log := new(bytes.Buffer)
	config.Endpoints, config.Common = []string{"127.0.0.1:1"}, registries.Common{Logger: slog.New(slog.NewTextHandler(log, nil))}
	registry, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = registry.Close() })
	return registry, log
}

// newLines returns what a log has got, and forgets it.
func newLines(log *bytes.Buffer) []string {
	text := strings.TrimSuffix(log.String(), "\n")
	log.Reset()
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// TestSource_ManyProblemsAreOneLine, also of settings that come and go, and what could not be
// said at once is said later.
func TestSource_ManyProblemsAreOneLine(t *testing.T) {
	const methods, flips = 9000, 61
	const many = methods + methods - limits.PolicyMethods // with those for which a policy has no room
	registry, log := logging(t, Config{})
	s, settings := &Source{registry: registry}, kitexSettings{services: []string{"Orders"}}
	entries := make([]string, methods)
	for i := range entries {
		entries[i] = fmt.Sprintf(`"m%04d":{"rpc_timeout_ms":-1}`, i)
	}
	read := func(entries ...string) *kitexValue {
		value, err := parseKitex(kitexTimeout, []byte("{"+strings.Join(entries, ",")+"}"))
		if err != nil {
			t.Fatal(err)
		}
		return &value
	}
	bad, good, other := read(entries...), read(), read(`"else":{"rpc_timeout_ms":-1}`)
	update := func(now time.Time, value *kitexValue) time.Duration {
		_, problems := settings.update("p/", map[string]*kitexValue{kitexTimeout: value})
		return s.report(now, "p/", problems)
	}
	now, lines := time.Now(), 0
	for flip := range flips {
		again := update(now, []*kitexValue{bad, good}[flip%2])
		for _, line := range newLines(log) {
			lines++
			if again != 0 || !strings.Contains(line, fmt.Sprintf("and %d others", many-3)) || !strings.Contains(line, "of=p/") ||
				!strings.Contains(line, "p/rpc_timeout m0002.rpc_timeout_ms: out of range") || strings.Contains(line, "m0003") {
				t.Fatalf("again after %v: %s", again, line)
			}
		}
		now = now.Add(time.Second)
	}
	if n := registry.Stats().Problems; lines < flips/10 || lines > flips/10+1 || n != many*(flips/2+1) || len(s.Problems()) != many {
		t.Errorf("%d lines in %d s, %d problems were counted, there are %d", lines, flips, n, len(s.Problems()))
	}
	if again := update(now, other); again <= 0 || again > limits.RegistryLogPause || log.Len() > 0 {
		t.Fatalf("again after %v: %s", again, log)
	} else if again = update(now.Add(again), other); again != 0 {
		t.Errorf("again after %v", again)
	}
	if said := newLines(log); len(said) != 1 || !strings.Contains(said[0], "else.rpc_timeout_ms") || strings.Contains(said[0], "others") {
		t.Errorf("%q", said)
	}
	if update(now.Add(time.Hour), other); log.Len() > 0 {
		t.Errorf("it is said again: %s", log)
	}
}

// TestSource_ValuesOfKitexThatCannotBeRead: a problem says what is wrong with them.
func TestSource_ValuesOfKitexThatCannotBeRead(t *testing.T) {
	settings := kitexSettings{valueBytesMax: 1234}
	for _, after := range []string{"", "; what it was before stays in force"} {
		_, problems := settings.update("p/", map[string]*kitexValue{kitexTimeout: nil, kitexRetry: {broken: fmt.Errorf("no JSON")}})
		want := []Problem{
			{"p/" + kitexRetry, "(all)", "it is broken: no JSON" + after},
			{"p/" + kitexTimeout, "(all)", "it is longer than 1234 bytes (MaxPolicyBytes)" + after},
		}
		if !slices.Equal(problems, want) {
			t.Errorf("%v, want %v", problems, want)
		}
		settings.update("p/", map[string]*kitexValue{kitexTimeout: {}, kitexRetry: {}})
	}
}

// TestSource_DocumentThatIsNotToBeHad: whoever watches is told whether there is none or it is
// too long, where, and what the limit is, and hears of it again when it is back as it was.
func TestSource_DocumentThatIsNotToBeHad(t *testing.T) {
	registry, log := logging(t, Config{MaxPolicyBytes: 10})
	var reports, delivered []string
	ctx := cluster.WithReport(context.Background(), func(err error) { reports = append(reports, err.Error()) })
	f := registry.document(ctx, "policies/orders", func(document []byte, _ string) { delivered = append(delivered, string(document)) })
	f.values = map[string]*[]byte{}
	put := func(value string) {
		event := &clientv3.Event{Type: clientv3.EventTypePut, Kv: &mvccpb.KeyValue{Key: []byte("policies/orders"), Value: []byte(value)}}
		if err := f.apply(clientv3.WatchResponse{Header: &etcdserverpb.ResponseHeader{}, Events: []*clientv3.Event{event}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		value, report, log string
		deliveries         int
	}{
		{value: "", report: `etcd: there is no policy document at "policies/orders"`, log: "there is no policy document"},
		{value: "0123456789", deliveries: 1},
		{value: "0123456789a", report: `etcd: the policy document at "policies/orders" is too long (limit 10 bytes, MaxPolicyBytes)`, log: "value of 11 bytes or more (limit 10)", deliveries: 1},
		{value: "0123456789", deliveries: 2},
		{value: "0123456789", deliveries: 2},
	} {
		reports = nil
		if step.value != "" {
			put(step.value)
		}
		f.tell(time.Now())
		lines := newLines(log)
		if strings.Join(reports, "\n") != step.report || len(delivered) != step.deliveries {
			t.Errorf("%q: reported %q, delivered %q", step.value, reports, delivered)
		}
		if step.log == "" && lines != nil || step.log != "" && (len(lines) != 1 || !strings.Contains(lines[0], step.log) || !strings.Contains(lines[0], "of=policies/orders")) {
			t.Errorf("%q: the log has %q", step.value, lines)
		}
	}
}
