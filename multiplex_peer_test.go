package fulmar_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
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
	"github.com/fulmar-rpc/fulmar/thrift"
)

// addition returns what a call of add asks for.
func addition(call headedMessage) (sum int32) {
	var args testservice.EchoAddArgs
	if err := thrift.Unmarshal(call.Body, &args); err != nil {
		return -1
	}
	return args.Left + args.Right
}

// answerAdd answers calls of add truly, as a peer that shares connections does.
func answerAdd(t *testing.T, conn net.Conn, call headedMessage) {
	_, _ = conn.Write(reply(t, call, sumBody(t, addition(call))))
}

// TestClient_SharesOnlyWhatThePeerSaysItCan: others get one call at a time.
func TestClient_SharesOnlyWhatThePeerSaysItCan(t *testing.T) {
	cases := map[string]struct {
		answer []ttheader.Pair
		config fulmar.ClientConfig
		shared bool
	}{
		"one that says so":          {pairs("fulmar-caps", "mux"), fulmar.ClientConfig{}, true},
		"among others":              {pairs("fulmar-caps", "zip,mux"), fulmar.ClientConfig{Protocol: fulmar.TTHeaderFramed}, true},
		"one that does not":         {nil, fulmar.ClientConfig{}, false},
		"one that can do others":    {pairs("fulmar-caps", "muxes"), fulmar.ClientConfig{}, false},
		"one that says nothing":     {pairs("fulmar-caps", ""), fulmar.ClientConfig{}, false},
		"one that is known for it":  {nil, fulmar.ClientConfig{AssumeMultiplexed: true}, true},
		"framed, and known for it":  {nil, fulmar.ClientConfig{AssumeMultiplexed: true, Protocol: fulmar.TTHeaderFramed}, true},
		"one that closes after all": {pairs("fulmar-caps", "mux", "crrst", "1"), fulmar.ClientConfig{}, false},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			const calls, think = 20, 10 * time.Millisecond
			var connections, most, flags, claims, shared atomic.Int64
			serve := func(conn net.Conn) {
				connections.Add(1)
				var mu sync.Mutex
				var answers sync.WaitGroup
				defer answers.Wait()
				var waiting atomic.Int64
				for {
					call, err := nextHeaded(conn)
					if err != nil {
						return
					}
					most.Store(max(most.Load(), waiting.Add(1)))
					if call.Flags == wire.FlagOutOfOrder {
						flags.Add(1)
					}
					if _, claimed := call.strings["fulmar-caps"]; claimed {
						claims.Add(1)
					}
					answers.Go(func() {
						time.Sleep(think)
						waiting.Add(-1)
						mu.Lock()
						defer mu.Unlock()
						head := ttheader.Head{Sequence: call.HeaderSequence, Strings: test.answer}
						_, _ = conn.Write(headed(t, head, message(thriftwire.Reply, "add", call.Sequence, sumBody(t, addition(call)))))
					})
				}
			}
			withFake(t, simnet.Config{}, test.config, serve, func(client *fulmar.Client) {
				api := testservice.NewEchoClient(client)
				for range 3 {
					call(calls, func(i int) {
						if sum, err := api.Add(context.Background(), int32(i), 1); sum != int32(i)+1 || err != nil {
							t.Errorf("Add = %d, %v", sum, err)
						}
					}).Wait()
					shared.Store(int64(client.Stats().Multiplexed))
				}
			})
			got := fmt.Sprintf("%d connections with up to %d calls, %d flagged, %d shared", connections.Load(), most.Load(), flags.Load(), shared.Load())
			if n := connections.Load(); test.shared && (n != 1 || most.Load() < calls-1 || flags.Load() < 3*calls-1 || shared.Load() != 1) ||
				!test.shared && (most.Load() != 1 || flags.Load() != 0 || shared.Load() != 0) {
				t.Error(got)
			}
			if n := claims.Load(); n != connections.Load() { // once on each
				t.Errorf("%s: %d claims", got, n)
			}
		})
	}
}

