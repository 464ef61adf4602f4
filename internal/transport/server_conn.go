package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/detect"
	"github.com/fulmar-rpc/fulmar/observe"
)

// serverConn is the state of one connection:
//
//	open -- message complete, out of order --> open, one call more runs
//	open -- message complete, in order ------> blocked, one call more runs
//	blocked -- that call is answered --------> open
//	open, blocked -- message was the last ---> ending -- all answered --> closed
//	open -- no known protocol ---------------> closed
//
// Bare and framed Thrift, and TTHeader without the flag for it, have no way to
// tell which reply is whose but their order, so one call runs at a time; what
// arrives meanwhile is kept, up to ReadAheadBytes. A connection is blocked also
// while ConnectionCalls run, while it rests, or while more than UnsentBytes wait for
// its peer.
type serverConn struct {
	server *Server
	conn   *eventloop.Conn
	// Ends is memory of its own: handlers may keep it.
	*Ends
	opened time.Time
	sender sender
	// http2 is what the connection is if its peer speaks that, from its first bytes on.
	http2 atomic.Pointer[http2Server]
	// streams is what serves the streams of a connection on which TTHeader has brought one.
	streams atomic.Pointer[ttstreamServer]

	// Only the goroutine that runs data uses these.
	decoder detect.Decoder
	names   callerNames
	// fulmar: the peer is one of ours.
	fulmar bool
	// spoke: a message of another protocol than HTTP/2 has come.
	spoke bool
	// discard is how many bytes of a refused message are still to come.
	discard int
	// late counts messages that came too late for a stopping server.
	late int
	// started is when the first byte of the message in progress arrived.
	started  time.Time
	arrivals arrivals
	// charged is how many of the bytes in the reader the budget counts.
	charged int

	mu sync.Mutex
	// running counts calls. ordered is set while one of them has to be answered
	// before the next may start.
	running int
	ordered bool
	// streaming is how many of those that run are streams over TTHeader: what arrives for
	// them arrives behind other messages, so they keep nothing from being read.
	streaming int
	// unsent counts bytes of answers that are not written yet; room is told when
	// it shrinks, and when the connection is gone.
	unsent int
	room   sync.Cond
	gone   bool
	// behind: data has something to do once the connection is not blocked.
	// paused: reading has stopped until then.
	behind bool
	paused bool
	// unread: bytes of the peer waited when data last found the connection blocked.
	unread bool
	// rests: Rest was called, and its time is not over.
	rests bool
	// last is set once nothing that arrives can be understood any more.
	last bool
	// multiplexed: the peer takes answers in any order. ours: it is a Fulmar.
	multiplexed bool
	ours        bool
	// deadline is when the peer will have taken too long for awaited; zero for
	// never. quiet: IdleTimeout begins with the next look at it.
	deadline time.Time
	awaited  string
	quiet    bool
	// unannounced: the control packet of a stop waits for the end of the last
	// call. farewell ends the time for the peer to close behind it, or to bring a
	// call that was on its way.
	unannounced bool
	farewell    *time.Timer
	// hurried is until when the rest of a message may come that is refused then, if
	// nothing else goes on; zero for none.
	hurried time.Time
	// ends: an answer was sent behind which a stopping server closes the connection.
	ends   bool
	ctx    context.Context
	cancel context.CancelFunc
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
		Ends:    &Ends{Peer: conn.RemoteAddr().String(), Local: conn.LocalAddr().String()},
		decoder: detect.NewDecoder(s.config.Allowed, s.config.Limits),
	}
	if s.config.Identify != nil {
		c.Identity = s.config.Identify(conn.TLS())
	}
	c.room.L = &c.mu
	c.sender = sender{conn: conn, crowded: c.crowded, failed: c.writeFailed, sent: c.sent}
	c.opened = time.Now()
	c.await(awaitFirst, c.opened, s.config.FirstByteTimeout)
	c.tell(observe.ConnectionOpened, 0, nil)
	return c
}

func connOf(conn *eventloop.Conn) *serverConn {
	c, _ := conn.Context().(*serverConn)
	return c
}

// errLast closes a connection after an answer behind which nothing can be
// understood.
var errLast = errors.New("the previous message had no known end")

// errIdle closes a connection that has had no call for long.
var errIdle = errors.New("closed after waiting too long for " + awaitMessage)

