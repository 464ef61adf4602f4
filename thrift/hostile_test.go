package thrift_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// TestHostile_SkippingAndReadingCountLevelsAlike has containers at the last level that
// may be, and one below it: with elements of any size or none, in fields that are known,
// and in those that are passed over.
func TestHostile_SkippingAndReadingCountLevelsAlike(t *testing.T) {
	containers := map[string]string{
		"empty list":      "\x0f\x00\x0a\x0b\x00\x00\x00\x00",
		"list of strings": "\x0f\x00\x0a\x0b\x00\x00\x00\x01\x00\x00\x00\x00",
		"empty map":       "\x0d\x00\x0b\x0b\x0a\x00\x00\x00\x00",
		"map":             "\x0d\x00\x0b\x0b\x0a\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
		"list of structs": "\x0f\x00\x0c\x0c\x00\x00\x00\x01\x00",
		"unknown numbers": "\x0f\x00\x63\x08\x00\x00\x00\x01\x00\x00\x00\x00",
		"unknown empty":   "\x0d\x00\x63\x00\x00\x00\x00\x00\x00",
		"unknown strings": "\x0e\x00\x63\x0b\x00\x00\x00\x01\x00\x00\x00\x00",
		"numbers in map":  "\x0d\x00\x63\x08\x02\x00\x00\x00\x01\x00\x00\x00\x00\x01",
	}
	for name, container := range containers {
		levels := 1
		if name == "list of structs" {
			levels = 2
		}
		for structs := limits.Depth - 3; structs <= limits.Depth+1; structs++ {
			known := nested("\x0c\x00\x0d", structs, container)
			want := structs+levels <= limits.Depth
			if err := thrift.Unmarshal(known, &node{}); (err == nil) != want {
				t.Errorf("%s in %d structs: %v", name, structs, err)
			}
			if _, err := thriftwire.Skip(known, thrift.StructType, limits.Depth, limits.Depth); (err == nil) != want {
				t.Errorf("%s in %d structs, skipped: %v", name, structs, err)
			}
			if err := thrift.Unmarshal(nested("\x0c\x00\x63", structs, container), &node{}); (err == nil) != want {
				t.Errorf("%s in %d structs that are passed over: %v", name, structs, err)
			}
		}
	}
}

// nested returns so many structs within each other, with a field in the innermost.
func nested(header string, structs int, field string) []byte {
	return []byte(strings.Repeat(header, structs-1) + field + strings.Repeat("\x00", structs))
}

// stacksGrow returns how far f lets stacks grow.
func stacksGrow(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.StackSys) - int64(before.StackSys)
}

// TestHostile_DepthCostsNothing nests a million levels deep, in known and unknown fields,
// in structs and in every kind of container.
func TestHostile_DepthCostsNothing(t *testing.T) {
	const million, allocatedMax, stackMax = 1_000_000, 128 << 10, 1 << 20
	for name, level := range map[string]string{
		"structs":                 "\x0c\x00\x0d",
		"lists of structs":        "\x0f\x00\x0c\x0c\x00\x00\x00\x01",
		"unknown structs":         "\x0c\x00\x63",
		"unknown lists":           "\x0f\x00\x63\x0c\x00\x00\x00\x01",
		"unknown sets":            "\x0e\x00\x63\x0c\x00\x00\x00\x01",
		"unknown map values":      "\x0d\x00\x63\x02\x0c\x00\x00\x00\x01\x01",
		"unknown map keys":        "\x0d\x00\x63\x0c\x02\x00\x00\x00\x01",
		"known and then unknown":  "\x0c\x00\x0d\x0c\x00\x63",
		"fields of another type":  "\x0c\x00\x07",
		"elements of other types": "\x0f\x00\x0a\x0c\x00\x00\x00\x01",
	} {
		message := []byte(strings.Repeat(level, million))
		for what, use := range map[string]func() error{
			"read": func() error { return thrift.Unmarshal(message, &node{}) },
			"skip": func() error {
				_, err := thriftwire.Skip(message, thrift.StructType, limits.Depth, limits.Depth)
				return err
			},
		} {
			var err error
			stacks := stacksGrow(func() { err = use() })
			allocated := testkit.Allocated(allocatedMax, func() { err = use() })
			if err == nil || !strings.Contains(err.Error(), "deeper than 64") {
				t.Errorf("%s, %s: %v, want the limit", name, what, err)
			}
			if allocated > allocatedMax || stacks > stackMax {
				t.Errorf("%s, %s: %d bytes allocated (limit %d), stacks have grown by %d (limit %d)", name, what, allocated, allocatedMax, stacks, stackMax)
			}
		}
	}
}

