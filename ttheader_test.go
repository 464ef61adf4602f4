package fulmar_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// What raw peers need to speak TTHeader.

// eachHeaded runs a test with every protocol that has headers.
func eachHeaded(t *testing.T, test func(t *testing.T, protocol fulmar.Protocol)) {
	for _, protocol := range []fulmar.Protocol{fulmar.TTHeader, fulmar.TTHeaderFramed} {
		t.Run(protocol.String(), func(t *testing.T) { test(t, protocol) })
	}
}

// headed returns a message behind a TTHeader. The message may be framed.
func headed(t *testing.T, head ttheader.Head, message []byte) []byte {
	t.Helper()
	size, err := head.Size()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, size, size+len(message))
	head.Put(b, len(message))
	return append(b, message...)
}

// flagged is the header of a peer that takes replies in any order.
func flagged(sequence int32) ttheader.Head {
	return ttheader.Head{Flags: wire.FlagOutOfOrder, Sequence: sequence}
}

// ours is flagged of a peer of our own kind.
func ours(sequence int32) ttheader.Head {
	head := flagged(sequence)
	head.Strings = pairs(wire.Capabilities, "mux")
	return head
}

// pairs returns a string map, from keys and values in turn.
func pairs(texts ...string) []ttheader.Pair {
	var list []ttheader.Pair
	for pair := range slices.Chunk(texts, 2) {
		list = append(list, ttheader.Pair{Key: pair[0], Value: pair[1]})
	}
	return list
}

// headedMessage is what a raw peer reads.
type headedMessage struct {
	wire.Message
	strings map[string]string
	ints    map[uint16]string
}

// nextHeaded reads one message behind a TTHeader.
func nextHeaded(r io.Reader) (headedMessage, error) {
	frame := make([]byte, 4)
	if _, err := io.ReadFull(r, frame); err != nil {
		return headedMessage{}, err
	}
	frame = append(frame, make([]byte, binary.BigEndian.Uint32(frame))...)
	if _, err := io.ReadFull(r, frame[4:]); err != nil {
		return headedMessage{}, err
	}
	message, used, _, err := ttheader.Next(frame, limits.DefaultMessage())
	if err = errors.Join(err, message.Invalid); err != nil {
		return headedMessage{}, err
	}
	if used != len(frame) {
		return headedMessage{}, fmt.Errorf("%d of %d bytes are a message", used, len(frame))
	}
	read := headedMessage{Message: message, strings: map[string]string{}, ints: map[uint16]string{}}
	for key, value := range message.Info.Strings() {
		read.strings[string(key)] = string(value)
	}
	for key, value := range message.Info.Ints() {
		read.ints[key] = string(value)
	}
	return read, nil
}

// readHeaded is nextHeaded where there must be a message.
func readHeaded(t *testing.T, r io.Reader) headedMessage {
	t.Helper()
	read, err := nextHeaded(r)
	if err != nil {
		t.Fatalf("reading a message with TTHeader: %v", err)
	}
	return read
}

// wantHeadedSum reads a reply to add with that sequence id in header and
// payload.
func wantHeadedSum(t *testing.T, r io.Reader, sequence, sum int32) headedMessage {
	t.Helper()
	read := readHeaded(t, r)
	var result testservice.EchoAddResult
	if err := thrift.Unmarshal(read.Body, &result); err != nil {
		t.Fatal(err)
	}
	if got, _ := result.Success.Get(); read.Type != thriftwire.Reply || string(read.Name) != "add" || read.Sequence != sequence || read.HeaderSequence != sequence || read.Flags != 0 || got != sum {
		t.Errorf("got %v %q %d (%d in the header, flags %#x) with %d; want the reply %d with %d",
			read.Type, read.Name, read.Sequence, read.HeaderSequence, read.Flags, got, sequence, sum)
	}
	return read
}

// wantHeadedException reads an exception and returns it.
func wantHeadedException(t *testing.T, r io.Reader, sequence int32) (headedMessage, thriftwire.ApplicationException) {
	t.Helper()
	read := readHeaded(t, r)
	exception, err := thriftwire.ParseApplicationException(read.Body)
	if err != nil {
		t.Fatal(err)
	}
	if read.Type != thriftwire.Exception || read.HeaderSequence != sequence {
		t.Errorf("got %v %d with %q; want the exception %d", read.Type, read.HeaderSequence, exception.Message, sequence)
	}
	return read, exception
}

// sumBody is the body of the reply to add.
func sumBody(t *testing.T, sum int32) []byte {
	t.Helper()
	return body(t, &testservice.EchoAddResult{Success: thrift.Some(sum)})
}

// withFake runs test in a bubble, with a client whose connections lead to a peer
// that serve plays, each on a goroutine of its own and closed afterwards. around
// may put something around the client's ends of them.
func withFake(t *testing.T, on simnet.Config, config fulmar.ClientConfig, serve func(conn net.Conn), test func(client *fulmar.Client), around ...func(net.Conn) net.Conn) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		network := simnet.New(on)
		config.Dial = func(ctx context.Context, kind, address string) (net.Conn, error) {
			conn, err := network.Dial(ctx, kind, address)
			if err != nil {
				return nil, err
			}
			for _, wrap := range around {
				conn = wrap(conn)
			}
			return conn, nil
		}
		withFakeOn(t, network, config, serve, test)
	})
}

// withFakeOn is withFake in a bubble that there is, with a Dial of its own.
func withFakeOn(t *testing.T, network *simnet.Network, config fulmar.ClientConfig, serve func(conn net.Conn), test func(client *fulmar.Client)) {
	t.Helper()
	listener, err := network.Listen(simAddress)
	if err != nil {
		t.Fatal(err)
	}
	var peers sync.WaitGroup
	peers.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			peers.Go(func() {
				serve(conn)
				_ = conn.Close()
			})
		}
	})
	config.Target = simAddress
	client, err := fulmar.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	test(client)
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	_ = listener.Close()
	peers.Wait()
}

// reply returns the answer to a call, from a peer that shares connections.
func reply(t *testing.T, call headedMessage, body []byte, keys ...string) []byte {
	t.Helper()
	head := ttheader.Head{Sequence: call.HeaderSequence, Strings: append(pairs(wire.Capabilities, "mux"), pairs(keys...)...)}
	return headed(t, head, message(thriftwire.Reply, string(call.Name), call.Sequence, body))
}

// heapGrowth returns how much more memory is in use after act, in bytes.
func heapGrowth(act func()) int64 {
	inUse := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := inUse()
	act()
	return inUse() - before
}
