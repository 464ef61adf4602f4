package yamlpolicy_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/contrib/yamlpolicy"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/policy"
)

func TestMain(m *testing.M) { testkit.Main(m) }

const good = `
# What holds for everybody.
client:
  timeout: 300ms
  retry: {attempts: 2}
  retry_budget: {percent: 20}
  breaker: {failure_percent: 50, min_calls: 100, codes: [unavailable, internal]}
  balancing: {method: round_robin}
  methods:
    Orders.place: {timeout: 1s, retry: {attempts: -1}}
server:
  limit: {per_second: 1000}
`

func TestParse_ReadsWhatJSONSays(t *testing.T) {
	got, err := yamlpolicy.Parse([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	want, err := policy.ParseJSON([]byte(`{"client": {"timeout": "300ms", "retry": {"attempts": 2}, "retry_budget": {"percent": 20},
		"breaker": {"failure_percent": 50, "min_calls": 100, "codes": ["unavailable", "internal"]}, "balancing": {"method": "round_robin"},
		"methods": {"Orders.place": {"timeout": "1s", "retry": {"attempts": -1}}}}, "server": {"limit": {"per_second": 1000}}}`))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant\n%+v, %v", got, want, err)
	}
	if empty, err := yamlpolicy.Parse(nil); err != nil || !reflect.DeepEqual(empty, policy.Document{}) {
		t.Errorf("nothing at all: %+v, %v", empty, err)
	}
}

func TestParse_SaysWhatIsWrong(t *testing.T) {
	for text, parts := range map[string][]string{
		"client: {retry: {attempts: many, colour: 1}, timeout: 5}": {"client.retry.attempts", "colour", "client.timeout"},
		"client: {retry: {attempts: 1}}\nclient: {}":               {"already defined"},
		"client: [":                                 {"document: yaml"},
		"- client":                                  {"document: "},
		"client: {}\n---\nclient: {}":               {"more than one"},
		strings.Repeat("#", 1+1<<20):                {"document: 1048577 bytes (limit 1048576)"},
		"1: {}":                                     {"document"},
		"client: {methods: {1: {timeout: 1s}}}":     {"client.methods"},
		"client: &a {methods: {A.b: {x: *a}}}":      {"document"},
		"client: {timeout: !!binary aGVsbG8=}":      {"client.timeout"},
		"client: {retry: {attempts: .inf}}":         {"client.retry.attempts"},
		"client: {retry: {attempts: .nan}}":         {"client.retry.attempts: NaN (want a whole number)"},
		"client: {retry: {attempts: 0x7fffffffff}}": {"client.retry.attempts"},
	} {
		_, err := yamlpolicy.Parse([]byte(text))
		for _, part := range parts {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%.60q: %v; want what has %q", text, err, part)
			}
		}
	}
}

// FuzzParse: any text is a document that prints and is read again alike, or an error.
func FuzzParse(f *testing.F) {
	for _, text := range []string{good, "", "client: {retry: {attempts: x}}", "a: &a [*a]", "client: {timeout: 1e3}"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		document, err := yamlpolicy.Parse(text)
		if err != nil {
			return
		}
		printed, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		again, err := yamlpolicy.Parse(printed) // JSON is YAML
		if err != nil || !reflect.DeepEqual(again, document) {
			t.Errorf("%s is read as %+v, %v; want %+v", printed, again, err, document)
		}
	})
}
