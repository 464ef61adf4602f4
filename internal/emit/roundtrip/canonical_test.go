package roundtrip_test

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/shapes/golden/shapes"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/views/golden/views"
	"github.com/fulmar-rpc/fulmar/thrift"
)

func mustCanonical(t *testing.T, s thrift.Struct) []byte {
	t.Helper()
	b, err := thrift.AppendCanonical(nil, s)
	if err != nil {
		t.Fatalf("%T: %v", s, err)
	}
	return b
}

// TestAppendCanonical_IsTheSameForEqualValues has all structs, and of each value one whose
// maps were filled in another order, with pairs the other way round.
func TestAppendCanonical_IsTheSameForEqualValues(t *testing.T) {
	for _, prototype := range declared {
		for seed := range uint64(20) {
			s := newFilled(prototype, seed)
			canonical := mustCanonical(t, s)
			if message, err := thrift.Marshal(s); err != nil || len(message) != len(canonical) {
				t.Fatalf("%T: %d bytes, %v, and %d in canonical form", s, len(message), err, len(canonical))
			}
			received := reflect.New(reflect.TypeOf(prototype).Elem()).Interface().(thrift.Struct)
			if err := thrift.Unmarshal(canonical, received); err != nil {
				t.Fatalf("%T: %v", s, err)
			}
			// Pairs are in another order then, so what was received is not compared itself.
			if again := mustCanonical(t, received); !bytes.Equal(again, canonical) {
				t.Fatalf("%T, seed %d:\nfirst  %x\nsecond %x", s, seed, canonical, again)
			}
			turn(reflect.ValueOf(s).Elem())
			if turned := mustCanonical(t, s); !bytes.Equal(turned, canonical) {
				t.Fatalf("%T, seed %d:\nfirst  %x\nturned %x", s, seed, canonical, turned)
			}
		}
	}
}

// turn changes the order of everything in v that has none.
func turn(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			turn(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				turn(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			turn(v.Index(i))
		}
		if strings.HasPrefix(v.Type().Elem().Name(), "Pair[") {
			swap := reflect.Swapper(v.Interface())
			for i := range v.Len() / 2 {
				swap(i, v.Len()-1-i)
			}
		}
	case reflect.Map:
		turned := reflect.MakeMap(v.Type())
		for key, value := range v.Seq2() {
			element := reflect.New(v.Type().Elem()).Elem()
			element.Set(value)
			turn(element)
			turned.SetMapIndex(key, element)
		}
		if !v.IsNil() {
			v.Set(turned)
		}
	}
}

// TestAppendCanonical_OfDoublesThatAreEqual: Equal says that they are.
func TestAppendCanonical_OfDoublesThatAreEqual(t *testing.T) {
	negative, otherNaN := math.Copysign(0, -1), math.Float64frombits(math.Float64bits(math.NaN())^1<<63)
	zero := &shapes.Containers{Doubles: []float64{0, math.NaN()}, Maps: map[int16]map[int64][]float64{1: {2: {0}}}}
	other := &shapes.Containers{Doubles: []float64{negative, otherNaN}, Maps: map[int16]map[int64][]float64{1: {2: {negative}}}}
	if !zero.Equal(other) || !bytes.Equal(mustCanonical(t, zero), mustCanonical(t, other)) {
		t.Error("zeros and NaN of different signs are equal, and other bytes")
	}
	first := &shapes.Keys{Doubles: map[float64]string{0: "a", 1: "b", -1: "c"}}
	second := &shapes.Keys{Doubles: map[float64]string{-1: "c", 1: "b", negative: "a"}}
	if !first.Equal(second) || !bytes.Equal(mustCanonical(t, first), mustCanonical(t, second)) {
		t.Error("maps with zeros of different signs as keys are equal, and other bytes")
	}
	// NaN as a key equals none, but who hashes a value twice wants one hash.
	many := &shapes.Keys{Doubles: map[float64]string{}}
	for _, text := range []string{"a", "b", "c", "d", "e", "f"} {
		many.Doubles[math.NaN()] = text
		many.Doubles[otherNaN] = text
	}
	want := mustCanonical(t, many)
	for range 20 {
		if !bytes.Equal(mustCanonical(t, many), want) {
			t.Fatal("a map with NaN as keys is other bytes the second time")
		}
	}
}

// TestAppendCanonical_OfAView: the bytes that it was loaded from may be in any order.
func TestAppendCanonical_OfAView(t *testing.T) {
	for seed := range uint64(20) {
		s := newFilled(new(views.Containers), seed).(*views.Containers)
		want := mustCanonical(t, s)
		message, err := thrift.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var view views.ContainersView
		if err := view.Load(message); err != nil {
			t.Fatal(err)
		}
		if got := mustCanonical(t, &view); !bytes.Equal(got, want) {
			t.Fatalf("seed %d:\nview   %x\nstruct %x", seed, got, want)
		}
	}
}

func BenchmarkAppendCanonical(b *testing.B) {
	s := newFilled(new(shapes.Containers), 1)
	for name, marshal := range map[string]func(thrift.Struct) ([]byte, error){"plain": thrift.Marshal, "canonical": func(s thrift.Struct) ([]byte, error) { return thrift.AppendCanonical(nil, s) }} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := marshal(s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
