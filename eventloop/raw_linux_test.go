package eventloop

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRaw_AnErrorComesWithNoBytes: the system says -1, and the calls that the
// scheduler is told of pass that on. Added to what was written before, the naive
// version writes a byte twice, or waits for ever.
func TestRaw_AnErrorComesWithNoBytes(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range pair {
		defer func() { _ = unix.Close(fd) }()
	}
	long := make([]byte, 4*rawMost)
	for _, size := range []int{1, rawMost, rawMost + 1} {
		if n, err := receiveOnce(pair[0], long[:size]); n != 0 || err != unix.EAGAIN {
			t.Errorf("reading %d bytes where nothing is: %d, %v", size, n, err)
		}
	}
	full := false
	for range 1 << 10 {
		if _, err := sendOnce(pair[0], [][]byte{long}); err != nil {
			full = true
			break
		}
	}
	if !full {
		t.Fatal("a socket that nobody reads takes 1 GiB")
	}
	for name, pieces := range map[string][][]byte{
		"a piece": {long[:1]}, "pieces": {long[:1], long[:1]}, "a long piece": {long},
		"many pieces": bytes.SplitAfter(bytes.Repeat([]byte("x\n"), rawPieces+1), []byte("\n")),
	} {
		if n, err := sendOnce(pair[0], pieces); n != 0 || err != unix.EAGAIN {
			t.Errorf("writing %s to a full socket: %d, %v", name, n, err)
		}
	}
}