// TestClient_LearnsWhatAnotherServerCan: after a restart the one at an address
// may be another, which can share connections, or no longer.
func TestClient_LearnsWhatAnotherServerCan(t *testing.T) {
	var shares atomic.Bool
	var current sync.Map // the connections that are open
	serve := func(conn net.Conn) {
		current.Store(conn, nil)
		for {
			call, err := nextHeaded(conn)
			if err != nil {
				return
			}
			if shares.Load() {
				answerAdd(t, conn, call)
				continue
			}
			if call.Flags != 0 {
				t.Error("a call that may be answered in any order came to a server that cannot")
			}
			_, _ = conn.Write(headed(t, ttheader.Head{Sequence: call.HeaderSequence}, message(thriftwire.Reply, "add", call.Sequence, sumBody(t, addition(call)))))
		}
	}
	withFake(t, simnet.Config{}, fulmar.ClientConfig{}, serve, func(client *fulmar.Client) {
		api := testservice.NewEchoClient(client)
		for round := range 6 {
			shares.Store(round%2 == 0)
			for range 3 {
				call(10, func(i int) {
					if sum, err := api.Add(context.Background(), int32(i), 1); sum != int32(i)+1 || err != nil {
						t.Errorf("round %d: Add = %d, %v", round, sum, err)
					}
				}).Wait()
			}
			synctest.Wait() // connections that nobody needs any more may still be opened
			stats := client.Stats()
			// Calls that take the server for the old one need connections of their own.
			if shares.Load() && (stats.Connections > limits.MultiplexedConnections || stats.Multiplexed != stats.Connections) || !shares.Load() && stats.Multiplexed != 0 {
				t.Errorf("round %d: %+v", round, stats)
			}
			// The restart.
			current.Range(func(conn, _ any) bool {
				_ = conn.(net.Conn).Close()
				current.Delete(conn)
				return true
			})
			synctest.Wait()
		}
	})
}

// misbehave are answers of a peer that said it can share connections. Each is
// given the sequence id of a call of add that waits.
func misbehave(t *testing.T) map[string]misbehaviour {
	exception := thriftwire.ApplicationException{Type: thriftwire.ExceptionInternalError, Message: "x"}
	exceptionBody := make([]byte, exception.Size())
	exception.Put(exceptionBody)
	sum := sumBody(t, 666)
	answer := func(head ttheader.Head, sequence int32, message func(int32) []byte) []byte {
		head.Sequence = sequence
		return headed(t, head, message(sequence))
	}
	good := func(sequence int32) []byte { return message(thriftwire.Reply, "add", sequence, sum) }
	huge := func(sequence int32, length uint32) []byte {
		b := answer(ttheader.Head{}, sequence, good)
		binary.BigEndian.PutUint32(b, length)
		return b
	}
	return map[string]misbehaviour{
		"garbage":           {func(int32) []byte { return []byte("HTTP/1.1 400 Bad Request\r\n\r\n") }, fulmar.Internal, "first bytes 48 54 54 50", false, false},
		"zeroes":            {func(int32) []byte { return make([]byte, 100) }, fulmar.Internal, "", false, false},
		"closes":            {func(int32) []byte { return nil }, fulmar.Unavailable, "closed the connection", false, true},
		"half an answer":    {func(s int32) []byte { return answer(ttheader.Head{}, s, good)[:20] }, fulmar.Unavailable, "EOF", false, true},
		"framed":            {func(s int32) []byte { return frame(good(s)) }, fulmar.Internal, "framed", false, false},
		"bare":              {good, fulmar.Internal, "bare", false, false},
		"a LENGTH too long": {func(s int32) []byte { return huge(s, limits.FrameLengthMax+1) }, fulmar.Internal, "LENGTH", false, false},
		"a LENGTH of 1 GiB": {func(s int32) []byte { return huge(s, limits.FrameLengthMax) }, fulmar.ResourceExhausted, "limit 1000", true, false},
		"1 GiB for nobody":  {func(int32) []byte { return huge(77, limits.FrameLengthMax) }, fulmar.ResourceExhausted, "limit 1000", false, false},
		"1 GiB of control":  {func(int32) []byte { return huge(0, limits.FrameLengthMax) }, fulmar.ResourceExhausted, "limit 1000", false, false},
		"a LENGTH of 0":     {func(s int32) []byte { return huge(s, 0) }, fulmar.Internal, "LENGTH of 0", false, false},
		"a stream":          {func(s int32) []byte { return answer(ttheader.Head{Flags: wire.FlagStreaming}, s, good) }, fulmar.Internal, "streaming", false, false},
		"an unreadable head": {func(s int32) []byte {
			b := answer(ttheader.Head{Strings: pairs("k", "v")}, s, good)
			b[16] = 0x77
			return b
		}, fulmar.Internal, "unknown id 0x77", true, false},
		"too long": {func(s int32) []byte {
			return answer(ttheader.Head{}, s, func(int32) []byte { return message(thriftwire.Reply, "add", s, make([]byte, 1500)) })
		}, fulmar.ResourceExhausted, "limit 1000", true, false},
		"a wrong payload id": {func(s int32) []byte { return answer(ttheader.Head{}, s, func(int32) []byte { return good(s + 1) }) }, fulmar.Internal, "sequence id", true, false},
		"another method": {func(s int32) []byte {
			return answer(ttheader.Head{}, s, func(int32) []byte { return message(thriftwire.Reply, "sub", s, sum) })
		}, fulmar.Internal, `for method "sub"`, true, false},
		"a call": {func(s int32) []byte {
			return answer(ttheader.Head{}, s, func(int32) []byte { return message(thriftwire.Call, "add", s, sum) })
		}, fulmar.Internal, "a call arrived", true, false},
		"an unknown type": {func(s int32) []byte {
			return answer(ttheader.Head{}, s, func(int32) []byte { return message(9, "add", s, sum) })
		}, fulmar.Internal, "type 9", true, false},
		"no result": {func(s int32) []byte {
			return answer(ttheader.Head{}, s, func(int32) []byte { return message(thriftwire.Reply, "add", s, []byte{0}) })
		}, fulmar.Internal, "neither a result", true, false},
		"a broken result": {func(s int32) []byte {
			return answer(ttheader.Head{}, s, func(int32) []byte { return message(thriftwire.Reply, "add", s, []byte{8, 0}) })
		}, fulmar.Internal, "", true, false},
		"a broken exception": {func(s int32) []byte {
			return answer(ttheader.Head{}, s, func(int32) []byte { return message(thriftwire.Exception, "add", s, []byte{11}) })
		}, fulmar.Internal, "application exception", true, false},
		"an exception": {func(s int32) []byte {
			return answer(ttheader.Head{}, s, func(int32) []byte { return message(thriftwire.Exception, "", 0, exceptionBody) })
		}, fulmar.Internal, "x", true, false},
		"an empty payload": {func(s int32) []byte { return answer(ttheader.Head{}, s, func(int32) []byte { return nil }) }, fulmar.Internal, "payload of 0 bytes", true, false},
		"a foreign payload": {func(s int32) []byte {
			return answer(ttheader.Head{}, s, func(int32) []byte { return bytes.Repeat([]byte{0x82}, 20) })
		}, fulmar.Internal, "payload", true, false},
		"bad business errors": {func(s int32) []byte {
			return answer(ttheader.Head{Strings: pairs("biz-status", "7", "biz-extra", "x")}, s, good)
		}, fulmar.Internal, "biz-extra", true, false},
	}
}

