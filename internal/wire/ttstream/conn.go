package ttstream

import (
	"math"
	"strconv"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
)

// Nanoseconds is a time, since any moment that does not change, or how long something
// takes.
type Nanoseconds int64

// Config says how a Conn behaves. Of numbers 0 is the default and a negative value
// switches the limit off.
type Config struct {
	// Client is the side that begins streams.
	Client bool
	// Calls lets unary messages come between the frames of streams.
	Calls bool
	// MessageBytes is the longest message of a stream, 16 MiB (MessageBytes).
	MessageBytes int
	// Streams bounds streams until they are released, 250 (StreamsPerConnection).
	Streams int
	// PeerStreams is how many a client begins before the server has said how many it takes,
	// Streams.
	PeerStreams int
	// Window is what a stream of our own peers may receive that was not consumed,
	// 256 KiB (StreamWindowBytes). Off is the largest that there is.
	Window int
	// BufferBytes is what a stream of another peer may hold so that was not consumed,
	// before nothing is read from its connection, 1 MiB (StreamBufferBytes), and
	// ConnectionBytes the same for all streams together, without what the windows of our own
	// peers allow, 16 MiB (StreamConnectionBytes).
	BufferBytes, ConnectionBytes int
	// UnsentBytes is how much may wait to be sent before messages are not taken, and a
	// server reads nothing any more, 1 MiB (UnsentBytes).
	UnsentBytes int
}

// config is a Config with its defaults.
type config struct {
	client, calls               bool
	messageBytes, streams       int
	window, buffer, connection  int64
	unsentBytes                 int
	windowText, messageSizeText string
	streamsText                 string
}

func (c Config) resolve() config {
	r := config{
		client: c.Client, calls: c.Calls,
		messageBytes: min(limits.Or(c.MessageBytes, limits.MessageBytes, limits.FrameLengthMax), limits.FrameLengthMax),
		streams:      limits.Or(c.Streams, limits.StreamsPerConnection, math.MaxInt32),
		window:       int64(min(limits.Or(c.Window, limits.StreamWindowBytes, windowMax), windowMax)),
		buffer:       int64(limits.Or(c.BufferBytes, limits.StreamBufferBytes, math.MaxInt32)),
		connection:   int64(limits.Or(c.ConnectionBytes, limits.StreamConnectionBytes, math.MaxInt32)),
		unsentBytes:  limits.Or(c.UnsentBytes, limits.UnsentBytes, math.MaxInt32),
	}
	r.windowText = strconv.FormatInt(r.window, 10)
	r.messageSizeText = strconv.Itoa(r.messageBytes)
	r.streamsText = strconv.Itoa(r.streams)
	return r
}

// EventKind says what an Event is.
type EventKind uint8

// The events.
const (
	// EventNone: the bytes that were used concern the connection only, or more are needed.
	EventNone EventKind = iota
	// EventOpen is a new stream, at a server. It is the caller's until he releases it.
	EventOpen
	// EventHeader is the header of the answer, at a client.
	EventHeader
	// EventData is a message.
	EventData
	// EventEnd says that the peer sends nothing more: a client's half-close, or the end
	// of the stream with what the server has to say of it. Problem says that this could
	// not be read.
	EventEnd
	// EventReset is the end of a stream that did not end as it should: the peer gave it
	// up, did nothing for it (NotExecuted), or broke a rule (Problem).
	EventReset
	// EventGoAway: the peer takes no more streams.
	EventGoAway
	// EventCall: what comes next is a unary message, for which no bytes were used. Who has
	// the connection reads it with package ttheader, and goes on behind it.
	EventCall
	// EventCongested: nothing is read until what waits to be sent was taken away (Swap),
	// or what arrived was used (Consume).
	EventCongested
)

