package roundtrip_test

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/fieldtypes/golden/fieldtypes"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/names/golden/names"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/orders/golden/orders"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/recursion/golden/recursion"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/shapes/golden/shapes"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/values/golden/values"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// sized is a declared struct, which has all methods; arguments and results have
// String only.
type sized interface {
	thrift.Struct
	SizeThrift() int
	Detach()
	String() string
}

// forDeclared calls a test with values of every declared struct.
func forDeclared(t *testing.T, seeds uint64, test func(t *testing.T, s sized)) {
	count := 0
	for _, prototype := range declared {
		if _, ok := prototype.(sized); !ok {
			continue
		}
		count++
		t.Run(reflect.TypeOf(prototype).Elem().String(), func(t *testing.T) {
			for seed := range seeds {
				test(t, newFilled(prototype, seed).(sized))
			}
		})
	}
	if count < 40 {
		t.Errorf("%d structs have methods", count)
	}
}

func cloneOf(s sized) sized {
	return reflect.ValueOf(s).MethodByName("Clone").Call(nil)[0].Interface().(sized)
}

func equal(a, b sized) bool {
	return reflect.ValueOf(a).MethodByName("Equal").Call([]reflect.Value{reflect.ValueOf(b)})[0].Bool()
}

func TestSizeThrift_IsWhatIsWritten(t *testing.T) {
	forDeclared(t, 20, func(t *testing.T, s sized) {
		message, err := thrift.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.SizeThrift(); got != len(message) {
			t.Errorf("SizeThrift is %d, %d bytes were written: %v", got, len(message), s)
		}
		// As the guide says.
		buffer := make([]byte, 0, s.SizeThrift()+256)
		if b, err := thrift.Append(buffer, s); err != nil || &b[0] != &buffer[:1][0] {
			t.Errorf("%v; %d bytes are not in memory of %d", err, len(b), cap(buffer))
		}
	})
	for _, prototype := range declared {
		s, ok := prototype.(sized)
		message, err := thrift.Marshal(prototype)
		if ok && err == nil && s.SizeThrift() != len(message) {
			t.Errorf("a new %T: SizeThrift is %d, %d bytes were written", s, s.SizeThrift(), len(message))
		}
	}
}

func TestClone_IsEqualAndSharesNothing(t *testing.T) {
	forDeclared(t, 20, func(t *testing.T, s sized) {
		c := cloneOf(s)
		if !reflect.DeepEqual(s, c) || !equal(s, c) || !equal(c, s) {
			t.Errorf("the clone of %v is %v", s, c)
		}
		mine, theirs := map[unsafe.Pointer]string{}, map[unsafe.Pointer]string{}
		memory(reflect.ValueOf(s), "s", mine)
		memory(reflect.ValueOf(c), "s", theirs)
		for place, what := range theirs {
			if other, shared := mine[place]; shared {
				t.Errorf("%s of the clone is %s of the original", what, other)
			}
		}
		if len(mine) != len(theirs) {
			t.Errorf("%d pieces of memory, the clone has %d", len(mine), len(theirs))
		}
	})
}

// memory adds the places of all memory that v refers to.
func memory(v reflect.Value, path string, places map[unsafe.Pointer]string) {
	note := func(place unsafe.Pointer, size int) {
		if size > 0 {
			places[place] = path
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			note(v.UnsafePointer(), int(v.Type().Elem().Size()))
			memory(v.Elem(), path, places)
		}
	case reflect.String:
		note(unsafe.Pointer(unsafe.StringData(v.String())), v.Len())
	case reflect.Slice:
		note(v.UnsafePointer(), v.Len()*int(v.Type().Elem().Size()))
		for i := range v.Len() {
			memory(v.Index(i), path+"[]", places)
		}
	case reflect.Map:
		note(v.UnsafePointer(), v.Len())
		for iterator := v.MapRange(); iterator.Next(); {
			memory(iterator.Key(), path+"[key]", places)
			memory(iterator.Value(), path+"[value]", places)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			memory(v.Field(i), path+"."+v.Type().Field(i).Name, places)
		}
	}
}