// errStopped closes a connection of a stopping server whose peer goes on
// sending.
var errStopped = errors.New("server is stopping")

// data looks at what has arrived, and serves one message of it. The event loop
// calls it, once at a time but for calls that have let go of the connection.
func (c *serverConn) data() error {
	if h := c.http2.Load(); h != nil {
		return h.data()
	}
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
	if c.hasStreams(arrived) {
		if did, err := c.streams.Load().data(arrived); did || err != nil {
			return err
		}
	}
	if len(arrived) == 0 {
		c.idle()
		return nil
	}
	message, used, need, err := c.decoder.Next(arrived)
	switch {
	case err != nil:
		return c.refuse(err)
	case c.decoder.IsHTTP2():
		return c.speakHTTP2()
	case used == 0:
		reader.Expect(need)
		// Without its head a message cannot be answered, nor the end of it be known: few bytes
		// more are waited for, which fit into memory that is there.
		if err := c.charge(held(reader)); err != nil && need >= budgetBytesMin {
			return c.overloaded(arrived, err)
		}
		c.awaitRest(need)
		c.hurryIfStopped()
		return nil
	}
	c.uncharge()
	call := c.inbound(message, used-len(arrived), used)
	if err := reader.Skip(min(used, len(arrived))); err != nil {
		return err
	}
	c.serve(call)
	return nil // the event loop calls again if there is more
}

// mustWait reports whether the bytes in reader have to wait for the end of a
// call.
func (c *serverConn) mustWait(reader *eventloop.Reader) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stopped := c.server.stopped()
	switch {
	case c.running == 0 && c.unsent == 0 && c.last:
		return true, errLast
	case c.running == 0 && c.unsent == 0 && stopped && c.tooLate():
		return true, errStopped
	case !c.blockedLocked() && !(stopped && c.tooLate()):
		c.unread = false
		return false, nil
	}
	c.arrivals.note(reader.Len(), reader.Arrived())
	// The rest of a message waits for this side now, which is not the peer's time.
	c.started, c.awaited, c.deadline, c.quiet = time.Time{}, awaitMessage, time.Time{}, false
	if !c.paused && (c.unsent > limits.UnsentBytes || reader.Len() >= limits.ReadAheadBytes || c.charge(held(reader)) != nil) {
		c.paused = true
		c.conn.PauseReading()
	}
	// Without anything to look at there is nothing to be woken for: what arrives
	// brings its own call. Waking up takes a tenth of a short call's time.
	c.unread = c.paused || reader.Len() > 0
	c.behind = c.unread || c.last || stopped
	return true, nil
}

func (c *serverConn) blockedLocked() bool {
	return c.ordered || c.last || c.rests || c.running-c.streaming >= c.server.config.ConnectionCalls || c.unsent > limits.UnsentBytes
}

// changedLocked goes on with what waited for the end of a call or of a write.
// IdleTimeout begins when the last of them has ended: a slow peer may read a
// long answer for longer than that. What time it is then nobody asks until expire
// looks: asking takes 50 ns of a call's 4 us.
func (c *serverConn) changedLocked() {
	ended := c.running == 0 && c.unsent == 0
	c.quiet = ended && c.awaited == awaitMessage && c.server.config.IdleTimeout > 0
	if !c.behind || c.blockedLocked() && !ended {
		return
	}
	c.behind = false
	if c.paused {
		c.paused = false
		c.conn.ResumeReading()
	}
	c.conn.Wake()
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
		// Not when the bytes arrived: they may have waited for this side to go on.
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
	c.awaited, c.quiet = what, false
	c.deadline = time.Time{}
	if timeout > 0 {
		c.deadline = from.Add(timeout)
	}
}

// expire closes the connection if its peer has taken too long.
func (c *serverConn) expire(now time.Time) {
	if h := c.http2.Load(); h != nil {
		h.expire(now)
		return
	}
	if t := c.streams.Load(); t != nil {
		t.tick(now)
	}
	c.mu.Lock()
	if c.quiet && c.running == 0 && c.unsent == 0 {
		c.quiet, c.deadline = false, time.Now().Add(c.server.config.IdleTimeout) // now may be long ago
	}
	late := !c.deadline.IsZero() && now.After(c.deadline)
	quiet := c.awaited == awaitMessage
	if quiet && (c.running > 0 || c.unsent > 0) || c.ordered {
		late = false
	}
	late = late || !c.hurried.IsZero() && now.After(c.hurried) && c.running == 0 && c.unsent == 0
	awaited := c.awaited
	sign := !late && c.signDueLocked()
	c.mu.Unlock()
	if sign {
		c.sendSign()
	}
	if !late {
		return
	}
	err := errIdle
	if !quiet {
		err = fmt.Errorf("closed after waiting too long for %s", awaited)
		c.server.log.Warn("connection closed: peer too slow", "peer", c.Peer, "waited_for", awaited)
	}
	_ = c.conn.CloseWithError(err)
}

