package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// send answers a call with a message, or with the business error of its head.
func (h *http2Server) send(call *Inbound, s *serverStream, o *outgoing) error {
	if s.reply.Business != nil {
		return h.sendStatus(call, s, s.reply, s.reply.Business.Message)
	}
	if o.length() > corkedMost {
		call.LetGo()
	}
	var packed []byte
	if s.packs && o.length() >= deflateLeast {
		packed = s.encoding.deflate(o.slices(nil), o.length())
	}
	call.attach(o.length())
	h.mu.Lock()
	if err := h.answerableLocked(s); err != nil {
		h.mu.Unlock()
		return err
	}
	h.beginFields(s)
	if packed != nil {
		h.fields = append(h.fields, http2.Field{Name: "grpc-encoding", Value: s.encoding.Name})
	}
	h.addPairs(s.reply.Metadata)
	if err := h.http2.Headers(s.id, h.fields, false); err != nil {
		if errors.Is(err, http2.ErrHeadersTooLarge) {
			err = h.statusLocked(s, ReplyHead{Executed: executedYes, Code: uint32(grpc.ResourceExhausted)}, err.Error())
		}
		h.mu.Unlock()
		h.leave(call)
		return err
	}
	s.answered = true
	h.gathering.messages++
	length := o.length()
	if packed != nil {
		s.rest, length = append(s.parts[:0], packed), len(packed)
	} else {
		s.rest = o.slices(s.parts[:0])
	}
	if call.stamps != nil {
		call.stamps.BytesOut = length
	}
	h.pumpLocked(s)
	if !s.sent {
		if packed == nil {
			o.owners.Add(1)
			s.out = o
		}
		s.counted, s.waited = length, time.Now()
		h.conn.server.budget.add(length)
	}
	h.mu.Unlock()
	h.leave(call)
	return nil
}

// sendStatus answers a call with a status and no message.
func (h *http2Server) sendStatus(call *Inbound, s *serverStream, head ReplyHead, message string) error {
	call.attach(0)
	h.mu.Lock()
	err := h.answerableLocked(s)
	if err == nil {
		err = h.statusLocked(s, head, message)
	}
	h.mu.Unlock()
	h.leave(call)
	return err
}

// leave writes an answer, unless that is left to who looks at the connection next.
func (h *http2Server) leave(call *Inbound) {
	if !call.attached {
		h.flush(true)
	}
}

// done follows the end of a call.
func (h *http2Server) done(call *Inbound, s *serverStream) {
	c := h.conn
	h.mu.Lock()
	s.returned = true
	if s.messages != nil {
		s.messages.giveUpLocked()
	}
	if h.answerableLocked(s) == nil {
		// The peer waits for an answer that nobody has made.
		_ = h.statusLocked(s, ReplyHead{Code: uint32(grpc.Internal)}, "the call ended without an answer")
	}
	h.releaseLocked(s)
	h.mu.Unlock()
	c.mu.Lock()
	c.running--
	c.changedLocked()
	c.mu.Unlock()
	if !call.attached || c.conn.Reader().Len() == 0 {
		h.flush(false)
	}
}

func (h *http2Server) answerableLocked(s *serverStream) error {
	if h.gone || s.answered || s.sent {
		return net.ErrClosed
	}
	return nil
}

// beginFields begins the headers of an answer.
func (h *http2Server) beginFields(s *serverStream) {
	contentType := "application/grpc"
	switch s.subtype {
	case "proto":
		contentType = "application/grpc+proto"
	case "thrift":
		contentType = "application/grpc+thrift"
	}
	h.fields = append(h.fields[:0], http2.Field{Name: ":status", Value: "200"}, http2.Field{Name: "content-type", Value: contentType})
}

