package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
)

// onEachCarrier runs a test in virtual time over each protocol that carries streams.
func onEachCarrier(t *testing.T, test func(t *testing.T, protocol wire.Protocol)) {
	t.Helper()
	for _, protocol := range []wire.Protocol{wire.GRPC, wire.TTHeader} {
		t.Run(protocol.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, protocol) })
		})
	}
}

// streamPair is a Peer and a Server between which there are streams.
type streamPair struct {
	peer    *Peer
	server  *Server
	payload wire.Payload
	network *simnet.Network
	// conns are what the peer has dialled.
	conns []net.Conn
}

// panicMethod is one that the look-up panics over.
const panicMethod = "panics"

func lookUp(method string) any {
	if method == panicMethod {
		panic("in the look-up")
	}
	return method
}

// newStreamPair returns them. handle answers calls of all methods.
func newStreamPair(t testing.TB, protocol wire.Protocol, handle func(ctx context.Context, call *Inbound)) *streamPair {
	t.Helper()
	network := simnet.New(simnet.Config{})
	listener, err := network.Listen("server")
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(ServerConfig{
		ConnectionCalls: limits.ConnectionCalls,
		Allowed:         wire.SetOf(wire.GRPC, wire.TTHeader), Limits: limits.DefaultMessage(), BufferedBytes: 64 << 20, Logger: slog.New(slog.DiscardHandler),
		LookupExact: func(_, method string, _ wire.Payload) any { return lookUp(method) },
		Lookup:      func(_, method []byte, _ wire.Payload) any { return lookUp(string(method)) },
		Streams:     func(target any) bool { return target != "unary" },
		Handle: func(ctx context.Context, call *Inbound) {
			call.LetGo()
			handle(ctx, call)
		},
	})
	pair := &streamPair{network: network}
	serving, err := eventloop.NewListener(listener, server.EventLoop(eventloop.Config{}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, serving) }()
	peer := NewPeer(PoolConfig{
		Protocol: protocol, Waiting: 1000, Authority: "server", Connections: 1, Limits: limits.DefaultMessage(), ConnectTimeout: time.Second,
		Dial: func(ctx context.Context) (*eventloop.Conn, error) {
			conn, err := network.Dial(ctx, "tcp", "server")
			if err != nil {
				return nil, err
			}
			pair.conns = append(pair.conns, conn)
			return eventloop.NewConn(conn, eventloop.Config{ReadBufferBytes: max(HTTP2ReadBufferBytes, ReadBufferBytes(limits.DefaultMessage()))}), nil
		},
	})
	t.Cleanup(func() {
		peer.Close()
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		synctest.Wait() // for writers whose connection has closed
		if held := server.Buffered(); held != 0 {
			t.Errorf("the budget counts %d bytes after all", held)
		}
	})
	payload := wire.PayloadThrift
	if protocol == wire.GRPC {
		payload = wire.PayloadProtobuf
	}
	pair.peer, pair.server, pair.payload = peer, server, payload
	return pair
}

