package thriftwire

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// ExceptionType is the type of a TApplicationException.
type ExceptionType int32

// The exception types of Apache Thrift; the last two are Kitex's.
const (
	ExceptionUnknown               ExceptionType = 0
	ExceptionUnknownMethod         ExceptionType = 1
	ExceptionInvalidMessageType    ExceptionType = 2
	ExceptionWrongMethodName       ExceptionType = 3
	ExceptionBadSequenceID         ExceptionType = 4
	ExceptionMissingResult         ExceptionType = 5
	ExceptionInternalError         ExceptionType = 6
	ExceptionProtocolError         ExceptionType = 7
	ExceptionInvalidTransform      ExceptionType = 8
	ExceptionInvalidProtocol       ExceptionType = 9
	ExceptionUnsupportedClientType ExceptionType = 10
	ExceptionUnknownService        ExceptionType = 20
	ExceptionNoServiceName         ExceptionType = 21
)

// ApplicationException is the body of an Exception message:
// struct {1: string message, 2: i32 type}.
type ApplicationException struct {
	Type    ExceptionType
	Message string
}

// Size returns the size of what Put writes.
func (e ApplicationException) Size() int { return 3 + 4 + len(e.Message) + 3 + 4 + 1 }

// Put writes the struct to b, which must have the length Size.
func (e ApplicationException) Put(b []byte) {
	b[0] = byte(String)
	binary.BigEndian.PutUint16(b[1:], 1)
	binary.BigEndian.PutUint32(b[3:], uint32(len(e.Message)))
	n := 7 + copy(b[7:], e.Message)
	b[n] = byte(I32)
	binary.BigEndian.PutUint16(b[n+1:], 2)
	binary.BigEndian.PutUint32(b[n+3:], uint32(e.Type))
	b[n+7] = byte(Stop)
}

// ParseApplicationException reads the struct from body. Unknown fields are
// passed over, absent ones are zero, a message longer than ErrorMessageBytes is
// cut: the text comes from the peer and goes to logs.
func ParseApplicationException(body []byte) (exception ApplicationException, err error) {
	pos := 0
	for {
		if len(body) < pos+1 {
			return exception, &Error{Kind: Truncated, Offset: pos, Detail: "application exception ends inside a field header"}
		}
		t := Type(body[pos])
		if t == Stop {
			return exception, nil
		}
		if len(body) < pos+3 {
			return exception, &Error{Kind: Truncated, Offset: pos, Detail: "application exception ends inside a field header"}
		}
		id := binary.BigEndian.Uint16(body[pos+1:])
		pos += 3
		size, err := Skip(body[pos:], t, limits.Depth, limits.Depth)
		if err != nil {
			return exception, fmt.Errorf("application exception field %d: %w", id, err)
		}
		value := body[pos : pos+size]
		switch {
		case id == 1 && t == String:
			text := value[4:]
			exception.Message = CleanMessage(string(text[:min(len(text), limits.ErrorMessageBytes)]))
		case id == 2 && t == I32:
			exception.Type = ExceptionType(int32(binary.BigEndian.Uint32(value)))
		}
		pos += size
	}
}

// CleanMessage makes a text fit to pass between peers, which print and log it:
// valid UTF-8 without control characters, of ErrorMessageBytes at most. What it returns
// is clean.
func CleanMessage(text string) string {
	if len(text) > limits.ErrorMessageBytes || !isPlain(text) {
		text = CutMessage(text, limits.ErrorMessageBytes)
	}
	if isPlain(text) {
		return text
	}
	// A byte that is replaced becomes three.
	return CutMessage(strings.Map(func(r rune) rune {
		if isControl(r) {
			return utf8.RuneError
		}
		return r
	}, text), limits.ErrorMessageBytes)
}

// cutMark is at the end of a text that was longer.
const cutMark = "... (cut)"

// CutMessage makes a text valid UTF-8 of that many bytes at most, and leaves it as it is if
// it is that.
func CutMessage(text string, most int) string {
	room := max(most-len(cutMark), 0)
	isLong := len(text) > most
	if isLong {
		text = text[:runeStart(text, room)]
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	switch {
	case !isLong && len(text) <= most:
		return text
	case most < len(cutMark):
		return ""
	}
	return text[:runeStart(text, min(room, len(text)))] + cutMark
}

// runeStart returns where in front of end a rune of a text begins, or end if it is between two.
func runeStart(text string, end int) int {
	for range utf8.UTFMax - 1 {
		if end == 0 || end == len(text) || utf8.RuneStart(text[end]) {
			break
		}
		end--
	}
	return end
}

func isControl(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }

// isPlain reports whether a text is ASCII without control characters, as most are. A
// server that is overloaded looks at one for each call that it refuses.
func isPlain(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf || isControl(rune(text[i])) {
			return false
		}
	}
	return true
}
