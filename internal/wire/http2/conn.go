package http2

import (
	"math"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
)

// Nanoseconds is a time, since any moment that does not change, or how long
// something takes.
type Nanoseconds int64

// Config says how a Conn behaves. Of numbers 0 is the default and a negative value
// switches the limit off.
type Config struct {
	// Client is the side that sends the preface and begins streams.
	Client bool
	// HeaderListBytes bounds the headers of a message, 16 KiB (HTTP2HeaderListBytes).
	HeaderListBytes int
	// Streams bounds streams of the peer's until they are released, 250 (HTTP2Streams).
	Streams int
	// StreamWindow is what a stream may receive that was not consumed, 64 KiB
	// (HTTP2StreamWindowBytes) at first, and it grows to StreamWindowMax, 4 MiB
	// (HTTP2StreamWindowBytesMax). ConnectionWindow is for all streams, 1 MiB
	// (HTTP2ConnectionWindowBytes), or as much as that of one stream. Off is the largest
	// that there is.
	StreamWindow, StreamWindowMax, ConnectionWindow int
	// UnsentBytes is how much may wait to be sent before data is not taken and nothing is
	// read any more, 1 MiB (UnsentBytes).
	UnsentBytes int
	// PingAfter is after how long without a byte from the peer it is asked for a sign of
	// life while there are streams. The default is never: servers of grpc-go and Kitex
	// close connections of clients that ask more often than every five minutes.
	PingAfter Nanoseconds
}

// config is a Config with its defaults.
type config struct {
	client           bool
	headerListBytes  int
	streams          int
	streamWindow     int64
	streamWindowMax  int64
	connectionWindow int64
	unsentBytes      int
	pingAfter        Nanoseconds
}

func (c Config) resolve() config {
	// Off is not more than the table's strings, or an int of 32 bits, can count.
	r := config{
		client:           c.Client,
		headerListBytes:  limits.Or(c.HeaderListBytes, limits.HTTP2HeaderListBytes, math.MaxInt32/2),
		streams:          limits.Or(c.Streams, limits.HTTP2Streams, math.MaxInt32),
		streamWindow:     int64(min(limits.Or(c.StreamWindow, limits.HTTP2StreamWindowBytes, windowMax), windowMax)),
		streamWindowMax:  int64(min(limits.Or(c.StreamWindowMax, limits.HTTP2StreamWindowBytesMax, windowMax), windowMax)),
		connectionWindow: int64(min(limits.Or(c.ConnectionWindow, limits.HTTP2ConnectionWindowBytes, windowMax), windowMax)),
		unsentBytes:      limits.Or(c.UnsentBytes, limits.UnsentBytes, math.MaxInt32),
		pingAfter:        limits.Or(c.PingAfter, 0, 0),
	}
	r.streamWindowMax = max(r.streamWindowMax, r.streamWindow)
	// There is no way to make this window smaller than it is at first.
	r.connectionWindow = max(r.connectionWindow, r.streamWindow, windowInitial)
	return r
}

// EventKind says what an Event is.
type EventKind uint8

// The events.
const (
	// EventNone: the bytes that were used concern the connection only, or more are needed.
	EventNone EventKind = iota
	// EventHeaders is a whole header block of a stream, which at a server may be new.
	EventHeaders
	// EventData is data of a stream, or its end without any.
	EventData
	// EventReset is the end of a stream that did not end as it should. It was reset by
	// the peer, was not begun by it (NotExecuted), or broke a rule (Problem). Behind an
	// Event with End it says that the rest of the request is not needed (RFC 9113, 8.1).
	EventReset
	// EventGoAway: the peer begins no more streams, and takes none.
	EventGoAway
	// EventSettings: the peer's limits are others now. A client may have room for more
	// streams.
	EventSettings
	// EventPong answers Ping or Probe.
	EventPong
	// EventCongested: nothing is read until what waits to be sent was taken away (Swap).
	EventCongested
)

// Event is what bytes of a peer mean to the caller.
type Event struct {
	Kind   EventKind
	Stream uint32
	// Value is what Attach put there.
	Value any
	// Fields are valid until the next call of Next, their texts for ever. Data aliases
	// the bytes that were given to Next; Consume gives it back to the peer's window.
	Fields []Field
	Data   []byte
	// End says that the peer sends nothing more on this stream.
	End bool
	// Trailers are fields behind the data. Interim is a response with a status of 1xx,
	// which another one follows.
	Trailers, Interim bool
	// TooLarge says that fields were left out, because they would not fit the limit.
	TooLarge bool
	// Code is the peer's, or of Problem.
	Code ErrorCode
	// NotExecuted says that the peer has certainly done nothing for the stream.
	NotExecuted bool
	Problem     *Error
	// Last is the last stream that a peer that goes away has seen.
	Last uint32
}

// peer is what the other side announced (RFC 9113, 6.5.2).
type peer struct {
	streams    uint32
	window     int64
	frameBytes int
	listBytes  uint32
	// settled says that its first settings came.
	settled bool
}

// firstStreams is how many streams a client begins before it has seen the server's
// settings, which RFC 9113, 6.5.2 asks to allow no less.
const firstStreams = 100

