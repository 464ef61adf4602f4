package eventloop_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
)

// These tests lower the limit of file descriptors, in a process of their own.

const (
	childDescriptors = "FULMAR_TEST_DESCRIPTORS"
	childConnections = "FULMAR_TEST_CONNECTIONS"
)

// TestDescriptorLimitChild is not a test but the server of the tests below. It
// answers each line on its standard input with its counters.
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
	s := serve(t, eventloop.Config{MaxConnections: connections, Logger: silence()}, echoLines)
	fmt.Println("address", s.Addr())
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			t.Fatal(err)
		}
		stats := s.Stats()
		fmt.Println("counters", stats.Open, stats.Refused, stats.AcceptErrors, usage.Utime.Nano()+usage.Stime.Nano())
	}
}

// child is a server with few file descriptors.
type child struct {
	t      *testing.T
	input  io.WriteCloser
	output *bufio.Scanner
	addr   string
}

type counters struct {
	open, refused, acceptErrors int
	processor                   time.Duration
}

func startChild(t *testing.T, descriptors, connections int) *child {
	t.Helper()
	command := exec.Command(os.Args[0], "-test.run=^TestDescriptorLimitChild$", "-test.v")
	command.Env = append(os.Environ(),
		fmt.Sprintf("%s=%d", childDescriptors, descriptors), fmt.Sprintf("%s=%d", childConnections, connections))
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
	c := &child{t: t, input: input, output: bufio.NewScanner(output)}
	t.Cleanup(func() {
		input.Close()
		if err := command.Wait(); err != nil {
			t.Errorf("child: %v", err)
		}
	})
	c.addr = c.line("address ")
	return c
}

// line returns the rest of the next line with a prefix.
func (c *child) line(prefix string) string {
	c.t.Helper()
	for c.output.Scan() {
		if rest, ok := strings.CutPrefix(c.output.Text(), prefix); ok {
			return rest
		}
	}
	c.t.Fatalf("the child ended before it wrote %q", prefix)
	return ""
}

func (c *child) counters() (now counters) {
	c.t.Helper()
	if _, err := io.WriteString(c.input, "\n"); err != nil {
		c.t.Fatal(err)
	}
	if _, err := fmt.Sscan(c.line("counters "), &now.open, &now.refused, &now.acceptErrors, &now.processor); err != nil {
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
// 200 clients.
func TestListener_SurvivesDescriptorExhaustion(t *testing.T) {
	server := startChild(t, 64, -1)
	existing := server.connect()
	send(t, existing, "before\n")
	expect(t, existing, "before\n")
	var clients []net.Conn
	for range 200 {
		client := server.connect() // the kernel takes them, the server cannot
		send(t, client, "hello\n")
		clients = append(clients, client)
	}
	for server.counters().acceptErrors == 0 {
		continue
	}

	before, begin := server.counters(), time.Now()
	<-time.After(time.Second)
	after := server.counters()
	if used, passed := after.processor-before.processor, time.Since(begin); used > passed/10 {
		t.Errorf("%v of processor time in %v while no descriptor was free", used, passed)
	}
	if after.acceptErrors == before.acceptErrors {
		t.Error("the server does not try to accept")
	}
	send(t, existing, "during\n")
	expect(t, existing, "during\n")

	freed := time.Now()
	served := after.open - 1 // in order of connecting, existing is the first
	for _, client := range clients[:served] {
		client.Close()
	}
	expect(t, clients[served], "hello\n")
	// A pause is at most 1 s; the rest is for a busy machine.
	if got := time.Since(freed); got > 2*time.Second {
		t.Errorf("accepted again after %v", got)
	}
	send(t, existing, "after\n")
	expect(t, existing, "after\n")
}

func TestListener_DefaultLimitLeavesDescriptors(t *testing.T) {
	server := startChild(t, 164, 0)
	for range 150 {
		server.connect()
	}
	var now counters
	for now.open+now.refused < 150 {
		now = server.counters()
	}
	if now.open != 90 || now.acceptErrors != 0 {
		t.Errorf("%d connections are open, %d accepts failed, want 90 %% of the 100 above the reserve", now.open, now.acceptErrors)
	}
}
