//go:build unix

package eventloop_test

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fulmar-rpc/fulmar/eventloop"
)

// TestListener_FileDoesNotBlock: os/exec asks the file for its descriptor, and what blocks
// then is the socket of the Listener.
func TestListener_FileDoesNotBlock(t *testing.T) {
	for network, address := range map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(t.TempDir(), "socket")} {
		t.Run(network, func(t *testing.T) {
			s := serveNetwork(t, network, address, eventloop.Config{}, echoLines)
			file, err := s.File()
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			flags, err := unix.FcntlInt(file.Fd(), unix.F_GETFL, 0)
			if err != nil {
				t.Fatal(err)
			}
			if flags&unix.O_NONBLOCK == 0 {
				t.Error("the socket blocks")
			}
			conn := s.connect()
			send(t, conn, "first\n")
			expect(t, conn, "first\n")
		})
	}
}
