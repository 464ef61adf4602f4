package transport

import (
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// nowhere is a connection of streams that sends nothing.
type nowhere struct{ sync.Mutex }

func (*nowhere) othersLocked() bool { return false }

func (*nowhere) flushNow()  {}
func (*nowhere) flushSoon() {}

// newLooseMessages returns a stream without a connection.
func newLooseMessages(pool *linkbuf.Pool, limit int, budget *budget) *grpcMessages {
	m := &grpcMessages{streamMessages: streamMessages{limit: limit, budget: budget, connection: new(nowhere)}}
	m.flow = &http2Flow{http2: http2.NewConn(http2.Config{}, pool, 0), base: time.Now()}
	m.init(pool)
	return m
}

// feed gives a stream pieces, takes what it can after each if taking, and returns all
// messages and the error behind them.
func feed(m *grpcMessages, taking bool, pieces ...[]byte) (messages []string, err error) {
	take := func() {
		for err == nil {
			var body []byte
			if body, err = m.Receive(1); err == nil {
				messages = append(messages, string(body))
			}
		}
	}
	for _, piece := range pieces {
		m.connection.Lock()
		if wrong := m.dataLocked(piece); wrong != nil {
			m.endLocked(wrong)
		}
		m.connection.Unlock()
		if taking && m.whole > 0 {
			for range m.countWhole() {
				if body, err := m.Receive(0); err == nil {
					messages = append(messages, string(body))
				}
			}
		}
	}
	m.connection.Lock()
	m.endLocked(io.EOF)
	m.connection.Unlock()
	take()
	return messages, err
}

// countWhole returns how many messages have arrived that nobody has taken.
func (m *grpcMessages) countWhole() (count int) {
	for b := m.arrived[:m.whole]; len(b) > 0; count++ {
		_, _, used, _, _ := grpc.Next(b, m.limit)
		b = b[used:]
	}
	return count
}

// FuzzGRPCMessages: any bytes as messages of a stream, cut in three: the same messages come
// out whether somebody takes them meanwhile or not, with the same error behind them, memory
// follows the bytes, and all of it is given back.
func FuzzGRPCMessages(f *testing.F) {
	f.Add(append(framedMessage("hello"), framedMessage("")...), 3, 9)
	f.Add([]byte{0, 0xff, 0xff, 0xff, 0xff}, 1, 2)
	f.Add(append(framedMessage("a"), 1, 0, 0, 0, 1, 'x'), 6, 7)
	f.Add(append(framedMessage("whole"), 0, 0, 0, 0, 9, 'p'), 2, 12)
	f.Fuzz(func(t *testing.T, b []byte, first, second int) {
		const limit = 1 << 20
		first = min(max(first, 0), len(b))
		second = min(max(second, first), len(b))
		pool, spent := linkbuf.NewPool(), &budget{limit: 1 << 30}
		run := func(taking bool, pieces ...[]byte) ([]string, error) {
			m := newLooseMessages(pool, limit, spent)
			messages, err := feed(m, taking, pieces...)
			if held := cap(m.arrived); held > max(2*len(b), messagePiece)+linkbufSlack {
				t.Fatalf("%d bytes took %d", len(b), held)
			}
			m.connection.Lock()
			m.giveUpLocked()
			m.connection.Unlock()
			m.flow.(*http2Flow).http2.Close()
			return messages, err
		}
		want, wantErr := run(false, b)
		for _, taking := range []bool{false, true} {
			got, err := run(taking, b[:first], b[first:second], b[second:])
			if !slices.Equal(got, want) || (err == io.EOF) != (wantErr == io.EOF) {
				t.Errorf("in one piece %q, %v; cut at %d and %d %q, %v", want, wantErr, first, second, got, err)
			}
		}
		if failed := new(grpc.Error); wantErr != io.EOF && !errors.As(wantErr, &failed) {
			t.Errorf("ended with %v", wantErr)
		}
		if used := spent.used.Load(); used != 0 {
			t.Errorf("the budget counts %d bytes", used)
		}
	})
}

// linkbufSlack is how much more than what was asked for the pool may give.
const linkbufSlack = 64 << 10
