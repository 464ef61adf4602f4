package eventloop

import (
	"net"
	"sync/atomic"
)

// Stats are the counters of a Listener at one time. All but Open start at 0 when
// the Listener is made and only grow, so a rate is the difference of two Stats.
type Stats struct {
	// Accepted counts connections that were served, also those that are open
	// still. Open is how many these are.
	Accepted, Open uint64
	// Refused counts connections that were accepted and closed at once, because as many
	// were open as may be or the listener had just been stopped.
	Refused uint64
	// AcceptErrors counts accepts that failed.
	AcceptErrors uint64
	// WriteStalls counts connections that were closed because their peers took
	// no bytes for WriteStallTimeout or UserTimeout.
	WriteStalls uint64
	// Panics counts handlers and other functions of the configuration that
	// panicked or ended their goroutines.
	Panics uint64
	// Handshakes counts those of Config.TLS that succeeded, HandshakeErrors those that
	// failed, also because the peer does not speak TLS.
	Handshakes, HandshakeErrors uint64
	// BytesRead and BytesWritten count what all connections carried, in bytes
	// of the net.Conn: for TLS without what TLS adds.
	BytesRead, BytesWritten uint64
	// Loop is what EngineEpoll did, zero for others.
	Loop LoopStats
}

// LoopStats count what the goroutines do that poll. Events / Wakeups is how much
// comes at once: 1 on an idle server, more under load. Many Parks beside few
// Wakeups mean that there is little to do. Reads and Writes for each message say
// whether messages travel together. A steady rate of Rescues says that handlers
// wait, or compute for long, on goroutines that poll. Each costs about 20 us: if
// there are many for the messages, DispatchSpawn may cost less.
type LoopStats struct {
	// Wakeups counts polls that brought events, Events how many these were. Parks
	// counts waits of a goroutine without events, Spins those before which it
	// looked again and again for up to SpinTime.
	Wakeups, Events, Parks, Spins uint64
	// Coalesced counts waits of a busy goroutine that slept for CoalesceTime, so that
	// events gathered.
	Coalesced uint64
	// Reads and Writes count system calls.
	Reads, Writes uint64
	// Spawned counts connections that were handed to other goroutines, because
	// their handler had to run there.
	Spawned uint64
	// Rescues counts how often another goroutine took over from one whose handler
	// kept it from polling, Released how often it did because that handler was about
	// to wait for its own connection, said with WillWait that it would wait, had let
	// go of a connection that others changed or closed, or ended its goroutine.
	Rescues, Released uint64
	// Buffers is how many read buffers there are now. Unlike the others
	// it can become less.
	Buffers uint64
}

type counters struct {
	accepted, refused, acceptErrors, writeStalls, panics, bytesRead, bytesWritten atomic.Uint64
	wakeups, events, parks, spins, coalesced, reads, writes                       atomic.Uint64
	spawned, rescues, released                                                    atomic.Uint64
	buffers                                                                       atomic.Int64
	handshakes, handshakeErrors                                                   atomic.Uint64
}

// Stats returns the counters, also after the end of the Listener. Each is exact,
// but they are read one after the other: what happens meanwhile may be in some
// of them only.
func (l *Listener) Stats() Stats {
	l.mu.Lock()
	open := l.connections.count
	l.mu.Unlock()
	return Stats{
		Accepted:     l.stats.accepted.Load(),
		Open:         uint64(open),
		Refused:      l.stats.refused.Load(),
		AcceptErrors: l.stats.acceptErrors.Load(),
		WriteStalls:  l.stats.writeStalls.Load(),
		Panics:       l.stats.panics.Load(),
		Handshakes:   l.stats.handshakes.Load(), HandshakeErrors: l.stats.handshakeErrors.Load(),
		BytesRead:    l.stats.bytesRead.Load(),
		BytesWritten: l.stats.bytesWritten.Load(),
		Loop: LoopStats{
			Wakeups: l.stats.wakeups.Load(),
			Events:  l.stats.events.Load(),
			Parks:   l.stats.parks.Load(),
			Spins:   l.stats.spins.Load(), Coalesced: l.stats.coalesced.Load(),
			Reads:   l.stats.reads.Load(),
			Writes:  l.stats.writes.Load(),
			Spawned: l.stats.spawned.Load(),
			Rescues: l.stats.rescues.Load(), Released: l.stats.released.Load(),
			Buffers: uint64(max(l.stats.buffers.Load(), 0)),
		},
	}
}

// --- what is counted and logged ---

// panicked tells what a user's function did to its goroutine. It is called
// before the stack of the panic is gone.
func (l *Listener) panicked(c *Conn, err error) {
	l.stats.panics.Add(1)
	l.log.ErrorWithStack("eventloop: a function of the user failed", "peer", text(c.RemoteAddr()), "reason", err.Error())
}

// stalled tells that the peer of a connection takes nothing.
func (l *Listener) stalled(c *Conn, err error) {
	l.stats.writeStalls.Add(1)
	// Which limit it was is in the error.
	l.log.Warn("eventloop: connection closed: the peer takes no bytes", "peer", text(c.RemoteAddr()), "reason", err.Error())
}

// text is an address for the log. A foreign net.Conn may have none.
func text(addr net.Addr) string {
	if addr == nil {
		return "unknown"
	}
	return addr.String()
}
