package fulmar_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// readSequence reads one message behind a TTHeader and returns the sequence id
// of the header.
func readSequence(t *testing.T, r io.Reader) int32 {
	t.Helper()
	head := make([]byte, 14)
	if _, err := io.ReadFull(r, head); err != nil {
		t.Fatalf("reading a reply: %v", err)
	}
	if _, err := io.CopyN(io.Discard, r, int64(binary.BigEndian.Uint32(head))-10); err != nil {
		t.Fatalf("reading a reply: %v", err)
	}
	return int32(binary.BigEndian.Uint32(head[8:]))
}

// TestServer_TellsPeersOfItsStop: a peer that multiplexes gets a control packet,
// with sequence id 0. Peers of our own get it at once; others behind the answer
// to their last call, because Kitex 0.16.3 fails all calls over it.
func TestServer_TellsPeersOfItsStop(t *testing.T) {
	// Flag 0001, sequence id 7, and no pairs or "fulmar-caps" = "mux".
	const kitex, ours = "1000 0001 00000007 0001 0000 0000", "1000 0001 00000007 0006 0000 01 0001 000b 66756c6d61722d63617073 0003 6d7578 00"
	for name, test := range map[string]struct {
		head  string
		order []int32
	}{"a peer like Kitex": {kitex, []int32{7, 0}}, "one of ours": {ours, []int32{0, 7}}} {
		t.Run(name, func(t *testing.T) {
			header, err := hex.DecodeString(strings.ReplaceAll(test.head, " ", ""))
			if err != nil {
				t.Fatal(err)
			}
			stub := &testservice.Stub{}
			simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, stub, func(s *simulation) {
				started, finish := make(chan struct{}), make(chan struct{})
				stub.OnNothing = func(context.Context) error {
					close(started)
					<-finish
					return nil
				}
				call := append(header, message(thriftwire.Call, "nothing", 7, []byte{0})...)
				conn := s.connect()
				write(t, conn, frame(call))
				<-started
				s.stop()
				time.Sleep(100 * time.Millisecond) // The stop has begun.
				close(finish)
				replies := bytes.Buffer{}
				if _, err := io.Copy(&replies, conn); err != nil {
					t.Fatal(err)
				}
				for _, want := range test.order {
					if got := readSequence(t, &replies); got != want {
						t.Errorf("sequence id %d, want %d", got, want)
					}
				}
				if replies.Len() > 0 {
					t.Errorf("and then % x", replies.Bytes())
				}
				_ = conn.Close()
			})
		})
	}
}
