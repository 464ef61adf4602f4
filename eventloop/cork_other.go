//go:build !linux

package eventloop

import "net"

// cork does nothing.
func cork(net.Conn) {}
