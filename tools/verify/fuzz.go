package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
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
	work := make(chan fuzzTarget)
	var mu sync.Mutex
	var failed []string
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			for target := range work {
				err := v.fuzzOne(ctx, log, target)
				mu.Lock()
				result := "pass"
				if err != nil {
					result = "fail"
					failed = append(failed, target.name)
				}
				v.tally.add(target.path+" "+target.name+" (fuzzing)", result)
				mu.Unlock()
			}
		})
	}
	for _, target := range targets {
		work <- target
	}
	close(work)
	group.Wait()
	fmt.Fprintf(v.out, "     %d fuzz targets, %v each\n", len(targets), v.fuzzTime)
	if len(failed) > 0 {
		err = errors.Join(err, fmt.Errorf("fuzz targets failed: %s (the failing input is in testdata/fuzz of the package)", strings.Join(failed, ", ")))
	}
	return err
}

func (v *verifier) fuzzOne(ctx context.Context, log *log, target fuzzTarget) error {
	cache := filepath.Join(v.root, ".cache", "fuzz", target.path)
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	var output bytes.Buffer
	command := v.command(ctx, &output, ".", target.binary,
		"-test.run=^$", "-test.fuzz=^"+target.name+"$", "-test.fuzzcachedir="+cache,
		"-test.fuzztime="+v.fuzzTime.String(), "-test.fuzzminimizetime=2s",
		"-test.parallel=1", "-test.timeout="+(v.fuzzTime+5*time.Minute).String())
	command.Dir = target.folder
	err := command.Run()
	printed := output.Bytes()
	if err != nil && onlyTimeIsUp(printed) {
		err = nil
	}
	if err == nil {
		// Only the last count: the log is for what failed.
		printed = printed[bytes.LastIndex(bytes.TrimSuffix(printed, []byte("\nPASS\n")), []byte("\n"))+1:]
	}
	fmt.Fprintf(log, "%s: %s\n", target.name, printed)
	if err == nil && !bytes.Contains(output.Bytes(), []byte("now fuzzing")) {
		return errors.New("the fuzz target did not run")
	}
	return err
}

// onlyTimeIsUp recognises a failure that is none: before Go 1.27 the end of
// -fuzztime can be reported as "context deadline exceeded" (go.dev/issue/75804).
// An input that fails is always written to a file, and the output says so.
func onlyTimeIsUp(output []byte) bool {
	return bytes.Contains(output, []byte("\n    context deadline exceeded\n")) &&
		!bytes.Contains(output, []byte("Failing input written to")) &&
		!bytes.Contains(output, []byte("panic"))
}

// findFuzzTargets builds a fuzzing binary for every package that has targets.
// The error is about those that could not be built.
// Packages are found by reading the sources, because listing targets with the
// go command would build every test binary of the tree.
func (v *verifier) findFuzzTargets(ctx context.Context, log io.Writer) ([]fuzzTarget, error) {
	var targets []fuzzTarget
	var failures []error
	for _, module := range v.modules {
		folders, err := fuzzFolders(v.root, module, v.modules)
		failures = append(failures, err)
		for _, folder := range folders {
			found, err := v.buildFuzzTargets(ctx, log, module, folder)
			failures = append(failures, err)
			targets = append(targets, found...)
		}
	}
	return targets, errors.Join(failures...)
}

// fuzzFolders returns the package folders of a module whose tests mention a
// fuzz target.
func fuzzFolders(root, module string, modules []string) ([]string, error) {
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
		if bytes.Contains(content, []byte("\nfunc Fuzz")) && !slices.Contains(folders, folder) {
			folders = append(folders, folder)
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
	if err := v.command(ctx, log, module, "go", "test", "-c", "-fuzz=.", "-o", binary, pattern).Run(); err != nil {
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