// refuse ends a connection that speaks nothing we know. The event loop gives
// the peer a moment to read the answer.
func (c *serverConn) refuse(err error) error {
	c.server.log.Warn("connection refused: wrong bytes", "peer", c.Peer, "reason", err.Error())
	c.tell(observe.ConnectionRefused, 0, err)
	var foreign *wire.Error
	if errors.As(err, &foreign) {
		c.conn.Writer().AppendString(foreign.Answer)
	}
	return err
}

// aliasedLeast is from where on the body of a call is used where it was received,
// if it takes at least half of the memory there: a call that waits keeps all of it,
// and the budget counts the body.
const aliasedLeast = 16 << 10

// inbound makes a call of a message of size bytes. Everything but the body is copied,
// and that of a long one if it lies in much more memory. A short one is when the call
// lets go of the connection.
func (c *serverConn) inbound(message wire.Message, beyond, size int) *Inbound {
	arrived, behind := c.arrivals.take(size, c.conn.Reader().Arrived())
	call := c.newInbound(c.started, arrived, size)
	call.Behind = behind
	c.started, c.spoke = time.Time{}, true
	call.Protocol, call.Payload, call.Type, call.Sequence = message.Protocol, message.Payload, message.Type, message.Sequence
	call.Ends = c.Ends
	call.server, call.conn = c.server, c
	call.headerSequence, call.invalid = message.HeaderSequence, message.Invalid
	call.ordered = message.Flags&wire.FlagOutOfOrder == 0 || !hasTTHeader(message.Protocol)
	if !message.Last {
		c.discard = max(beyond, 0)
	}
	head := c.names.read(message.Info)
	c.fulmar = c.fulmar || head.mux
	call.claims, call.fulmar = head.mux, c.fulmar
	head.Timeout = min(head.Timeout, limits.PeerTimeout)
	c.server.admit(call, &message, &head)
	c.refuseIfStopped(call)
	if call.invalid == nil {
		if call.Body = message.Body; len(call.Body) >= aliasedLeast && len(call.Body) < c.conn.Reader().Memory()/2 {
			call.copyBody()
		}
	}
	c.mu.Lock()
	c.running++
	c.ordered = c.ordered || call.ordered
	c.multiplexed = c.multiplexed || !call.ordered || call.claims
	c.ours = c.fulmar
	c.last = message.Last
	c.awaited, c.deadline, c.hurried = awaitMessage, time.Time{}, time.Time{}
	c.behind = c.behind || c.last || c.server.stopped()
	c.mu.Unlock()
	if c.discard > 0 {
		c.awaitDiscarded()
	}
	return call
}

// serve runs a call, on the goroutine of data. Others do not wait for it once it lets
// go of the connection.
func (c *serverConn) serve(call *Inbound) {
	c.server.running.Add(1)
	c.conn.Hold()
	if call.copied || len(call.Body) == 0 {
		c.conn.Reader().Done()
	}
	call.here = true
	c.server.run(c.context(), call)
}

// overloaded refuses the message in progress. What is still to come of it is thrown away,
// for the sake of the calls behind it: they would hear nothing until those that run have
// ended, and then lose their connection. Only where its end is not known is that given up.
func (c *serverConn) overloaded(arrived []byte, err error) error {
	message, used := c.decoder.Refuse(arrived, err)
	c.uncharge()
	call := c.inbound(message, used-len(arrived), max(used, len(arrived)))
	c.server.log.Warn("message refused", "peer", c.Peer, "reason", err.Error())
	if err := c.conn.Reader().Skip(len(arrived)); err != nil {
		return err
	}
	c.serve(call)
	return nil
}

// done ends a call.
func (c *serverConn) done(call *Inbound) {
	if call.stream != nil {
		call.stream.finished(call)
		return
	}
	c.ended(call, 0)
}

