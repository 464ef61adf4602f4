package thriftwire

import (
	"encoding/binary"
	"fmt"
)

// Skipper finds the end of one value in bytes that may arrive piece by piece.
// It remembers how far it came, so a value that arrives one byte at a time is
// walked once, not once a byte, and it keeps its own stack, so nesting costs no
// goroutine stack.
//
// The zero value is not usable; call Start first. Not for concurrent use.
type Skipper struct {
	// inline serves the usual nesting without an allocation; what is deeper
	// goes to overflow.
	inline   [16]skipFrame
	overflow []skipFrame
	level    int
	pos      int
	max      int
	// depth is how many levels may nest below the start, limit how many in all.
	depth int
	limit int
	// whole says that there are no more bytes than those given.
	whole bool
}

// skipFrame is a struct or container whose end was not reached yet: 8 bytes, so
// that a Skipper is cheap to clear.
type skipFrame struct {
	// types of the elements; a map alternates between both. Stop in the first
	// marks a struct.
	types [2]Type
	// next selects from types.
	next uint8
	// left counts elements still to come; a map counts keys and values. It
	// fits: a count is never above the message limit, which is below 2^30.
	left uint32
}

// Start begins a value of type t at offset in the bytes that Next will be
// given. max bounds the offset at which the value may end, depth its nesting.
func (s *Skipper) Start(t Type, offset, max, depth int) {
	s.pos, s.max, s.depth, s.limit, s.whole = offset, max, depth, depth, false
	s.overflow = s.overflow[:0]
	// One element of t: a container that is not on the wire.
	s.inline[0] = skipFrame{types: [2]Type{t, t}, left: 1}
	s.level = 1
}

func (s *Skipper) top() *skipFrame {
	if s.level <= len(s.inline) {
		return &s.inline[s.level-1]
	}
	return &s.overflow[s.level-len(s.inline)-1]
}

func (s *Skipper) push(frame skipFrame) error {
	// The first frame is not on the wire.
	if s.level > s.depth {
		return DepthError(s.limit, s.pos)
	}
	if s.level < len(s.inline) {
		s.inline[s.level] = frame
	} else {
		s.overflow = append(s.overflow[:s.level-len(s.inline)], frame)
	}
	s.level++
	return nil
}

// Next goes on with b, which holds all bytes from the same start as before. It
// returns the offset behind the value once that has been reached, or 0 and how
// many bytes b must hold for the next step, or an *Error.
func (s *Skipper) Next(b []byte) (end, need int, err error) {
	// A value that ends behind max gets the same error whether or not the bytes
	// there have arrived.
	b = b[:min(len(b), s.max)]
	for s.level > 0 {
		top := s.top()
		if top.types[0] != Stop && top.left == 0 {
			s.level--
			continue
		}
		need, err := s.step(b, top)
		if need != 0 || err != nil {
			return 0, need, err
		}
	}
	return s.pos, 0, nil
}

// step consumes one field or element, or the end of a struct. It changes
// nothing when bytes are missing.
func (s *Skipper) step(b []byte, top *skipFrame) (need int, err error) {
	pos := s.pos
	var t Type
	if top.types[0] == Stop {
		if len(b) < pos+1 {
			return s.needs(b, pos+1)
		}
		t = Type(b[pos])
		if t == Stop {
			s.pos++
			s.level--
			return 0, nil
		}
		pos += 3
	} else {
		t = top.types[top.next]
	}
	if size := t.FixedSize(); size > 0 {
		if len(b) < pos+size {
			return s.needs(b, pos+size)
		}
		s.consume(top, pos+size)
		return 0, nil
	}
	switch t {
	case String:
		return s.skipString(b, pos, top)
	case Struct:
		// The header of the field may not have arrived whole.
		if len(b) < pos {
			return s.needs(b, pos)
		}
		s.consume(top, pos)
		return 0, s.push(skipFrame{})
	case List, Set, Map:
		return s.skipContainer(b, pos, t, top)
	default:
		return 0, &Error{Kind: Malformed, Offset: s.pos, Detail: fmt.Sprintf("unknown %v", t)}
	}
}

func (s *Skipper) skipString(b []byte, pos int, top *skipFrame) (need int, err error) {
	if len(b) < pos+4 {
		return s.needs(b, pos+4)
	}
	length := int(int32(binary.BigEndian.Uint32(b[pos:])))
	if length < 0 {
		return 0, &Error{Kind: Malformed, Offset: pos, Detail: fmt.Sprintf("string of %d bytes", length)}
	}
	if length > len(b)-pos-4 {
		// Compared like this because the sum may not fit an int of 32 bits.
		if length > s.max-pos-4 {
			return 0, s.beyond(b, int64(pos)+4+int64(length))
		}
		return pos + 4 + length, nil
	}
	s.consume(top, pos+4+length)
	return 0, nil
}

