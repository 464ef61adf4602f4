package wire_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/apache/thrift/lib/go/thrift"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/framed"
)

// frameLimit is the message limit of both sides.
const frameLimit = 1000

func apacheConfig() *thrift.TConfiguration {
	return &thrift.TConfiguration{MaxFrameSize: frameLimit, TBinaryStrictRead: thrift.BoolPtr(true), TBinaryStrictWrite: thrift.BoolPtr(true)}
}

// apacheMessage is what Apache Thrift reads from a frame: the head of the
// message, and what follows it in the frame.
type apacheMessage struct {
	name        string
	messageType thrift.TMessageType
	sequence    int32
	body        []byte
}

// apacheRead reads the first frame of b. The transport gets no more than that:
// it would fill an unfinished message from the next frame.
func apacheRead(t *testing.T, b []byte) (apacheMessage, error) {
	t.Helper()
	if len(b) >= framed.HeaderSize {
		b = b[:min(int64(len(b)), framed.HeaderSize+int64(binary.BigEndian.Uint32(b)))]
	}
	memory := thrift.NewTMemoryBufferLen(len(b))
	if _, err := memory.Write(b); err != nil {
		t.Fatal(err)
	}
	transport := thrift.NewTFramedTransportConf(memory, apacheConfig())
	protocol := thrift.NewTBinaryProtocolConf(transport, apacheConfig())
	var message apacheMessage
	var err error
	message.name, message.messageType, message.sequence, err = protocol.ReadMessageBegin(t.Context())
	if err != nil {
		return message, err
	}
	message.body, err = io.ReadAll(io.LimitReader(transport, int64(transport.RemainingBytes())))
	return message, err
}

// compareFramed gives the first frame of b to both sides.
func compareFramed(t *testing.T, b []byte) verdict {
	t.Helper()
	m := limits.DefaultMessage()
	m.Bytes = frameLimit
	message, used, need, ourErr := framed.Next(b, m)
	read, theirErr := apacheRead(t, b)
	switch {
	case ourErr == nil && used == 0:
		if need <= len(b) {
			t.Fatalf("% x: we have %d bytes and need %d", b, len(b), need)
		}
		if theirErr == nil {
			t.Fatalf("% x: we wait for %d bytes, they have read %+v", b, need, read)
		}
		return bothWait
	case ourErr == nil && message.Payload == wire.PayloadProtobuf:
		if theirErr == nil {
			t.Fatalf("% x: they read %+v, for us it is Protobuf", b, read)
		}
		return bothRefuse // as Thrift
	case ourErr == nil && message.Invalid == nil:
		if theirErr != nil {
			t.Fatalf("% x: we accept, they say %v", b, theirErr)
		}
		if string(message.Name) != read.name || thriftwire.MessageType(read.messageType) != message.Type || message.Sequence != read.sequence || !bytes.Equal(message.Body, read.body) {
			t.Fatalf("% x:\nwe read   %q %v %d % x\nthey read %+v", b, message.Name, message.Type, message.Sequence, message.Body, read)
		}
		return bothAccept
	case theirErr != nil:
		return bothRefuse
	case len(read.name) <= limits.MethodNameBytes && read.messageType >= thrift.CALL && read.messageType <= thrift.ONEWAY:
		t.Fatalf("% x: they read %+v, we say %v, invalid %v", b, read, ourErr, message.Invalid)
	}
	return stricter // An unknown message type. No name is longer than frameLimit here.
}

// TestFramed_BothReadTheSame gives random and damaged frames to both sides.
func TestFramed_BothReadTheSame(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 25))
	counts := map[verdict]int{}
	for range rounds {
		frame := randomThrift(random)
		if random.IntN(2) == 0 {
			frame = damage(random, frame)
		}
		counts[compareFramed(t, frame)]++
	}
	t.Log(counts)
	for _, v := range []verdict{bothAccept, bothRefuse, bothWait, stricter} {
		if counts[v] < rounds/200 {
			t.Errorf("%q came up %d times in %d frames: the comparison says little about it", v, counts[v], rounds)
		}
	}
}

// TestFramed_BothWriteTheSame: the bytes are equal, so each reads what the other
// writes.
func TestFramed_BothWriteTheSame(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 25))
	for range rounds / 4 {
		name, messageType, sequence, body := randomText(random), thriftwire.MessageType(1+random.IntN(4)), int32(random.Uint32()), randomText(random)
		memory := thrift.NewTMemoryBuffer()
		transport := thrift.NewTFramedTransportConf(memory, apacheConfig())
		protocol := thrift.NewTBinaryProtocolConf(transport, apacheConfig())
		if err := protocol.WriteMessageBegin(t.Context(), name, thrift.TMessageType(messageType), sequence); err != nil {
			t.Fatal(err)
		}
		if _, err := transport.WriteString(body); err != nil {
			t.Fatal(err)
		}
		if err := protocol.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		size := thriftwire.AppendedHeaderSize(name)
		b := make([]byte, framed.HeaderSize+size)
		framed.PutHeader(b, size+len(body))
		thriftwire.PutHeader(b[framed.HeaderSize:], messageType, name, sequence)
		if b = append(b, body...); !bytes.Equal(b, memory.Bytes()) {
			t.Fatalf("we write   % x\nthey write % x", b, memory.Bytes())
		}
		if got := compareFramed(t, b); got != bothAccept {
			t.Fatalf("% x: %s", b, got)
		}
	}
}

// FuzzFramed compares both sides on whatever the fuzzer makes of good frames.
func FuzzFramed(f *testing.F) {
	random := rand.New(rand.NewPCG(9, 25))
	for range 8 {
		f.Add(randomThrift(random))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		compareFramed(t, b)
	})
}

// randomThrift returns a framed message that is good, but perhaps above the
// limit, with a body of any bytes, and something behind it.
func randomThrift(random *rand.Rand) []byte {
	name := randomText(random)
	message := binary.BigEndian.AppendUint32(nil, 0x80010000|uint32(random.IntN(6)))
	message = binary.BigEndian.AppendUint32(message, uint32(len(name)))
	message = append(message, name...)
	message = binary.BigEndian.AppendUint32(message, random.Uint32())
	bodies := []int{0, 1, random.IntN(40), random.IntN(40), random.IntN(2 * frameLimit)}
	for range bodies[random.IntN(len(bodies))] {
		message = append(message, byte(random.Uint32()))
	}
	b := append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)
	return append(b, make([]byte, random.IntN(8))...)
}