type misbehaviour struct {
	answer func(sequence int32) []byte
	code   fulmar.Code
	text   string
	// ended: the answer ends its call only, so that others on the connection may
	// go on.
	ended bool
	// closes: the peer closes the connection afterwards.
	closes bool
}

// TestClient_SurvivesPeersThatShareAndMisbehave: a call ends with an error that
// says what was wrong, calls that wait for other answers as well or with their
// answers, and later calls find a connection that works.
func TestClient_SurvivesPeersThatShareAndMisbehave(t *testing.T) {
	for name, test := range misbehave(t) {
		t.Run(name, func(t *testing.T) {
			var connections atomic.Int64
			serve := func(conn net.Conn) {
				number := connections.Add(1)
				for i := 0; ; i++ {
					call, err := nextHeaded(conn)
					if err != nil {
						return
					}
					switch {
					case number > 1:
						answerAdd(t, conn, call)
					case i == 1: // waits for its answer when the other comes
						time.AfterFunc(time.Second, func() { answerAdd(t, conn, call) })
					case i == 2:
						if _, _ = conn.Write(test.answer(call.HeaderSequence)); test.closes {
							return
						}
					default:
						answerAdd(t, conn, call)
					}
				}
			}
			withFake(t, simnet.Config{}, fulmar.ClientConfig{MaxMessageBytes: 1000}, serve, func(client *fulmar.Client) {
				api := testservice.NewEchoClient(client)
				add := func() (int32, error) { return api.Add(context.Background(), 1, 2) }
				if _, err := add(); err != nil {
					t.Fatal(err)
				}
				waiting := call(1, func(int) {
					if sum, err := add(); err == nil && sum != 3 || err != nil && (test.ended && !errorsAboutTheSame(err, test) || asError(t, err).Executed() != fulmar.ExecutedMaybe) {
						t.Errorf("the call beside it: %d, %v", sum, err)
					}
				})
				synctest.Wait()
				_, err := add()
				if e := asError(t, err); e.Code() != test.code || e.Executed() == fulmar.ExecutedNo || !strings.Contains(e.Message(), test.text) {
					t.Errorf("the call: %v: code %v, %v; want %v with %q", err, e.Code(), e.Executed(), test.code, test.text)
				}
				waiting.Wait()
				for range 3 {
					if sum, err := add(); sum != 3 || err != nil {
						t.Errorf("a later call: %d, %v", sum, err)
					}
				}
			})
		})
	}
}

// errorsAboutTheSame reports whether the call beside one that was answered badly
// failed for that reason, because nothing can be understood behind it.
func errorsAboutTheSame(err error, test misbehaviour) bool {
	var e *fulmar.Error
	return errors.As(err, &e) && strings.Contains(e.Message(), "nothing can be understood after a reply") && strings.Contains(e.Message(), test.text)
}
