package etcd

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/policy"
)

// meaning is a policy without what makes no difference: what is off is zero, and so is what
// only counts with something that is off.
func meaning(m policy.Method) policy.Method {
	m.Retry.AttemptTimeout, m.Hedge.After = max(m.Retry.AttemptTimeout, 0), max(m.Hedge.After, 0)
	if m.Retry.Attempts < 0 {
		m.Retry = policy.Retry{Attempts: -1, AttemptTimeout: m.Retry.AttemptTimeout}
	}
	if m.Hedge.After == 0 {
		m.Hedge = policy.Hedge{}
	}
	if m.Breaker.FailurePercent < 0 {
		m.Breaker = policy.Breaker{}
	}
	return m
}

// TestKitex_EntriesReplaceThatForAll: an entry of a method means what it would mean for all,
// whatever is set for all. That is asked about all pairs of entries.
func TestKitex_EntriesReplaceThatForAll(t *testing.T) {
	timeouts := []string{"", `{"rpc_timeout_ms":100}`, `{"rpc_timeout_ms":5000}`, `{"rpc_timeout_ms":0}`}
	retries := []string{
		"",
		`{"enable":false}`,
		`{"enable":true,"type":0,"failure_policy":{"stop_policy":{"max_retry_times":1}}}`,
		`{"enable":true,"type":0,"failure_policy":{"stop_policy":{"max_retry_times":3,"max_duration_ms":150},"backoff_policy":{"backoff_type":"fixed","cfg_items":{"fix_ms":50}}}}`,
		`{"enable":true,"type":1,"backup_policy":{"retry_delay_ms":30,"stop_policy":{"max_retry_times":2}}}`,
		`{"enable":true,"type":2,"mixed_policy":{"retry_delay_ms":10,"stop_policy":{"max_retry_times":0},"backoff_policy":{"backoff_type":"random","cfg_items":{"max_ms":20}}}}`,
	}
	breakers := []string{"", `{"enable":false}`, `{"enable":true,"err_rate":0.3}`, `{"enable":true,"err_rate":0.5,"min_sample":50}`}
	check := func(category string, forAll, own [3]string) {
		both, alone := map[string]string{}, map[string]string{}
		for i, category := range []string{kitexTimeout, kitexRetry, kitexBreaker} {
			var entries []string
			if forAll[i] != "" {
				entries = append(entries, `"*":`+forAll[i])
			}
			alone[category] = "{" + strings.Join(entries, ",") + "}"
			if own[i] != "" {
				entries = append(entries, `"report":`+own[i])
				alone[category] = `{"*":` + own[i] + "}"
			}
			both[category] = "{" + strings.Join(entries, ",") + "}"
		}
		document, problems := translated(t, []string{"Orders"}, both)
		want, _ := translated(t, nil, alone)
		if got := document.Client.For("Orders", "report"); meaning(got) != meaning(want.Client.Method) || len(problems) > 0 {
			t.Errorf("%s: %v:\n%+v, problems %q\nwant %+v", category, both, got, problems, want.Client.Method)
		}
		if err := document.Validate(); err != nil {
			t.Errorf("%v: %v", both, err)
		}
	}
	for _, timeoutForAll := range timeouts {
		for _, retryForAll := range retries {
			for _, timeout := range timeouts {
				for _, retry := range retries {
					check("times", [3]string{timeoutForAll, retryForAll}, [3]string{timeout, retry})
				}
			}
		}
	}
	for _, breakerForAll := range breakers {
		for _, breaker := range breakers {
			check("breakers", [3]string{2: breakerForAll}, [3]string{2: breaker})
		}
	}
}

// TestKitex_TimeoutsOfStreams: the timeout of all methods is none for streams, so a method
// that has an entry for something else must not get it by its name.
func TestKitex_TimeoutsOfStreams(t *testing.T) {
	document, _ := translated(t, []string{"Orders"}, map[string]string{
		kitexTimeout: `{"*":{"rpc_timeout_ms":300}}`, kitexBreaker: `{"watch":{"enable":true,"err_rate":0.5}}`,
	})
	if watch := document.Client.Methods["Orders.watch"]; watch.Timeout != 0 || watch.Breaker.FailurePercent != 50 {
		t.Errorf("%+v", watch)
	}
}

// TestKitex_BooleansAreNotInherited: what a method cannot take back is not set for all.
func TestKitex_BooleansAreNotInherited(t *testing.T) {
	entry := func(more string) string {
		return `{"enable":true,"failure_policy":{"retry_same_node":` + more + `,"stop_policy":{"max_retry_times":1,"disable_chain_stop":` + more + `}}}`
	}
	document, problems := translated(t, []string{"Orders"}, map[string]string{
		kitexRetry:   `{"*":` + entry("true") + `,"place":` + entry("false") + `,"list":` + entry("true") + `}`,
		kitexBreaker: `{"find":{"enable":false}}`,
	})
	want := map[string]bool{"place": false, "list": true, "find": true, "other": false}
	for name, set := range want {
		if r := document.Client.For("Orders", name).Retry; r.SameInstance != set || r.IgnoreChain != set {
			t.Errorf("%s: %+v, want %v", name, r, set)
		}
	}
	if want := []string{"retry *.failure_policy.retry_same_node", "retry *.failure_policy.stop_policy.disable_chain_stop"}; !slices.Equal(problems, want) {
		t.Errorf("problems %q, want %q", problems, want)
	}

	// Nobody takes anything back: one has no retries, the other is as all are.
	document, problems = translated(t, []string{"Orders"}, map[string]string{kitexRetry: `{"*":` + entry("true") + `,"place":{"enable":false},"list":` + entry("true") + `}`})
	if r := document.Client.Retry; !r.SameInstance || !r.IgnoreChain || len(problems) > 0 {
		t.Errorf("%+v, problems %q", r, problems)
	}
}

