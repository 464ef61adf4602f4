package fulmar_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// nothingOf is a request of so many bytes of Echo.nothing, in a field that nobody knows.
func nothingOf(length int) []byte {
	body := append([]byte{11, 0, 99, byte(length >> 24), byte(length >> 16), byte(length >> 8), byte(length)}, make([]byte, length+1)...)
	return grpcMessage(body, false)
}

// anything is a streaming call that a handler of unknown ones gets.
func anything() http2.Field { return http2.Field{Name: ":path", Value: "/Any/thing"} }

// bring sends the rest of a stream's data, as the server lets it. It returns what it does not
// take any more.
func (p *http2Peer) bring(id uint32, b []byte, end bool) (left []byte) {
	p.s.t.Helper()
	for len(b) > 0 {
		n, err := p.http2.Data(id, b, end)
		if err != nil {
			return b
		}
		b = b[n:]
		if p.listen(10 * time.Millisecond) {
			p.s.t.Fatalf("closed with %d bytes to go", len(b))
		}
	}
	return nil
}

// receiving returns a handler that receives until the end, and tells why that was.
func receiving(told chan<- error) func(context.Context, *fulmar.ServerMessages) error {
	return func(_ context.Context, messages *fulmar.ServerMessages) error {
		for {
			var message fulmar.Raw
			if err := messages.Recv(&message); err != nil {
				told <- err
				if err == io.EOF {
					return nil
				}
				return err
			}
		}
	}
}

// muchOf answers with 8 MiB.
func muchOf(messages *fulmar.ServerMessages) error {
	answer := fulmar.Raw(make([]byte, 1<<20))
	for range 8 {
		if err := messages.Send(&answer); err != nil {
			return err
		}
	}
	return nil
}

// toldOf returns what a handler has told, if it has.
func toldOf(told <-chan error) error {
	select {
	case err := <-told:
		return err
	default:
		return errors.New("nothing")
	}
}

// TestGRPC_PartsOfMessages has a peer that sends most of a message on a stream, and then
// nothing of it, while it answers pings: that stream ends, and holds nothing.
func TestGRPC_PartsOfMessages(t *testing.T) {
	told := make(chan error, 1)
	config := fulmar.ServerConfig{UnknownStreamHandler: receiving(told), MaxBufferedBytes: 16 << 20}
	simulate(t, simnet.Config{}, config, fulmar.ClientConfig{}, stubOfNothing(), func(s *simulation) {
		peer := s.http2Peer(http2.Config{})
		peer.listen(time.Second)
		id := peer.send(grpcMessage([]byte("whole"), false), false, anything())
		peer.bring(id, grpcMessage(make([]byte, 13<<20), false)[:12<<20], false)
		if held := s.server.Stats().BufferedBytes; held < 12<<20 {
			t.Errorf("with a part of 12 MiB, the budget counts %d bytes", held)
		}
		due := limits.FrameTimeout + (13<<20)*time.Second/limits.FrameBytesPerSecond
		if peer.listen(due-5*time.Second) || peer.status[id]["grpc-status"] != "" {
			t.Errorf("too early: %v", peer.status[id])
		}
		if peer.listen(10*time.Second) || peer.goAway || peer.status[id]["grpc-status"] != "4" {
			t.Errorf("closed, or GOAWAY %v, or the stream: %v, reset %v", peer.goAway, peer.status[id], peer.resets)
		}
		if err := toldOf(told); fulmar.CodeOf(err) != fulmar.DeadlineExceeded {
			t.Errorf("the handler was told %v", err)
		}
		if held := s.server.Stats().BufferedBytes; held != 0 {
			t.Errorf("behind its end, the budget counts %d bytes", held)
		}
		good := peer.send(grpcMessage([]byte{0}, false), true)
		peer.listen(time.Second)
		if peer.status[good]["grpc-status"] != "0" {
			t.Errorf("the next call: %v", peer.status[good])
		}
	})
}

