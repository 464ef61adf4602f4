package roundtrip_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/sets/golden/sets"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// otherNaN is not the NaN of Go.
var otherNaN = math.Float64frombits(math.Float64bits(math.NaN()) ^ 1<<63)

// TestSets_EqualElementsCannotBeWritten has all types of elements.
func TestSets_EqualElementsCannotBeWritten(t *testing.T) {
	point := func() sets.Point {
		return sets.Point{X: 1, Y: math.NaN(), Label: thrift.Some("l"), Tags: map[string]int32{"a": 1, "b": 2, "c": 3}}
	}
	for _, c := range []struct {
		s    thrift.Struct
		want string
	}{
		{&sets.Scalars{Bools: []bool{true, false, true}}, "sets.Scalars: bools: element 2 equals element 0, counted from 0"},
		{&sets.Scalars{Bytes: []int8{1, -1, 2, -1}}, "bytes: element 3 equals element 1"},
		{&sets.Scalars{Shorts: []int16{5, 5}}, "shorts: element 1 equals element 0"},
		{&sets.Scalars{Ints: []int32{1, 2, 3, 4, 5, 6, 7, 8, 9, 1}}, "ints: element 9 equals element 0"},
		{&sets.Scalars{Longs: []int64{1 << 40, 1, 1 << 40}}, "longs: element 2 equals element 0"},
		{&sets.Scalars{Doubles: []float64{1, math.NaN(), otherNaN}}, "doubles: element 2 equals element 1"},
		{&sets.Scalars{Doubles: []float64{0, math.Copysign(0, -1)}}, "doubles: element 1 equals element 0"},
		{&sets.Scalars{Texts: []string{"", "a", ""}}, "texts: element 2 equals element 0"},
		{&sets.Scalars{Blobs: [][]byte{nil, {1}, {}}}, "blobs: element 2 equals element 0"},
		{&sets.Scalars{UUIDs: []thrift.UUID{{1}, {1}}}, "uuids: element 1 equals element 0"},
		{&sets.Scalars{Colors: []sets.Color{7, 7}}, "colors: element 1 equals element 0"},
		{&sets.Scalars{Named: sets.Blobs{{1}, {1}}}, "named: element 1 equals element 0"},
		{&sets.Nested{Points: []sets.Point{point(), {}, point()}}, "sets.Nested: points: element 2 equals element 0"},
		{&sets.Nested{Choices: []sets.Choice{{Number: thrift.Some[int32](1)}, {Number: thrift.Some[int32](1)}}}, "choices: element 1 equals element 0"},
		{&sets.Nested{Lists: [][]int32{{1, 2}, {2, 1}, {1, 2}}}, "lists: element 2 equals element 0"},
		{&sets.Nested{Lists: [][]int32{nil, {}}}, "lists: element 1 equals element 0"},
		{&sets.Nested{Maps: []map[string]*sets.Point{{"a": {X: 1}, "b": {X: 2}}, {"b": {X: 2}, "a": {X: 1}}}}, "maps: element 1 equals element 0"},
		{&sets.Nested{Sets: [][]string{{"a", "b"}, {"b", "a"}}}, "sets: element 1 equals element 0"},
		{&sets.Nested{Sets: [][]string{{"a"}, {"b", "b"}}}, "sets: element 1 equals element 0"}, // of the inner one
		{&sets.Nested{Many: [][]int32{{1}, {1}, {2, 3, 2}}}, "many: element 2 equals element 0"},
		{&sets.Nested{Pairs: []thrift.Pair[[]string, []sets.Point]{{Key: []string{"a", "a"}}}}, "pairs: element 1 equals element 0"},
		{&sets.Nested{Pairs: []thrift.Pair[[]string, []sets.Point]{{Value: []sets.Point{point(), point()}}}}, "pairs: element 1 equals element 0"},
		{&sets.Nested{Deep: map[string][][]int64{"a": {{1}, {2, 2}}}}, "deep: element 1 equals element 0"},
		{&sets.Nested{Maybe: []string{"a", "a"}}, "maybe: element 1 equals element 0"},
		{&sets.Nested{Must: []int32{1, 1}}, "must: element 1 equals element 0"},
		{&sets.Tree{Children: []sets.Tree{{Number: 1}, {Children: []sets.Tree{{Number: 2}, {Number: 2}}}}}, "children: element 1 equals element 0"},
		{&sets.Arm{Texts: []string{"a", "a"}}, "sets.Arm: texts: element 1 equals element 0"},
		{&sets.TagsSwapArgs{Tags: []string{"a", "a"}}, "Tags.swap arguments: tags: element 1 equals element 0"},
	} {
		_, err := thrift.Marshal(c.s)
		wantError(t, err, c.want)
		// In memory that is there, too.
		_, err = thrift.Append(make([]byte, 0, 1<<12), c.s)
		wantError(t, err, c.want)
		_, err = thrift.AppendCanonical(nil, c.s)
		wantError(t, err, c.want)
	}
	if _, err := thrift.Marshal(&sets.Scalars{Repeated: []int32{1, 1}}); err != nil {
		t.Errorf("a set that may have equal elements: %v", err)
	}
	if _, err := thrift.Marshal(&sets.TagsSwapResult{Success: []string{"a", "a"}}); err != nil {
		t.Errorf("a result, of which nothing is said: %v", err)
	}
}

