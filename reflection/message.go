package reflection

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// request is ServerReflectionRequest. Neither it nor response is a message of the official
// generator: two packages that register messages of one name end a program at its start, and
// grpc-go has these.
type request struct {
	// bytes are what came, which goes back in the answer.
	bytes []byte
	kind  protowire.Number
	// text is a file, a symbol or a type, number that of an extension.
	text   string
	number int32
}

// What a request can ask: the numbers of the fields that do.
const (
	askFile             protowire.Number = 3
	askSymbol           protowire.Number = 4
	askExtension        protowire.Number = 5
	askExtensionNumbers protowire.Number = 6
	askServices         protowire.Number = 7
)

// response is ServerReflectionResponse.
type response struct {
	asked    *request
	files    [][]byte
	numbers  []int32
	services []string
	code     fulmar.Code
	message  string
}

// Numbers of the fields of a response, and of the messages in it.
const (
	fieldOriginal   protowire.Number = 2
	fieldFiles      protowire.Number = 4
	fieldNumbers    protowire.Number = 5
	fieldServices   protowire.Number = 6
	fieldError      protowire.Number = 7
	fieldFirst      protowire.Number = 1
	fieldSecond     protowire.Number = 2
	extensionType   protowire.Number = 1
	extensionNumber protowire.Number = 2
)

// codec is that of both messages, in Protobuf.
type codec struct{}

// EncodesProtobuf is how package fulmar knows.
func (codec) EncodesProtobuf() {}

// AppendBody implements fulmar.Codec, for responses.
func (codec) AppendBody(out *linkbuf.Buffer, body any, m limits.Message) error {
	answer, ok := body.(*response)
	if !ok {
		return fmt.Errorf("reflection: %T is no response", body)
	}
	b := appendBytes(nil, fieldOriginal, answer.asked.bytes)
	var inner []byte
	field := fieldError
	switch {
	case answer.code != 0:
		inner = protowire.AppendTag(inner, fieldFirst, protowire.VarintType)
		inner = protowire.AppendVarint(inner, uint64(answer.code))
		inner = appendBytes(inner, fieldSecond, []byte(answer.message))
	case answer.asked.kind == askServices:
		field = fieldServices
		for _, name := range answer.services {
			inner = appendBytes(inner, fieldFirst, appendBytes(nil, fieldFirst, []byte(name)))
		}
	case answer.asked.kind == askExtensionNumbers:
		field = fieldNumbers
		inner = appendBytes(inner, fieldFirst, []byte(answer.asked.text))
		var packed []byte
		for _, number := range answer.numbers {
			packed = protowire.AppendVarint(packed, uint64(number))
		}
		inner = appendBytes(inner, fieldSecond, packed)
	default:
		field = fieldFiles
		for _, file := range answer.files {
			inner = appendBytes(inner, fieldFirst, file)
		}
	}
	b = appendBytes(b, field, inner)
	if len(b) > m.Bytes {
		return &thriftwire.Error{Kind: thriftwire.LimitExceeded, Encoding: "protobuf", Offset: -1, Detail: fmt.Sprintf("message of %d bytes (limit %d)", len(b), m.Bytes)}
	}
	out.Append(b)
	return nil
}

func appendBytes(b []byte, field protowire.Number, value []byte) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return protowire.AppendBytes(b, value)
}

// ReadBody implements fulmar.Codec, for requests. It keeps no reference to in. The last
// question counts, as with a oneof of the official library.
func (codec) ReadBody(in []byte, body any, _ limits.Message, _ bool) (refers bool, err error) {
	asked, ok := body.(*request)
	if !ok {
		return false, fmt.Errorf("reflection: %T is no request", body)
	}
	asked.bytes = append([]byte(nil), in...)
	return false, eachField(in, func(number protowire.Number, value []byte, _ uint64) error {
		switch number {
		case askFile, askSymbol, askExtensionNumbers, askServices:
			asked.kind, asked.text, asked.number = number, string(value), 0
		case askExtension:
			asked.kind, asked.text, asked.number = number, "", 0
			return eachField(value, func(number protowire.Number, value []byte, n uint64) error {
				switch number {
				case extensionType:
					asked.text = string(value)
				case extensionNumber:
					asked.number = int32(n)
				}
				return nil
			})
		}
		return nil
	})
}

// eachField calls f with the fields that are bytes or varints.
func eachField(in []byte, f func(number protowire.Number, value []byte, n uint64) error) error {
	for offset := 0; offset < len(in); {
		number, kind, n := protowire.ConsumeTag(in[offset:])
		if n < 0 {
			return malformed(offset, n)
		}
		offset += n
		rest := in[offset:]
		if n = protowire.ConsumeFieldValue(number, kind, rest); n < 0 {
			return malformed(offset, n)
		}
		offset += n
		var err error
		switch kind {
		case protowire.BytesType:
			value, _ := protowire.ConsumeBytes(rest)
			err = f(number, value, 0)
		case protowire.VarintType:
			value, _ := protowire.ConsumeVarint(rest)
			err = f(number, nil, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func malformed(offset, n int) error {
	return &thriftwire.Error{Kind: thriftwire.Malformed, Encoding: "protobuf", Offset: offset, Detail: protowire.ParseError(n).Error()}
}