// Event is what bytes of a peer mean to the caller. Method, Info and Data alias the
// bytes that were given to Next.
type Event struct {
	Kind   EventKind
	Stream int32
	// Value is what Attach put there.
	Value  any
	Method []byte
	// Info has the metadata of a HEADER, TRAILER or RST, keys of the connection's among
	// them.
	Info wire.Info
	// Data is one message; Consume gives it back when it was used.
	Data []byte
	// Timeout is how long the caller waits for the whole stream, 0 if he does not say.
	Timeout Nanoseconds
	// Failed says that there is a Failure, HasBusiness that there is a Business.
	Failed, HasBusiness bool
	Failure             Failure
	Business            Business
	// Path is through which services a cancellation came, commas between them.
	Path string
	// NotExecuted says that the peer has certainly done nothing for the stream, Full that
	// this is because it has as many as it takes.
	NotExecuted, Full bool
	Problem           *Error
}

// Conn is one side of a connection. Methods must be called by one goroutine at a time.
// It must be closed.
type Conn struct {
	config config
	out    *linkbuf.Buffer
	writer frameWriter
	pairs  []ttheader.Pair
	// control counts frames in out that answer the peer's.
	control int
	err     *Error

	streams map[int32]*stream
	nextID  int32
	// waiting are streams with a message that was not taken, in turn.
	waiting []*stream
	// lost are streams that Tick ended, still to be told.
	lost []Event

	// excess is what all streams received that was not consumed, but what windows allow.
	excess int64
	// paused says that this keeps the connection from being read, pausedAt since when.
	// crowdedAt is since when others wait for it, unread that such are among what is not read.
	paused, unread      bool
	pausedAt, crowdedAt Nanoseconds

	peer               peer
	stopping, refusing bool
	counts             counts
}

// peer is what the other side announced.
type peer struct {
	// known says that it is one of ours, told that it was told so.
	known, told bool
	// window is the first credit of a stream, message the longest message.
	window, message int64
	// streams is how many it takes.
	streams int
	gone    bool
}

// NewConn returns one side of a connection. Memory comes from pool.
func NewConn(config Config, pool *linkbuf.Pool, now Nanoseconds) *Conn {
	c := &Conn{config: config.resolve(), out: linkbuf.New(pool), streams: map[int32]*stream{}}
	c.peer.message, c.peer.streams = limits.FrameLengthMax, limits.Or(config.PeerStreams, c.config.streams, math.MaxInt32)
	c.counts.began = now
	return c
}

// Unsent returns how many bytes wait to be sent.
func (c *Conn) Unsent() int { return c.out.Len() }

// Swap takes away what is to be sent, whole frames, and leaves an empty buffer of the
// same pool in its place. Whoever has it releases it when it is written.
func (c *Conn) Swap(empty *linkbuf.Buffer) *linkbuf.Buffer {
	full := c.out
	c.out = empty
	c.control = 0
	return full
}

// Streams returns how many streams there are that are not released.
func (c *Conn) Streams() int { return len(c.streams) }

// Ours reports whether the peer has shown that it is one of ours, to which unary calls
// may go on this connection.
func (c *Conn) Ours() bool { return c.peer.known }

// Attach keeps a value with a stream, for its events.
func (c *Conn) Attach(id int32, value any) {
	if s := c.streams[id]; s != nil {
		s.value = value
	}
}

// Shutdown begins the end: peers of ours are told that there will be no new streams.
// A server takes those that are on their way until it is called with refuse, and a
// client begins none.
func (c *Conn) Shutdown(refuse bool) {
	if c.err != nil {
		return
	}
	if !c.stopping && c.peer.known {
		c.sendGoAway()
	}
	c.stopping = true
	c.refusing = c.refusing || refuse
}

func (c *Conn) sendGoAway() {
	c.send(&outgoing{kind: FrameMeta, pairs: []ttheader.Pair{{Key: wire.CloseConnection, Value: wire.CloseConnectionValue}}})
}

// Done reports whether all is over after Shutdown, and the connection can be closed.
func (c *Conn) Done() bool { return c.stopping && len(c.streams) == 0 && c.out.Len() == 0 }

// Close gives all memory back. The Conn is over.
func (c *Conn) Close() {
	c.out.Release()
	clear(c.streams)
	c.waiting, c.lost = nil, nil
	if c.err == nil {
		c.err = connectionError(CodeConnectionClosed, "closed")
	}
}
