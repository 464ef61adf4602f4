package simnet_test

import (
	"io"
	"syscall"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/simnet"
)

// TestNetwork_Linger: with a linger of 0 an end is a reset, as with TCP.
func TestNetwork_Linger(t *testing.T) {
	type lingerer interface{ SetLinger(seconds int) error }
	for seconds, want := range map[int]error{-1: io.EOF, 0: syscall.ECONNRESET, 1: io.EOF} {
		network := simnet.New(simnet.Config{})
		client, accepted := connect(t, network)
		if err := client.(lingerer).SetLinger(seconds); err != nil {
			t.Fatal(err)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		expectReadError(t, accepted, want)
		if err := client.(lingerer).SetLinger(0); err == nil {
			t.Error("SetLinger of a closed connection succeeds")
		}
		accepted.Close()
	}
}