// TestSets_EqualElementsAreRefused: a peer may send them.
func TestSets_EqualElementsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		s     thrift.Struct
		write fields
		want  string
	}{
		"texts": {new(sets.Scalars), func(m *message) {
			m.b = m.w.StringList(m.b, thrift.Key(thrift.Set, 7), []string{"a", "b", "a"})
		}, "thrift: sets.Scalars: field 7: set: element 2 equals element 0, counted from 0 (at byte 23)"},
		"bools, of which every byte but 1 is false": {new(sets.Scalars), func(m *message) {
			m.b = append(m.w.Room(m.b, 10), byte(thrift.Set), 0, 1, byte(thrift.Bool), 0, 0, 0, 2, 0, 2)
		}, "field 1: set: element 1 equals element 0"},
		"doubles": {new(sets.Scalars), func(m *message) {
			m.b = m.w.DoubleList(m.b, thrift.Key(thrift.Set, 6), []float64{math.NaN(), otherNaN})
		}, "field 6: set: element 1 equals element 0"},
		"a union": {new(sets.Arm), func(m *message) {
			m.b = m.w.StringList(m.b, thrift.Key(thrift.Set, 1), []string{"a", "a"})
		}, "sets.Arm: field 1: set: element 1 equals element 0"},
		"within lists": {new(sets.Nested), func(m *message) {
			m.Field(thrift.List, 6)
			m.BeginList(thrift.Set, 2)
			m.b = m.w.I32List(m.b, 0, []int32{1})
			m.b = m.w.I32List(m.b, 0, []int32{1, 2, 1})
			m.EndList()
		}, "field 6: set: element 2 equals element 0"},
		"structs with fields in another order": {new(sets.Nested), func(m *message) {
			m.Field(thrift.Set, 1)
			m.BeginList(thrift.StructType, 2)
			m.Struct(fields(func(m *message) { m.FieldI32(1, 5); m.FieldString(3, "l") }))
			m.Struct(fields(func(m *message) { m.FieldString(3, "l"); m.FieldI32(1, 5) }))
			m.EndList()
		}, "field 1: set: element 1 equals element 0"},
		"unions with arms that nobody knows": {new(sets.Nested), func(m *message) {
			m.Field(thrift.Set, 2)
			m.BeginList(thrift.StructType, 2)
			m.Struct(fields(func(m *message) { m.FieldI32(8, 1) }))
			m.Struct(fields(func(m *message) { m.FieldI32(9, 1) }))
			m.EndList()
		}, "field 2: set: element 1 equals element 0"},
		"arguments": {new(sets.TagsSwapArgs), func(m *message) {
			m.b = m.w.StringList(m.b, thrift.Key(thrift.Set, 1), []string{"a", "a"})
		}, "Tags.swap arguments: field 1: set: element 1 equals element 0"},
	} {
		t.Run(name, func(t *testing.T) { wantError(t, read(t, c.s, c.write), c.want) })
	}
}

