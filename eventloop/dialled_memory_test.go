package eventloop_test

import (
	"bytes"
	"context"
	"runtime"
	"testing"

	"github.com/fulmar-rpc/fulmar/eventloop"
)

// TestMemory_OfDialledConnections is used again for one long message after the other, on the
// same connection and on others, and what a connection has when it closes is only lost.
func TestMemory_OfDialledConnections(t *testing.T) {
	message := longOf('x')
	s := serve(t, eventloop.Config{Logger: silence()}, func(conn *eventloop.Conn) error {
		if _, err := conn.Reader().Until('\n'); err != nil {
			return err
		}
		conn.Writer().Append(message)
		return nil
	})
	memory := new(eventloop.Memory)
	ask := func(conn *eventloop.Conn) {
		t.Helper()
		if _, err := conn.Write([]byte("?\n")); err != nil {
			t.Fatal(err)
		}
		got, err := conn.Reader().Next(longMessage)
		if err != nil || !bytes.Equal(got, message) {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
	}
	dial := func() *eventloop.Conn {
		conn, err := eventloop.Dial(context.Background(), "tcp", s.Addr().String(), eventloop.Config{Memory: memory})
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	first, second := dial(), dial()
	ask(first)
	first.Reader().Shrink()
	const rounds = 50
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range rounds {
		for _, conn := range []*eventloop.Conn{first, second} {
			ask(conn)
			conn.Reader().Shrink()
		}
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / (2 * rounds); each > longMessage {
		t.Errorf("%d bytes are allocated for a message of %d", each, longMessage)
	}
	ask(first)
	for _, conn := range []*eventloop.Conn{first, second} {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}
