package policy

import (
	"encoding"
	"errors"
	"fmt"
	"math/bits"
	"strings"

	"github.com/fulmar-rpc/fulmar/observe"
)

// codeBits is how many codes a Codes has room for.
const codeBits = 32

// Codes is a set of codes, written as a list of their names: unavailable,
// deadline_exceeded and so on.
type Codes uint32

var (
	_ encoding.TextMarshaler   = (*Codes)(nil)
	_ encoding.TextUnmarshaler = (*Codes)(nil)
)

// CodesOf returns the set of codes.
func CodesOf(codes ...observe.Code) Codes {
	var set Codes
	for _, code := range codes {
		set |= 1 << code
	}
	return set
}

func parseCodes(names []string) (Codes, error) {
	var set Codes
	var problems []error
	for _, name := range names {
		code, err := parseCode(name)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		set |= CodesOf(code)
	}
	return set, errors.Join(problems...)
}

// Has reports whether a code is in the set.
func (c Codes) Has(code observe.Code) bool { return c&(1<<code) != 0 }

// Names returns the names of the codes, in the order of their numbers.
func (c Codes) Names() []string {
	names := make([]string, 0, bits.OnesCount32(uint32(c)))
	for code := range observe.Code(codeBits) {
		if c.Has(code) {
			names = append(names, codeName(code))
		}
	}
	return names
}

// String returns the names of the codes, with commas between.
func (c Codes) String() string { return strings.Join(c.Names(), ", ") }

// MarshalText returns the names of the codes, with commas between.
func (c Codes) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText takes what MarshalText returns.
func (c *Codes) UnmarshalText(text []byte) error {
	var names []string
	for name := range strings.SplitSeq(string(text), ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	set, err := parseCodes(names)
	if err == nil {
		*c = set
	}
	return err
}

// codeName writes a code as documents have it. What is no code has a name that
// parseCode refuses.
func codeName(code observe.Code) string { return strings.ReplaceAll(code.String(), " ", "_") }

func parseCode(name string) (observe.Code, error) {
	known := make([]string, 0, observe.Codes)
	for code := range observe.Codes {
		if codeName(code) == name {
			return code, nil
		}
		known = append(known, codeName(code))
	}
	return 0, fmt.Errorf("%s is no code%s", quoted(name), meant(name, known))
}
