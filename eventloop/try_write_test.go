package eventloop_test

import (
	"bytes"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
)

// TestConn_TryWriteBuffersDoesNotWait: it stops where the socket is full, and
// what WriteRest adds afterwards continues there, although others write meanwhile.
func TestConn_TryWriteBuffersDoesNotWait(t *testing.T) {
	conn, peer := dialledPair(t, eventloop.Config{})
	var pieces [][]byte
	var all []byte
	for i := range 2000 { // more than one system call takes
		piece := bytes.Repeat([]byte{byte(i)}, 16<<10)
		pieces = append(pieces, piece)
		all = append(all, piece...)
	}
	written, err := conn.TryWriteBuffers(pieces)
	if err != nil || written >= int64(len(all)) || runtime.GOOS == "linux" && written == 0 {
		t.Fatalf("TryWriteBuffers = %d, %v; want a part of %d", written, err, len(all))
	}
	if n, err := conn.TryWriteBuffers([][]byte{[]byte("other")}); n != 0 || err != nil {
		t.Errorf("TryWriteBuffers in between = %d, %v; want nothing written", n, err)
	}
	wrote, rest := make(chan error, 2), all[written:]
	go func() {
		_, err := conn.Write([]byte("other"))
		wrote <- err
	}()
	go func() {
		_, err := conn.WriteRest([][]byte{rest}, written)
		wrote <- err
	}()
	all = append(all, "other"...)
	got := make([]byte, len(all))
	if _, err := io.ReadFull(peer, got); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := receive(t, wrote, "the end of the writes"); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(got, all) {
		t.Error("the peer got other bytes")
	}
}

// TestConn_TryWriteBuffersLeavesOthersAlone: connections that have no socket of
// the system take nothing, and nothing is lost.
func TestConn_TryWriteBuffersLeavesOthersAlone(t *testing.T) {
	conn, _ := simConn(t, eventloop.Config{})
	if n, err := conn.TryWriteBuffers([][]byte{[]byte("abc")}); n != 0 || err != nil {
		t.Errorf("TryWriteBuffers = %d, %v; want nothing written", n, err)
	}
}

// TestConn_TryWriteBuffersAfterALongSilence: the deadline by which an earlier
// write was to make progress does not fail a later one.
func TestConn_TryWriteBuffersAfterALongSilence(t *testing.T) {
	conn, peer := dialledPair(t, eventloop.Config{WriteStallTimeout: 100 * time.Millisecond})
	for i := range 20 {
		text := []byte{byte(i), 'x'}
		if n, err := conn.TryWriteBuffers([][]byte{text[:1], text[1:]}); err != nil || runtime.GOOS == "linux" && n != 2 {
			t.Fatalf("write %d: %d, %v", i, n, err)
		} else if n == 0 {
			t.Skip("this system has no write that does not wait")
		}
		got := make([]byte, 2)
		if _, err := io.ReadFull(peer, got); err != nil || !bytes.Equal(got, text) {
			t.Fatalf("the peer got %q, %v", got, err)
		}
		_ = peer.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		if _, err := peer.Read(got); err == nil {
			t.Fatal("the peer got more than was written")
		}
		_ = peer.SetReadDeadline(time.Time{})
	}
}

func TestConn_TryWriteBuffersToAClosedPeer(t *testing.T) {
	conn, peer := dialledPair(t, eventloop.Config{})
	_ = peer.Close()
	var err error
	for range 10000 {
		if _, err = conn.TryWriteBuffers([][]byte{[]byte("abc")}); err != nil {
			break
		}
	}
	if err == nil && runtime.GOOS == "linux" {
		t.Error("writing to a closed peer never failed")
	}
	if _, again := conn.TryWriteBuffers([][]byte{[]byte("abc")}); err != nil && again == nil {
		t.Error("a write after one that failed succeeded")
	}
}
