package http2

import (
	"errors"
	"fmt"
)

// What may keep a message from being sent. Errors of Conn wrap these.
var (
	// ErrStreamEnded: the stream is closed, or our side of it.
	ErrStreamEnded = errors.New("http2: stream has ended")
	// ErrStreams: the peer allows no more streams for now. EventSettings, and the end of
	// any stream, may change that.
	ErrStreams = errors.New("http2: no room for another stream")
	// ErrGoingAway: this connection takes no new streams any more.
	ErrGoingAway = errors.New("http2: connection is going away")
	// ErrHeadersTooLarge: the peer would not take so many headers.
	ErrHeadersTooLarge = errors.New("http2: headers are too large")
)

// idMax is the last id that a client's stream can have (RFC 9113, 5.1.1).
const idMax = windowMax

// CanOpen reports whether Open has room for another stream.
func (c *Conn) CanOpen() bool { return c.mayOpen() == nil }

// Room returns how many streams Open has room for now.
func (c *Conn) Room() int {
	if c.mayOpen() != nil {
		return 0
	}
	return int(min(c.peer.streams-uint32(c.open), windowMax))
}

// PeerStreams returns how many streams the server takes at a time.
func (c *Conn) PeerStreams() uint32 { return c.peer.streams }

// Spent reports whether a client has begun all streams that a connection can have.
func (c *Conn) Spent() bool { return c.nextID > idMax }

func (c *Conn) mayOpen() error {
	switch {
	case c.err != nil:
		return c.err
	case !c.config.client || c.stopping || c.peerGone || c.Spent():
		return ErrGoingAway
	case uint32(c.open) >= c.peer.streams:
		return fmt.Errorf("%w (limit %d)", ErrStreams, c.peer.streams)
	case c.out.Len()/2 >= c.config.unsentBytes:
		// Data stops at the half of that, so that it keeps no headers from being sent.
		return fmt.Errorf("%w: %d bytes wait to be sent (limit twice %d)", ErrStreams, c.out.Len(), c.config.unsentBytes)
	}
	return nil
}

// Open begins a stream with the headers of a request, at a client. With end there is no
// body. Its id is higher than that of all before. The caller releases it.
func (c *Conn) Open(fields []Field, end bool, now Nanoseconds) (id uint32, err error) {
	if err := c.mayOpen(); err != nil {
		return 0, err
	}
	if err := c.headersFit(fields); err != nil {
		return 0, err
	}
	id = c.nextID
	c.nextID += 2
	s := c.add(id, now)
	c.sendHeaders(s, fields, end)
	return id, nil
}

// Headers sends the headers of a response, or the trailers with which our side ends: behind
// all data, or in place of data for which there was no room.
func (c *Conn) Headers(id uint32, fields []Field, end bool) error {
	s, err := c.sending(id)
	if err != nil {
		return err
	}
	if s.waits && !end {
		return fmt.Errorf("http2: headers of stream %d before its data", id)
	}
	if err := c.headersFit(fields); err != nil {
		return err
	}
	c.sendHeaders(s, fields, end)
	return nil
}

// headersFit compares with what the peer announced. The table would not forget what it
// was told for nothing, so this comes first.
func (c *Conn) headersFit(fields []Field) error {
	if size := fieldsBytes(fields); int64(size) > int64(c.peer.listBytes) {
		return fmt.Errorf("%w (limit %d, got %d)", ErrHeadersTooLarge, c.peer.listBytes, size)
	}
	return nil
}

func (c *Conn) sendHeaders(s *stream, fields []Field, end bool) {
	c.excuseSent()
	appendHeaders(c.out, s.id, c.writer.Write(fields), end, c.peer.frameBytes)
	if !c.config.client {
		s.answered = true
	}
	if end {
		c.finish(s)
	}
}

// finish records that our side of a stream ended.
func (c *Conn) finish(s *stream) {
	s.localDone = true
	s.waits = false
	c.queue.remove(s)
	c.step(s, s.state.localEnded())
}

