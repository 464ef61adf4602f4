// Command verify runs what `make test`, `make lint` and `make fuzz` promise:
// named steps, one line each, the log of a step that fails, and at the end how
// many tests passed and failed.
//
// It uses the standard library and the go command only. Modules, packages and
// fuzz targets are found, not listed: a new one is covered without a change
// here.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "verify:", err)
		os.Exit(1)
	}
}

// verifier is one run of the command.
type verifier struct {
	root     string
	modules  []string // folders relative to root; "." first
	python   string
	fuzzTime time.Duration
	// wanted selects fuzz targets, fuzzed is how much processor time each took, and
	// ledger says to add that to docs/fuzzing.md.
	wanted *regexp.Regexp
	fuzzed map[fuzzTarget]time.Duration
	ledger bool
	only   string
	tally  *tally
	// mu guards what steps that run beside each other add to: failed, and the
	// lines of one step in out.
	mu     sync.Mutex
	failed []string
	out    io.Writer
}

func run(ctx context.Context, arguments []string) error {
	v := &verifier{tally: newTally(), out: os.Stdout, wanted: regexp.MustCompile(""), fuzzed: map[fuzzTarget]time.Duration{}}
	flags := flag.NewFlagSet("verify", flag.ContinueOnError)
	flags.StringVar(&v.root, "root", ".", "the root of the repository")
	flags.StringVar(&v.python, "python", "", "the Python interpreter that has the peers' packages")
	flags.DurationVar(&v.fuzzTime, "fuzztime", 5*time.Second, "how long each fuzz target runs")
	flags.Func("fuzztargets", "run only the fuzz targets whose folder and name, with a blank between them, match this regular expression", func(text string) (err error) {
		v.wanted, err = regexp.Compile(text)
		return err
	})
	flags.BoolVar(&v.ledger, "ledger", false, "add the processor time of fuzzing to docs/fuzzing.md")
	flags.StringVar(&v.only, "only", "", "run only the steps whose names contain this")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	suites := map[string][]stage{"test": testStages(), "lint": inOrder(lintSteps()), "fuzz": inOrder(fuzzSteps())}
	stages, ok := suites[flags.Arg(0)]
	if !ok {
		return fmt.Errorf("want one of test, lint, fuzz (got %q)", flags.Arg(0))
	}
	if !slices.ContainsFunc(slices.Concat(stages...), v.wants) {
		return fmt.Errorf("no step of %s has %q in its name", flags.Arg(0), v.only)
	}
	var err error
	if v.root, err = filepath.Abs(v.root); err != nil {
		return err
	}
	if v.modules, err = findModules(v.root); err != nil {
		return err
	}
	for _, s := range stages {
		v.stage(ctx, s)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return v.summary(flags.Arg(0))
}

// step is one named part of a suite.
type step struct {
	name string
	run  func(ctx context.Context, v *verifier, log *log) error
}

// stage is steps that may run beside each other.
type stage []step

// inOrder makes stages of one step each.
func inOrder(steps []step) []stage {
	var stages []stage
	for _, s := range steps {
		stages = append(stages, stage{s})
	}
	return stages
}

// wants reports whether a step is to run.
func (v *verifier) wants(s step) bool { return strings.Contains(s.name, v.only) }

// stage runs steps two at a time, those that are wanted.
func (v *verifier) stage(ctx context.Context, steps stage) {
	steps = slices.DeleteFunc(slices.Clone(steps), func(s step) bool { return !v.wants(s) })
	_ = inPairs(len(steps), func(i int) error {
		if ctx.Err() == nil {
			v.step(ctx, steps[i])
		}
		return nil
	})
}

// errAbsent says that what a step needs is not part of the tree.
var errAbsent = errors.New("nothing to run")

// logTail is how much of a failed step's log is shown; the whole log stays in
// .cache/logs.
const logTail = 16 << 10

func (v *verifier) step(ctx context.Context, s step) {
	log, err := newLog(filepath.Join(v.root, ".cache", "logs"), s.name)
	if err != nil {
		v.fail(s.name, err)
		return
	}
	defer log.close()
	start := time.Now()
	err = s.run(ctx, v, log)
	seconds := time.Since(start).Seconds()
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case errors.Is(err, errAbsent):
		fmt.Fprintf(v.out, "none %-40s %s\n", s.name, err)
	case err != nil:
		fmt.Fprintf(v.out, "FAIL %-40s %6.1f s\n", s.name, seconds)
		fmt.Fprintf(v.out, "%s\n--- %s: %v (whole log: %s)\n", log.tail(logTail), s.name, err, log.name)
		v.failed = append(v.failed, s.name)
	default:
		fmt.Fprintf(v.out, "ok   %-40s %6.1f s\n", s.name, seconds)
	}
}