// Conn is one side of a connection. Methods must be called by one goroutine at a
// time. It must be closed.
type Conn struct {
	config config
	pool   *linkbuf.Pool
	out    *linkbuf.Buffer
	// control counts frames in out that answer the peer's.
	control int
	err     *Error

	streams map[uint32]*stream
	spare   []*stream
	queue   streamQueue
	// open counts streams that are not closed.
	open    int
	nextID  uint32
	history history

	peer       peer
	sendWindow int64
	receive    window
	// grown is by how much the windows of streams have grown, all together.
	grown  int64
	reader *HeaderReader
	writer *HeaderWriter
	block  block
	// lost are streams that the peer's GOAWAY ended, still to be told.
	lost []uint32

	prefaceDone bool
	timing
	goingAway
	counts counts
	// excuses are pings that the peer may send at any time, for what went to and fro.
	excuses    int
	pinged     bool
	lastPinged Nanoseconds
}

// NewConn returns one side of a connection, with its preface and settings ready to be
// sent. Memory comes from pool.
func NewConn(config Config, pool *linkbuf.Pool, now Nanoseconds) *Conn {
	c := &Conn{config: config.resolve(), pool: pool, out: linkbuf.New(pool), streams: map[uint32]*stream{}}
	c.peer = peer{streams: firstStreams, window: windowInitial, frameBytes: FrameBytesMin, listBytes: math.MaxUint32}
	c.sendWindow = windowInitial
	c.receive = window{open: windowInitial, target: c.config.connectionWindow, updated: now}
	c.reader, c.writer = NewHeaderReader(c.config.headerListBytes), NewHeaderWriter()
	c.counts.began = now
	c.lastArrival, c.settingsSent, c.settingsWait = now, now, true
	settings := []setting{
		{SettingInitialWindowSize, uint32(c.config.streamWindow)},
		{SettingMaxHeaderListSize, uint32(c.config.headerListBytes)},
	}
	if c.config.client {
		c.out.AppendString(Preface)
		c.nextID = 1
		settings = append(settings, setting{SettingEnablePush, 0})
	} else {
		settings = append(settings, setting{SettingMaxConcurrentStreams, uint32(c.config.streams)})
	}
	appendSettings(c.out, settings)
	if increment := c.receive.grow(); increment > 0 {
		appendWindowUpdate(c.out, 0, uint32(increment))
	}
	return c
}

// Unsent returns how many bytes wait to be sent.
func (c *Conn) Unsent() int { return c.out.Len() }

// Swap takes away what is to be sent and leaves an empty buffer of the same pool in
// its place. Whoever has it releases it when it is written.
func (c *Conn) Swap(empty *linkbuf.Buffer) *linkbuf.Buffer {
	full := c.out
	c.out = empty
	c.control = 0
	return full
}

// Streams returns how many streams there are that are not released.
func (c *Conn) Streams() int { return len(c.streams) }

// Unfinished reports whether the peer has to go on with what it began, as it has with a
// frame of which Next needs more: with its preface and settings, or with a header block.
func (c *Conn) Unfinished() bool { return !c.peer.settled || c.block.open }

// Failed reports whether an error has ended the connection, or Close.
func (c *Conn) Failed() bool { return c.err != nil }

// Attach keeps a value with a stream, for its events.
func (c *Conn) Attach(id uint32, value any) {
	if s := c.streams[id]; s != nil {
		s.value = value
	}
}

// Close gives all memory back. The Conn is over.
func (c *Conn) Close() {
	c.out.Release()
	c.block.release(c.pool)
	clear(c.streams)
	c.spare, c.queue, c.lost = nil, streamQueue{}, nil
	if c.err == nil {
		c.err = connectionError(NoError, "closed")
	}
}

// add makes a stream. Its receive window is what our settings say.
func (c *Conn) add(id uint32, now Nanoseconds) *stream {
	var s *stream
	if n := len(c.spare); n > 0 {
		s, c.spare = c.spare[n-1], c.spare[:n-1]
	} else {
		s = new(stream)
	}
	*s = stream{id: id, state: stateOpen, began: now, length: -1, sendWindow: c.peer.window}
	s.receive = window{open: c.config.streamWindow, target: c.config.streamWindow, updated: now}
	if c.settingsWait {
		// The peer may not know yet that the window is smaller (RFC 9113, 6.9.3).
		s.receive.open = max(c.config.streamWindow, windowInitial)
	}
	c.streams[id] = s
	c.open++
	c.counts.streams++
	c.history.begin(id)
	return s
}

// closeStream records that a stream is closed. It stays until it is released.
func (c *Conn) closeStream(s *stream) {
	if s.state == stateClosed {
		return
	}
	s.state = stateClosed
	s.waits = false
	c.queue.remove(s)
	c.open--
}

// step records the state after one side of a stream ended.
func (c *Conn) step(s *stream, state streamState) {
	if state == stateClosed {
		c.closeStream(s)
		return
	}
	s.state = state
}

// sparesKept bounds the streams that a connection keeps to use them again.
const sparesKept = 32

// Release ends the caller's interest in a stream: it must be called once for each that
// was opened or came out as an event. One that is not closed is reset.
func (c *Conn) Release(id uint32) {
	s := c.streams[id]
	if s == nil {
		return
	}
	if s.state != stateClosed && c.err == nil {
		code := Cancel
		if s.localDone && !c.config.client {
			// RFC 9113, 8.1: the answer is complete, the rest of the request is not needed.
			code = NoError
		}
		c.resetStream(s, code)
	}
	c.grown -= s.receive.target - c.config.streamWindow
	c.queue.remove(s)
	delete(c.streams, id)
	if len(c.spare) < sparesKept {
		*s = stream{}
		c.spare = append(c.spare, s)
	}
}

// resetStream sends RST_STREAM.
func (c *Conn) resetStream(s *stream, code ErrorCode) {
	appendRSTStream(c.out, s.id, code)
	c.counts.ourResets++
	c.history.reset(s.id)
	c.closeStream(s)
}