// TestHostile_CountsDoNotOverflow has containers whose sizes do not fit into 32 bits, or
// into 64 when they are multiplied.
func TestHostile_CountsDoNotOverflow(t *testing.T) {
	for _, count := range []string{"\x80\x00\x00\x00", "\xff\xff\xff\xff", "\x7f\xff\xff\xff", "\x40\x00\x00\x00", "\x20\x00\x00\x01", "\x10\x00\x00\x01"} {
		for _, field := range []string{
			"\x0f\x00\x0a\x0b", "\x0f\x00\x0c\x0c", "\x0d\x00\x0b\x0b\x0a", "\x0f\x00\x63\x0a", "\x0f\x00\x63\x02", "\x0f\x00\x63\x10", "\x0f\x00\x63\x0c",
			"\x0d\x00\x63\x02\x02", "\x0d\x00\x63\x10\x10", "\x0d\x00\x63\x0c\x0c", "\x0d\x00\x63\x0d\x0d", "\x0b\x00\x07", "\x0b\x00\x08", "\x0b\x00\x63",
		} {
			message := append([]byte(field+count), make([]byte, 100)...)
			var err error
			const most = 128 << 10
			allocated := testkit.Allocated(most, func() { err = thrift.Unmarshal(message, &node{}) })
			if err == nil || allocated > most {
				t.Errorf("%q: %v, %d bytes allocated", field+count, err, allocated)
			}
			if _, err := thriftwire.Skip(message, thrift.StructType, limits.Depth, limits.Depth); err == nil {
				t.Errorf("%q was passed over", field+count)
			}
		}
	}
}

// TestHostile_FailedWritesCostLittle writes what is far too long: to a slice, and to a
// chain.
func TestHostile_FailedWritesCostLittle(t *testing.T) {
	const length, most = 24 << 20, 1 << 20
	numbers, flags := make([]int64, length/8), make([]bool, length)
	ids, text := make([]thrift.UUID, length/16), strings.Repeat("x", length)
	blob := []byte(text)
	m := limits.DefaultMessage()
	m.Bytes = 1000
	pool := linkbuf.NewPool()
	for name, write := range map[string]func(w *thrift.Writer, b []byte) []byte{
		"numbers": func(w *thrift.Writer, b []byte) []byte { return w.I64List(b, 0, numbers) },
		"bools":   func(w *thrift.Writer, b []byte) []byte { return w.BoolList(b, 0, flags) },
		"uuids":   func(w *thrift.Writer, b []byte) []byte { return w.UUIDList(b, 0, ids) },
		"text":    func(w *thrift.Writer, b []byte) []byte { return w.String(b, text) },
		"field":   func(w *thrift.Writer, b []byte) []byte { return w.FieldString(b, 1, text) },
		"binary":  func(w *thrift.Writer, b []byte) []byte { return w.Binary(b, blob) },
		"after an error": func(w *thrift.Writer, b []byte) []byte {
			w.FailNil("x")
			return w.BoolList(w.String(w.I64List(b, 0, numbers), text), 0, flags)
		},
	} {
		s := structFunc(func(w *thrift.Writer, b []byte) []byte {
			w.BeginStruct()
			return w.EndStruct(write(w, b))
		})
		var err error
		if got := testkit.Allocated(most, func() { _, err = thrift.Marshal(s) }); err == nil || got > most {
			t.Errorf("%s, to a slice: %d bytes allocated (limit %d), %v", name, got, most, err)
		}
		out := linkbuf.New(pool)
		if got := testkit.Allocated(most, func() { err = thrift.Binary.AppendBody(out, s, m) }); err == nil || got > most || out.Len() != 0 {
			t.Errorf("%s, to a chain: %d bytes allocated (limit %d), %v", name, got, most, err)
		}
		out.Release()
	}
	if n := pool.Outstanding(); n != 0 {
		t.Errorf("%d chunks not given back", n)
	}
}

// promise reads as code in the shape of Kitex does: a list of structs, the first of which
// has a list of other structs in it, and so on.
type promise struct{}

func (*promise) WriteThrift(_ *thrift.Writer, b []byte) []byte { return b }

func (*promise) ReadThrift(r *thrift.Reader, p int) int {
	p = promised[[500]byte](r, p)
	p = promised[[501]byte](r, p)
	p = promised[[502]byte](r, p)
	p = promised[[503]byte](r, p)
	p = promised[[504]byte](r, p)
	p = promised[[505]byte](r, p)
	p = promised[[506]byte](r, p)
	return promised[[507]byte](r, p)
}

func promised[T any](r *thrift.Reader, p int) int {
	n, p, ok := r.BeginList(p, thrift.StructType)
	if ok {
		var structs thrift.Structs[T]
		structs.List(r, p, n)
		structs.New(r, p)
		p = r.EndList(p)
	}
	return p
}

// TestHostile_PromisedStructsAreCharged has many counts, each of which all bytes that
// follow could back: what is made for them is within the budget.
func TestHostile_PromisedStructsAreCharged(t *testing.T) {
	message := []byte(strings.Repeat("\x0c\x00\x00\x00\x80", 8) + strings.Repeat("\x00", 128))
	most := limits.DefaultMessage().DecodeBytes(len(message))
	if allocated := testkit.Allocated(most, func() { _ = thrift.Unmarshal(message, &promise{}) }); allocated > most {
		t.Errorf("%d bytes made for a message of %d (limit %d)", allocated, len(message), most)
	}
}
