package testkit_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

// recorder is a testing.TB that keeps failures to itself.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Helper()      {}
func (r *recorder) Name() string { return "TestOrders/two items" }

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

// golden returns how Golden fails with the flag -update set to update, whatever
// it is set to for this run.
func golden(t *testing.T, update bool, path, got string) string {
	t.Helper()
	option := flag.Lookup("update")
	if option == nil {
		t.Fatal("Main did not register the flag -update")
	}
	before := option.Value.String()
	set := func(value string) {
		if err := option.Value.Set(value); err != nil {
			t.Fatal(err)
		}
	}
	set(strconv.FormatBool(update))
	defer set(before)
	r := recorder{TB: t}
	testkit.Golden(&r, path, []byte(got))
	return strings.Join(r.failures, "\n")
}

const fixCommand = "go test github.com/fulmar-rpc/fulmar/internal/testkit -run '^TestOrders$/^two items$' -update"

func TestGolden_ShowsTheDifferenceAndTheCommand(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file.txt")
	numbered := func(from, to int) (s string) {
		for i := from; i <= to; i++ {
			s += fmt.Sprintf("line %d\n", i)
		}
		return s
	}
	want := numbered(1, 20)
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, got, difference string }{
		{"equal", want, ""},
		{
			"changed and removed", numbered(1, 4) + "other\n" + numbered(6, 14) + numbered(16, 20),
			"@@ line 3\n  line 3\n  line 4\n- line 5\n+ other\n  line 6\n  line 7\n" +
				"@@ line 13\n  line 13\n  line 14\n- line 15\n  line 16\n  line 17\n",
		},
		{"added at the start", "new\n" + want, "@@ line 1\n+ new\n  line 1\n  line 2\n"},
		{"added at the end", want + "new\n", "@@ line 19\n  line 19\n  line 20\n+ new\n"},
		{"no line end", strings.TrimSuffix(want, "\n"), "@@ line 18\n  line 18\n  line 19\n- line 20\n+ \"line 20\" without a line end\n"},
		{"control characters", want + "\x00\x1b\n", "@@ line 19\n  line 19\n  line 20\n+ \"\\x00\\x1b\"\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := golden(t, false, path, test.got)
			if test.difference == "" {
				if got != "" {
					t.Errorf("failed: %s", got)
				}
				return
			}
			_, after, _ := strings.Cut(got, "\n")
			difference, command, _ := strings.Cut(after, "To accept: ")
			if difference != test.difference {
				t.Errorf("difference\n%swant\n%s", difference, test.difference)
			}
			if command != fixCommand {
				t.Errorf("command %q, want %q", command, fixCommand)
			}
		})
	}
}

func TestGolden_BoundsWhatItShows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large.txt")
	var old, changed strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&old, "old %d\n", i)
		fmt.Fprintf(&changed, "new %d\n", i)
	}
	if err := os.WriteFile(path, []byte(old.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	got := golden(t, false, path, changed.String())
	if lines := strings.Count(got, "\n"); lines > 210 || !strings.Contains(got, "... and more") {
		t.Errorf("%d lines shown", lines)
	}
}

func TestGolden_TellsHowToWriteAMissingFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "file.txt")
	if got := golden(t, false, path, "x"); !strings.Contains(got, "does not exist") || !strings.Contains(got, fixCommand) {
		t.Errorf("failure %q", got)
	}
}

func TestGolden_UpdateWritesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "file.txt")
	if got := golden(t, true, path, "new content\n"); got != "" {
		t.Errorf("update failed: %s", got)
	}
	if got := golden(t, false, path, "new content\n"); got != "" {
		t.Errorf("after the update: %s", got)
	}
}
