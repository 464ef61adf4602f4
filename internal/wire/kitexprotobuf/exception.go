package kitexprotobuf

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// The body of an exception is
//
//	message { int32 TypeID = 1; string Message = 2; }
//
// of which Protobuf leaves out what is zero or empty.
const (
	fieldType    = 1
	fieldMessage = 2

	tagType    = fieldType<<3 | wireVarint
	tagMessage = fieldMessage<<3 | wireBytes
)

// The wire types of Protobuf that have a length.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

// ExceptionSize returns the size of what PutException writes.
func ExceptionSize(e thriftwire.ApplicationException) int {
	size := 0
	if e.Type != 0 {
		size += 1 + varintSize(uint64(int64(e.Type)))
	}
	if e.Message != "" {
		size += 1 + varintSize(uint64(len(e.Message))) + len(e.Message)
	}
	return size
}

// PutException writes the body of an exception to b, which must have the length
// ExceptionSize.
func PutException(b []byte, e thriftwire.ApplicationException) {
	n := 0
	if e.Type != 0 {
		b[0] = tagType
		n = 1 + binary.PutUvarint(b[1:], uint64(int64(e.Type)))
	}
	if e.Message != "" {
		b[n] = tagMessage
		n++
		n += binary.PutUvarint(b[n:], uint64(len(e.Message)))
		copy(b[n:], e.Message)
	}
}

func varintSize(v uint64) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

// ParseException reads the body of an exception. Unknown fields are passed over,
// absent ones are zero, of one that comes twice the last counts, and a message longer
// than ErrorMessageBytes is cut: the text comes from the peer and goes to logs.
func ParseException(body []byte) (exception thriftwire.ApplicationException, err error) {
	for pos := 0; pos < len(body); {
		tag, n := binary.Uvarint(body[pos:])
		if n <= 0 || tag > math.MaxUint32 || tag>>3 == 0 {
			return exception, malformed(pos, "no field tag")
		}
		pos += n
		number, start := uint64(0), pos
		switch tag & 7 {
		case wireVarint:
			if number, n = binary.Uvarint(body[pos:]); n <= 0 {
				return exception, malformed(pos, "no varint")
			}
			pos += n
		case wireFixed64:
			pos += 8
		case wireFixed32:
			pos += 4
		case wireBytes:
			if number, n = binary.Uvarint(body[pos:]); n <= 0 || number > uint64(len(body)) {
				return exception, malformed(pos, "no length that the message has room for")
			}
			start = pos + n
			pos = start + int(number)
		default:
			return exception, malformed(pos-n, fmt.Sprintf("a field of wire type %d", tag&7))
		}
		if pos > len(body) {
			return exception, &thriftwire.Error{Kind: thriftwire.Truncated, Offset: start, Detail: "exception in Protobuf ends inside a field"}
		}
		switch tag {
		case tagType:
			exception.Type = thriftwire.ExceptionType(int32(number))
		case tagMessage:
			text := body[start:pos]
			exception.Message = thriftwire.CleanMessage(string(text[:min(len(text), limits.ErrorMessageBytes)]))
		}
	}
	return exception, nil
}

func malformed(offset int, found string) error {
	return &thriftwire.Error{Kind: thriftwire.Malformed, Offset: offset, Detail: "exception in Protobuf: " + found}
}
