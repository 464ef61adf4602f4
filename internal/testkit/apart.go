package testkit

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"testing"
)

// Apart fails the test if a value refers to the same memory twice, or to that of others:
// what is in two places changes in both when somebody writes to one of them. What stands
// behind the ends of lists counts. Strings may share memory with strings, as those of
// defaults do. The value must not contain itself.
func Apart(t testing.TB, value any, others ...[]byte) {
	t.Helper()
	var all pieces
	for _, other := range others {
		all.add(reflect.ValueOf(other).Pointer(), uintptr(len(other)), "memory of others", false)
	}
	all.walk(reflect.ValueOf(value), "it")
	slices.SortFunc(all, func(a, b piece) int { return cmp.Compare(a.start, b.start) })
	var written, texts piece // of those before the one that reaches furthest
	for _, one := range all {
		switch {
		case one.start < written.end:
			t.Fatalf("%T: %s and %s share memory", value, written.path, one.path)
		case one.start < texts.end && !one.text:
			t.Fatalf("%T: %s and %s share memory", value, texts.path, one.path)
		case !one.text:
			written = one
		case one.end > texts.end:
			texts = one
		}
	}
}

// piece is memory that a value refers to.
type piece struct {
	start, end uintptr
	path       string
	// text: nobody writes to it.
	text bool
}

type pieces []piece

func (a *pieces) add(start, size uintptr, path string, text bool) {
	if start != 0 && size > 0 {
		*a = append(*a, piece{start, start + size, path, text})
	}
}

func (a *pieces) walk(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.String:
		a.add(v.Pointer(), uintptr(v.Len()), path, true)
	case reflect.Pointer:
		if !v.IsNil() {
			a.add(v.Pointer(), v.Type().Elem().Size(), path, false)
			a.walk(v.Elem(), path)
		}
	case reflect.Slice:
		a.add(v.Pointer(), uintptr(v.Cap())*v.Type().Elem().Size(), path, false)
		for i := range v.Cap() {
			a.walk(v.Slice(0, v.Cap()).Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	case reflect.Map:
		a.add(v.Pointer(), 1, path, false)
		for key, value := range v.Seq2() {
			a.walk(key, fmt.Sprintf("%s{%v}, key", path, key))
			a.walk(value, fmt.Sprintf("%s{%v}", path, key))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			a.walk(v.Field(i), path+"."+v.Type().Field(i).Name)
		}
	}
}
