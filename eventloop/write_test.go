package eventloop_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
)

// simConn returns a connection on a simulated network and its peer.
func simConn(t *testing.T, config eventloop.Config) (*eventloop.Conn, net.Conn) {
	t.Helper()
	client, peer, err := simPair(simnet.New(simnet.Config{}))
	if err != nil {
		t.Fatal(err)
	}
	conn := eventloop.NewConn(client, config)
	t.Cleanup(func() { conn.Close(); peer.Close() })
	return conn, peer
}

// TestConn_WriteBuffersAreWhole lets many goroutines write records and checks
// that none is interrupted by another.
func TestConn_WriteBuffersAreWhole(t *testing.T) {
	const writers, records = 8, 200
	for name, pair := range map[string]func(t *testing.T) (*eventloop.Conn, net.Conn){
		"tcp":    func(t *testing.T) (*eventloop.Conn, net.Conn) { return dialledPair(t, eventloop.Config{}) },
		"simnet": func(t *testing.T) (*eventloop.Conn, net.Conn) { return simConn(t, eventloop.Config{}) },
	} {
		t.Run(name, func(t *testing.T) {
			conn, peer := pair(t)
			var group sync.WaitGroup
			for writer := range byte(writers) {
				group.Go(func() {
					for i := range records {
						// From a few bytes to more than a socket holds.
						length := 1 + i*i*int(writer)/8
						body := bytes.Repeat([]byte{writer}, length)
						head := []byte{writer, byte(length >> 16), byte(length >> 8), byte(length)}
						buffers := [][]byte{head, nil, body[:length/2], body[length/2:]}
						n, err := conn.WriteBuffers(buffers)
						if err != nil || n != int64(4+length) {
							t.Errorf("WriteBuffers = %d, %v, want %d", n, err, 4+length)
						}
						if len(buffers) != 4 || len(buffers[0]) != 4 || len(buffers[3]) != length-length/2 {
							t.Error("WriteBuffers changed the caller's list")
						}
					}
				})
			}
			reader := eventloop.NewConn(peer, eventloop.Config{}).Reader()
			for range writers * records {
				head, err := reader.Next(4)
				if err != nil {
					t.Fatal(err)
				}
				writer, length := head[0], int(head[1])<<16|int(head[2])<<8|int(head[3])
				body, err := reader.Next(length)
				if err != nil {
					t.Fatal(err)
				}
				if bytes.Count(body, []byte{writer}) != length {
					t.Fatal("records are mixed")
				}
			}
			group.Wait()
		})
	}
}

func TestConn_WriteStallCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := make(chan error, 1)
		conn, _ := simConn(t, eventloop.Config{
			WriteStallTimeout: 8 * time.Second,
			OnClose:           func(_ *eventloop.Conn, err error) { closed <- err },
		})
		// A queue of writers: all of them must be released.
		errs := make(chan error, 3)
		begin := time.Now()
		for range 3 {
			go func() {
				_, err := conn.WriteBuffers([][]byte{make([]byte, 1<<20)})
				errs <- err
			}()
		}
		for range 3 {
			err := receive(t, errs, "a writer to give up")
			if !errors.Is(err, eventloop.ErrWriteStalled) {
				t.Errorf("WriteBuffers = %v", err)
			}
		}
		if got := time.Since(begin); got < 8*time.Second || got > 10*time.Second {
			t.Errorf("gave up after %v, want 8s to 10s", got)
		}
		err := receive(t, closed, "OnClose")
		if !errors.Is(err, eventloop.ErrWriteStalled) || !strings.Contains(err.Error(), "limit 8s, 262144 bytes written") {
			t.Errorf("OnClose got %v", err)
		}
	})
}

// TestConn_WriteStallIsExtendedByProgress writes to peers that take a little in
// each stall timeout, for much longer than that.
func TestConn_WriteStallIsExtendedByProgress(t *testing.T) {
	t.Run("simnet", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			conn, peer := simConn(t, eventloop.Config{WriteStallTimeout: time.Second})
			takeSlowly(t, conn, peer, 900*time.Millisecond, 16<<10)
		})
	})
	t.Run("tls", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			conn, peer := tlsOverSim(t, eventloop.Config{WriteStallTimeout: time.Second})
			takeSlowly(t, conn, peer, 400*time.Millisecond, 16<<10)
		})
	})
	// As plain sockets are written to, but in the time of a bubble.
	t.Run("plain", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			conn, peer := simConn(t, eventloop.Config{WriteStallTimeout: time.Second})
			conn.TreatAsPlain()
			takeSlowly(t, conn, peer, 900*time.Millisecond, 16<<10)
		})
	})
}

