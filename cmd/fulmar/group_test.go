//go:build unix

package main

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestPlugin_TakesItsChildrenWithIt has programs that leave another one behind,
// which holds a pipe as long as it lives: one that is killed itself, because it
// says too much, and one that answers and ends.
func TestPlugin_TakesItsChildrenWithIt(t *testing.T) {
	for name, want := range map[string]string{
		"flood":  "fulmar-gen-flood: the response is too long (limit 134217728 bytes)",
		"parent": "fulmar-gen-parent: ended, but something that it started still has its output open after 2s",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := newFolder(t, "a.thrift", "struct S {}")
			pipe := filepath.Join(t.TempDir(), "pipe")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Skip(err)
			}
			run := command(t, folder, "gen", "--plugin", name, "a.thrift")
			run.Env = append(run.Env, "PATH="+pluginPath(t, name, "child"), pipeVariable+"="+pipe)
			finish(t, run).want(t, exitFailed, want)
			// This does not end while somebody holds the other end.
			held, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer held.Close()
			if content, err := io.ReadAll(held); err != nil || len(content) > 0 {
				t.Errorf("%q, %v", content, err)
			}
		})
	}
}