// TestEqual_SeesEveryChange changes one thing after the other in a copy.
func TestEqual_SeesEveryChange(t *testing.T) {
	changes := 0
	forDeclared(t, 4, func(t *testing.T, s sized) {
		c := cloneOf(s)
		mutate(reflect.ValueOf(c).Elem(), func() {
			changes++
			if equal(s, c) || equal(c, s) {
				t.Errorf("%v equals %v", s, c)
			}
		})
		if !equal(s, c) {
			t.Error("the copy was not restored")
		}
	})
	if changes < 5000 {
		t.Errorf("%d changes", changes)
	}
}

// mutate changes everything in v that can be seen, one thing at a time, calls check
// for each and changes it back.
func mutate(v reflect.Value, check func()) {
	old := reflect.New(v.Type()).Elem()
	old.Set(v)
	try := func(changed reflect.Value) {
		v.Set(changed)
		check()
		v.Set(old)
	}
	switch v.Kind() {
	case reflect.Bool:
		try(reflect.ValueOf(!v.Bool()).Convert(v.Type()))
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(v.Int() ^ 1)
		check()
		v.Set(old)
	case reflect.Uint8:
		v.SetUint(v.Uint() ^ 1)
		check()
		v.Set(old)
	case reflect.Float64:
		v.SetFloat(v.Float() + 1)
		check()
		v.Set(old)
	case reflect.String:
		try(reflect.ValueOf(v.String() + "x").Convert(v.Type()))
	case reflect.Array:
		mutate(v.Index(v.Len()-1), check)
	case reflect.Pointer:
		if v.IsNil() {
			try(reflect.New(v.Type().Elem()))
			return
		}
		try(reflect.Zero(v.Type()))
		mutate(v.Elem(), check)
	case reflect.Slice:
		try(reflect.Append(v.Slice3(0, v.Len(), v.Len()), reflect.Zero(v.Type().Elem())))
		for i := range v.Len() {
			mutate(v.Index(i), check)
		}
	case reflect.Map:
		mutateMap(v, check)
	case reflect.Struct:
		if strings.HasPrefix(v.Type().Name(), "Opt[") {
			mutateOpt(v, check)
			return
		}
		if v.Type() == reflect.TypeFor[thrift.Unknown]() {
			try(reflect.ValueOf(unknownFields(1000)))
			return
		}
		for i := range v.NumField() {
			mutate(v.Field(i), check)
		}
	}
}

func mutateMap(m reflect.Value, check func()) {
	for iterator := m.MapRange(); iterator.Next(); {
		key, value := iterator.Key(), reflect.New(m.Type().Elem()).Elem()
		value.Set(iterator.Value())
		m.SetMapIndex(key, reflect.Value{})
		check()
		changed := reflect.New(m.Type().Elem()).Elem()
		changed.Set(value)
		mutate(changed, func() {
			m.SetMapIndex(key, changed)
			check()
		})
		m.SetMapIndex(key, value)
	}
}

func mutateOpt(v reflect.Value, check func()) {
	old := reflect.New(v.Type()).Elem()
	old.Set(v)
	opt := v.Addr()
	results := opt.MethodByName("Get").Call(nil)
	if results[1].Bool() {
		opt.MethodByName("Clear").Call(nil)
	} else {
		opt.MethodByName("Set").Call([]reflect.Value{reflect.Zero(results[0].Type())})
	}
	check()
	v.Set(old)
	if !results[1].Bool() {
		return
	}
	value := reflect.New(results[0].Type()).Elem()
	value.Set(results[0])
	mutate(value, func() {
		opt.MethodByName("Set").Call([]reflect.Value{value})
		check()
	})
	v.Set(old)
}

