package eventloop_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/nettest"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
)

// pipes makes pairs of connections of every kind.
func pipes(t *testing.T) map[string]nettest.MakePipe {
	socketPair := func(network, address string) (net.Conn, net.Conn, func(), error) {
		listener, err := net.Listen(network, address)
		if err != nil {
			return nil, nil, nil, err
		}
		defer listener.Close()
		client, err := eventloop.Dial(context.Background(), network, listener.Addr().String(), eventloop.Config{})
		if err != nil {
			return nil, nil, nil, err
		}
		accepted, err := listener.Accept()
		if err != nil {
			return nil, nil, nil, err
		}
		return wrap(client, eventloop.NewConn(accepted, eventloop.Config{}))
	}
	makers := map[string]nettest.MakePipe{
		"tcp": func() (net.Conn, net.Conn, func(), error) { return socketPair("tcp", "127.0.0.1:0") },
		"pipe": func() (net.Conn, net.Conn, func(), error) {
			a, b := net.Pipe()
			return wrap(eventloop.NewConn(a, eventloop.Config{}), eventloop.NewConn(b, eventloop.Config{}))
		},
		"simnet": func() (net.Conn, net.Conn, func(), error) {
			a, b, err := simPair(simnet.New(simnet.Config{Seed: 1, SplitPercent: 20}))
			if err != nil {
				return nil, nil, nil, err
			}
			return wrap(eventloop.NewConn(a, eventloop.Config{}), eventloop.NewConn(b, eventloop.Config{}))
		},
		"tcp without stall limit": func() (net.Conn, net.Conn, func(), error) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return nil, nil, nil, err
			}
			defer listener.Close()
			config := eventloop.Config{WriteStallTimeout: -1}
			client, err := eventloop.Dial(context.Background(), "tcp", listener.Addr().String(), config)
			if err != nil {
				return nil, nil, nil, err
			}
			accepted, err := listener.Accept()
			if err != nil {
				return nil, nil, nil, err
			}
			return wrap(client, eventloop.NewConn(accepted, config))
		},
	}
	if runtime.GOOS != "windows" {
		directory := t.TempDir()
		makers["unix"] = func() (net.Conn, net.Conn, func(), error) {
			return socketPair("unix", filepath.Join(directory, "socket"))
		}
	}
	return makers
}

func wrap(a, b *eventloop.Conn) (net.Conn, net.Conn, func(), error) {
	return a, b, func() { a.Close(); b.Close() }, nil
}

// simPair returns a connection on a simulated network.
func simPair(network *simnet.Network) (client, accepted net.Conn, err error) {
	listener, err := network.Listen("peer:0")
	if err != nil {
		return nil, nil, err
	}
	defer listener.Close()
	client, err = network.Dial(context.Background(), "tcp", listener.Addr().String())
	if err != nil {
		return nil, nil, err
	}
	accepted, err = listener.Accept()
	return client, accepted, err
}

// dialledPair returns a dialled connection and a plain one.
func dialledPair(t *testing.T, config eventloop.Config) (*eventloop.Conn, net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := eventloop.Dial(t.Context(), "tcp", listener.Addr().String(), config)
	if err != nil {
		t.Fatal(err)
	}
	peer, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(); peer.Close() })
	return conn, peer
}

func TestConn_IsANetConn(t *testing.T) {
	for name, pipe := range pipes(t) {
		t.Run(name, func(t *testing.T) { nettest.TestConn(t, pipe) })
	}
}

func TestDial_Failures(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	for _, test := range []struct {
		name, network string
		ctx           context.Context
		config        eventloop.Config
		message       string
	}{
		{"refused", "tcp", t.Context(), eventloop.Config{}, "eventloop: dial tcp"},
		{"unknown network", "udp", t.Context(), eventloop.Config{}, `got "udp"`},
		{"ended context", "tcp", canceled, eventloop.Config{}, "canceled"},
		{"bad config", "tcp", t.Context(), eventloop.Config{Engine: 9}, "Engine: unknown (limit 2, got 9)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			conn, err := eventloop.Dial(test.ctx, test.network, address, test.config)
			if conn != nil || err == nil || !strings.Contains(err.Error(), test.message) {
				t.Errorf("Dial = %v, %v, want an error with %q", conn, err, test.message)
			}
		})
	}
}

func TestConn_CallbacksOfDialledConnections(t *testing.T) {
	var events []string
	cause := errors.New("the reason")
	conn, _ := dialledPair(t, eventloop.Config{
		OnOpen:  func(*eventloop.Conn) { events = append(events, "open") },
		OnClose: func(_ *eventloop.Conn, err error) { events = append(events, "close: "+err.Error()) },
	})
	conn.SetContext("mine")
	if got := conn.Context(); got != "mine" {
		t.Errorf("Context() = %v", got)
	}
	conn.CloseWithError(cause)
	conn.CloseWithError(errors.New("too late"))
	conn.Close()
	if got := strings.Join(events, ", "); got != "open, close: the reason" {
		t.Errorf("events: %s", got)
	}
	// Meant for served connections, without effect here.
	conn.Wake()
	conn.PauseReading()
	conn.ResumeReading()
	conn.Hold()
	conn.Release()
}

