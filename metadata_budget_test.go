package fulmar_test

import (
	"bytes"
	"context"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
)

// laden returns a context whose calls carry size bytes of metadata, and a few.
func laden(size int) context.Context {
	return fulmar.WithPersistent(context.Background(), "k", strings.Repeat("v", size))
}

// TestServer_MetadataCountsInItsBudget: what a call brought in its header is held
// until the call ends, so it takes room from other calls until then. A call for
// which there is none is told so, and did not run.
func TestServer_MetadataCountsInItsBudget(t *testing.T) {
	const metadata, fit = 8 << 10, 3
	const budget = fit*metadata + metadata/2
	var held holder
	stub := held.stub()
	stub.OnAdd = adder().OnAdd
	simulate(t, simnet.Config{}, fulmar.ServerConfig{MaxBufferedBytes: budget}, fulmar.ClientConfig{Timeout: time.Minute}, stub, func(s *simulation) {
		release := held.begin()
		if _, err := s.api.Add(context.Background(), 1, 2); err != nil {
			t.Fatal(err) // from now on calls share the connection
		}
		running := call(fit, func(int) {
			if err := s.api.Nothing(laden(metadata)); err != nil {
				t.Errorf("a call that fits: %v", err)
			}
		})
		synctest.Wait()
		if held := s.server.Stats().BufferedBytes; held < fit*metadata || held > budget {
			t.Errorf("%d calls with %d bytes of metadata each hold %d", fit, metadata, held)
		}
		for range 2 {
			e := asError(t, s.api.Nothing(laden(metadata)))
			if e.Code() != fulmar.ResourceExhausted || e.Executed() != fulmar.ExecutedNo || e.Origin() != fulmar.OriginRemote || !strings.Contains(e.Message(), "overloaded") {
				t.Errorf("a call too many: %v: code %v, %v", e, e.Code(), e.Executed())
			}
		}
		if n := held.started.Load(); n != fit {
			t.Errorf("%d calls have begun, want %d", n, fit)
		}
		// There is room for small ones.
		if sum, err := s.api.Add(context.Background(), 1, 2); sum != 3 || err != nil {
			t.Errorf("Add = %d, %v", sum, err)
		}
		release()
		running.Wait()
		synctest.Wait()
		if left := s.server.Stats(); left.BufferedBytes != 0 || left.Calls != 0 {
			t.Errorf("afterwards: %+v", left)
		}
		if _, err := s.api.Add(laden(metadata), 1, 2); err != nil {
			t.Errorf("a call afterwards: %v", err)
		}
	})
}

// endings are the ways in which a call with metadata can end, as a raw peer has
// it. Each call fits the budget.
func endings(t *testing.T) map[string][]byte {
	echo := func(text string) []byte {
		return message(thriftwire.Call, "echo", 1, body(t, &testservice.EchoEchoArgs{Message: &testservice.Message{Text: text}}))
	}
	return map[string][]byte{
		"answered":           echo("success"),
		"an error":           echo("code"),
		"a missing result":   echo("nil"),
		"too long a reply":   echo("long"),
		"a panic":            echo("panic"),
		"an ended goroutine": message(thriftwire.Call, "nothing", 1, []byte{0}),
		"intercepted":        echo("intercepted"),
		"bad arguments":      message(thriftwire.Call, "echo", 1, []byte{0xff}),
		"not a call":         message(thriftwire.Reply, "echo", 1, []byte{0}),
		"too long":           echo(strings.Repeat("x", 2000)),
		"unknown method":     message(thriftwire.Call, "nope", 1, []byte{0}),
		"a bad name":         message(thriftwire.Call, "", 1, []byte{0}),
		"oneway":             message(thriftwire.Oneway, "notify", 1, []byte{0}),
		"oneway, refused":    message(thriftwire.Oneway, "nope", 1, []byte{0}),
		"oneway, broken":     message(thriftwire.Oneway, "notify", 1, []byte{0xff}),
		"oneway, and a panic": message(thriftwire.Oneway, "notify", 1,
			body(t, &testservice.EchoNotifyArgs{Text: "panic"})),
	}
}

