package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// events is what `go test -json` prints about a package that fails, one
// that does not build and one that hangs, shortened.
const events = `
{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"all well\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestB/case","Output":"broken here\n"}
{"Action":"fail","Package":"p","Test":"TestB/case"}
{"Action":"fail","Package":"p","Test":"TestB"}
{"Action":"output","Package":"p","Test":"TestC","Output":"=== RUN   TestC\n"}
{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:7: needs a network: none here\n"}
{"Action":"output","Package":"p","Test":"TestC","Output":"--- SKIP: TestC (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestC"}
{"Action":"fail","Package":"p"}
{"ImportPath":"q","Action":"build-output","Output":"q.go:1: undefined\n"}
{"Action":"fail","Package":"q"}
{"Action":"output","Package":"r","Test":"TestHangs","Output":"panic: test timed out\n"}
{"Action":"fail","Package":"r"}
not json
`

func TestTally_CountsTestsAndPackagesThatFail(t *testing.T) {
	tests := newTally()
	var log strings.Builder
	n, err := tests.read(strings.NewReader(events), &log)
	if n != 4 || err != nil {
		t.Errorf("read %d tests, %v; want 4", n, err)
	}
	if passed, failed, skipped := tests.count(); passed != 1 || failed != 4 || skipped != 1 {
		t.Errorf("%d passed, %d failed, %d skipped; want 1, 4, 1", passed, failed, skipped)
	}
	for _, want := range []string{"broken here", "q.go:1: undefined", "test timed out", "not json"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q", want)
		}
	}
	if got, want := fmt.Sprint(tests.skips()), "[p TestC: needs a network: none here]"; got != want {
		t.Errorf("skipped: %s, want %s", got, want)
	}
	if strings.Contains(log.String(), "all well") {
		t.Error("the log has the output of a test that passed")
	}
}

// TestTally_RunsOfOneTestCountOnce: plain, with -race, with invariants.
func TestTally_RunsOfOneTestCountOnce(t *testing.T) {
	tests := newTally()
	for _, result := range []string{"skip", "pass", "pass"} {
		tests.add("p TestA", result)
	}
	for _, result := range []string{"pass", "fail", "pass"} {
		tests.add("p TestB", result)
	}
	if passed, failed, skipped := tests.count(); passed != 1 || failed != 1 || skipped != 0 {
		t.Errorf("%d passed, %d failed, %d skipped; want 1, 1, 0", passed, failed, skipped)
	}
}

// runSteps runs steps as a suite in an empty tree and returns what was printed.
func runSteps(t *testing.T, tests *tally, steps ...step) (string, error) {
	t.Helper()
	var out strings.Builder
	v := &verifier{root: t.TempDir(), tally: tests, out: &out}
	for _, s := range steps {
		v.step(context.Background(), s)
	}
	err := v.summary("test")
	return out.String(), err
}

func outcome(name, text string, err error) step {
	return step{name, func(_ context.Context, _ *verifier, log *log) error {
		fmt.Fprintln(log, text)
		return err
	}}
}

func TestSummary_SaysWhatHappened(t *testing.T) {
	passing := newTally()
	passing.add("p TestA", "pass")

	printed, err := runSteps(t, passing, outcome("good", "noise", nil))
	if err != nil || !strings.HasSuffix(printed, "\n1 passed, 0 failed\n") || strings.Contains(printed, "noise") {
		t.Errorf("a good run: %v\n%s", err, printed)
	}
	printed, err = runSteps(t, passing, outcome("good", "", nil), outcome("bad", "reason", errors.New("exit status 1")))
	if err == nil || !strings.HasSuffix(printed, "\n1 passed, 1 failed\n") {
		t.Errorf("a step that fails without a test: %v\n%s", err, printed)
	}
	if !strings.Contains(printed, "FAIL bad") || !strings.Contains(printed, "reason") {
		t.Errorf("the log of the failed step is missing:\n%s", printed)
	}
	printed, err = runSteps(t, passing, outcome("absent", "", fmt.Errorf("bench: %w", errAbsent)))
	if err != nil || !strings.Contains(printed, "none absent") {
		t.Errorf("a step with nothing to do: %v\n%s", err, printed)
	}
	passing.add("p TestB", "skip")
	passing.add("p TestC", "skip")
	passing.because("p TestC", "    c_test.go:7: elsewhere\n        only\n")
	passing.add("p TestA", "skip") // in one of its runs
	printed, err = runSteps(t, passing, outcome("good", "", nil))
	if want := "\nskipped: p TestB: no reason given\nskipped: p TestC: elsewhere only\n1 passed, 0 failed, 2 skipped\n"; err != nil || !strings.HasSuffix(printed, want) {
		t.Errorf("tests that were skipped: %v\n%s\nwant%s", err, printed, want)
	}
	if printed, err = runSteps(t, newTally()); err == nil {
		t.Errorf("a suite that ran no test succeeds:\n%s", printed)
	}
}