// TestGRPC_PartsBehindWhatWaits: a part of a message may stay one as long as nobody receives
// what is in front of it, because there may be no window for the rest.
func TestGRPC_PartsBehindWhatWaits(t *testing.T) {
	told := make(chan error, 1)
	var begin chan struct{}
	config := fulmar.ServerConfig{UnknownStreamHandler: func(ctx context.Context, messages *fulmar.ServerMessages) error {
		<-begin
		return receiving(told)(ctx, messages)
	}}
	simulate(t, simnet.Config{}, config, fulmar.ClientConfig{}, stubOfNothing(), func(s *simulation) {
		begin = make(chan struct{}) // of the clock of the simulation
		peer := s.http2Peer(http2.Config{})
		peer.listen(time.Second)
		rest := append(grpcMessage(make([]byte, 40<<10), false), grpcMessage(make([]byte, 100<<10), false)...)
		id := peer.send(nil, false, anything())
		n, err := peer.http2.Data(id, rest, false)
		if err != nil || n >= len(rest) {
			t.Fatalf("%d of %d bytes were sent, %v", n, len(rest), err)
		}
		if rest = rest[n:]; peer.listen(time.Minute) || len(peer.status[id]) > 0 {
			t.Fatalf("closed, or the stream: %v", peer.status[id])
		}
		close(begin)
		peer.listen(time.Second)
		if left := peer.bring(id, rest, true); len(left) > 0 {
			t.Errorf("%d bytes were not taken", len(left))
		}
		peer.listen(time.Second)
		if err := toldOf(told); err != io.EOF || peer.status[id]["grpc-status"] != "0" {
			t.Errorf("the handler was told %v, the peer %v", err, peer.status[id])
		}
	})
}

// TestGRPC_ManyUploadsAtATime has requests that take turns on a link with eight times
// FrameBytesPerSecond: none is slow, although each of them brings less than that.
func TestGRPC_ManyUploadsAtATime(t *testing.T) {
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, stubOfNothing(), func(s *simulation) {
		peer := s.http2Peer(http2.Config{})
		peer.listen(time.Second)
		const uploads, frame = 20, 16 << 10
		const pause = frame * time.Second / (8 * limits.FrameBytesPerSecond)
		rest := map[uint32][]byte{}
		for range uploads {
			rest[peer.send(nil, false)] = nothingOf(1 << 20)
		}
		for len(rest) > 0 {
			for id, b := range rest {
				n, err := peer.http2.Data(id, b[:min(len(b), frame)], len(b) <= frame)
				if rest[id] = b[n:]; err != nil || n == len(b) {
					delete(rest, id)
				}
				peer.listen(pause)
			}
		}
		peer.listen(time.Second)
		for id, status := range peer.status {
			if status["grpc-status"] != "0" {
				t.Errorf("stream %d: %v", id, status)
			}
		}
		if len(peer.status) != uploads || len(peer.resets) > 0 {
			t.Errorf("%d of %d uploads answered, reset %v", len(peer.status), uploads, peer.resets)
		}
	})
}

// TestGRPC_OneBusyStreamKeepsNoOthers has a peer that goes on with one upload, so that others
// of its may stay what they are, unary calls and streams.
func TestGRPC_OneBusyStreamKeepsNoOthers(t *testing.T) {
	told := make(chan error, 100)
	config := fulmar.ServerConfig{UnknownStreamHandler: receiving(told)}
	simulate(t, simnet.Config{}, config, fulmar.ClientConfig{}, stubOfNothing(), func(s *simulation) {
		peer := s.http2Peer(http2.Config{})
		peer.listen(time.Second)
		const others, length, frame = 100, 64 << 10, 16 << 10
		part := nothingOf(length)[:length-1]
		for n := range others {
			if n%2 == 0 {
				peer.bring(peer.send(nil, false), part, false)
			} else {
				peer.bring(peer.send(nil, false, anything()), part, false)
			}
		}
		held := s.server.Stats().BufferedBytes
		busy := peer.send(nil, false)
		rest := nothingOf(15 << 20)
		most := limits.FrameTimeout + (length+(others+1)*frame)*time.Second/limits.FrameBytesPerSecond
		for start := time.Now(); time.Since(start) < most+2*time.Second; {
			n, err := peer.http2.Data(busy, rest[:frame], false)
			if rest = rest[n:]; err != nil {
				t.Fatalf("the busy one: %v", peer.status[busy])
			}
			peer.listen(time.Second / 8)
		}
		for id, status := range peer.status {
			if unary := id%4 == 1; status["grpc-status"] != "4" || unary && status[wire.Executed] != "no" {
				t.Errorf("stream %d: %v", id, status)
			}
		}
		if len(peer.status) != others {
			t.Errorf("%d of %d calls were ended", len(peer.status), others)
		}
		if left := s.server.Stats().BufferedBytes; held < others*length || left > limits.MessageBytes {
			t.Errorf("the budget counts %d bytes, and %d of the busy call", held, left)
		}
		peer.bring(busy, rest, true)
		peer.listen(time.Second)
		if peer.status[busy]["grpc-status"] != "0" {
			t.Errorf("the busy call: %v", peer.status[busy])
		}
	})
}

