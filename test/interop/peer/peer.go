// Package peer starts the peers for tests: programs in Python, and programs in
// Go from modules of their own, which have to be built first.
package peer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/test/interop/cases"
)

// The peers.
const (
	// Thriftpy2 reads the IDL at run time.
	Thriftpy2 = "thriftpy2"
	// Apache is Apache Thrift for Python with its protocol in Python.
	Apache = "apache"
	// ApacheAccelerated is the same with the protocol in C.
	ApacheAccelerated = "apache-accelerated"
	// ApacheGo is Apache Thrift for Go.
	ApacheGo = "apache-go"
	// Kitex has its TTHeader handlers installed, as its documents recommend.
	Kitex = "kitex"
	// KitexPlain is Kitex as it is unless it is told otherwise. Only behind a
	// TTHeader is there a difference.
	KitexPlain = "kitex-plain"
)

// Names lists the peers.
func Names() []string {
	return []string{Thriftpy2, Apache, ApacheAccelerated, ApacheGo, Kitex, KitexPlain}
}

// IsPython reports whether a peer is written in Python.
func IsPython(name string) bool {
	return slices.Contains([]string{Thriftpy2, Apache, ApacheAccelerated}, name)
}

// callTimeout bounds a run of all cases, which takes about a second.
const callTimeout = 2 * time.Minute

// stopTimeout bounds the end of a server: Kitex waits 5 seconds for its
// connections.
const stopTimeout = 30 * time.Second

// Folder returns the folder test/interop.
func Folder() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(file))
}

// Build builds the peers that are written in Go into bin at the root of the
// repository. What is built and up to date takes about a second.
func Build() error {
	for _, module := range []string{"kitex", "apache"} {
		command := exec.Command("go", "build", "-o", program(module), ".")
		command.Dir = filepath.Join(Folder(), "..", module)
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("test/%s does not build: %w\n%sRun \"make generate\" at the root of the repository first", module, err, output)
		}
	}
	return nil
}

// program returns the path of what Build builds from a module.
func program(module string) string { return filepath.Join(root(), "bin", module+"-peer") }

func root() string { return filepath.Join(Folder(), "..", "..") }

// command returns the program of a peer with the arguments that choose it.
func command(name, action, transport string) *exec.Cmd {
	switch name {
	case ApacheGo:
		return exec.Command(program("apache"), action, "-transport", transport)
	case Kitex:
		return exec.Command(program("kitex"), action, "-transport", transport)
	case KitexPlain:
		return exec.Command(program("kitex"), action, "-transport", transport, "-handlers=false")
	}
	script := filepath.Join(Folder(), "python", "peer.py")
	return exec.Command(interpreter(), script, action, "--runtime", name, "--transport", transport)
}

// Interpreter returns the Python interpreter that can import the peers: the one
// that FULMAR_PYTHON names, or the one in .venv at the root of the repository.
// It fails the test if there is none.
func Interpreter(t testing.TB) string {
	t.Helper()
	interpreter := interpreter()
	output, err := exec.Command(interpreter, "-c", "import thriftpy2, thrift, grpc").CombinedOutput()
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
	return filepath.Join(root(), ".venv", "bin", "python")
}

// explain fails the test with what to do if the interpreter is the reason why a
// peer does not start.
func explain(t testing.TB, name string) {
	t.Helper()
	if IsPython(name) {
		Interpreter(t)
	}
}

// Server is a running server of a peer.
type Server struct {
	Address string
	stdin   io.Closer
}

// Stop tells the server to stop, as its library does that. It does not wait: the
// end of the test does.
func (s *Server) Stop() { s.stdin.Close() }

// Serve starts a server and returns its address. It ends with the test.
func Serve(t testing.TB, name, transport string, arguments ...string) (address string) {
	t.Helper()
	return Start(t, name, transport, arguments...).Address
}

// Start starts a server. It ends with the test, or earlier with Stop.
func Start(t testing.TB, name, transport string, arguments ...string) *Server {
	t.Helper()
	command := command(name, "serve", transport)
	command.Args = append(command.Args, arguments...)
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
		explain(t, name)
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		watchdog := time.AfterFunc(stopTimeout, func() { command.Process.Kill() })
		defer watchdog.Stop()
		if err := command.Wait(); err != nil || t.Failed() {
			t.Logf("the server on %s ended (%v) and said:\n%s", name, err, stderr.String())
		}
	})
	var ready struct{ Port int }
	if err := json.NewDecoder(stdout).Decode(&ready); err != nil {
		explain(t, name)
		t.Fatalf("the server on %s did not start: %v", name, err)
	}
	return &Server{Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(ready.Port)), stdin: stdin}
}

// Call runs all cases of a file in test/interop, unless arguments say otherwise,
// against a Fulmar server at address and returns what the client says about
// each. That some failed is not an error of Call.
func Call(t testing.TB, name, transport, address, file string, arguments ...string) []cases.Outcome {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	command := command(name, "call", transport)
	// Both kinds of command lines take two dashes.
	command.Args = append(command.Args, "--port", port, "--cases", filepath.Join(Folder(), file))
	command.Args = append(command.Args, arguments...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Start(); err != nil {
		explain(t, name)
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

func parse(t testing.TB, lines string) (outcomes []cases.Outcome) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(lines))
	for {
		var outcome cases.Outcome
		switch err := decoder.Decode(&outcome); {
		case errors.Is(err, io.EOF):
			return outcomes
		case err != nil:
			t.Fatalf("output of the client: %v\n%s", err, lines)
		}
		outcomes = append(outcomes, outcome)
	}
}
