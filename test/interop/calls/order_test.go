package calls_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
)

// inOrder returns the struct at the start of body with the fields of all structs in
// the order of their ids, and what follows it. Thrift leaves that order to who
// writes: Apache's go by id or by the definition, Kitex and Fulmar write fields of a
// fixed size first.
func inOrder(t *testing.T, body []byte) (sorted, rest []byte) {
	t.Helper()
	type field struct {
		id    int16
		bytes []byte
	}
	var fields []field
	for body[0] != 0 {
		kind, id := body[0], int16(binary.BigEndian.Uint16(body[1:]))
		value, after := valueInOrder(t, kind, body[3:])
		fields = append(fields, field{id, slices.Concat(body[:3], value)})
		body = after
	}
	slices.SortStableFunc(fields, func(a, b field) int { return int(a.id) - int(b.id) })
	for _, f := range fields {
		sorted = append(sorted, f.bytes...)
	}
	return append(sorted, 0), body[1:]
}

// valueInOrder is inOrder for a value of any kind.
func valueInOrder(t *testing.T, kind byte, body []byte) (value, rest []byte) {
	t.Helper()
	fixed := map[byte]int{2: 1, 3: 1, 4: 8, 6: 2, 8: 4, 10: 8, 16: 16}
	switch kind {
	case 11:
		n := 4 + int(binary.BigEndian.Uint32(body))
		return body[:n], body[n:]
	case 12:
		return inOrder(t, body)
	case 13:
		return elementsInOrder(t, body[:2], body[:6], body[6:])
	case 14, 15:
		return elementsInOrder(t, body[:1], body[:5], body[5:])
	}
	if fixed[kind] == 0 {
		t.Fatalf("a value of type %d: % x", kind, body)
	}
	return body[:fixed[kind]], body[fixed[kind]:]
}

func elementsInOrder(t *testing.T, kinds, header, body []byte) (value, rest []byte) {
	t.Helper()
	value = slices.Clone(header)
	for range binary.BigEndian.Uint32(header[len(header)-4:]) {
		for _, kind := range kinds {
			var element []byte
			element, body = valueInOrder(t, kind, body)
			value = append(value, element...)
		}
	}
	return value, body
}

func TestInOrder_SortsFieldsOnly(t *testing.T) {
	// A struct of 3: i8, 1: map<i8, struct{2: bool, 1: bool}>, 2: list<string>.
	given := "\x03\x00\x03\x07" + "\x0d\x00\x01\x03\x0c\x00\x00\x00\x01\x05\x02\x00\x02\x01\x02\x00\x01\x00\x00" + "\x0f\x00\x02\x0b\x00\x00\x00\x02\x00\x00\x00\x01b\x00\x00\x00\x01a" + "\x00rest"
	want := "\x0d\x00\x01\x03\x0c\x00\x00\x00\x01\x05\x02\x00\x01\x00\x02\x00\x02\x01\x00" + "\x0f\x00\x02\x0b\x00\x00\x00\x02\x00\x00\x00\x01b\x00\x00\x00\x01a" + "\x03\x00\x03\x07" + "\x00"
	sorted, rest := inOrder(t, []byte(given))
	if !bytes.Equal(sorted, []byte(want)) || string(rest) != "rest" {
		t.Errorf("sorted: % x, then %q\nwant:   % x", sorted, rest, want)
	}
}
