//go:build linux

package harness

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree is a folder that looks like the root of a tree of this repository.
func tree(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "bench"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "bench", "go.mod"), []byte("module example\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	return root
}

// A build meets an earlier one of itself, under a name of its own, and no peer.
func TestSuite_BeforeMeetsItself(t *testing.T) {
	suite, options := fakeSuite(t, "good", "good"+beforeMark, "slow")
	suite.AlsoAs = map[string]string{"good": "best"}
	suite.Programs = slices.Delete(suite.Programs, 1, 2)
	pairs := append(Against("good", "slow", "crash"), Against("gone", "slow")...)
	suite.Cases = []Case{{Name: "a", Pairs: pairs, Quick: Against("good", "slow")}}
	before, err := suite.Before(tree(t))
	if err != nil {
		t.Fatal(err)
	}
	if quick := before.Cases[0].Quick; !slices.Equal(quick, Against("good", "good@before")) {
		t.Errorf("a quick run compares %v", quick)
	}
	if pair := suite.Cases[0].Pairs[0]; pair.Peer != "slow" {
		t.Errorf("the suite itself has become one that compares %v", pair)
	}
	results, err := Run(t.Context(), before, options)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(results.Lines, "\n")
	for _, want := range []string{
		"RATIO fakes/a calls_per_s good/good@before 2.000",
		"VALUE fakes/a calls_per_s good 100",
		"VALUE fakes/a calls_per_s good@before 50",
	} {
		if !slices.Contains(results.Lines, want) {
			t.Errorf("no line %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "slow") || strings.Contains(text, "best") || strings.Contains(text, "gone") {
		t.Errorf("figures of others:\n%s", text)
	}
	if err := results.validate(); err != nil {
		t.Error(err)
	}
}

func TestSuite_BeforeNeedsATree(t *testing.T) {
	empty := t.TempDir()
	if _, err := (Suite{}).Before(empty); err == nil || !strings.Contains(err.Error(), empty+" is not the root of a tree of this repository") {
		t.Errorf("%v, want an error that names the folder", err)
	}
}

// Programs are built from the tree that they belong to, and do not take each other's place.
func TestBuild_TakesTheTreeOfAProgram(t *testing.T) {
	const source = "#include <stdio.h>\nint main(void) { puts(\"%\"); return 0; }\n"
	now, suite := inC(t, strings.Replace(source, "%", "now", 1))
	earlier, _ := inC(t, strings.Replace(source, "%", "before", 1))
	suite.Programs, suite.Client = []Program{suite.Client, suite.Client}, Program{}
	suite.Programs[1].Root = earlier
	folder := filepath.Join(now, "bin")
	var log syncBuffer
	if err := Build(t.Context(), now, suite, folder, &log); err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	for name, want := range map[string]string{"net-client": "now\n", "net-client@before": "before\n"} {
		if output := printed(t, filepath.Join(folder, name)); output != want {
			t.Errorf("%s printed %q, want %q", name, output, want)
		}
	}
}
