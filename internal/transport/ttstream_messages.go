package transport

import (
	"errors"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttstream"
)

// ttstreamFlow is the messageFlow of a connection with streams over TTHeader.
type ttstreamFlow struct {
	frames *ttstream.Conn
	// base is when the clock of frames began.
	base time.Time
	// congested: nothing is read until messages are taken, or answers written.
	congested bool
}

func (f *ttstreamFlow) at(now time.Time) ttstream.Nanoseconds {
	return ttstream.Nanoseconds(max(now.Sub(f.base), 0))
}

// uncongested reports whether what was congested is not any more, once.
func (f *ttstreamFlow) uncongested() bool {
	if !f.congested || f.frames.Congested(f.at(time.Now())) {
		return false
	}
	f.congested = false
	return true
}

func (f *ttstreamFlow) pending() bool { return f.congested || f.frames.Unsent() > 0 }

func (f *ttstreamFlow) consume(m *streamMessages, bytes, messages int) {
	f.frames.ConsumeMessages(int32(m.id), messages, bytes)
}

func (f *ttstreamFlow) pump(m *streamMessages) {
	switch sent, err := f.frames.Send(int32(m.id), m.rest...); {
	case errors.Is(err, ttstream.ErrStreamEnded):
		m.rest = nil // The other side has ended the stream, and an event says how.
	case errors.Is(err, ttstream.ErrTooLarge):
		m.rest, m.unsendable = nil, &grpc.Error{Code: grpc.ResourceExhausted, Detail: err.Error()}
	case err != nil:
		m.rest, m.unsendable = nil, err
	case sent:
		if m.rest = nil; m.last {
			_ = f.frames.End(int32(m.id), nil, nil)
		}
	}
}

// pumpWaiting goes on with messages for which there is room again.
func (f *ttstreamFlow) pumpWaiting() {
	for {
		_, value, ok := f.frames.Writable()
		if !ok {
			return
		}
		if stream, ok := value.(pumper); ok {
			stream.pumpLocked()
		}
	}
}

// pumper is a stream of a ttstreamFlow.
type pumper interface{ pumpLocked() }

// ttstreamMessages is a stream of messages over TTHeader on either side.
type ttstreamMessages struct{ streamMessages }

// messageLocked takes a message that has arrived. It returns what is wrong with it: nothing
// more is taken then.
func (m *ttstreamMessages) messageLocked(message []byte) error {
	if m.ended != nil || m.broken != nil {
		m.flow.consume(&m.streamMessages, len(message), 1)
		return nil
	}
	var prefix [grpc.PrefixSize]byte
	grpc.PutPrefix(prefix[:], len(message), false)
	if err := m.appendLocked(prefix[:], message); err != nil {
		m.flow.consume(&m.streamMessages, len(message), 1)
		return err
	}
	m.owed += len(message)
	m.owedMessages++
	if m.whole == 0 {
		wake(m.readable)
	}
	m.whole = len(m.arrived)
	return nil
}

// Room implements Stream.
func (m *ttstreamMessages) Room() *linkbuf.Buffer {
	m.room.Release()
	return &m.room
}

// sendRoom sends what was appended to Room. begin, with the lock, is what comes before that.
func (m *ttstreamMessages) sendRoom(last bool, begin func() error) error {
	c := m.connection
	pieces := m.room.Slices(m.pieces[:0])
	c.Lock()
	err, done := begin(), true
	if err == nil {
		done, err = m.sendLocked(pieces, last)
	}
	c.Unlock()
	if err == nil {
		err = m.await(done)
	}
	m.room.Release()
	return err
}
