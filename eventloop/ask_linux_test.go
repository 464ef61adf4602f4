package eventloop_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fulmar-rpc/fulmar/eventloop"
)

func ask(conn *eventloop.Conn, text string) (int64, error) {
	half := len(text) / 2
	return conn.Ask([][]byte{[]byte(text[:half]), []byte(text[half:])})
}

// TestConn_AskWaitsForTheAnswer: many times, because an answer may come at any
// moment between the write and the wait.
func TestConn_AskWaitsForTheAnswer(t *testing.T) {
	conn, peer := dialledPair(t, eventloop.Config{})
	go func() { _, _ = io.Copy(peer, peer) }()
	text := "what is the time?"
	for i := range 5000 {
		if n, err := ask(conn, text); n != int64(len(text)) || err != nil {
			t.Fatalf("question %d: Ask = %d, %v", i, n, err)
		}
		answer, err := conn.Reader().Next(len(text)) // it may come in pieces
		if err != nil || string(answer) != text {
			t.Fatalf("question %d: the answer is %q, %v", i, answer, err)
		}
	}
}

// TestConn_AskWritesNothingToAClosedConnection: nor to one on which something waits
// that nobody asked for, so that a caller is sure that his question was not read.
func TestConn_AskWritesNothingToAClosedConnection(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(t *testing.T, conn *eventloop.Conn, peer net.Conn)
		want    error
	}{
		"closed by the peer": {func(t *testing.T, conn *eventloop.Conn, peer net.Conn) {
			_ = peer.(*net.TCPConn).CloseWrite()
			eventually(t, "the bytes or the end arrive", func() bool { return conn.CheckIdle() != nil })
		}, io.EOF},
		"reset by the peer": {func(t *testing.T, conn *eventloop.Conn, peer net.Conn) {
			_ = peer.(*net.TCPConn).SetLinger(0)
			_ = peer.Close()
			// Looking takes the error from the socket, so look at something else.
			eventually(t, "the reset arrives", func() bool { return !connected(t, conn) })
		}, syscall.ECONNRESET},
		"unread in the socket": {func(t *testing.T, conn *eventloop.Conn, peer net.Conn) {
			_, _ = peer.Write([]byte("x"))
			eventually(t, "the bytes or the end arrive", func() bool { return conn.CheckIdle() != nil })
		}, eventloop.ErrUnread},
		"unread in the Reader": {func(t *testing.T, conn *eventloop.Conn, peer net.Conn) {
			_, _ = peer.Write([]byte("x"))
			if _, err := conn.Reader().Peek(1); err != nil {
				t.Fatal(err)
			}
		}, eventloop.ErrUnread},
		"deadline passed": {func(_ *testing.T, conn *eventloop.Conn, _ net.Conn) {
			_ = conn.SetReadDeadline(time.Unix(1, 0))
		}, os.ErrDeadlineExceeded},
		"closed here": {func(_ *testing.T, conn *eventloop.Conn, _ net.Conn) { _ = conn.Close() }, net.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			conn, peer := dialledPair(t, eventloop.Config{})
			test.prepare(t, conn, peer)
			if n, err := ask(conn, "hello"); n != 0 || !errors.Is(err, test.want) {
				t.Errorf("Ask = %d, %v; want 0 and %v", n, err, test.want)
			}
			if test.want == eventloop.ErrUnread || test.want == os.ErrDeadlineExceeded {
				// The turn to write is free again.
				if _, err := conn.WriteBuffers([][]byte{[]byte("later")}); err != nil {
					t.Errorf("a write after it: %v", err)
				}
			}
		})
	}
}

// connected reports whether the system has not noticed that the peer is gone.
func connected(t *testing.T, conn *eventloop.Conn) bool {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var info *unix.TCPInfo
	if controlErr := raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }); controlErr != nil || err != nil {
		t.Fatal(controlErr, err)
	}
	return info.State == unix.BPF_TCP_ESTABLISHED
}

