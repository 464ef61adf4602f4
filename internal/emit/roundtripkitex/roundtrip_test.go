package roundtripkitex_test

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/kitex/golden/shape"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/kitexown/golden/own"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// newOf returns a new struct like prototype, with its defaults.
func newOf[S kitexStruct](prototype S) S {
	made := reflect.New(reflect.TypeOf(prototype).Elem()).Interface().(S)
	made.InitDefault()
	return made
}

// text shows a value through pointers, also those that are keys of maps: there equal
// structs are different keys.
func text(v any) string {
	var out strings.Builder
	write(&out, reflect.ValueOf(v))
	return out.String()
}

// isEmpty says that a tree is what nil comes back as.
func isEmpty(tree *shape.Tree) bool {
	return tree == nil || tree.Value == 0 && isEmpty(tree.Left) && tree.Right == nil && len(tree.Children) == 0 && len(tree.Named) == 0
}

func write(out *strings.Builder, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if tree, ok := v.Interface().(*shape.Tree); v.IsNil() || ok && isEmpty(tree) {
			out.WriteString("nil")
			return
		}
		out.WriteString("&")
		write(out, v.Elem())
	case reflect.Struct:
		out.WriteString("{")
		for i := range v.NumField() {
			out.WriteString(v.Type().Field(i).Name + ":")
			write(out, v.Field(i))
			out.WriteString(" ")
		}
		out.WriteString("}")
	case reflect.Slice:
		if v.IsNil() {
			out.WriteString("nil")
			return
		}
		out.WriteString("[")
		for i := range v.Len() {
			write(out, v.Index(i))
			out.WriteString(" ")
		}
		out.WriteString("]")
	case reflect.Map:
		if v.IsNil() {
			out.WriteString("nil")
			return
		}
		entries := map[string]int{}
		for key, value := range v.Seq2() {
			var entry strings.Builder
			write(&entry, key)
			entry.WriteString(":")
			write(&entry, value)
			entries[entry.String()]++
		}
		fmt.Fprint(out, entries) // sorted
	default:
		fmt.Fprintf(out, "%#v", v)
	}
}

func TestRoundTrip_KeepsEverything(t *testing.T) {
	for _, prototype := range declared {
		t.Run(reflect.TypeOf(prototype).Elem().String(), func(t *testing.T) {
			for seed := range uint64(20) {
				sent := newFilled(prototype, seed)
				message, err := thrift.Marshal(sent)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				received := newOf(prototype)
				if err := thrift.Unmarshal(message, received); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if text(sent) != text(received) {
					t.Fatalf("seed %d:\nsent     %s\nreceived %s", seed, text(sent), text(received))
				}
				checkFast(t, sent, message, newOf(prototype))
			}
		})
	}
	for _, prototype := range calls {
		sent := newFilledMethod(prototype)
		message, err := thrift.Marshal(sent)
		if err != nil {
			t.Fatal(err)
		}
		received := reflect.New(reflect.TypeOf(prototype).Elem()).Interface().(thrift.Struct)
		if err := thrift.Unmarshal(message, received); err != nil || text(sent) != text(received) {
			t.Errorf("%T: %v\nsent     %s\nreceived %s", prototype, err, text(sent), text(received))
		}
	}
}

// newFilledMethod fills arguments or a result.
func newFilledMethod(prototype thrift.Struct) thrift.Struct {
	switch prototype.(type) {
	case *shape.ForestPickArgs:
		return &shape.ForestPickArgs{Leaf: newFilled(new(shape.Leaf), 1), Number: 3}
	case *shape.ForestAllArgs:
		return &shape.ForestAllArgs{Names: []string{"a"}, Known: map[string]*shape.Leaf{"b": newFilled(new(shape.Leaf), 2)}}
	case *shape.ForestAllResult:
		return &shape.ForestAllResult{Success: []*shape.Leaf{newFilled(new(shape.Leaf), 3), newFilled(new(shape.Leaf), 4)}}
	case *shape.ForestNameResult:
		return &shape.ForestNameResult{Success: thrift.Some("name")}
	case *shape.ForestPaintResult:
		return &shape.ForestPaintResult{Success: thrift.Some(shape.Color_GREEN)}
	case *shape.ForestRawResult:
		return &shape.ForestRawResult{Success: []byte{1, 2}}
	case *shape.ForestPlantArgs:
		return &shape.ForestPlantArgs{Tree: newFilled(new(shape.Tree), 5)}
	default:
		return &shape.ForestCountResult{Success: thrift.Some[int64](math.MaxInt64)}
	}
}

