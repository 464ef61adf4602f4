package view

import "github.com/fulmar-rpc/fulmar/thrift"

// The functions below find where values end, in bytes of which nothing is known, as
// thriftwire.Skip does, and take and refuse the same: FuzzPass compares. They return -1 and not what
// is wrong, and so need not remember where they are.

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
func passStruct(b []byte, p, depth int) int {
	const header = 3
	if depth--; depth < 0 {
		return -1
	}
	for uint(p) < uint(len(b)) {
		// Sizes that are written here, and not looked up, are known to a processor that
		// foresees the branch before it has seen the byte: structs alike follow each other.
		// What is added may lead behind the end.
		switch t := thrift.Type(b[p]); t {
		case 0: // the end mark
			return p + 1
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
		case thrift.List, thrift.Set:
			p = passList(b, p+header, depth)
		default:
			p = pass(b, p+header, t, depth)
		}
	}
	return -1
}

// passList is pass for a list or set.
func passList(b []byte, p, depth int) int {
	if depth--; depth < 0 || len(b)-p < listHeader {
		return -1
	}
	t, n := thrift.Type(b[p]), int(thrift.I32At(b, p+1))
	p += listHeader
	if n == 0 {
		return p
	}
	if size := fixedSize(t); size > 0 {
		if uint64(n)*uint64(size) > uint64(len(b)-p) || n < 0 {
			return -1
		}
		return p + n*size
	}
	if n < 0 || !t.Known() || int64(n)*int64(t.LeastSize()) > int64(len(b)-p) {
		return -1
	}
	return passAll(b, p, n, t, depth)
}

// passAll passes over n values of a type that is known and has no fixed size.
func passAll(b []byte, p, n int, t thrift.Type, depth int) int {
	switch t {
	case thrift.String:
		for ; n > 0 && p >= 0; n-- {
			p = stringEnd(b, p)
		}
	case thrift.StructType:
		for ; n > 0 && p >= 0; n-- {
			p = passStruct(b, p, depth)
		}
	default:
		for ; n > 0 && p >= 0; n-- {
			p = pass(b, p, t, depth)
		}
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
