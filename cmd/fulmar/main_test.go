package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// asCommand makes the test binary behave as the command.
const asCommand = "FULMAR_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	os.Exit(m.Run())
}

// result is what a run of the command left.
type result struct {
	code           int
	stdout, stderr string
}

// command returns the command, to run in folder.
func command(t *testing.T, folder string, arguments ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), self, arguments...)
	run.Dir = folder
	run.Env = append(os.Environ(), asCommand+"=1")
	return run
}

func finish(t *testing.T, run *exec.Cmd) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	run.Stdout, run.Stderr = &stdout, &stderr
	err := run.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{run.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

func fulmar(t *testing.T, folder string, arguments ...string) result {
	t.Helper()
	return finish(t, command(t, folder, arguments...))
}

// want fails the test unless the command ended with code and said all parts,
// on standard output if that is success and on standard error otherwise.
func (r result) want(t *testing.T, code int, parts ...string) {
	t.Helper()
	said := r.stderr
	if code == 0 {
		said = r.stdout
	}
	if r.code != code {
		t.Errorf("exit code %d, want %d\nstdout: %s\nstderr: %s", r.code, code, r.stdout, r.stderr)
	}
	for _, part := range parts {
		if !strings.Contains(said, part) {
			t.Errorf("output has no %q\nstdout: %s\nstderr: %s", part, r.stdout, r.stderr)
		}
	}
}

// newFolder returns a folder with these files, which are given as pairs of name
// and content.
func newFolder(t *testing.T, files ...string) string {
	t.Helper()
	folder := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		writeFile(t, filepath.Join(folder, files[i]), files[i+1])
	}
	return folder
}

func writeFile(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestFulmar_UsageErrorsExitWith2(t *testing.T) {
	folder := newFolder(t, "a.thrift", "struct S {}")
	for _, arguments := range [][]string{
		{"gen"},
		{"gen", "--nonsense", "a.thrift"},
		{"gen", "-o"},
		{"version", "extra"},
		{"generate", "a.thrift"},
		{"--nonsense"},
	} {
		fulmar(t, folder, arguments...).want(t, exitUsage, "--help' for usage.")
	}
	if _, err := os.Stat(filepath.Join(folder, "gen")); err == nil {
		t.Error("something was written")
	}
}

func TestFulmar_Version(t *testing.T) {
	fulmar(t, t.TempDir(), "version").want(t, 0, "fulmar ", "go1.")
}

func TestFulmar_Help(t *testing.T) {
	fulmar(t, t.TempDir(), "gen", "--help").want(t, 0, "--package-prefix", "removed")
	fulmar(t, t.TempDir()).want(t, 0, "gen ")
}
