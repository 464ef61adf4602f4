package transport

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/detect"
)

// serverConn is the state of one connection:
//
//	waiting -- message complete ----> calling -- answered --> waiting
//	calling -- answered, was last --> closed
//	waiting -- no known protocol ---> closed
//
// Bare and framed Thrift have no way to tell which reply is whose but their
// order, so one call runs at a time; what arrives meanwhile is kept, up to
// ReadAheadBytes.
type serverConn struct {
	server *Server
	conn   *eventloop.Conn
	peer   string
	local  string

	// Only the goroutine that runs data uses these.
	decoder detect.Decoder
	// discard is how many bytes of a refused message are still to come.
	discard int
	// started is when the first byte of the message in progress arrived.
	started time.Time
	// charged is how many of the bytes in the reader the budget counts.
	charged int

	mu sync.Mutex
	// calling is set while a call runs, paused while reading is stopped for it.
	calling bool
	paused  bool
	// last is set once nothing that arrives can be understood any more.
	last bool
	// deadline is when the peer will have taken too long for awaited; zero for
	// never.
	deadline time.Time
	awaited  string
	ctx      context.Context
	cancel   context.CancelFunc
}

// What a connection waits for, where the code asks.
const (
	awaitFirst   = "the first byte"
	awaitMessage = "a message"
)

func newServerConn(s *Server, conn *eventloop.Conn) *serverConn {
	c := &serverConn{
		server:  s,
		conn:    conn,
		peer:    conn.RemoteAddr().String(),
		local:   conn.LocalAddr().String(),
		decoder: detect.NewDecoder(s.config.Allowed, s.config.Limits),
	}
	c.await(awaitFirst, time.Now(), s.config.FirstByteTimeout)
	return c
}

func connOf(conn *eventloop.Conn) *serverConn {
	c, _ := conn.Context().(*serverConn)
	return c
}

// errLast closes a connection after an answer behind which nothing can be
// understood.
var errLast = errors.New("the previous message had no known end")

// errStopped closes a connection of a stopping server whose peer goes on
// sending.
var errStopped = errors.New("server is stopping")

// data looks at what has arrived. The event loop calls it, once at a time.
func (c *serverConn) data() error {
	for {
		reader := c.conn.Reader()
		if c.discard > 0 {
			n := min(c.discard, reader.Len())
			if err := reader.Skip(n); err != nil {
				return err
			}
			if c.discard -= n; c.discard > 0 {
				c.awaitDiscarded()
				return nil
			}
			c.started = time.Time{}
		}
		if wait, err := c.mustWait(reader); wait || err != nil {
			return err
		}
		arrived := reader.Buffered()
		if len(arrived) == 0 {
			c.idle()
			return nil
		}
		message, used, need, err := c.decoder.Next(arrived)
		switch {
		case err != nil:
			return c.refuse(err)
		case used == 0:
			if err := c.charge(len(arrived)); err != nil {
				c.overloaded(arrived, err)
				continue
			}
			c.awaitRest(need)
			return nil
		}
		c.started = time.Time{}
		c.uncharge()
		c.dispatch(message, used-len(arrived))
		if err := reader.Skip(min(used, len(arrived))); err != nil {
			return err
		}
		reader.Commit()
	}
}

// mustWait reports whether the bytes in reader have to wait for the end of a
// call.
func (c *serverConn) mustWait(reader *eventloop.Reader) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calling && !c.paused && (reader.Len() >= limits.ReadAheadBytes || c.charge(reader.Len()) != nil) {
		c.paused = true
		c.conn.PauseReading()
	}
	if c.last && !c.calling {
		return true, errLast
	}
	if !c.calling && c.server.stopped() {
		return true, errStopped
	}
	return c.calling, nil
}

// idle is the state between messages.
func (c *serverConn) idle() {
	c.mu.Lock()
	first := c.awaited == awaitFirst
	c.mu.Unlock()
	if !first {
		c.await(awaitMessage, time.Now(), c.server.config.IdleTimeout)
	}
}

// awaitRest sets the time that a message in progress may take.
func (c *serverConn) awaitRest(need int) {
	if c.started.IsZero() {
		c.started = time.Now()
	}
	if !c.decoder.Detected() {
		c.await("enough bytes to tell the protocol", c.started, limits.DetectTimeout)
		return
	}
	c.await("the rest of a message", c.started, c.frameTimeout(need))
}

// awaitDiscarded sets the time that the rest of a refused message may take.
func (c *serverConn) awaitDiscarded() {
	if c.started.IsZero() {
		c.started = time.Now()
		c.await("the rest of a refused message", c.started, c.frameTimeout(c.discard))
	}
}

func (c *serverConn) frameTimeout(size int) time.Duration {
	if c.server.config.FrameTimeout <= 0 {
		return 0
	}
	return c.server.config.FrameTimeout + time.Duration(size)*time.Second/limits.FrameBytesPerSecond
}

// await starts the clock for what the peer has to do next. A timeout of 0 is
// off.
func (c *serverConn) await(what string, from time.Time, timeout time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.awaited = what
	c.deadline = time.Time{}
	if timeout > 0 {
		c.deadline = from.Add(timeout)
	}
}

