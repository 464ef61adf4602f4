package fulmar_test

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
)

// TestServer_CountsWhatShortAnswersTake: a short answer that waits for its peer holds a
// chunk of 2 KiB and more, so few of them may wait: counted by what is sent of them,
// 15,000 would.
func TestServer_CountsWhatShortAnswersTake(t *testing.T) {
	const calls, each = 5000, 2 << 10
	for name, head := range map[string]ttheader.Head{"in order": {Sequence: 1}, "out of order": flagged(1)} {
		t.Run(name, func(t *testing.T) {
			stub := &testservice.Stub{OnAdd: adder().OnAdd}
			// The peer takes what it sends itself, and nothing of the answers.
			simulate(t, simnet.Config{BufferBytes: 1 << 10}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, stub, func(s *simulation) {
				conn := s.connect()
				call := headed(t, head, message(thriftwire.Call, "add", 1, body(t, &testservice.EchoAddArgs{Left: 1, Right: 2})))
				sent := make(chan int, 1)
				go func() { sent <- writeUntilClosed(conn, call, calls) }()
				time.Sleep(limits.WriteStallTimeout / 2)
				if held := s.server.Stats().BufferedBytes; held < limits.UnsentBytes || held > 2*limits.UnsentBytes {
					t.Errorf("%d bytes are held for a peer that does not read, want about %d", held, limits.UnsentBytes)
				}
				ended := <-sent // because the connection is reset
				if most := limits.UnsentBytes/each + limits.ReadAheadBytes/len(call); ended > most {
					t.Errorf("%d calls were taken, want %d at most", ended, most)
				}
				synctest.Wait()
				if after := s.server.Stats(); after.BufferedBytes != 0 || after.Calls != 0 {
					t.Errorf("afterwards: %+v", after)
				}
				_ = conn.Close()
			})
		})
	}
}

// writeUntilClosed sends the same call again and again, and returns how often it could. Each
// is sent when the one before is done with: answers that are written at once share a chunk.
func writeUntilClosed(conn net.Conn, call []byte, most int) int {
	for i := range most {
		if _, err := conn.Write(call); err != nil {
			return i
		}
		synctest.Wait()
	}
	return most
}
