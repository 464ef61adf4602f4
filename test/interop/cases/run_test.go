package cases_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/test/interop/cases"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// A runner that notices nothing would pass every test of this module, so here
// each kind of difference is made on purpose.

var (
	errApplication = errors.New("an application exception of type 6")
	errBusiness    = errors.New("a business error")
	errHungUp      = errors.New("the peer hung up")
)

type notFound struct {
	What string `json:"what"`
}

func (*notFound) Error() string { return "not found" }

// scripted is a library whose methods do what their names say.
type scripted struct {
	backward map[string]string
	repeated int32
	met      sync.WaitGroup
}

// meet returns when it was called twice at the same time.
func (s *scripted) meet(context.Context) error {
	s.met.Done()
	s.met.Wait()
	return nil
}

func (s *scripted) Method(name string) (cases.Method, error) {
	call, known := map[string]any{
		"flip":     func(_ context.Context, value int32) (int32, error) { return ^value, nil },
		"void":     func(context.Context) error { return nil },
		"count":    func(context.Context) (int32, error) { s.repeated++; return s.repeated, nil },
		"meet":     s.meet,
		"throw":    func(context.Context) error { return &notFound{"it"} },
		"fail":     func(context.Context) error { return errApplication },
		"business": func(context.Context) error { return errBusiness },
		"hangUp":   func(context.Context) error { return errHungUp },
	}[name]
	if !known {
		return cases.Method{}, errors.New("no such method")
	}
	method := cases.Method{Call: reflect.ValueOf(call)}
	if name == "flip" {
		method.Arguments = []string{"value"}
	}
	return method, nil
}

func (s *scripted) Call(persistent, transient map[string]string) cases.Call {
	s.backward = map[string]string{"persistent": persistent["key"], "transient": transient["key"]}
	return cases.Call{Context: context.Background(), Backward: func() map[string]string { return s.backward }}
}

func (s *scripted) Explain(err error) cases.Failure {
	switch {
	case errors.Is(err, errApplication):
		return cases.Failure{Exception: 6}
	case errors.Is(err, errBusiness):
		return cases.Failure{Business: &cases.Business{Code: 409, Message: "there", Extra: map[string]string{"a": "b"}}}
	case errors.Is(err, errHungUp):
		return cases.Failure{Closed: true}
	}
	return cases.Failure{Declared: reflect.ValueOf(err)}
}

// run runs the cases of a file with that content and returns what is wrong with
// each.
func run(t *testing.T, content string) map[string]error {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cases.json")
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	file, err := cases.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	outcomes := map[string]error{}
	for _, c := range file.Cases {
		library := &scripted{}
		library.met.Add(2)
		outcomes[c.Name] = (&cases.Runner{Library: library, Server: "moody"}).Run(c)
	}
	return outcomes
}

func TestRunner_AcceptsWhatIsExpected(t *testing.T) {
	outcomes := run(t, `{"cases": [
		{"name": "result", "method": "flip", "arguments": {"value": 5}, "result": -6},
		{"name": "void", "method": "void"},
		{"name": "steps", "steps": [{"method": "void"}, {"method": "flip", "arguments": {"value": 0}, "result": -1}]},
		{"name": "eventually", "method": "count", "result": 3, "eventually": true},
		{"name": "throws", "method": "throw", "throws": {"notFound": {"what": "it"}}},
		{"name": "fails", "method": "fail", "fails": 6},
		{"name": "business", "method": "business", "business": {"code": 409, "message": "there", "extra": {"a": "b"}}},
		{"name": "metadata", "method": "void", "persistent": {"key": "p"}, "transient": {"key": "t"}, "backward": {"persistent": "p", "transient": "t"}},
		{"name": "background", "steps": [{"method": "meet", "background": true}, {"method": "meet"}]},
		{"name": "closes", "method": "hangUp", "closes": ["moody"], "fails": 6},
		{"name": "closes later", "method": "void", "closes": ["moody"]}
	]}`)
	if len(outcomes) != 11 {
		t.Errorf("%d cases ran", len(outcomes))
	}
	for name, err := range outcomes {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRunner_NoticesEveryDifference(t *testing.T) {
	outcomes := run(t, `{"cases": [
		{"name": "another result", "method": "flip", "arguments": {"value": 5}, "result": 6},
		{"name": "a later step", "steps": [{"method": "void"}, {"method": "flip", "arguments": {"value": 0}, "result": 1}]},
		{"name": "a step in the background", "steps": [{"method": "fail", "background": true}, {"method": "void"}]},
		{"name": "no such method", "method": "nothing"},
		{"name": "an argument of another type", "method": "flip", "arguments": {"value": "five"}, "result": 6},
		{"name": "an exception instead of a result", "method": "throw", "result": 1},
		{"name": "a result instead of an exception", "method": "void", "throws": {"notFound": {"what": "it"}}},
		{"name": "another exception", "method": "throw", "throws": {"rejected": {}}},
		{"name": "an exception with other members", "method": "throw", "throws": {"notFound": {"what": "that"}}},
		{"name": "a result instead of a failure", "method": "void", "fails": 6},
		{"name": "another failure", "method": "fail", "fails": 7},
		{"name": "a result instead of a business error", "method": "void", "business": {"code": 409, "message": "there", "extra": {"a": "b"}}},
		{"name": "another code", "method": "business", "business": {"code": 404, "message": "there", "extra": {"a": "b"}}},
		{"name": "another extra", "method": "business", "business": {"code": 409, "message": "there", "extra": {"a": "c"}}},
		{"name": "other metadata", "method": "void", "persistent": {"key": "p"}, "backward": {"persistent": "q"}},
		{"name": "answered instead of closed", "method": "void", "closes": ["moody"], "fails": 6},
		{"name": "closed by a server that should not", "method": "hangUp", "closes": ["another"]}
	]}`)
	if len(outcomes) != 17 {
		t.Errorf("%d cases ran", len(outcomes))
	}
	for name, err := range outcomes {
		if err == nil {
			t.Errorf("%s: not noticed", name)
		}
	}
	if err := outcomes["a later step"]; err != nil && !strings.Contains(err.Error(), "step 2") {
		t.Errorf("the error does not say which step it was: %v", err)
	}
}

func TestLoad_RefusesWhatItDoesNotKnow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cases.json")
	if err := os.WriteFile(path, []byte(`{"cases": [{"name": "a", "expects": 1}]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := cases.Load(path); err == nil {
		t.Error("a member that nobody reads is accepted")
	}
	if _, err := cases.Load(path + ".missing"); err == nil {
		t.Error("a file that is not there is accepted")
	}
}
