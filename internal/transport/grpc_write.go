package transport

import (
	"slices"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
)

// grpcWriter is what a grpcConn knows of what it writes. Whoever finds nobody writing
// writes what all streams have to send, as sender does. The lock of the connection guards
// what is named in front of spare.
type grpcWriter struct {
	writing bool
	// taken is how many bytes were taken from http2 to be written, accepted how many of
	// them the network has.
	taken, accepted int64
	// unwritten are calls whose observers want to know when they are written.
	unwritten []unwritten
	// swapped tells that what waited was taken away.
	swapped   sync.Cond
	gathering gathering
	// Only who writes uses these: an empty buffer, and pieces of a full one.
	spare  *linkbuf.Buffer
	pieces [][]byte
}

// unwritten is a call that is not written yet as far as anybody knows. The stream says
// whether it is still there: what else is in it may be another call's by then.
type unwritten struct {
	id   uint32
	call *muxCall
	end  int64
}

// writtenLocked returns how many bytes the server may have: all of a batch of which
// nobody has said what became of it.
func (c *grpcConn) writtenLocked() int64 {
	if c.writing && c.writeErr == nil {
		return c.taken
	}
	return c.accepted
}

// sendLocked gives http2 what of a request is left, as far as it takes it.
func (c *grpcConn) sendLocked(call *muxCall) {
	g := call.request.grpc
	rest, err := c.http2.DataPieces(g.id, g.rest, true)
	if err != nil {
		g.rest = nil // The server has ended the stream, and an event says how.
		return
	}
	if g.rest = rest; len(rest) > 0 {
		return
	}
	g.end = c.taken + int64(c.http2.Unsent())
	if call.request.teller != nil {
		c.unwritten = append(c.unwritten, unwritten{g.id, call, g.end})
	}
}

// resumeLocked goes on with requests for which there is room again.
func (c *grpcConn) resumeLocked() {
	for {
		id, _, ok := c.http2.Writable()
		if !ok {
			return
		}
		switch call := c.calls[id]; {
		case call == nil:
		case call.messages != nil:
			call.messages.pumpLocked()
		default:
			c.sendLocked(call)
		}
	}
}

// crowding returns how many calls are likely to be made at a time, as muxConn.crowded does.
func (c *grpcConn) crowding() int {
	crowd := c.crowd.Load()
	c.crowd.Store(max(crowd-crowd/8, c.waiting.Load()))
	return int(crowd)
}

// restsLocked reports whether nothing is to be written, or somebody does that.
func (c *grpcConn) restsLocked() bool {
	return c.writing || c.err != nil || c.writeErr != nil || c.http2.Unsent() == 0
}

// flush writes what waits, if nobody does. It does not wait for the network: what the
// socket does not take is left to a goroutine.
func (c *grpcConn) flush() {
	crowd := c.crowding()
	c.mu.Lock()
	// Those that got their replies together send together.
	if c.restsLocked() || !c.gathering.readyLocked(crowd, &c.mu) || c.restsLocked() {
		c.mu.Unlock()
		return
	}
	c.writing = true
	c.mu.Unlock()
	for range sendRounds {
		full := c.take()
		if full == nil {
			c.finishIfWritten()
			return
		}
		n, err := c.conn.TryWriteBuffers(c.pieces)
		if rest := linkbuf.Advance(c.pieces, n); err == nil && len(rest) > 0 {
			go c.writeWaiting(full, rest, n)
			return
		}
		if !c.wrote(full, n, err) {
			return
		}
	}
	go c.writeWaiting(nil, nil, 0)
}

// flushSoon has a goroutine write what waits, if nobody does. What is sent until that runs
// goes with it.
func (c *grpcConn) flushSoon() {
	c.mu.Lock()
	if c.restsLocked() {
		c.mu.Unlock()
		return
	}
	c.writing = true
	c.mu.Unlock()
	go c.writeWaiting(nil, nil, 0)
}

// writeWaiting writes until nothing waits, waiting for the server if it must. full is
// what it begins with, of which rest is not written.
func (c *grpcConn) writeWaiting(full *linkbuf.Buffer, rest [][]byte, written int64) {
	for {
		if full == nil {
			if full = c.take(); full == nil {
				c.finishIfWritten()
				return
			}
			rest, written = c.pieces, 0
		}
		n, err := c.conn.WriteRest(rest, written)
		if !c.wrote(full, written+n, err) {
			return
		}
		full = nil
	}
}

// take takes away what waits, into pieces. It returns nil, and the writing has ended, if
// there is nothing.
func (c *grpcConn) take() *linkbuf.Buffer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.resumeLocked()
	}
	if c.err != nil || c.http2.Unsent() == 0 {
		c.writing = false
		c.swapped.Broadcast()
		return nil
	}
	c.gathering.takenLocked()
	c.taken += int64(c.http2.Unsent())
	full := c.http2.Swap(c.spare)
	c.spare = nil
	c.swapped.Broadcast()
	c.resumeLocked()
	c.pieces = full.Slices(c.pieces[:0])
	return full
}

// wrote follows a write of n bytes of what was taken. It returns false if that was the
// last one.
func (c *grpcConn) wrote(full *linkbuf.Buffer, n int64, err error) bool {
	full.Release()
	clear(c.pieces)
	if cap(c.pieces) > sendKept {
		c.pieces = nil
	}
	c.mu.Lock()
	c.spare = full
	c.accepted += n
	c.tellWrittenLocked()
	switch {
	case err != nil:
		c.writeErr, c.writing, c.leaving = err, false, true
		c.room.Store(0)
		c.swapped.Broadcast()
	case !c.leaving && c.err == nil:
		c.room.Store(int32(c.http2.Room())) // as much may have waited as may
	}
	c.mu.Unlock()
	if err == nil {
		c.peer.roomFree()
	} else {
		c.peer.drop(c)
		// A moment for the replies that the server has sent before it closed. An error means
		// that the connection is closed, which read will notice.
		_ = c.conn.SetReadDeadline(time.Now().Add(limits.LastWordsTimeout))
	}
	return err == nil
}

// tellWrittenLocked notes when the requests were written that are now.
func (c *grpcConn) tellWrittenLocked() {
	if len(c.unwritten) == 0 {
		return
	}
	c.unwritten = slices.DeleteFunc(c.unwritten, func(u unwritten) bool {
		there := c.calls[u.id] == u.call
		if there && u.end <= c.accepted {
			u.call.request.written.CompareAndSwap(0, int64(u.call.request.elapsed()))
		}
		return !there || u.end <= c.accepted
	})
}

// lastWordsLocked sends what waits, a GOAWAY that says what was wrong among it, before the
// connection closes: as much as the socket takes at once, and if nobody writes.
func (c *grpcConn) lastWordsLocked() {
	if c.writing || c.writeErr != nil || c.http2.Unsent() == 0 {
		return
	}
	full := c.http2.Swap(c.spare)
	c.spare = nil
	// Only what calls have sent counts, and of this nothing is theirs that they wait for.
	n, _ := c.conn.TryWriteBuffers(full.Slices(nil))
	c.taken += n
	c.accepted += n
	full.Release()
}