func TestReader_WaitsOnDialledConnections(t *testing.T) {
	conn, peer := dialledPair(t, eventloop.Config{})
	r := conn.Reader()

	send(t, peer, "hello ")
	if got, err := r.Peek(6); string(got) != "hello " || err != nil {
		t.Fatalf("Peek(6) = %q, %v", got, err)
	}
	go io.WriteString(peer, "world\nrest")
	if got, err := r.Until('\n'); string(got) != "hello world\n" || err != nil {
		t.Fatalf("Until = %q, %v", got, err)
	}
	if err := r.Skip(1); err != nil {
		t.Fatal(err)
	}
	// Read takes what is buffered first.
	p := make([]byte, 2)
	if n, err := io.ReadFull(conn, p); string(p[:n]) != "es" || err != nil {
		t.Fatalf("Read = %q, %v", p[:n], err)
	}
	if got := string(r.Buffered()); got != "t" || r.Len() != 1 {
		t.Errorf("Buffered() = %q, Len() = %d", got, r.Len())
	}

	conn.SetReadDeadline(time.Now().Add(time.Millisecond))
	if _, err := r.Next(2); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Next after the deadline = %v", err)
	}
	conn.SetReadDeadline(time.Time{})
	closeWrite(t, peer)
	if _, err := r.Next(2); err != io.ErrUnexpectedEOF {
		t.Errorf("Next(2) with one byte left = %v, want unexpected EOF", err)
	}
	if _, err := r.Until('\n'); err != io.ErrUnexpectedEOF {
		t.Errorf("Until with one byte left = %v, want unexpected EOF", err)
	}
	if got, err := r.Next(1); string(got) != "t" || err != nil {
		t.Errorf("Next(1) = %q, %v: a failed call consumed something", got, err)
	}
	if _, err := r.Peek(1); err != io.EOF {
		t.Errorf("Peek at the end = %v, want exactly io.EOF", err)
	}
}

func TestReader_RefusesImpossibleLengths(t *testing.T) {
	conn, peer := dialledPair(t, eventloop.Config{ReadBufferBytes: 1000})
	if _, err := conn.Reader().Peek(-1); err == nil {
		t.Error("Peek(-1) did not fail")
	}
	if _, err := conn.Reader().Next(1001); err == nil || !strings.Contains(err.Error(), "(limit 1000, got 1001)") {
		t.Errorf("Next beyond ReadBufferBytes = %v", err)
	}
	go io.WriteString(peer, strings.Repeat("x", 2000))
	if _, err := conn.Reader().Until('\n'); err == nil || !strings.Contains(err.Error(), "limit 1000") {
		t.Errorf("Until beyond ReadBufferBytes = %v", err)
	}
}

func TestReader_DeadlineWakesAPendingCall(t *testing.T) {
	conn, _ := dialledPair(t, eventloop.Config{})
	failed := make(chan error, 1)
	go func() {
		_, err := conn.Reader().Next(1)
		failed <- err
	}()
	conn.SetReadDeadline(time.Now())
	if err := receive(t, failed, "Next to return"); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Next = %v", err)
	}
}

func TestWriter_FlushSendsEverythingAtOnce(t *testing.T) {
	conn, peer := dialledPair(t, eventloop.Config{})
	w := conn.Writer()
	copy(w.Reserve(3), "one")
	w.Append([]byte(" two "))
	w.AppendString("three ")
	w.Insert([]byte("four"))
	w.InsertString(" five")
	if got := w.Len(); got != 23 {
		t.Errorf("Len() = %d", got)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil || w.Len() != 0 {
		t.Errorf("Flush of nothing = %v, Len() = %d", err, w.Len())
	}
	expect(t, peer, "one two three four five")

	conn.Close()
	w.AppendString("lost")
	if err := w.Flush(); !errors.Is(err, net.ErrClosed) || w.Len() != 0 {
		t.Errorf("Flush after Close = %v, Len() = %d", err, w.Len())
	}
}

func TestConn_CloseWriteNeedsASocketThatCan(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	conn := eventloop.NewConn(a, eventloop.Config{})
	defer conn.Close()
	if err := conn.CloseWrite(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("CloseWrite() = %v", err)
	}
}

// TestConn_CloseRacesWithEverything closes connections while others read, peek,
// write and set deadlines. Nothing may hang, panic or race, and the slices of
// the Reader must keep their content: memory of a closed connection must not be
// given to another.
func TestConn_CloseRacesWithEverything(t *testing.T) {
	network := simnet.New(simnet.Config{BufferBytes: 64})
	for i := range 10000 {
		a, b, err := simPair(network)
		if err != nil {
			t.Fatal(err)
		}
		conn, peer := eventloop.NewConn(a, eventloop.Config{}), eventloop.NewConn(b, eventloop.Config{})
		if _, err := peer.Write([]byte("0123456789")); err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		group.Go(func() {
			got, err := conn.Reader().Next(10)
			if err == nil && string(got) != "0123456789" {
				t.Errorf("got %q", got)
			}
			conn.Reader().Next(1)
			if err == nil && string(got) != "0123456789" {
				t.Errorf("the slice changed to %q", got)
			}
		})
		group.Go(func() { conn.Write(make([]byte, 100)) })
		group.Go(func() { conn.WriteBuffers([][]byte{make([]byte, 50), make([]byte, 50)}) })
		group.Go(func() { conn.SetDeadline(time.Now().Add(time.Hour)) })
		group.Go(func() {
			if i%2 == 0 {
				conn.Close()
			} else {
				peer.Close()
				conn.Close()
			}
		})
		group.Wait()
		peer.Close()
	}
}
