package main

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/examples/hello/gen/greeter"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

// childMark makes a process of this test program the example itself.
const childMark = "FULMAR_TEST_HELLO"

func TestMain(m *testing.M) {
	if os.Getenv(childMark) != "" {
		main()
		return
	}
	testkit.Main(m)
}

// patience bounds the wait for the program: who waits this long has failed.
const patience = 20 * time.Second

// TestMain_Serves starts the program as a process and calls it once.
func TestMain_Serves(t *testing.T) {
	address := freeAddress(t)
	ended := start(t, address)
	client, err := fulmar.NewClient(fulmar.ClientConfig{Target: address})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	awaitListener(ctx, t, address, ended)
	greeting, err := greeter.NewGreeterClient(client).Greet(ctx, "Ada")
	if err != nil || greeting != "Hello, Ada!" {
		t.Errorf("greeting %q, %v", greeting, err)
	}
}

// freeAddress is one that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// start runs the program until the end of the test. What it returns is closed
// when the program has ended, which it does by itself only if it fails.
func start(t *testing.T, address string) <-chan struct{} {
	t.Helper()
	var output strings.Builder
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), childMark+"=1", "ADDRESS="+address)
	command.Stderr = &output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var exit *exec.ExitError
		if err := command.Wait(); err != nil && !errors.As(err, &exit) {
			t.Errorf("wait: %v", err)
		}
	}()
	t.Cleanup(func() {
		if err := command.Process.Kill(); err != nil {
			t.Errorf("the program has ended before it was told to: %v", err)
		}
		<-ended
		if output.Len() > 0 {
			t.Errorf("the program complains: %s", output.String())
		}
	})
	return ended
}

// awaitListener returns when somebody listens on address: nothing else tells
// that the program is ready.
func awaitListener(ctx context.Context, t *testing.T, address string, ended <-chan struct{}) {
	t.Helper()
	var dialer net.Dialer
	for {
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			conn.Close()
			return
		}
		select {
		case <-ended:
			t.Fatal("the program has ended")
		case <-ctx.Done():
			t.Fatalf("waited %v for the program to listen: %v", patience, err)
		default:
		}
	}
}

// TestReadme_BeginsWithThisProgram: the two commands, and behind them the whole
// of main.go.
func TestReadme_BeginsWithThisProgram(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	begin := regexp.MustCompile("(?s)^# Fulmar\n\n[^\n]+\n\n    make demo [^\n]+\n    make test [^\n]+\n\n[^\n]+\n\n```go\n(.*?)```\n").FindSubmatch(readme)
	if begin == nil {
		t.Fatal("README.md does not begin with one line, the two commands, one line and a Go program")
	}
	if got := string(begin[1]); got != string(program) {
		t.Errorf("README.md shows\n%s\nmain.go is\n%s", got, program)
	}
}
