//go:build !unix

package eventloop

import "net"

// rawSource is not available here: the system reports that a read is done, not
// that a socket is readable. Connections wait inside a read.
type rawSource struct{}

func newRawSource(net.Conn, *Reader) *rawSource { return nil }

func newSpinningSource(*Conn) *rawSource { return nil }

func (*rawSource) fill() (int, error) { return 0, nil }

func (*rawSource) fillSpinning() (int, error) { return 0, nil }
