package calls_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/interop/gen/everything"
	"github.com/fulmar-rpc/fulmar/test/interop/gen/everythingapache"
	"github.com/fulmar-rpc/fulmar/test/interop/notation"
	"github.com/fulmar-rpc/fulmar/test/interop/peer"
)

// caseFile is cases.json; python/peers/cases.py describes it.
type caseFile struct {
	Cases []testCase `json:"cases"`
	Raw   []rawCase  `json:"raw"`
}

type testCase struct {
	step
	Name    string   `json:"name"`
	Without []string `json:"without"`
	Steps   []step   `json:"steps"`
}

// all returns the steps of the case, which may be one only.
func (c testCase) all() []step {
	if len(c.Steps) > 0 {
		return c.Steps
	}
	return []step{c.step}
}

type step struct {
	Method     string         `json:"method"`
	Arguments  map[string]any `json:"arguments"`
	Result     any            `json:"result"`
	Throws     map[string]any `json:"throws"`
	Fails      int32          `json:"fails"`
	Closes     []string       `json:"closes"`
	Eventually bool           `json:"eventually"`
}

type rawCase struct {
	Name    string   `json:"name"`
	Without []string `json:"without"`
	Raw     struct {
		Method string `json:"method"`
		Type   *byte  `json:"type"`
		SeqID  *int32 `json:"seqid"`
		Body   any    `json:"body"`
	} `json:"raw"`
	Body      string `json:"body"`
	Exception int32  `json:"exception"`
	Nothing   bool   `json:"nothing"`
}

// requestBody returns the body of the request in hex: it is a string, or a list
// of pairs of a string and how often it occurs.
func (c rawCase) requestBody() string {
	pairs, ok := c.Raw.Body.([]any)
	if !ok {
		return c.Raw.Body.(string)
	}
	var body strings.Builder
	for _, pair := range pairs {
		part := notation.Expand(map[string]any{"$repeat": pair}, "")
		body.WriteString(part.(string))
	}
	return body.String()
}

func loadCases(t *testing.T) caseFile {
	t.Helper()
	file, err := os.Open(filepath.Join(peer.Folder(), "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	decoder := json.NewDecoder(file)
	decoder.UseNumber()
	decoder.DisallowUnknownFields()
	var cases caseFile
	if err := decoder.Decode(&cases); err != nil {
		t.Fatalf("cases.json: %v", err)
	}
	return cases
}

// takesPart reports whether a case is meant for the peer.
func takesPart(without []string, name string) bool { return !slices.Contains(without, name) }

// types returns what notation has to know about the generated types.
func types() notation.Types {
	return notation.Types{Defaults: map[reflect.Type]func() any{
		reflect.TypeFor[everything.Defaults](): func() any { return everything.NewDefaults() },
	}}
}

// methods returns the descriptions of all methods by the name of the IDL.
func methods() map[string]*fulmar.MethodDesc {
	found := map[string]*fulmar.MethodDesc{}
	for _, desc := range []*fulmar.ServiceDesc{everything.EverythingServiceDesc, everythingapache.ApacheServiceDesc} {
		for _, method := range desc.Methods {
			found[method.Name] = method
		}
	}
	return found
}

// generatedName returns the method of a generated interface that has the name
// of the IDL apart from its capitals.
func generatedName(of reflect.Type, name string) (string, bool) {
	for i := range of.NumMethod() {
		if found := of.Method(i).Name; strings.EqualFold(found, name) {
			return found, true
		}
	}
	return "", false
}
