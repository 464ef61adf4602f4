//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const smallIDL = "namespace go x\nstruct S { 1: string text }\n"

func TestGen_NamespacesStayInside(t *testing.T) {
	for _, namespace := range []string{"../../x", "..", "/x", "a..b", "a/b", ".a", "a\\b", "'../x'", "vendor", "main", "func", "a b"} {
		folder := newFolder(t, "work/a.thrift", "namespace go "+namespace+"\nstruct S {}\n")
		result := fulmar(t, filepath.Join(folder, "work"), "gen", "a.thrift")
		if result.code != exitFailed || !strings.Contains(result.stderr, "a.thrift:1:") {
			t.Errorf("namespace %s: exit code %d\n%s", namespace, result.code, result.stderr)
		}
		wantTree(t, folder, "work/a.thrift")
	}
}

func symlink(t *testing.T, target, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

func TestGen_DoesNotFollowLinksOutside(t *testing.T) {
	t.Run("package folder", func(t *testing.T) {
		folder := newFolder(t, "a.thrift", smallIDL, "outside/keep", "")
		symlink(t, "../outside", filepath.Join(folder, "gen/x"))
		fulmar(t, folder, "gen", "a.thrift").want(t, exitFailed, "fulmar gen: gen/x: is a symbolic link to what is no folder inside of the output folder\n")
		wantTree(t, filepath.Join(folder, "outside"), "keep")
	})
	t.Run("absolute", func(t *testing.T) {
		folder, outside := newFolder(t, "a.thrift", smallIDL), newFolder(t, "keep", "")
		symlink(t, outside, filepath.Join(folder, "gen/x"))
		fulmar(t, folder, "gen", "a.thrift").want(t, exitFailed, "fulmar gen: gen/x: is a symbolic link ")
		wantTree(t, outside, "keep")
	})
	t.Run("to nothing", func(t *testing.T) {
		folder := newFolder(t, "a.thrift", smallIDL)
		symlink(t, "nothing", filepath.Join(folder, "gen/x"))
		fulmar(t, folder, "gen", "a.thrift").want(t, exitFailed, "fulmar gen: gen/x: is a symbolic link ")
	})
	t.Run("inside", func(t *testing.T) {
		folder := newFolder(t, "a.thrift", smallIDL, "gen/y/keep", "")
		symlink(t, "y", filepath.Join(folder, "gen/x"))
		fulmar(t, folder, "gen", "a.thrift").want(t, 0, "3 written")
		wantTree(t, filepath.Join(folder, "gen"), "x", "y/a_codec.go", "y/a_methods.go", "y/a_types.go", "y/keep")
	})
	t.Run("file", func(t *testing.T) {
		folder := newFolder(t, "a.thrift", smallIDL, "outside.go", "package outside\n")
		symlink(t, "../../outside.go", filepath.Join(folder, "gen/x/a_types.go"))
		fulmar(t, folder, "gen", "a.thrift").want(t, exitFailed, "x/a_types.go: is not a regular file")
		contains(t, filepath.Join(folder, "outside.go"), "package outside")
		wantTree(t, filepath.Join(folder, "gen"), "x/a_types.go")
	})
	t.Run("the output folder itself", func(t *testing.T) {
		folder := newFolder(t, "a.thrift", smallIDL, "elsewhere/keep", "")
		symlink(t, "elsewhere", filepath.Join(folder, "gen"))
		fulmar(t, folder, "gen", "a.thrift").want(t, 0, "3 written")
		wantTree(t, filepath.Join(folder, "elsewhere"), "keep", "x/a_codec.go", "x/a_methods.go", "x/a_types.go")
	})
}

func TestGen_DoesNotWaitForPipes(t *testing.T) {
	folder := newFolder(t, "a.thrift", smallIDL, "gen/x/keep", "")
	if err := syscall.Mkfifo(filepath.Join(folder, "gen/x/a_codec.go"), 0o600); err != nil {
		t.Skip(err)
	}
	fulmar(t, folder, "gen", "a.thrift").want(t, exitFailed, "x/a_codec.go: is not a regular file")
	if err := os.Remove(filepath.Join(folder, "gen/x/a_codec.go")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(folder, "gen/x/pipe.go"), 0o600); err != nil {
		t.Fatal(err)
	}
	fulmar(t, folder, "gen", "a.thrift").want(t, 0, "3 written")
	module := newFolder(t, "a.thrift", smallIDL)
	if err := syscall.Mkfifo(filepath.Join(module, "go.mod"), 0o600); err != nil {
		t.Fatal(err)
	}
	fulmar(t, module, "gen", "a.thrift").want(t, exitFailed, "go.mod: is not a regular file\n")
}

// onFullDisk runs the command with files that can grow to 1024 bytes only.
func onFullDisk(t *testing.T, folder string, arguments ...string) result {
	t.Helper()
	run := command(t, folder, arguments...)
	run.Args = append([]string{"sh", "-c", `ulimit -f 1 && exec "$0" "$@"`, run.Path}, run.Args[1:]...)
	run.Path = "/bin/sh"
	return finish(t, run)
}

func TestGen_FullDiskChangesNothing(t *testing.T) {
	folder := newFolder(t, "a.thrift", "namespace go x\nstruct S { 1: i32 n }\n")
	fulmar(t, folder, "gen", "a.thrift").want(t, 0, "3 written")
	before, err := os.ReadFile(filepath.Join(folder, "gen/x/a_types.go"))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(folder, "a.thrift"), smallIDL)
	onFullDisk(t, folder, "gen", "a.thrift").want(t, exitFailed, "fulmar gen: gen/x/a_codec.go: file too large\n")
	onFullDisk(t, folder, "gen", "-o", "other/gen", "a.thrift").want(t, exitFailed, "fulmar gen: other/gen/x/a_codec.go: file too large\n")
	wantTree(t, folder, "a.thrift", "gen/x/a_codec.go", "gen/x/a_methods.go", "gen/x/a_types.go")
	if _, err := os.Stat(filepath.Join(folder, "other")); !os.IsNotExist(err) {
		t.Errorf("folders were left: %v", err)
	}
	if after, err := os.ReadFile(filepath.Join(folder, "gen/x/a_types.go")); err != nil || string(after) != string(before) {
		t.Errorf("a file has changed: %v\n%s", err, after)
	}
}