// TestConn_PeersThatTakeALittleStallTheWrite: each byte is progress, and all of them
// would take for ever.
func TestConn_PeersThatTakeALittleStallTheWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, peer := simConn(t, eventloop.Config{WriteStallTimeout: 8 * time.Second})
		conn.TreatAsPlain()
		wrote := make(chan error, 1)
		begin := time.Now()
		go func() { _, err := conn.WriteBuffers([][]byte{make([]byte, 1<<20)}); wrote <- err }()
		var reader sync.WaitGroup
		reader.Go(func() {
			for piece := make([]byte, 512); ; time.Sleep(2 * time.Second) {
				if _, err := peer.Read(piece); err != nil {
					return
				}
			}
		})
		if err := receiveWithin(t, wrote, time.Hour); !errors.Is(err, eventloop.ErrWriteStalled) {
			t.Errorf("WriteBuffers = %v", err)
		}
		// The network takes 256 KiB at once.
		if took := time.Since(begin); took < 256*time.Second || took > 10*time.Minute {
			t.Errorf("it took %v, want what the bytes take at 1 KiB/s", took)
		}
		peer.Close()
		reader.Wait()
	})
}

// TestConn_WritesGoOnAfterALook: on real sockets, a writer that has looked
// whether its peer takes anything continues with the right byte.
func TestConn_WritesGoOnAfterALook(t *testing.T) {
	conn, peer := narrowPair(t, eventloop.Config{})
	content := make([]byte, 1<<20)
	for i := range content {
		content[i] = byte(i >> 8)
	}
	done := make(chan error, 1)
	go func() {
		_, err := conn.WriteBuffers([][]byte{content[:300<<10], content[300<<10:]})
		done <- err
	}()
	got := make([]byte, len(content))
	peer.SetReadDeadline(time.Now().Add(patience))
	for taken := 0; taken < len(got); taken += 4 << 10 {
		if _, err := io.ReadFull(peer, got[taken:taken+4<<10]); err != nil {
			t.Fatal(err)
		}
		conn.InterruptWrite()
	}
	if err := receive(t, done, "WriteBuffers"); err != nil || !bytes.Equal(got, content) {
		t.Errorf("WriteBuffers = %v, everything arrived: %t", err, bytes.Equal(got, content))
	}
}

// takeSlowly writes 1 MiB, of which the peer takes a piece in every pause. It
// needs a bubble of synctest.
func takeSlowly(t *testing.T, conn *eventloop.Conn, peer net.Conn, pause time.Duration, piece int64) {
	t.Helper()
	const size = 1 << 20
	done := make(chan error, 1)
	begin := time.Now()
	go func() {
		_, err := conn.WriteBuffers([][]byte{make([]byte, size/2), make([]byte, size/2)})
		done <- err
	}()
	for taken := int64(0); taken < size; taken += piece {
		<-time.After(pause)
		if _, err := io.CopyN(io.Discard, peer, piece); err != nil {
			t.Fatal(err)
		}
	}
	if err := receive(t, done, "WriteBuffers"); err != nil {
		t.Errorf("WriteBuffers = %v after %v", err, time.Since(begin))
	}
}

// narrowPair returns a TCP connection that holds little on its way.
func narrowPair(t *testing.T, config eventloop.Config) (*eventloop.Conn, net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	peer, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(client.(*net.TCPConn).SetWriteBuffer(32<<10), peer.(*net.TCPConn).SetReadBuffer(32<<10)); err != nil {
		t.Fatal(err)
	}
	conn := eventloop.NewConn(client, config)
	t.Cleanup(func() { conn.Close(); peer.Close() })
	return conn, peer
}

// tlsOverSim returns a TLS connection on a simulated network.
func tlsOverSim(t *testing.T, config eventloop.Config) (*eventloop.Conn, net.Conn) {
	t.Helper()
	serverConfig, clientConfig := tlsConfigs(t)
	client, accepted, err := simPair(simnet.New(simnet.Config{}))
	if err != nil {
		t.Fatal(err)
	}
	peer := tls.Server(accepted, serverConfig)
	shaken := make(chan error, 1)
	go func() { shaken <- peer.HandshakeContext(t.Context()) }()
	secured := tls.Client(client, clientConfig)
	if err := errors.Join(secured.HandshakeContext(t.Context()), receive(t, shaken, "the handshake")); err != nil {
		t.Fatal(err)
	}
	conn := eventloop.NewConn(secured, config)
	t.Cleanup(func() { conn.Close(); peer.Close() })
	return conn, peer
}

