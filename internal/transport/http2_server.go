package transport

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// http2Server is a serverConn whose peer speaks HTTP/2:
//
//	open -- GOAWAY of either side, nothing to do --> ending -- no streams, all written --> closed
//	open, ending -- a broken rule, the socket fails ------> closed
//
// A stream is a call, which runs when all of its request is there:
//
//	headers -> data -> complete -- handler runs --> answered -- windows, socket --> sent
//	headers, data -- too slow --> sent
//	any -- RST_STREAM, closed, takes no answer --> reset
//
// It is released, and the peer may begin another one, when it is sent or reset and its
// handler has returned. Bytes that wait are written by whoever finds nobody writing. The
// answers of calls that did not let go of the connection leave when all that has arrived
// is looked at.
type http2Server struct {
	conn  *serverConn
	began time.Time

	mu      sync.Mutex
	http2   *http2.Conn
	flow    http2Flow
	streams map[uint32]*serverStream
	// held: the connection is. gone: it is over.
	held, gone bool
	// congested: nothing is read until what waits is taken away.
	congested bool
	// failed: a rule is broken, and the connection ends when nobody writes any more.
	failed bool
	// stops: the peer was told that no more streams are taken. why is the reason.
	stops, ended bool
	why          error
	// idle is when the last stream ended, or the connection began. Frames that are of no
	// stream do not change it: a peer could keep a connection for ever with pings.
	idle time.Time
	// old is when no more streams are taken, zero for never, aged when the peer was told.
	old, aged time.Time
	// brought counts bytes of messages that have arrived, reads the time for that.
	brought int64
	reads   readingClock
	// said is what the last request had in front of its metadata: others say the same.
	said *HTTPHead
	// fields is memory for headers that are sent.
	fields    []http2.Field
	gathering gathering
	// writing: somebody writes. Only he uses what follows.
	writing bool
	spare   *linkbuf.Buffer
	pieces  [][]byte
}

func newHTTP2Server(c *serverConn) *http2Server {
	config := http2.Config{Streams: c.server.config.HTTP2Streams, PingAfter: http2.Nanoseconds(c.server.config.PingAfter)}
	h := &http2Server{conn: c, began: time.Now(), streams: map[uint32]*serverStream{}}
	h.idle, h.old = h.began, expiry(h.began, c.server.config.Age)
	h.http2 = http2.NewConn(config, c.server.buffers, 0)
	h.flow = http2Flow{h.http2, h.began}
	h.spare = linkbuf.New(c.server.buffers)
	return h
}

func (h *http2Server) at(now time.Time) http2.Nanoseconds {
	return http2.Nanoseconds(max(now.Sub(h.began), 0))
}

// data looks at what has arrived, up to the end of a request, and serves that.
func (h *http2Server) data() error {
	c := h.conn
	reader := c.conn.Reader()
	if c.mustRest(reader) {
		h.mu.Lock()
		h.reads.stop()
		h.mu.Unlock()
		h.flush(false)
		return nil
	}
	arrived, now := reader.Buffered(), reader.Arrived()
	did, err := h.look(arrived, now)
	if err != nil {
		return h.broken(err)
	}
	if err := reader.Skip(did.used); err != nil {
		return err
	}
	if stream := did.complete; stream != nil {
		if stream.messages != nil {
			h.flush(false) // The peer may wait for a window, whatever the handler does.
		}
		h.serve(stream, now)
		return nil // the event loop calls again if there is more
	}
	reader.Expect(did.need)
	h.flush(did.answers)
	h.pauseIfCongested(reader)
	return nil
}

// http2Look is what came of bytes that have arrived.
type http2Look struct {
	// used is how many there were, need how many there have to be for the next step.
	used, need int
	// complete is a stream that is to be served.
	complete *serverStream
	// answers: some that are about to be sent take with them what else waits.
	answers bool
}

