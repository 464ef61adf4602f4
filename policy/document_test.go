package policy_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/policy"
)

const wholeDocument = `{
	"client": {
		"timeout": "2s",
		"retry": {"attempts": 3, "codes": ["unavailable", "deadline_exceeded"], "attempt_timeout": "500ms", "backoff_min": "20ms", "backoff_max": "2s", "same_instance": true, "ignore_chain": true},
		"breaker": {"failure_percent": 50, "min_calls": 20, "window": "5s", "pause": "1s", "probes": 2, "codes": ["internal"]},
		"methods": {
			"Orders": {"timeout": "1s"},
			"Orders.list": {"retry": {"idempotent": true}, "hedge": {"after": "30ms", "attempts": 3}},
			"shop.v1.Orders/Place": {"retry": {"attempts": -1}}
		},
		"balancing": {"method": "consistent_hash", "hash_key": "user", "zone": "a", "slow_start": "30s"},
		"ejection": {"failure_percent": 40, "min_calls": 10, "window": "20s", "pause_min": "2s", "pause_max": "1m0s", "max_ejected_percent": 30},
		"retry_budget": {"percent": 20, "per_second": 5},
		"target_breaker": {"failure_percent": 80}
	},
	"server": {
		"limit": {"per_second": 5000, "burst": 100, "running": 64},
		"caller_limit": {"per_second": 100},
		"methods": {"Orders.place": {"running": 8}},
		"adaptive": {"enabled": true, "min_running": 8, "max_running": 200},
		"connections": 2000,
		"queue": {"wait_percent": 30, "calls": 500, "time": "50ms"}
	}
}`

