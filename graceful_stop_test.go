package fulmar_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// TestServer_ServesACallThatIsOnItsWayWhenItStops, of a peer that cannot be told of the
// stop. The answer is the last one: the connection ends with it.
func TestServer_ServesACallThatIsOnItsWayWhenItStops(t *testing.T) {
	for name, before := range map[string][]byte{"first": nil, "next": frame(addCall(t, 1, 1, 2))} {
		t.Run(name, func(t *testing.T) {
			simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, adder(), func(s *simulation) {
				conn := s.connect()
				if before != nil {
					write(t, conn, before)
					wantSum(t, conn, 1, 3)
				}
				synctest.Wait() // The server has the connection.
				start := time.Now()
				s.stop()
				const late = limits.StopGrace / 2
				time.Sleep(late)
				write(t, conn, frame(addCall(t, 2, 3, 4)))
				wantSum(t, conn, 2, 7)
				wantEnd(t, conn)
				if err := <-s.served; err != nil || time.Since(start) != late {
					t.Errorf("Serve returned %v after %v, want it after %v", err, time.Since(start), late)
				}
				s.served <- nil
			})
		})
	}
}

// TestServer_OnewayIsNotTheLastCallOfAConnection: nobody waits for an answer to it, so
// the next call may come behind it.
func TestServer_OnewayIsNotTheLastCallOfAConnection(t *testing.T) {
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, adder(), func(s *simulation) {
		conn := s.connect()
		write(t, conn, frame(addCall(t, 1, 1, 2)))
		wantSum(t, conn, 1, 3)
		s.stop()
		time.Sleep(limits.StopGrace / 4)
		write(t, conn, frame(message(thriftwire.Oneway, "notify", 2, []byte{0})))
		time.Sleep(limits.StopGrace / 4)
		write(t, conn, frame(addCall(t, 3, 3, 4)))
		wantSum(t, conn, 3, 7)
		wantEnd(t, conn)
	})
}
