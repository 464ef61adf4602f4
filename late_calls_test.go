package fulmar_test

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
)

const (
	// lateCallNap is how many milliseconds the call takes that runs when the late ones
	// come.
	lateCallNap = 3000
	lateCall    = "request refused: the server is stopping"
)

// whenLate stops a server while a call runs on a connection, and goes on so long behind
// the moment from which on calls come too late. The end of the connection must follow,
// and take no longer than most.
func whenLate(t *testing.T, config fulmar.ServerConfig, running []byte, behind, most time.Duration, late func(conn net.Conn)) {
	t.Helper()
	var held holder
	stub := held.stub()
	stub.OnAdd = napper().OnAdd
	simulate(t, simnet.Config{}, config, fulmar.ClientConfig{}, stub, func(s *simulation) {
		defer held.begin()()
		conn := s.connect()
		write(t, conn, running)
		synctest.Wait()
		start := time.Now()
		s.stop()
		time.Sleep(limits.StopGrace + time.Millisecond + behind)
		late(conn)
		wantEnd(t, conn)
		if err := <-s.served; err != nil || time.Since(start) > most {
			t.Errorf("Serve returned %v after %v", err, time.Since(start))
		}
		s.served <- nil
	})
	if n := held.started.Load(); n != 0 {
		t.Errorf("%d calls were executed after the grace", n)
	}
}

// TestServer_RefusesLateCallsInOrder, behind the answer to the call before them, in
// place of closing the connection.
func TestServer_RefusesLateCallsInOrder(t *testing.T) {
	nothing := message(thriftwire.Call, "nothing", 2, []byte{0})
	whenLate(t, fulmar.ServerConfig{}, frame(addCall(t, 1, lateCallNap, 0)), 0, lateCallNap*time.Millisecond, func(conn net.Conn) {
		write(t, conn, frame(nothing))
		wantSum(t, conn, 1, lateCallNap)
		wantException(t, conn, 2, thriftwire.ExceptionInternalError, lateCall)
	})
	whenLate(t, fulmar.ServerConfig{}, headed(t, ttheader.Head{Sequence: 1}, addCall(t, 1, lateCallNap, 0)), 0, lateCallNap*time.Millisecond, func(conn net.Conn) {
		write(t, conn, headed(t, ttheader.Head{Sequence: 2}, nothing))
		wantHeadedSum(t, conn, 1, lateCallNap)
		answer, exception := wantHeadedException(t, conn, 2)
		if exception.Message != lateCall || answer.strings["fulmar-executed"] != "no" {
			t.Errorf("a late call is told %q with %v", exception.Message, answer.strings)
		}
	})
}

// TestServer_RefusesNoMoreThanMayBeOnTheirWay: who goes on sending is not answered for
// ever.
func TestServer_RefusesNoMoreThanMayBeOnTheirWay(t *testing.T) {
	const most = 3
	whenLate(t, fulmar.ServerConfig{MaxConnectionCalls: most}, headed(t, ours(1), addCall(t, 1, lateCallNap, 0)), 0, lateCallNap*time.Millisecond, func(conn net.Conn) {
		wantControl(t, conn)
		for sequence := int32(2); sequence < 2+2*most; sequence++ {
			write(t, conn, headed(t, flagged(sequence), message(thriftwire.Call, "nothing", sequence, []byte{0})))
		}
		for sequence := int32(2); sequence < 2+most; sequence++ {
			if _, exception := wantHeadedException(t, conn, sequence); exception.Message != lateCall {
				t.Errorf("call %d is told %q", sequence, exception.Message)
			}
		}
		wantHeadedSum(t, conn, 1, lateCallNap)
	})
}

// TestServer_DoesNotWaitForTheRestOfALateCall for longer than StopGrace: nobody is going
// to execute it.
func TestServer_DoesNotWaitForTheRestOfALateCall(t *testing.T) {
	const sweep = time.Second // how late a connection may be closed
	whenLate(t, fulmar.ServerConfig{}, headed(t, ours(1), addCall(t, 1, lateCallNap, 0)), (lateCallNap-2100)*time.Millisecond, lateCallNap*time.Millisecond+limits.StopGrace+sweep, func(conn net.Conn) {
		wantControl(t, conn)
		late := headed(t, flagged(2), message(thriftwire.Call, "nothing", 2, []byte{0}))
		write(t, conn, late[:len(late)-1])
		wantHeadedSum(t, conn, 1, lateCallNap)
	})
}
