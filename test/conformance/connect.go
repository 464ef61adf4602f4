package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// connectMode is what connectconformance tests: a server with its clients, or a client with
// its servers.
type connectMode struct {
	name string
	// cases is how many of its cases are about what connect.yaml says. A suite that runs fewer
	// says nothing about the others.
	cases int
	// skipped are patterns of cases that do not run.
	skipped []string
}

// connectModes returns both, with all cases.
func connectModes() []connectMode {
	return []connectMode{{name: "server", cases: 566}, {name: "client", cases: 634}}
}

// untimedConnectModes returns both without the cases in which somebody has to be fast: to
// cancel a call 5 ms after its request, before its answer comes 200 ms later, or to receive a
// request within half a second. A machine that others use too may not be.
func untimedConnectModes() []connectMode {
	const cancels = "Client Cancellation/**/"
	return []connectMode{
		{"server", 542, []string{"Deadline Propagation/**"}},
		{"client", 598, []string{"Deadline Propagation/**", cancels + "unary/cancel-after-close-send", cancels + "client-stream/cancel-after-close-send"}},
	}
}

// connect builds the program that the suite tests, and runs the suite in some modes.
func connect(ctx context.Context, modes []connectMode, out io.Writer) (err error) {
	folder, err := os.MkdirTemp("", "conformance")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	tested := filepath.Join(folder, "connect")
	if runtime.GOOS == "windows" {
		tested += ".exe"
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", tested, "./connect")
	if said, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the program that connectconformance tests: %w\n%s", err, said)
	}
	for _, mode := range modes {
		err = errors.Join(err, mode.run(ctx, tested, out))
	}
	return err
}

// run runs the suite in one mode. It fails if a case fails that is not in the list of those
// that are known to, and if one of these passes.
func (m connectMode) run(ctx context.Context, tested string, out io.Writer) error {
	fmt.Fprintf(out, "connectconformance in mode %s\n", m.name)
	counted := &caseCounter{out: out}
	arguments := []string{"tool", "connectconformance", "--mode", m.name, "--conf", "connect.yaml", "--known-failing", "@connect-" + m.name + "-failing.txt"}
	for _, pattern := range m.skipped {
		arguments = append(arguments, "--skip", pattern)
	}
	suite := exec.CommandContext(ctx, "go", append(arguments, "--", tested, m.name)...)
	suite.Stdout, suite.Stderr = counted, os.Stderr
	if err := suite.Run(); err != nil {
		return fmt.Errorf("connectconformance in mode %s: %w", m.name, err)
	}
	if cases := counted.cases(); cases != m.cases {
		return fmt.Errorf("connectconformance in mode %s ran %d cases, want %d", m.name, cases, m.cases)
	}
	return nil
}

// caseCounter finds how many cases there were in what the suite says, and passes that on.
type caseCounter struct {
	out  io.Writer
	said []byte
}

// Write implements io.Writer.
func (c *caseCounter) Write(b []byte) (int, error) {
	c.said = append(c.said, b...)
	return c.out.Write(b)
}

// cases returns how many there were, 0 if it was not said.
func (c *caseCounter) cases() (cases int) {
	const before = "Total cases: "
	at := bytes.LastIndex(c.said, []byte(before))
	if at < 0 {
		return 0
	}
	_, _ = fmt.Sscanf(string(c.said[at+len(before):]), "%d", &cases)
	return cases
}
