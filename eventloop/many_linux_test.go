package eventloop_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/assert"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

// Many connections at once: more than one client process could open.

const (
	manyConnections = 18_000
	// fewConnections is what -short opens, and what makes the test worth while.
	fewConnections = 2000
	// manyClients is how many processes open them.
	manyClients = 2
	// perSource is how many connections have the same source address, which has
	// 28,000 ports for everybody who uses it.
	perSource = 1000
	// spareDescriptors are for everything but connections.
	spareDescriptors = 200

	// openBytesMax bounds the heap that an idle connection takes. closedBytesMax
	// bounds what it leaves to a listener that goes on: the table of connections
	// keeps its size, a Conn that something still refers to would be 512 bytes.
	// onceBytesMax is for what does not depend on connections, such as the pipes
	// to the clients; it was 200 to 300 KiB.
	openBytesMax   = 2 << 10
	closedBytesMax = 256
	onceBytesMax   = 512 << 10

	manyAddress = "FULMAR_TEST_MANY_ADDRESS"
	manyFirst   = "FULMAR_TEST_MANY_FIRST"
	manyCount   = "FULMAR_TEST_MANY_COUNT"
)

// TestListener_ManyConnections serves 18,000 connections of two processes with the
// defaults of EngineEpoll. All are open at the same time and each gets its own
// reply; an idle one costs little heap and no goroutine; and when the processes
// have ended, nothing is left.
func TestListener_ManyConnections(t *testing.T) {
	connections := affordableConnections(t, manyConnections, 1)
	connections -= connections % manyClients
	baseline := testkit.NewBaseline()
	// MaxConnections would be a tenth less than the descriptors suffice for.
	s := serve(t, eventloop.Config{Engine: eventloop.EngineEpoll, MaxConnections: connections}, echoLines)
	before, goroutines := heap(), runtime.NumGoroutine()

	var clients []*child
	for first := 0; first < connections; first += connections / manyClients {
		clients = append(clients, startProcess(t, "TestManyConnectionsChild", manyAddress+"="+s.Addr().String(),
			fmt.Sprintf("%s=%d", manyFirst, first), fmt.Sprintf("%s=%d", manyCount, connections/manyClients)))
	}
	for _, client := range clients {
		client.line("all replies are right")
	}
	if stats := s.Stats(); stats.Open != uint64(connections) || stats.Refused != 0 || stats.AcceptErrors != 0 {
		t.Errorf("%d of %d connections are open, %d were refused, %d accepts failed", stats.Open, connections, stats.Refused, stats.AcceptErrors)
	}
	// Those that wrote the last replies may be about to end.
	eventually(t, "no goroutine for an idle connection", func() bool { return runtime.NumGoroutine()-goroutines <= connections/100 })
	open := heap() - before

	for _, client := range clients {
		client.end()
	}
	for range connections {
		if err := receive(t, s.closed, "the end of all connections"); !errors.Is(err, syscall.ECONNRESET) {
			t.Fatalf("a connection ended with %v, want a reset", err)
		}
	}
	eventually(t, "no open connection", func() bool { return s.Stats().Open == 0 })
	closed, each := heap()-before, int64(connections)
	t.Logf("%d connections: %d bytes of heap for each while it is open and idle, %d after its end", connections, open/each, closed/each)
	if assert.Enabled {
		t.Log("the checks of this build take memory of their own, which is not judged")
	} else if open > openBytesMax*each || closed > closedBytesMax*each+onceBytesMax {
		t.Errorf("a connection takes %d bytes of heap and leaves %d, want at most %d and %d", open/each, closed/each, openBytesMax, closedBytesMax)
	}
	s.stop()
	if err := baseline.Check(patience); err != nil {
		t.Error(err)
	}
}

// affordableConnections is how many connections, at most this many, the descriptors
// of this process suffice for if each takes so many. It raises the limit of them
// until the end of the test.
func affordableConnections(t *testing.T, connections, descriptorsEach int) int {
	t.Helper()
	if testing.Short() {
		connections = min(connections, fewConnections)
		t.Logf("%d connections, because of -short", connections)
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if need := uint64(connections*descriptorsEach + spareDescriptors); limit.Max < need {
		t.Logf("%d connections need %d file descriptors, the hard limit is %d", connections, need, limit.Max)
		if limit.Max < uint64(fewConnections*descriptorsEach+spareDescriptors) {
			t.Skipf("fewer than %d connections say little", fewConnections)
		}
		connections = (int(limit.Max) - spareDescriptors) / descriptorsEach
	}
	if need := uint64(connections*descriptorsEach + spareDescriptors); limit.Cur < need {
		raised := syscall.Rlimit{Cur: need, Max: limit.Max}
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
				t.Error(err)
			}
		})
	}
	return connections
}

// TestManyConnectionsChild is not a test but a client of the one above. It keeps
// its connections open until its standard input ends.
func TestManyConnectionsChild(t *testing.T) {
	address := os.Getenv(manyAddress)
	if address == "" {
		t.Skip("runs as the child of another test")
	}
	var first, count int
	if _, err := fmt.Sscan(os.Getenv(manyFirst)+" "+os.Getenv(manyCount), &first, &count); err != nil {
		t.Fatal(err)
	}
	var source net.TCPAddr
	dialer := net.Dialer{LocalAddr: &source, Timeout: patience, KeepAlive: -1}
	for number := first; number < first+count; number++ {
		source.IP = net.IPv4(127, 0, 0, byte(2+number/perSource))
		conn, err := dialer.Dial("tcp", address)
		if err != nil {
			t.Fatalf("connection %d: %v", number, err)
		}
		defer conn.Close()
		// A reset leaves no port behind; otherwise each would be taken for a minute.
		if err := conn.(*net.TCPConn).SetLinger(0); err != nil {
			t.Fatalf("connection %d: %v", number, err)
		}
		line := fmt.Sprintf("this is connection %d\n", number)
		conn.SetDeadline(time.Now().Add(patience))
		if _, err := io.WriteString(conn, line); err != nil {
			t.Fatalf("connection %d: %v", number, err)
		}
		if reply, err := bufio.NewReaderSize(conn, 64).ReadString('\n'); err != nil || reply != line {
			t.Fatalf("connection %d got %q, %v", number, reply, err)
		}
	}
	fmt.Println("all replies are right")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		t.Fatal(err)
	}
}