func TestEqual_NilIsEmptyWhereItIsWrittenSo(t *testing.T) {
	empty := &shapes.Containers{
		Bools: []bool{}, Doubles: []float64{}, Blobs: [][]byte{{}}, Cube: [][][]int64{{}}, Maps: map[int16]map[int64][]float64{1: {}},
		Points: []shapes.Point{}, Mixed: []map[string][]shapes.Point{{"a": {}}},
	}
	without := &shapes.Containers{
		Blobs: [][]byte{nil}, Cube: [][][]int64{nil}, Maps: map[int16]map[int64][]float64{1: nil},
		Mixed: []map[string][]shapes.Point{{"a": nil}},
	}
	if !empty.Equal(without) || !without.Equal(empty) {
		t.Error("empty and nil differ")
	}
	if !(&shapes.Keys{Lists: []thrift.Pair[[]int32, string]{{Key: nil}}}).Equal(&shapes.Keys{Lists: []thrift.Pair[[]int32, string]{{Key: []int32{}}}}) {
		t.Error("empty and nil keys differ")
	}
	absent := &shapes.Optional{}
	for name, present := range map[string]*shapes.Optional{
		"list": {AList: []int32{}}, "map": {AMap: map[string]int64{}}, "binary": {ABinary: []byte{}}, "scalar": {AnI32: thrift.Some[int32](0)},
		"string": {AString: thrift.Some("")}, "double": {ADouble: thrift.Some(0.0)}, "struct": {AStruct: &shapes.Point{}},
	} {
		if absent.Equal(present) || present.Equal(absent) || !present.Equal(present.Clone()) {
			t.Errorf("%s: absent and empty are the same", name)
		}
	}
}

func TestEqual_OfNil(t *testing.T) {
	var none *orders.Order
	if !none.Equal(nil) || none.Equal(&orders.Order{}) || (&orders.Order{}).Equal(nil) || none.Clone() != nil {
		t.Error("nil *Order")
	}
	var noPoint *shapes.Point // compared by ==
	if !noPoint.Equal(nil) || noPoint.Equal(&shapes.Point{}) || (&shapes.Point{}).Equal(nil) || noPoint.Clone() != nil {
		t.Error("nil *Point")
	}
	var noNode *recursion.Node
	if !noNode.Equal(nil) || noNode.Equal(&recursion.Node{}) || (&recursion.Node{}).Equal(nil) || noNode.Clone() != nil {
		t.Error("nil *Node")
	}
}

func TestEqual_Doubles(t *testing.T) {
	nan, zero := math.NaN(), math.Copysign(0, -1)
	other := math.Float64frombits(math.Float64bits(nan) ^ 1)
	for _, test := range []struct {
		a, b float64
		want bool
	}{{nan, nan, true}, {nan, other, true}, {0, zero, true}, {nan, 0, false}, {1, 2, false}, {math.Inf(1), math.Inf(1), true}, {math.Inf(1), math.Inf(-1), false}} {
		for name, got := range map[string]bool{
			"field":    (&shapes.Plain{ADouble: test.a}).Equal(&shapes.Plain{ADouble: test.b}),
			"optional": (&shapes.Optional{ADouble: thrift.Some(test.a)}).Equal(&shapes.Optional{ADouble: thrift.Some(test.b)}),
			"list":     (&shapes.Containers{Doubles: []float64{test.a}}).Equal(&shapes.Containers{Doubles: []float64{test.b}}),
			"nested": (&shapes.Containers{Maps: map[int16]map[int64][]float64{1: {2: {test.a}}}}).
				Equal(&shapes.Containers{Maps: map[int16]map[int64][]float64{1: {2: {test.b}}}}),
		} {
			if got != test.want {
				t.Errorf("%s: %v equals %v is %v", name, test.a, test.b, got)
			}
		}
	}
	key := &shapes.Keys{Doubles: map[float64]string{nan: "a"}}
	if key.Equal(key.Clone()) || len(key.Clone().Doubles) != 1 {
		t.Error("NaN as a key is found")
	}
}

func TestEqual_OrderCountsInSetsAndPairs(t *testing.T) {
	one, two := thrift.Pair[[]int32, string]{Key: []int32{1}}, thrift.Pair[[]int32, string]{Key: []int32{2}}
	a, b := &shapes.Keys{Lists: []thrift.Pair[[]int32, string]{one, two}}, &shapes.Keys{Lists: []thrift.Pair[[]int32, string]{two, one}}
	if a.Equal(b) || !a.Equal(a.Clone()) {
		t.Error("pairs")
	}
	x, y := &shapes.Plain{ASet: []string{"a", "b"}}, &shapes.Plain{ASet: []string{"b", "a"}}
	if x.Equal(y) || !x.Equal(x.Clone()) {
		t.Error("sets")
	}
	p, q := &shapes.Keys{Painting: shapes.Painting{}}, &shapes.Keys{Painting: shapes.Painting{}}
	for i := range int32(100) {
		p.Painting[shapes.Point{X: i, Label: thrift.Some("p")}] = shapes.Color(i)
		q.Painting[shapes.Point{X: 99 - i, Label: thrift.Some("p")}] = shapes.Color(99 - i)
	}
	if !p.Equal(q) || !p.Clone().Equal(q) {
		t.Error("maps with structs as keys")
	}
}