func TestFulmar_FailsWithoutStandardOutput(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	folder := newFolder(t, "a.thrift", smallIDL)
	for _, arguments := range [][]string{{"--version"}, {"version"}, {"gen", "a.thrift"}} {
		run := command(t, folder, arguments...)
		var stderr strings.Builder
		run.Stdout, run.Stderr = full, &stderr
		if err := run.Run(); run.ProcessState.ExitCode() != exitFailed || strings.Contains(stderr.String(), "--help") {
			t.Errorf("%v: %v\n%s", arguments, err, stderr.String())
		}
	}
}

func TestGen_SaysWhatCannotBeWritten(t *testing.T) {
	t.Run("folder in place of a file", func(t *testing.T) {
		folder := newFolder(t, "a.thrift", smallIDL, "gen/x/a_types.go/keep", "")
		fulmar(t, folder, "gen", "a.thrift").want(t, exitFailed, "x/a_types.go: is not a regular file")
		wantTree(t, filepath.Join(folder, "gen"), "x/a_types.go/keep")
	})
	t.Run("read-only folder", func(t *testing.T) {
		folder := newFolder(t, "a.thrift", smallIDL, "gen/x/keep", "")
		readOnly := filepath.Join(folder, "gen/x")
		if err := os.Chmod(readOnly, 0o555); err != nil {
			t.Fatal(err)
		}
		defer os.Chmod(readOnly, 0o755)
		run := command(t, folder, "gen", "a.thrift")
		if os.Geteuid() == 0 {
			// Nothing is read-only for root.
			const nobody = 65534
			run.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
			run.Path = reachable(t, run.Path)
			makeReadable(t, folder)
		}
		finish(t, run).want(t, exitFailed, "fulmar gen: gen/x/a_types.go: permission denied\n")
		wantTree(t, filepath.Join(folder, "gen"), "x/keep")
	})
}

// reachable copies an executable to where another user may execute it.
func reachable(t *testing.T, executable string) string {
	t.Helper()
	content, err := os.ReadFile(executable)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	makeReadable(t, folder)
	name := filepath.Join(folder, "fulmar")
	if err := os.WriteFile(name, content, 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

// makeReadable lets other users into a temporary folder and the one above it.
func makeReadable(t *testing.T, folder string) {
	t.Helper()
	for _, name := range []string{folder, filepath.Dir(folder)} {
		if err := os.Chmod(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
