package testkit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

// failures keeps what a test says when it fails.
type failures struct {
	testing.TB
	text string
}

func (f *failures) Helper() {}

func (f *failures) Fatalf(format string, arguments ...any) {
	if f.text == "" {
		f.text = fmt.Sprintf(format, arguments...)
	}
}

func TestApart_FindsWhatIsShared(t *testing.T) {
	type node struct {
		Labels  []string
		Numbers map[int]int
		Next    *node
		Blob    []byte
		text    string
	}
	labels, blob, counts, inner := []string{"a", "b"}, []byte("text"), map[int]int{1: 2}, &node{}
	for name, test := range map[string]struct {
		value any
		want  string
	}{
		"nothing":          {&node{Labels: labels, Next: &node{Labels: []string{"a"}, text: "a"}, Blob: blob, text: "a"}, ""},
		"behind the end":   {&node{Labels: labels[:1:2], Next: &node{Labels: labels[1:]}}, "*testkit_test.node: it.Labels and it.Next.Labels share memory"},
		"a map":            {&node{Numbers: counts, Next: &node{Numbers: counts}}, "it.Numbers and it.Next.Numbers"},
		"a pointer":        {[]*node{inner, inner}, "it[0] and it[1]"},
		"a part of others": {&node{Blob: blob[1:2]}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			found := &failures{TB: t}
			testkit.Apart(found, test.value)
			if (found.text == "") != (test.want == "") || !strings.Contains(found.text, test.want) {
				t.Errorf("%q, want %q", found.text, test.want)
			}
		})
	}
	found := &failures{TB: t}
	testkit.Apart(found, &node{Blob: blob[1:2]}, blob)
	if !strings.Contains(found.text, "memory of others") {
		t.Errorf("%q", found.text)
	}
}
