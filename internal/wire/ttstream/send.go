package ttstream

import (
	"fmt"
	"strconv"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
)

// Request is what a stream begins with.
type Request struct {
	Method string
	// Pairs are the service (wire.IDLServiceName), metadata, and keys of the user.
	Pairs []ttheader.Pair
	// Timeout is how long the whole stream may take, 0 for as long as it likes. Kitex
	// does not look at it.
	Timeout Nanoseconds
	// FromService and FromMethod say who calls, if they are not empty.
	FromService, FromMethod string
}

// CanOpen reports whether Open has room for another stream.
func (c *Conn) CanOpen() bool { return c.mayOpen() == nil }

func (c *Conn) mayOpen() error {
	switch {
	case c.err != nil:
		return c.err
	case !c.config.client || c.stopping || c.peer.gone:
		return ErrGoingAway
	case c.Room() == 0:
		return fmt.Errorf("%w (limit %d)", ErrStreams, min(c.config.streams, c.peer.streams))
	}
	return nil
}

// PeerStreams returns how many streams the server takes, as far as anybody knows.
func (c *Conn) PeerStreams() int { return c.peer.streams }

// Room returns how many more streams there may be, of those that a client begins.
func (c *Conn) Room() int {
	return max(min(c.config.streams, c.peer.streams)-len(c.streams), 0)
}

// Open begins a stream, at a client. The caller releases it.
func (c *Conn) Open(request Request) (id int32, err error) {
	if err := c.mayOpen(); err != nil {
		return 0, err
	}
	if err := thriftwire.CheckName([]byte(request.Method)); err != nil {
		return 0, err
	}
	id = c.freeID()
	s := &stream{id: id, method: request.Method, agreed: true, limited: c.peer.known, credit: c.peer.window, message: c.peer.message}
	c.pairs = append(append(c.pairs[:0], request.Pairs...),
		ttheader.Pair{Key: wire.StreamWindow, Value: c.config.windowText},
		ttheader.Pair{Key: wire.StreamMessage, Value: c.config.messageSizeText})
	frame := outgoing{kind: FrameHeader, stream: id, method: s.method, pairs: c.pairs, fromService: request.FromService, fromMethod: request.FromMethod}
	if request.Timeout > 0 {
		frame.timeout = strconv.FormatInt(int64((request.Timeout+1e6-1)/1e6), 10)
	}
	if err := c.writer.write(c.out, &frame); err != nil {
		return 0, err
	}
	clear(c.pairs)
	c.streams[id] = s
	c.counts.streams++
	return id, nil
}

// freeID returns the next id that is not in use: all but 0, in turn.
func (c *Conn) freeID() int32 {
	for range len(c.streams) + 2 {
		c.nextID++
		if c.nextID != 0 && c.streams[c.nextID] == nil {
			break
		}
	}
	return c.nextID
}

func (c *Conn) sending(id int32) (*stream, error) {
	if c.err != nil {
		return nil, c.err
	}
	s := c.streams[id]
	if s == nil || !s.state.sends() {
		return nil, fmt.Errorf("%w: stream %d", ErrStreamEnded, id)
	}
	return s, nil
}

// Header sends the header of the answer, at a server, once and before all else. Whoever
// does not call it sends one without pairs.
func (c *Conn) Header(id int32, pairs []ttheader.Pair) error {
	s, err := c.sending(id)
	if err != nil {
		return err
	}
	if c.config.client || s.headed {
		return fmt.Errorf("ttstream: stream %d has a header", id)
	}
	if err := c.writer.write(c.out, &outgoing{kind: FrameHeader, stream: id, method: s.method, pairs: pairs}); err != nil {
		return err
	}
	s.headed = true
	return nil
}

// Send sends a message, whole or not at all, as its copy. It may be in pieces. If there was
// no room for it, in the window of the stream or among what waits to be sent, Writable
// returns the stream when there is.
func (c *Conn) Send(id int32, message ...[]byte) (sent bool, err error) {
	length := 0
	for _, piece := range message {
		length += len(piece)
	}
	s, err := c.sending(id)
	switch {
	case err != nil:
		return false, err
	case int64(length) > s.message:
		return false, fmt.Errorf("%w (limit %d, got %d)", ErrTooLarge, s.message, length)
	case length == 0:
		return false, fmt.Errorf("ttstream: message of 0 bytes on stream %d", id)
	}
	if s.limited && s.credit <= 0 || c.out.Len() >= c.config.unsentBytes {
		s.waits = true
		c.wake(s)
		return false, nil
	}
	if !c.config.client && !s.headed {
		if err := c.Header(id, nil); err != nil {
			return false, err
		}
	}
	if err := c.writer.write(c.out, &outgoing{kind: FrameData, stream: id, method: s.method, length: length}, message...); err != nil {
		return false, err
	}
	c.unqueue(s)
	s.credit = max(s.credit-cost(length), -windowMax)
	c.counts.sent++
	return true, nil
}

// End sends the last frame of our side: a client's half-close, or the end of a server's
// stream with what the handler says: failure is nil if it did not fail, a business
// status stands in pairs.
func (c *Conn) End(id int32, pairs []ttheader.Pair, failure *Failure) error {
	s, err := c.sending(id)
	if err != nil {
		return err
	}
	if s.waits && failure == nil {
		return fmt.Errorf("ttstream: end of stream %d before its messages", id)
	}
	frame := outgoing{kind: FrameTrailer, stream: id, method: s.method, pairs: pairs, failure: failure}
	if !c.config.client && !s.headed {
		if err := c.Header(id, nil); err != nil {
			return err
		}
	}
	if err := c.writer.write(c.out, &frame); err != nil {
		return err
	}
	if c.config.client {
		s.state = stateHalfLocal
	} else {
		c.closeStream(s)
	}
	return nil
}

// Reset gives a stream up, in both directions. path, which AppendPath makes, says
// through which services that came. The stream is still to be released.
func (c *Conn) Reset(id int32, failure Failure, path string) {
	if s := c.streams[id]; s != nil && s.state != stateClosed && c.err == nil {
		c.sendReset(id, s.method, failure, path, false)
		c.closeStream(s)
	}
}

// sendReset sends RST, with notExecuted for a stream of which nothing was done.
func (c *Conn) sendReset(id int32, method string, failure Failure, path string, notExecuted bool) {
	frame := outgoing{kind: FrameReset, stream: id, method: method, failure: &failure}
	c.pairs = c.pairs[:0]
	if path != "" {
		c.pairs = append(c.pairs, ttheader.Pair{Key: wire.StreamCancelPath, Value: path[:min(len(path), limits.StreamPathBytes)]})
	}
	if notExecuted {
		c.pairs = append(c.pairs, ttheader.Pair{Key: wire.Executed, Value: executedNo})
	}
	frame.pairs = c.pairs
	c.send(&frame)
}

// send writes a frame whose texts have limits, so that it always fits.
func (c *Conn) send(frame *outgoing) {
	if err := c.writer.write(c.out, frame); err != nil && c.err == nil {
		c.err = connectionError(CodeInternal, "%v", err)
	}
}