// TestConn_WriteStallOnEveryKindOfSocket: a write that timed out must not be
// tried again where that cannot work, nor in a loop.
func TestConn_WriteStallOnEveryKindOfSocket(t *testing.T) {
	stall := func(t *testing.T, conn *eventloop.Conn, limit time.Duration) {
		t.Helper()
		begin := time.Now()
		_, err := conn.Write(make([]byte, 32<<20))
		if got := time.Since(begin); !errors.Is(err, eventloop.ErrWriteStalled) || got < limit {
			t.Errorf("Write = %v after %v, want a stall after %v", err, got, limit)
		}
	}
	t.Run("tls", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			conn, _ := tlsOverSim(t, eventloop.Config{WriteStallTimeout: 8 * time.Second})
			begin := time.Now()
			stall(t, conn, 8*time.Second)
			// Closing adds the 5 s that TLS allows for its last alert.
			if got := time.Since(begin); got > 15*time.Second {
				t.Errorf("gave up after %v", got)
			}
		})
	})
	t.Run("tcp", func(t *testing.T) {
		conn, _ := narrowPair(t, eventloop.Config{WriteStallTimeout: 200 * time.Millisecond})
		stall(t, conn, 200*time.Millisecond)
	})
}

func TestConn_WriteStallOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, peer := simConn(t, eventloop.Config{WriteStallTimeout: -1})
		done := make(chan error, 1)
		go func() {
			_, err := conn.Write(make([]byte, 1<<20))
			done <- err
		}()
		<-time.After(24 * time.Hour)
		if _, err := io.CopyN(io.Discard, peer, 1<<20); err != nil {
			t.Fatal(err)
		}
		if err := receive(t, done, "Write"); err != nil {
			t.Error(err)
		}
	})
}

// TestConn_WriteAfterALongPause: the deadline that watches for stalls passes
// while nobody writes, and must not fail the next write.
func TestConn_WriteAfterALongPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, peer := simConn(t, eventloop.Config{})
		for range 5 {
			send(t, conn, "ping")
			expect(t, peer, "ping")
			<-time.After(time.Hour)
		}
	})
}

func TestConn_UsersWriteDeadlineComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, peer := simConn(t, eventloop.Config{})
		begin := time.Now()
		conn.SetWriteDeadline(begin.Add(time.Second))
		n, err := conn.Write(make([]byte, 1<<20))
		if n != 256<<10 || !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begin) != time.Second {
			t.Fatalf("Write = %d, %v after %v", n, err, time.Since(begin))
		}
		// Nothing was written: the connection stays usable.
		if n, err := conn.WriteBuffers([][]byte{make([]byte, 10)}); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("WriteBuffers = %d, %v", n, err)
		}
		conn.SetWriteDeadline(time.Time{})
		io.CopyN(io.Discard, peer, 256<<10)
		if _, err := conn.Write([]byte("x")); err != nil {
			t.Errorf("Write without deadline = %v", err)
		}
	})
}

func TestConn_DeadlineDuringAWriteTakesEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, _ := simConn(t, eventloop.Config{})
		done := make(chan error, 1)
		go func() {
			_, err := conn.Write(make([]byte, 1<<20))
			done <- err
		}()
		synctest.Wait()
		conn.SetWriteDeadline(time.Now().Add(-time.Second))
		if err := receive(t, done, "Write"); !errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, eventloop.ErrWriteStalled) {
			t.Errorf("Write = %v", err)
		}
	})
}

func TestConn_HalfWrittenBuffersCloseTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, peer := simConn(t, eventloop.Config{})
		conn.SetWriteDeadline(time.Now().Add(time.Second))
		n, err := conn.WriteBuffers([][]byte{make([]byte, 1<<20)})
		if n != 256<<10 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("WriteBuffers = %d, %v", n, err)
		}
		got, err := io.Copy(io.Discard, peer)
		if got != 256<<10 || err != nil {
			t.Errorf("the peer got %d bytes, %v, want the half and the end", got, err)
		}
		if _, err := conn.Write([]byte("x")); err == nil {
			t.Error("a write into the gap succeeded")
		}
	})
}

func TestConn_CloseReleasesWaitingWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, _ := simConn(t, eventloop.Config{})
		errs := make(chan error, 5)
		for range 5 {
			go func() {
				_, err := conn.WriteBuffers([][]byte{make([]byte, 1<<20)})
				errs <- err
			}()
		}
		synctest.Wait()
		conn.Close()
		for range 5 {
			if err := receive(t, errs, "a writer"); !errors.Is(err, net.ErrClosed) {
				t.Errorf("WriteBuffers = %v", err)
			}
		}
	})
}

// countingConn counts the writes that reach the socket.
type countingConn struct {
	net.Conn
	writes int
}

func (c *countingConn) Write(p []byte) (int, error) {
	c.writes++
	return c.Conn.Write(p)
}

func TestConn_SmallPiecesLeaveInOneWrite(t *testing.T) {
	client, peer, err := simPair(simnet.New(simnet.Config{}))
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	counting := &countingConn{Conn: client}
	conn := eventloop.NewConn(counting, eventloop.Config{})
	defer conn.Close()
	if n, err := conn.WriteBuffers([][]byte{[]byte("head "), nil, []byte("body")}); n != 9 || err != nil {
		t.Errorf("WriteBuffers = %d, %v", n, err)
	}
	expect(t, peer, "head body")
	if counting.writes != 1 {
		t.Errorf("%d writes, want 1", counting.writes)
	}
}
