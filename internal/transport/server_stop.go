package transport

import (
	"errors"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
)

// announceStop tells a peer that multiplexes to send no more calls. Other peers
// than ours are told when no call of theirs runs: the client of Kitex 0.16.3
// panics over the control packet, and fails all calls on the connection.
func (c *serverConn) announceStop() {
	if h := c.http2.Load(); h != nil {
		h.stop(errStopped)
		return
	}
	if t := c.streams.Load(); t != nil {
		t.stop()
	}
	c.mu.Lock()
	if !c.multiplexed {
		c.waitForCallLocked()
		c.mu.Unlock()
		return
	}
	due := c.farewell == nil
	if due && c.running > 0 && !c.ours {
		due, c.unannounced = false, true
	}
	if due {
		c.sayFarewellLocked()
	}
	c.mu.Unlock()
	if due {
		c.sendControl()
	}
}

// sayFarewellLocked gives the peer StopGrace to close the connection: calls may
// be on their way.
func (c *serverConn) sayFarewellLocked() {
	c.unannounced = false
	c.conn.Hold()
	c.farewell = time.AfterFunc(limits.StopGrace, c.conn.Release)
}

// waitForCallLocked keeps a connection whose peer cannot be told that the server stops,
// until it has been idle for StopGrace: the next call may be on its way, and the answer
// to it is a better end. Who has been idle for so long is not likely to send a call
// just now.
func (c *serverConn) waitForCallLocked() {
	if c.farewell != nil || c.ends {
		return
	}
	grace := limits.StopGrace
	switch {
	case c.awaited == awaitFirst:
		grace -= time.Since(c.opened)
	case c.awaited == awaitMessage && !c.deadline.IsZero():
		grace -= time.Since(c.deadline.Add(-c.server.config.IdleTimeout))
	}
	if grace > 0 {
		c.conn.Hold()
		c.farewell = time.AfterFunc(grace, c.conn.Release)
	}
}

// ErrStopping is Inbound.Invalid of calls that came when the server had been stopping
// for longer than StopGrace, and why streams end that a stop does not wait for.
var ErrStopping = errors.New("the server is stopping")

// refuseIfStopped makes a call be refused that came after StopGrace: it is not executed,
// and its caller learns that, where there is a header for it, and can go elsewhere.
func (c *serverConn) refuseIfStopped(call *Inbound) {
	if !c.server.stopped() {
		return
	}
	if c.late++; call.invalid == nil && !call.ping {
		call.invalid = ErrStopping
	}
}

// tooLate reports whether a peer has sent more to a stopping server than can have been
// on its way: as many calls as a connection may have. It is not answered any more, or it
// could hold up the stop.
func (c *serverConn) tooLate() bool {
	return c.late >= min(c.server.config.ConnectionCalls, limits.ConnectionCalls)
}

// hurryIfStopped lets the message in progress take no longer than StopGrace, once no call
// runs: it is going to be refused, and a stop waits for it.
func (c *serverConn) hurryIfStopped() {
	if !c.server.stopped() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hurried.IsZero() {
		c.hurried = time.Now().Add(limits.StopGrace)
	}
}

// endBehindAnswer is called before an answer is sent. If the server stops and the peer
// takes answers in order, it waits for this one and has no other call on its way: it
// learns of the end together with the answer, before it can send the next call.
func (c *serverConn) endBehindAnswer() {
	if c.server.stopping.Load() == nil {
		return
	}
	c.mu.Lock()
	c.ends = !c.multiplexed
	ends := c.ends
	c.mu.Unlock()
	if ends {
		c.conn.ExpectClose()
	}
}

// sendControl sends the control packet, behind the answers that wait.
func (c *serverConn) sendControl() { c.sendUnasked(wire.ControlMethod) }

// sendUnasked sends an empty reply to no call, to a peer that multiplexes.
func (c *serverConn) sendUnasked(name string) {
	call := &Inbound{Protocol: wire.TTHeader, Ends: c.Ends, server: c.server, conn: c, headerSequence: wire.ControlSequence}
	control, err := call.NewReply(name, ReplyHead{})
	if err != nil {
		return
	}
	defer control.Release()
	copy(control.Reserve(1), []byte{byte(thriftwire.Stop)})
	control.finish(thriftwire.Reply)
	c.server.budget.add(heldBy(&control.outgoing))
	c.mu.Lock()
	// It waits for no room: whoever sends it has others to tell.
	c.unsent += heldBy(&control.outgoing)
	c.mu.Unlock()
	c.conn.Hold()
	// If it cannot be written the peer will find the connection closed.
	_ = c.sender.send(&control.outgoing)
}

// peerEnded follows the last byte of the peer. Calls over Thrift and TTHeader can still be
// answered. A peer with streams is gone: it could neither end them nor give them windows, and
// a handler that waits for it would never learn of its end.
func (c *serverConn) peerEnded() {
	c.heardFarewell()
	if c.http2.Load() != nil || c.streams.Load() != nil {
		_ = c.conn.CloseWithError(nil)
	}
}

// heardFarewell ends what announceStop waits for: the peer has closed its side, or the
// call that was awaited is answered.
func (c *serverConn) heardFarewell() {
	c.mu.Lock()
	release := c.farewell != nil && c.farewell.Stop()
	c.mu.Unlock()
	if release {
		c.conn.Release()
	}
}

// closing reports whether no new call should come on the connection.
func (c *serverConn) closing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last || c.server.stopping.Load() != nil
}
