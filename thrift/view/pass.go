package view

import (
	"encoding/binary"
	"unsafe"

	"github.com/fulmar-rpc/fulmar/thrift"
)

// The functions below find where values end, in bytes of which nothing is known, as
// thriftwire.Skip does, and take and refuse the same: FuzzPass compares. They return -1 and not what
// is wrong, and so need not remember where they are.

// wordAt returns the length or count at p: four bytes that have to be there, without a
// sign, so that negative ones are more than any message has.
//
// Where a value ends is not known before its length has come, so the time of a check is
// that of these loads one behind the other. Go slices b[p:] with three more instructions
// in front of each, in case that p is the end: lists of short strings take 1.6 times as
// long with them.
func wordAt(b []byte, p int) uint {
	word := (*[4]byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), p))
	return uint(binary.BigEndian.Uint32(word[:]))
}

// stringHeader is how many bytes there are in front of what is in a string.
const stringHeader = 4

// stringEnd returns where the string at p ends, -1 if it is not there. p may be behind the
// end, but is not negative.
func stringEnd(b []byte, p int) int {
	rest := len(b) - p - stringHeader
	if rest < 0 {
		return -1
	}
	n := wordAt(b, p)
	if p += stringHeader + int(n); n > uint(rest) {
		return -1
	}
	return p
}

// fixedSizes has the sizes of values by type, 0 for those that vary and for what is no
// type. A constant is loaded with one instruction, without a look at where it is.
const fixedSizes = "\x00\x00\x01\x01\x08\x00\x02\x00\x04\x00\x08\x00\x00\x00\x00\x00\x10"

// fixedSize is Type.FixedSize.
func fixedSize(t thrift.Type) int {
	if int(t) < len(fixedSizes) {
		return int(fixedSizes[t])
	}
	return 0
}

// pass returns where the value of type t at p ends, -1 if it is none or not all there.
// It may nest depth levels.
func pass(b []byte, p int, t thrift.Type, depth int) int {
	if size := fixedSize(t); size > 0 {
		if len(b)-p < size {
			return -1
		}
		return p + size
	}
	switch t {
	case thrift.String:
		return stringEnd(b, p)
	case thrift.StructType:
		return passStruct(b, p, depth)
	case thrift.List, thrift.Set:
		return passList(b, p, depth)
	case thrift.Map:
		return passMap(b, p, depth)
	}
	return -1
}

// passStruct is pass for a struct.
func passStruct(b []byte, p, depth int) int { return passStructs(b, p, 1, depth) }

// frame is what comes behind the structs that are being passed over: how many structs
// there were left, and in the last bits how many levels are left again.
type frame uint64

const (
	frameLevels = 3 // what the last bits are
	frameLeft   = 2 // how many these are
)

// passFrames is how many levels are passed over without recursion, which costs about as
// much as three fields. More would have to be cleared each time. It is a power of two, so
// that an index needs no check.
const passFrames = 8

// fieldHeader is how many bytes there are in front of the value of a field.
const fieldHeader = 3

// pop returns what a frame has, and depth with the levels that are left again.
func (f frame) pop(depth int) (left, levels int) {
	return int(f >> frameLeft), depth + int(f&frameLevels)
}

// passStructs passes over n structs that follow each other. It is one loop for structs in
// structs and in lists as well, and for what is most often in them: what is a call for
// each value, or where to go on is looked up, takes twice the time. All calls are behind
// the loop, which is entered once more then: with one in it, what is counted here would be
// stored for each field, in case that there is a call.
//
// Sizes that are written here, and not looked up, are known to a processor that foresees the
// branch before it has seen the byte: structs alike follow each other. What is added may
// lead behind the end, where the loop ends. What comes behind it are count values of type t
// that may nest levels, or one if that is 0.
func passStructs(b []byte, p, n, depth int) int {
	if depth--; depth < 0 {
		return -1
	}
	outer, nested, left := [passFrames]frame{}, uint(0), n-1
	for t, count, levels := thrift.Type(0), 0, 0; ; {
	fields:
		for {
			if uint(p) >= uint(len(b)) {
				return -1
			}
			switch t = thrift.Type(b[p]); t {
			case 0: // the end mark
				if p++; left > 0 {
					left--
					continue
				}
				if nested == 0 {
					return p
				}
				nested--
				left, depth = outer[nested&(passFrames-1)].pop(depth)
			case thrift.Bool, thrift.I8:
				p += fieldHeader + 1
			case thrift.I16:
				p += fieldHeader + 2
			case thrift.I32:
				p += fieldHeader + 4
			case thrift.I64, thrift.Double:
				p += fieldHeader + 8
			case thrift.UUIDType:
				p += fieldHeader + 16
			case thrift.String:
				p = stringEnd(b, p+fieldHeader)
			case thrift.StructType:
				if p += fieldHeader; depth == 0 || nested == passFrames {
					count, levels = 1, depth
					break fields
				}
				outer[nested&(passFrames-1)] = frame(left)<<frameLeft | 1
				nested, left, depth = nested+1, 0, depth-1
			case thrift.List, thrift.Set:
				t, count = listField(b, p, depth)
				p += fieldHeader + listHeader
				switch {
				case count <= 0:
					p |= count // is -1 if that is
				case t == thrift.String:
					p = passTexts(b, p, count)
				case t == thrift.I64 || t == thrift.Double:
					p = endOfFixed(b, p, count, 3)
				case t == thrift.StructType && depth >= 2 && nested < passFrames:
					outer[nested&(passFrames-1)] = frame(left)<<frameLeft | 2
					nested, left, depth = nested+1, count-1, depth-2
				default:
					levels = depth - 1
					break fields
				}
			default:
				p, count, levels = p+fieldHeader, 0, depth
				break fields
			}
		}
		if count > 0 {
			p = passAll(b, p, count, t, levels)
		} else {
			p = pass(b, p, t, levels)
		}
	}
}

