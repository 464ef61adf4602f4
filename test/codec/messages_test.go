package codec_test

import (
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"slices"
)

// source makes messages.
type source struct{ random *rand.Rand }

// nesting is how deep what it makes goes.
const nesting = 5

// randomMessage returns a message that a peer could send: fields in any order, some of
// them twice, some that are unknown, some with the type of another.
func randomMessage(random *rand.Rand, s *subject) []byte {
	return source{random}.record(nil, s.record, 0)
}

func (s source) oneOf(n int) bool { return s.random.IntN(n) == 0 }

// record appends a struct.
func (s source) record(b []byte, r *record, depth int) []byte {
	ids := slices.Sorted(maps.Keys(r.fields))
	s.random.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	if r.union && !s.oneOf(10) {
		ids = ids[:1]
		if depth >= nesting {
			ids[0] = 3 // which is a text
		}
	}
	for _, id := range ids {
		f := r.fields[id]
		if !f.required && !r.union && (s.oneOf(2) || depth >= nesting && f.optional) {
			continue
		}
		b = s.field(b, id, &f.definition, depth)
		if s.oneOf(20) {
			b = s.field(b, id, &f.definition, depth)
		}
		if s.oneOf(20) {
			b = s.field(b, []int16{id, 99, -1}[s.random.IntN(3)], s.definition(depth), depth)
		}
	}
	return append(b, 0)
}

func (s source) field(b []byte, id int16, d *definition, depth int) []byte {
	return s.value(binary.BigEndian.AppendUint16(append(b, d.code), uint16(id)), d, depth+1)
}

// definition returns a type that nobody has defined.
func (s source) definition(depth int) *definition {
	codes := []byte{codeBool, codeI8, codeDouble, codeI16, codeI32, codeI64, codeString, codeUUID, codeStruct, codeList, codeSet, codeMap}
	if s.oneOf(3) || depth >= nesting {
		codes = codes[:7]
	}
	d := &definition{code: codes[s.random.IntN(len(codes))]}
	switch d.code {
	case codeStruct:
		d.record = &record{fields: map[int16]*field{}}
		for id := range int16(s.random.IntN(3)) {
			d.record.fields[id] = &field{definition: *s.definition(depth + 1)}
		}
	case codeMap:
		d.key, d.element = s.definition(depth+1), s.definition(depth+1)
	case codeList, codeSet:
		d.element = s.definition(depth + 1)
	}
	return d
}

func (s source) value(b []byte, d *definition, depth int) []byte {
	switch d.code {
	case codeStruct:
		return s.record(b, d.record, depth)
	case codeString:
		n := s.random.IntN(12)
		if s.oneOf(50) {
			n = s.random.IntN(3000)
		}
		b = binary.BigEndian.AppendUint32(b, uint32(n))
		for range n {
			b = append(b, byte(s.random.Uint32()))
		}
		return b
	case codeBool:
		return append(b, []byte{0, 1, 1, 2, 0xff}[s.random.IntN(5)])
	case codeList, codeSet, codeMap:
		return s.container(b, d, depth)
	}
	// Small numbers, so that some are equal, and special ones.
	number := []uint64{0, uint64(s.random.IntN(4)), s.random.Uint64(), 1 << 63, 0x7ff8000000000001, 0x3ff0000000000000}[s.random.IntN(6)]
	for shift := fixedSizes[d.code] - 1; shift >= 0; shift-- {
		b = append(b, byte(number>>(8*(shift%8))))
	}
	return b
}

func (s source) container(b []byte, d *definition, depth int) []byte {
	n := s.random.IntN(4)
	if depth >= nesting {
		n = 0
	}
	if s.oneOf(100) && d.element.code != codeStruct {
		n = s.random.IntN(300)
	}
	types := []*definition{d.element}
	if d.code == codeMap {
		types = []*definition{d.key, d.element}
	}
	for _, t := range types {
		code := t.code
		if n == 0 && s.oneOf(3) {
			code = []byte{0, codeBool, codeMap}[s.random.IntN(3)] // no matter
		}
		b = append(b, code)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(n))
	for range n {
		for _, t := range types {
			b = s.value(b, t, depth+1)
		}
	}
	return b
}
