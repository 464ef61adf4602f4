package view

import (
	"math"
	"reflect"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// walk goes through the bytes of a struct, as plans say.
type walk struct {
	// slots are those of the structs that are being gone through.
	slots []Slot
	// work is how many bytes may still be looked at.
	work int64
	// failed: only the struct can answer.
	failed bool
}

// A struct is gone through to find its fields, and what is in it once more for each level
// of it: with 60 levels around millions of structs of a byte that takes a minute. So there
// is a bound to it, what short messages never take and so many times the length of the
// message. Behind it a text is cut, and for JSON and Equal the struct is decoded, which
// goes through all levels at once.
const (
	workLeast = 1 << 20
	workTimes = 8
)

// walkOf returns a walk through n bytes.
func walkOf(n int) walk { return walk{work: workLeast + workTimes*int64(n)} }

// start returns the slots of the struct that b begins with, which finish takes back, and
// where that ends.
func (w *walk) start(p *plan, b []byte) (slots []Slot, end int) {
	first := len(w.slots)
	for range p.shape.Fields {
		w.slots = append(w.slots, Slot{})
	}
	slots = w.slots[first:]
	if w.work < 0 {
		w.failed = true
		return slots, len(b)
	}
	end, _ = p.shape.scan(b, 0, slots, mostLevels)
	if w.work -= int64(end); end < 0 || p.unfit {
		w.failed = true
		clear(slots)
		return slots, len(b)
	}
	return slots, end
}

func (w *walk) finish(slots []Slot) { w.slots = w.slots[:len(w.slots)-len(slots)] }

// list returns how many elements there are in the list in b, and these. A list of other
// elements is nil, as it is when it is decoded.
func (v *planValue) list(b []byte) (n int, elements []byte, isNil bool) {
	if len(b) < listHeader {
		return 0, nil, true
	}
	if n = int(thrift.I32At(b, 1)); n != 0 && thrift.Type(b[0]) != v.element.wire {
		return 0, nil, true
	}
	return n, b[listHeader:], false
}

// entries is list for maps.
func (v *planValue) entries(b []byte) (n int, entries []byte, isNil bool) {
	const header = 6
	if len(b) < header {
		return 0, nil, true
	}
	if n = int(thrift.I32At(b, 2)); n != 0 && (thrift.Type(b[0]) != v.key.wire || thrift.Type(b[1]) != v.element.wire) {
		return 0, nil, true
	}
	return n, b[header:], false
}

// isNil says that a container is nil when it is decoded.
func (v *planValue) isNil(b []byte) bool {
	switch v.form {
	case formList, formBytes:
		_, _, isNil := v.list(b)
		return isNil
	case formMap, formPairs:
		_, _, isNil := v.entries(b)
		return isNil
	}
	return b == nil
}

// cut divides b into the value of type t that it begins with, and what follows.
func (w *walk) cut(b []byte, t thrift.Type) (value, rest []byte) {
	end := pass(b, 0, t, mostLevels)
	if end < 0 {
		w.failed = true // somebody has changed the bytes
		return []byte(zeroBytes), nil
	}
	w.work -= int64(end)
	return b[:end], b[end:]
}

// walkEntry is an entry of a map.
type walkEntry struct{ key, value []byte }

// entry divides b into the entry of a map that it begins with, and what follows.
func (w *walk) entry(v *planValue, b []byte) (entry walkEntry, rest []byte) {
	entry.key, b = w.cut(b, v.key.wire)
	entry.value, b = w.cut(b, v.element.wire)
	return entry, b
}

// distinct returns the entries that a Go map would have, and where the one with a key is:
// not more than most of them. others is how many came with other keys. What it takes
// grows with what it returns: a message can have millions of entries with the same key.
func (w *walk) distinct(v *planValue, b []byte, most int) (list []walkEntry, index map[any]int, others int) {
	n, b, _ := v.entries(b)
	if n > 0 {
		index = map[any]int{}
	}
	for ; n > 0 && !w.failed; n-- {
		var entry walkEntry
		entry, b = w.entry(v, b)
		key := w.goKey(v.key, entry.key)
		if w.failed {
			break
		}
		if at, found := index[key]; found {
			list[at] = entry
		} else if len(list) < most {
			index[key] = len(list)
			list = append(list, entry)
		} else {
			others++
		}
	}
	return list, index, others
}

// goKey returns the key of a map, which is equal to another one if it is in Go. There is
// none for NaN, of which a map can have many.
func (w *walk) goKey(v *planValue, b []byte) any {
	switch {
	case v.form == formStruct:
		s := v.shape.New()
		if err := thrift.Unmarshal(b, s); err != nil {
			w.failed = true
			return nil
		}
		key := reflect.ValueOf(s).Elem().Interface()
		w.failed = w.failed || key != key
		return key
	case v.wire == thrift.Bool:
		return b[0] == 1
	case v.wire == thrift.Double:
		number := thrift.DoubleAt(b, 0)
		w.failed = w.failed || math.IsNaN(number)
		return number
	case v.form == formText:
		text, _ := Text(b)
		return text
	case v.wire == thrift.UUIDType:
		return thrift.UUID(b[:len(thrift.UUID{})])
	}
	return v.integer(b)
}

// current returns the bytes of what v is now. All of them are checked.
func (v *View) current(slots []Slot, shape *Shape) ([]byte, error) {
	b := v.buf
	if b == nil || v.changed() || v.lease != nil {
		encoded, err := v.encoded(slots, shape)
		if err != nil {
			return nil, err
		}
		b = encoded
	}
	if v.partly && shape.checked(b, 0, limits.Depth) != len(b) {
		return nil, shape.explain(b)
	}
	return b, nil
}