// TestSets_OfOtherTypesStay: a list that is read past changes nothing, and what was there
// is not looked at.
func TestSets_OfOtherTypesStay(t *testing.T) {
	s := &sets.Scalars{Texts: []string{"old", "old"}}
	err := read(t, s, func(m *message) { m.b = m.w.I32List(m.b, thrift.Key(thrift.Set, 7), []int32{1, 1}) })
	if err != nil || len(s.Texts) != 2 {
		t.Errorf("%v, %v", s.Texts, err)
	}
	err = read(t, new(sets.Nested), func(m *message) {
		m.Field(thrift.Set, 2)
		m.BeginList(thrift.StructType, 2)
		m.Struct(fields(func(m *message) { m.FieldI32(1, 1) }))
		m.Struct(fields(func(m *message) { m.FieldI32(9, 1) })) // one arm that nobody knows
		m.EndList()
		m.b = m.w.I32List(m.b, thrift.Key(thrift.Set, 10), nil)
	})
	if err != nil {
		t.Errorf("one arm that is not known: %v", err)
	}
}

// TestSets_OfAnyElements compares with a Go map.
func TestSets_OfAnyElements(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		n := random.IntN(200)
		s := &sets.Scalars{Longs: make([]int64, n), Texts: make([]string, n)}
		longs, texts := map[int64]bool{}, map[string]bool{}
		for i := range n {
			s.Longs[i] = random.Int64N(10_000)
			s.Texts[i] = strings.Repeat("x", random.IntN(3)) + fmt.Sprint(random.IntN(10_000))
			longs[s.Longs[i]], texts[s.Texts[i]] = true, true
		}
		_, err := thrift.Marshal(s)
		if distinct := len(longs) == n && len(texts) == n; (err == nil) != distinct {
			t.Fatalf("of %d elements %d and %d are distinct: %v", n, len(longs), len(texts), err)
		}
	}
}

// TestSets_OfManyElements: comparing each with each would take hours.
func TestSets_OfManyElements(t *testing.T) {
	const n = 500_000
	s := &sets.Scalars{Ints: make([]int32, n)}
	for i := range s.Ints {
		s.Ints[i] = int32(i)
	}
	message, err := thrift.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var received sets.Scalars
	most := limits.DefaultMessage().DecodeBytes(len(message))
	if got := testkit.Allocated(most, func() { err = thrift.Unmarshal(message, &received) }); err != nil || got > most/2 {
		t.Errorf("%d bytes allocated (limit %d): %v", got, most, err)
	}
	s.Ints[n-1] = 7
	_, err = thrift.Marshal(s)
	wantError(t, err, "ints: element 499999 equals element 7")
}

// TestSets_ThatContainThemselves end as other values do.
func TestSets_ThatContainThemselves(t *testing.T) {
	s := &sets.Tree{Children: []sets.Tree{{Number: 1}, {Number: 2}}}
	s.Children[0].Children, s.Children[1].Children = s.Children, s.Children
	_, err := thrift.Marshal(s)
	wantError(t, err, "nest deeper")
	// As many values as there are combinations, and no end in sight.
	shared := []sets.Tree{{Number: 1}, {Number: 2}}
	for range 40 {
		shared = []sets.Tree{{Number: 1, Children: shared}, {Number: 2, Children: shared}}
	}
	_, err = thrift.Marshal(&sets.Tree{Children: shared})
	wantError(t, err, "limit")
}

// TestSets_InSetsAreComparedOnce: a set that is compared again for each set around it
// would take 2 to the power of the depth.
func TestSets_InSetsAreComparedOnce(t *testing.T) {
	s := &sets.Tree{}
	for i := range int32(limits.DefaultMessage().Depth/2 - 1) {
		s = &sets.Tree{Number: i, Children: []sets.Tree{{Number: -1}, *s}}
	}
	message, err := thrift.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := thrift.Unmarshal(message, new(sets.Tree)); err != nil {
		t.Error(err)
	}
}

// TestSets_OfOneElementCostNothing: most sets that are checked are as long as that.
func TestSets_OfOneElementCostNothing(t *testing.T) {
	s := &sets.Scalars{Ints: []int32{1}, Texts: []string{"a"}}
	b := make([]byte, 0, 1<<10)
	if got := testing.AllocsPerRun(20, func() { _, _ = thrift.Append(b, s) }); got > 1 { // of the Writer
		t.Errorf("%v allocations to write sets of one element, want 1", got)
	}
}
