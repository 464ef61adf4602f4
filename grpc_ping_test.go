package fulmar_test

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// complain serves a connection as a server that answers no calls, and complains of pings that
// come before the connection has been there for patience.
func complain(conn net.Conn, patience time.Duration) {
	defer conn.Close()
	begun := time.Now()
	say := func(kind http2.FrameType, flags byte, payload []byte) {
		frame := make([]byte, http2.FrameHeaderSize, http2.FrameHeaderSize+len(payload))
		http2.PutFrameHeader(frame, len(payload), kind, http2.Flags(flags), 0)
		_, _ = conn.Write(append(frame, payload...))
	}
	say(http2.FrameSettings, 0, nil)
	if _, err := io.CopyN(io.Discard, conn, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
		return
	}
	head := make([]byte, http2.FrameHeaderSize)
	for {
		if _, err := io.ReadFull(conn, head); err != nil {
			return
		}
		payload := make([]byte, int(head[0])<<16|int(binary.BigEndian.Uint16(head[1:])))
		if _, err := io.ReadFull(conn, payload); err != nil {
			return
		}
		switch kind, ack := http2.FrameType(head[3]), head[4] == 1; {
		case ack:
		case kind == http2.FrameSettings:
			say(kind, 1, nil)
		case kind == http2.FramePing && time.Since(begun) < patience:
			goAway := binary.BigEndian.AppendUint32([]byte{0, 0, 0, 1}, uint32(http2.EnhanceYourCalm)) // it has seen stream 1
			say(http2.FrameGoAway, 0, append(goAway, "too_many_pings"...))
			return
		case kind == http2.FramePing:
			say(kind, 1, payload)
		}
	}
}

// TestGRPC_FewerPings: a server that complains of pings is asked half as often on each later
// connection, until that ends no streams any more. Others are asked as before.
func TestGRPC_FewerPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := simnet.New(simnet.Config{})
		complains := func(conn net.Conn) { complain(conn, 5*time.Minute) }
		serveEach(t, network, map[string]func(net.Conn){"strict:1": complains, "other:1": complains})
		const lasts = 20 * time.Minute
		config := fulmar.ClientConfig{Protocol: fulmar.GRPC, PingAfter: 20 * time.Second, MaxConnectionAge: -1, Dial: network.Dial}
		open := func(api testservice.FeedClient, want time.Duration) {
			swap, err := api.Swap(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer time.AfterFunc(lasts, swap.Cancel).Stop()
			begun := time.Now()
			_, err = swap.Recv()
			if took := time.Since(begun); took != want {
				t.Errorf("the stream has lasted for %v, want %v: %v", took, want, err)
			}
		}
		config.Target = "strict:1"
		strict := testservice.NewFeedClient(feedClient(t, config))
		for _, want := range []time.Duration{20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, lasts} {
			open(strict, want)
		}
		config.Target = "other:1"
		open(testservice.NewFeedClient(feedClient(t, config)), 20*time.Second)
	})
}