// look obeys what has arrived, up to the end of a request. Its lock is free again whatever
// happens: without it the connection could not be ended.
func (h *http2Server) look(arrived []byte, now time.Time) (did http2Look, err error) {
	c := h.conn
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reads.goOn()
	h.gathering.arrived = 0
	for {
		event, used, more, err := h.http2.Next(arrived[did.used:], h.at(now))
		did.used += used
		if err != nil {
			return did, err
		}
		if did.complete = h.takeLocked(&event, now); did.complete != nil {
			h.settleLocked()
			c.started = time.Time{}
			return did, nil
		}
		if event.Kind == http2.EventCongested {
			h.congested = true
			h.reads.stop()
		} else if used > 0 || event.Kind != http2.EventNone {
			continue
		}
		did.need = more
		break
	}
	h.resumeLocked()
	h.settleLocked()
	if did.used > 0 && !h.http2.Unfinished() {
		c.started = time.Time{} // each frame has its own time
	}
	h.awaitLocked(len(arrived)-did.used > 0, did.need)
	did.answers = h.gathering.arrived > 0
	return did, nil
}

// mustRest reports whether Rest was called, and its time is not over.
func (c *serverConn) mustRest(reader *eventloop.Reader) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.rests {
		return false
	}
	c.started, c.awaited, c.deadline = time.Time{}, awaitMessage, time.Time{}
	c.behind = true
	if !c.paused && reader.Len() >= limits.ReadAheadBytes {
		c.paused = true
		c.conn.PauseReading()
	}
	return true
}

// pauseIfCongested stops reading while the peer does not read, and enough of it waits.
func (h *http2Server) pauseIfCongested(reader *eventloop.Reader) {
	// With the lock: who takes away what waits must find it paused, or not congested.
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.congested || reader.Len() < limits.ReadAheadBytes {
		return
	}
	h.conn.pause()
}

// pause stops reading until something goes on.
func (c *serverConn) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.paused {
		c.paused = true
		c.conn.PauseReading()
	}
	c.behind = true
}

// awaitLocked starts the clock for what the peer has to do next. partial says that a frame
// has begun to arrive.
func (h *http2Server) awaitLocked(partial bool, need int) {
	c := h.conn
	switch {
	case h.congested:
		// The peer waits for this side, if it reads; the socket knows whether it does.
		c.started = time.Time{}
		c.await(awaitMessage, h.began, 0)
	case partial || h.http2.Unfinished():
		c.awaitRest(need)
	case len(h.streams) == 0:
		c.started = time.Time{}
		c.await(awaitMessage, h.idle, c.server.config.IdleTimeout)
	default:
		c.started = time.Time{}
		c.await(awaitMessage, h.began, 0)
	}
}

// broken ends a connection whose peer broke a rule. It is told by which one: if somebody
// else writes, or is about to, data is called again behind that.
func (h *http2Server) broken(err error) error {
	c := h.conn
	h.flush(false)
	h.mu.Lock()
	h.failed = !h.gone && (h.writing || h.http2.Unsent() > 0)
	if h.failed {
		c.pause()
	}
	waits := h.failed
	h.mu.Unlock()
	if waits {
		return nil
	}
	c.server.log.Warn("connection closed: broken HTTP/2", "peer", c.Peer, "reason", err.Error())
	return err
}

// blame ends the connection if its peer has more than a few messages inflated in vain.
func (h *http2Server) blame(err error) {
	if _, wasted := errors.AsType[*wastedError](err); !wasted {
		return
	}
	h.mu.Lock()
	if h.gone {
		h.mu.Unlock()
		return
	}
	err = h.http2.Blame(limits.GRPCBombErrors, h.at(time.Now()))
	if err != nil {
		// Others of its messages wait to be inflated, and would be until the end.
		for _, stream := range h.streams {
			stream.cancel()
		}
	}
	h.mu.Unlock()
	if err != nil {
		h.conn.conn.Wake() // data says why, and the peer gets a moment to read that.
	}
}

