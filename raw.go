package fulmar

import (
	"errors"
	"fmt"
	"strings"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// Raw is the body of a message as it is on the wire. In Protobuf (PayloadProtobuf) it
// is the message itself, and an empty one has no bytes. In Thrift it is the struct of a call's
// arguments or of its result in the Binary protocol, without the header of the
// message. A struct without fields is one zero byte, and so is the result of a
// method that returns nothing. The result of a call holds a value as its field 0,
// or a declared exception as another one; who passes it on needs to know neither.
// Business errors and all others are errors of the call, as with any method.
//
// A *Raw is request and reply of methods that RawMethod describes, and what
// interceptors see of calls for ServerConfig.UnknownHandler.
//
// Bytes that are sent must never be changed again if they are 32 KiB
// (LinkedStringBytes) or more: these are sent from where they are, and may be on
// their way still when the call has ended. Shorter ones are copied, and are the
// caller's again when Call has returned. A reply that Call has filled in belongs
// to its caller, who may send it on.
type Raw []byte

// RawMethod describes a method to Client.Call that takes and gives its arguments
// and its result as *Raw, so that any method of any service can be called without
// generated code. A oneway method has no reply: it is nil. The service may be
// empty if the server needs none to find the method.
//
// The names are those of the IDL, without a colon, which separates the two if
// ClientConfig.QualifiedNames is set. Together they have at most 1 KiB
// (MethodNameBytes).
func RawMethod(service, method string, oneway bool) (*MethodDesc, error) {
	return newRawMethod(service, method, oneway, PayloadThrift)
}

// RawProtobufMethod is RawMethod for a method whose argument and result are Protobuf
// messages. The client's protocol must not be Bare: with GRPC the server is any of gRPC, and
// service is its full name, "shop.v1.Orders"; with the others it is one of Kitex, or a proxy
// for it, which calls this Kitex-Protobuf, and TTHeader is sent as TTHeaderFramed. A server
// that registers the method serves calls in Protobuf with it, and none in Thrift.
func RawProtobufMethod(service, method string, oneway bool) (*MethodDesc, error) {
	return newRawMethod(service, method, oneway, PayloadProtobuf)
}

func newRawMethod(service, method string, oneway bool, payload PayloadCodec) (*MethodDesc, error) {
	if method == "" {
		return nil, errors.New("fulmar: RawMethod: the name of the method is empty")
	}
	if err := checkRawName("method", method); err != nil {
		return nil, err
	}
	if service != "" {
		if err := checkRawName("service", service); err != nil {
			return nil, err
		}
	}
	if n := len(service) + len(":") + len(method); n > limits.MethodNameBytes {
		return nil, fmt.Errorf("fulmar: RawMethod: the names of service and method have %d bytes together (limit %d)", n, limits.MethodNameBytes)
	}
	return &MethodDesc{Service: service, Name: method, Oneway: oneway, Codec: rawCodec{payload}, NewRequest: newRaw}, nil
}

func newRaw() any { return new(Raw) }

// checkRawName refuses a name that no server could be asked for.
func checkRawName(what, name string) error {
	if err := thriftwire.CheckName([]byte(name)); err != nil {
		return fmt.Errorf("fulmar: RawMethod: the %s %.80q cannot be called: not UTF-8, or with a control character", what, name)
	}
	if strings.Contains(name, ":") {
		return fmt.Errorf("fulmar: RawMethod: the %s %.80q has a colon: give service and method apart, and see ClientConfig.QualifiedNames", what, name)
	}
	return nil
}

// rawCodec passes bodies through.
type rawCodec struct{ payload PayloadCodec }

var _ Codec = rawCodec{}

// isRaw reports whether the messages of a method are *Raw.
func (m *MethodDesc) isRaw() bool {
	_, raw := m.Codec.(rawCodec)
	return raw
}

// AppendBody implements Codec. It copies what is shorter than LinkedStringBytes,
// because it may be lent, and links the rest, which must not change.
func (c rawCodec) AppendBody(out *linkbuf.Buffer, body any, m limits.Message) error {
	raw, ok := body.(*Raw)
	switch {
	case !ok || raw == nil:
		return fmt.Errorf("fulmar: %T is not a *fulmar.Raw that is set, as raw calls take", body)
	case len(*raw) == 0 && c.payload == PayloadThrift:
		return errors.New("fulmar: the raw body is empty; a struct without fields is one zero byte")
	case m.HeadBytes+len(*raw) > m.Bytes:
		return &thriftwire.Error{Kind: thriftwire.LimitExceeded, Offset: -1, Detail: fmt.Sprintf(
			"message of %d bytes (limit %d)", m.HeadBytes+len(*raw), m.Bytes)}
	case len(*raw) < limits.LinkedStringBytes:
		out.Append(*raw)
	default:
		out.Insert(*raw)
	}
	return nil
}

// ReadBody implements Codec.
func (rawCodec) ReadBody(in []byte, body any, _ limits.Message, mayRefer bool) (refers bool, err error) {
	raw, ok := body.(*Raw)
	if !ok || raw == nil {
		return false, fmt.Errorf("fulmar: %T is not a *fulmar.Raw that is set, as raw calls take", body)
	}
	if !mayRefer {
		*raw = append(Raw(nil), in...)
		return false, nil
	}
	*raw = in[:len(in):len(in)]
	return true, nil
}

// checkUnframed refuses a raw body whose struct does not end where its bytes do, for
// a protocol that has no other way to find the end: what is behind it would be read
// as a message of its own, which somebody else has written.
func checkUnframed(protocol Protocol, body any, m limits.Message) error {
	raw, ok := body.(*Raw)
	if protocol != Bare || !ok || raw == nil || len(*raw) == 0 {
		return nil
	}
	end, err := thriftwire.Skip(*raw, thriftwire.Struct, m.Depth, m.Depth)
	switch {
	case err != nil:
		return fmt.Errorf("the raw body is no struct, which bare Thrift needs: %w", err)
	case end != len(*raw):
		return &thriftwire.Error{Kind: thriftwire.Malformed, Offset: end, Detail: fmt.Sprintf(
			"%d bytes follow the end of the raw body's struct", len(*raw)-end)}
	}
	return nil
}
