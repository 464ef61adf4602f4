package thriftwire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// value builds bytes of the Binary protocol for tests.
type value []byte

func (v value) u8(b ...byte) value             { return append(v, b...) }
func (v value) u16(n uint16) value             { return binary.BigEndian.AppendUint16(v, n) }
func (v value) u32(n uint32) value             { return binary.BigEndian.AppendUint32(v, n) }
func (v value) text(s string) value            { return append(v.u32(uint32(len(s))), s...) }
func (v value) raw(b []byte) value             { return append(v, b...) }
func (v value) zeros(n int) value              { return append(v, make([]byte, n)...) }
func typ(t thriftwire.Type) byte               { return byte(t) }
func field(t thriftwire.Type, id uint16) value { return value{}.u8(typ(t)).u16(id) }

func repeat(b []byte, n int) []byte { return bytes.Repeat(b, n) }

// nested returns depth lists within each other, the innermost empty.
func nestedLists(depth int) []byte {
	return value(repeat([]byte{typ(thriftwire.List), 0, 0, 0, 1}, depth-1)).u8(typ(thriftwire.List)).u32(0)
}

func TestSkip_FindsTheEnd(t *testing.T) {
	pairs := value{}.u8(typ(thriftwire.String), typ(thriftwire.List)).u32(2).
		text("a").u8(typ(thriftwire.I32)).u32(1).zeros(4).
		text("b").u8(typ(thriftwire.I32)).u32(0)
	cases := map[string]struct {
		t     thriftwire.Type
		bytes value
	}{
		"bool":             {thriftwire.Bool, value{1}},
		"i8":               {thriftwire.I8, value{7}},
		"i16":              {thriftwire.I16, value{}.zeros(2)},
		"i32":              {thriftwire.I32, value{}.zeros(4)},
		"i64":              {thriftwire.I64, value{}.zeros(8)},
		"double":           {thriftwire.Double, value{}.zeros(8)},
		"uuid":             {thriftwire.UUID, value{}.zeros(16)},
		"string":           {thriftwire.String, value{}.text("hello")},
		"empty string":     {thriftwire.String, value{}.text("")},
		"empty struct":     {thriftwire.Struct, value{0}},
		"struct":           {thriftwire.Struct, field(thriftwire.String, 1).text("x").raw(field(thriftwire.Struct, 2)).u8(0).u8(0)},
		"empty list":       {thriftwire.List, value{0}.u32(0)},
		"list of i64":      {thriftwire.List, value{typ(thriftwire.I64)}.u32(3).zeros(24)},
		"set of strings":   {thriftwire.Set, value{typ(thriftwire.String)}.u32(2).text("a").text("bc")},
		"list of structs":  {thriftwire.List, value{typ(thriftwire.Struct)}.u32(2).u8(0).raw(field(thriftwire.Bool, 1)).u8(1, 0)},
		"empty map":        {thriftwire.Map, value{0, 0}.u32(0)},
		"map of scalars":   {thriftwire.Map, value{typ(thriftwire.I32), typ(thriftwire.I8)}.u32(2).zeros(10)},
		"map with strings": {thriftwire.Map, pairs},
		"map fixed, string": {thriftwire.Map, value{typ(thriftwire.I16), typ(thriftwire.String)}.u32(2).
			u16(1).text("x").u16(2).text("")},
		"64 levels": {thriftwire.List, nestedLists(64)},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			// Bytes behind the value must not matter.
			size, err := thriftwire.Skip(append(bytes.Clone(test.bytes), 0xff, 0xff), test.t, 64, 64)
			if err != nil || size != len(test.bytes) {
				t.Fatalf("Skip = %d, %v; want %d", size, err, len(test.bytes))
			}
			for cut := range test.bytes {
				if _, err := thriftwire.Skip(test.bytes[:cut], test.t, 64, 64); err == nil {
					t.Errorf("Skip of the first %d of %d bytes succeeded", cut, len(test.bytes))
				}
			}
			checkPiecewise(t, test.t, test.bytes)
		})
	}
}

