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

// stringEnd returns where the string at p ends, -1 if it is not there.
func stringEnd(b []byte, p int) int {
	if p < 0 || len(b)-p < stringHeader {
		return -1
	}
	n := wordAt(b, p)
	if p += stringHeader; n > uint(len(b)-p) {
		return -1
	}
	return p + int(n)
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

// frame is what comes behind the structs that are being passed over: structs as they were
// before, and how many levels are left again.
type frame struct{ left, levels int }

// passFrames is how many levels are passed over without recursion, which costs about as
// much as three fields. More would have to be cleared each time.
const passFrames = 8

// passStructs passes over n structs that follow each other. It is one loop for structs in
// structs and in lists as well, and for what is most often in them: what is a call for
// each value, or where to go on is looked up, takes twice the time.
func passStructs(b []byte, p, n, depth int) int {
	const header = 3
	if depth--; depth < 0 {
		return -1
	}
	var outer [passFrames]frame
	nested, left := 0, n-1
	for uint(p) < uint(len(b)) {
		// Sizes that are written here, and not looked up, are known to a processor that
		// foresees the branch before it has seen the byte: structs alike follow each other.
		// What is added may lead behind the end.
		switch t := thrift.Type(b[p]); t {
		case 0: // the end mark
			p++
			if left > 0 {
				left--
				continue
			}
			if nested == 0 {
				return p
			}
			nested--
			left, depth = outer[nested].left, depth+outer[nested].levels
		case thrift.Bool, thrift.I8:
			p += header + 1
		case thrift.I16:
			p += header + 2
		case thrift.I32:
			p += header + 4
		case thrift.I64, thrift.Double:
			p += header + 8
		case thrift.UUIDType:
			p += header + 16
		case thrift.String:
			p = stringEnd(b, p+header)
		case thrift.StructType:
			if p += header; depth == 0 || nested == len(outer) {
				p = passStructs(b, p, 1, depth)
				continue
			}
			outer[nested] = frame{left, 1}
			nested++
			left, depth = 0, depth-1
		case thrift.List, thrift.Set:
			t, n := startOfList(b, p+header, depth)
			p += header + listHeader
			switch {
			case n <= 0:
				if n < 0 {
					return -1
				}
			case t == thrift.String:
				for ; n > 0 && p >= 0; n-- {
					p = stringEnd(b, p)
				}
			case t == thrift.I64 || t == thrift.Double:
				p = endOfFixed(b, p, n, 3)
			case t == thrift.StructType && depth >= 2 && nested < len(outer):
				outer[nested] = frame{left, 2}
				nested++
				left, depth = n-1, depth-2
			default:
				p = passAll(b, p, n, t, depth-1)
			}
		default:
			p = pass(b, p+header, t, depth)
		}
	}
	return -1
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
		for ; n > 0 && p >= 0; n-- {
			p = stringEnd(b, p)
		}
		return p
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
