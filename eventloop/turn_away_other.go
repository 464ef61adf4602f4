//go:build !linux

package eventloop

import "net"

// turnAway does nothing: a connection that comes between the last accept and the end
// of the socket is reset.
func turnAway(net.Listener) {}

// someoneWaits is not told.
func someoneWaits(net.Listener) (waits, known bool) { return false, true }
