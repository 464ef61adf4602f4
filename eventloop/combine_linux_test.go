package eventloop_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// fanOut answers each byte, which says how many goroutines are to write a message
// of a length at once. Each message is its length in two bytes, and as many
// bytes that are the number of its goroutine. The caller adds to done.
func fanOut(writers, length int, done *sync.WaitGroup) eventloop.Handler {
	return func(conn *eventloop.Conn) error {
		if err := conn.Reader().Skip(1); err != nil {
			return err
		}
		for range writers {
			conn.Hold()
		}
		for number := range writers {
			go func() {
				defer done.Done()
				defer conn.Release()
				message := make([]byte, 2+length)
				binary.BigEndian.PutUint16(message, uint16(length))
				for i := range length {
					message[2+i] = byte(number)
				}
				half := len(message) / 2
				_, _ = conn.WriteBuffers([][]byte{message[:half], message[half:]}) // the test reads what arrives
				clear(message)                                                     // nobody keeps it
			}()
		}
		return nil
	}
}

// readMessages reads what fanOut wrote, and fails if bytes of two messages mix.
func readMessages(t *testing.T, client net.Conn, want int) {
	t.Helper()
	seen := map[byte]int{}
	var head [2]byte
	for range want {
		if _, err := io.ReadFull(client, head[:]); err != nil {
			t.Fatalf("after %d messages: %v", len(seen), err)
		}
		body := make([]byte, binary.BigEndian.Uint16(head[:]))
		if _, err := io.ReadFull(client, body); err != nil {
			t.Fatal(err)
		}
		for _, b := range body {
			if b != body[0] {
				t.Fatalf("message of goroutine %d has a byte of %d", body[0], b)
			}
		}
		if seen[body[0]]++; seen[body[0]] > 1 {
			t.Fatalf("goroutine %d was heard twice", body[0])
		}
	}
}

func TestCombine_MessagesOfManyLeaveWholeAndTogether(t *testing.T) {
	for name, length := range map[string]int{"small": 40, "1 KiB": 1 << 10, "too long to copy": 20 << 10} {
		t.Run(name, func(t *testing.T) {
			const writers, rounds = 100, 20
			var done sync.WaitGroup
			s := serve(t, eventloop.Config{Engine: eventloop.EngineEpoll}, fanOut(writers, length, &done))
			client := s.connect()
			for range rounds {
				done.Add(writers)
				send(t, client, "x")
				readMessages(t, client, writers)
				done.Wait()
			}
			if *testEngine == "std" || length > 16<<10 {
				return // no combining there
			}
			if got := s.Stats().Loop.Writes; got > writers*rounds/2 {
				t.Errorf("%d system calls wrote %d messages", got, writers*rounds)
			}
		})
	}
}

// TestCombine_CloseSendsWhatWasWritten: bytes that were left to another goroutine
// count as written, also if that one still waits when the connection closes. The
// naive version closes the socket at once.
func TestCombine_CloseSendsWhatWasWritten(t *testing.T) {
	const writers = 50
	conns := make(chan *eventloop.Conn, 1)
	s := serveNetwork(t, "unix", filepath.Join(t.TempDir(), "socket"), eventloop.Config{Engine: eventloop.EngineEpoll, OnOpen: func(c *eventloop.Conn) {
		c.Hold()
		c.Hold() // two calls in flight, so that writes are combined
		conns <- c
	}}, echoLines)
	client := s.connect()
	conn := receive(t, conns, "the connection")
	first := bytes.Repeat([]byte{'x'}, 1<<20) // more than the socket holds
	var writing sync.WaitGroup
	writing.Go(func() {
		if n, err := conn.WriteBuffers([][]byte{first}); n != int64(len(first)) || err != nil {
			t.Errorf("the writer who was there: WriteBuffers = %d, %v", n, err)
		}
	})
	eventually(t, "the first writer", func() bool { return s.Stats().Loop.Writes > 0 })
	want := first
	for i := range writers {
		piece := fmt.Appendf(nil, "%9d;", i)
		if n, err := conn.WriteBuffers([][]byte{piece}); n != int64(len(piece)) || err != nil {
			t.Fatalf("WriteBuffers = %d, %v", n, err)
		}
		want = append(want, piece...)
	}
	if err := conn.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	client.SetReadDeadline(time.Now().Add(patience))
	if got, err := io.ReadAll(client); !bytes.Equal(got, want) || err != nil {
		t.Errorf("read %d bytes, %v, want %d and the end", len(got), err, len(want))
	}
	writing.Wait()
	conn.Release()
	conn.Release()
}

// TestCombine_SlowPeersBoundWhatIsKept: beyond CombinedBytes writers wait, and a
// peer that never reads ends the connection for all of them.
func TestCombine_SlowPeersBoundWhatIsKept(t *testing.T) {
	const writers, length = 2000, 8 << 10
	var done sync.WaitGroup
	conns := make(chan *eventloop.Conn, 1)
	s := serve(t, eventloop.Config{Engine: eventloop.EngineEpoll, OnOpen: func(c *eventloop.Conn) { conns <- c }}, fanOut(writers, length, &done))
	client := s.connect()
	done.Add(writers)
	send(t, client, "x")
	conn := receive(t, conns, "the connection")
	eventually(t, "the socket to be full", func() bool { return s.Stats().BytesWritten > limits.CombinedBytes })
	_ = conn.Abort()
	done.Wait()
	if err := receive(t, s.closed, "OnClose"); err != nil {
		t.Errorf("OnClose was told %v", err)
	}
	if _, err := conn.WriteBuffers([][]byte{[]byte("late")}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a write after the end: %v", err)
	}
}

