package http2

// streamState is a state of RFC 9113, 5.1. Reserved ones come with pushes only,
// which are not allowed here.
type streamState uint8

const (
	stateIdle streamState = iota
	stateOpen
	stateHalfClosedLocal
	stateHalfClosedRemote
	stateClosed
)

// verdict says what a frame is in a state.
type verdict uint8

const (
	accept verdict = iota
	// drop: it crossed a frame of ours, or says nothing.
	drop
	// endStream with STREAM_CLOSED.
	endStream
	// endClosed ends the connection with STREAM_CLOSED, endProtocol with
	// PROTOCOL_ERROR.
	endClosed
	endProtocol
)

// judge says what a frame that arrives in a state is: the table of RFC 9113, 5.1.
// ours is whether the stream ended with a RST_STREAM that we sent, which the peer
// may not have seen yet.
//
//	                idle         open, half-closed(local)  half-closed(remote)  closed   reset by us
//	HEADERS, DATA   endProtocol  accept                    endStream            endClosed  drop
//	RST_STREAM      endProtocol  accept                    accept               drop       drop
//	WINDOW_UPDATE   endProtocol  accept                    accept               drop       drop
//	PRIORITY        drop         drop                      drop                 drop       drop
//
// HEADERS that open a stream are not asked about.
func judge(state streamState, ours bool, t FrameType) verdict {
	carries := t == FrameHeaders || t == FrameData
	switch {
	case t == FramePriority:
		return drop
	case state == stateIdle:
		return endProtocol
	case state == stateClosed && carries && !ours:
		return endClosed
	case state == stateClosed:
		return drop
	case state == stateHalfClosedRemote && carries:
		return endStream
	default:
		return accept
	}
}

// remoteEnded is the state after the peer's END_STREAM.
func (s streamState) remoteEnded() streamState {
	if s == stateOpen {
		return stateHalfClosedRemote
	}
	return stateClosed
}

// localEnded is the state after our END_STREAM.
func (s streamState) localEnded() streamState {
	if s == stateOpen {
		return stateHalfClosedLocal
	}
	return stateClosed
}

// sends reports whether we may send HEADERS and DATA.
func (s streamState) sends() bool { return s == stateOpen || s == stateHalfClosedRemote }

// receives reports whether the peer may.
func (s streamState) receives() bool { return s == stateOpen || s == stateHalfClosedLocal }

// stream is what a connection knows of a stream that is not closed, or that its
// caller has not released.
type stream struct {
	id    uint32
	state streamState
	began Nanoseconds
	// answered says that the header block came that is not interim, at a client, and
	// that ours went, at a server.
	answered bool
	// localDone says that our side ended as it should.
	localDone bool
	// length is what content-length promised and did not come yet, -1 without one.
	length int64
	// dataBefore is how much was in the last DATA frame that came.
	dataBefore int
	// sendWindow may be negative (RFC 9113, 6.9.2).
	sendWindow int64
	receive    window
	// waits says that data was left because there was no room for it. It is queued, then,
	// if the stream's own window has room.
	waits, queued  bool
	next, previous *stream
	value          any
}

// streamQueue is the streams with something left to send, in turn.
type streamQueue struct{ first, last *stream }

func (q *streamQueue) push(s *stream) {
	if s.queued {
		return
	}
	s.queued = true
	s.previous = q.last
	if q.last == nil {
		q.first = s
	} else {
		q.last.next = s
	}
	q.last = s
}

func (q *streamQueue) remove(s *stream) {
	if !s.queued {
		return
	}
	if s.previous == nil {
		q.first = s.next
	} else {
		s.previous.next = s.next
	}
	if s.next == nil {
		q.last = s.previous
	} else {
		s.next.previous = s.previous
	}
	s.next, s.previous, s.queued = nil, nil, false
}

// historyStreams is how many streams a connection remembers, those in use among them:
// 384 bytes. A frame for an older one is taken for one that crossed a reset.
const historyStreams = 1024

// history remembers of the newest streams whether they were used, whether we reset them, and
// whether that was before anybody looked at them. Ids are odd: there are no pushes.
type history struct {
	newest               uint32
	used, resets, passed [historyStreams / 64]uint64
}

// begin records that a stream is used now. Those between it and the newest before are
// closed without having been used (RFC 9113, 5.1.1).
func (h *history) begin(id uint32) {
	if gap := (id - h.newest) / 2; gap >= historyStreams {
		*h = history{}
	} else {
		for i := h.newest + 2; i <= id && h.newest != 0; i += 2 {
			word, bit := place(i)
			h.used[word] &^= bit
			h.resets[word] &^= bit
			h.passed[word] &^= bit
		}
	}
	h.newest = id
	word, bit := place(id)
	h.used[word] |= bit
}

func (h *history) reset(id uint32) {
	word, bit := place(id)
	h.resets[word] |= bit
}

// pass is reset for a stream that nobody looks at.
func (h *history) pass(id uint32) {
	h.reset(id)
	word, bit := place(id)
	h.passed[word] |= bit
}

// wasPassed reports whether it is known that nobody has looked at a stream up to the newest.
func (h *history) wasPassed(id uint32) bool {
	word, bit := place(id)
	return (h.newest-id)/2 < historyStreams && h.passed[word]&bit != 0
}

// of returns what is known of a stream up to the newest.
func (h *history) of(id uint32) (used, ours bool) {
	if (h.newest-id)/2 >= historyStreams {
		return true, true
	}
	word, bit := place(id)
	return h.used[word]&bit != 0, h.resets[word]&bit != 0
}

func place(id uint32) (word, bit uint64) {
	i := uint64(id/2) % historyStreams
	return i / 64, 1 << (i % 64)
}
