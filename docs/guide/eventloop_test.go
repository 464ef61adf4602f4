package guide_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
)

// echo is the handler of the guide's first example.
func echo(conn *eventloop.Conn) error {
	line, err := conn.Reader().Until('\n')
	if err != nil {
		return err // eventloop.ErrMore: call me again when more has arrived
	}
	conn.Writer().Append(line)
	return nil // lines that arrived together are answered with one write
}

func serveEcho(ctx context.Context, address string) error {
	listener, err := eventloop.Listen("tcp", address, eventloop.Config{})
	if err != nil {
		return err
	}
	return listener.Serve(ctx, echo)
}

// serveUntilTold serves until the process is told to end, and then lets connections
// finish what they have begun, for ten seconds.
func serveUntilTold(listener *eventloop.Listener, handler eventloop.Handler) error {
	told, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	context.AfterFunc(told, func() {
		limit, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = listener.Shutdown(limit) // closes what is left then
	})
	return listener.Serve(context.Background(), handler)
}

const bodyMost = 1 << 20

var errBody = errors.New("body too long")

// frame is a handler for messages with their length in front.
func frame(conn *eventloop.Conn) error {
	header, err := conn.Reader().Next(4)
	if err != nil {
		return err
	}
	length := binary.BigEndian.Uint32(header)
	if length > bodyMost {
		conn.Writer().AppendString("too long\n") // arrives, because an error is returned
		return fmt.Errorf("%w (limit %d, got %d)", errBody, bodyMost, length)
	}
	body, err := conn.Reader().Next(int(length)) // nothing is allocated for what has not arrived
	if err != nil {
		return err // ErrMore: the four bytes of the length come back, too
	}
	call := conn.Detach()                                     // messages behind this one need not wait for it
	reply := append([]byte("done: "), bytes.ToUpper(body)...) // may take its time; body is valid until the handler returns
	if call.Attach() {
		conn.Writer().Append(reply) // nobody has gone on with the connection: replies leave together
		return nil
	}
	_, err = conn.WriteBuffers([][]byte{reply})
	return err
}

// handOver starts the next process on the listening socket, and returns when the
// connections of this one have ended.
func handOver(ctx context.Context, listener *eventloop.Listener, next *exec.Cmd) error {
	file, err := listener.File()
	if err != nil {
		return err
	}
	defer file.Close()
	next.ExtraFiles = []*os.File{file} // descriptor 3 over there
	if err := next.Start(); err != nil {
		return err // this process goes on accepting
	}
	return listener.Shutdown(ctx)
}

// takeOver is what the next process does instead of eventloop.Listen.
func takeOver(config eventloop.Config) (*eventloop.Listener, error) {
	file := os.NewFile(3, "listener")
	defer file.Close()
	return eventloop.ListenFile(file, config)
}

// busy says what a server did since the last look.
func busy(now, last eventloop.Stats) string {
	wakeups := max(now.Loop.Wakeups-last.Loop.Wakeups, 1)
	return fmt.Sprintf("%d open, %d bytes in, %.1f events a wake-up, %d stalled, %d panics", now.Open,
		now.BytesRead-last.BytesRead, float64(now.Loop.Events-last.Loop.Events)/float64(wakeups),
		now.WriteStalls-last.WriteStalls, now.Panics-last.Panics)
}

// serve runs a handler until the test ends.
func serve(t *testing.T, listener *eventloop.Listener, handler eventloop.Handler) {
	t.Helper()
	served := make(chan error, 1)
	go func() { served <- listener.Serve(context.Background(), handler) }()
	t.Cleanup(func() {
		if err := errors.Join(listener.Close(), <-served); err != nil {
			t.Error(err)
		}
	})
}

// talk sends everything, stops sending, and returns what comes back.
func talk(t *testing.T, listener *eventloop.Listener, text string) string {
	t.Helper()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(conn, text)
	replies, readErr := []byte(nil), conn.(*net.TCPConn).CloseWrite()
	if readErr == nil {
		replies, readErr = io.ReadAll(conn)
	}
	if err := errors.Join(err, readErr); err != nil {
		t.Fatal(err)
	}
	return string(replies)
}

