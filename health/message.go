package health

import (
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// request is HealthCheckRequest, response HealthCheckResponse. They are no messages of the
// official generator: two packages that register messages of one name end a program at its
// start, and grpc-go has these.
type (
	request  struct{ service string }
	response struct{ status Status }
)

// Numbers of the one field that each has.
const (
	fieldService protowire.Number = 1
	fieldStatus  protowire.Number = 1
)

// codec is that of both messages, in Protobuf.
type codec struct{}

// EncodesProtobuf is how package fulmar knows.
func (codec) EncodesProtobuf() {}

// AppendBody implements fulmar.Codec.
func (codec) AppendBody(out *linkbuf.Buffer, body any, _ limits.Message) error {
	var b []byte
	switch message := body.(type) {
	case *request:
		if message.service != "" {
			b = protowire.AppendTag(b, fieldService, protowire.BytesType)
			b = protowire.AppendString(b, message.service)
		}
	case *response:
		if message.status != Unknown {
			b = protowire.AppendTag(b, fieldStatus, protowire.VarintType)
			b = protowire.AppendVarint(b, uint64(message.status))
		}
	default:
		return fmt.Errorf("health: %T is no message of this service", body)
	}
	out.Append(b)
	return nil
}

// ReadBody implements fulmar.Codec. It keeps no reference to in.
func (codec) ReadBody(in []byte, body any, _ limits.Message, _ bool) (refers bool, err error) {
	for offset := 0; offset < len(in); {
		number, kind, n := protowire.ConsumeTag(in[offset:])
		if n < 0 {
			return false, malformed(offset, "a field's number", n)
		}
		offset += n
		value := in[offset:]
		if n = protowire.ConsumeFieldValue(number, kind, value); n < 0 {
			return false, malformed(offset, fmt.Sprintf("field %d", number), n)
		}
		offset += n
		switch message := body.(type) {
		case *request:
			if number == fieldService && kind == protowire.BytesType {
				text, _ := protowire.ConsumeBytes(value)
				if !utf8.Valid(text) {
					return false, &thriftwire.Error{Kind: thriftwire.Malformed, Encoding: "protobuf", Offset: offset - n, Detail: "the name of the service is no UTF-8"}
				}
				message.service = string(text)
			}
		case *response:
			if number == fieldStatus && kind == protowire.VarintType {
				status, _ := protowire.ConsumeVarint(value)
				message.status = Status(status)
			}
		default:
			return false, fmt.Errorf("health: %T is no message of this service", body)
		}
	}
	return false, nil
}

func malformed(offset int, what string, n int) error {
	return &thriftwire.Error{Kind: thriftwire.Malformed, Encoding: "protobuf", Offset: offset, Detail: fmt.Sprintf("%s: %v", what, protowire.ParseError(n))}
}
