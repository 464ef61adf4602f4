package transport

import (
	"time"

	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// http2Flow is the messageFlow of a connection in HTTP/2.
type http2Flow struct {
	http2 *http2.Conn
	// base is when the clock of http2 began.
	base time.Time
}

func (f *http2Flow) pending() bool { return f.http2.Unsent() > 0 }

func (f *http2Flow) now() http2.Nanoseconds {
	return http2.Nanoseconds(max(time.Since(f.base), 0))
}

func (f *http2Flow) consume(m *streamMessages, bytes, _ int) {
	f.http2.Consume(m.id, bytes, f.now())
}

func (f *http2Flow) pump(m *streamMessages) {
	rest, err := f.http2.DataPieces(m.id, m.rest, m.last)
	if err != nil {
		rest = nil // The other side has ended the stream, and an event says how.
	}
	m.rest = rest
}

// grpcMessages is a stream of messages in gRPC on either side. Bytes go back to the window
// when they are taken by the receiver, but those of the message that he waits for at once.
type grpcMessages struct {
	streamMessages
	// prefix is in front of what was appended to Room.
	prefix []byte
}

// dataLocked takes bytes that have arrived. It returns what is wrong with them: nothing
// more is taken then.
func (m *grpcMessages) dataLocked(b []byte) error {
	if m.ended != nil || m.broken != nil {
		m.flow.consume(&m.streamMessages, len(b), 0)
		return nil
	}
	if m.whole > 0 {
		m.owed += len(b)
	} else {
		m.flow.consume(&m.streamMessages, len(b), 0)
	}
	if err := m.appendLocked(b); err != nil {
		return err
	}
	before := m.whole
	for len(m.arrived)-m.whole >= grpc.PrefixSize {
		if m.want == 0 {
			_, _, used, need, err := grpc.Next(m.arrived[m.whole:m.whole+grpc.PrefixSize], m.limit)
			if err != nil {
				return err
			}
			m.want = max(used, need)
		}
		if len(m.arrived)-m.whole < m.want {
			break
		}
		m.whole += m.want
		m.want = 0
	}
	if before == 0 && m.whole > 0 {
		wake(m.readable)
	}
	return nil
}

// Room implements Stream.
func (m *grpcMessages) Room() *linkbuf.Buffer {
	m.room.Release()
	m.prefix = m.room.Reserve(grpc.PrefixSize)
	return &m.room
}

// message returns what is sent of what was appended to Room.
func (m *grpcMessages) message() [][]byte {
	if m.packs != nil && m.room.Len() >= deflateLeast {
		if packed := m.packs.deflate(m.room.Slices(nil), m.room.Len()); packed != nil {
			return append(m.pieces[:0], packed)
		}
	}
	grpc.PutPrefix(m.prefix, m.room.Len()-grpc.PrefixSize, false)
	return m.room.Slices(m.pieces[:0])
}
