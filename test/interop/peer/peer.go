// Package peer starts the peers in Python for tests.
package peer

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The peers: thriftpy2, and Apache Thrift with its protocol in Python or in C.
const (
	Thriftpy2         = "thriftpy2"
	Apache            = "apache"
	ApacheAccelerated = "apache-accelerated"
)

// Runtimes lists the peers.
func Runtimes() []string { return []string{Thriftpy2, Apache, ApacheAccelerated} }

// callTimeout bounds a run of all cases, which takes about a second.
const callTimeout = 2 * time.Minute

// Interpreter returns the Python interpreter that can import the peers: the one
// that FULMAR_PYTHON names, or the one in .venv at the root of the repository.
// It fails the test if there is none.
func Interpreter(t testing.TB) string {
	t.Helper()
	interpreter := interpreter()
	output, err := exec.Command(interpreter, "-c", "import thriftpy2, thrift").CombinedOutput()
	if err != nil {
		t.Fatalf("%s cannot import the peers: %v\n%sRun \"make test\", which installs them into .venv, or set FULMAR_PYTHON; test/interop/README.md has the commands.",
			interpreter, err, output)
	}
	return interpreter
}

func interpreter() string {
	if path := os.Getenv("FULMAR_PYTHON"); path != "" {
		return path
	}
	return filepath.Join(Folder(), "..", "..", ".venv", "bin", "python")
}

// Folder returns the folder test/interop.
func Folder() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(file))
}

// script is the command line tool that both kinds of peers are.
func script() string { return filepath.Join(Folder(), "python", "peer.py") }

// Serve starts a server and returns its address. It ends with the test.
func Serve(t testing.TB, name, transport string, arguments ...string) (address string) {
	t.Helper()
	command := exec.Command(interpreter(), append([]string{script(), "serve", "--runtime", name, "--transport", transport}, arguments...)...)
	// The server ends when its standard input does, even if this process is
	// killed and cannot end it.
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	command.Stderr = &stderr
	if err := command.Start(); err != nil {
		Interpreter(t) // which says what to do
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		err := command.Wait()
		if err != nil || t.Failed() {
			t.Logf("the server on %s ended (%v) and said:\n%s", name, err, stderr.String())
		}
	})
	var ready struct{ Port int }
	if err := json.NewDecoder(stdout).Decode(&ready); err != nil {
		Interpreter(t)
		t.Fatalf("the server on %s did not start: %v", name, err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(ready.Port))
}

// Outcome is what a client in Python says about one case.
type Outcome struct {
	Case   string
	OK     bool
	Detail string
}

// Call runs all cases against a Fulmar server at address and returns what the
// client says about each. That some failed is not an error of Call.
func Call(t testing.TB, name, transport, address string) []Outcome {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(interpreter(), script(), "call", "--runtime", name, "--transport", transport, "--host", host, "--port", port)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Start(); err != nil {
		Interpreter(t)
		t.Fatal(err)
	}
	watchdog := time.AfterFunc(callTimeout, func() { command.Process.Kill() })
	defer watchdog.Stop()
	// Exit code 1 is a case that failed, which its line says better.
	err = command.Wait()
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) || stderr.Len() > 0 {
		t.Fatalf("the client on %s ended: %v\n%s", name, err, stderr.String())
	}
	return parse(t, stdout.String())
}

func parse(t testing.TB, lines string) (outcomes []Outcome) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(lines))
	for {
		var outcome Outcome
		switch err := decoder.Decode(&outcome); {
		case errors.Is(err, io.EOF):
			return outcomes
		case err != nil:
			t.Fatalf("output of the client: %v\n%s", err, lines)
		}
		outcomes = append(outcomes, outcome)
	}
}
