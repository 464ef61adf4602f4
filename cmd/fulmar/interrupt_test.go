//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPlugin_IsKilledWhenTheUserInterrupts interrupts a run whose plugin never ends and
// cares for no signal. It is not in the group of processes that a terminal interrupts.
func TestPlugin_IsKilledWhenTheUserInterrupts(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		folder := newFolder(t, "a.thrift", "struct S {}")
		pipe := filepath.Join(t.TempDir(), "pipe")
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Skip(err)
		}
		run := command(t, folder, "gen", "--plugin", "child", "a.thrift")
		run.Env = append(run.Env, "PATH="+pluginPath(t, "child"), pipeVariable+"="+pipe)
		stderr, err := run.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		said := bufio.NewReader(stderr)
		if line, err := said.ReadString('\n'); err != nil || line != "fulmar-gen-child: "+ready+"\n" {
			t.Fatalf("%q, %v", line, err)
		}
		if err := run.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		rest, _ := io.ReadAll(said)
		_ = run.Wait()
		result{run.ProcessState.ExitCode(), "", string(rest)}.want(t, exitFailed, "fulmar gen: plugin child: fulmar-gen-child: was killed: "+signal.String()+" signal received\n")
		held, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		// This does not end while the plugin holds the other end.
		if content, err := io.ReadAll(held); err != nil || len(content) > 0 {
			t.Errorf("%q, %v", content, err)
		}
		held.Close()
		wantTree(t, folder, "a.thrift")
	}
}

// TestGen_LeavesNothingWhenTheUserInterrupts interrupts runs when the first file is being
// written beside its place. Each ends with all files, or as if it had not been.
func TestGen_LeavesNothingWhenTheUserInterrupts(t *testing.T) {
	const packages = 60
	files := []string{"a.thrift", ""}
	for n := range packages {
		files[1] += fmt.Sprintf("include \"b%d.thrift\"\n", n)
		files = append(files, fmt.Sprintf("b%d.thrift", n), fmt.Sprintf("namespace go b%d\nstruct S { 1: list<i32> numbers, 2: map<string, S> all }\n", n))
	}
	files = append(files, "go.mod", "module example.com/m\n")
	interrupted := false
	for range 10 {
		folder := newFolder(t, files...)
		run := command(t, folder, "gen", "a.thrift")
		var stderr strings.Builder
		run.Stderr = &stderr
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- run.Wait() }()
		written := func() bool {
			staged, _ := filepath.Glob(filepath.Join(folder, "gen", "*", ".fulmar.*"))
			return len(staged) > 0
		}
		for len(ended) == 0 && !written() {
		}
		_ = run.Process.Signal(os.Interrupt) // it may have ended
		err := <-ended
		switch count := len(tree(t, filepath.Join(folder, "gen"))); {
		case err == nil && count < 3*packages:
			t.Errorf("it succeeded, with %d files", count)
		case err != nil && (run.ProcessState.ExitCode() != exitFailed || count > 0 || !strings.Contains(stderr.String(), "nothing was changed: interrupt signal received")):
			t.Errorf("%v, %d files were left\n%s", err, count, stderr.String())
		}
		interrupted = interrupted || err != nil
	}
	if !interrupted {
		t.Log("all runs were too fast")
	}
}
