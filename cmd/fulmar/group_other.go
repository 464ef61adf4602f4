//go:build !unix

package main

import "os/exec"

// inGroup returns what kills the program. There are no process groups here: what
// it started is left, and loses its output after a while.
func inGroup(run *exec.Cmd) (kill func() error) {
	return func() error { return run.Process.Kill() }
}