// checkPiecewise feeds a value one byte more at a time: a Skipper must end at
// the same place, never look before its need, and never ask for a byte past
// the end.
func checkPiecewise(t *testing.T, kind thriftwire.Type, whole []byte) {
	t.Helper()
	var s thriftwire.Skipper
	s.Start(kind, 0, len(whole)+100, 64)
	for have := 0; ; {
		end, need, err := s.Next(whole[:have])
		switch {
		case err != nil:
			t.Fatalf("with %d bytes: %v", have, err)
		case end == len(whole) && have == len(whole):
			return
		case end != 0 || need <= have || need > len(whole):
			t.Fatalf("with %d of %d bytes: end %d, need %d", have, len(whole), end, need)
		}
		have++
	}
}

func TestSkip_RefusesWhatCannotBe(t *testing.T) {
	cases := map[string]struct {
		t     thriftwire.Type
		bytes value
		kind  thriftwire.Kind
		text  string
	}{
		"unknown field type":        {thriftwire.Struct, value{0x80}.u16(1), thriftwire.Malformed, "unknown type 128"},
		"void field":                {thriftwire.Struct, value{1}.u16(1), thriftwire.Malformed, "unknown type 1"},
		"negative string":           {thriftwire.String, value{}.u32(0xffffffff), thriftwire.Malformed, "string of -1 bytes"},
		"negative list":             {thriftwire.List, value{typ(thriftwire.I8)}.u32(0x80000000), thriftwire.Malformed, "list of -2147483648 elements"},
		"negative map":              {thriftwire.Map, value{8, 8}.u32(0xfffffffe), thriftwire.Malformed, "map of -2 elements"},
		"list of unknown":           {thriftwire.List, value{99}.u32(1), thriftwire.Malformed, "unknown type"},
		"map of unknown":            {thriftwire.Map, value{8, 99}.u32(1).zeros(8), thriftwire.Malformed, "unknown type"},
		"20,000,000 structs":        {thriftwire.List, value{typ(thriftwire.Struct)}.u32(20_000_000), thriftwire.LimitExceeded, "declares 20000000 elements"},
		"20,000,000 entries":        {thriftwire.Map, value{typ(thriftwire.String), typ(thriftwire.Struct)}.u32(20_000_000), thriftwire.LimitExceeded, "declares 20000000 elements"},
		"2^31-1 uuids":              {thriftwire.List, value{typ(thriftwire.UUID)}.u32(0x7fffffff), thriftwire.LimitExceeded, "declares 2147483647"},
		"65 levels":                 {thriftwire.List, nestedLists(66), thriftwire.LimitExceeded, "deeper than 64"},
		"a million levels":          {thriftwire.List, nestedLists(1_000_000), thriftwire.LimitExceeded, "deeper than 64"},
		"a million structs deep":    {thriftwire.Struct, repeat(field(thriftwire.Struct, 1), 1_000_000), thriftwire.LimitExceeded, "deeper than 64"},
		"string past the end":       {thriftwire.String, value{}.u32(10).zeros(9), thriftwire.Truncated, "ends at 13"},
		"field header past the end": {thriftwire.Struct, value{typ(thriftwire.Struct)}, thriftwire.Truncated, "ends at 1"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := thriftwire.Skip(test.bytes, test.t, 64, 64)
			var wireError *thriftwire.Error
			if !errors.As(err, &wireError) {
				t.Fatalf("Skip: %v; want a *thriftwire.Error", err)
			}
			if wireError.Kind != test.kind || !strings.Contains(err.Error(), test.text) {
				t.Errorf("Skip: kind %d, %v; want kind %d, text %q", wireError.Kind, err, test.kind, test.text)
			}
		})
	}
}

func TestSkipper_StopsAtItsLimit(t *testing.T) {
	var s thriftwire.Skipper
	s.Start(thriftwire.String, 0, 1000, 64)
	_, _, err := s.Next(value{}.u32(997))
	if err == nil || !strings.Contains(err.Error(), "limit 1000") {
		t.Errorf("Next for a value of 1001 bytes with limit 1000: %v", err)
	}
}