func (c *Conn) sending(id uint32) (*stream, error) {
	if c.err != nil {
		return nil, c.err
	}
	s := c.streams[id]
	if s == nil || !s.state.sends() {
		return nil, fmt.Errorf("%w: stream %d", ErrStreamEnded, id)
	}
	return s, nil
}

// Data sends as much of p as there is room for: in the windows of the stream and the
// connection, and among what waits to be sent. It returns how much that was. If it was
// not all, Writable returns the stream when the rest, or some of it, can be sent. With
// end our side ends behind the last byte of p. The bytes are copied.
func (c *Conn) Data(id uint32, p []byte, end bool) (sent int, err error) {
	rest, err := c.DataPieces(id, [][]byte{p}, end)
	if len(rest) > 0 {
		return len(p) - len(rest[0]), err
	}
	return len(p), err
}

// DataPieces is Data for bytes in pieces. It returns those that are left, in the memory of
// pieces. Frames are as long as they may be, whatever the pieces: the last one of a message
// in Thrift with a long string is a byte, and a peer that counts tiny frames (HTTP2TinyData)
// would take thousands of such messages for an attack.
func (c *Conn) DataPieces(id uint32, pieces [][]byte, end bool) (rest [][]byte, err error) {
	s, err := c.sending(id)
	if err != nil {
		return pieces, err
	}
	left := 0
	for _, piece := range pieces {
		left += len(piece)
	}
	if left == 0 {
		if s.waits {
			return pieces, fmt.Errorf("http2: end of stream %d before its data", id)
		}
		if end {
			reserveFrame(c.out, 0, FrameData, FlagEndStream, id)
			c.finish(s)
		}
		return nil, nil
	}
	for left > 0 {
		n := c.room(s, left)
		if n <= 0 {
			s.waits = true
			c.wake(s)
			return pieces, nil
		}
		last := n == left
		flags := Flags(0)
		if end && last {
			flags = FlagEndStream
		}
		PutFrameHeader(c.out.Reserve(FrameHeaderSize), n, FrameData, flags, id)
		pieces = c.appendPieces(pieces, n)
		left -= n
		s.sendWindow -= int64(n)
		c.sendWindow -= int64(n)
		c.counts.sentBytes += int64(n)
		if last || n == c.peer.frameBytes {
			c.counts.whole++
		}
		c.excuseSent()
	}
	s.waits = false
	c.queue.remove(s)
	if end {
		c.finish(s)
	}
	return nil, nil
}

// appendPieces puts the first n bytes behind what is to be sent, and returns the others.
func (c *Conn) appendPieces(pieces [][]byte, n int) [][]byte {
	for n >= len(pieces[0]) {
		c.out.Append(pieces[0])
		if n -= len(pieces[0]); n == 0 {
			return pieces[1:]
		}
		pieces = pieces[1:]
	}
	c.out.Append(pieces[0][:n])
	pieces[0] = pieces[0][n:]
	return pieces
}

// room returns how long the next DATA frame may be.
func (c *Conn) room(s *stream, n int) int {
	n = min(n, c.peer.frameBytes)
	if unsent := c.out.Len(); unsent >= c.config.unsentBytes {
		return 0
	}
	return int(min(int64(n), s.sendWindow, c.sendWindow))
}

// Writable returns a stream that Data had left something of and that has room for
// more now, false if there is none. The caller calls Data for it, and then Writable
// again: streams take turns. It is to be asked after Next and after Swap.
func (c *Conn) Writable() (id uint32, value any, ok bool) {
	s := c.queue.first
	for ; s != nil && s.sendWindow <= 0; s = c.queue.first {
		// The peer has made its windows smaller. A WINDOW_UPDATE queues it again.
		c.queue.remove(s)
	}
	if s == nil || c.err != nil || c.sendWindow <= 0 || c.out.Len() >= c.config.unsentBytes {
		return 0, nil, false
	}
	c.queue.remove(s)
	return s.id, s.value, true
}

// Reset ends a stream with a code. It is still to be released.
func (c *Conn) Reset(id uint32, code ErrorCode) {
	if s := c.streams[id]; s != nil && s.state != stateClosed && c.err == nil {
		c.resetStream(s, code)
	}
}
