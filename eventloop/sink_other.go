//go:build !linux

package eventloop

import "net"

func newRawSink(net.Conn, *Conn) sink { return noSink{} }
