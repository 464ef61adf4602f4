package fulmar_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
)

// payloadForms are the two forms that a message behind a TTHeader may have.
func payloadForms() map[wire.Protocol]func([]byte) []byte {
	return map[wire.Protocol]func([]byte) []byte{
		wire.TTHeader:       func(message []byte) []byte { return message },
		wire.TTHeaderFramed: frame,
	}
}

// napper adds its arguments after as many milliseconds as the left one says.
func napper() *testservice.Stub {
	return &testservice.Stub{OnAdd: func(_ context.Context, left, right int32) (int32, error) {
		time.Sleep(time.Duration(left) * time.Millisecond)
		return left + right, nil
	}}
}

// TestServer_AnswersFlaggedCallsAsTheyEnd: a slow call holds up no other, and
// every answer has the form of its call.
func TestServer_AnswersFlaggedCallsAsTheyEnd(t *testing.T) {
	for protocol, form := range payloadForms() {
		simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, napper(), func(s *simulation) {
			conn := s.connect()
			for _, nap := range []int32{300, 100, 0, 200} {
				write(t, conn, headed(t, flagged(nap+1), form(addCall(t, nap+1, nap, 1))))
			}
			start := time.Now()
			for _, nap := range []int32{0, 100, 200, 300} {
				answer := wantHeadedSum(t, conn, nap+1, nap+1)
				if took := time.Since(start); answer.Protocol != protocol || took != time.Duration(nap)*time.Millisecond {
					t.Errorf("the answer to a call in %v that takes %d ms came in %v after %v", protocol, nap, answer.Protocol, took)
				}
			}
			_ = conn.Close()
		})
	}
}

// TestServer_KeepsTheOrderOfCallsWithoutTheFlag, and runs one of them at a time.
func TestServer_KeepsTheOrderOfCallsWithoutTheFlag(t *testing.T) {
	for _, form := range payloadForms() {
		simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, napper(), func(s *simulation) {
			conn := s.connect()
			naps := []int32{300, 100, 0, 200}
			for _, nap := range naps {
				write(t, conn, headed(t, ttheader.Head{Sequence: nap + 1}, form(addCall(t, nap+1, nap, 1))))
			}
			start := time.Now()
			for _, nap := range naps {
				wantHeadedSum(t, conn, nap+1, nap+1)
			}
			if took := time.Since(start); took != 600*time.Millisecond {
				t.Errorf("all calls took %v", took)
			}
			_ = conn.Close()
		})
	}
}

// TestServer_MixesOrderedAndFlaggedCalls on one connection, in all protocols: an
// ordered call holds up what comes after it, flagged or not, and nothing that
// came before.
func TestServer_MixesOrderedAndFlaggedCalls(t *testing.T) {
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, napper(), func(s *simulation) {
		conn := s.connect()
		write(t, conn,
			headed(t, flagged(1), addCall(t, 1, 1000, 0)),
			frame(addCall(t, 2, 100, 0)),
			addCall(t, 3, 100, 0),
			headed(t, ttheader.Head{Sequence: 4}, addCall(t, 4, 100, 0)),
			headed(t, flagged(5), frame(addCall(t, 5, 400, 0))),
			headed(t, flagged(6), addCall(t, 6, 100, 0)),
			frame(addCall(t, 7, 50, 0)),
			frame(addCall(t, 8, 0, 0)),
		)
		start := time.Now()
		at := func(what string, want time.Duration) {
			if took := time.Since(start); took != want*time.Millisecond {
				t.Errorf("%s was answered after %v, want %d ms", what, took, want)
			}
		}
		wantSum(t, conn, 2, 100)
		at("the framed call", 100)
		bare := message(thriftwire.Reply, "add", 3, sumBody(t, 100))
		answer := make([]byte, len(bare))
		if _, err := io.ReadFull(conn, answer); err != nil || !bytes.Equal(answer, bare) {
			t.Errorf("the bare call was answered by % x, %v", answer, err)
		}
		at("the bare call", 200)
		wantHeadedSum(t, conn, 4, 100)
		at("the call without the flag", 300)
		wantSum(t, conn, 7, 50)
		at("the second framed call", 350)
		wantSum(t, conn, 8, 0)
		at("the third framed call", 350)
		wantHeadedSum(t, conn, 6, 100)
		at("the short flagged call", 400)
		wantHeadedSum(t, conn, 5, 400)
		at("the longer flagged call", 700)
		wantHeadedSum(t, conn, 1, 1000)
		at("the first flagged call", 1000)
		_ = conn.Close()
	})
}