// loops returns values that contain themselves, some of them twice, as pointers,
// through a list, and through a map.
func loops() map[string]*recursion.Node {
	pointer, twice, list, entries := &recursion.Node{}, &recursion.Node{}, &recursion.Node{}, &recursion.Node{}
	pointer.Next = pointer
	twice.Next, twice.Twin = twice, twice
	list.Children = make([]recursion.Node, 3)
	for i := range list.Children {
		list.Children[i].Children = list.Children
	}
	entries.Named = map[string]*recursion.Node{}
	entries.Named["a"] = &recursion.Node{Named: entries.Named}
	entries.Named["b"] = &recursion.Node{Named: entries.Named}
	return map[string]*recursion.Node{"pointer": pointer, "twice": twice, "list": list, "map": entries}
}

func TestMethods_EndOnValuesThatContainThemselves(t *testing.T) {
	others := loops()
	for name, loop := range loops() {
		if !loop.Equal(loop) {
			t.Errorf("%s: does not equal itself", name)
		}
		if loop.Equal(others[name]) {
			t.Errorf("%s: equality was decided in finite time", name)
		}
		if n := loop.SizeThrift(); n <= 0 {
			t.Errorf("%s: size %d", name, n)
		}
		if text := loop.String(); len(text) > limits.TextBytes+len("...") || !strings.Contains(text, "(...)") && !strings.HasSuffix(text, "...") {
			t.Errorf("%s: %s", name, text)
		}
		func() {
			defer func() {
				if got, _ := recover().(string); !strings.Contains(got, "recursion.Node cannot be copied") {
					t.Errorf("%s: panic %q", name, got)
				}
			}()
			loop.Clone()
		}()
	}
	caused := &recursion.Caused{Message: "a"}
	caused.Cause = caused
	if text := caused.Error(); !strings.Contains(text, "(...)") {
		t.Error(text)
	}
}

// TestMethods_TakeDeepValues has a list of as many nodes as may be.
func TestMethods_TakeDeepValues(t *testing.T) {
	deep := &recursion.Node{}
	for range limits.ValueDepth - 1 {
		deep = &recursion.Node{Next: deep}
	}
	c := deep.Clone()
	if !deep.Equal(c) {
		t.Error("the clone differs")
	}
	// Each node but the last has 25 bytes of its own and a header of 3.
	if got, want := deep.SizeThrift(), 28*limits.ValueDepth-3; got != want {
		t.Errorf("size %d, want %d", got, want)
	}
}

// TestDetach_LetsGoOfTheMessage overwrites a message that strings refer to, which
// nobody but this test may do.
func TestDetach_LetsGoOfTheMessage(t *testing.T) {
	changed := 0
	forDeclared(t, 3, func(t *testing.T, s sized) {
		message, err := thrift.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		received := reflect.New(reflect.TypeOf(s).Elem()).Interface().(sized)
		if err := thrift.UnmarshalOwned(message, received, thrift.UnmarshalConfig{Strings: thrift.StringsMessage}); err != nil {
			t.Fatal(err)
		}
		detached := cloneOf(received)
		inPlace := reflect.New(reflect.TypeOf(s).Elem())
		inPlace.Elem().Set(reflect.ValueOf(received).Elem())
		inPlace.Interface().(sized).Detach()
		for i := range message {
			message[i] = '!'
		}
		if !equal(s, detached) || !equal(s, inPlace.Interface().(sized)) {
			t.Errorf("a clone has changed: %v", detached)
		}
		if !equal(s, received) {
			changed++
		}
	})
	if changed < 40 {
		t.Errorf("%d values referred to their messages", changed)
	}
}

func TestString_IsOneLineOfBoundedLength(t *testing.T) {
	for _, prototype := range declared {
		name := reflect.TypeOf(prototype).Elem().String()
		for seed := range uint64(5) {
			text := newFilled(prototype, seed).(interface{ String() string }).String()
			if !strings.HasPrefix(text, name) || strings.ContainsAny(text, "\n\r\x00") || len(text) > limits.TextBytes+3 {
				t.Errorf("%s: %s", name, text)
			}
		}
		none := reflect.Zero(reflect.TypeOf(prototype)).Interface().(interface{ String() string })
		if got := none.String(); got != name+"(nil)" {
			t.Errorf("nil %s is %s", name, got)
		}
	}
}

