package transport

import (
	"github.com/fulmar-rpc/fulmar/internal/wire"
)

// A server does not look at what arrives on a connection while as many calls of it run
// as may. A ping among that waits with the rest, and the client would take the server
// for dead although it is only busy. So the server says by itself that it is alive: to
// clients of ours, while a connection that they share is blocked and bytes wait there,
// whenever it looks at the connections' deadlines. That is every sweepInterval, which
// is enough for a PingAfter of a second, and 60 bytes each time.
//
// Refused: to read on to the ping. What lies before it may be all that ClientWaiting
// calls bring, and would have to be kept.
//
// The sign is the answer to a ping that nobody has sent, since its sequence id is that
// of control packets. It must not be a control packet: where a call has the connection
// to itself, that says that the server stops.

// signDueLocked reports whether the peer should hear that this side is alive. If answers
// wait for it, it hears of those, or does not listen.
func (c *serverConn) signDueLocked() bool {
	return c.unread && c.ours && c.multiplexed && !c.ordered && !c.gone && c.running > 0 && c.unsent == 0 && c.blockedLocked()
}

// sendSign says that this side is alive.
func (c *serverConn) sendSign() { c.sendUnasked(wire.PingMethod) }

// isSign reports whether a message is one that a server sends while it does not read.
func isSign(message *wire.Message) bool {
	return hasTTHeader(message.Protocol) && message.HeaderSequence == wire.ControlSequence && string(message.Name) == wire.PingMethod
}
