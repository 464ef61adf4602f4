package ttstream_test

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttstream"
)

// TestConn_MessagesAllocateNothing sends and receives messages on a stream that runs: the
// least of several runs counts, as others of the process allocate too.
func TestConn_MessagesAllocateNothing(t *testing.T) {
	message := make([]byte, 100)
	data := frame(1, "3", "m", message)
	least := -1.0
	for range 5 {
		s := newSide(t, ttstream.Config{})
		s.arrive(frame(1, "2", "m", nil))
		spare := linkbuf.New(s.pool)
		allocs := testing.AllocsPerRun(100, func() {
			event, _, _, err := s.conn.Next(data, 0)
			if err != nil || event.Kind != ttstream.EventData {
				t.Fatal(event.Kind, err)
			}
			s.conn.Consume(1, len(event.Data))
			if sent, err := s.conn.Send(1, message); !sent || err != nil {
				t.Fatal(sent, err)
			}
			full := s.conn.Swap(spare)
			full.Release()
			spare = full
		})
		spare.Release()
		if least < 0 || allocs < least {
			least = allocs
		}
	}
	if least > 0 {
		t.Errorf("%v allocations for a message each way", least)
	}
}