// TestGRPC_UnreadMessagesAreNotLate: as long as the server reads nothing, because its peer has not
// taken what waits for it, what the peer has sent is not late.
func TestGRPC_UnreadMessagesAreNotLate(t *testing.T) {
	told := make(chan error, 1)
	config := fulmar.ServerConfig{FrameTimeout: 2 * time.Second, WriteStallTimeout: time.Minute, UnknownStreamHandler: func(ctx context.Context, messages *fulmar.ServerMessages) error {
		call, _ := fulmar.CallFrom(ctx)
		if call.Method() == "thing" {
			return receiving(told)(ctx, messages)
		}
		return muchOf(messages)
	}}
	simulate(t, simnet.Config{}, config, fulmar.ClientConfig{}, stubOfNothing(), func(s *simulation) {
		peer := s.http2Peer(http2.Config{StreamWindow: 1 << 30, ConnectionWindow: 1 << 30})
		peer.listen(time.Second)
		message := grpcMessage(make([]byte, 20<<10), false)
		id := peer.send(message[:1000], false, anything())
		peer.listen(time.Second)
		answers := peer.send(nil, true, http2.Field{Name: ":path", Value: "/Any/answers"})
		peer.flush()
		time.Sleep(time.Second)
		if n, err := peer.http2.Data(id, message[1000:], true); n < len(message)-1000 || err != nil {
			t.Fatalf("%d bytes were sent, %v", n, err)
		}
		peer.flush()
		time.Sleep(20 * time.Second)
		if peer.listen(time.Second) || peer.status[id]["grpc-status"] != "0" || peer.status[answers]["grpc-status"] != "0" {
			t.Errorf("closed, or the streams: %v, reset %v", peer.status, peer.resets)
		}
		if err := toldOf(told); err != io.EOF {
			t.Errorf("the handler was told %v", err)
		}
		// What it owes behind that has its time again.
		late := peer.send(message[:1000], false, anything())
		if peer.listen(10*time.Second) || peer.status[late]["grpc-status"] != "4" {
			t.Errorf("a part of a message that is read: %v, want it late", peer.status[late])
		}
	})
}

// TestGRPC_ReadingSlowlyHoldsNothing has a peer that sends most of many requests, and then takes a
// long answer slowly: the server reads nothing meanwhile, but ends them.
func TestGRPC_ReadingSlowlyHoldsNothing(t *testing.T) {
	config := fulmar.ServerConfig{UnknownStreamHandler: func(_ context.Context, messages *fulmar.ServerMessages) error { return muchOf(messages) }}
	simulate(t, simnet.Config{}, config, fulmar.ClientConfig{}, stubOfNothing(), func(s *simulation) {
		peer := s.http2Peer(http2.Config{StreamWindow: 1 << 30, ConnectionWindow: 1 << 30})
		peer.listen(time.Second)
		const parts, length = 100, 64 << 10
		part := nothingOf(length)[:length-1]
		for range parts {
			peer.bring(peer.send(nil, false), part, false)
		}
		peer.send(nil, true, anything())
		peer.flush()
		time.Sleep(time.Second)
		peer.http2.Ping(0) // what follows what it does not take is not read
		peer.flush()
		held := s.server.Stats().BufferedBytes
		// What it takes is twice as fast as it must be, so that its connection stays.
		most := limits.HTTP2UnreadPause + limits.FrameTimeout + (parts+1)*(length+16<<10)*time.Second/limits.FrameBytesPerSecond
		_ = peer.conn.SetReadDeadline(time.Time{})
		some := make([]byte, 2*limits.WriteBytesPerSecond)
		for start := time.Now(); time.Since(start) < most; time.Sleep(time.Second) {
			if _, err := io.ReadFull(peer.conn, some); err != nil {
				t.Fatalf("after %v: %v", time.Since(start), err)
			}
		}
		if left := s.server.Stats().BufferedBytes; held < parts*length || left >= parts*length/2 {
			t.Errorf("the budget counts %d bytes, %d at the beginning", left, held)
		}
	})
}
