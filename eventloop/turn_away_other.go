//go:build !linux

package eventloop

import "net"

// turnAway does nothing: a connection that comes between the last accept and the end
// of the socket is reset.
func turnAway(net.Listener) {}

// someoneWaits does not know.
func someoneWaits(net.Listener) bool { return false }
