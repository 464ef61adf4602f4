//go:build unix && !linux

package eventloop

import "syscall"

// readSpin is for Linux only, where it was measured.
type readSpin struct{ room []byte }

func newReadSpin(*Config) *readSpin { return nil }

func (*readSpin) again(int, []byte) (int, error) { return 0, syscall.EAGAIN }

func (*readSpin) over() {}
