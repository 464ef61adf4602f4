// Package thriftwire holds what the framing layer and the Thrift runtime both
// need to know about Thrift Binary: type codes and their sizes, message
// headers, application exceptions, and how to find the end of a value without
// decoding it. It looks at contiguous bytes and keeps no buffers.
//
// Source: the Thrift Binary protocol specification of Apache Thrift.
package thriftwire

import "fmt"

// Type is a type code on the wire.
type Type uint8

// The type codes. Enums travel as I32, binary as String, unions and exceptions
// as Struct. UUID is Apache Thrift 0.19 and newer; Kitex does not have it.
const (
	Stop   Type = 0
	Bool   Type = 2
	I8     Type = 3
	Double Type = 4
	I16    Type = 6
	I32    Type = 8
	I64    Type = 10
	String Type = 11
	Struct Type = 12
	Map    Type = 13
	Set    Type = 14
	List   Type = 15
	UUID   Type = 16
)

// layout describes a type code; indexed by the whole byte, so that no value
// from the wire can be out of range.
type layout struct {
	name string
	// fixed is the size of every value, 0 if it varies.
	fixed uint8
	// least is the size of the smallest value; 0 means that the code is unknown.
	least uint8
}

var layouts = [256]layout{
	Bool:   {"bool", 1, 1},
	I8:     {"i8", 1, 1},
	Double: {"double", 8, 8},
	I16:    {"i16", 2, 2},
	I32:    {"i32", 4, 4},
	I64:    {"i64", 8, 8},
	String: {"string", 0, 4},
	Struct: {"struct", 0, 1},
	Map:    {"map", 0, 6},
	Set:    {"set", 0, 5},
	List:   {"list", 0, 5},
	UUID:   {"uuid", 16, 16},
}

// Known reports whether t is the type code of a value.
func (t Type) Known() bool { return layouts[t].least != 0 }

// FixedSize returns the size in bytes of every value of type t, 0 if it varies
// or t is unknown.
func (t Type) FixedSize() int { return int(layouts[t].fixed) }

// LeastSize returns the size in bytes of the smallest value of type t, 0 if t
// is unknown. A container that declares n elements needs n times this many
// bytes, which is what makes a declared count checkable before it is believed.
func (t Type) LeastSize() int { return int(layouts[t].least) }

// String returns the name that the IDL uses.
func (t Type) String() string {
	switch {
	case t == Stop:
		return "stop"
	case t.Known():
		return layouts[t].name
	default:
		return fmt.Sprintf("type %d", uint8(t))
	}
}