func (v *verifier) fail(name string, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	fmt.Fprintf(v.out, "FAIL %-40s %v\n", name, err)
	v.failed = append(v.failed, name)
}

// summary prints which tests were skipped and why, which failed, and last the counts. A
// step that failed without a failing test (a lint step, say) counts as one failure, so
// the line never says 0 when something is wrong.
func (v *verifier) summary(suite string) error {
	passed, failed, skipped := v.tally.count()
	if failed < len(v.failed) {
		failed = len(v.failed)
	}
	if passed+failed > 0 || suite == "test" {
		fmt.Fprintln(v.out)
		for _, skip := range v.tally.skips() {
			fmt.Fprintln(v.out, "skipped:", skip)
		}
		for _, name := range v.tally.named("fail") {
			fmt.Fprintln(v.out, "failed:", name)
		}
		if skipped > 0 {
			fmt.Fprintf(v.out, "%d passed, %d failed, %d skipped\n", passed, failed, skipped)
		} else {
			fmt.Fprintf(v.out, "%d passed, %d failed\n", passed, failed)
		}
	}
	switch {
	case len(v.failed) > 0:
		return fmt.Errorf("steps that failed: %s", strings.Join(v.failed, ", "))
	case suite == "test" && passed == 0 && v.only == "":
		return errors.New("no test ran")
	}
	return nil
}

// findModules returns the folders below root that have a go.mod, root first.
func findModules(root string) ([]string, error) {
	modules := []string{"."}
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != root && skipFolder(entry.Name()) {
			return filepath.SkipDir
		}
		if entry.Name() == "go.mod" && filepath.Dir(path) != root {
			folder, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				return err
			}
			modules = append(modules, folder)
		}
		return nil
	})
	return modules, err
}

func skipFolder(name string) bool {
	return strings.HasPrefix(name, ".") || name == "bin" || name == "testdata" || name == "__pycache__"
}

// command prepares a command in a module's folder whose output goes to log.
func (v *verifier) command(ctx context.Context, log io.Writer, module string, name string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, name, arguments...)
	command.Dir = filepath.Join(v.root, module)
	command.Stdout, command.Stderr = log, log
	command.Env = append(os.Environ(), "GOWORK=off")
	if v.python != "" {
		command.Env = append(command.Env, "FULMAR_PYTHON="+v.python)
	}
	fmt.Fprintf(log, "\n$ (in %s) %s %s\n", module, name, strings.Join(arguments, " "))
	return command
}

// inModules runs the same command in several modules and reports all that fail.
func (v *verifier) inModules(ctx context.Context, log io.Writer, modules []string, environment []string, name string, arguments ...string) error {
	return inPairs(len(modules), func(i int) error {
		var output bytes.Buffer
		command := v.command(ctx, &output, modules[i], name, arguments...)
		command.Env = append(command.Env, environment...)
		err := command.Run()
		if _, logErr := log.Write(output.Bytes()); err == nil {
			err = logErr
		}
		if err != nil {
			return fmt.Errorf("%s %s failed in %s: %w", name, arguments[0], modules[i], err)
		}
		return nil
	})
}