// listField is startOfList for a field at p.
func listField(b []byte, p, depth int) (t thrift.Type, n int) {
	const size = fieldHeader + listHeader
	rest := len(b) - p - size
	if rest < 0 || depth == 0 {
		return 0, -1
	}
	// Type, id, type of elements and count are eight bytes.
	head := binary.BigEndian.Uint64((*[size]byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), p))[:])
	if n = int(uint32(head)); n > rest {
		return 0, -1
	}
	return thrift.Type(head >> 32), n
}

// passTexts passes over n strings that follow each other.
func passTexts(b []byte, p, n int) int {
	for ; n > 0; n-- {
		rest := len(b) - p - stringHeader
		if rest < 0 {
			return -1
		}
		size := wordAt(b, p)
		if p += stringHeader + int(size); size > uint(rest) {
			return -1
		}
	}
	return p
}

// startOfList returns what the list at p has, and how many; -1 if that is not there, are
// more than there are bytes, or would be nested too deeply.
func startOfList(b []byte, p, depth int) (t thrift.Type, n int) {
	if p < 0 || len(b)-p < listHeader || depth <= 0 {
		return 0, -1
	}
	count := wordAt(b, p+1)
	if count > uint(len(b)-p-listHeader) {
		return 0, -1
	}
	return thrift.Type(b[p]), int(count)
}

// passList is pass for a list or set.
func passList(b []byte, p, depth int) int {
	t, n := startOfList(b, p, depth)
	if n < 0 {
		return -1
	}
	return passAll(b, p+listHeader, n, t, depth-1)
}

// passAll passes over n values of type t: not more than there are bytes.
func passAll(b []byte, p, n int, t thrift.Type, depth int) int {
	switch t { // in which sizes are written; see passStructs
	case thrift.String:
		return passTexts(b, p, n)
	case thrift.StructType:
		if n > 0 {
			p = passStructs(b, p, n, depth)
		}
		return p
	case thrift.Bool, thrift.I8:
		return endOfFixed(b, p, n, 0)
	case thrift.I16:
		return endOfFixed(b, p, n, 1)
	case thrift.I32:
		return endOfFixed(b, p, n, 2)
	case thrift.I64, thrift.Double:
		return endOfFixed(b, p, n, 3)
	case thrift.UUIDType:
		return endOfFixed(b, p, n, 4)
	}
	return passOthers(b, p, n, t, depth)
}

// endOfFixed returns where n values of 1<<shift bytes end, -1 if they are not there.
func endOfFixed(b []byte, p, n int, shift uint) int {
	if n > (len(b)-p)>>shift {
		return -1
	}
	return p + n<<shift
}

// passOthers is passAll for containers, and for what is no type.
func passOthers(b []byte, p, n int, t thrift.Type, depth int) int {
	if n > 0 && (!t.Known() || uint(n) > uint(len(b)-p)/uint(t.LeastSize())) {
		return -1
	}
	for ; n > 0 && p >= 0; n-- {
		p = pass(b, p, t, depth)
	}
	return p
}

// passMap is pass for a map.
func passMap(b []byte, p, depth int) int {
	const header = 6
	if depth--; depth < 0 || len(b)-p < header {
		return -1
	}
	key, value, n := thrift.Type(b[p]), thrift.Type(b[p+1]), int(thrift.I32At(b, p+2))
	p += header
	if n == 0 {
		return p
	}
	if n < 0 || !key.Known() || !value.Known() || int64(n)*int64(key.LeastSize()+value.LeastSize()) > int64(len(b)-p) {
		return -1
	}
	for ; n > 0 && p >= 0; n-- {
		if p = pass(b, p, key, depth); p >= 0 {
			p = pass(b, p, value, depth)
		}
	}
	return p
}