func (p *streamPair) open(ctx context.Context, t testing.TB, method string, metadata ...Pair) ClientStream {
	t.Helper()
	request, err := p.peer.NewRequest(Method{Name: method, Qualified: method, Payload: p.payload, Streams: true}, RequestHead{Service: "s", Metadata: metadata})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := p.peer.OpenStream(ctx, request)
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// sends sends messages, and reports the first error.
func sends(stream Stream, messages ...string) error {
	for _, message := range messages {
		stream.Room().AppendString(message)
		if err := stream.Send(false); err != nil {
			return err
		}
	}
	return nil
}

// receivesAll receives until the end.
func receivesAll(stream Stream) (messages []string, err error) {
	for {
		body, err := stream.Receive(0)
		if err != nil {
			return messages, err
		}
		messages = append(messages, string(body))
	}
}

// echo answers each message with the same one.
func echo(_ context.Context, call *Inbound) {
	for {
		body, err := call.Stream.Receive(0)
		if err == io.EOF {
			_ = call.FinishStream(ReplyHead{Metadata: []Pair{{Key: "trailer", Value: "t"}}})
			return
		}
		if err != nil {
			return
		}
		call.Stream.Room().Append(body)
		if call.Stream.Send(false) != nil {
			return
		}
	}
}

func TestStream_Echo(t *testing.T) {
	onEachCarrier(t, func(t *testing.T, protocol wire.Protocol) {
		pair := newStreamPair(t, protocol, func(ctx context.Context, call *Inbound) {
			if err := call.Stream.SendHeader([]Pair{{Key: "header", Value: "h"}}); err != nil {
				t.Error(err)
			}
			if err := call.Stream.SendHeader(nil); !errors.Is(err, errHeaderSent) {
				t.Errorf("a second header: %v", err)
			}
			echo(ctx, call)
		})
		stream := pair.open(t.Context(), t, "bidi", Pair{Prefix: wire.TransientPrefix, Key: "k", Value: "v"})
		if header, err := stream.Header(); err != nil || !slices.Equal(header, []Pair{{Key: "header", Value: "h"}}) {
			t.Errorf("header %v, %v", header, err)
		}
		for _, size := range []int{0, 1, 1000, 16 << 10, 1 << 20, 0, 200_000} {
			if size == 0 && protocol == wire.TTHeader {
				continue // there is no struct without bytes
			}
			message := bytes.Repeat([]byte("x"), size)
			if err := sends(stream, string(message)); err != nil {
				t.Fatal(err)
			}
			got, err := stream.Receive(0)
			if err != nil || !bytes.Equal(got, message) {
				t.Fatalf("%d bytes came back as %d: %v", size, len(got), err)
			}
		}
		if err := stream.CloseSend(); err != nil {
			t.Error(err)
		}
		if _, err := stream.Receive(0); err != io.EOF {
			t.Errorf("end: %v", err)
		}
		status, trailer := stream.End()
		if status != nil || !slices.Equal(slices.Concat(trailer.Metadata, trailer.Trailing), []Pair{{Key: "trailer", Value: "t"}}) {
			t.Errorf("ended with %v, %v", status, trailer)
		}
		if err := sends(stream, "late"); err != io.EOF {
			t.Errorf("late message: %v", err)
		}
		stream.Release()
		if _, err := stream.Receive(0); err == nil {
			t.Error("a stream gives messages after Release")
		}
	})
}

// waiterFunc is a Waiter.
type waiterFunc func()

// WillWait implements Waiter.
func (f waiterFunc) WillWait() { f() }

// TestStream_TellsThatItWaits: a handler that opens a stream is going to wait for it.
func TestStream_TellsThatItWaits(t *testing.T) {
	onEachCarrier(t, func(t *testing.T, protocol wire.Protocol) {
		pair := newStreamPair(t, protocol, echo)
		told := 0
		pair.open(context.WithValue(t.Context(), WaiterKey{}, waiterFunc(func() { told++ })), t, "m").Release()
		if told == 0 {
			t.Error("nobody was told")
		}
	})
}

// TestStream_Kinds: many messages in one direction, with nobody waiting for the other.
func TestStream_Kinds(t *testing.T) {
	const count = 5000
	onEachCarrier(t, func(t *testing.T, protocol wire.Protocol) {
		pair := newStreamPair(t, protocol, func(_ context.Context, call *Inbound) {
			switch call.Target {
			case "down":
				if body, err := call.Stream.Receive(0); err != nil || string(body) != "go" {
					t.Errorf("%q, %v", body, err)
				}
				for i := range count {
					if err := sends(call.Stream, fmt.Sprint(i)); err != nil {
						t.Error(err)
					}
				}
			case "up":
				messages, err := receivesAll(call.Stream)
				if err != io.EOF {
					t.Error(err)
				}
				if err := sends(call.Stream, fmt.Sprintf("%d, the last %s", len(messages), messages[len(messages)-1])); err != nil {
					t.Error(err)
				}
			}
			if err := call.FinishStream(ReplyHead{}); err != nil {
				t.Error(err)
			}
		})
		down := pair.open(t.Context(), t, "down")
		down.Room().AppendString("go")
		if err := down.Send(true); err != nil {
			t.Fatal(err)
		}
		messages, err := receivesAll(down)
		if err != io.EOF || len(messages) != count {
			t.Fatalf("%d messages, %v", len(messages), err)
		}
		for i, message := range messages {
			if message != fmt.Sprint(i) {
				t.Fatalf("message %d is %q", i, message)
			}
		}
		down.Release()
		up := pair.open(t.Context(), t, "up")
		if err := sends(up, messages...); err != nil {
			t.Fatal(err)
		}
		if err := up.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if got, err := receivesAll(up); err != io.EOF || len(got) != 1 || got[0] != fmt.Sprintf("%d, the last %d", count, count-1) {
			t.Errorf("%q, %v", got, err)
		}
		up.Release()
	})
}

// TestStream_SenderWaitsForReceiver: what a receiver does not take stays with the sender,
// in both directions, and other streams of the connection go on.
func TestStream_SenderWaitsForReceiver(t *testing.T) {
	const size, most = 64 << 10, 16
	onEachCarrier(t, func(t *testing.T, protocol wire.Protocol) {
		go1, sent := make(chan struct{}), make(chan int, 1)
		message := strings.Repeat("y", size)
		pair := newStreamPair(t, protocol, func(ctx context.Context, call *Inbound) {
			if call.Target != "flood" {
				echo(ctx, call)
				return
			}
			_ = call.Stream.SendHeader(nil)
			<-go1
			messages, err := receivesAll(call.Stream)
			if err != io.EOF {
				t.Error(err)
			}
			sent <- len(messages)
			_ = call.FinishStream(ReplyHead{})
		})
		flood := pair.open(t.Context(), t, "flood")
		// The first stream over TTHeader has no window before the server has said so.
		if _, err := flood.Header(); err != nil {
			t.Error(err)
		}
		var mu sync.Mutex
		count := 0
		go func() {
			for range 2 * most {
				if err := sends(flood, message); err != nil {
					t.Error(err)
				}
				mu.Lock()
				count++
				mu.Unlock()
			}
			_ = flood.CloseSend()
		}()
		synctest.Wait()
		mu.Lock()
		if count > most {
			t.Errorf("%d messages of %d bytes were sent to somebody who takes none", count, size)
		}
		mu.Unlock()
		if held := pair.server.Buffered(); held > most*size {
			t.Errorf("the server holds %d bytes", held)
		}
		other := pair.open(t.Context(), t, "echo")
		if err := sends(other, "hello"); err != nil {
			t.Error(err)
		}
		if body, err := other.Receive(time.Second); err != nil || string(body) != "hello" {
			t.Errorf("another stream: %q, %v", body, err)
		}
		other.Release()
		close(go1)
		if got := <-sent; got != 2*most {
			t.Errorf("%d messages arrived", got)
		}
		flood.Release()
	})
}

// TestStream_Status: a status is what the call ended with, behind its messages or alone.
func TestStream_Status(t *testing.T) {
	onEachCarrier(t, func(t *testing.T, protocol wire.Protocol) {
		pair := newStreamPair(t, protocol, func(_ context.Context, call *Inbound) {
			if call.Target == "later" {
				_ = sends(call.Stream, "one")
			}
			_ = call.SendException("m", thriftwire.ApplicationException{Message: "no"}, ReplyHead{Code: uint32(grpc.ResourceExhausted), Metadata: []Pair{{Key: "k", Value: "v"}}})
		})
		for _, method := range []string{"at once", "later"} {
			stream := pair.open(t.Context(), t, strings.ReplaceAll(method, " ", ""))
			messages, err := receivesAll(stream)
			status, trailer := stream.End()
			if err != io.EOF || status == nil || max(status.Code, trailer.Code) != uint32(grpc.ResourceExhausted) || status.Message != "no" || !slices.Equal(slices.Concat(trailer.Metadata, trailer.Trailing), []Pair{{Key: "k", Value: "v"}}) {
				t.Errorf("%s: %q, %v, %+v, %+v", method, messages, err, status, trailer)
			}
			stream.Release()
		}
	})
}

// TestStream_NoAnswer: a handler that returns without an answer has failed.
func TestStream_NoAnswer(t *testing.T) {
	onEachCarrier(t, func(t *testing.T, protocol wire.Protocol) {
		pair := newStreamPair(t, protocol, func(context.Context, *Inbound) {})
		stream := pair.open(t.Context(), t, "m")
		_, err := stream.Receive(0)
		if status, _ := stream.End(); err != io.EOF || status == nil || status.Code != uint32(grpc.Internal) && !status.IsException {
			t.Errorf("%v, %+v", err, status)
		}
		stream.Release()
	})
}

// TestStream_Canceled: both sides learn it, and the connection goes on.
func TestStream_Canceled(t *testing.T) {
	onEachCarrier(t, func(t *testing.T, protocol wire.Protocol) {
		told := make(chan error, 3)
		pair := newStreamPair(t, protocol, func(ctx context.Context, call *Inbound) {
			_, err := call.Stream.Receive(0)
			told <- err
			<-ctx.Done()
			told <- ctx.Err()
			told <- sends(call.Stream, "late")
		})
		ctx, cancel := context.WithCancel(t.Context())
		stream := pair.open(ctx, t, "m")
		synctest.Wait()
		cancel()
		if _, err := stream.Receive(0); !errors.Is(err, context.Canceled) {
			t.Errorf("receiving: %v", err)
		}
		if err := sends(stream, "x"); !errors.Is(err, context.Canceled) {
			t.Errorf("sending: %v", err)
		}
		if _, err := stream.Header(); !errors.Is(err, context.Canceled) {
			t.Errorf("header: %v", err)
		}
		for range 3 {
			if err := <-told; !errors.Is(err, context.Canceled) {
				t.Errorf("the handler was told %v", err)
			}
		}
		stream.Release()
		if got, err := streamEcho(t, pair); got != 1 || err != io.EOF {
			t.Errorf("another call: %d, %v", got, err)
		}
	})
}

// TestStream_Deadline: both sides know it.
func TestStream_Deadline(t *testing.T) {
	onEachCarrier(t, func(t *testing.T, protocol wire.Protocol) {
		told := make(chan error, 1)
		pair := newStreamPair(t, protocol, func(ctx context.Context, call *Inbound) {
			_, err := call.Stream.Receive(0)
			told <- err
			<-ctx.Done()
		})
		stream := pair.open(deadlineContext{t.Context(), time.Now().Add(time.Second)}, t, "m")
		if _, err := stream.Receive(0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("receiving: %v", err)
		}
		if err := <-told; !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
			t.Errorf("the handler was told %v", err)
		}
		stream.Release()
	})
}