func TestParseJSON_ReadsEveryField(t *testing.T) {
	got, err := policy.ParseJSON([]byte(wholeDocument))
	if err != nil {
		t.Fatal(err)
	}
	want := policy.Document{
		Client: policy.Client{
			Method: policy.Method{
				Timeout: 2 * time.Second,
				Retry: policy.Retry{
					Attempts: 3, Codes: policy.CodesOf(14, 4), AttemptTimeout: 500 * time.Millisecond,
					BackoffMin: 20 * time.Millisecond, BackoffMax: 2 * time.Second, SameInstance: true, IgnoreChain: true,
				},
				Breaker: policy.Breaker{FailurePercent: 50, MinCalls: 20, Window: 5 * time.Second, Pause: time.Second, Probes: 2, Codes: policy.CodesOf(13)},
			},
			Methods: map[string]policy.Method{
				"Orders":               {Timeout: time.Second},
				"Orders.list":          {Retry: policy.Retry{Idempotent: true}, Hedge: policy.Hedge{After: 30 * time.Millisecond, Attempts: 3}},
				"shop.v1.Orders/Place": {Retry: policy.Retry{Attempts: -1}},
			},
			Balancing:     cluster.Balancing{Method: cluster.ConsistentHash, HashKey: "user", Zone: "a", SlowStart: 30 * time.Second},
			Ejection:      cluster.Ejection{FailurePercent: 40, MinCalls: 10, Window: 20 * time.Second, PauseMin: 2 * time.Second, PauseMax: time.Minute, MaxEjectedPercent: 30},
			RetryBudget:   policy.RetryBudget{Percent: 20, PerSecond: 5},
			TargetBreaker: policy.Breaker{FailurePercent: 80},
		},
		Server: policy.Server{
			Limit:       policy.Limit{PerSecond: 5000, Burst: 100, Running: 64},
			CallerLimit: policy.Limit{PerSecond: 100},
			Methods:     map[string]policy.Limit{"Orders.place": {Running: 8}},
			Adaptive:    policy.Adaptive{Enabled: true, MinRunning: 8, MaxRunning: 200},
			Connections: 2000,
			Queue:       policy.Queue{WaitPercent: 30, Calls: 500, Time: 50 * time.Millisecond},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v\nwant %+v", got, want)
	}
}

// What is set is printed under the names and in the order of the type, and nothing else.
func TestDocument_PrintsWhatIsSet(t *testing.T) {
	document, err := policy.ParseJSON([]byte(wholeDocument))
	if err != nil {
		t.Fatal(err)
	}
	printed, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	var again policy.Document
	if err := json.Unmarshal(printed, &again); err != nil || !reflect.DeepEqual(again, document) {
		t.Errorf("%s\nis read as %+v, %v", printed, again, err)
	}
	tests := map[string]string{
		`{}`:                          `{}`,
		`{"client":{"methods":{}}}`:   `{}`,
		`{"client":{"timeout":"0s"}}`: `{}`,
		`{"client":{"retry":{"codes":["internal","unavailable"],"attempts":3.0},"timeout":"1500ms"}}`: `{"client":{"timeout":"1.5s","retry":{"attempts":3,"codes":["internal","unavailable"]}}}`,
		`{"client":{"methods":{"B":{"timeout":"-1s"},"A":{}}}}`:                                       `{"client":{"methods":{"A":{},"B":{"timeout":"-1s"}}}}`,
	}
	for text, want := range tests {
		document, err := policy.ParseJSON([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if printed, err := document.MarshalJSON(); err != nil || string(printed) != want {
			t.Errorf("%s is printed as %s, %v, want %s", text, printed, err, want)
		}
	}
}

type problemTest struct {
	name, text string
	want       []string
}

func problemsOfValues() []problemTest {
	return []problemTest{
		{"unknown field", `{"client":{"retry":{"atempts":2}}}`, []string{`client.retry: unknown field "atempts" (is "attempts" meant?)`}},
		{"name in Go", `{"client":{"retryBudget":{}}}`, []string{`client: unknown field "retryBudget" (is "retry_budget" meant?)`}},
		{"nothing near", `{"colour":1}`, []string{`document: unknown field "colour"`}},
		{"embedded name", `{"client":{"method":{}}}`, []string{`client: unknown field "method" (is "methods" meant?)`}},
		{"number as duration", `{"client":{"timeout":300}}`, []string{`client.timeout: 300 has no unit (want text such as "300ms")`}},
		{"text without unit", `{"client":{"timeout":"300"}}`, []string{`client.timeout: "300" has no unit (want text such as "300ms")`}},
		{"no duration", `{"client":{"timeout":"soon"}}`, []string{`client.timeout: "soon" is no duration (want text such as "300ms")`}},
		{"list as duration", `{"client":{"timeout":[]}}`, []string{`client.timeout: a list (want text such as "300ms")`}},
		{"too short", `{"client":{"timeout":"9us"}}`, []string{`client.timeout: 9µs (at least 10µs)`}},
		{"too long", `{"client":{"timeout":"25h"}}`, []string{`client.timeout: 25h0m0s (at most 24h0m0s)`}},
		{"wrong types", `{"client":{"retry":[],"methods":1},"server":{"limit":{"running":"8"},"adaptive":{"enabled":1}}}`, []string{
			`client.methods: 1 (want an object with the names of services or methods)`,
			`client.retry: a list (want an object)`,
			`server.adaptive.enabled: 1 (want true or false)`,
			`server.limit.running: text "8" (want a whole number)`,
		}},
		{"fraction", `{"client":{"retry":{"attempts":2.5}}}`, []string{`client.retry.attempts: 2.5 (want a whole number)`}},
		{"huge number", `{"client":{"retry":{"attempts":1e30}}}`, []string{`client.retry.attempts: 1e30 (want a whole number)`}},
		{"null", `{"client":null}`, []string{`client: nothing (want an object)`}},
		{"text for balancing", `{"client":{"balancing":{"zone":7}}}`, []string{`client.balancing.zone: 7 (want text)`}},
		{"twice", `{"client":{"timeout":"1s","timeout":"2s","methods":{"A":{},"A":{"timeout":"x"}}}}`, []string{
			`client: the field "timeout" is there twice`, `client.methods: the field "A" is there twice`,
		}},
		{"attempts", `{"client":{"methods":{"Orders.place":{"retry":{"attempts":11}}}}}`, []string{`client.methods["Orders.place"].retry.attempts: 11 (at most 10)`}},
		{"percent", `{"client":{"retry_budget":{"percent":101},"breaker":{"failure_percent":200},"ejection":{"max_ejected_percent":101,"failure_percent":102}}}`, []string{
			`client.breaker.failure_percent: 200 (at most 100)`,
			`client.ejection.failure_percent: 102 (at most 100)`, `client.ejection.max_ejected_percent: 101 (at most 100)`,
			`client.retry_budget.percent: 101 (at most 100)`,
		}},
		{"bounds", `{"server":{"connections":20000000,"queue":{"wait_percent":101,"calls":30000000,"time":"9us"}}}`, []string{
			`server.connections: 20000000 (at most 10000000)`, `server.queue.wait_percent: 101 (at most 100)`,
			`server.queue.calls: 30000000 (at most 10000000)`, `server.queue.time: 9µs (at least 10µs)`,
		}},
		{"codes", `{"client":{"retry":{"codes":["unavailible","ok",3]},"breaker":{"codes":[]}}}`, []string{
			`client.breaker.codes: the list is empty (leave it out for the default)`,
			`client.retry.codes[0]: "unavailible" is no code (is "unavailable" meant?)`,
			`client.retry.codes[2]: 3 (want the name of a code such as "unavailable")`,
			`client.retry.codes: ok is no failure`,
		}},
		{"many codes", `{"client":{"retry":{"codes":[` + strings.Repeat(`"internal",`, 32) + `"internal"]}}}`, []string{`client.retry.codes: 33 codes (limit 32)`}},
		{"codes no list", `{"client":{"retry":{"codes":"unavailable"}}}`, []string{`client.retry.codes: text "unavailable" (want a list of codes such as ["unavailable"])`}},
		{"backoff", `{"client":{"retry":{"backoff_min":"2s"},"methods":{"A":{"retry":{"backoff_max":"1s"}},"B":{"retry":{"backoff_min":"20ms"}}}}}`, []string{
			`client.retry.backoff_min: 2s is above backoff_max (1s, the default)`,
			`client.methods["A"].retry.backoff_min: 2s is above backoff_max (1s)`,
		}},
	}
}

func problemsOfMethods() []problemTest {
	return []problemTest{
		{"hedge", `{"client":{"hedge":{"after":"10ms"},"methods":{"A":{"retry":{"idempotent":true}},"A.b":{"hedge":{"after":"5ms"}},"C":{"hedge":{"after":"7ms"}}}}}`, []string{
			`client.hedge.after: 10ms without retry.idempotent: the method would be executed twice`,
			`client.methods["C"].hedge.after: 7ms without retry.idempotent: the method would be executed twice`,
		}},
		{"taken back", `{"client":{"retry":{"ignore_chain":true},"methods":{"A":{"retry":{"idempotent":true}},"A.b":{"retry":{"idempotent":false}},"C/d":{"retry":{"ignore_chain":false,"idempotent":false}}}}}`, []string{
			`client.methods["A.b"].retry.idempotent: false does not take back what is set for more methods (set it for those that want it)`,
			`client.methods["C/d"].retry.ignore_chain: false does not take back what is set for more methods (set it for those that want it)`,
		}},
		{"names", `{"client":{"methods":{"Orders.":{},"1":{}}},"server":{"methods":{"a/b/c":{}}}}`, []string{
			`client.methods: "1" cannot be the name of a service or method (want one like "Orders", "Orders.place" or "shop.v1.Orders/Place")`,
			`client.methods: "Orders." cannot be the name of a service or method (want one like "Orders", "Orders.place" or "shop.v1.Orders/Place")`,
			`server.methods: "a/b/c" cannot be the name of a service or method (want one like "Orders", "Orders.place" or "shop.v1.Orders/Place")`,
		}},
		{"one method twice", `{"client":{"methods":{"A.b":{},"A/b":{}}}}`, []string{`client.methods: "A.b" and "A/b" are the same method`}},
		{"long name", `{"server":{"methods":{"` + strings.Repeat("a", 1025) + `":{}}}}`, []string{`server.methods: name of 1025 bytes (limit 1024)`}},
		{"window", `{"client":{"breaker":{"window":"50ms","pause":"-1s","probes":-1,"min_calls":-1}}}`, []string{
			`client.breaker.min_calls: -1 (at least 1, and 0 is the default)`,
			`client.breaker.window: 50ms (at least 100ms, and 0s is the default)`,
			`client.breaker.pause: -1s (at least 100ms, and 0s is the default)`,
			`client.breaker.probes: -1 (at least 1, and 0 is the default)`,
			`client.breaker.window: 50ms without failure_percent: there is no breaker`,
		}},
		{"breakers that are none", `{"client":{"target_breaker":{"min_calls":7},"breaker":{"probes":2},"methods":{"A":{"breaker":{"codes":["internal"]}},"A.b":{"breaker":{"pause":"1s"}}}}}`, []string{
			`client.breaker.probes: 2 without failure_percent: there is no breaker`,
			`client.methods["A"].breaker.codes: internal without failure_percent: there is no breaker`,
			`client.methods["A.b"].breaker.pause: 1s without failure_percent: there is no breaker`,
			`client.target_breaker.min_calls: 7 without failure_percent: there is no breaker`,
		}},
		{"breaker of another", `{"client":{"methods":{"A":{"breaker":{"min_calls":5}},"B.c":{"breaker":{"failure_percent":50}},"B.d":{"breaker":{"min_calls":6}}}}}`, []string{
			`client.methods["A"].breaker.min_calls: 5 without failure_percent: there is no breaker`,
			`client.methods["B.d"].breaker.min_calls: 6 without failure_percent: there is no breaker`,
		}},
		{"hedge of a service with dots", `{"client":{"methods":{"shop.v1":{"retry":{"idempotent":true}},"shop.v1.Orders":{"hedge":{"after":"50ms"}}}}}`, []string{
			`client.methods["shop.v1.Orders"].hedge.after: 50ms without retry.idempotent: "shop.v1" holds for a service of that name only (name a method of it "shop.v1/Orders", or set it here)`,
		}},
		{"limits", `{"server":{"limit":{"per_second":10000001,"burst":-1},"caller_limit":{"burst":5},"adaptive":{"enabled":true,"min_running":2000}}}`, []string{
			`server.limit.per_second: 10000001 (at most 10000000)`, `server.limit.burst: -1 (at least 1, and 0 is the default)`,
			`server.caller_limit.burst: 5 without per_second`,
			`server.adaptive.min_running: 2000 is above max_running (1000, the default)`,
		}},
		{"balancing", `{"client":{"balancing":{"method":"round-robin","zone":"a\u0007"}}}`, []string{
			`client.balancing.method: "round-robin" is none (is "round_robin" meant?) (want one of least_loaded, round_robin, random, consistent_hash, least_requests)`,
			`client.balancing.zone: "a\a" has characters that cannot be printed`,
		}},
		{"hash key", `{"client":{"balancing":{"method":"consistent_hash"}}}`, []string{`client.balancing.hash_key: nothing, and consistent_hash needs it`}},
		{"ejection", `{"client":{"ejection":{"pause_min":"1m"}}}`, []string{`client.ejection.pause_min: 1m0s is above pause_max (30s, the default)`}},
		{"no JSON", "{\n\t\"client\": {,}\n}", []string{`document: line 2, byte 13: invalid character ',' looking for beginning of object key string`}},
		{"more behind", `{}{}`, []string{`document: line 1, byte 3: invalid character '{' after top-level value`}},
		{"empty", ``, []string{`document: line 1, byte 0: unexpected end of JSON input`}},
		{"no object", `[]`, []string{`document: a list (want an object)`}},
		{"no UTF-8", "{\"a\xff\":1}", []string{`document: text is not valid UTF-8`}},
		{"deep", strings.Repeat("[", 17) + strings.Repeat("]", 17), []string{`document: objects and lists nest too deep at byte 17 (limit 16)`}},
	}
}

// problemsOfNoEffect are of settings that another one is missing for, or makes useless.
func problemsOfNoEffect() []problemTest {
	return []problemTest{
		{"times that never pass", `{"client":{"timeout":"2s","retry":{"idempotent":true,"attempt_timeout":"3s"},"hedge":{"after":"2s"},"methods":{"A":{"timeout":"1s"},"A.b":{"retry":{"attempt_timeout":"1500ms"},"hedge":{"after":"1s"}},"C":{"timeout":"-1s","hedge":{"after":"5s"}}}}}`, []string{
			`client.retry.attempt_timeout: 3s is above timeout (2s)`,
			`client.hedge.after: 2s is not below timeout (2s)`,
			`client.methods["A.b"].retry.attempt_timeout: 1.5s is above timeout (1s)`,
			`client.methods["A.b"].hedge.after: 1s is not below timeout (1s)`,
		}},
		{"hedges that are none", `{"client":{"hedge":{"attempts":3},"methods":{"A":{"hedge":{"attempts":4}}}}}`, []string{
			`client.hedge.attempts: 3 without after: there is no hedge`,
			`client.methods["A"].hedge.attempts: 4 without after: there is no hedge`,
		}},
		{"hedge of another", `{"client":{"retry":{"idempotent":true},"hedge":{"attempts":3},"methods":{"A":{"hedge":{"attempts":4}},"A.b":{"hedge":{"after":"1s"}},"C":{"hedge":{"attempts":5}},"D":{"hedge":{"after":"-1s","attempts":6}}}}}`, []string{
			`client.methods["C"].hedge.attempts: 5 without after: there is no hedge`,
		}},
		{"adaptive limit that is none", `{"server":{"adaptive":{"max_running":20}}}`, []string{`server.adaptive.max_running: 20 without enabled: there is no such limit`}},
		{"subset of a hash", `{"client":{"balancing":{"method":"consistent_hash","hash_key":"user","subset":10}}}`, []string{
			`client.balancing.subset: 10 with consistent_hash, which uses all instances`,
		}},
		{"hash key of another", `{"client":{"balancing":{"method":"round_robin","hash_key":"user"}}}`, []string{
			`client.balancing.hash_key: "user" without the method consistent_hash: nothing asks for it`,
		}},
	}
}

func TestParseJSON_NamesEachProblem(t *testing.T) {
	for _, test := range slices.Concat(problemsOfValues(), problemsOfMethods(), problemsOfNoEffect()) {
		t.Run(test.name, func(t *testing.T) {
			_, err := policy.ParseJSON([]byte(test.text))
			if err == nil {
				t.Fatal("it was accepted")
			}
			if got := strings.Split(err.Error(), "\n"); !slices.Equal(got, test.want) {
				t.Errorf("the problems are\n%s\nwant\n%s", err, strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestParseJSON_BoundsWhatItTakes(t *testing.T) {
	if _, err := policy.ParseJSON(make([]byte, limits.PolicyBytes+1)); err == nil || err.Error() != "document: 1048577 bytes (limit 1048576)" {
		t.Errorf("a document that is too long: %v", err)
	}
	var text strings.Builder
	text.WriteString(`{"client":{"methods":{`)
	for i := range limits.PolicyMethods + 1 {
		fmt.Fprintf(&text, `%q:{},`, fmt.Sprintf("M%d", i))
	}
	many := strings.TrimSuffix(text.String(), ",") + `}}}`
	if _, err := policy.ParseJSON([]byte(many)); err == nil || err.Error() != "client.methods: 1001 names (limit 1000)" {
		t.Errorf("too many methods: %v", err)
	}
	text.Reset()
	text.WriteString(`{`)
	for i := range limits.PolicyErrors + 7 {
		fmt.Fprintf(&text, `"unknown%d":0,`, i)
	}
	_, err := policy.ParseJSON([]byte(strings.TrimSuffix(text.String(), ",") + `}`))
	if lines := strings.Split(err.Error(), "\n"); len(lines) != limits.PolicyErrors+1 || lines[limits.PolicyErrors] != "document: 7 more problems (100 are listed)" {
		t.Errorf("%d problems are listed, the last one is %q", len(lines), lines[len(lines)-1])
	}
}

// TestParseJSON_TakesWhatHasAnEffect beside what is refused because it has none.
func TestParseJSON_TakesWhatHasAnEffect(t *testing.T) {
	for _, text := range []string{
		`{"client":{"breaker":{"min_calls":5},"methods":{"A.b":{"breaker":{"failure_percent":50}}}}}`,
		`{"client":{"methods":{"A":{"breaker":{"min_calls":5}},"A.b":{"breaker":{"failure_percent":50}}}}}`,
		`{"client":{"methods":{"A":{"breaker":{"failure_percent":50}},"A.b":{"breaker":{"min_calls":5}}}}}`,
		`{"client":{"breaker":{"failure_percent":50},"methods":{"A.b":{"breaker":{"min_calls":5}}}}}`,
		`{"client":{"breaker":{"failure_percent":-1,"min_calls":5},"target_breaker":{"failure_percent":-1,"min_calls":5}}}`,
		`{"client":{"methods":{"A":{"retry":{"idempotent":true}},"A.b":{"hedge":{"after":"50ms"}}}}}`,
		`{"client":{"methods":{"shop.v1.A":{"retry":{"idempotent":true}},"shop.v1.A/b":{"hedge":{"after":"50ms"}}}}}`,
		`{"client":{"methods":{"shop.v1":{"retry":{"idempotent":true}},"shop.v1.A":{"retry":{"idempotent":true},"hedge":{"after":"50ms"}}}}}`,
		`{"client":{"retry":{"idempotent":true},"methods":{"shop.v1":{},"shop.v1.A":{"hedge":{"after":"50ms"}}}}}`,
	} {
		if _, err := policy.ParseJSON([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Parsers of YAML have numbers of other types than that of JSON.
func TestDecode_TakesWhatParsersReturn(t *testing.T) {
	for _, number := range []any{3, int64(3), uint64(3), 3.0, json.Number("3")} {
		got, err := policy.Decode(map[string]any{"client": map[string]any{"retry": map[string]any{"attempts": number}}})
		if err != nil || got.Client.Retry.Attempts != 3 {
			t.Errorf("%T(%v) is read as %d, %v", number, number, got.Client.Retry.Attempts, err)
		}
	}
	for _, tree := range []any{nil, map[any]any{}, []any{}, "client"} {
		if _, err := policy.Decode(tree); err == nil {
			t.Errorf("%T was accepted as a document", tree)
		}
	}
}

func TestDocument_ValidatesWhatCodeHasMade(t *testing.T) {
	document := policy.Document{Client: policy.Client{Method: policy.Method{Retry: policy.Retry{Codes: 1 << 31}}}}
	if err := document.Validate(); err == nil || err.Error() != "client.retry.codes: code_31: there are no such codes" {
		t.Errorf("a code that does not exist: %v", err)
	}
	if err := (policy.Document{}).Validate(); err != nil {
		t.Errorf("the zero value: %v", err)
	}
}

func TestClient_MergesFieldByField(t *testing.T) {
	client := policy.Client{
		Method: policy.Method{Timeout: time.Second, Retry: policy.Retry{Attempts: 2, BackoffMin: time.Millisecond}},
		Methods: map[string]policy.Method{
			"Orders":        {Timeout: 2 * time.Second, Retry: policy.Retry{Idempotent: true}},
			"Orders.place":  {Retry: policy.Retry{Attempts: 5}},
			"shop.v1.A":     {Timeout: 3 * time.Second},
			"shop.v1.A/Get": {Timeout: 4 * time.Second},
		},
	}
	tests := []struct {
		service, method string
		want            policy.Method
	}{
		{"Other", "place", client.Method},
		{"Orders", "list", policy.Method{Timeout: 2 * time.Second, Retry: policy.Retry{Attempts: 2, BackoffMin: time.Millisecond, Idempotent: true}}},
		{"Orders", "place", policy.Method{Timeout: 2 * time.Second, Retry: policy.Retry{Attempts: 5, BackoffMin: time.Millisecond, Idempotent: true}}},
		{"shop.v1.A", "List", policy.Method{Timeout: 3 * time.Second, Retry: policy.Retry{Attempts: 2, BackoffMin: time.Millisecond}}},
		{"shop.v1.A", "Get", policy.Method{Timeout: 4 * time.Second, Retry: policy.Retry{Attempts: 2, BackoffMin: time.Millisecond}}},
	}
	for _, test := range tests {
		if got := client.For(test.service, test.method); got != test.want {
			t.Errorf("%s.%s has %+v, want %+v", test.service, test.method, got, test.want)
		}
	}
	server := policy.Server{Methods: map[string]policy.Limit{"Orders": {Running: 1}, "Orders.place": {PerSecond: 2}}}
	if ofService, ofMethod := server.For("Orders", "place"); ofService != (policy.Limit{Running: 1}) || ofMethod != (policy.Limit{PerSecond: 2}) {
		t.Errorf("limits are %+v and %+v", ofService, ofMethod)
	}
}

func TestCodes_HaveNames(t *testing.T) {
	set := policy.CodesOf(14, 4, 1)
	text, err := set.MarshalText()
	if err != nil || string(text) != "canceled, deadline_exceeded, unavailable" {
		t.Errorf("printed as %q, %v", text, err)
	}
	var again policy.Codes
	if err := again.UnmarshalText(text); err != nil || again != set {
		t.Errorf("read as %v, %v", again, err)
	}
	if err := again.UnmarshalText([]byte("unavailable, deadline exceeded,x")); err == nil || err.Error() != "\"deadline exceeded\" is no code (is \"deadline_exceeded\" meant?)\n\"x\" is no code" {
		t.Errorf("names that are none: %v", err)
	}
	if err := again.UnmarshalText([]byte("nonsense")); err == nil || again != set {
		t.Errorf("nonsense changed it to %v, %v", again, err)
	}
}