// checkFast does with Kitex's methods what Marshal and Unmarshal did. Maps may be in
// another order.
func checkFast(t *testing.T, sent kitexStruct, message []byte, received kitexStruct) {
	t.Helper()
	if got := sent.BLength(); got != len(message) {
		t.Fatalf("BLength is %d, of %d bytes", got, len(message))
	}
	const behind = 3
	for _, write := range []func([]byte) int{
		sent.FastWrite, func(buf []byte) int { return sent.FastWriteNocopy(buf, nil) },
	} {
		buf := make([]byte, len(message)+behind)
		if n := write(buf); n != len(message) || string(buf[n:]) != "\x00\x00\x00" {
			t.Fatalf("%d bytes were written, %x behind them, want %d", n, buf[n:], len(message))
		}
		if n, err := received.FastRead(buf); err != nil || n != len(message) {
			t.Fatalf("FastRead: %d, %v, want %d", n, err, len(message))
		}
		if text(sent) != text(received) {
			t.Fatalf("\nsent     %s\nreceived %s", text(sent), text(received))
		}
		exact := make([]byte, len(message)+behind)
		if n := write(exact[:len(message)]); n != len(message) || string(exact[n:]) != "\x00\x00\x00" {
			t.Fatalf("%d bytes were written to %d, %x behind them", n, len(message), exact[n:])
		}
		if n, err := received.FastRead(exact); err != nil || n != len(message) || text(sent) != text(received) {
			t.Fatalf("FastRead: %d, %v\nsent     %s\nreceived %s", n, err, text(sent), text(received))
		}
	}
}

// TestRoundTrip_OfShortMessages cuts messages anywhere: none can be read, and nothing
// panics.
func TestRoundTrip_OfShortMessages(t *testing.T) {
	for _, prototype := range declared {
		message, err := thrift.Marshal(newFilled(prototype, 3))
		if err != nil {
			t.Fatal(err)
		}
		step := max(1, len(message)/500)
		for length := 0; length < len(message); length += step {
			if err := thrift.Unmarshal(message[:length], newOf(prototype)); err == nil {
				t.Errorf("%T: %d of %d bytes can be read", prototype, length, len(message))
			}
			if n, err := newOf(prototype).FastRead(message[:length]); err == nil || n != 0 {
				t.Errorf("%T: FastRead of %d of %d bytes: %d, %v", prototype, length, len(message), n, err)
			}
		}
	}
}

// TestNil_IsAnEmptyStruct writes nil wherever a struct may be, as Kitex does.
func TestNil_IsAnEmptyStruct(t *testing.T) {
	for _, s := range []kitexStruct{(*shape.Leaf)(nil), (*shape.Tree)(nil), (*shape.Choice)(nil), (*own.Own)(nil)} {
		if message, err := thrift.Marshal(s); err != nil || string(message) != "\x00" {
			t.Errorf("%T: %x, %v", s, message, err)
		}
		buf := make([]byte, 1)
		if s.BLength() != 1 || s.FastWrite(buf) != 1 || buf[0] != 0 {
			t.Errorf("%T: %d bytes", s, s.BLength())
		}
		if got := s.String(); !strings.HasSuffix(got, "(nil)") {
			t.Errorf("%T: %s", s, got)
		}
	}
	received := shape.NewTree()
	message, err := thrift.Marshal(&shape.Tree{Children: []*shape.Tree{nil, {Value: 2}}, Named: map[string]*shape.Tree{"nil": nil}})
	if err != nil {
		t.Fatal(err)
	}
	if err := thrift.Unmarshal(message, received); err != nil {
		t.Fatal(err)
	}
	if received.Left == nil || received.Right != nil || len(received.Children) != 2 || received.Children[0] == nil || received.Named["nil"] == nil {
		t.Errorf("received %s", text(received))
	}
}
