package eventloop_test

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fulmar-rpc/fulmar/eventloop"
)

// option returns an option of a connection's socket.
func option(t *testing.T, conn *eventloop.Conn, level, name int) (value int) {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Control(func(fd uintptr) {
		var err error
		if value, err = unix.GetsockoptInt(int(fd), level, name); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// optionTests are options of connections, in milliseconds and seconds.
func optionTests() map[string]optionTest {
	usual := probes{10, 5, 2}
	return map[string]optionTest{
		"default": {eventloop.Config{}, 20_000, usual},
		"set":     {eventloop.Config{UserTimeout: 40 * time.Second, KeepAlive: 7 * time.Second}, 40_000, probes{7, 4, 2}},
		"off":     {eventloop.Config{UserTimeout: -1, KeepAlive: -1}, 0, probes{}},
		// The largest and the smallest that the kernel takes, also where a default
		// depends on another.
		"longest":          {eventloop.Config{UserTimeout: math.MaxInt32 * time.Millisecond, KeepAlive: 32_767 * time.Second}, math.MaxInt32, probes{32_767, 16_384, 2}},
		"shortest":         {eventloop.Config{UserTimeout: time.Millisecond, KeepAlive: time.Second}, 1, probes{1, 1, 2}},
		"a short stall":    {eventloop.Config{WriteStallTimeout: 10 * time.Second}, 20_000, usual},
		"a long stall":     {eventloop.Config{WriteStallTimeout: 25 * time.Second}, 25_000, usual},
		"stall of 30 days": {eventloop.Config{WriteStallTimeout: 30 * 24 * time.Hour}, math.MaxInt32, usual},
		"stall for ever":   {eventloop.Config{WriteStallTimeout: math.MaxInt64}, math.MaxInt32, usual},
		"no stall":         {eventloop.Config{WriteStallTimeout: -1}, 0, usual},
	}
}

type optionTest struct {
	config eventloop.Config
	user   int
	probes probes
}

// probes are those of keep-alive; the zero value if it is off.
type probes struct{ idle, interval, count int }

func (test optionTest) check(t *testing.T, conn *eventloop.Conn) {
	t.Helper()
	if got := option(t, conn, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT); got != test.user {
		t.Errorf("user timeout %d ms, want %d", got, test.user)
	}
	var got probes
	if option(t, conn, unix.SOL_SOCKET, unix.SO_KEEPALIVE) != 0 {
		got.idle = option(t, conn, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE)
		got.interval = option(t, conn, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL)
		got.count = option(t, conn, unix.IPPROTO_TCP, unix.TCP_KEEPCNT)
	}
	if got != test.probes {
		t.Errorf("keep-alive %+v, want %+v", got, test.probes)
	}
	if got := option(t, conn, unix.IPPROTO_TCP, unix.TCP_NODELAY); got != 1 {
		t.Errorf("TCP_NODELAY %d", got)
	}
}

// onOptions runs a test for all options on both engines, which accept in ways of
// their own.
func onOptions(t *testing.T, run func(*testing.T, optionTest)) {
	for name, test := range optionTests() {
		for engine, number := range map[string]eventloop.Engine{"epoll": eventloop.EngineEpoll, "std": eventloop.EngineStd} {
			test.config.Engine = number
			t.Run(name+"/"+engine, func(t *testing.T) { run(t, test) })
		}
	}
}

// TestListen_SetsOptionsOfConnections looks at the sockets of both ends.
func TestListen_SetsOptionsOfConnections(t *testing.T) {
	onOptions(t, func(t *testing.T, test optionTest) {
		conns := make(chan *eventloop.Conn, 1)
		config := test.config
		config.OnOpen = func(c *eventloop.Conn) { conns <- c }
		s := serve(t, config, echoLines)
		dialled, err := eventloop.Dial(t.Context(), "tcp", s.Addr().String(), test.config)
		if err != nil {
			t.Fatal(err)
		}
		defer dialled.Close()
		test.check(t, dialled)
		test.check(t, receive(t, conns, "a connection"))
	})
}

// TestListenFile_SetsOptionsOfConnections: the socket has those of whoever opened
// it, which the naive version keeps.
func TestListenFile_SetsOptionsOfConnections(t *testing.T) {
	onOptions(t, func(t *testing.T, test optionTest) {
		other, err := eventloop.Listen("tcp", "127.0.0.1:0", eventloop.Config{UserTimeout: 50 * time.Second, KeepAlive: 9 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		file, err := other.File()
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		conns := make(chan *eventloop.Conn, 1)
		config := test.config
		config.OnOpen = func(c *eventloop.Conn) { conns <- c }
		s := newServer(t, &config)
		listener, err := eventloop.ListenFile(file, config)
		if err != nil {
			t.Fatal(err)
		}
		s.dial = func() (net.Conn, error) { return net.Dial("tcp", listener.Addr().String()) }
		s.start(listener, echoLines)
		s.connect()
		test.check(t, receive(t, conns, "a connection"))
	})
}

func TestListen_ReusePort(t *testing.T) {
	first := serve(t, eventloop.Config{ReusePort: true}, echoLines)
	address := first.Addr().String()
	second := serveNetwork(t, "tcp", address, eventloop.Config{ReusePort: true}, echoLines)
	if _, err := eventloop.Listen("tcp", address, eventloop.Config{}); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("a third without the option: %v", err)
	}
	// The system chooses by the client's port, so with 64 of them each has some.
	for range 64 {
		client := first.connect()
		send(t, client, "x\n")
		expect(t, client, "x\n")
	}
	if a, b := first.Stats().Accepted, second.Stats().Accepted; a == 0 || b == 0 || a+b != 64 {
		t.Errorf("they accepted %d and %d connections of 64", a, b)
	}
}

// TestListenFile_GoesOnInAnotherListener: while one hands over to the other
// every connection is served.
func TestListenFile_GoesOnInAnotherListener(t *testing.T) {
	for network, address := range map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(t.TempDir(), "socket")} {
		t.Run(network, func(t *testing.T) {
			first := serveNetwork(t, network, address, eventloop.Config{}, echoLines)
			waiting := first.connect()
			send(t, waiting, "first\n")
			expect(t, waiting, "first\n")
			file, err := first.File()
			if err != nil {
				t.Fatal(err)
			}
			if err := first.StopAccepting(); err != nil {
				t.Fatal(err)
			}
			between := first.connect() // nobody accepts at this moment
			send(t, between, "between\n")
			listener, err := eventloop.ListenFile(file, eventloop.Config{})
			if err != nil {
				t.Fatal(err)
			}
			if err := file.Close(); err != nil {
				t.Fatal(err)
			}
			second := newServer(t, &eventloop.Config{})
			second.start(listener, echoLines)
			expect(t, between, "between\n")
			send(t, waiting, "still here\n")
			expect(t, waiting, "still here\n")
			if got, want := listener.Addr().String(), first.Addr().String(); got != want {
				t.Errorf("the second listens on %s, the first on %s", got, want)
			}
		})
	}
}

// TestListenFile_InAnotherProcess passes the socket as a service manager does.
func TestListenFile_InAnotherProcess(t *testing.T) {
	if os.Getenv("FULMAR_TEST_INHERIT") != "" {
		listener, err := eventloop.ListenFile(os.NewFile(3, "inherited"), eventloop.Config{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			stop()
		}()
		if err := listener.Serve(ctx, echoLines); err != nil {
			t.Fatal(err)
		}
		return
	}
	listener, err := eventloop.Listen("tcp", "127.0.0.1:0", eventloop.Config{})
	if err != nil {
		t.Fatal(err)
	}
	file, err := listener.File()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env, child.ExtraFiles = append(os.Environ(), "FULMAR_TEST_INHERIT=1"), []*os.File{file}
	var output strings.Builder
	child.Stdout, child.Stderr = &output, &output
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = file.Close(), listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	send(t, conn, "hello\n")
	expect(t, conn, "hello\n")
	_ = stdin.Close()
	if err := child.Wait(); err != nil {
		t.Errorf("the other process: %v\n%s", err, output.String())
	}
}

func TestListenFile_Refuses(t *testing.T) {
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := eventloop.ListenFile(file, eventloop.Config{}); err == nil || !strings.Contains(err.Error(), "listen file") {
		t.Errorf("a file that is no socket: %v", err)
	}
	if _, err := eventloop.ListenFile(file, eventloop.Config{ReusePort: true}); err == nil || !strings.Contains(err.Error(), "ReusePort") {
		t.Errorf("ReusePort for an open socket: %v", err)
	}
	if err := (eventloop.Config{SpinTime: time.Second}).Validate(); err == nil || !strings.Contains(err.Error(), "SpinTime: too long (limit 1ms, got 1s)") {
		t.Errorf("a second of spinning: %v", err)
	}
	if err := (eventloop.Config{CoalesceTime: time.Second}).Validate(); err == nil || !strings.Contains(err.Error(), "CoalesceTime: too long (limit 1ms, got 1s)") {
		t.Errorf("a pause of a second: %v", err)
	}
}

// TestConfig_ValidateRefusesWhatTheKernelDoes: these would fail in Listen as an
// "invalid argument", or a timeout of less than a millisecond would be none.
func TestConfig_ValidateRefusesWhatTheKernelDoes(t *testing.T) {
	for want, config := range map[string]eventloop.Config{
		"UserTimeout: too short (limit 1ms, got 999µs)":                    {UserTimeout: 999 * time.Microsecond},
		"UserTimeout: too long (limit 596h31m23.647s, got 596h31m23.648s)": {UserTimeout: (1 << 31) * time.Millisecond},
		"KeepAlive: too long (limit 9h6m7s, got 9h6m7.000000001s)":         {KeepAlive: 32_767*time.Second + 1},
	} {
		if err := config.Validate(); err == nil || err.Error() != "eventloop config: "+want {
			t.Errorf("Validate() = %v, want %s", err, want)
		}
		if listener, err := eventloop.Listen("tcp", "127.0.0.1:0", config); err == nil {
			listener.Close()
			t.Errorf("Listen accepted what is wrong because of %s", want)
		}
	}
}

// TestFile_ADescriptorThatWaitsDoesNotStopClose: Fd, which package os/exec calls for
// a child, makes the socket wait in accept. The naive version cannot be closed
// then.
func TestFile_ADescriptorThatWaitsDoesNotStopClose(t *testing.T) {
	s := serve(t, eventloop.Config{Engine: eventloop.EngineEpoll}, echoLines)
	file, err := s.File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	file.Fd()
	client := s.connect() // after this one it would wait for the next
	send(t, client, "echo\n")
	expect(t, client, "echo\n")
	closed := make(chan error, 1)
	go func() { closed <- s.StopAccepting() }()
	if err := receive(t, closed, "StopAccepting"); err != nil {
		t.Errorf("StopAccepting = %v", err)
	}
}
