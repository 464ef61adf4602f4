package observe

import "fmt"

// Code is the number of a fulmar.Code, with 0 for success.
type Code uint32

var codeNames = [...]string{
	"ok",
	"canceled",
	"unknown",
	"invalid argument",
	"deadline exceeded",
	"not found",
	"already exists",
	"permission denied",
	"resource exhausted",
	"failed precondition",
	"aborted",
	"out of range",
	"unimplemented",
	"internal",
	"unavailable",
	"data loss",
	"unauthenticated",
}

// Codes is how many codes there are; all are below it.
const Codes = Code(len(codeNames))

// String returns the name in lower case with spaces; "ok" for 0.
func (c Code) String() string {
	if c < Codes {
		return codeNames[c]
	}
	return fmt.Sprintf("code %d", uint32(c))
}
