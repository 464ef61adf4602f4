package eventloop_test

import (
	"errors"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/assert"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

// Crowds of peers that do little or nothing: scenarios S4 to S6.

const (
	// slowPeers, idlePeers and stalledPeers are how many, as far as there are
	// descriptors: both ends of a connection are in this process.
	slowPeers    = 5_000
	idlePeers    = 9_000
	stalledPeers = 50

	// slowPeerBytesMax bounds heap and stacks that a slow peer costs, its deadline
	// included.
	slowPeerBytesMax = 6 << 10

	// acceptBacklog is how many connections may wait for the server without a pause
	// of a second: the kernel drops a SYN where the queue of 4,096 is full.
	acceptBacklog = 1_000
)

// crowd is many clients. They are bare sockets, so that the heap is the server's.
type crowd struct {
	t       *testing.T
	sockets []int
}

// crowdSize is how many of so many peers a test can have.
func crowdSize(t *testing.T, peers int) int {
	t.Helper()
	switch {
	case assert.Enabled:
		t.Logf("%d peers, because the checks of this build are slow, and the race detector ends a process with more than 8,128 goroutines", fewConnections)
		peers = fewConnections
	case testing.Short():
		t.Logf("%d peers, for a short run", fewConnections)
		peers = fewConnections
	}
	return affordableConnections(t, peers, 2)
}

// connectCrowd connects clients whose receive buffer has this many bytes, 0 for the
// system's default. It returns when all are served.
func connectCrowd(t *testing.T, s *server, size, receiveBytes int) *crowd {
	t.Helper()
	c := &crowd{t: t, sockets: make([]int, 0, size)}
	t.Cleanup(c.close)
	address := &unix.SockaddrInet4{Port: s.Addr().(*net.TCPAddr).Port, Addr: [4]byte{127, 0, 0, 1}}
	before := s.Stats().Accepted
	for number := range size {
		socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		c.sockets = append(c.sockets, socket)
		limit := unix.NsecToTimeval(patience.Nanoseconds())
		err = errors.Join(
			unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit),
			unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit),
			// A reset leaves no port behind for a minute.
			unix.SetsockoptLinger(socket, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}))
		if err == nil && receiveBytes > 0 {
			err = unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBytes)
		}
		if err == nil {
			_, err = uninterrupted(func() (int, error) { return 0, unix.Connect(socket, address) })
		}
		if err != nil {
			t.Fatalf("client %d: %v", number, err)
		}
		if connected := number + 1; connected%acceptBacklog == 0 || connected == size {
			eventually(t, "the server to accept", func() bool { return s.Stats().Accepted-before == uint64(connected) })
		}
	}
	return c
}

// uninterrupted makes a system call that a signal, such as one of Go's scheduler,
// must not end.
func uninterrupted(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != unix.EINTR {
			return n, err
		}
	}
}

// close resets all connections.
func (c *crowd) close() {
	for _, socket := range c.sockets {
		if err := unix.Close(socket); err != nil {
			c.t.Error(err)
		}
	}
	c.sockets = nil
}

func (c *crowd) send(number int, bytes []byte) {
	c.t.Helper()
	n, err := uninterrupted(func() (int, error) { return unix.Write(c.sockets[number], bytes) })
	if n != len(bytes) || err != nil {
		c.t.Fatalf("client %d: write = %d, %v", number, n, err)
	}
}

func (c *crowd) expectByte(number int, want byte) {
	c.t.Helper()
	var got [2]byte
	n, err := uninterrupted(func() (int, error) { return unix.Read(c.sockets[number], got[:]) })
	if n != 1 || got[0] != want || err != nil {
		c.t.Fatalf("client %d: read %q, %v, want %q", number, got[:max(n, 0)], err, want)
	}
}

// memory returns what is reachable, stacks included.
func memory() int64 {
	reachable := heap()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return reachable + int64(stats.StackInuse)
}