// ended lets the connection go on, behind a call that is one of so many streams of TTHeader.
func (c *serverConn) ended(call *Inbound, streams int) {
	c.mu.Lock()
	c.running--
	c.streaming -= streams
	if call.ordered {
		c.ordered = false
	}
	c.changedLocked()
	due := c.unannounced && c.running == 0
	if due {
		c.sayFarewellLocked()
	}
	left := c.ends && c.running == 0
	c.mu.Unlock()
	if due {
		c.sendControl()
	}
	if left {
		c.heardFarewell()
	}
	c.conn.Release()
}

// --- answers ---

// crowded tells the sender whether more answers are likely to come at once.
func (c *serverConn) crowded() bool { return c.crowding() >= crowdedCalls }

// crowding returns how many calls run.
func (c *serverConn) crowding() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running
}

// corkedMost is the longest answer that is copied behind others, to leave with
// them. Copying it takes a tenth of a system call.
const corkedMost = 4 << 10

// mayCork reports whether the answer of a call that has the connection may be left to
// the event loop. One that must not come before or behind another may if nothing else
// writes: not the sender now, nor a call that has arrived by then, which could let go of
// the connection, and be answered, while the event loop writes.
func (c *serverConn) mayCork(call *Inbound) bool {
	if !call.ordered {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unsent == 0 && c.conn.Reader().Len() == 0
}

// answerBytesMin is what the shortest answer holds until it is written: a chunk, and what
// describes it. A peer that reads nothing could have 35 MiB of them wait otherwise, of
// which it was sent only 1 MiB (UnsentBytes).
const answerBytesMin = 2560

// heldBy returns what counts as held by an answer that waits to be written.
func heldBy(o *outgoing) int { return max(o.length(), answerBytesMin) }

// send hands an answer to the event loop, if the connection waits for its call, or
// to the sender. The connection is held until it has been written.
func (c *serverConn) send(call *Inbound, o *outgoing) error {
	if call.stream != nil {
		return call.stream.send(call, o)
	}
	n := o.length()
	if call.stamps != nil {
		call.stamps.BytesOut = n
	}
	c.endBehindAnswer()
	if n > corkedMost {
		call.LetGo()
	}
	if call.attach(n) && c.mayCork(call) {
		var pieces [8][]byte
		for _, piece := range o.slices(pieces[:0]) {
			c.conn.Writer().Append(piece)
		}
		return nil
	}
	n = heldBy(o)
	c.server.budget.add(n)
	c.mu.Lock()
	// Calls that had begun when the connection was blocked bring their answers
	// all the same. They wait for the peer here, which WriteStallTimeout ends if
	// it reads nothing. Without a limit for messages the sum is more than an int
	// of 32 bits holds.
	most := 2*int64(c.server.config.Limits.Bytes) + limits.UnsentBytes
	for c.unsent > 0 && int64(c.unsent)+int64(n) > most && !c.gone {
		c.room.Wait()
	}
	c.unsent += n
	c.mu.Unlock()
	c.conn.Hold()
	return c.sender.send(o)
}

// sent is told when an answer has been written, or never will be.
func (c *serverConn) sent(o *outgoing) {
	n := heldBy(o)
	c.server.budget.give(n)
	c.mu.Lock()
	c.unsent -= n
	c.changedLocked()
	c.mu.Unlock()
	c.room.Signal()
	c.conn.Release()
}

// writeFailed is told when nothing can be written any more.
func (c *serverConn) writeFailed(err error) { _ = c.conn.CloseWithError(err) }

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
func (c *serverConn) closed(err error) {
	c.mu.Lock()
	if c.ctx == nil {
		// Whoever asks later gets a context that has ended.
		c.ctx, c.cancel = context.WithCancel(c.server.ctx)
	}
	c.cancel()
	c.gone = true
	c.mu.Unlock()
	c.room.Broadcast()
	c.uncharge()
	if h := c.http2.Load(); h != nil {
		h.closed()
	}
	if t := c.streams.Load(); t != nil {
		t.closed()
	}
	c.sender.close(net.ErrClosed)
	c.heardFarewell()
	if c.server.config.Connection != nil {
		if errors.Is(err, errIdle) || errors.Is(err, errStopped) || errors.Is(err, errOld) {
			err = nil
		}
		c.tell(observe.ConnectionClosed, time.Since(c.opened), err)
	}
}