// expire does what is due.
func (h *http2Server) expire(now time.Time) {
	c := h.conn
	c.mu.Lock()
	late := !c.deadline.IsZero() && now.After(c.deadline)
	awaited := c.awaited
	if late && awaited == awaitMessage {
		c.deadline = time.Time{}
	}
	c.mu.Unlock()
	if late && awaited != awaitMessage {
		c.server.log.Warn("connection closed: peer too slow", "peer", c.Peer, "waited_for", awaited)
		_ = c.conn.CloseWithError(fmt.Errorf("closed after waiting too long for %s", awaited))
		return
	}
	h.mu.Lock()
	if h.gone {
		h.mu.Unlock()
		return
	}
	if h.http2.Failed() {
		// data ends it, when the peer was told.
		h.mu.Unlock()
		return
	}
	_, err := h.http2.Tick(h.at(now))
	h.lateLocked(now)
	if late && len(h.streams) == 0 {
		h.stopLocked(errIdle)
	}
	if err == nil {
		err = h.ageLocked(now)
	}
	h.settleLocked()
	h.mu.Unlock()
	if err == nil {
		h.flush(false)
		return
	}
	h.flushLast()
	_ = c.conn.CloseWithError(err)
}

// errOld closes a connection that is older than connections should be.
var errOld = errors.New("closed because of its age")

// ageLocked ends a connection that is old: first for new streams, then for all.
func (h *http2Server) ageLocked(now time.Time) error {
	if h.old.IsZero() || now.Before(h.old) {
		return nil
	}
	h.stopLocked(errOld)
	if h.aged.IsZero() {
		h.aged = now
	}
	grace := h.conn.server.config.AgeGrace
	if grace <= 0 || now.Before(h.aged.Add(grace)) {
		return nil
	}
	h.conn.server.log.Warn("connection closed: calls go on behind its age", "peer", h.conn.Peer, "calls", len(h.streams))
	return errOld
}

// stop begins the end: GOAWAY says so, and calls that are on their way are still served.
func (h *http2Server) stop(why error) {
	h.mu.Lock()
	h.stopLocked(why)
	h.settleLocked()
	h.mu.Unlock()
	h.flush(false)
}

func (h *http2Server) stopLocked(why error) {
	if h.gone || h.stops {
		return
	}
	h.stops, h.why = true, why
	h.http2.Shutdown(h.at(time.Now()))
}

// settleLocked holds the connection as long as there is something to do, so that a stopping
// server does not close it.
func (h *http2Server) settleLocked() {
	if !h.held && h.busyLocked() {
		h.held = true
		h.conn.conn.Hold()
	}
}

func (h *http2Server) busyLocked() bool {
	return !h.gone && (len(h.streams) > 0 || h.writing || h.http2.Unsent() > 0 || h.stops && !h.http2.Done())
}

// relax lets go of the connection if nothing is to be done any more, and closes it if
// nothing will be.
func (h *http2Server) relax() {
	h.mu.Lock()
	if h.busyLocked() {
		h.mu.Unlock()
		return
	}
	release := h.held
	h.held = false
	end := !h.gone && !h.ended && h.stops && h.http2.Done()
	h.ended = h.ended || end
	idle := !h.gone && !h.stops && h.http2.Streams() == 0
	h.mu.Unlock()
	if idle {
		h.conn.nothingRuns()
	}
	if end {
		// The client may still say that it has enough of streams.
		h.conn.conn.CloseGently(h.why)
	}
	if release {
		h.conn.conn.Release()
	}
}

// nothingRuns starts the clock for the next call, behind the last one.
func (c *serverConn) nothingRuns() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.awaited == awaitMessage && c.deadline.IsZero() && c.server.config.IdleTimeout > 0 {
		c.deadline = time.Now().Add(c.server.config.IdleTimeout)
	}
}

// closed is the end.
func (h *http2Server) closed() {
	if h.end() {
		h.conn.conn.Release()
	}
}

// end ends all streams. It reports whether the connection is to be released.
func (h *http2Server) end() (release bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gone = true
	for _, stream := range h.streams {
		h.resetLocked(stream)
	}
	h.streams = nil
	h.http2.Close()
	if h.spare != nil && !h.writing {
		h.spare.Release()
	}
	release, h.held = h.held, false
	return release
}

// --- writing ---

// flush writes what waits, if nobody does. It does not wait for the network: what the
// socket does not take is left to a goroutine. yield lets others add to it first; without
// it, too, what is being gathered is left to who does that.
func (h *http2Server) flush(yield bool) {
	h.mu.Lock()
	crowd := 0
	if yield {
		crowd = len(h.streams)
	}
	if !yield && h.gathering.waits() || h.restsLocked() || !h.gathering.readyLocked(crowd, &h.mu) || h.restsLocked() {
		busy := h.busyLocked()
		h.mu.Unlock()
		if !busy {
			h.relax()
		}
		return
	}
	h.writing = true
	h.mu.Unlock()
	h.write()
}

