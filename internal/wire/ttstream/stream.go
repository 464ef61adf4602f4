package ttstream

import "slices"

// streamState is what may still be sent on a stream, in either direction.
type streamState uint8

const (
	stateOpen streamState = iota
	// stateHalfLocal: our TRAILER went, at a client. stateHalfRemote: the client's came.
	stateHalfLocal
	stateHalfRemote
	stateClosed
)

// verdict says what a frame is in a state.
type verdict uint8

const (
	accept verdict = iota
	// drop: it crossed a frame of ours, or says nothing.
	drop
	// endHeader ends the stream with CodeUnexpectedHeader, endIllegal with
	// CodeIllegalOperation.
	endHeader
	endIllegal
)

// judge says what a frame that arrives for a stream is.
//
//	                 open      half-closed by us   by the client   closed
//	HEADER           accept at a client, once      endHeader       drop, endHeader at a server
//	DATA             accept    accept              endIllegal      drop
//	TRAILER          accept    accept              drop            drop
//	RST              accept    accept              accept          drop
//
// HEADER that begins a stream is not asked about. META concerns windows, whatever the
// state.
func judge(state streamState, client, headed bool, t FrameType) verdict {
	switch {
	case t == FrameMeta:
		return accept
	case t == FrameHeader && (!client || headed && state != stateClosed):
		return endHeader
	case state == stateClosed:
		return drop
	case state == stateHalfRemote && t == FrameData:
		return endIllegal
	case state == stateHalfRemote && t == FrameTrailer:
		return drop
	}
	return accept
}

func (s streamState) sends() bool { return s == stateOpen || s == stateHalfRemote }

// stream is what a connection knows of a stream that its caller has not released.
type stream struct {
	id     int32
	state  streamState
	began  Nanoseconds
	method string
	// headed says that the server's HEADER came, or went.
	headed bool
	// agreed says that the peer keeps to windows on this stream, if it is one of ours.
	agreed bool
	// limited says that we do, credit is how much may be sent then. It may be negative:
	// a message goes if there is any credit at all.
	limited bool
	credit  int64
	// message is the longest message that the peer takes.
	message int64
	// unused is what arrived and was not consumed, returned what was consumed and is
	// not told to the peer.
	unused, returned int64
	// waits says that a message was not taken, queued that the stream is in the queue.
	waits, queued bool
	value         any
}

// messageOverhead is what a message costs of a window besides its bytes: who keeps it
// has to keep where it is, too.
const messageOverhead = 64

func cost(message int) int64 { return int64(message) + messageOverhead }

// closeStream records that a stream is closed. It stays until it is released.
func (c *Conn) closeStream(s *stream) {
	s.state = stateClosed
	c.unqueue(s)
}

func (c *Conn) unqueue(s *stream) {
	s.waits = false
	if s.queued {
		s.queued = false
		c.waiting = slices.DeleteFunc(c.waiting, func(other *stream) bool { return other == s })
	}
}

// Release ends the caller's interest in a stream: it must be called once for each that
// was opened or came out as EventOpen. One that is not closed is reset.
func (c *Conn) Release(id int32) {
	s := c.streams[id]
	if s == nil {
		return
	}
	if s.state != stateClosed && c.err == nil {
		code, text := CodeCanceled, "canceled"
		if !c.config.client {
			code, text = CodeHandlerReturned, "handler has returned"
		}
		c.sendReset(s.id, s.method, Failure{Code: code, Message: text}, "", false)
	}
	c.unqueue(s)
	c.hold(s, -s.unused)
	delete(c.streams, id)
}
