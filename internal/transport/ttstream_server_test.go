package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttstream"
)

// framePeer speaks frames by hand, as a peer does that has windows, or none.
type framePeer struct {
	t      *testing.T
	conn   net.Conn
	frames *ttstream.Conn
	pool   *linkbuf.Pool
	input  []byte
	// replies counts those of unary calls.
	replies int
}

func (p *streamPair) frames(t *testing.T) *framePeer {
	t.Helper()
	conn, err := p.network.Dial(t.Context(), "tcp", "server")
	if err != nil {
		t.Fatal(err)
	}
	f := &framePeer{t: t, conn: conn, pool: linkbuf.NewPool()}
	f.frames = ttstream.NewConn(ttstream.Config{Client: true, Calls: true}, f.pool, 0)
	t.Cleanup(func() {
		f.frames.Close()
		_ = conn.Close()
	})
	return f
}

func (f *framePeer) write(b []byte) {
	f.t.Helper()
	if _, err := f.conn.Write(b); err != nil {
		f.t.Fatal(err)
	}
}

// raw sends a frame with keys of one's own: none of ours, if there are none.
func (f *framePeer) raw(kind string, id int32, method string, payload []byte, pairs ...ttheader.Pair) {
	f.t.Helper()
	f.rawWith(nil, kind, id, method, payload, pairs...)
}

// rawWith is raw with other keys of the protocol besides.
func (f *framePeer) rawWith(more []ttheader.IntPair, kind string, id int32, method string, payload []byte, pairs ...ttheader.Pair) {
	f.t.Helper()
	head := ttheader.Head{
		Flags: wire.FlagStreaming, Sequence: id, Protocol: ttheader.ProtocolStruct, Strings: pairs,
		Ints: append(more, ttheader.IntPair{Key: wire.KeyStreamFrameType, Value: kind}, ttheader.IntPair{Key: wire.KeyToMethod, Value: method}),
	}
	size, err := head.Size()
	if err != nil {
		f.t.Fatal(err)
	}
	b := make([]byte, size)
	head.Put(b, len(payload))
	f.write(append(b, payload...))
}

func (f *framePeer) flush() {
	f.t.Helper()
	full := f.frames.Swap(linkbuf.New(f.pool))
	defer full.Release()
	f.write(bytes.Join(full.Slices(nil), nil))
}

// next returns what the server says next, EventCall for a whole reply.
func (f *framePeer) next() ttstream.Event {
	f.t.Helper()
	f.flush()
	for {
		event, used, _, err := f.frames.Next(f.input, 0)
		if err != nil {
			f.t.Fatal(err)
		}
		f.input = f.input[used:]
		if event.Kind == ttstream.EventCall {
			message, used, _, err := ttheader.Next(f.input, limits.DefaultMessage())
			if err != nil {
				f.t.Fatal(err)
			}
			if f.input = f.input[used:]; used > 0 {
				if string(message.Body) != "\x00" {
					f.t.Errorf("reply %q", message.Body)
				}
				f.replies++
				return event
			}
		} else if event.Kind != ttstream.EventNone {
			return event
		} else if used > 0 {
			continue
		}
		b := make([]byte, 4096)
		n, err := f.conn.Read(b)
		if f.input = append(f.input, b[:n]...); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *framePeer) open(method string) int32 {
	f.t.Helper()
	id, err := f.frames.Open(ttstream.Request{Method: method})
	if err != nil {
		f.t.Fatal(err)
	}
	return id
}

// unary returns the bytes of a call of a method.
func unary(t *testing.T, method string, sequence int32) []byte {
	t.Helper()
	head := ttheader.Head{Flags: wire.FlagOutOfOrder, Sequence: sequence}
	size, err := head.Size()
	if err != nil {
		t.Fatal(err)
	}
	message := make([]byte, thriftwire.AppendedHeaderSize(method), 64)
	thriftwire.PutHeader(message, thriftwire.Call, method, sequence)
	message = append(message, byte(thriftwire.Stop))
	b := make([]byte, size)
	head.Put(b, len(message))
	return append(b, message...)
}

// TestTTStream_UnaryCallsBetweenFrames are served as on other connections.
func TestTTStream_UnaryCallsBetweenFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pair := newStreamPair(t, wire.TTHeader, func(ctx context.Context, call *Inbound) {
			if call.Stream != nil {
				echo(ctx, call)
				return
			}
			reply, err := call.NewReply("unary", ReplyHead{})
			if err != nil {
				t.Error(err)
				return
			}
			defer reply.Release()
			reply.Body().AppendString("\x00")
			if err := reply.Send(); err != nil {
				t.Error(err)
			}
		})
		f := pair.frames(t)
		f.write(unary(t, "unary", 1))
		id := f.open("echo")
		f.flush()
		f.write(unary(t, "unary", 2))
		for range 3 {
			if sent, err := f.frames.Send(id, []byte("hello")); err != nil || !sent {
				t.Fatal(sent, err)
			}
			f.flush()
			f.write(unary(t, "unary", 3))
		}
		if err := f.frames.End(id, nil, nil); err != nil {
			t.Fatal(err)
		}
		messages, ended := 0, false
		for !ended || f.replies < 5 {
			switch event := f.next(); event.Kind {
			case ttstream.EventData:
				messages++
				f.frames.Consume(id, len(event.Data))
			case ttstream.EventEnd:
				ended = true
				f.frames.Release(id)
			}
		}
		if messages != 3 {
			t.Errorf("%d messages came back", messages)
		}
	})
}