// TestStage_RunsStepsBesideEachOther: each of two steps waits for the other one, and what
// one of them prints stays together.
func TestStage_RunsStepsBesideEachOther(t *testing.T) {
	first, second := make(chan struct{}), make(chan struct{})
	meets := func(name string, mine chan<- struct{}, other <-chan struct{}) step {
		return step{name, func(ctx context.Context, _ *verifier, _ *log) error {
			close(mine)
			select {
			case <-other:
				return errors.New("no " + name)
			case <-ctx.Done():
				return ctx.Err()
			}
		}}
	}
	var out strings.Builder
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	v := &verifier{root: t.TempDir(), tally: newTally(), out: &out, only: "wanted"}
	v.stage(ctx, stage{meets("wanted 1", first, second), outcome("other", "", errors.New("it ran")), meets("wanted 2", second, first)})
	slices.Sort(v.failed)
	if got := fmt.Sprint(v.failed); got != "[wanted 1 wanted 2]" {
		t.Errorf("failed: %s\n%s", got, out.String())
	}
	for _, name := range []string{"wanted 1", "wanted 2"} {
		if want := fmt.Sprintf("--- %s: no %s (whole log: ", name, name); !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing:\n%s", want, out.String())
		}
	}
	cancel()
	v.stage(ctx, stage{outcome("wanted 3", "", errors.New("it ran"))})
	if len(v.failed) != 2 {
		t.Errorf("after the end of the run: %v", v.failed)
	}
}

// writeTree returns a folder with these files.
func writeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestSteps_FindModulesAndFuzzTargets(t *testing.T) {
	root := writeTree(t, map[string]string{
		"go.mod":                 "module m\n",
		"a/a_test.go":            "package a\n\nfunc FuzzA(f *testing.F) {}\n",
		"a/b/b_test.go":          "package b\n\nfunc TestB(t *testing.T) {}\n",
		"nested/go.mod":          "module n\n",
		"nested/c/c_test.go":     "package c\n\nfunc FuzzC(f *testing.F) {}\n",
		".cache/x/go.mod":        "module x\n",
		"a/testdata/y/go.mod":    "module y\n",
		"a/testdata/y/y_test.go": "package y\n\nfunc FuzzY(f *testing.F) {}\n",
		"d/unformatted.go":       "package  d\n",
	})
	modules, err := findModules(root)
	if err != nil || fmt.Sprint(modules) != "[. nested]" {
		t.Fatalf("modules %v, %v", modules, err)
	}
	for module, want := range map[string]string{".": "a", "nested": filepath.Join("nested", "c")} {
		folders, err := fuzzFolders(root, module, modules, regexp.MustCompile(""))
		if err != nil || len(folders) != 1 || folders[0] != filepath.Join(root, want) {
			t.Errorf("fuzz targets of %s in %v, %v; want %s", module, folders, err, want)
		}
	}
	var out strings.Builder
	v := &verifier{root: root, tally: newTally(), out: &out}
	v.step(context.Background(), step{"gofmt", checkFormat})
	if printed := out.String(); !strings.Contains(printed, "FAIL gofmt") || !strings.Contains(printed, "unformatted.go") {
		t.Errorf("a file that is not formatted passes:\n%s", printed)
	}
}

// TestRun_NeedsAStep: a name that is misspelt would pass for ever.
func TestRun_NeedsAStep(t *testing.T) {
	err := run(t.Context(), []string{"-root", t.TempDir(), "-only", "gofnt", "lint"})
	if err == nil || !strings.Contains(err.Error(), `no step of lint has "gofnt" in its name`) {
		t.Errorf("run: %v", err)
	}
}

// TestModels_AreThere: what the steps leave out are tests of the event loop that exist,
// and there is another one that compares the model with the code.
func TestModels_AreThere(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "eventloop", "*model*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	left := regexp.MustCompile(eventLoopModels)
	var skipped []string
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(content), "fulmar/eventloop\"") {
			continue
		}
		for _, function := range regexp.MustCompile(`(?m)^func (Test\w*)`).FindAllStringSubmatch(string(content), -1) {
			if left.MatchString(function[1]) {
				skipped = append(skipped, function[1])
			}
		}
	}
	if len(skipped) != 4 {
		t.Errorf("%q leaves out %v, want four tests in files that do not use the event loop", eventLoopModels, skipped)
	}
}