// TestServer_EchoesTheSequenceOfTheHeader, whatever stands in the payload.
func TestServer_EchoesTheSequenceOfTheHeader(t *testing.T) {
	server := serve(t, fulmar.ServerConfig{}, adder())
	conn := connect(t, server.address)
	for _, sequence := range []int32{0, 1, -1, 1<<31 - 1, -1 << 31} {
		write(t, conn, headed(t, flagged(sequence), addCall(t, 77, 1, 2)))
		if answer := readHeaded(t, conn); answer.HeaderSequence != sequence || answer.Sequence != 77 || answer.Type != thriftwire.Reply {
			t.Errorf("%v %d with %d in the header; want 77 and %d", answer.Type, answer.Sequence, answer.HeaderSequence, sequence)
		}
	}
}

// TestServer_RunsSoManyCallsOfAConnection: then it stops reading it, and goes on
// as calls end. Other connections notice nothing.
func TestServer_RunsSoManyCallsOfAConnection(t *testing.T) {
	const network, oneRead = 16 << 10, 64 << 10
	var held holder
	stub := held.stub()
	stub.OnAdd = adder().OnAdd
	simulate(t, simnet.Config{BufferBytes: network}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, stub, func(s *simulation) {
		release := held.begin()
		conn := s.connect()
		call := headed(t, flagged(1), message(thriftwire.Call, "nothing", 1, []byte{0}))
		const calls = 10 * limits.ConnectionCalls
		sent := bytes.Repeat(call, calls)
		_ = conn.SetWriteDeadline(time.Now().Add(time.Minute))
		taken, err := conn.Write(sent)
		first := limits.ConnectionCalls*len(call) + limits.ReadAheadBytes
		if !errors.Is(err, os.ErrDeadlineExceeded) || taken < first || taken > first+oneRead+network {
			t.Errorf("%d bytes were taken (%v), want %d and at most %d more", taken, err, first, oneRead+network)
		}
		if started := held.started.Load(); started != limits.ConnectionCalls {
			t.Errorf("%d calls run, want %d", started, limits.ConnectionCalls)
		}
		if _, err := s.api.Add(context.Background(), 1, 2); err != nil {
			t.Errorf("another connection: %v", err)
		}
		release()
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		var writer sync.WaitGroup
		writer.Go(func() {
			if _, err := conn.Write(sent[taken:]); err != nil {
				t.Errorf("writing the rest: %v", err)
			}
		})
		for i := range calls {
			if answer, err := nextHeaded(conn); err != nil || answer.Type != thriftwire.Reply {
				t.Errorf("answer %d: %v, %v", i, answer.Type, err)
				break
			}
		}
		_ = conn.Close()
		writer.Wait()
	})
}

// unread sends flagged calls that ask for answers of a length, and never reads
// one. It returns what ends when the peer cannot send any more.
func unread(t *testing.T, conn net.Conn, calls, length int) *sync.WaitGroup {
	text := strings.Repeat("x", length)
	call := headed(t, flagged(1), message(thriftwire.Call, "echo", 1, body(t, &testservice.EchoEchoArgs{Message: &testservice.Message{Text: text}})))
	var peer sync.WaitGroup
	peer.Go(func() {
		for range calls {
			if _, err := conn.Write(call); err != nil {
				return
			}
		}
	})
	return &peer
}

// TestServer_StopsReadingAPeerThatDoesNotRead: what its answers take is bounded,
// others are served meanwhile, and in the end its connection is closed (S6 of
// the fault scenarios).
func TestServer_StopsReadingAPeerThatDoesNotRead(t *testing.T) {
	const length, calls = 64 << 10, 1000
	stub := &testservice.Stub{OnAdd: adder().OnAdd}
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, stub, func(s *simulation) {
		conn := s.connect()
		peer := unread(t, conn, calls, length)
		time.Sleep(limits.WriteStallTimeout / 2)
		held := s.server.Stats()
		// Calls that had begun before it was too much still end.
		if most := int64(2 * limits.UnsentBytes); held.BufferedBytes < limits.UnsentBytes/2 || held.BufferedBytes > most {
			t.Errorf("%d bytes are held for a peer that does not read, want at most %d", held.BufferedBytes, most)
		}
		if read := held.Network.BytesRead; read > 4*limits.UnsentBytes {
			t.Errorf("%d bytes were read", read)
		}
		if _, err := s.api.Add(context.Background(), 1, 2); err != nil {
			t.Errorf("another connection: %v", err)
		}
		start := time.Now()
		peer.Wait() // because the connection is reset
		if took := time.Since(start); took > limits.WriteStallTimeout {
			t.Errorf("closed only %v after the peer stopped reading", took+limits.WriteStallTimeout/2)
		}
		synctest.Wait()
		if after := s.server.Stats(); after.BufferedBytes != 0 || after.Calls != 0 || after.Network.WriteStalls != 1 {
			t.Errorf("afterwards: %+v", after)
		}
		_ = conn.Close()
	})
}

