//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// inGroup makes a command start in a process group of its own, and returns what
// kills all of that.
func inGroup(run *exec.Cmd) (kill func() error) {
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return func() error { return syscall.Kill(-run.Process.Pid, syscall.SIGKILL) }
}