func TestNarrow_SaysWhyNothingRan(t *testing.T) {
	foreign := filepath.Join(t.TempDir(), "foreign")
	if err := os.WriteFile(foreign, []byte("\x7fELF of no machine"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := runsHere(t.Context(), foreign); !errors.Is(err, errAbsent) || !strings.Contains(err.Error(), "exec format error") {
		t.Errorf("a program that cannot run: %v", err)
	}
	if err := runsHere(t.Context(), "true"); err != nil {
		t.Errorf("a program that runs: %v", err)
	}
}

func TestFuzz_OnlyWantedTargetsAreBuilt(t *testing.T) {
	root := writeTree(t, map[string]string{
		"go.mod": "module x\n", "a/a_test.go": "package a\n\nfunc FuzzA(f *testing.F) {}\n", "ab/b_test.go": "package ab\n\nfunc FuzzB(f *testing.F) {}\nfunc FuzzA2(f *testing.F) {}\n",
	})
	for pattern, want := range map[string]int{"": 2, "^a ": 1, "A$": 1, "FuzzA": 2, "FuzzB$": 1, "^ab FuzzA$": 0} {
		folders, err := fuzzFolders(root, ".", []string{"."}, regexp.MustCompile(pattern))
		if err != nil || len(folders) != want {
			t.Errorf("%q: %q, %v, want %d", pattern, folders, err, want)
		}
	}
}

func TestFuzz_TimeIsAddedToTheLedger(t *testing.T) {
	const ledger = "text | with bars\n| `FuzzA` | a | what it does | 1 min | none |\n| `FuzzA` | b | it | 61 min, many connections | one, fixed |\n"
	once, err := addTime(ledger, "FuzzA", "b", 4*time.Minute+31*time.Second)
	if want := strings.Replace(ledger, "61 min", "66 min", 1); err != nil || once != want {
		t.Errorf("%s, %v, want %s", once, err, want)
	}
	twice, err := addTime(once, "FuzzA", "a", 29*time.Second)
	if err != nil || twice != once {
		t.Errorf("half a minute was counted: %s, %v", twice, err)
	}
	for _, broken := range []string{"", "| `FuzzA` | b | it", "| `FuzzA` | b | it | soon | none |", ledger[:20]} {
		if got, err := addTime(broken, "FuzzA", "b", time.Hour); err == nil {
			t.Errorf("%q became %q", broken, got)
		}
	}
}

// TestFuzz_SlowMachinesHaveLonger: a target that did not come to the end of its corpus is
// run once more, for longer, and only then fails.
func TestFuzz_SlowMachinesHaveLonger(t *testing.T) {
	for within, want := range map[string]string{"5s": "5s ", "1m0s": "5s 1m0s ", "never": "5s 1m0s "} {
		root := writeTree(t, map[string]string{"slow": fmt.Sprintf(`#!/bin/sh
for flag; do case $flag in -test.fuzztime=*) time=${flag#*=};; esac; done
printf '%%s ' "$time" >> times
[ "$time" != %s ] || echo 'fuzz: elapsed: 1s, gathering baseline coverage: 3/3 completed, now fuzzing with 1 workers'
echo PASS
`, within)})
		slow := filepath.Join(root, "slow")
		if err := os.Chmod(slow, 0o755); err != nil {
			t.Fatal(err)
		}
		v := &verifier{root: root, tally: newTally(), out: io.Discard, fuzzTime: 5 * time.Second}
		_, err := v.fuzzOne(t.Context(), &log{}, fuzzTarget{name: "FuzzSlow", path: "slow", folder: root, binary: slow})
		times, _ := os.ReadFile(filepath.Join(root, "times"))
		if (err != nil) != (within == "never") || string(times) != want {
			t.Errorf("a corpus that is run within %s: runs of %q, %v; want %q", within, times, err, want)
		}
	}
}

func TestFuzz_TheEndOfTimeIsNoFailure(t *testing.T) {
	const end = "fuzz: elapsed: 5s, execs: 9188 (1575/sec)\n--- FAIL: FuzzServer (5.18s)\n    context deadline exceeded\nFAIL\n"
	if !onlyTimeIsUp([]byte(end)) {
		t.Error("the end of the time counts as a failure")
	}
	for _, output := range []string{
		"--- FAIL: FuzzServer (5.18s)\n    --- FAIL: FuzzServer (0.00s)\n        x_test.go:1: wrong\n    Failing input written to testdata/fuzz/FuzzServer/1\n",
		end + "    Failing input written to testdata/fuzz/FuzzServer/1\n",
		"panic: runtime error\n    context deadline exceeded\n",
	} {
		if onlyTimeIsUp([]byte(output)) {
			t.Errorf("a failure is taken for the end of the time:\n%s", output)
		}
	}
}

func TestInPairs_RunsAllAndReturnsAllErrors(t *testing.T) {
	for n := range 5 {
		var ran [5]atomic.Int32
		var atOnce, most atomic.Int32
		err := inPairs(n, func(i int) error {
			ran[i].Add(1)
			most.Store(max(most.Load(), atOnce.Add(1)))
			defer atOnce.Add(-1)
			return fmt.Errorf("error %d", i)
		})
		for i := range ran {
			if got, want := ran[i].Load(), int32(min(1, max(0, n-i))); got != want {
				t.Errorf("%d tasks: task %d ran %d times, want %d", n, i, got, want)
			}
		}
		want := strings.Join([]string{"error 0", "error 1", "error 2", "error 3", "error 4"}[:n], "\n")
		if n > 0 && (err == nil || err.Error() != want) || n == 0 && err != nil {
			t.Errorf("%d tasks: error %v, want %q", n, err, want)
		}
		if most.Load() > 2 {
			t.Errorf("%d tasks at once, want at most 2", most.Load())
		}
	}
}