// TestCombine_AResetFailsAllWriters: each learns of it, or its bytes were taken
// before.
func TestCombine_AResetFailsAllWriters(t *testing.T) {
	const writers, length = 1000, 8 << 10
	var done sync.WaitGroup
	conns := make(chan *eventloop.Conn, 1)
	s := serve(t, eventloop.Config{OnOpen: func(c *eventloop.Conn) { conns <- c }}, fanOut(writers, length, &done))
	client := s.connect()
	done.Add(writers)
	send(t, client, "x")
	conn := receive(t, conns, "the connection")
	eventually(t, "some bytes", func() bool { return s.Stats().BytesWritten > 64<<10 })
	if err := client.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	_ = client.Close()
	done.Wait()
	err := receive(t, s.closed, "OnClose")
	if !errors.Is(err, unix.ECONNRESET) && !errors.Is(err, unix.EPIPE) {
		t.Errorf("OnClose was told %v, want that the peer has reset the connection", err)
	}
	if _, err := conn.WriteBuffers([][]byte{[]byte("late")}); err == nil {
		t.Error("a write after the end succeeded")
	}
}

// TestCombine_WritersBehindAClose: those that waited for their turn when the
// connection was closed behind what others had left.
func TestCombine_WritersBehindAClose(t *testing.T) {
	var writers sync.WaitGroup
	s := serve(t, eventloop.Config{Engine: eventloop.EngineEpoll}, func(conn *eventloop.Conn) error {
		if err := conn.Reader().Skip(1); err != nil {
			return err
		}
		for range 50 {
			conn.Hold()
			writers.Go(func() {
				defer conn.Release()
				_, _ = conn.WriteBuffers([][]byte{make([]byte, 1000)}) // it may be closed
			})
		}
		writers.Go(func() {
			giveWay(uint64(conn.RemoteAddr().(*net.TCPAddr).Port))
			conn.Close()
		})
		return nil
	})
	for range 300 {
		client := s.connect()
		send(t, client, "x")
		client.SetReadDeadline(time.Now().Add(patience))
		if _, err := io.Copy(io.Discard, client); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("the connection does not close")
		}
		receive(t, s.closed, "OnClose")
	}
	writers.Wait()
}

// twoWriters makes connections take what others write meanwhile: two holds each, which
// the test that receives them releases.
func twoWriters(opened chan<- *eventloop.Conn) eventloop.Config {
	return eventloop.Config{
		Engine: eventloop.EngineEpoll, Logger: silence(),
		OnOpen: func(conn *eventloop.Conn) { conn.Hold(); conn.Hold(); opened <- conn },
	}
}

// TestCombine_SuccessIsKeptWhenAWriteFails: bytes that were left to a writer count as
// written. If its deadline passes before the first byte, the connection could go on;
// it must not go on without them.
func TestCombine_SuccessIsKeptWhenAWriteFails(t *testing.T) {
	opened := make(chan *eventloop.Conn, 1)
	s := serve(t, twoWriters(opened), echoLines)
	for trial := range 300 {
		client := s.connect()
		conn := receive(t, opened, "the connection")
		if err := conn.SetWriteDeadline(time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		var succeeded atomic.Int64
		var writers sync.WaitGroup
		for range 2 {
			writers.Go(func() {
				for range 300 {
					_, err := conn.WriteBuffers([][]byte{[]byte("x")})
					if err == nil {
						succeeded.Add(1)
					}
					if !errors.Is(err, os.ErrDeadlineExceeded) {
						return
					}
				}
			})
		}
		writers.Wait()
		// Its end is not waited for where nothing was promised.
		if succeeded.Load() > 0 {
			if err := receive(t, s.closed, "OnClose, for bytes that were lost"); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("trial %d: OnClose was told %v", trial, err)
			}
		}
		client.Close()
		conn.Release()
		conn.Release()
		if succeeded.Load() == 0 {
			receive(t, s.closed, "OnClose")
		}
	}
}

// TestConn_DeadlinesAfterCloseChangeNothing: bytes that were copied for a writer are
// waited for, for LingerTimeout.
func TestConn_DeadlinesAfterCloseChangeNothing(t *testing.T) {
	opened := make(chan *eventloop.Conn, 1)
	s := serve(t, twoWriters(opened), echoLines)
	client := s.connect()
	conn := receive(t, opened, "the connection")
	defer conn.Release()
	defer conn.Release()
	if _, err := conn.WriteBuffers([][]byte{[]byte("x")}); err != nil {
		t.Fatal(err)
	}
	wrote := make(chan error, 1)
	go func() { _, err := conn.WriteBuffers([][]byte{make([]byte, 32<<20)}); wrote <- err }()
	expect(t, client, "x\x00") // it has begun, and waits for the peer
	for range 3 {
		if _, err := conn.WriteBuffers([][]byte{[]byte("left")}); err != nil {
			t.Fatal(err)
		}
	}
	conn.Close()
	if err := conn.SetWriteDeadline(time.Time{}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("SetWriteDeadline after Close = %v", err)
	}
	receive(t, s.closed, "OnClose")
	if err := receive(t, wrote, "the writer"); err == nil {
		t.Error("32 MiB were written to a peer that reads 2 bytes")
	}
}
