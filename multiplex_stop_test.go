package fulmar_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
)

// wantControl reads the message by which a server says that it stops.
func wantControl(t *testing.T, conn net.Conn) {
	t.Helper()
	control := readHeaded(t, conn)
	if control.HeaderSequence != 0 || control.Sequence != 0 || control.Flags != 0 || control.Type != thriftwire.Reply || control.Protocol != wire.TTHeader ||
		string(control.Name) != "none" || len(control.Body) != 1 || control.Body[0] != 0 || !maps.Equal(control.strings, map[string]string{"crrst": "1"}) {
		t.Errorf("got %v %q %d of %d with % x and %v; want the control message", control.Type, control.Name, control.Sequence, control.HeaderSequence, control.Body, control.strings)
	}
}

// wantEnd reads the end of a connection.
func wantEnd(t *testing.T, conn net.Conn) {
	t.Helper()
	if rest, err := io.ReadAll(conn); err != nil || len(rest) > 0 {
		t.Errorf("the connection ends with % x, %v", rest, err)
	}
	_ = conn.Close()
}

// TestServer_TellsThoseWhoMultiplexThatItStops, if they have no call: the others
// would not understand it. All have time until their connections are closed, those that
// were told to leave, the others for a call that is on its way; but not those that are
// idle for as long.
func TestServer_TellsThoseWhoMultiplexThatItStops(t *testing.T) {
	told := map[string]struct {
		call []byte
		want bool
		idle time.Duration
	}{
		"used the flag":       {headed(t, flagged(1), addCall(t, 1, 1, 2)), true, 0},
		"used it long ago":    {headed(t, flagged(1), addCall(t, 1, 1, 2)), true, 5 * time.Second},
		"said that it can":    {headed(t, ttheader.Head{Sequence: 1, Strings: pairs("fulmar-caps", "mux")}, addCall(t, 1, 1, 2)), true, 0},
		"said something else": {headed(t, ttheader.Head{Sequence: 1, Strings: pairs("fulmar-caps", "zip")}, addCall(t, 1, 1, 2)), false, 0},
		"has a header only":   {headed(t, ttheader.Head{Sequence: 1}, addCall(t, 1, 1, 2)), false, 0},
		"is framed":           {frame(addCall(t, 1, 1, 2)), false, 0},
		"was framed before":   {frame(addCall(t, 1, 1, 2)), false, 300 * time.Millisecond},
		"was so long ago":     {frame(addCall(t, 1, 1, 2)), false, 5 * time.Second},
		"has said nothing":    {nil, false, 0},
		"is silent for long":  {nil, false, 5 * time.Second},
	}
	for name, test := range told {
		simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, adder(), func(s *simulation) {
			conn := s.connect()
			synctest.Wait()
			if test.call != nil {
				write(t, conn, test.call)
				if _, err := conn.Read(make([]byte, 1000)); err != nil {
					t.Error(err)
				}
			}
			time.Sleep(test.idle)
			start := time.Now()
			s.stop()
			if test.want {
				wantControl(t, conn)
			}
			wantEnd(t, conn)
			grace := limits.StopGrace
			if !test.want {
				grace = max(0, grace-test.idle)
			}
			most := grace
			if !test.want && test.call != nil && grace > 0 {
				// When its call has ended is noticed twice a second.
				most = min(limits.StopGrace, grace+500*time.Millisecond)
			}
			if took := time.Since(start); took < grace || took > most {
				t.Errorf("%s: closed after %v, want %v to %v", name, took, grace, most)
			}
			if err := <-s.served; err != nil {
				t.Errorf("Serve: %v", err)
			}
			s.served <- nil
		})
	}
}

// TestServer_StopDoesNotWaitForThoseWhoLeave: a peer that was told and closes its
// connection, or only its side of it, has been waited for.
func TestServer_StopDoesNotWaitForThoseWhoLeave(t *testing.T) {
	for name, leave := range map[string]func(net.Conn) error{
		"closes":      net.Conn.Close,
		"half closes": func(conn net.Conn) error { return conn.(interface{ CloseWrite() error }).CloseWrite() },
	} {
		simulate(t, simnet.Config{Delay: time.Millisecond}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, adder(), func(s *simulation) {
			conn := s.connect()
			write(t, conn, headed(t, flagged(1), addCall(t, 1, 1, 2)))
			wantHeadedSum(t, conn, 1, 3)
			start := time.Now()
			s.stop()
			wantControl(t, conn)
			if err := leave(conn); err != nil {
				t.Error(err)
			}
			if err := <-s.served; err != nil || time.Since(start) > 10*time.Millisecond {
				t.Errorf("a peer that %s: Serve returned %v after %v", name, err, time.Since(start))
			}
			s.served <- nil
			_ = conn.Close()
		})
	}
}