// TestTTStream_NotAStream: methods that are none, or not there, are refused unexecuted, and
// the connection goes on.
func TestTTStream_NotAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pair := newStreamPair(t, wire.TTHeader, func(ctx context.Context, call *Inbound) {
			if err := call.Invalid(); err != nil {
				_ = call.SendException("m", thriftwire.ApplicationException{Type: thriftwire.ExceptionUnknownMethod, Message: err.Error()}, ReplyHead{Executed: executedNo})
				return
			}
			echo(ctx, call)
		})
		stream := pair.open(t.Context(), t, "unary")
		if _, err := stream.Receive(0); err != io.EOF {
			t.Errorf("receiving: %v", err)
		}
		status, trailer := stream.End()
		if status == nil || status.Exception != thriftwire.ExceptionUnknownMethod || !strings.Contains(status.Message, "called as a stream") || trailer.Executed != executedNo {
			t.Errorf("%+v, %+v", status, trailer)
		}
		stream.Release()
		if got, err := streamEcho(t, pair); got != 1 || err != io.EOF {
			t.Errorf("another call: %d, %v", got, err)
		}
	})
}

// TestTTStream_NobodyReceives: a peer without windows, as Kitex, is not read while a handler
// takes nothing, and in the end its stream goes, so that others can.
func TestTTStream_NobodyReceives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := make(chan error, 1)
		pair := newStreamPair(t, wire.TTHeader, func(ctx context.Context, call *Inbound) {
			if call.Target == "echo" {
				echo(ctx, call)
				return
			}
			<-ctx.Done()
			_, err := receivesAll(call.Stream)
			told <- err
		})
		f := pair.frames(t)
		f.raw("2", 6, "echo", nil)
		f.raw("2", 7, "flood", nil)
		message := bytes.Repeat([]byte("x"), 64<<10)
		sent := make(chan struct{})
		go func() {
			for range 64 {
				f.raw("3", 7, "flood", message)
			}
			close(sent)
		}()
		synctest.Wait()
		if held := pair.server.Buffered(); held > 3*limits.StreamBufferBytes {
			t.Errorf("the server holds %d bytes of a stream that nobody receives from", held)
		}
		select {
		case <-sent:
			t.Error("all of 4 MiB was read")
		default:
		}
		began := time.Now()
		if err := <-told; !errors.Is(err, context.Canceled) && !strings.Contains(err.Error(), "nobody receives") {
			t.Errorf("the handler was told %v", err)
		}
		if took := time.Since(began); took < limits.StreamPause/2 || took > 3*limits.StreamPause {
			t.Errorf("that was after %v", took)
		}
		<-sent
		f.raw("2", 8, "echo", nil)
		f.raw("3", 8, "echo", []byte("hello"))
		event := ttstream.Frame{}
		for event.Type != ttstream.FrameData {
			event = f.frame()
		}
		if event.Stream != 8 || string(event.Payload) != "hello" {
			t.Errorf("%+v", event)
		}
	})
}

// TestTTStream_SlowAlone: if nobody else waits for the connection, a peer without windows waits
// for a handler as long as that takes, and learns of the end of its time.
func TestTTStream_SlowAlone(t *testing.T) {
	const messages = 64
	for name, pairs := range map[string][]ttheader.IntPair{"no deadline": nil, "deadline": {{Key: wire.KeyTimeout, Value: "30000"}}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var received []string
				told := make(chan error, 1)
				pair := newStreamPair(t, wire.TTHeader, func(_ context.Context, call *Inbound) {
					time.Sleep(time.Minute)
					var err error
					received, err = receivesAll(call.Stream)
					told <- err
				})
				f := pair.frames(t)
				f.rawWith(pairs, "2", 7, "flood", nil)
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					for range messages {
						f.raw("3", 7, "flood", make([]byte, 64<<10))
					}
					f.raw("4", 7, "flood", nil)
				}()
				want, wantErr := messages, io.EOF
				if pairs != nil {
					want, wantErr = 0, context.DeadlineExceeded
				}
				if err := <-told; len(received) != want || !errors.Is(err, wantErr) {
					t.Errorf("received %d messages, %v; want %d, %v", len(received), err, want, wantErr)
				}
				<-sent
			})
		})
	}
}