func TestEventloop_Echo(t *testing.T) {
	listener, err := eventloop.Listen("tcp", "127.0.0.1:0", eventloop.Config{})
	if err != nil {
		t.Fatal(err)
	}
	serve(t, listener, echo)
	last := listener.Stats()
	if got := talk(t, listener, "one\ntwo\n"); got != "one\ntwo\n" {
		t.Errorf("replies %q", got)
	}
	if got := busy(listener.Stats(), last); !strings.Contains(got, " 8 bytes in, ") || !strings.HasSuffix(got, " 0 stalled, 0 panics") {
		t.Errorf("statistics: %s", got)
	}
	if err := serveEcho(t.Context(), "127.0.0.1:no"); err == nil {
		t.Error("a wrong address is accepted")
	}
}

func TestEventloop_ServeUntilTold(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot send itself SIGTERM there")
	}
	listener, err := eventloop.Listen("tcp", "127.0.0.1:0", eventloop.Config{})
	if err != nil {
		t.Fatal(err)
	}
	handling, release := make(chan struct{}), make(chan struct{})
	served := make(chan error, 1)
	go func() {
		served <- serveUntilTold(listener, func(conn *eventloop.Conn) error {
			close(handling)
			<-release
			return echo(conn)
		})
	}()
	replies := make(chan string, 1)
	go func() { replies <- talk(t, listener, "one\n") }()
	<-handling
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Signal(syscall.SIGTERM)
	}
	if err != nil {
		t.Fatal(err)
	}
	close(release)
	if got := <-replies; got != "one\n" {
		t.Errorf("the peer got %q", got)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestEventloop_Frames(t *testing.T) {
	config := eventloop.Config{ReadBufferBytes: 4 + bodyMost}
	var mu sync.Mutex
	var ended []error
	config.OnClose = func(_ *eventloop.Conn, err error) {
		mu.Lock()
		defer mu.Unlock()
		ended = append(ended, err)
	}
	listener, err := eventloop.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // In any order: a client sees the end before OnClose.
		got := errors.Join(ended...)
		if len(ended) != 3 || !slices.Contains(ended, nil) || !errors.Is(got, errBody) || !errors.Is(got, io.ErrUnexpectedEOF) {
			t.Errorf("connections ended with %v", ended)
		}
	})
	serve(t, listener, frame)
	for _, test := range []struct{ send, want string }{
		{"\x00\x00\x00\x02hi", "done: HI"},
		{"\xff\xff\xff\xffhi", "too long\n"},
		{"\x00\x00\x00\x03hi", ""},
	} {
		if got := talk(t, listener, test.send); got != test.want {
			t.Errorf("%q: replies %q, want %q", test.send, got, test.want)
		}
	}
}

// successor is set for the process that TestEventloop_HandOver starts.
const successor = "FULMAR_GUIDE_SUCCESSOR"

// TestEventloop_HandOver runs in two processes: the first starts this test again
// as the second, which serves until its standard input ends.
func TestEventloop_HandOver(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("descriptors are inherited by number on Unix only")
	}
	if os.Getenv(successor) != "" {
		listener, err := takeOver(eventloop.Config{})
		if err != nil {
			t.Fatal(err)
		}
		serve(t, listener, echo)
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	listener, err := eventloop.Listen("tcp", "127.0.0.1:0", eventloop.Config{})
	if err != nil {
		t.Fatal(err)
	}
	serve(t, listener, func(*eventloop.Conn) error { return errors.New("not by this process") })
	next := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestEventloop_HandOver$")
	next.Env = append(os.Environ(), successor+"=1")
	stdin, err := next.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := handOver(t.Context(), listener, next); err != nil {
		t.Fatal(err)
	}
	if got := talk(t, listener, "still there\n"); got != "still there\n" {
		t.Errorf("replies %q", got)
	}
	if err := errors.Join(stdin.Close(), next.Wait()); err != nil {
		t.Errorf("the next process: %v", err)
	}
}

// TestEventloop_LimitsAreConfigured checks the configuration in the guide.
func TestEventloop_LimitsAreConfigured(t *testing.T) {
	config := eventloop.Config{
		ReadBufferBytes:   64 << 10,        // nobody sends longer messages
		WriteStallTimeout: 5 * time.Second, // peers are near
		MaxConnections:    -1,              // the load balancer counts
	}
	if err := config.Validate(); err != nil {
		t.Error(err)
	}
}