// TestServer_GivesTheRoomOfMetadataBack: however a call ends. Were any of it kept,
// the calls of one ending would use up the budget.
func TestServer_GivesTheRoomOfMetadataBack(t *testing.T) {
	const metadata, calls = 8 << 10, 20
	intercept := func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
		request, err := call.Request()
		if args, ok := request.(*testservice.EchoEchoArgs); err == nil && ok && args.Message.Text == "intercepted" {
			return fulmar.NewError(fulmar.PermissionDenied, "no")
		}
		return next(ctx, call)
	}
	stub := failing()
	stub.OnNothing = func(context.Context) error { runtime.Goexit(); return nil }
	stub.OnNotify = func(_ context.Context, text string) error {
		if text == "panic" {
			panic("oh")
		}
		return nil
	}
	stub.OnAdd = adder().OnAdd
	config := fulmar.ServerConfig{MaxBufferedBytes: 2 * metadata, MaxMessageBytes: 1000, Interceptors: []fulmar.UnaryInterceptor{intercept}}
	simulate(t, simnet.Config{}, config, fulmar.ClientConfig{}, stub, func(s *simulation) {
		for name, ending := range endings(t) {
			for _, flags := range []uint16{0, wire.FlagOutOfOrder} {
				conn := s.connect()
				for range calls {
					header := ttheader.Head{Flags: flags, Sequence: 1, Strings: pairs("RPC_TRANSIT_k", strings.Repeat("v", metadata))}
					write(t, conn, headed(t, header, ending))
					synctest.Wait()
				}
				write(t, conn, headed(t, flagged(7), addCall(t, 7, 1, 2)))
				for range calls + 1 {
					if answer := readHeaded(t, conn); answer.HeaderSequence == 7 {
						break
					} else if strings.Contains(string(answer.Body), "overloaded") {
						t.Errorf("%s: %q", name, answer.Body)
					}
				}
				synctest.Wait()
				if left := s.server.Stats(); left.BufferedBytes != 0 || left.Calls != 0 {
					t.Errorf("%s: %d calls run and %d bytes are held afterwards", name, left.Calls, left.BufferedBytes)
				}
				_ = conn.Close()
			}
		}
	})
}

// TestServer_GivesTheRoomOfMetadataBackAfterItsPeerHasGone: the handler may go on
// for as long as it likes, and the metadata with it.
func TestServer_GivesTheRoomOfMetadataBackAfterItsPeerHasGone(t *testing.T) {
	const metadata, calls = 8 << 10, 10
	var held holder
	stub := held.stub()
	stub.OnNotify = func(ctx context.Context, _ string) error { return stub.OnNothing(ctx) }
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, stub, func(s *simulation) {
		release := held.begin()
		conn := s.connect()
		header := flagged(1)
		header.Strings = pairs("RPC_PERSIST_k", strings.Repeat("v", metadata))
		write(t, conn,
			bytes.Repeat(headed(t, header, message(thriftwire.Call, "nothing", 1, []byte{0})), calls),
			bytes.Repeat(headed(t, header, message(thriftwire.Oneway, "notify", 1, []byte{0})), calls))
		synctest.Wait()
		s.network.Cut(simAddress)
		synctest.Wait()
		if stats := s.server.Stats(); stats.Calls != 2*calls || stats.BufferedBytes < 2*calls*metadata || stats.Network.Open != 0 {
			t.Errorf("while they run: %+v", stats)
		}
		release()
		synctest.Wait()
		if stats := s.server.Stats(); stats.Calls != 0 || stats.BufferedBytes != 0 {
			t.Errorf("afterwards: %+v", stats)
		}
		_ = conn.Close()
	})
}

