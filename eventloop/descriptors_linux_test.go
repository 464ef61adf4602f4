package eventloop_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// These tests lower the limit of file descriptors, in a process of their own.

const (
	childDescriptors = "FULMAR_TEST_DESCRIPTORS"
	childConnections = "FULMAR_TEST_CONNECTIONS"
	childAcceptor    = "FULMAR_TEST_ACCEPTOR"
	childPollers     = "FULMAR_TEST_POLLERS"
)

// TestDescriptorLimitChild is not a test but the server of the tests below. It
// answers each line on its standard input with its counters, between the lines of
// its log.
func TestDescriptorLimitChild(t *testing.T) {
	var limit syscall.Rlimit
	var connections int
	if _, err := fmt.Sscan(os.Getenv(childDescriptors), &limit.Cur); err != nil {
		t.Skip("runs as the child of other tests")
	}
	if _, err := fmt.Sscan(os.Getenv(childConnections), &connections); err != nil {
		t.Fatal(err)
	}
	limit.Max = limit.Cur
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.NewTextHandler(os.Stdout, nil))
	config := eventloop.Config{MaxConnections: connections, Logger: logger}
	if _, err := fmt.Sscan(os.Getenv(childPollers), &config.Pollers); err == nil {
		config.Engine = eventloop.EngineEpoll
	}
	var s *server
	if os.Getenv(childAcceptor) == acceptorOfCaller {
		socket, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s = serveSocket(t, socket, config, echoLines)
	} else {
		s = serve(t, config, echoLines)
	}
	fmt.Println("address", s.Addr())
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		stats := s.Stats()
		loop := stats.Loop
		fmt.Println("counters", stats.Open, stats.Refused, stats.AcceptErrors, loop.Buffers, loop.Wakeups+loop.Parks+loop.Spins)
	}
}

// Who has opened the listening socket: EngineEpoll accepts from one of its own in
// another way.
const (
	acceptorOfListen = "Listen"
	acceptorOfCaller = "NewListener"
)

// child is a process of this test program that plays a part of a test: a server
// with few file descriptors, or a client with many.
type child struct {
	t      *testing.T
	input  io.WriteCloser
	pipe   interface{ SetReadDeadline(time.Time) error }
	output *bufio.Scanner // of pipe
	addr   string         // of a server
	// end tells the process to end, by the end of its input, and waits for it.
	end func()
}

// counters are those of a server; polls counts what its pollers have done.
type counters struct{ open, refused, acceptErrors, buffers, polls int }

func startChild(t *testing.T, acceptor string, descriptors, connections int, environment ...string) *child {
	t.Helper()
	c := startProcess(t, "TestDescriptorLimitChild", append(environment, childAcceptor+"="+acceptor,
		fmt.Sprintf("%s=%d", childDescriptors, descriptors), fmt.Sprintf("%s=%d", childConnections, connections))...)
	c.addr = c.line("address ")
	return c
}

// startProcess runs a test that is the part of a child in a process of its own,
// until the end of the calling test at the latest.
func startProcess(t *testing.T, part string, environment ...string) *child {
	t.Helper()
	command := exec.Command(os.Args[0], "-test.run=^"+part+"$", "-test.v", "-engine", *testEngine, "-dispatch", *testDispatch)
	command.Env = append(os.Environ(), append(environment, fmt.Sprintf("GOMAXPROCS=%d", runtime.GOMAXPROCS(0)))...)
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, input: input, pipe: output.(*os.File), output: bufio.NewScanner(output)}
	c.end = sync.OnceFunc(func() {
		input.Close()
		if err := command.Wait(); err != nil {
			t.Errorf("child: %v", err)
		}
	})
	t.Cleanup(c.end)
	return c
}

// line returns the rest of the next line behind a text, and skips those without.
func (c *child) line(text string) string {
	c.t.Helper()
	if err := c.pipe.SetReadDeadline(time.Now().Add(patience)); err != nil {
		c.t.Fatal(err)
	}
	var skipped []string
	for c.output.Scan() {
		if _, rest, ok := strings.Cut(c.output.Text(), text); ok {
			return rest
		}
		skipped = append(skipped, c.output.Text())
	}
	c.t.Fatalf("the child did not write %q: %v, but %q", text, c.output.Err(), skipped)
	return ""
}