// pumpLocked sends of an answer what there is room for, and behind all of it the trailers.
func (h *http2Server) pumpLocked(s *serverStream) {
	if before := lengthOf(s.rest); before > 0 {
		rest, err := h.http2.DataPieces(s.id, s.rest, s.status != "")
		if err != nil {
			h.resetLocked(s)
			return
		}
		if lengthOf(rest) < before {
			s.moved = time.Time{}
		}
		if s.rest = rest; len(rest) > 0 {
			if s.moved.IsZero() {
				s.moved = time.Now()
			}
			return
		}
	}
	if s.status != "" {
		s.sent = true
		h.releaseLocked(s)
		return
	}
	h.fields = append(h.fields[:0], http2.Field{Name: "grpc-status", Value: "0"})
	h.addPairs(s.reply.Trailing)
	err := h.http2.Headers(s.id, h.fields, true)
	s.sent = true
	h.dropAnswer(s)
	if errors.Is(err, http2.ErrHeadersTooLarge) {
		// A caller who wants them would not know that they are missing.
		_ = h.statusLocked(s, ReplyHead{Executed: executedYes, Code: uint32(grpc.ResourceExhausted)}, err.Error())
		return
	}
	h.releaseLocked(s)
}

// resumeLocked goes on with answers for which there is room again.
func (h *http2Server) resumeLocked() {
	for !h.gone {
		_, value, ok := h.http2.Writable()
		if !ok {
			return
		}
		if s, ok := value.(*serverStream); ok && !s.sent {
			if s.messages != nil {
				s.messages.pumpLocked()
			} else {
				h.pumpLocked(s)
			}
		}
	}
}

// resetLocked ends a stream for which nothing is to be sent any more.
func (h *http2Server) resetLocked(s *serverStream) {
	if s.sent {
		return
	}
	s.sent = true
	s.cancel()
	if s.messages != nil {
		s.messages.breakLocked(context.Canceled)
	}
	h.dropAnswer(s)
	if !s.complete {
		s.complete, s.returned = true, true // it never ran
		s.dropRequest()
	}
	h.releaseLocked(s)
}

// dropAnswer gives the memory of an answer back.
func (h *http2Server) dropAnswer(s *serverStream) {
	h.conn.server.budget.give(s.counted)
	s.counted, s.rest = 0, nil
	s.parts = [4][]byte{}
	if s.out != nil {
		s.out.release()
		s.out = nil
	}
}

// releaseLocked lets the peer begin another stream, when this one is over.
func (h *http2Server) releaseLocked(s *serverStream) {
	if !s.sent || !s.returned || h.streams[s.id] != s {
		return
	}
	delete(h.streams, s.id)
	if h.gone {
		return
	}
	now := time.Now()
	h.http2.Release(s.id)
	if len(h.streams) == 0 {
		h.idle = now
	}
}

// statusLocked sends an answer that has no message.
func (h *http2Server) statusLocked(s *serverStream, head ReplyHead, message string) error {
	code := head.Code
	if head.Business != nil || code == 0 {
		code = uint32(grpc.Internal)
	}
	message = thriftwire.CutMessage(message, limits.ErrorMessageBytes)
	if len(head.Details) > limits.ErrorDetailsBytes {
		message = head.dropDetails(message)
	}
	head.Metadata = h.frontLocked(s, head.Metadata)
	put := func(withMetadata bool) error {
		if h.fields = h.fields[:0]; !s.headed() {
			h.beginFields(s)
		}
		h.fields = append(h.fields, http2.Field{Name: "grpc-status", Value: strconv.FormatUint(uint64(code), 10)})
		if message != "" {
			h.fields = append(h.fields, http2.Field{Name: "grpc-message", Value: grpc.EncodeMessage(message)})
		}
		if head.Executed == executedNo || head.Executed != "" && s.fulmar {
			h.fields = append(h.fields, http2.Field{Name: wire.Executed, Value: head.Executed})
		}
		if s.encoding == nil && s.encodingName != "" {
			h.fields = append(h.fields, http2.Field{Name: "grpc-accept-encoding", Value: h.conn.server.encodings.accepted})
		}
		if withMetadata {
			h.addStatus(&head)
			h.addPairs(head.Metadata)
			h.addPairs(head.Trailing)
		}
		return h.http2.Headers(s.id, h.fields, true)
	}
	err := put(true)
	if errors.Is(err, http2.ErrHeadersTooLarge) {
		// Better without details and metadata than not at all, and with some of the text.
		message = head.dropDetails(message)
		for err = put(false); errors.Is(err, http2.ErrHeadersTooLarge) && message != ""; err = put(false) {
			message = thriftwire.CutMessage(message, len(message)/2)
		}
	}
	s.answered, s.sent = true, true
	if s.messages != nil {
		s.messages.closeLocked()
	}
	h.releaseLocked(s)
	return err
}

