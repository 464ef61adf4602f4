//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// patience bounds the wait for what must happen.
const patience = 30 * time.Second

// variant is a server with one way to poll and one to find connections.
type variant struct {
	name string
	loop loop
	make func() directory
}

func variants() []variant {
	var all []variant
	for _, l := range loops() {
		all = append(all, variant{l.name, l, newSlots})
	}
	for _, d := range directories() {
		all = append(all, variant{d.name, loopOf("msec-switch-gosched"), d.make})
	}
	return all
}

// forEach runs a test against a server of each variant.
func forEach(t *testing.T, test func(t *testing.T, dial func() net.Conn)) {
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			for _, network := range []string{"tcp", "unix"} {
				listener, err := net.Listen(network, map[string]string{"tcp": "127.0.0.1:0", "unix": ""}[network])
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				served := make(chan error, 1)
				go func() { served <- serve(ctx, listener, v.loop, v.make()) }()
				test(t, func() net.Conn {
					conn, err := net.Dial(network, listener.Addr().String())
					if err == nil {
						err = conn.SetDeadline(time.Now().Add(patience))
					}
					if err != nil {
						t.Fatal(err)
					}
					return conn
				})
				cancel()
				if err := <-served; err != nil {
					t.Errorf("%s: %v", network, err)
				}
			}
		})
	}
}

func frame(id uint64, payload int) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(9+payload))
	b = append(binary.BigEndian.AppendUint64(b, id), 0)
	return append(b, bytes.Repeat([]byte{byte(id)}, payload)...)
}

func TestServe_EchoesWholeFrames(t *testing.T) {
	forEach(t, func(t *testing.T, dial func() net.Conn) {
		for range 3 { // Descriptors are used again.
			first, second := dial(), dial()
			var want []byte
			for id, payload := range []int{0, 128, 20_000, 1, 1 << 20} {
				want = append(want, frame(uint64(id), payload)...)
			}
			exchange(t, first, want, len(want))
			exchange(t, second, want[:40], 13)
			exchange(t, first, want, len(want))
			if err := errors.Join(first.Close(), second.Close()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// exchange sends bytes, in pieces that end within frames, and wants the first ones
// back.
func exchange(t *testing.T, conn net.Conn, sent []byte, back int) {
	t.Helper()
	written := make(chan error, 1)
	go func() {
		for rest := sent; len(rest) > 0; {
			n, err := conn.Write(rest[:min(len(rest), 3333)])
			if err != nil {
				written <- err
				return
			}
			rest = rest[n:]
		}
		written <- nil
	}()
	got := make([]byte, back)
	if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, sent[:back]) {
		t.Errorf("the reply of %d bytes differs from the request: %v", back, err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
}

func TestServe_ClosesWhoeverSendsGarbage(t *testing.T) {
	forEach(t, func(t *testing.T, dial func() net.Conn) {
		for _, garbage := range [][]byte{{0, 0, 0, 0}, {0xff, 0xff, 0xff, 0xff}, append(frame(1, 5), 0, 0, 0, 8)} {
			conn, other := dial(), dial()
			if _, err := conn.Write(garbage); err != nil {
				t.Fatal(err)
			}
			if n, err := io.Copy(io.Discard, conn); n > int64(len(garbage)) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%x: %d bytes, %v; want the end", garbage, n, err)
			}
			exchange(t, other, frame(2, 50), 63) // Others do not notice.
			if err := errors.Join(conn.Close(), other.Close()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A client that asks, stops sending and then reads gets its replies.
func TestServe_AnswersWhoStoppedSending(t *testing.T) {
	forEach(t, func(t *testing.T, dial func() net.Conn) {
		conn := dial()
		want := append(frame(1, 300_000), frame(2, 3)...)
		written := make(chan error, 1)
		go func() {
			_, err := conn.Write(want)
			written <- errors.Join(err, conn.(interface{ CloseWrite() error }).CloseWrite())
		}()
		got, err := io.ReadAll(conn)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes, %v; want %d", len(got), err, len(want))
		}
		if err := errors.Join(<-written, conn.Close()); err != nil {
			t.Error(err)
		}
	})
}

// It ends although clients are there, one of which takes no bytes.
func TestServe_EndsWithItsContext(t *testing.T) {
	forEach(t, func(t *testing.T, dial func() net.Conn) {
		greedy, idle := dial(), dial()
		defer greedy.Close()
		defer idle.Close()
		exchange(t, idle, frame(1, 1), 14)
		// More than sockets hold, so that the handler waits. What does not fit any
		// more may be refused by the deadline or the end.
		if err := greedy.SetWriteDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if _, err := greedy.Write(frame(1, 6<<20)); err != nil {
			t.Fatal(err)
		}
	})
}
