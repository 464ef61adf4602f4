package transport

import (
	"cmp"
	"context"
	"errors"
	"io"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// serverMessages is a stream of messages of a call in gRPC, on the side of the handler. The
// lock of the connection guards it.
type serverMessages struct {
	grpcMessages
	stream *serverStream
	// headed: the headers of the answer were sent.
	headed bool
}

var _ ServerStream = (*serverMessages)(nil)

func newServerMessages(s *serverStream) *serverMessages {
	h := s.server
	m := &serverMessages{stream: s}
	m.init(h.conn.server.buffers)
	m.id, m.flow, m.limit = s.id, &h.flow, h.conn.server.config.Limits.Bytes
	m.life, m.blame, m.patience = s, h.blame, h.conn.server.config.SendTimeout
	m.budget, m.encoding, m.connection = &h.conn.server.budget, s.encoding, h
	if s.packs {
		m.packs = s.encoding
	}
	return m
}

// headed reports whether the headers of the answer were sent.
func (s *serverStream) headed() bool { return s.answered || s.messages != nil && s.messages.headed }

// obeyLocked takes what has come for the stream.
func (m *serverMessages) obeyLocked(event *http2.Event) {
	if event.Kind == http2.EventData {
		before := m.whole
		if err := m.dataLocked(event.Data); err != nil {
			m.failLocked(err)
		}
		if m.whole > before {
			m.stream.arriving.began = time.Time{} // what follows has its own time
		}
	}
	if event.End {
		m.endLocked(io.EOF)
	}
}

// failLocked ends the stream for what was wrong with the message that arrives. The handler
// says so, and may take its time: nothing of that is kept meanwhile.
func (m *serverMessages) failLocked(err error) {
	m.endLocked(err)
	m.dropPartLocked()
}

// serve is told of the call that is about to run.
func (m *serverMessages) serve(call *Inbound) {
	call.Stream = m
	m.willWait = call.WillWait
	m.expireAt(call.Arrived, call.Head.Timeout)
}

// Lock implements messageCarrier.
func (h *http2Server) Lock() { h.mu.Lock() }

// Unlock implements messageCarrier.
func (h *http2Server) Unlock() { h.mu.Unlock() }

// othersLocked implements messageCarrier.
func (h *http2Server) othersLocked() bool { return h.gathering.othersLocked() }

func (h *http2Server) flushNow() { h.flush(true) }

// Send implements Stream.
func (m *serverMessages) Send(bool) error {
	s := m.stream
	pieces := m.message()
	h := s.server
	h.mu.Lock()
	err, done := m.broken, true
	if err == nil {
		err = m.headersLocked(nil)
	}
	if err == nil {
		h.gathering.messages++
		done, err = m.sendLocked(pieces, false)
	}
	h.mu.Unlock()
	if err == nil {
		err = m.await(done)
	}
	m.room.Release()
	return err
}

// CloseSend implements Stream. The end of a handler is the end of what it sends.
func (m *serverMessages) CloseSend() error { return nil }

// errHeaderSent is why metadata cannot be sent in front of the first message.
var errHeaderSent = errors.New("the metadata in front of the first message was sent already")

// SendHeader implements ServerStream.
func (m *serverMessages) SendHeader(metadata []Pair) error {
	h := m.stream.server
	h.mu.Lock()
	err := m.broken
	switch {
	case err != nil:
	case m.headed:
		err = errHeaderSent
	default:
		err = m.headersLocked(metadata)
	}
	h.mu.Unlock()
	flushHeader(h, metadata)
	return err
}

// flushHeader writes what was sent in front of the first message. Without metadata there is
// no hurry: a proxy, which does not know whether a message comes with it, sends both at once.
func flushHeader(c messageCarrier, metadata []Pair) {
	if len(metadata) == 0 {
		c.flushSoon()
	} else {
		c.flushNow()
	}
}

// headersLocked sends the headers of the answer, if that has not happened.
func (m *serverMessages) headersLocked(metadata []Pair) error {
	s := m.stream
	h := s.server
	switch {
	case h.gone || s.sent:
		return context.Canceled
	case m.headed:
		return nil
	}
	h.beginFields(s)
	if m.packs != nil {
		h.fields = append(h.fields, http2.Field{Name: "grpc-encoding", Value: m.packs.Name})
	}
	h.addPairs(metadata)
	err := h.http2.Headers(s.id, h.fields, false)
	m.headed = err == nil
	return err
}

// finishStream is Inbound.FinishStream.
func (h *http2Server) finishStream(in *Inbound, s *serverStream, head ReplyHead) error {
	m := s.messages
	in.attach(0)
	h.mu.Lock()
	err := h.answerableLocked(s)
	switch {
	case err != nil:
	case head.Business != nil:
		err = h.statusLocked(s, head, head.Business.Message)
	default:
		err = m.finishLocked(&head)
	}
	h.mu.Unlock()
	h.leave(in)
	return err
}

// finishLocked sends the trailers of a call that has succeeded. A grpc.Error says that it has
// failed after all, as the peer is told.
func (m *serverMessages) finishLocked(head *ReplyHead) error {
	s := m.stream
	h := s.server
	if m.rest != nil || m.unsendable != nil {
		return h.failLocked(s, lacksMessage(), "")
	}
	err := m.headersLocked(nil)
	if err == nil {
		h.fields = append(h.fields[:0], http2.Field{Name: "grpc-status", Value: "0"})
		h.addPairs(head.Metadata)
		h.addPairs(head.Trailing)
		err = h.http2.Headers(s.id, h.fields, true)
		if errors.Is(err, http2.ErrHeadersTooLarge) {
			err = h.failLocked(s, &grpc.Error{Code: grpc.ResourceExhausted, Detail: err.Error()}, executedYes)
		}
		s.answered, s.sent = true, true
		m.closeLocked()
		h.releaseLocked(s)
	}
	return err
}

// failLocked ends a call whose handler has succeeded with why it has not. It returns that.
func (h *http2Server) failLocked(s *serverStream, why *grpc.Error, executed string) error {
	return cmp.Or[error](h.statusLocked(s, ReplyHead{Executed: executed, Code: uint32(why.Code)}, why.Detail), why)
}