// flushLast writes what waits, also if somebody else gathers it: the connection is about to
// be closed.
func (h *http2Server) flushLast() {
	if h.beginWriting() {
		h.write()
	}
}

// beginWriting reports whether there is something to be written, and it is for the caller.
func (h *http2Server) beginWriting() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.restsLocked() {
		return false
	}
	h.writing = true
	return true
}

// write writes until nothing waits or the socket takes no more, which a goroutine goes on
// with. The caller has set writing.
func (h *http2Server) write() {
	for range sendRounds {
		full := h.take()
		if full == nil {
			return
		}
		n, err := h.conn.conn.TryWriteBuffers(h.pieces)
		if rest := linkbuf.Advance(h.pieces, n); err == nil && len(rest) > 0 {
			go h.writeWaiting(full, rest, n)
			return
		}
		if !h.wrote(full, err) {
			return
		}
	}
	go h.writeWaiting(nil, nil, 0)
}

// restsLocked reports whether nothing is to be written, or somebody does that.
func (h *http2Server) restsLocked() bool {
	return h.writing || h.gone || h.http2.Unsent() == 0
}

// flushSoon has a goroutine write what waits, if nobody does. What is sent until that runs
// goes with it.
func (h *http2Server) flushSoon() {
	if h.beginWriting() {
		go h.writeWaiting(nil, nil, 0)
	}
}

// writeWaiting writes until nothing waits, waiting for the peer if it must. full is what
// it begins with, of which rest is not written.
func (h *http2Server) writeWaiting(full *linkbuf.Buffer, rest [][]byte, written int64) {
	for {
		if full == nil {
			if full = h.take(); full == nil {
				return
			}
			rest, written = h.pieces, 0
		}
		_, err := h.conn.conn.WriteRest(rest, written)
		if !h.wrote(full, err) {
			return
		}
		full = nil
	}
}

// take takes away what waits, into pieces. It returns nil, and the writing has ended, if
// there is nothing.
func (h *http2Server) take() *linkbuf.Buffer {
	full, again := h.swap()
	if again {
		h.conn.goOn()
	}
	if full == nil {
		h.relax()
		return nil
	}
	h.pieces = full.Slices(h.pieces[:0])
	return full
}

// swap is what of take needs the lock. again says that data has waited for it.
func (h *http2Server) swap() (full *linkbuf.Buffer, again bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gone || h.http2.Unsent() == 0 {
		h.endWritingLocked()
		again, h.failed = h.failed, false
		return nil, again
	}
	h.gathering.takenLocked()
	full = h.http2.Swap(h.spare)
	h.spare = nil
	h.resumeLocked()
	again, h.congested = h.congested, false
	return full, again
}

func (h *http2Server) endWritingLocked() {
	h.writing = false
	if h.gone && h.spare != nil {
		h.spare.Release()
		h.spare = nil
	}
}

// wrote follows a write of what was taken. It returns false if that was the last one.
func (h *http2Server) wrote(full *linkbuf.Buffer, err error) bool {
	full.Release()
	clear(h.pieces)
	if cap(h.pieces) > sendKept {
		h.pieces = nil
	}
	h.mu.Lock()
	h.spare = full
	if err != nil {
		h.endWritingLocked()
	}
	h.mu.Unlock()
	if err != nil {
		if errors.Is(err, net.ErrClosed) {
			err = nil
		}
		_ = h.conn.conn.CloseWithError(err)
		h.relax()
		return false // somebody else may write already
	}
	return !h.isGone()
}

func (h *http2Server) isGone() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gone {
		h.endWritingLocked()
	}
	return h.gone
}

// speakHTTP2 makes the connection one that speaks HTTP/2. That must be so from its first
// byte: what it was before could not be told from it.
func (c *serverConn) speakHTTP2() error {
	if c.spoke {
		return c.refuse(errors.New("HTTP/2 behind messages in another protocol"))
	}
	h := newHTTP2Server(c)
	c.http2.Store(h)
	if c.server.stopping.Load() != nil {
		h.stop(errStopped)
	}
	return h.data()
}
