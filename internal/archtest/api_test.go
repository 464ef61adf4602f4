package archtest

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// TestAPI_PrintsWhatUsersSee has everything that must and must not appear.
func TestAPI_PrintsWhatUsersSee(t *testing.T) {
	source := sources{
		"thrift/a.go": `// Package thrift is documented.
package thrift

// Max is documented.
const Max = 4

const hidden = 5

var ErrMore = errors.New("more")

// T is documented.
type T struct {
	// Name is documented.
	Name string
	secret int
}

func NewT() *T { return nil }

func (t *T) Get() int { return 1 }

func (t *T) get() int { return 1 }

func F(name string, options ...int) error { return nil }
`,
		"thrift/a_windows.go": "package thrift\nfunc OnWindows() {}",
		"thrift/a_test.go":    "package thrift\nfunc InTest() {}",
	}
	want := `package thrift // import "github.com/fulmar-rpc/fulmar/thrift"

const Max = 4

var ErrMore = errors.New("more")

func F(name string, options ...int) error

type T struct {
	Name string
	// contains filtered or unexported fields
}

func NewT() *T

func (t *T) Get() int
`
	got, exported := mustPrintAPI(t, source.tree())
	if got != want {
		t.Errorf("printed %s", firstDifference(want, got))
	}
	if exported != 3 {
		t.Errorf("%d exported types and functions, want 3", exported)
	}
}

// TestAPI_ChangesAreSeen breaks the golden comparison on purpose.
func TestAPI_ChangesAreSeen(t *testing.T) {
	before, _ := mustPrintAPI(t, sources{"thrift/a.go": "package thrift\nfunc F() {}"}.tree())
	after, _ := mustPrintAPI(t, sources{"thrift/a.go": "package thrift\nfunc F(n int) {}"}.tree())
	if difference := firstDifference(before, after); !strings.Contains(difference, "func F(n int)") {
		t.Errorf("difference %q does not show the change", difference)
	}
	stale, err := staleAPIFiles(fstest.MapFS{"testdata/api/gone.txt": {}, "testdata/api/thrift.txt": {}}, []string{"thrift"})
	if err != nil || fmt.Sprint(stale) != "[testdata/api/gone.txt]" {
		t.Errorf("stale golden files %v, %v", stale, err)
	}
}

func mustPrintAPI(t *testing.T, fsys fstest.MapFS) (text string, exported int) {
	t.Helper()
	text, exported, err := printAPI(mustLoad(t, fsys), "thrift")
	if err != nil {
		t.Fatal(err)
	}
	return text, exported
}

// firstDifference returns the first line that differs, or "".
func firstDifference(want, got string) string {
	wantLines, gotLines := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(wantLines), len(gotLines)) {
		line := func(lines []string) string {
			if i < len(lines) {
				return fmt.Sprintf("%q", lines[i])
			}
			return "nothing"
		}
		if line(wantLines) != line(gotLines) {
			return fmt.Sprintf("line %d is %s, want %s", i+1, line(gotLines), line(wantLines))
		}
	}
	return ""
}