func (c *child) counters() (now counters) {
	c.t.Helper()
	if _, err := io.WriteString(c.input, "\n"); err != nil {
		c.t.Fatal(err)
	}
	if _, err := fmt.Sscan(c.line("counters "), &now.open, &now.refused, &now.acceptErrors, &now.buffers, &now.polls); err != nil {
		c.t.Fatal(err)
	}
	return now
}

func (c *child) connect() net.Conn {
	c.t.Helper()
	conn, err := net.Dial("tcp", c.addr)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { conn.Close() })
	return conn
}

// TestListener_SurvivesDescriptorExhaustion is scenario S16: 64 descriptors,
// 200 clients. Naive versions try again at once, for ever, or end.
func TestListener_SurvivesDescriptorExhaustion(t *testing.T) {
	for _, acceptor := range []string{acceptorOfListen, acceptorOfCaller} {
		t.Run(acceptor, func(t *testing.T) {
			t.Parallel() // it waits for pauses
			exhaustDescriptors(t, startChild(t, acceptor, 64, -1))
		})
	}
}

func exhaustDescriptors(t *testing.T, server *child) {
	existing := server.connect()
	send(t, existing, "before\n")
	expect(t, existing, "before\n")
	var clients []net.Conn
	for range 200 {
		client := server.connect() // the kernel takes them, the server cannot
		send(t, client, "hello\n")
		clients = append(clients, client)
	}
	// The pause has doubled from 5 ms to 1 s, which takes 9 failures, and is not
	// the last one. A server without pauses would have failed 100,000 times.
	server.line("retry_in=1s")
	full := server.counters()
	if full.acceptErrors < 9 || full.acceptErrors > 100 {
		t.Errorf("%d accepts failed until the pause was 1 s, want about 9", full.acceptErrors)
	}
	// From here on an accept fails each second, and a request comes. A poller that
	// went round would do it 100,000 times in each.
	server.line("retry_in=1s")
	send(t, existing, "during\n")
	expect(t, existing, "during\n")
	later := server.counters()
	if most := 20 * (1 + later.acceptErrors - full.acceptErrors); later.polls-full.polls > most || later.acceptErrors > 100 || later.open != full.open {
		t.Errorf("%+v became %+v while nothing could be accepted, want at most %d polls more", full, later, most)
	}

	served := server.counters().open - 1 // in order of connecting, existing is the first
	for _, client := range clients[:served] {
		client.Close()
	}
	expect(t, clients[served], "hello\n")
	send(t, existing, "after\n")
	expect(t, existing, "after\n")
}

func TestListener_DefaultLimitLeavesDescriptors(t *testing.T) {
	server := startChild(t, acceptorOfListen, limits.ConnectionsReserve+100, 0)
	for range 150 {
		server.connect()
	}
	var now counters
	eventually(t, "150 connections", func() bool {
		now = server.counters()
		return now.open+now.refused >= 150
	})
	if now.open != limits.ConnectionsPercent || now.acceptErrors != 0 {
		t.Errorf("%d connections are open, %d accepts failed, want %d %% of the 100 above the reserve", now.open, now.acceptErrors, limits.ConnectionsPercent)
	}
}

// TestListener_PollersThatCannotAllBeMadeLeaveNothing: there are descriptors for
// some of them only. The naive version forgets the read buffers of these, at every
// accept.
func TestListener_PollersThatCannotAllBeMadeLeaveNothing(t *testing.T) {
	server := startChild(t, acceptorOfListen, 64, -1, fmt.Sprintf("%s=%d", childPollers, limits.Pollers))
	for range 2 {
		server.connect()
		server.line("starting the pollers")
	}
	if now := server.counters(); now.acceptErrors != 2 || now.open != 0 || now.buffers != 0 {
		t.Errorf("%+v, want accepts that failed, no connection and no buffers", now)
	}
}
