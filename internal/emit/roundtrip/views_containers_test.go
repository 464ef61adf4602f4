package roundtrip_test

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/views/golden/views"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// Containers of views have the text and the JSON of what a struct has for them.
func TestView_ContainersHaveTexts(t *testing.T) {
	s := &views.Containers{
		Bools: []bool{true, false}, Ints: []int32{1, -2}, Doubles: []float64{0.5}, Strings: []string{"a", "b\"c"},
		Binaries: [][]byte{{1, 2}}, Colors: []views.Color{views.Color_RED}, Leaves: []views.Leaf{{Number: 1}, {Number: 2}},
		Cube: [][][]int64{{{1}, {}}, {}}, Maps: map[int16]map[int64][]float64{-1: {2: {3}}}, ByBool: map[bool]views.Color{true: views.Color_BLUE},
		Texts: map[string]string{"k<": "v"},
	}
	v, err := views.NewContainersView(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		got, like  any
		text, json string
	}{
		{v.Bools(), s.Bools, "[true, false]", ""},
		{v.Ints(), s.Ints, "[1, -2]", ""},
		{v.Doubles(), s.Doubles, "[0.5]", ""},
		{v.Strings(), s.Strings, `["a", "b\"c"]`, ""},
		{v.Binaries(), s.Binaries, `["\x01\x02"]`, ""},
		{v.Colors(), s.Colors, "[RED]", ""},
		{v.Leaves(), s.Leaves, "[views.Leaf(number: 1), views.Leaf(number: 2)]", ""},
		{v.Cube(), s.Cube, "[[[1], []], []]", ""},
		{v.Maps(), s.Maps, "{-1: {2: [3]}}", ""},
		{v.ByBool(), nil, "{true: BLUE}", `[{"key":true,"value":2}]`},
		{v.Texts(), s.Texts, `{"k<": "v"}`, ""},
		{v.UUIDs(), []thrift.UUID{}, "[]", ""},
		{v.ByBinary(), map[string]int{}, "{}", ""},
	} {
		if text := fmt.Sprint(test.got); text != test.text {
			t.Errorf("text %s, not %s", text, test.text)
		}
		got, err := json.Marshal(test.got)
		if err != nil {
			t.Error(err)
			continue
		}
		want := []byte(test.json)
		if test.json == "" {
			if want, err = json.Marshal(test.like); err != nil {
				t.Fatal(err)
			}
		}
		if string(got) != string(want) {
			t.Errorf("%s: JSON %s, not %s", test.text, got, want)
		}
	}
	v.SetDoubles([]float64{0, math.Inf(1)})
	if b, err := json.Marshal(v.Doubles()); err == nil {
		t.Errorf("infinity: %s", b)
	}
}

// Of keys that are there twice the JSON has the last, as a Go map.
func TestView_JSONHasTheLastEntry(t *testing.T) {
	const texts = "\x0d\x00\x16\x0b\x0b\x00\x00\x00\x03" +
		"\x00\x00\x00\x01a\x00\x00\x00\x011" + "\x00\x00\x00\x01b\x00\x00\x00\x012" + "\x00\x00\x00\x01a\x00\x00\x00\x013" + "\x00"
	var v views.ContainersView
	if err := v.Load([]byte(texts)); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(v.Texts())
	var got map[string]string
	if err != nil || json.Unmarshal(b, &got) != nil || !reflect.DeepEqual(got, map[string]string{"a": "3", "b": "2"}) {
		t.Errorf("%s, %v", b, err)
	}
	if text := v.Texts().String(); text != `{"a": "1", "b": "2", "a": "3"}` {
		t.Error(text)
	}
}