// expire closes the connection if its peer has taken too long.
func (c *serverConn) expire(now time.Time) {
	c.mu.Lock()
	late := !c.deadline.IsZero() && now.After(c.deadline) && !c.calling
	quiet := c.awaited == awaitMessage
	awaited := c.awaited
	c.mu.Unlock()
	if !late {
		return
	}
	err := fmt.Errorf("closed after waiting too long for %s", awaited)
	if !quiet {
		c.server.log.Warn("connection closed: peer too slow", "peer", c.peer, "waited_for", awaited)
	}
	_ = c.conn.CloseWithError(err)
}

// refuse ends a connection that speaks nothing we know. The event loop gives
// the peer a moment to read the answer.
func (c *serverConn) refuse(err error) error {
	c.server.log.Warn("connection refused: wrong bytes", "peer", c.peer, "reason", err.Error())
	var foreign *wire.Error
	if errors.As(err, &foreign) {
		c.conn.Writer().AppendString(foreign.Answer)
	}
	return err
}

// dispatch starts a call, or answers a message that is none. Everything that
// outlives this call of data is copied: the bytes belong to the event loop.
func (c *serverConn) dispatch(message wire.Message, beyond int) {
	call := &Inbound{
		Protocol: message.Protocol,
		Type:     message.Type,
		Name:     string(message.Name),
		Sequence: message.Sequence,
		Peer:     c.peer,
		Local:    c.local,
		conn:     c,
		invalid:  message.Invalid,
	}
	if !message.Last {
		c.discard = max(beyond, 0)
	}
	if call.invalid == nil {
		call.invalid = thriftwire.CheckName(message.Name)
	}
	if call.invalid == nil {
		call.invalid = c.server.budget.take(len(message.Body))
	}
	if call.invalid == nil {
		call.Body = append(make([]byte, 0, len(message.Body)), message.Body...)
	}
	c.mu.Lock()
	c.calling, c.last = true, message.Last
	c.awaited, c.deadline = awaitMessage, time.Time{}
	c.mu.Unlock()
	c.server.start(call)
}

// charge makes the budget count what has arrived of messages that are not
// complete, or wait for their turn.
func (c *serverConn) charge(arrived int) error {
	if arrived < budgetBytesMin || arrived <= c.charged {
		return nil
	}
	if err := c.server.budget.takePart(arrived - c.charged); err != nil {
		return err
	}
	c.charged = arrived
	return nil
}

func (c *serverConn) uncharge() {
	if c.charged == 0 {
		return
	}
	c.server.budget.give(c.charged)
	c.charged = 0
}

// overloaded refuses the message in progress, and gives up the connection: what
// is still to come of it would have to be read.
func (c *serverConn) overloaded(arrived []byte, err error) {
	message := c.decoder.Refuse(arrived, err)
	c.uncharge()
	c.started = time.Time{}
	c.dispatch(message, 0)
	c.server.log.Warn("message refused", "peer", c.peer, "reason", err.Error())
	_ = c.conn.Reader().Skip(len(arrived))
	c.conn.Reader().Commit()
}

// done ends a call: the next one may start.
func (c *serverConn) done() {
	c.mu.Lock()
	c.calling = false
	resume := c.paused
	c.paused = false
	if resume {
		c.conn.ResumeReading()
	}
	c.mu.Unlock()
	c.conn.Wake()
	c.conn.Release()
}

// context returns the context of the connection's calls.
func (c *serverConn) context() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx == nil {
		c.ctx, c.cancel = context.WithCancel(c.server.ctx)
	}
	return c.ctx
}

// closed is the end: running calls learn of it through their context.
func (c *serverConn) closed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx == nil {
		// Whoever asks later gets a context that has ended.
		c.ctx, c.cancel = context.WithCancel(c.server.ctx)
	}
	c.cancel()
	c.uncharge()
}

// Inbound is one message from a client. Its fields are its own; it may be used
// as long as anybody likes, but answered only until Handle returns.
type Inbound struct {
	Protocol wire.Protocol
	Type     thriftwire.MessageType
	Name     string
	Sequence int32
	Body     []byte
	Peer     string
	Local    string
	conn     *serverConn
	invalid  error
}

// DropBody lets go of Body, once it has been decoded or will not be.
func (in *Inbound) DropBody() {
	in.conn.server.budget.give(len(in.Body))
	in.Body = nil
}

// Invalid returns why the message cannot be served, nil if it can. It must be
// answered by an exception.
func (in *Inbound) Invalid() error { return in.invalid }

// Reply is an answer that is being written. Release must follow in the end.
type Reply struct {
	outgoing
	conn   *eventloop.Conn
	budget *budget
}

// NewReply starts the answer for a method of that name, which is what Thrift
// peers compare with their call's.
func (in *Inbound) NewReply(name string) *Reply {
	r := &Reply{conn: in.conn.conn, budget: &in.conn.server.budget}
	r.begin(in.conn.server.buffers, in.Protocol, name, in.Sequence)
	return r
}

// Body is where the body goes.
func (r *Reply) Body() *linkbuf.Buffer { return &r.Buffer }

// Send writes the reply with its body to the connection.
func (r *Reply) Send() error {
	r.finish(thriftwire.Reply)
	return r.write()
}

// SendException writes an application exception instead, dropping the body.
func (r *Reply) SendException(exception thriftwire.ApplicationException) error {
	r.finishException(exception)
	return r.write()
}

func (r *Reply) write() error {
	r.budget.add(r.Len())
	defer r.budget.give(r.Len())
	var parts [8][]byte
	_, err := r.conn.WriteBuffers(r.Slices(parts[:0]))
	return err
}