// TestStream_ReceiveTimeout: it leaves the stream as it was.
func TestStream_ReceiveTimeout(t *testing.T) {
	onEachCarrier(t, func(t *testing.T, protocol wire.Protocol) {
		pair := newStreamPair(t, protocol, echo)
		stream := pair.open(t.Context(), t, "m")
		for range 2 {
			if _, err := stream.Receive(time.Second); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("receiving: %v", err)
			}
		}
		if err := sends(stream, "still there"); err != nil {
			t.Error(err)
		}
		if body, err := stream.Receive(time.Second); string(body) != "still there" || err != nil {
			t.Errorf("%q, %v", body, err)
		}
		stream.Release()
	})
}

// TestStream_ConnectionLost: both sides learn it.
func TestStream_ConnectionLost(t *testing.T) {
	onEachCarrier(t, func(t *testing.T, protocol wire.Protocol) {
		told := make(chan error, 1)
		pair := newStreamPair(t, protocol, func(_ context.Context, call *Inbound) {
			_, err := call.Stream.Receive(0)
			told <- err
		})
		stream := pair.open(t.Context(), t, "m")
		synctest.Wait()
		pair.peer.Close()
		if _, err := stream.Receive(0); !errors.Is(err, ErrClosed) {
			t.Errorf("receiving: %v", err)
		}
		if err := <-told; !errors.Is(err, context.Canceled) {
			t.Errorf("the handler was told %v", err)
		}
		stream.Release()
	})
}