// TestServer_GoesOnWhenASlowPeerReads: everything is answered, however late.
func TestServer_GoesOnWhenASlowPeerReads(t *testing.T) {
	const length, calls = 64 << 10, 200
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, &testservice.Stub{}, func(s *simulation) {
		conn := s.connect()
		peer := unread(t, conn, calls, length)
		for i := range calls {
			if i%50 == 0 {
				time.Sleep(limits.WriteStallTimeout * 2 / 3)
			}
			if answer, err := nextHeaded(conn); err != nil || answer.Type != thriftwire.Reply {
				t.Errorf("answer %d: %v, %v", i, answer.Type, err)
				break
			}
		}
		synctest.Wait()
		if held := s.server.Stats().BufferedBytes; held != 0 {
			t.Errorf("%d bytes are held after the last answer", held)
		}
		_ = conn.Close()
		peer.Wait()
	})
}

// TestServer_WaitsForTheRestWhileItDoesNotRead: the time that a message may take
// does not pass while the server itself has stopped reading.
func TestServer_WaitsForTheRestWhileItDoesNotRead(t *testing.T) {
	const length = limits.UnsentBytes
	simulate(t, simnet.Config{BufferBytes: 16 << 10}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, &testservice.Stub{OnAdd: adder().OnAdd}, func(s *simulation) {
		conn := s.connect()
		text := strings.Repeat("x", length)
		call := headed(t, flagged(1), message(thriftwire.Call, "echo", 1, body(t, &testservice.EchoEchoArgs{Message: &testservice.Message{Text: text}})))
		var peer sync.WaitGroup
		peer.Go(func() {
			for _, b := range [][]byte{call, call, call, headed(t, flagged(2), addCall(t, 2, 1, 2))} {
				_, _ = conn.Write(b)
			}
		})
		// Longer than a message may take, shorter than a peer may not read.
		time.Sleep(limits.FrameTimeout + time.Duration(length/limits.FrameBytesPerSecond)*time.Second + 3*time.Second)
		for i := range 4 {
			if answer, err := nextHeaded(conn); err != nil || answer.Type != thriftwire.Reply {
				t.Errorf("answer %d: %v, %v", i, answer.Type, err)
				break
			}
		}
		_ = conn.Close()
	})
}

// TestServer_AnswersWaitForTheirPeer: calls that run already cannot be held back
// by not reading, so what they end in waits for room of its own, and a peer that
// reads gets all of it.
func TestServer_AnswersWaitForTheirPeer(t *testing.T) {
	const messageBytes, length = 1 << 20, 512 << 10
	const room = 2*messageBytes + limits.UnsentBytes
	for _, calls := range []int{room/length - 1, room/length + 3, 10 * room / length} {
		var release chan struct{}
		stub := &testservice.Stub{OnVersion: func(context.Context) (string, error) {
			<-release
			return strings.Repeat("x", length), nil
		}}
		simulate(t, simnet.Config{BufferBytes: 16 << 10}, fulmar.ServerConfig{MaxMessageBytes: messageBytes}, fulmar.ClientConfig{}, stub, func(s *simulation) {
			release = make(chan struct{})
			conn := s.connect()
			write(t, conn, bytes.Repeat(headed(t, flagged(1), message(thriftwire.Call, "version", 1, []byte{0})), calls))
			synctest.Wait()
			close(release)
			synctest.Wait()
			if waiting := s.server.Stats().Calls; (waiting > 0) != (calls*length > room) {
				t.Errorf("%d answers of %d bytes: %d of their calls have not ended", calls, length, waiting)
			}
			for i := range calls {
				if answer, err := nextHeaded(conn); err != nil || answer.Type != thriftwire.Reply {
					t.Fatalf("answer %d of %d: %v, %v", i, calls, answer.Type, err)
				}
			}
			synctest.Wait()
			if stats := s.server.Stats(); stats.Network.Open != 1 || stats.BufferedBytes != 0 || stats.Calls != 0 {
				t.Errorf("%d answers of %d bytes: %+v", calls, length, stats)
			}
			_ = conn.Close()
		})
	}
}