func TestString_IsReadable(t *testing.T) {
	order := &orders.Order{
		ID: 7, Status: orders.Status_PAID, Items: []orders.Item{{Sku: "a\n", Quantity: 1, Note: thrift.Some("")}, {}},
		Totals: map[string]int64{"b": 2, "a": 1}, Gift: &orders.Item{},
	}
	if got, want := order.String(), `orders.Order(id: 7, status: PAID, items: [(sku: "a\n", quantity: 1, note: ""), (sku: "", quantity: 0)], totals: {"a": 1, "b": 2}, gift: (sku: "", quantity: 0))`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	keys := &shapes.Keys{
		Lists: []thrift.Pair[[]int32, string]{{Key: []int32{1, 2}, Value: "x"}}, Colors: map[shapes.Color]shapes.Color{77: shapes.Color_RED},
		Painting: shapes.Painting{{X: 1}: shapes.Color_BLUE}, UUIDs: map[thrift.UUID]thrift.UUID{{}: values.ID}, Doubles: map[float64]string{math.NaN(): "n"},
	}
	if got, want := keys.String(), `shapes.Keys(doubles: {NaN: "n"}, uuids: {00000000-0000-0000-0000-000000000000: 01234567-89ab-cdef-0123-456789abcdef}, colors: {77: RED}, painting: {(x: 1, y: 0): BLUE}, lists: {[1, 2]: "x"})`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := (&shapes.Shape{ABinary: []byte("\xff")}).String(), `shapes.Shape(aBinary: "\xff")`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := (&names.Given{C: 3}).String(), `names.Given(a: 0, bee: 0, c: 3)`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	typed := &fieldtypes.Point{X: 1234, Age: thrift.Some(90 * time.Second)}
	if got, want := typed.String(), `fieldtypes.Point(x: 12.34, age: 1m30s)`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	args := &orders.OrdersPlaceArgs{Request: &orders.PlaceRequest{Customer: "c"}}
	if got, want := args.String(), `orders.OrdersPlaceArgs(request: (customer: "c"))`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	long := &shapes.Containers{Bools: make([]bool, 1000), Blobs: [][]byte{[]byte(strings.Repeat("é", 2000))}}
	got := long.String()
	if !strings.Contains(got, strings.Repeat("false, ", limits.TextElements)+"... 968 more]") || !strings.Contains(got, `é"... (4000 bytes)]`) || strings.Contains(got, `\x`) {
		t.Error(got)
	}
}

func TestMethods_AllocateNothingToCompareAndMeasure(t *testing.T) {
	for _, prototype := range []thrift.Struct{orders.NewOrder(), recursion.NewTree(), shapes.NewContainers(), values.NewSettings()} {
		mine, theirs := newFilled(prototype, 3).(sized), newFilled(prototype, 3).(sized)
		compare := func() bool { return true }
		switch s := mine.(type) {
		case *orders.Order:
			compare = func() bool { return s.Equal(theirs.(*orders.Order)) }
		case *recursion.Tree:
			compare = func() bool { return s.Equal(theirs.(*recursion.Tree)) }
		case *shapes.Containers:
			compare = func() bool { return s.Equal(theirs.(*shapes.Containers)) }
		case *values.Settings: // a map of structs: one value of each side
			if got := testing.AllocsPerRun(10, func() { s.Equal(theirs.(*values.Settings)) }); got > 2 {
				t.Errorf("%T: Equal allocates %v times", s, got)
			}
		}
		equal := false
		if got := testing.AllocsPerRun(10, func() { equal = compare() }); got > 0 || !equal {
			t.Errorf("%T: Equal allocates %v times, and is %v", mine, got, equal)
		}
		size := 0
		if got := testing.AllocsPerRun(10, func() { size = mine.SizeThrift() }); got > 0 || size == 0 {
			t.Errorf("%T: SizeThrift allocates %v times, and is %d", mine, got, size)
		}
	}
}
