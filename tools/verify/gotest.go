package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// tally counts tests. The same test runs several times (plain, with the race
// detector, with invariants): it counts once, and as failed if any run of it
// failed.
type tally struct {
	mu      sync.Mutex
	results map[string]string // name -> pass, fail or skip
	reasons map[string]string // name -> why a run of it was skipped
}

func newTally() *tally { return &tally{results: map[string]string{}, reasons: map[string]string{}} }

func (t *tally) add(name, result string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	weight := map[string]int{"": 0, "skip": 1, "pass": 2, "fail": 3}
	if weight[result] > weight[t.results[name]] {
		t.results[name] = result
	}
}

func (t *tally) count() (passed, failed, skipped int) {
	for _, result := range t.results {
		switch result {
		case "pass":
			passed++
		case "fail":
			failed++
		default:
			skipped++
		}
	}
	return passed, failed, skipped
}

// named returns the tests with a result, sorted.
func (t *tally) named(result string) []string {
	var names []string
	for name, got := range t.results {
		if got == result {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// skips returns the tests that no run executed, each with what it said.
func (t *tally) skips() []string {
	skips := t.named("skip")
	for i, name := range skips {
		skips[i] = fmt.Sprintf("%s: %s", name, cmp.Or(t.reasons[name], "no reason given"))
	}
	return skips
}

// because keeps why a test was skipped, which stands behind the place in what it printed.
func (t *tally) because(name, printed string) {
	var reason []string
	for line := range strings.Lines(printed) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- SKIP: ") {
			reason = append(reason, skipPlace.ReplaceAllString(line, ""))
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reasons[name] = strings.Join(reason, " ")
}

// skipPlace is the file and line in front of what a test prints.
var skipPlace = regexp.MustCompile(`^\S+\.go:\d+: `)

// testEvent is a line of `go test -json`; see `go doc test2json`.
type testEvent struct {
	Action  string
	Package string
	Test    string
	Output  string
}

// goTest runs `go test -json` in the modules, two at a time, and returns how many tests it
// reported; the results go to the tally.
func (v *verifier) goTest(ctx context.Context, log io.Writer, modules []string, environment []string, arguments ...string) (tests int, err error) {
	counts := make([]int, len(modules))
	err = inPairs(len(modules), func(i int) (err error) {
		command := v.command(ctx, log, modules[i], "go", append([]string{"test", "-json"}, arguments...)...)
		command.Env = append(command.Env, environment...)
		if counts[i], err = v.readTests(log, command); err != nil {
			fmt.Fprintln(log, err)
			return fmt.Errorf("tests failed in %s", modules[i])
		}
		return nil
	})
	for _, n := range counts {
		tests += n
	}
	return tests, err
}

// inPairs calls run with 0 to n-1, two at a time, and returns all errors. The tools that
// it is for use one processor most of the time: they start, link, or wait for the
// slowest test.
func inPairs(n int, run func(i int) error) error {
	errs := make([]error, n)
	var next atomic.Int64
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				errs[i] = run(i)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// readTests runs one `go test -json`.
func (v *verifier) readTests(log io.Writer, command *exec.Cmd) (tests int, err error) {
	command.Stdout = nil
	output, err := command.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := command.Start(); err != nil {
		return 0, err
	}
	tests, readErr := v.tally.read(output, log)
	if err := command.Wait(); err != nil {
		return tests, err
	}
	return tests, readErr
}

// packageFailed is for what no test event tells: a package that did not build,
// left something behind after its tests, or was ended in the middle of some.
func (t *tally) packageFailed(name string, testFailed bool, outputs map[string]*strings.Builder, log io.Writer) {
	for key, text := range outputs {
		test, found := strings.CutPrefix(key, name+" ")
		if !found {
			continue
		}
		fmt.Fprint(log, text)
		delete(outputs, key)
		if test != "" {
			testFailed = true
			t.add(key, "fail")
		}
	}
	if !testFailed {
		t.add(name+" (package)", "fail")
	}
}

// read counts the events of one `go test -json`. Only what belongs to failures
// reaches the log: the output of passing tests would bury it.
func (t *tally) read(events io.Reader, log io.Writer) (tests int, err error) {
	outputs := map[string]*strings.Builder{}
	failed := map[string]bool{} // packages with a failing test
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var event testEvent
		if json.Unmarshal(lines.Bytes(), &event) != nil {
			fmt.Fprintln(log, lines.Text())
			continue
		}
		key := event.Package + " " + event.Test
		switch event.Action {
		case "output":
			if outputs[key] == nil {
				outputs[key] = &strings.Builder{}
			}
			outputs[key].WriteString(event.Output)
		case "build-output":
			fmt.Fprint(log, event.Output)
		case "pass", "fail", "skip":
			text := outputs[key]
			if text != nil && event.Action == "fail" {
				fmt.Fprint(log, text)
			}
			delete(outputs, key)
			if event.Test != "" {
				tests++
				failed[event.Package] = failed[event.Package] || event.Action == "fail"
				if t.add(key, event.Action); event.Action == "skip" && text != nil {
					t.because(key, text.String())
				}
				continue
			}
			if event.Action == "fail" {
				t.packageFailed(event.Package, failed[event.Package], outputs, log)
			}
		}
	}
	return tests, lines.Err()
}
