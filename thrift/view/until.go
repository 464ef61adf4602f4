package view

import (
	"errors"
	"fmt"
	"math"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// LoadUntil is Load that stops behind the last of the fields with the ids: what follows is
// not looked at. Only these fields may be read and changed: other getters and setters
// panic. It is as Load where that is not possible: if one of the fields is not there, is
// there twice or as another type, in unions, and without ids.
//
// What is behind may hold such a field once more, which the next one who reads the message
// takes for the one that counts; see decision 50. The text, JSON, the struct and Equal show
// what the next one has, and getters what was found first.
func (v *View) LoadUntil(b []byte, slots []Slot, shape *Shape, ids []int16) error {
	v.reset()
	for i, field := range shape.Fields {
		slots[i] = Slot{start: uint32(uint16(field.Key.ID()))<<slotStates | slotUnread}
	}
	wanted := 0
	for _, id := range ids {
		number := shape.numberOf(id)
		if number < 0 {
			clear(slots)
			return fmt.Errorf("view of %s: LoadUntil is asked for field %d, which it does not have", shape.Name, id)
		}
		if slots[number] != (Slot{}) {
			slots[number] = Slot{}
			wanted++
		}
	}
	if wanted > 0 && !shape.Union && len(b) <= math.MaxInt32 && shape.scanUntil(b, slots, wanted) {
		v.buf, v.depth, v.partly = b, limits.Depth, true
		return nil
	}
	return v.Load(b, slots, shape)
}

// numberOf returns the number of the field with an id, -1 if there is none.
func (s *Shape) numberOf(id int16) int {
	for number := range s.Fields {
		if s.Fields[number].Key.ID() == id {
			return number
		}
	}
	return -1
}

// scanUntil looks for the fields of which slots are zero, of which there are as many as
// wanted. It reports false if it has not found each of them once.
func (s *Shape) scanUntil(b []byte, slots []Slot, wanted int) bool {
	next := 0
	for p := 0; len(b)-p >= 4; {
		const header = 3
		key := thrift.KeyAt(b, p)
		if key.IsStop() {
			return false
		}
		start := p + header
		number := s.find(key, next)
		if number < 0 || slots[number].isUnread() {
			// Of another type, of another definition, or not asked for: what is in it is
			// checked no more than what is behind.
			if p = pass(b, start, key.Type(), limits.Depth-1); p < 0 || number < 0 && s.isWanted(key.ID(), slots) {
				return false
			}
			continue
		}
		next = number + 1
		end, fits := s.Fields[number].Value.pass(b, start, key.Type(), limits.Depth-1)
		if end < 0 || !fits || slots[number].end != 0 {
			return false
		}
		slots[number] = Slot{start: uint32(start), end: uint32(end)}
		p = end
		if wanted--; wanted == 0 {
			return p < len(b) && b[len(b)-1] == byte(thriftwire.Stop)
		}
	}
	return false
}

// isWanted reports whether LoadUntil was asked for the field with an id.
func (s *Shape) isWanted(id int16, slots []Slot) bool {
	number := s.numberOf(id)
	return number >= 0 && (slots[number].end != 0 || slots[number].start&slotUnread == 0)
}

// findAgain finds in b, which is what v has been written as, the fields that LoadUntil was
// asked for. Of those with an id the first one counts, as it did there, but for a field that
// was set after it had been removed, which stands behind all. It returns where b ends, -1 if
// it is no struct.
func (v *View) findAgain(b []byte, found, slots []Slot, shape *Shape) int {
	for number, s := range slots {
		if s.isUnread() {
			found[number] = s
		}
	}
	p := 0
	for len(b)-p >= 4 {
		const header = 3
		key := thrift.KeyAt(b, p)
		end := pass(b, p+header, key.Type(), mostLevels)
		if end < 0 {
			return -1
		}
		if number := shape.find(key, 0); number >= 0 && !slots[number].isUnread() && v.Has(slots[number]) {
			s := slots[number]
			if found[number].end == 0 || s.end == 0 && v.patchOf(s).from == behindAll {
				found[number] = Slot{start: uint32(p + header), end: uint32(end)}
			}
		}
		p = end
	}
	return p + 1
}

// isUnread says that LoadUntil was not asked for the field.
func (s Slot) isUnread() bool { return s.end == 0 && s.start&slotUnread != 0 }

// checkRest fails if a view of which not all was looked at is not one struct that can be
// decoded: within a message it would end elsewhere than the bytes of the view do, and what is
// behind it would be other fields, or other messages; and the message would not be one.
func (v *View) checkRest(w *thrift.Writer, shape *Shape, levels int) {
	if shape.checked(v.buf, 0, levels) == len(v.buf) {
		return
	}
	end, err := thriftwire.Skip(v.buf, thriftwire.Struct, levels, levels)
	var skipped, failed *thrift.Error
	switch {
	case errors.As(err, &skipped):
		failed = &thrift.Error{Kind: skipped.Kind, Offset: skipped.Offset, Detail: "what LoadUntil has not looked at is no part of a struct: " + skipped.Detail}
	case end != len(v.buf):
		failed = &thrift.Error{Kind: thriftwire.Malformed, Offset: end, Detail: "more than one struct in the bytes of a view that LoadUntil has made"}
	case !errors.As(shape.explain(v.buf), &failed):
		failed = disagreement(0)
	}
	w.Fail(failed)
}
