package detect_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/detect"
)

// TestDetect_SaysTLSOfEveryClientHello: of each length that a record may have, also
// where its last byte and the type behind it look like the version of a Thrift message
// (0x80) or of Kitex-Protobuf (0x90); as soon as it is certain, and not before.
func TestDetect_SaysTLSOfEveryClientHello(t *testing.T) {
	for length := 64; length <= 16<<10; length++ {
		hello := []byte{0x16, 3, 1, 0, 0, 1, 0, 0, 0, 3, 3}
		binary.BigEndian.PutUint16(hello[3:], uint16(length))
		binary.BigEndian.PutUint16(hello[7:], uint16(length-4))
		var err error
		have := 1
		for need := 0; err == nil && have <= len(hello); have++ {
			var protocol wire.Protocol
			protocol, need, err = detect.Detect(hello[:have], allProtocols)
			if protocol != wire.Unknown || err == nil && need <= have {
				t.Fatalf("%d bytes of % x: %v, need %d", have, hello, protocol, need)
			}
		}
		if err == nil || !strings.Contains(err.Error(), ": TLS, not enabled") {
			t.Fatalf("% x: %v", hello, err)
		}
	}
}

// TestDetect_FramesAsLongAsTLSLooks are messages, where the limit allows them: a frame of
// 352 MiB begins with the bytes of a TLS record.
func TestDetect_FramesAsLongAsTLSLooks(t *testing.T) {
	for _, version := range []byte{0x80, 0x90} {
		header := []byte{0x16, 3, 1, 2, version, 1, 0, 1, 0, 0, 0, 4, 'E', 'c', 'h', 'o', 0, 0, 0, 7}
		m := limits.DefaultMessage()
		m.Bytes = 1 << 30
		decoder := detect.NewDecoder(allProtocols, m)
		if _, used, need, err := decoder.Next(bytes.Clone(header)); err != nil || used != 0 || need != 4+0x16030102 {
			t.Errorf("version %#x: used %d, need %d, %v", version, used, need, err)
		}
	}
}
