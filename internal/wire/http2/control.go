package http2

import (
	"encoding/binary"
	"slices"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// timing is what a connection waits for.
type timing struct {
	lastArrival Nanoseconds
	// settingsWait: our settings were sent and not acknowledged.
	settingsSent Nanoseconds
	settingsWait bool
	// probeWait: those of Probe were, which set nothing.
	probeWait bool
	// pingWait: the ping with pingNumber is on its way.
	pingSent   Nanoseconds
	pingNumber uint64
	pingWait   bool
	// roundTrip is what acknowledgements took, 0 as long as nobody knows.
	roundTrip Nanoseconds
}

// goingAway is how far the end of a connection has come.
type goingAway struct {
	// stopping: the first GOAWAY is sent, goneAway: the last one is.
	stopping, goneAway bool
	stopBegan          Nanoseconds
	// stopPing is the number of the ping whose answer shows that the first GOAWAY arrived,
	// 0 as long as another one is on its way.
	stopPing uint64
	// peerGone: the peer's came, which takes no stream above peerLast.
	peerGone bool
	peerLast uint32
}

// settings obeys SETTINGS (RFC 9113, 6.5).
func (c *Conn) settings(f *Frame, now Nanoseconds) (Event, error) {
	if f.Flags.Has(FlagAck) {
		switch {
		case c.settingsWait:
		case c.probeWait:
			c.probeWait = false
			return Event{Kind: EventPong}, nil
		default:
			return Event{}, c.countOther()
		}
		c.settingsWait = false
		c.settleWindows()
		c.measured(now - c.settingsSent)
		return Event{}, nil
	}
	if n := f.Settings(); n > limits.HTTP2Settings {
		return Event{}, c.calm("settings in a frame", n, limits.HTTP2Settings)
	}
	if c.peer.settled {
		if err := c.countOther(); err != nil {
			return Event{}, err
		}
	} else {
		c.peer.settled = true
		c.peer.streams = windowMax // As long as none is named, there is no limit.
	}
	size := c.peer.window
	for i := range f.Settings() {
		id, value := f.Setting(i)
		if id == SettingInitialWindowSize {
			if value > windowMax {
				return Event{}, connectionError(FlowControlError, "initial window of %d bytes", value)
			}
			// Only the last one is applied: each goes through all streams.
			size = int64(value)
			continue
		}
		if err := c.setting(id, value); err != nil {
			return Event{}, err
		}
	}
	if err := c.resizeWindows(uint32(size)); err != nil {
		return Event{}, err
	}
	c.control++
	appendSettingsAck(c.out)
	return Event{Kind: EventSettings}, nil
}

// setting obeys one setting (RFC 9113, 6.5.2). Unknown ones are passed over.
func (c *Conn) setting(id SettingID, value uint32) error {
	switch id {
	case SettingHeaderTableSize:
		c.writer.SetTable(value)
	case SettingEnablePush:
		if value > 1 || value == 1 && c.config.client {
			return connectionError(ProtocolError, "ENABLE_PUSH of %d", value)
		}
	case SettingMaxConcurrentStreams:
		c.peer.streams = value
	case SettingMaxFrameSize:
		if value < FrameBytesMin || value > FrameBytesMax {
			return connectionError(ProtocolError, "MAX_FRAME_SIZE of %d", value)
		}
		// Frames of ours stay short, so that streams take turns.
	case SettingMaxHeaderListSize:
		c.peer.listBytes = value
	}
	return nil
}

// measured learns from how long an answer took. What is faster counts at once, what
// is slower may have waited for something else than the network.
func (c *Conn) measured(took Nanoseconds) {
	took = max(took, 1)
	if c.roundTrip == 0 || took < c.roundTrip {
		c.roundTrip = took
	} else {
		c.roundTrip += (took - c.roundTrip) / 8
	}
}

// ping answers PING (RFC 9113, 6.7).
func (c *Conn) ping(f *Frame, now Nanoseconds) (Event, error) {
	number := binary.BigEndian.Uint64(f.Payload)
	if f.Flags.Has(FlagAck) {
		if !c.pingWait || number != c.pingNumber {
			return Event{}, c.countOther()
		}
		c.pingWait = false
		c.measured(now - c.pingSent)
		switch {
		case !c.stopping || c.goneAway:
		case c.stopPing == number:
			c.lastGoAway()
		default:
			c.pingToStop(now)
		}
		return Event{Kind: EventPong}, nil
	}
	if err := c.countPing(now); err != nil {
		return Event{}, err
	}
	c.control++
	appendPing(c.out, FlagAck, number)
	return Event{}, nil
}

// Ping asks the peer for a sign of life, which is EventPong, and reports whether it
// did: not as long as an answer is awaited.
func (c *Conn) Ping(now Nanoseconds) bool {
	if c.pingWait || c.err != nil {
		return false
	}
	c.pingNumber++
	c.pingWait, c.pingSent = true, now
	appendPing(c.out, 0, c.pingNumber)
	return true
}

// Probe asks the peer for a sign of life, which is EventPong, with SETTINGS that set nothing:
// everybody has to answer them (RFC 9113, 6.5.3), and nobody takes them for too many pings, as
// grpc-go does the fourth within five minutes in which it has nothing to say. It does not ask as
// long as another answer is awaited.
func (c *Conn) Probe() {
	if c.settingsWait || c.probeWait || c.pingWait || c.err != nil {
		return
	}
	c.probeWait = true
	appendSettings(c.out, nil)
}

// Tick does what is due, and returns when it has to be called again, 0 if nothing is
// awaited. It may be called at any time. An error ends the connection, as of Next.
func (c *Conn) Tick(now Nanoseconds) (next Nanoseconds, err error) {
	if c.err != nil {
		return 0, c.err
	}
	const answer = Nanoseconds(limits.HTTP2AnswerTimeout)
	due := func(at Nanoseconds) bool {
		if now >= at {
			return true
		}
		if next == 0 || at < next {
			next = at
		}
		return false
	}
	// As long as the peer is not read, its answers are not either: how long it may leave
	// what was sent to it unread is for whoever writes.
	reads := !c.congested()
	if reads && c.settingsWait && due(c.settingsSent+answer) {
		return 0, c.fail(connectionError(SettingsTimeout, "no answer to our settings"))
	}
	// Anything that arrives is a sign.
	if reads && c.pingWait && due(max(c.pingSent, c.lastArrival)+answer) {
		return 0, c.fail(connectionError(NoError, "no sign of life"))
	}
	if c.stopping && !c.goneAway && due(c.stopBegan+Nanoseconds(limits.StopGrace)) {
		c.lastGoAway()
	}
	if c.config.pingAfter > 0 && c.open > 0 && !c.pingWait && due(c.lastArrival+c.config.pingAfter) {
		c.Ping(now)
		due(c.pingSent + answer)
	}
	return next, nil
}

// Shutdown begins the end of a connection. A server tells its client to begin no more
// streams, and only when that must have arrived, by the answer to a ping or after
// StopGrace, which was the last that it served (RFC 9113, 6.8). So no request is lost
// that was on its way. Streams that there are go on.
func (c *Conn) Shutdown(now Nanoseconds) {
	if c.stopping || c.err != nil {
		return
	}
	c.stopping, c.stopBegan = true, now
	if c.config.client {
		// There are no streams of the server's that could be on their way.
		c.lastGoAway()
		return
	}
	appendGoAway(c.out, windowMax, NoError, "graceful stop")
	c.pingToStop(now)
}

// pingToStop asks whether the first GOAWAY arrived, unless an answer to an earlier
// question is awaited, which would not say that.
func (c *Conn) pingToStop(now Nanoseconds) {
	if c.Ping(now) {
		c.stopPing = c.pingNumber
	}
}

func (c *Conn) lastGoAway() {
	c.goneAway = true
	last := uint32(0)
	if !c.config.client {
		last = c.history.newest
	}
	appendGoAway(c.out, last, NoError, "graceful stop")
}

// Done reports whether one side has said that it goes away and no streams are left:
// what waits is to be sent, then the connection can be closed.
func (c *Conn) Done() bool {
	return (c.goneAway || c.peerGone && c.config.client) && len(c.streams) == 0 || c.err != nil
}

// goAway obeys GOAWAY (RFC 9113, 6.8).
func (c *Conn) goAway(f *Frame) (Event, error) {
	if c.peerGone {
		if err := c.countOther(); err != nil {
			return Event{}, err
		}
	}
	last := f.Value
	if c.peerGone {
		// It must not rise. What it said first about streams was told already.
		last = min(last, c.peerLast)
	}
	c.peerGone, c.peerLast = true, last
	if c.config.client {
		for id, s := range c.streams {
			if id > last && s.state != stateClosed {
				c.closeStream(s)
				// The server may still send something for it, which then crossed this.
				c.history.reset(id)
				c.lost = append(c.lost, id)
			}
		}
		slices.Sort(c.lost) // A map has no order, and tests want one.
	}
	return Event{Kind: EventGoAway, Last: last, Code: f.Code, Data: f.Payload}, nil
}

// nextLost returns a stream that the peer's GOAWAY ended, which it has not looked at. Not
// one that was released meanwhile.
func (c *Conn) nextLost() (Event, bool) {
	for len(c.lost) > 0 {
		id := c.lost[0]
		c.lost = c.lost[1:]
		if s := c.streams[id]; s != nil {
			return Event{Kind: EventReset, Stream: id, Value: s.value, Code: RefusedStream, NotExecuted: !s.answered}, true
		}
	}
	c.lost = nil
	return Event{}, false
}
