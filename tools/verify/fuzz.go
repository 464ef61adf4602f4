package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// fuzzTarget is one fuzz function.
type fuzzTarget struct {
	module string
	folder string // absolute folder of the package
	path   string // import path
	name   string
	binary string
}

// fuzz runs every fuzz target of the tree for v.fuzzTime, on top of its
// committed corpus. Two targets run at a time, each with one worker: short runs
// are dominated by start-up, which overlaps that way.
func (v *verifier) fuzz(ctx context.Context, log *log) error {
	targets, err := v.findFuzzTargets(ctx, log)
	switch {
	case len(targets) == 0 && err != nil:
		return err
	case len(targets) == 0:
		return fmt.Errorf("fuzz targets: %w", errAbsent)
	}
	var mu sync.Mutex
	var failed []string
	_ = inPairs(len(targets), func(i int) error {
		took, err := v.fuzzOne(ctx, log, targets[i])
		mu.Lock()
		defer mu.Unlock()
		result := "pass"
		if err != nil {
			result = "fail"
			failed = append(failed, targets[i].name)
		}
		v.fuzzed[targets[i]] = took
		v.tally.add(targets[i].path+" "+targets[i].name+" (fuzzing)", result)
		return nil
	})
	slices.Sort(failed)
	fmt.Fprintf(v.out, "     %d fuzz targets, %v each\n", len(targets), v.fuzzTime)
	if v.ledger {
		err = errors.Join(err, v.addToLedger())
	}
	if len(failed) > 0 {
		err = errors.Join(err, fmt.Errorf("fuzz targets failed: %s (the failing input is in testdata/fuzz of the package)", strings.Join(failed, ", ")))
	}
	return err
}

// patience is how long a target runs at least that did not come to the end of its corpus:
// on a machine that others use FuzzGenerate had run 38 of 40 inputs after 5 s.
const patience = time.Minute

// fuzzOne returns the processor time that a target took, with its worker.
func (v *verifier) fuzzOne(ctx context.Context, log *log, target fuzzTarget) (time.Duration, error) {
	took, began, err := v.fuzzFor(ctx, log, target, v.fuzzTime)
	if err == nil && !began {
		fmt.Fprintf(log, "%s: once more: it did not fuzz within %v\n", target.name, v.fuzzTime)
		var again time.Duration
		again, began, err = v.fuzzFor(ctx, log, target, max(v.fuzzTime, patience))
		took += again
	}
	if err == nil && !began {
		err = errors.New("the fuzz target did not run")
	}
	return took, err
}

// fuzzFor runs a target for so long, its corpus first; began says that it came to the end
// of that.
func (v *verifier) fuzzFor(ctx context.Context, log *log, target fuzzTarget, long time.Duration) (took time.Duration, began bool, err error) {
	cache := filepath.Join(v.root, ".cache", "fuzz", target.path)
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return 0, false, err
	}
	var output bytes.Buffer
	command := v.command(ctx, &output, ".", target.binary,
		"-test.run=^$", "-test.fuzz=^"+target.name+"$", "-test.fuzzcachedir="+cache,
		"-test.fuzztime="+long.String(),
		// With seconds in its place a target with large inputs made 10 runs in 25 s.
		"-test.fuzzminimizetime=20x",
		"-test.parallel=1", "-test.timeout="+(long+5*time.Minute).String())
	command.Dir = target.folder
	err = command.Run()
	printed := output.Bytes()
	if err != nil && onlyTimeIsUp(printed) {
		err = nil
	}
	if err == nil {
		// Only the last count: the log is for what failed.
		printed = printed[bytes.LastIndex(bytes.TrimSuffix(printed, []byte("\nPASS\n")), []byte("\n"))+1:]
	}
	fmt.Fprintf(log, "%s: %s\n", target.name, printed)
	if state := command.ProcessState; state != nil {
		took = state.UserTime() + state.SystemTime()
	}
	return took, bytes.Contains(output.Bytes(), []byte("now fuzzing")), err
}

// addToLedger adds the time of a run to the table in docs/fuzzing.md, by the minute.
func (v *verifier) addToLedger() error {
	name := filepath.Join(v.root, "docs", "fuzzing.md")
	content, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	text := string(content)
	for target, took := range v.fuzzed {
		if text, err = addTime(text, target.name, target.path, took); err != nil {
			return err
		}
	}
	return os.WriteFile(name, []byte(text), 0o644)
}

// ledgerTime is the column for the time so far.
var ledgerTime = regexp.MustCompile(`^ (\d+) min`)

