package yamlpolicy_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// TestFile_IsReadAgain runs in virtual time; the file is a real one.
func TestFile_IsReadAgain(t *testing.T) {
	name := filepath.Join(t.TempDir(), "policy.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	source := yamlpolicy.File(name)
	ignore := func([]byte, string) {}
	if err := source(t.Context(), ignore); err == nil || !strings.Contains(err.Error(), "policy file "+name) {
		t.Errorf("without a file: %v", err)
	}
	write("client: [")
	if err := source(t.Context(), ignore); err == nil || !strings.Contains(err.Error(), "yaml") {
		t.Errorf("with what is no YAML: %v", err)
	}
	for _, nothing := range []string{"", "# nothing yet"} {
		write(nothing)
		if err := source(t.Context(), ignore); err == nil || !strings.Contains(err.Error(), "it is empty") {
			t.Errorf("with %q: %v", nothing, err)
		}
	}
	write("client: {timeout: 1s}")
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var delivered []string
		ended := make(chan error)
		go func() {
			ended <- source(ctx, func(document []byte, _ string) { delivered = append(delivered, string(document)) })
		}()
		time.Sleep(3*yamlpolicy.FileInterval + yamlpolicy.FileInterval/2) // between two looks
		write("client: {timeout: 9")                                      // somebody who writes slowly
		time.Sleep(yamlpolicy.FileInterval)
		write("client: {timeout: 2s}")
		time.Sleep(3 * yamlpolicy.FileInterval)
		stop()
		if err := <-ended; err != context.Canceled {
			t.Error(err)
		}
		want := []string{`{"client":{"timeout":"1s"}}`, `{"client":{"timeout":"2s"}}`}
		if !reflect.DeepEqual(delivered, want) {
			t.Errorf("%q, want %q", delivered, want)
		}
	})
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
