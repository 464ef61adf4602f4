//go:build unix && !linux

package eventloop

import "syscall"

// readSpin is for Linux only, where it was measured.
type readSpin struct{ room []byte }

func newReadSpin(*Config) *readSpin { return nil }

func (*readSpin) again(int, []byte) (int, error) { return 0, syscall.EAGAIN }

func (*readSpin) over() {}

// retryRead reads what is there.
func retryRead(fd int, p []byte) (int, error) {
	for {
		n, err := syscall.Read(fd, p)
		if err != syscall.EINTR {
			return n, err
		}
	}
}
