package health

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// request is HealthCheckRequest, response HealthCheckResponse, listRequest HealthListRequest,
// statusList HealthListResponse. They are no messages of the official generator: two packages
// that register messages of one name end a program at its start, and grpc-go has these.
type (
	request     struct{ service string }
	response    struct{ status Status }
	listRequest struct{}
	statusList  struct{ statuses map[string]Status }
)

// Numbers of the one field that each has, and of those of an entry of a map.
const (
	fieldService  protowire.Number = 1
	fieldStatus   protowire.Number = 1
	fieldStatuses protowire.Number = 1
	fieldKey      protowire.Number = 1
	fieldValue    protowire.Number = 2
)

// codec is that of all of them, in Protobuf.
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
		b = message.append(b)
	case *statusList:
		for _, service := range slices.Sorted(maps.Keys(message.statuses)) {
			var entry []byte
			entry = protowire.AppendTag(entry, fieldKey, protowire.BytesType)
			entry = protowire.AppendString(entry, service)
			entry = protowire.AppendTag(entry, fieldValue, protowire.BytesType)
			entry = protowire.AppendBytes(entry, (&response{message.statuses[service]}).append(nil))
			b = protowire.AppendTag(b, fieldStatuses, protowire.BytesType)
			b = protowire.AppendBytes(b, entry)
		}
	default:
		return fmt.Errorf("health: %T is no message of this service", body)
	}
	out.Append(b)
	return nil
}

func (r *response) append(b []byte) []byte {
	if r.status != Unknown {
		b = protowire.AppendTag(b, fieldStatus, protowire.VarintType)
		b = protowire.AppendVarint(b, uint64(r.status))
	}
	return b
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
		case *listRequest: // It has no fields yet.
		default:
			return false, fmt.Errorf("health: %T is no message of this service", body)
		}
	}
	return false, nil
}

func malformed(offset int, what string, n int) error {
	return &thriftwire.Error{Kind: thriftwire.Malformed, Encoding: "protobuf", Offset: offset, Detail: fmt.Sprintf("%s: %v", what, protowire.ParseError(n))}
}
