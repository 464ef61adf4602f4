package fulmar_test

import (
	"context"
	"net"
	"syscall"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// hasEnded looks, without waiting, whether the peer of a connection from which nothing
// is unread has closed it.
func hasEnded(t *testing.T, conn *net.TCPConn) bool {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var n int
	controlErr := raw.Control(func(fd uintptr) {
		n, _, err = syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	})
	if controlErr != nil {
		t.Fatal(controlErr)
	}
	return n == 0 && err == nil
}

// TestServer_TheLastAnswerBringsTheEnd: who has read the answer that a stopping server
// gives, and looks at the connection before the next call, sees that it has ended. The
// system must deliver both together, so the sockets are real. A connection that is told
// shows when the stop has begun.
func TestServer_TheLastAnswerBringsTheEnd(t *testing.T) {
	for name, wait := range map[string]bool{"of a call that ran": true, "of a call that came": false} {
		t.Run(name, func(t *testing.T) {
			for range 20 {
				started, finish := make(chan struct{}), make(chan struct{})
				stub := adder()
				stub.OnVersion = func(context.Context) (string, error) {
					close(started)
					<-finish
					return "", nil
				}
				r := serve(t, fulmar.ServerConfig{}, stub)
				told, conn := connect(t, r.address), connect(t, r.address)
				write(t, told, headed(t, ours(1), addCall(t, 1, 1, 2)))
				wantHeadedSum(t, told, 1, 3)
				write(t, conn, frame(addCall(t, 1, 1, 2)))
				wantSum(t, conn, 1, 3)
				if wait {
					write(t, conn, frame(versionCall()))
					<-started
				}
				stopped := make(chan error, 1)
				go func() { stopped <- r.stop() }()
				wantControl(t, told)
				_ = told.Close()
				close(finish)
				if wait {
					readFrame(t, conn)
				} else {
					write(t, conn, frame(addCall(t, 2, 3, 4)))
					wantSum(t, conn, 2, 7)
				}
				if !hasEnded(t, conn) {
					t.Fatal("the last answer came without the end")
				}
				_ = conn.Close()
				if err := <-stopped; err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func versionCall() []byte { return message(thriftwire.Call, "version", 2, []byte{0}) }