// onBothEngines runs a test on each, and checks that it leaves nothing.
func onBothEngines(t *testing.T, test func(*testing.T, eventloop.Config)) {
	for name, engine := range map[string]eventloop.Engine{"epoll": eventloop.EngineEpoll, "std": eventloop.EngineStd} {
		t.Run(name, func(t *testing.T) {
			baseline := testkit.NewBaseline()
			test(t, eventloop.Config{Engine: engine, MaxConnections: -1, Logger: silence()})
			if err := baseline.Check(patience); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCrowd_SlowPeers is scenario S4: of thousands of peers each has sent nothing,
// or the beginning of a message, or sends a byte now and then. They cost little
// memory, a good connection is served meanwhile, and the read deadline of the guide
// ends them all. The naive version keeps a read buffer for each.
func TestCrowd_SlowPeers(t *testing.T) {
	size := crowdSize(t, slowPeers)
	onBothEngines(t, func(t *testing.T, config eventloop.Config) {
		var late atomic.Bool
		config.OnOpen = func(conn *eventloop.Conn) { conn.SetReadDeadline(time.Now().Add(time.Hour)) }
		s := serve(t, config, func(conn *eventloop.Conn) error {
			if late.Load() {
				conn.SetReadDeadline(time.Now().Add(time.Millisecond))
			}
			return acknowledge(conn)
		})
		good := s.connect()
		before := memory()
		peers := connectCrowd(t, s, size, 0)
		begun := sized(1 << 20)[:100]
		sent := uint64(0)
		for number := range size {
			if number%3 == 1 {
				peers.send(number, begun)
				sent += uint64(len(begun))
			}
		}
		request := sized(128)
		for i := range 200 {
			for number := 2 + 3*i; number < size; number += 3 * 200 { // those that send now and then
				peers.send(number, []byte{0})
				sent++
			}
			if _, err := good.Write(request); err != nil {
				t.Fatal(err)
			}
			expect(t, good, ".")
			sent += uint64(len(request))
		}
		eventually(t, "all bytes", func() bool { return s.Stats().BytesRead == sent })
		each := (memory() - before) / int64(size)
		t.Logf("%d slow peers cost %d bytes each", size, each)
		if assert.Enabled {
			t.Log("the checks of this build take memory of their own, which is not judged")
		} else if each > slowPeerBytesMax {
			t.Errorf("want at most %d", slowPeerBytesMax)
		}

		late.Store(true)
		for conn := range s.Connections {
			if conn.RemoteAddr().String() != good.LocalAddr().String() {
				conn.Wake()
			}
		}
		for range size {
			if err := receive(t, s.closed, "the end of all slow peers"); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("a slow peer ended with %v", err)
			}
		}
		late.Store(false)
		if _, err := good.Write(request); err != nil {
			t.Fatal(err)
		}
		expect(t, good, ".")
		peers.close()
		good.Close()
		s.stop()
	})
}

// TestCrowd_IdlePeersAllWakeUp is scenario S5: thousands of connections are idle,
// and then all have something to say at once. What an idle one costs is in
// TestListener_ManyConnections.
func TestCrowd_IdlePeersAllWakeUp(t *testing.T) {
	size := crowdSize(t, idlePeers)
	onBothEngines(t, func(t *testing.T, config eventloop.Config) {
		s := serve(t, config, func(conn *eventloop.Conn) error {
			conn.Writer().Append(conn.Reader().Buffered())
			return conn.Reader().Skip(conn.Reader().Len())
		})
		before := runtime.NumGoroutine()
		peers := connectCrowd(t, s, size, 0)
		// Those that served the first accepts may be about to end.
		if config.Engine == eventloop.EngineEpoll {
			eventually(t, "no goroutine for an idle connection", func() bool { return runtime.NumGoroutine()-before <= size/100 })
		}
		for number := range size {
			peers.send(number, []byte{byte(number)})
		}
		for number := range size {
			peers.expectByte(number, byte(number))
		}
		if got := s.Stats().Open; got != uint64(size) {
			t.Errorf("%d of %d connections are open", got, size)
		}
		peers.close()
		for range size {
			receive(t, s.closed, "the end of all connections")
		}
		s.stop()
	})
}

// TestCrowd_StalledPeers is scenario S6: peers ask for a thousand replies of 1 MiB and
// read none. Each costs the reply that waits, however much it has asked for; others
// are served meanwhile; and all end by the stall timeout.
func TestCrowd_StalledPeers(t *testing.T) {
	const (
		requests = 1000
		reply    = 1 << 20
		// takenMax is how many replies the kernel takes for a peer that does not
		// read, generously: its buffers grow to 10 MiB on both sides together.
		takenMax = 32
	)
	onDispatches(t, func(t *testing.T, config eventloop.Config) {
		var handled atomic.Int64
		config.WriteStallTimeout, config.Logger = 300*time.Millisecond, silence()
		s := serve(t, config, func(conn *eventloop.Conn) error {
			if conn.Reader().Buffered()[0] == 'e' {
				return echoLines(conn)
			}
			handled.Add(1)
			conn.Writer().Insert(make([]byte, reply))
			return conn.Reader().Skip(1)
		})
		good := s.connect()
		before := memory()
		peers := connectCrowd(t, s, stalledPeers, 4<<10)
		for number := range stalledPeers {
			peers.send(number, make([]byte, requests))
		}
		eventually(t, "a reply for each", func() bool { return handled.Load() >= stalledPeers })
		for range 200 {
			send(t, good, "echo\n")
			expect(t, good, "echo\n")
		}
		each := (memory() - before) / stalledPeers
		t.Logf("%d peers that read nothing cost %d bytes each", stalledPeers, each)
		if most := int64(reply + limits.UnsentBytes); each > most {
			t.Errorf("want at most %d", most)
		}
		for range stalledPeers {
			if err := receive(t, s.closed, "the end of all that read nothing"); !errors.Is(err, eventloop.ErrWriteStalled) {
				t.Errorf("a peer that reads nothing ended with %v", err)
			}
		}
		if got := s.Stats().WriteStalls; got != stalledPeers {
			t.Errorf("WriteStalls = %d, want %d", got, stalledPeers)
		}
		if got := handled.Load(); got > stalledPeers*takenMax {
			t.Errorf("%d requests of %d were handled for peers that read nothing", got, stalledPeers*requests)
		}
		send(t, good, "echo\n")
		expect(t, good, "echo\n")
	})
}
