package thriftwire

import (
	"cmp"
	"strconv"
	"strings"
)

// Kind says what is wrong with the bytes or the value, as far as a program
// wants to tell apart.
type Kind uint8

// The kinds of an Error.
const (
	// Malformed: the bytes cannot be what they should be.
	Malformed Kind = iota + 1
	// Truncated: the message ends inside a value.
	Truncated
	// LimitExceeded: well formed perhaps, but more than is allowed.
	LimitExceeded
	// MissingField: a required field is absent.
	MissingField
	// BadType: a message of a type that there is not.
	BadType
	// BadValue: a value to write is not one that the IDL allows.
	BadValue
)

// Error says what is wrong with a message, where, and by how much.
type Error struct {
	Kind Kind
	// Encoding is what the message is in, "" for Thrift. The kinds are those of any.
	Encoding string
	// Detail names what was found and the limit it broke.
	Detail string
	// Offset is where in the message body, in bytes; -1 if that means nothing.
	Offset int
	// path is the way to the place, innermost first.
	path []string
}

// Inside records that the error happened within a struct or field. Outer
// places are added later. At most a fixed number is kept: the rest of a deep
// path says nothing more.
func (e *Error) Inside(place string) {
	const longest = 16
	if len(e.path) < longest {
		e.path = append(e.path, place)
	}
}

// Error returns "thrift: outer: inner: detail (at byte n)".
func (e *Error) Error() string {
	var text strings.Builder
	text.WriteString(cmp.Or(e.Encoding, "thrift") + ": ")
	for i := len(e.path) - 1; i >= 0; i-- {
		text.WriteString(e.path[i])
		text.WriteString(": ")
	}
	text.WriteString(e.Detail)
	if e.Offset >= 0 {
		text.WriteString(" (at byte ")
		text.WriteString(strconv.Itoa(e.Offset))
		text.WriteByte(')')
	}
	return text.String()
}