// TestStream_TooLong: a message above the limit ends what is received, behind those in front of it.
func TestStream_TooLong(t *testing.T) {
	onEachCarrier(t, func(t *testing.T, protocol wire.Protocol) {
		told := make(chan error, 1)
		pair := newStreamPair(t, protocol, func(_ context.Context, call *Inbound) {
			_ = call.Stream.SendHeader(nil)
			_, err := receivesAll(call.Stream)
			told <- err
			_ = call.SendException("m", thriftwire.ApplicationException{Message: "no"}, ReplyHead{Code: uint32(grpc.ResourceExhausted)})
		})
		stream := pair.open(t.Context(), t, "m")
		if _, err := stream.Header(); err != nil {
			t.Error(err)
		}
		sent := make(chan error, 1)
		go func() { sent <- sends(stream, "fine", strings.Repeat("z", limits.DefaultMessage().Bytes+1)) }()
		failed := new(grpc.Error)
		if protocol == wire.TTHeader {
			// The server has said what it takes.
			if err := <-sent; !errors.As(err, &failed) || failed.Code != grpc.ResourceExhausted {
				t.Errorf("the client was told %v", err)
			}
			stream.Release()
			<-told
			return
		}
		if err := <-told; !errors.As(err, &failed) || failed.Code != grpc.ResourceExhausted {
			t.Errorf("the handler was told %v", err)
		}
		if _, err := stream.Receive(0); err != io.EOF {
			t.Errorf("receiving: %v", err)
		}
		stream.Release()
	})
}

func streamEcho(t *testing.T, pair *streamPair) (messages int, err error) {
	t.Helper()
	pair.server.config.Handle = echoInbound
	stream := pair.open(t.Context(), t, "echo")
	defer stream.Release()
	if err := sends(stream, "x"); err != nil {
		return 0, err
	}
	_ = stream.CloseSend()
	got, err := receivesAll(stream)
	return len(got), err
}

func echoInbound(ctx context.Context, call *Inbound) {
	call.LetGo()
	echo(ctx, call)
}
