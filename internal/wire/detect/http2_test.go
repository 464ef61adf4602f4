package detect_test

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/detect"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// TestDetect_HTTP2 gives the preface byte by byte: it is known as soon as it can be, and
// no other protocol takes it.
func TestDetect_HTTP2(t *testing.T) {
	allowed := allProtocols | wire.SetOf(wire.GRPC)
	for n := 1; n <= len(http2.Preface); n++ {
		protocol, need, err := detect.Detect([]byte(http2.Preface[:n]), allowed)
		switch {
		case err != nil:
			t.Errorf("%d bytes: %v", n, err)
		case n < 8 && (protocol != wire.Unknown || need <= n):
			t.Errorf("%d bytes: %v, needs %d", n, protocol, need)
		case n >= 8 && protocol != wire.GRPC:
			t.Errorf("%d bytes: %v", n, protocol)
		}
	}
	if protocol, _, err := detect.Detect([]byte(http2.Preface), allProtocols); err == nil {
		t.Errorf("where it is not allowed: %v", protocol)
	}
	if protocol, _, err := detect.Detect([]byte("PRI * GTTP"), allowed); err == nil {
		t.Errorf("what only looks like it: %v", protocol)
	}
	if protocol, _, err := detect.Detect([]byte(http2.Preface), wire.SetOf(wire.GRPC)); protocol != wire.GRPC {
		t.Errorf("where nothing else is allowed: %v, %v", protocol, err)
	}
}