// frontLocked sends what the handler of a unary call has set as headers before the call failed, so
// that callers find it where they look for it, and returns what goes with the status. Without
// such metadata the status is all that is sent, and only then do clients of gRPC make another
// attempt: so when that may be said is never in front.
func (h *http2Server) frontLocked(s *serverStream, metadata []Pair) (behind []Pair) {
	if len(metadata) == 0 || s.messages != nil || s.headed() {
		return metadata
	}
	var front []Pair
	for _, pair := range metadata {
		if strings.EqualFold(pair.Key, wire.PushBack) {
			behind = append(behind, pair)
		} else {
			front = append(front, pair)
		}
	}
	h.beginFields(s)
	begun := len(h.fields)
	if h.addPairs(front); len(h.fields) == begun {
		return behind
	}
	// What is too large would be too large behind as well, and the status is worth more.
	s.answered = h.http2.Headers(s.id, h.fields, false) == nil
	return behind
}

// dropDetails leaves the details of an error out. It returns the text with a word of that.
func (h *ReplyHead) dropDetails(message string) string {
	if len(h.Details) == 0 {
		return message
	}
	note := fmt.Sprintf(" (%d bytes of details left out)", len(h.Details))
	h.Details = nil
	return thriftwire.CutMessage(message, limits.ErrorMessageBytes-len(note)) + note
}

// addStatus adds what a status has besides its code and text.
func (h *http2Server) addStatus(head *ReplyHead) {
	if len(head.Details) > 0 {
		h.fields = append(h.fields, http2.Field{Name: "grpc-status-details-bin", Value: grpc.EncodeBinary(head.Details)})
	}
	business := head.Business
	if business == nil {
		return
	}
	h.fields = append(h.fields, http2.Field{Name: wire.BusinessStatus, Value: strconv.FormatInt(int64(business.Status), 10)})
	if len(business.Extra) > 0 {
		extra, err := json.Marshal(business.Extra)
		if err == nil {
			h.fields = append(h.fields, http2.Field{Name: wire.BusinessExtra, Value: string(extra)})
		}
	}
}

// addPairs adds pairs that the handler has set, but those that no header can have: of what the
// handler sets itself it has been told, and what it passes on may come from where others can be.
func (h *http2Server) addPairs(pairs []Pair) {
	for i := range pairs {
		field, problem := replyField(&pairs[i])
		if problem != "" {
			h.conn.server.log.Warn("reply metadata left out", "peer", h.conn.Peer, "key", fmt.Sprintf("%.100q", field.Name), "reason", problem)
			continue
		}
		h.fields = append(h.fields, field)
	}
}

// replyField returns the header that a pair of a reply is, and why it cannot be sent, "" if it
// can.
func replyField(pair *Pair) (field http2.Field, problem string) {
	field = http2.Field{Name: strings.ToLower(pair.Prefix + pair.Key), Value: pair.Value}
	if grpc.IsBinary(field.Name) {
		field.Value = grpc.EncodeBinary([]byte(pair.Value))
	}
	return field, headerProblem(field.Name, field.Value)
}

// CheckReplyPair returns why a pair cannot be sent with a reply in gRPC, nil if it can.
func CheckReplyPair(pair Pair) error {
	if _, problem := replyField(&pair); problem != "" {
		return errors.New(problem)
	}
	return nil
}

// headerProblem returns why a pair cannot be sent as a header that means nothing to HTTP/2
// or gRPC, or is what a handler may say with one: when to try again. It returns "" if it can.
func headerProblem(name, value string) string {
	const reserved = "the header has a meaning in gRPC of its own"
	switch name {
	case "content-type", "content-length", "te", "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade":
		return reserved
	}
	if strings.HasPrefix(name, "grpc-") && name != wire.PushBack {
		return reserved
	}
	if name == "" || strings.ContainsFunc(name, notInName) {
		return "the key cannot be sent in gRPC: headers have letters, digits, '-', '_' and '.'"
	}
	if strings.ContainsFunc(value, notInValue) || strings.TrimSpace(value) != value {
		return "the value cannot be sent in gRPC: headers have printable ASCII without space around it, and keys that end in -bin have any bytes"
	}
	return ""
}