// TestServer_MetadataOfCallsThatAreRefusedTakesNoRoom: also while many are
// refused at once, by either limit.
func TestServer_MetadataOfCallsThatAreRefusedTakesNoRoom(t *testing.T) {
	const metadata, calls = 8 << 10, 50
	for name, config := range map[string]fulmar.ServerConfig{
		"too many calls": {MaxCalls: 1},
		"too many bytes": {MaxBufferedBytes: metadata + metadata/2},
	} {
		var held holder
		stub := held.stub()
		stub.OnAdd = adder().OnAdd
		simulate(t, simnet.Config{}, config, fulmar.ClientConfig{}, stub, func(s *simulation) {
			release := held.begin()
			if _, err := s.api.Add(context.Background(), 1, 2); err != nil {
				t.Fatal(err) // from now on calls share the connection
			}
			running := call(1, func(int) {
				if err := s.api.Nothing(laden(metadata), fulmar.Timeout(time.Minute)); err != nil {
					t.Errorf("%s: the call that fits: %v", name, err)
				}
			})
			synctest.Wait()
			before := s.server.Stats().BufferedBytes
			var refused atomic.Int64
			call(calls, func(int) {
				if fulmar.CodeOf(s.api.Nothing(laden(metadata))) == fulmar.ResourceExhausted {
					refused.Add(1)
				}
			}).Wait()
			synctest.Wait()
			if after := s.server.Stats().BufferedBytes; after != before || refused.Load() != calls {
				t.Errorf("%s: %d of %d were refused; %d bytes are held, %d before", name, refused.Load(), calls, after, before)
			}
			release()
			running.Wait()
			synctest.Wait()
			if left := s.server.Stats().BufferedBytes; left != 0 {
				t.Errorf("%s: %d bytes are held afterwards", name, left)
			}
		})
	}
}

// TestServer_RefusedArrivalCostsNoOtherCall: a message for which there is no room while it
// arrives is refused at once, and what is still to come of it is thrown away. Calls of the
// same connection go on, those that run and those behind it.
func TestServer_RefusedArrivalCostsNoOtherCall(t *testing.T) {
	const budget = 256 << 10
	for protocol, form := range payloadForms() {
		simulate(t, simnet.Config{}, fulmar.ServerConfig{MaxBufferedBytes: budget}, fulmar.ClientConfig{}, napper(), func(s *simulation) {
			conn := s.connect()
			start := time.Now()
			write(t, conn, headed(t, flagged(1), form(addCall(t, 1, 1000, 0))))
			long := headed(t, flagged(2), form(message(thriftwire.Call, "echo", 2, body(t, &testservice.EchoEchoArgs{
				Message: &testservice.Message{Text: strings.Repeat("x", budget+1000)}}))))
			write(t, conn, long[:budget])
			refusal := readMessage(t, conn)
			if refusal.HeaderSequence != 2 || refusal.Type != thriftwire.Exception || !strings.Contains(string(refusal.Body), "overloaded") {
				t.Errorf("%v: what is too much while it arrives was answered by %+v", protocol, refusal)
			}
			for sequence := int32(3); sequence < 6; sequence++ { // the next one is refused as well
				write(t, conn, long[budget:], headed(t, flagged(sequence), form(addCall(t, sequence, 0, sequence))))
				wantHeadedSum(t, conn, sequence, sequence)
				write(t, conn, long[:budget])
				if again := readMessage(t, conn); again.HeaderSequence != 2 {
					t.Errorf("%v: the long message was answered by %+v", protocol, again)
				}
			}
			// Of the next one only what has no name is there, in memory that was made for more.
			write(t, conn, long[budget:], long[:20])
			synctest.Wait()
			write(t, conn, long[20:budget])
			if again := readMessage(t, conn); again.HeaderSequence != 2 {
				t.Errorf("%v: the long message that came in two parts was answered by %+v", protocol, again)
			}
			if took := time.Since(start); took != 0 {
				t.Errorf("%v: calls behind a refused message were answered after %v", protocol, took)
			}
			wantHeadedSum(t, conn, 1, 1000)
			// The rest of the last one never comes: the log says what was waited for.
			_, _ = io.ReadAll(conn)
			if !strings.Contains(s.log.String(), "the rest of a refused message") {
				t.Errorf("%v: the log does not say what the peer was too slow for:\n%s", protocol, s.log.String())
			}
			synctest.Wait()
			if left := s.server.Stats(); left.BufferedBytes != 0 || left.Calls != 0 || left.Network.Open != 0 {
				t.Errorf("%v: afterwards: %+v", protocol, left)
			}
			_ = conn.Close()
		})
	}
}
