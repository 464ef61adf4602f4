package codectest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// contents lists the numbers and texts of a value of any generated type in the
// order of its fields, entries of maps in the order of their keys. Pointers,
// optional fields and lists that are not set, and what a library hides in a struct make no
// difference.
func contents(v any) []string {
	var all []string
	walk(reflect.ValueOf(v), &all)
	return all
}

func walk(v reflect.Value, all *[]string) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			walk(v.Elem(), all)
		}
	case reflect.Struct:
		if get := v.MethodByName("Get"); get.IsValid() {
			if results := get.Call(nil); results[1].Bool() { // A thrift.Opt.
				walk(results[0], all)
			}
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				walk(v.Field(i), all)
			}
		}
	case reflect.Slice:
		if v.IsNil() {
			return
		}
		*all = append(*all, fmt.Sprintf("%d elements", v.Len()))
		for i := range v.Len() {
			walk(v.Index(i), all)
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		*all = append(*all, fmt.Sprintf("%d entries", len(keys)))
		for _, key := range keys {
			walk(key, all)
			walk(v.MapIndex(key), all)
		}
	default:
		*all = append(*all, fmt.Sprint(v))
	}
}

// differ describes the first difference, if there is one.
func differ(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("number %d of %d is %.40q, want %.40q", i, len(want), got[i], want[i])
		}
	}
	if len(got) != len(want) {
		return fmt.Sprintf("%d numbers and texts, want %d", len(got), len(want))
	}
	return ""
}