// frame returns the next frame as it is.
func (f *framePeer) frame() ttstream.Frame {
	f.t.Helper()
	for {
		frame, used, _, err := ttstream.Next(f.input, 1<<20)
		if err != nil {
			f.t.Fatal(err)
		}
		if used > 0 {
			f.input = f.input[used:]
			return frame
		}
		b := make([]byte, 4096)
		n, err := f.conn.Read(b)
		if f.input = append(f.input, b[:n]...); err != nil {
			f.t.Fatal(err)
		}
	}
}

// TestTTStream_TooLong: what is too long is thrown away as it comes, and ends its stream
// only.
func TestTTStream_TooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := make(chan error, 1)
		pair := newStreamPair(t, wire.TTHeader, func(ctx context.Context, call *Inbound) {
			if call.Target == "echo" {
				echo(ctx, call)
				return
			}
			_, err := receivesAll(call.Stream)
			told <- err
		})
		f := pair.frames(t)
		f.raw("2", 7, "long", nil)
		f.raw("3", 7, "long", make([]byte, limits.MessageBytes+1))
		f.raw("2", 8, "echo", nil)
		f.raw("3", 8, "echo", []byte("hello"))
		failed := new(grpc.Error)
		if err := <-told; !errors.As(err, &failed) || failed.Code != grpc.ResourceExhausted {
			t.Errorf("the handler was told %v", err)
		}
		var kinds []string
		for len(kinds) == 0 || kinds[len(kinds)-1] != "DATA 8" {
			frame := f.frame()
			kinds = append(kinds, frame.Type.String()+" "+string('0'+frame.Stream))
		}
		if got := strings.Join(kinds, ", "); !strings.Contains(got, "RST 7") {
			t.Errorf("the server sent %s", got)
		}
	})
}

// TestTTStream_ClientThatFails: an exception with which a client ends what it sends is no end
// of its messages as others are.
func TestTTStream_ClientThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := make(chan error, 1)
		pair := newStreamPair(t, wire.TTHeader, func(_ context.Context, call *Inbound) {
			_, err := receivesAll(call.Stream)
			told <- err
		})
		f := pair.frames(t)
		id := f.open("fails")
		if err := f.frames.End(id, nil, &ttstream.Failure{Code: thriftwire.ExceptionInternalError, Message: "lost its source"}); err != nil {
			t.Fatal(err)
		}
		f.flush()
		failed := new(grpc.Error)
		if err := <-told; !errors.As(err, &failed) || failed.Code != grpc.Unknown || !strings.Contains(failed.Detail, "lost its source") {
			t.Errorf("after an exception the handler was told %v", err)
		}
		f.raw("2", 7, "fails", nil)
		f.raw("4", 7, "fails", []byte("no exception"))
		if err := <-told; !errors.As(err, &failed) || failed.Code != grpc.Internal {
			t.Errorf("after what is none the handler was told %v", err)
		}
	})
}

// TestTTStream_Garbage ends the connection, and every stream of it learns that.
func TestTTStream_Garbage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := make(chan error, 1)
		pair := newStreamPair(t, wire.TTHeader, func(_ context.Context, call *Inbound) {
			_, err := receivesAll(call.Stream)
			told <- err
		})
		f := pair.frames(t)
		f.raw("2", 7, "m", nil)
		f.raw("9", 7, "m", nil)
		if err := <-told; !errors.Is(err, context.Canceled) {
			t.Errorf("the handler was told %v", err)
		}
		if _, err := io.Copy(io.Discard, f.conn); err != nil {
			t.Errorf("the connection ends with %v", err)
		}
	})
}

// TestTTStream_CancelPath: the services through which a cancellation came travel with it.
func TestTTStream_CancelPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		paths := make(chan string, 1)
		back := newStreamPair(t, wire.TTHeader, func(ctx context.Context, _ *Inbound) {
			<-ctx.Done()
			paths <- cancelPath(ctx, "")
		})
		front := newStreamPair(t, wire.TTHeader, func(ctx context.Context, _ *Inbound) {
			request, err := back.peer.NewRequest(Method{Name: "m", Qualified: "m", Streams: true}, RequestHead{FromService: "mid"})
			if err != nil {
				t.Error(err)
				return
			}
			stream, err := back.peer.OpenStream(ctx, request)
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = stream.Receive(0)
			stream.Release()
		})
		request, err := front.peer.NewRequest(Method{Name: "m", Qualified: "m", Streams: true}, RequestHead{FromService: "edge"})
		if err != nil {
			t.Fatal(err)
		}
		stream, err := front.peer.OpenStream(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		stream.Cancel(context.Canceled)
		if got := <-paths; got != "edge,mid" {
			t.Errorf("the cancellation came by %q", got)
		}
		stream.Release()
	})
}