func (s *Skipper) skipContainer(b []byte, pos int, t Type, top *skipFrame) (need int, err error) {
	if s.level > s.depth {
		// Also if it holds nothing that has to be walked: a decoder counts every level.
		return 0, DepthError(s.limit, pos)
	}
	head := t.LeastSize()
	if len(b) < pos+head {
		return s.needs(b, pos+head)
	}
	frame := skipFrame{types: [2]Type{Type(b[pos]), Type(b[pos])}}
	if t == Map {
		frame.types[1] = Type(b[pos+1])
	}
	count := int(int32(binary.BigEndian.Uint32(b[pos+head-4:])))
	if count == 0 {
		s.consume(top, pos+head)
		return 0, nil
	}
	least, err := checkCount(t, frame.types, count, pos, s.max-pos-head)
	if err != nil {
		return 0, err
	}
	if frame.types[0].FixedSize() > 0 && frame.types[1].FixedSize() > 0 {
		// All elements at once: the least size is the size.
		end := pos + head + count*least
		if len(b) < end {
			return s.needs(b, end)
		}
		s.consume(top, end)
		return 0, nil
	}
	frame.left = uint32(count)
	if t == Map {
		frame.left *= 2
	}
	s.consume(top, pos+head)
	return 0, s.push(frame)
}

// checkCount refuses a container whose elements cannot fit into remaining
// bytes, and returns the least size of one element (of one pair for maps).
func checkCount(t Type, types [2]Type, count, offset, remaining int) (least int, err error) {
	least = types[0].LeastSize()
	known := types[0].Known()
	if t == Map {
		least += types[1].LeastSize()
		known = known && types[1].Known()
	}
	switch {
	case count < 0:
		return 0, &Error{Kind: Malformed, Offset: offset, Detail: fmt.Sprintf("%v of %d elements", t, count)}
	case !known:
		return 0, &Error{Kind: Malformed, Offset: offset, Detail: fmt.Sprintf(
			"%v with elements of unknown type (codes %d and %d)", t, uint8(types[0]), uint8(types[1]))}
	case int64(count)*int64(least) > int64(remaining):
		return 0, &Error{Kind: LimitExceeded, Offset: offset, Detail: fmt.Sprintf(
			"%v declares %d elements of at least %d bytes each, but at most %d bytes can follow", t, count, least, max(remaining, 0))}
	}
	return least, nil
}

// CheckCount is what a decoder asks before it believes a container header:
// whether count elements of these types can fit into the remaining bytes. second
// is ignored except for maps.
func CheckCount(container, first, second Type, count, offset, remaining int) error {
	_, err := checkCount(container, [2]Type{first, second}, count, offset, remaining)
	return err
}

func (s *Skipper) consume(top *skipFrame, pos int) {
	s.pos = pos
	if top.types[0] != Stop {
		top.left--
		top.next ^= 1
	}
}

func (s *Skipper) needs(b []byte, n int) (need int, err error) {
	if n <= s.max {
		return n, nil
	}
	return 0, s.beyond(b, int64(n))
}

// beyond is the error for a value that reaches past max.
func (s *Skipper) beyond(b []byte, n int64) error {
	if s.whole {
		return &Error{Kind: Truncated, Offset: s.pos, Detail: fmt.Sprintf("value reaches byte %d, but the message ends at %d", n, len(b))}
	}
	return &Error{Kind: LimitExceeded, Offset: s.pos, Detail: fmt.Sprintf("message of at least %d bytes (limit %d)", n, s.max)}
}

// DepthError is the error for nesting deeper than limit.
func DepthError(limit, offset int) *Error {
	return &Error{Kind: LimitExceeded, Offset: offset, Detail: fmt.Sprintf("structs and containers nest deeper than %d", limit)}
}

// Skip returns the size of the value of type t at the start of b, which holds
// everything there is. It may nest depth levels, of limit that were allowed in
// all before a decoder came here.
func Skip(b []byte, t Type, depth, limit int) (int, error) {
	var s Skipper
	s.Start(t, 0, len(b), depth)
	s.limit, s.whole = limit, true
	end, _, err := s.Next(b)
	if err != nil {
		return 0, err
	}
	return end, nil
}
