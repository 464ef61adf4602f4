package roundtrip_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/reuse/golden/reuse"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/sets/golden/sets"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// TestMapSets_AreSetsOnTheWire: who has a list of the same field reads and writes the same.
func TestMapSets_AreSetsOnTheWire(t *testing.T) {
	sent := sets.NewMaps()
	sent.Texts = thrift.NewSet("a", "b", "c")
	sent.Longs.Add(7)
	sentBytes, err := thrift.Marshal(sent)
	if err != nil || len(sentBytes) != sent.SizeThrift() {
		t.Fatalf("%d bytes, want %d: %v", len(sentBytes), sent.SizeThrift(), err)
	}
	var received sets.Maps
	if err := thrift.Unmarshal(sentBytes, &received); err != nil || !received.Texts.Has("b") || received.Texts.Has("x") || received.Texts.Len() != 3 {
		t.Errorf("%v, %v", &received, err)
	}
	if received.Shorts != nil || received.Bools == nil {
		t.Errorf("absent: %v, empty: %#v", received.Shorts, received.Bools)
	}
	if got := slices.Sorted(received.Texts.All()); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("the elements are %q", got)
	}
	// Of equal elements, which only lists can have, one stays.
	err = read(t, &received, func(m *message) {
		m.b = m.w.StringList(m.b, thrift.Key(thrift.Set, 6), []string{"x", "y", "x"})
		m.b = m.w.BoolList(m.b, thrift.Key(thrift.Set, 1), []bool{true, true})
		m.b = m.w.I64List(m.b, thrift.Key(thrift.Set, 5), nil)
	})
	if err != nil || !maps.Equal(received.Texts, thrift.NewSet("x", "y")) || received.Bools.Len() != 1 {
		t.Errorf("%v, %v", &received, err)
	}
	// Another type of elements changes nothing.
	err = read(t, &received, func(m *message) {
		m.b = m.w.I32List(m.b, thrift.Key(thrift.Set, 6), []int32{1})
		m.b = m.w.I64List(m.b, thrift.Key(thrift.Set, 5), nil)
	})
	if err != nil || received.Texts.Len() != 2 {
		t.Errorf("%v, %v", &received, err)
	}
	wantError(t, read(t, new(sets.Maps), func(*message) {}), "required but absent: longs")
}

func TestMapSets_AreValues(t *testing.T) {
	s := newFilled(new(sets.Maps), 3).(*sets.Maps)
	s.Texts = thrift.NewSet("one", "two")
	s.Bools = thrift.NewSet(true)
	clone := s.Clone()
	if !s.Equal(clone) || !reflect.DeepEqual(s, clone) {
		t.Errorf("%v is cloned as %v", s, clone)
	}
	for text := range s.Texts.All() {
		for other := range clone.Texts.All() {
			if text == other && unsafe.StringData(text) == unsafe.StringData(other) {
				t.Errorf("%q is shared with the clone", text)
			}
		}
	}
	clone.Texts.Remove("one")
	if s.Equal(clone) || !s.Texts.Has("one") {
		t.Errorf("%v is changed with its clone", s)
	}
	one, other := &sets.Maps{Maybe: nil}, &sets.Maps{Maybe: thrift.NewSet[string]()}
	if one.Equal(other) || (&sets.Maps{}).Equal(&sets.Maps{Texts: thrift.NewSet("")}) || !(&sets.Maps{}).Equal(&sets.Maps{Texts: thrift.NewSet[string]()}) {
		t.Error("nil is empty, but for optional fields")
	}
	defaults := new(sets.Maps).GetShorts()
	if !maps.Equal(defaults, thrift.NewSet[int16](3, 4)) {
		t.Errorf("the default is %v", defaults)
	}
	text := (&sets.Maps{Texts: thrift.NewSet("b", "a"), Colors: thrift.NewSet(sets.Color_BLUE), Ints: thrift.NewSet[int32]()}).String()
	if want := `sets.Maps(ints: [], texts: ["a", "b"], colors: [BLUE])`; text != want {
		t.Errorf("text %s, want %s", text, want)
	}
}

func TestMapSets_AreListsInJSON(t *testing.T) {
	s := sets.NewMaps()
	s.Texts, s.Bools, s.UUIDs = thrift.NewSet("b", "a"), thrift.NewSet(true, false), thrift.NewSet(thrift.UUID{1})
	s.Others = map[bool]int32{true: 1} // which encoding/json does not know, so the struct has methods
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"texts":["a","b"]`, `"bools":[false,true]`, `"bytes":null`, `"ints":[1,2]`, `"words":[]`, `"uuids":["01000000-`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("%s is not in %s", part, text)
		}
	}
	var received sets.Maps
	if err := json.Unmarshal(text, &received); err != nil || !reflect.DeepEqual(s, &received) {
		t.Errorf("%v\nsent     %v\nreceived %v", err, s, &received)
	}
	preset := sets.NewMaps()
	if err := json.Unmarshal([]byte(`{"ints": [9], "words": null}`), preset); err != nil || !maps.Equal(preset.Ints, thrift.NewSet[int32](9)) || preset.Words != nil {
		t.Errorf("%v, %v; want the default replaced", preset, err)
	}
	if err := json.Unmarshal([]byte(`{"ints": ["x"]}`), preset); err == nil {
		t.Error("a text is taken for a number")
	}
}

// TestMapSets_AreBounded: a map is charged for what arrived.
func TestMapSets_AreBounded(t *testing.T) {
	const n = 100_000
	sent := &sets.Maps{Bytes: thrift.NewSet[int8](1)}
	for i := range int32(n) {
		sent.Ints.Add(i)
	}
	sent.Longs.Add(1)
	sentBytes, err := thrift.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	var received sets.Maps
	most := limits.DefaultMessage().DecodeBytes(len(sentBytes))
	if got := testkit.Allocated(most, func() { err = thrift.Unmarshal(sentBytes, &received) }); err != nil || got > most || !sent.Equal(&received) {
		t.Errorf("%d bytes allocated (limit %d): %v", got, most, err)
	}
	if err := thrift.Unmarshal(sentBytes[:len(sentBytes)/2], new(sets.Maps)); err == nil {
		t.Error("half of it can be read")
	}
}

// TestMapSets_AreReused takes the memory of the last message.
func TestMapSets_AreReused(t *testing.T) {
	first := &reuse.Marked{Numbers: thrift.NewSet[int32](1, 2, 3), Texts: []string{"a", "b"}}
	sentBytes, err := thrift.Marshal(&reuse.Marked{Numbers: thrift.NewSet[int32](4, 5)})
	if err != nil {
		t.Fatal(err)
	}
	memory := reflect.ValueOf(first.Numbers).Pointer()
	err = thrift.UnmarshalOwned(sentBytes, first, thrift.UnmarshalConfig{Reuse: true})
	if err != nil || !maps.Equal(first.Numbers, thrift.NewSet[int32](4, 5)) || reflect.ValueOf(first.Numbers).Pointer() != memory {
		t.Errorf("%v, %v; want the map that was there, with 4 and 5", first, err)
	}
	repeated := fields(func(m *message) { m.b = m.w.StringList(m.b, thrift.Key(thrift.Set, 2), []string{"a", "a"}) })
	sentBytes, err = thrift.Marshal(repeated)
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, thrift.UnmarshalOwned(sentBytes, first, thrift.UnmarshalConfig{Reuse: true}), "field 2: set: element 1 equals element 0")
}
