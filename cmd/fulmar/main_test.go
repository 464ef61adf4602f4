package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

// asCommand makes the test binary behave as the command.
const asCommand = "FULMAR_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if name, isPlugin := strings.CutPrefix(filepath.Base(os.Args[0]), pluginPrefix); isPlugin {
		os.Exit(runTestPlugin(name))
	}
	if os.Getenv(asCommand) != "" {
		main()
	}
	testkit.Main(m)
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
	platform := fmt.Sprintf("(%s %s/%s)", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	const generates = ", generates code for Fulmar v0.1 or newer"
	commit := []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "0123abcd"}}
	for name, test := range map[string]struct {
		info *debug.BuildInfo
		want string
	}{
		"release": {&debug.BuildInfo{Main: debug.Module{Version: "v0.1.0"}, Settings: commit}, "fulmar v0.1.0 " + platform + generates},
		"clone":   {&debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: commit}, "fulmar (devel) 0123abcd " + platform + generates},
		"folder":  {&debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "fulmar (devel) " + platform + generates},
		"unknown": {nil, "fulmar of unknown version " + platform + generates},
	} {
		if got := versionText(test.info, test.info != nil); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	want := versionText(debug.ReadBuildInfo()) + "\n"
	for _, argument := range []string{"--version", "-v", "version"} {
		if result := fulmar(t, t.TempDir(), argument); result.code != 0 || result.stdout != want || result.stderr != "" {
			t.Errorf("%s: %+v, want %q", argument, result, want)
		}
	}
}

func TestFulmar_HelpMatchesGoldenFiles(t *testing.T) {
	for name, arguments := range map[string][]string{
		"fulmar":  {"--help"},
		"gen":     {"gen", "--help"},
		"version": {"version", "--help"},
	} {
		result := fulmar(t, t.TempDir(), arguments...)
		if result.code != 0 || result.stderr != "" {
			t.Errorf("%s: exit code %d, stderr %q", name, result.code, result.stderr)
		}
		testkit.Golden(t, filepath.Join("testdata", "help", name+".txt"), []byte(result.stdout))
	}
	plain := fulmar(t, t.TempDir())
	testkit.Golden(t, filepath.Join("testdata", "help", "fulmar.txt"), []byte(plain.stdout))
}