func TestSkipper_StopsAtItsLimitAlsoWhenMoreArrived(t *testing.T) {
	var s thriftwire.Skipper
	s.Start(thriftwire.String, 0, 1000, 64)
	_, _, err := s.Next(value{}.u32(997).zeros(997))
	if err == nil || !strings.Contains(err.Error(), "limit 1000") {
		t.Errorf("Next for a value of 1001 bytes with limit 1000: %v", err)
	}
}

func TestSkip_AllocatesNothing(t *testing.T) {
	bytes := nestedLists(10)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := thriftwire.Skip(bytes, thriftwire.List, 64, 64); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("Skip of 10 levels: %v allocations, want 0", n)
	}
}

// randomValue returns a random well-formed value.
func randomValue(r *rand.Rand, t thriftwire.Type, depth int) []byte {
	types := []thriftwire.Type{thriftwire.Bool, thriftwire.I8, thriftwire.I16, thriftwire.I32, thriftwire.I64,
		thriftwire.Double, thriftwire.String, thriftwire.UUID, thriftwire.Struct, thriftwire.List, thriftwire.Set, thriftwire.Map}
	if depth <= 1 {
		types = types[:8]
	}
	pick := func() thriftwire.Type { return types[r.IntN(len(types))] }
	if size := t.FixedSize(); size > 0 {
		return make([]byte, size)
	}
	switch t {
	case thriftwire.String:
		return value{}.text(strings.Repeat("x", r.IntN(20)))
	case thriftwire.Struct:
		var v value
		for id := range r.IntN(4) {
			inner := pick()
			v = v.raw(field(inner, uint16(id))).raw(randomValue(r, inner, depth-1))
		}
		return v.u8(0)
	case thriftwire.Map:
		k, e, n := pick(), pick(), r.IntN(4)
		v := value{typ(k), typ(e)}.u32(uint32(n))
		for range n {
			v = v.raw(randomValue(r, k, depth-1)).raw(randomValue(r, e, depth-1))
		}
		return v
	default:
		e, n := pick(), r.IntN(4)
		v := value{typ(e)}.u32(uint32(n))
		for range n {
			v = v.raw(randomValue(r, e, depth-1))
		}
		return v
	}
}

func TestSkipper_RandomValuesPiecewise(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		checkPiecewise(t, thriftwire.Struct, randomValue(r, thriftwire.Struct, 5))
	}
}

// FuzzSkip: whatever the bytes are, Skip ends, stays inside them, and agrees
// with a Skipper that sees them arrive in two pieces.
func FuzzSkip(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, t := range []thriftwire.Type{thriftwire.Struct, thriftwire.List, thriftwire.Map, thriftwire.String} {
		f.Add(uint8(t), randomValue(r, t, 4), 5)
	}
	f.Add(uint8(thriftwire.Map), []byte{11, 12, 0x01, 0x31, 0x2d, 0x00}, 3)
	f.Fuzz(func(t *testing.T, kind uint8, b []byte, cut int) {
		size, err := thriftwire.Skip(b, thriftwire.Type(kind), 64, 64)
		if size < 0 || size > len(b) {
			t.Fatalf("size %d of %d bytes", size, len(b))
		}
		if cut < 0 || cut > len(b) {
			return
		}
		var s thriftwire.Skipper
		s.Start(thriftwire.Type(kind), 0, len(b), 64)
		end, _, pieceErr := s.Next(b[:cut])
		if end == 0 && pieceErr == nil {
			end, _, pieceErr = s.Next(b)
		}
		if err == nil && (pieceErr != nil || end != size) {
			t.Fatalf("whole: %d; in pieces: %d, %v", size, end, pieceErr)
		}
		if err != nil && pieceErr == nil && end != 0 {
			t.Fatalf("whole: %v; in pieces: %d", err, end)
		}
	})
}