// TestKitex_BrokenEntriesOfMethods: what is set for all holds in their place.
func TestKitex_BrokenEntriesOfMethods(t *testing.T) {
	document, problems := translated(t, []string{"Orders"}, map[string]string{
		kitexTimeout: `{"*":{"rpc_timeout_ms":100},"a":{"rpc_timeout_ms":-5},"c":{"rpc_timeout_ms":700}}`,
		kitexRetry: `{"*":{"enable":true,"failure_policy":{"stop_policy":{"max_retry_times":1}}},
			"a":{"enable":true,"type":9},"b":{"enable":true,"type":1,"backup_policy":{"retry_delay_ms":0,"stop_policy":{"max_retry_times":1}}},"c":{"enable":true,"type":2}}`,
		kitexBreaker: `{"*":{"enable":true,"err_rate":0.5},"a":{"enable":true,"err_rate":0.5,"min_sample":10000001}}`,
	})
	want := []string{
		"circuit_break a.err_rate, min_sample", "retry a.type", "retry b.backup_policy.retry_delay_ms", "retry c.mixed_policy", "rpc_timeout a.rpc_timeout_ms",
	}
	if !slices.Equal(problems, want) {
		t.Errorf("problems %q, want %q", problems, want)
	}
	for _, name := range []string{"a", "b"} {
		if got, all := document.Client.For("Orders", name), document.Client.Method; meaning(got) != meaning(all) {
			t.Errorf("%s: %+v, want %+v", name, got, all)
		}
	}
	if c := document.Client.For("Orders", "c"); c.Timeout != 1400*time.Millisecond || c.Retry.AttemptTimeout != 700*time.Millisecond {
		t.Errorf("its own timeout, with the retries of all: %+v", c)
	}
}

// TestKitex_WhatNoPolicyTakes: each such thing is a problem with its place, and the rest is
// a document that is not refused.
func TestKitex_WhatNoPolicyTakes(t *testing.T) {
	many := func(n, nameBytes int) string {
		var entries []string
		for i := range n {
			name := fmt.Sprintf("m%04d", i)
			entries = append(entries, `"`+name+strings.Repeat("x", nameBytes-len(name))+`":{"rpc_timeout_ms":70}`)
		}
		return "{" + strings.Join(entries, ",") + "}"
	}
	retry := `{"*":{"enable":true,"failure_policy":{"stop_policy":{"max_retry_times":3}}}}`
	for name, test := range map[string]struct {
		services []string
		settings map[string]string
		// problems are so many, and the first one is about first.
		problems int
		first    string
	}{
		"1001 methods":        {[]string{"Orders"}, map[string]string{kitexTimeout: many(1001, 5)}, 1, "rpc_timeout m1000.(all)"},
		"of several services": {[]string{"Orders", "Stock"}, map[string]string{kitexTimeout: many(501, 5)}, 1, "rpc_timeout m0500.(all)"},
		"more than a mebibyte": {
			[]string{"Orders"}, map[string]string{kitexTimeout: many(1000, 1000), kitexRetry: `{"*":{"enable":false}}`}, 49, "rpc_timeout m0951" + strings.Repeat("x", 75) + ".(all)",
		},
		"a service given twice": {[]string{"Orders", "Orders/"}, map[string]string{kitexTimeout: many(1000, 5)}, 0, ""},
		"a name with a dash":    {[]string{"Orders", "a.B"}, map[string]string{kitexTimeout: `{"get-it":{"rpc_timeout_ms":1}}`}, 1, "rpc_timeout get-it.(all)"},
		"a name with a dot":     {[]string{"Orders"}, map[string]string{kitexRetry: `{"a.b":{"enable":false}}`}, 1, "retry a.b.(all)"},
		"a name with a slash":   {[]string{"Orders"}, map[string]string{kitexRetry: `{"a/b":{"enable":false}}`}, 1, "retry a/b.(all)"},
		"a name that is long":   {[]string{"Orders"}, map[string]string{kitexTimeout: many(1, 1025)}, 1, "rpc_timeout m0000" + strings.Repeat("x", 75) + ".(all)"},
		"no name":               {[]string{"Orders"}, map[string]string{kitexBreaker: `{"":{"enable":false}}`}, 1, "circuit_break (all)"},
		"a service with a dash": {[]string{"order-s"}, map[string]string{kitexTimeout: many(1, 5)}, 1, "rpc_timeout m0000.(all)"},
		"all day for all":       {[]string{"Orders"}, map[string]string{kitexTimeout: `{"*":{"rpc_timeout_ms":80000000}}`, kitexRetry: retry, kitexBreaker: `{"a":{"enable":false}}`}, 1, "retry *.failure_policy"},
		"all day for one":       {[]string{"Orders"}, map[string]string{kitexTimeout: `{"a":{"rpc_timeout_ms":86400000}}`, kitexRetry: retry}, 1, "retry a.failure_policy"},
	} {
		t.Run(name, func(t *testing.T) {
			document, problems := translated(t, test.services, test.settings)
			if len(problems) != test.problems || test.problems > 0 && problems[0] != test.first {
				t.Errorf("%d problems %.1000q, want %d, the first one about %q", len(problems), problems, test.problems, test.first)
			}
			text, err := json.Marshal(document)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := policy.ParseJSON(text); err != nil {
				t.Errorf("the document is refused: %.1000v", err)
			}
			if document.Client.Timeout > limits.PolicyDurationMax {
				t.Errorf("%v", document.Client.Timeout)
			}
		})
	}
}
