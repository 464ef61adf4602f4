//go:build !unix || aix

package eventloop

import "syscall"

// socketPeek is not available here: a socket cannot be looked at without
// waiting.
type socketPeek struct{}

func newSocketPeek(syscall.Conn) *socketPeek { return nil }

func (*socketPeek) look() error { return nil }
