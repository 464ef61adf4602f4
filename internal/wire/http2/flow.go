package http2

import "github.com/fulmar-rpc/fulmar/internal/limits"

// windowMax is the largest window (RFC 9113, 6.9.1).
const windowMax = 1<<31 - 1

// windowInitial is the size of windows before anybody says anything (6.9.2).
const windowInitial = 1<<16 - 1

// window is what a peer may send, to a stream or to all of a connection.
type window struct {
	// open is how much it may send now, unused how much it has sent of which the
	// caller has not said yet that he used it. Together they are target at most.
	open, unused int64
	target       int64
	updated      Nanoseconds
}

// arrived takes n bytes off the window, unless it has no room for them.
func (w *window) arrived(n int) bool {
	if int64(n) > w.open {
		return false
	}
	w.open -= int64(n)
	w.unused += int64(n)
	return true
}

// use returns by how much to open the window after n bytes were used, 0 for not now:
// as long as half of it is open or unused, an update is not worth its 13 bytes.
//
// The window doubles, to max at most, if half of it was used within two round trips.
// A sender that it does not hold up fills it once in a round trip at most.
func (w *window) use(n int, now, roundTrip Nanoseconds, max int64) int64 {
	w.unused -= min(int64(n), w.unused)
	if w.open+w.unused > w.target/2 {
		return 0
	}
	if roundTrip > 0 && now-w.updated < 2*roundTrip {
		w.target = min(2*w.target, max)
	}
	w.updated = now
	return w.grow()
}

// grow opens the window as far as its target allows.
func (w *window) grow() int64 {
	increment := w.target - w.open - w.unused
	if increment <= 0 {
		return 0
	}
	w.open += increment
	return increment
}

// settleWindows takes off the windows of streams what they had while the peer might not
// have known our settings. A window may be negative then, as the peer's view of it is.
func (c *Conn) settleWindows() {
	if excess := windowInitial - c.config.streamWindow; excess > 0 {
		for _, s := range c.streams {
			s.receive.open -= excess
		}
	}
}

// Consume says that n bytes of a stream's data were used, so that the peer may send as
// many again on it. Padding, and what arrives for streams that are gone, need nobody.
func (c *Conn) Consume(id uint32, n int, now Nanoseconds) {
	if s := c.streams[id]; s != nil && c.err == nil {
		c.consumeStream(s, n, now)
	}
}

// consumeStream gives n bytes back to the window of a stream. It grows as long as those of all
// streams have not grown by more than HTTP2GrownWindowBytes.
func (c *Conn) consumeStream(s *stream, n int, now Nanoseconds) {
	if !s.state.receives() {
		s.receive.unused -= min(int64(n), s.receive.unused)
		return
	}
	before := s.receive.target
	most := min(c.config.streamWindowMax, before+limits.HTTP2GrownWindowBytes-c.grown)
	if increment := s.receive.use(n, now, c.roundTrip, max(most, before)); increment > 0 {
		appendWindowUpdate(c.out, s.id, uint32(increment))
		c.grown += s.receive.target - before
		c.receive.target = max(c.receive.target, s.receive.target)
	}
}

// consumeConnection gives n bytes back to the window of the connection, as they arrive: if it
// waited for who takes them, one stream that nobody reads would stop all others. The windows
// of streams bound what can be held.
func (c *Conn) consumeConnection(n int, now Nanoseconds) {
	// The connection's own target grows with those of its streams only.
	if increment := c.receive.use(n, now, 0, 0); increment > 0 {
		appendWindowUpdate(c.out, 0, uint32(increment))
	}
}

// windowUpdate obeys a WINDOW_UPDATE (RFC 9113, 6.9.1).
func (c *Conn) windowUpdate(f *Frame) error {
	c.counts.updates++
	allowed := limits.HTTP2WindowUpdates + int(c.counts.sentBytes/limits.HTTP2WindowUpdateBytes) + 2*c.counts.whole
	if c.counts.updates > allowed {
		return c.calm("window updates", c.counts.updates, allowed)
	}
	if f.Stream == 0 {
		if c.sendWindow += int64(f.Value); c.sendWindow > windowMax {
			return connectionError(FlowControlError, "window of %d bytes", c.sendWindow)
		}
		return nil
	}
	s, err := c.streamFor(f)
	if s == nil || err != nil {
		return err
	}
	if s.sendWindow += int64(f.Value); s.sendWindow > windowMax {
		return c.breach(s, FlowControlError, "window of %d bytes", s.sendWindow)
	}
	c.wake(s)
	return nil
}

// wake puts a stream into the queue if it waits for its window only.
func (c *Conn) wake(s *stream) {
	if s.waits && s.sendWindow > 0 {
		c.queue.push(s)
	}
}

// resizeWindows obeys SETTINGS_INITIAL_WINDOW_SIZE (RFC 9113, 6.9.2).
func (c *Conn) resizeWindows(size uint32) error {
	if size > windowMax {
		return connectionError(FlowControlError, "initial window of %d bytes", size)
	}
	delta := int64(size) - c.peer.window
	c.peer.window = int64(size)
	if delta == 0 {
		return nil
	}
	for _, s := range c.streams {
		if !s.state.sends() {
			continue
		}
		if s.sendWindow += delta; s.sendWindow > windowMax {
			return connectionError(FlowControlError, "window of %d bytes", s.sendWindow)
		}
		c.wake(s)
	}
	return nil
}