// addTime returns the ledger with more time for a target of a folder, in whole minutes.
func addTime(ledger, target, folder string, took time.Duration) (string, error) {
	key := fmt.Sprintf("| `%s` | %s |", target, folder)
	before, line, found := strings.Cut(ledger, key)
	checks, rest, _ := strings.Cut(line, "|")
	match := ledgerTime.FindStringSubmatch(rest)
	if !found || match == nil {
		return "", fmt.Errorf("docs/fuzzing.md: there is no line with a time for %s of %s", target, folder)
	}
	minutes, err := strconv.Atoi(match[1])
	if err != nil {
		return "", fmt.Errorf("docs/fuzzing.md: %w", err)
	}
	minutes += int(took.Round(time.Minute) / time.Minute)
	return fmt.Sprintf("%s%s%s| %d min%s", before, key, checks, minutes, rest[len(match[0]):]), nil
}

// onlyTimeIsUp recognises a failure that is none: before Go 1.27 the end of
// -fuzztime can be reported as "context deadline exceeded" (go.dev/issue/75804).
// An input that fails is always written to a file, and the output says so.
func onlyTimeIsUp(output []byte) bool {
	return bytes.Contains(output, []byte("\n    context deadline exceeded\n")) &&
		!bytes.Contains(output, []byte("Failing input written to")) &&
		!bytes.Contains(output, []byte("panic"))
}

// findFuzzTargets builds a fuzzing binary for every package that has targets, two at a
// time. The error is about those that could not be built.
// Packages are found by reading the sources, because listing targets with the
// go command would build every test binary of the tree.
func (v *verifier) findFuzzTargets(ctx context.Context, log io.Writer) ([]fuzzTarget, error) {
	type place struct{ module, folder string }
	var places []place
	var failures []error
	for _, module := range v.modules {
		folders, err := fuzzFolders(v.root, module, v.modules, v.wanted)
		failures = append(failures, err)
		for _, folder := range folders {
			places = append(places, place{module, folder})
		}
	}
	found := make([][]fuzzTarget, len(places))
	failures = append(failures, inPairs(len(places), func(i int) (err error) {
		found[i], err = v.buildFuzzTargets(ctx, log, places[i].module, places[i].folder)
		return err
	}))
	targets := slices.DeleteFunc(slices.Concat(found...), func(t fuzzTarget) bool { return !v.wanted.MatchString(t.path + " " + t.name) })
	return targets, errors.Join(failures...)
}

// fuzzFunction is the beginning of a fuzz target.
var fuzzFunction = regexp.MustCompile(`(?m)^func (Fuzz\w*)`)

// fuzzFolders returns the package folders of a module whose tests mention a
// fuzz target that is wanted, by its folder and its name.
func fuzzFolders(root, module string, modules []string, wanted *regexp.Regexp) ([]string, error) {
	var folders []string
	start := filepath.Join(root, module)
	err := filepath.WalkDir(start, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			relative, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			nested := path != start && slices.Contains(modules, relative)
			if path != start && skipFolder(entry.Name()) || nested {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder := filepath.Dir(path)
		relative, err := filepath.Rel(root, folder)
		if err != nil {
			return err
		}
		for _, function := range fuzzFunction.FindAllSubmatch(content, -1) {
			if wanted.MatchString(filepath.ToSlash(relative)+" "+string(function[1])) && !slices.Contains(folders, folder) {
				folders = append(folders, folder)
			}
		}
		return nil
	})
	return folders, err
}

func (v *verifier) buildFuzzTargets(ctx context.Context, log io.Writer, module, folder string) ([]fuzzTarget, error) {
	relative, err := filepath.Rel(v.root, folder)
	if err != nil {
		return nil, err
	}
	binary := filepath.Join(v.root, ".cache", "fuzz", "bin", "fuzz_"+strings.ReplaceAll(relative, string(filepath.Separator), "_")+".test")
	inModule, err := filepath.Rel(filepath.Join(v.root, module), folder)
	if err != nil {
		return nil, err
	}
	pattern := "./" + filepath.ToSlash(inModule)
	// Without what debuggers need, which is a third of the work of linking.
	if err := v.command(ctx, log, module, "go", "test", "-c", "-fuzz=.", "-ldflags=-s -w", "-o", binary, pattern).Run(); err != nil {
		return nil, fmt.Errorf("building the fuzz targets of %s: %w", relative, err)
	}
	var list bytes.Buffer
	command := v.command(ctx, log, module, binary, "-test.list=^Fuzz")
	command.Dir, command.Stdout = folder, &list
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("listing the fuzz targets of %s: %w", relative, err)
	}
	var targets []fuzzTarget
	for name := range strings.FieldsSeq(list.String()) {
		if strings.HasPrefix(name, "Fuzz") {
			targets = append(targets, fuzzTarget{module: module, folder: folder, path: filepath.ToSlash(relative), name: name, binary: binary})
		}
	}
	return targets, nil
}