// TestConn_AskEndsWithTheWait: what ends a wait for an answer comes back with the
// whole length as written.
func TestConn_AskEndsWithTheWait(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(conn *eventloop.Conn, peer net.Conn)
		want error
	}{
		"the peer closes": {func(_ *eventloop.Conn, peer net.Conn) { _ = peer.Close() }, io.EOF},
		"the peer resets": {func(_ *eventloop.Conn, peer net.Conn) {
			_ = peer.(*net.TCPConn).SetLinger(0)
			_ = peer.Close()
		}, syscall.ECONNRESET},
		"this side closes": {func(conn *eventloop.Conn, _ net.Conn) { _ = conn.Close() }, net.ErrClosed},
		"interrupted":      {func(conn *eventloop.Conn, _ net.Conn) { _ = conn.SetReadDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			conn, peer := dialledPair(t, eventloop.Config{})
			go func() {
				_, _ = io.ReadFull(peer, make([]byte, len("hello")))
				test.end(conn, peer)
			}()
			if n, err := ask(conn, "hello"); n != 5 || !errors.Is(err, test.want) {
				t.Errorf("Ask = %d, %v; want 5 and %v", n, err, test.want)
			}
		})
	}
}

// TestConn_AskLeavesTheRest: of a question that the socket does not take at once it
// writes a part, and waits for nothing.
func TestConn_AskLeavesTheRest(t *testing.T) {
	conn, peer := dialledPair(t, eventloop.Config{})
	var pieces [][]byte
	for i := range 2000 { // more than one system call takes
		pieces = append(pieces, bytes.Repeat([]byte{byte(i)}, 16<<10))
	}
	all := bytes.Join(pieces, nil)
	n, err := conn.Ask(pieces)
	if err != nil || n == 0 || n >= int64(len(all)) {
		t.Fatalf("Ask = %d, %v; want a part of %d", n, err, len(all))
	}
	go func() {
		_, _ = conn.WriteBuffers([][]byte{all[n:]})
	}()
	got := make([]byte, len(all))
	if _, err := io.ReadFull(peer, got); err != nil || !bytes.Equal(got, all) {
		t.Errorf("the peer got something else (%v)", err)
	}
}

// TestConn_AskLetsOthersWrite while it waits for its answer.
func TestConn_AskLetsOthersWrite(t *testing.T) {
	conn, peer := dialledPair(t, eventloop.Config{})
	asked := make(chan error, 1)
	go func() {
		_, err := ask(conn, "question")
		asked <- err
	}()
	peerGets(t, peer, "question")
	if _, err := conn.Write([]byte("more")); err != nil {
		t.Fatal(err)
	}
	peerGets(t, peer, "more")
	if _, err := peer.Write([]byte("answer")); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, asked, "the answer"); err != nil {
		t.Fatal(err)
	}
	if answer, err := conn.Reader().Next(6); err != nil || string(answer) != "answer" {
		t.Errorf("the answer is %q, %v", answer, err)
	}
}

func peerGets(t *testing.T, peer net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(peer, got); err != nil || string(got) != want {
		t.Fatalf("the peer got %q, %v; want %q", got, err, want)
	}
}

// TestConn_AskIsForSockets: of others it writes nothing, and the caller goes on with
// WriteBuffers.
func TestConn_AskIsForSockets(t *testing.T) {
	conn, _ := simConn(t, eventloop.Config{})
	if n, err := conn.Ask([][]byte{[]byte("abc")}); n != 0 || err != nil {
		t.Errorf("Ask = %d, %v; want nothing written", n, err)
	}
}

func TestConn_AskAllocatesNothing(t *testing.T) {
	conn, peer := dialledPair(t, eventloop.Config{})
	go func() { _, _ = io.Copy(peer, peer) }()
	question := [][]byte{[]byte("how much?")}
	got := testing.AllocsPerRun(200, func() {
		if _, err := conn.Ask(question); err != nil {
			t.Error(err)
		}
		if err := conn.Reader().Skip(len("how much?")); err != nil {
			t.Error(err)
		}
	})
	if got > 0 {
		t.Errorf("%v allocations for each question, want none", got)
	}
}
