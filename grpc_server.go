package fulmar

import (
	"errors"
	"slices"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// http2Protocol is what clients of gRPC offer in the TLS handshake (ALPN), and most of
// them insist on.
const http2Protocol = "h2"

// WithDetails returns a copy of e that tells a caller in gRPC more than its code and
// message: status is a google.rpc.Status in Protobuf, as status.Proto of grpc-go makes it,
// and should have the same code and message. It is copied. Other protocols do not carry it.
// If it is longer than 16 KiB (ErrorDetailsBytes), or than the caller takes, it is left out,
// and the message says so.
func (e *Error) WithDetails(status []byte) *Error {
	detailed := *e
	detailed.details = slices.Clone(status)
	return &detailed
}

// detailsOf returns the details of an error for its caller, nil if there are none.
func detailsOf(err error) []byte {
	var e *Error
	if errors.As(err, &e) && e != nil {
		return e.details
	}
	return nil
}

// pingAfter is when a client in gRPC is asked for a sign of life, 0 for never. Peers do not
// like it more often than every HTTP2PingInterval.
func pingAfter(config ServerConfig) time.Duration {
	after := limits.Or(config.PingAfter, limits.ServerPingAfter, 0)
	if after == 0 {
		return 0
	}
	return max(after, limits.HTTP2PingInterval)
}