// TestServer_AnswersOfAStoppingServerSayThatItCloses: those to calls that ran,
// and those to calls that were on their way.
func TestServer_AnswersOfAStoppingServerSayThatItCloses(t *testing.T) {
	stub := napper()
	stub.OnNothing = func(context.Context) error { time.Sleep(500 * time.Millisecond); return errors.New("no") }
	stub.OnVersion = func(context.Context) (string, error) { return "", fulmar.NewBusinessError(7, "no", nil) }
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, stub, func(s *simulation) {
		conn := s.connect()
		write(t, conn, headed(t, ours(1), addCall(t, 1, 10, 0)))
		if answer := wantHeadedSum(t, conn, 1, 10); answer.strings["crrst"] != "" {
			t.Errorf("while serving: %v", answer.strings)
		}
		const long = 5000
		write(t, conn, headed(t, flagged(2), addCall(t, 2, long, 0)), headed(t, flagged(3), message(thriftwire.Call, "nothing", 3, []byte{0})))
		synctest.Wait()
		start := time.Now()
		s.stop()
		wantControl(t, conn)
		time.Sleep(limits.StopGrace / 4)
		write(t, conn,
			headed(t, flagged(4), addCall(t, 4, 10, 0)),
			headed(t, flagged(5), message(thriftwire.Call, "version", 5, []byte{0})),
			headed(t, flagged(6), message(thriftwire.Call, "nope", 6, []byte{0})))
		want := map[int32]thriftwire.MessageType{5: thriftwire.Reply, 6: thriftwire.Exception, 4: thriftwire.Reply, 3: thriftwire.Exception, 2: thriftwire.Reply}
		for range len(want) {
			answer := readHeaded(t, conn)
			if answer.Type != want[answer.HeaderSequence] || answer.strings["crrst"] != "1" {
				t.Errorf("answer %d: %v with %v", answer.HeaderSequence, answer.Type, answer.strings)
			}
			delete(want, answer.HeaderSequence)
		}
		wantEnd(t, conn)
		if err := <-s.served; err != nil || time.Since(start) != long*time.Millisecond {
			t.Errorf("Serve returned %v after %v", err, time.Since(start))
		}
		s.served <- nil
	})
}

// TestServer_TakesNoCallsAfterTheGrace: they are not executed, whoever goes on
// sending them, and who does is told so at once; what runs already is answered.
func TestServer_TakesNoCallsAfterTheGrace(t *testing.T) {
	const long = 3000
	var held holder
	stub := held.stub()
	stub.OnAdd = napper().OnAdd
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, stub, func(s *simulation) {
		defer held.begin()()
		conn := s.connect()
		write(t, conn, headed(t, ours(1), addCall(t, 1, long, 0)))
		synctest.Wait()
		s.stop()
		wantControl(t, conn)
		time.Sleep(limits.StopGrace + time.Millisecond)
		write(t, conn, headed(t, flagged(2), message(thriftwire.Call, "nothing", 2, []byte{0})))
		answer, exception := wantHeadedException(t, conn, 2)
		if answer.strings["fulmar-executed"] != "no" || answer.strings["crrst"] != "1" || exception.Message != "request refused: the server is stopping" {
			t.Errorf("a late call is told %q with %v", exception.Message, answer.strings)
		}
		wantHeadedSum(t, conn, 1, long)
		wantEnd(t, conn)
		if err := <-s.served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		s.served <- nil
	})
	if n := held.started.Load(); n != 0 {
		t.Errorf("%d calls were executed after the grace", n)
	}
}

// TestServer_SaysThatItClosesAfterAMessageThatIsTheLast, because nothing behind
// it can be understood.
func TestServer_SaysThatItClosesAfterAMessageThatIsTheLast(t *testing.T) {
	const messageBytes = 1000
	badInfo := headed(t, ttheader.Head{Sequence: 5, Strings: pairs("k", "v")}, addCall(t, 5, 1, 2))
	badInfo[ttheader.FixedSize+2] = 0x77 // an unknown block
	tooLong := headed(t, flagged(5), message(thriftwire.Call, "add", 5, make([]byte, 100*messageBytes)))
	cases := map[string]struct {
		sent []byte
		last bool
		text string
	}{
		"a header that cannot be read": {badInfo, true, "unknown id 0x77"},
		"far too long":                 {tooLong[:2*messageBytes], true, "limit 1000"},
		"too long":                     {headed(t, flagged(5), message(thriftwire.Call, "add", 5, make([]byte, messageBytes))), false, "limit 1000"},
	}
	for name, test := range cases {
		simulate(t, simnet.Config{}, fulmar.ServerConfig{MaxMessageBytes: messageBytes}, fulmar.ClientConfig{}, napper(), func(s *simulation) {
			conn := s.connect()
			write(t, conn, headed(t, flagged(1), addCall(t, 1, 200, 0)), headed(t, flagged(2), addCall(t, 2, 100, 0)), test.sent)
			answer, exception := wantHeadedException(t, conn, 5)
			if (answer.strings["crrst"] == "1") != test.last || !strings.Contains(exception.Message, test.text) {
				t.Errorf("%s: %q with %v", name, exception.Message, answer.strings)
			}
			// Calls that came before it are answered, and say the same.
			for _, nap := range []int32{100, 200} {
				if answer := wantHeadedSum(t, conn, 3-nap/100, nap); (answer.strings["crrst"] == "1") != test.last {
					t.Errorf("%s: an answer after it has %v", name, answer.strings)
				}
			}
			if test.last {
				wantEnd(t, conn)
			} else {
				write(t, conn, headed(t, flagged(6), addCall(t, 6, 0, 1)))
				wantHeadedSum(t, conn, 6, 1)
				_ = conn.Close()
			}
		})
	}
}
