package roundtrip_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/bounds/golden/bounds"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/inherit/golden/inherit"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/inherit/golden/inherit/value"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/recursion/golden/recursion"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/values/golden/values"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// withNil returns values with a nil struct as the value of a map, with the name of the
// field.
func withNil() map[string]sized {
	point, next := &bounds.Switch{}, &bounds.Switch{Next: map[bool]*bounds.Switch{true: {}}}
	return map[string]sized{
		"values.Settings: named":  &values.Settings{Named: map[string]*values.Point{"p": nil}, Choice: values.Choice{Text: thrift.Some("t")}},
		"values.Optionals: named": &values.Optionals{Named: map[string]*values.Point{"p": nil}},
		"values.Holder: pairs":    &values.Holder{Settings: *values.NewSettings(), Pairs: []thrift.Pair[[]int32, *values.Settings]{{}}},
		"recursion.Node: named":   &recursion.Node{Named: map[string]*recursion.Node{"n": nil}},
		"bounds.Switch: next":     &bounds.Switch{Next: map[bool]*bounds.Switch{true: nil}},
		"bounds.Switch: pairs":    &bounds.Switch{Other: point, Pairs: []thrift.Pair[[]bool, *bounds.Switch]{{Value: next}, {}}},
		"bounds.Switch: deep":     &bounds.Switch{Deep: map[bool][]map[float64]*bounds.Switch{true: {{1: point}, {2: nil}}}},
	}
}

func TestMapValues_NilIsNotWritten(t *testing.T) {
	for field, s := range withNil() {
		b, err := thrift.Marshal(s)
		if wantError(t, err, field+": nil where a struct is required"); b != nil {
			t.Errorf("%s: %d bytes were written", field, len(b))
		}
	}
	_, err := thrift.Marshal(&inherit.ChildAllArgs{Value: map[string]*value.Value{"": nil}})
	wantError(t, err, "all arguments: value: nil where a struct is required")
}

func TestMapValues_NilIsNilForOtherMethods(t *testing.T) {
	for field, s := range withNil() {
		c := cloneOf(s)
		if !equal(s, c) || !reflect.DeepEqual(s, c) {
			t.Errorf("%s: the clone of %v is %v", field, s, c)
		}
		c.Detach()
		if !equal(c, s) {
			t.Errorf("%s: %v is %v when it is detached", field, s, c)
		}
		if n, text := s.SizeThrift(), s.String(); n <= 0 || text == "" {
			t.Errorf("%s: %d bytes, and the text %q", field, n, text)
		}
		text, err := json.Marshal(s)
		if err != nil {
			t.Errorf("%s: %v", field, err)
			continue
		}
		back := reflect.New(reflect.TypeOf(s).Elem()).Interface().(sized)
		if err := json.Unmarshal(text, back); err != nil {
			t.Errorf("%s: %s: %v", field, text, err)
		}
		_, err = thrift.Marshal(back)
		wantError(t, err, field+": nil where a struct is required")
	}
}

func TestMapValues_NilEqualsNilOnly(t *testing.T) {
	holder := func(v *values.Settings) *values.Holder {
		return &values.Holder{Map: map[int32]*values.Settings{1: v}, Pairs: []thrift.Pair[[]int32, *values.Settings]{}}
	}
	pair := func(v *values.Settings) *values.Holder {
		return &values.Holder{Pairs: []thrift.Pair[[]int32, *values.Settings]{{Value: v}}}
	}
	node := func(v *recursion.Node) *recursion.Node {
		return &recursion.Node{Named: map[string]*recursion.Node{"": v}}
	}
	empty := &values.Settings{}
	for name, test := range map[string]struct{ one, same, other sized }{
		"map":   {holder(nil), holder(nil), holder(empty)},
		"pairs": {pair(nil), pair(nil), pair(empty)},
		"cycle": {node(nil), node(nil), node(&recursion.Node{})},
	} {
		if !equal(test.one, test.same) || equal(test.one, test.other) || equal(test.other, test.one) || !equal(test.other, cloneOf(test.other)) {
			t.Errorf("%s: nil must equal nil and nothing else", name)
		}
	}
	if holder(empty).Equal(&values.Holder{Map: map[int32]*values.Settings{2: nil}}) || holder(nil).Equal(&values.Holder{Map: map[int32]*values.Settings{2: nil}}) {
		t.Error("a key that is not there equals one with nil")
	}
}

// TestMapValues_AreNeverNilWhenTheyArrive has structs without a field on the wire: they
// are what their constructors make.
func TestMapValues_AreNeverNilWhenTheyArrive(t *testing.T) {
	var received values.Holder
	readBytes(t, "\x0d\x00\x03\x08\x0c\x00\x00\x00\x01\x00\x00\x00\x07"+settings+
		"\x0d\x00\x05\x0f\x0c\x00\x00\x00\x01\x08\x00\x00\x00\x00"+settings+"\x00", &received)
	if len(received.Map) != 1 || len(received.Pairs) != 1 {
		t.Fatalf("received %v", &received)
	}
	want := values.NewSettings()
	want.Limit = 5
	if !want.Equal(received.Map[7]) || !want.Equal(received.Pairs[0].Value) {
		t.Errorf("received %v, want values like %v", &received, want)
	}
	// Each has defaults of its own.
	received.Map[7].Named["p"].X = 99
	if received.Pairs[0].Value.Named["p"].X != 1 || values.NewSettings().Named["p"].X != 1 {
		t.Error("defaults are shared")
	}
}

// settings is a struct Settings with its required field, which is 5.
const settings = "\x08\x00\x0d\x00\x00\x00\x05\x00"

func TestMapValues_OfConstantsHaveTheirDefaults(t *testing.T) {
	given := values.NewSettings()
	given.Retries = 9
	if got := values.NAMED_SETTINGS; len(got) != 2 || !values.NewSettings().Equal(got["new"]) || !given.Equal(got["given"]) {
		t.Errorf("the constant is %v", got)
	}
	if pairs := values.PAIRS; !pairs[0].Value.Equal(&values.Point{X: 1, Y: 2}) || !pairs[1].Value.Equal(values.NewPoint()) {
		t.Errorf("the pairs are %v", pairs)
	}
	if named := values.NewOptionals().GetNamed(); !named["p"].Equal(values.NewPoint()) {
		t.Errorf("the getter returns %v", named)
	}
}

// visit is what docs/guide/generated-code.md quotes.
func visit(tree *recursion.Node) {
	for _, node := range tree.Named {
		node.Value++
	}
}

func TestMapValues_AreChangedInPlace(t *testing.T) {
	tree := &recursion.Node{Named: map[string]*recursion.Node{"one": {Value: 1}, "two": {Value: 2}}}
	visit(tree)
	if arrived := copyOf(t, tree); len(arrived.Named) != 2 || arrived.Named["one"].Value != 2 || arrived.Named["two"].Value != 3 {
		t.Errorf("received %v", arrived)
	}
	holder := copyOf(t, &values.Holder{Settings: *values.NewSettings(), Map: map[int32]*values.Settings{1: values.NewSettings(), 2: values.NewSettings()}})
	holder.Map[1].Retries = 77
	if again := copyOf(t, holder); again.Map[1].Retries != 77 || again.Map[2].Retries != values.NewSettings().Retries {
		t.Errorf("received %v", again)
	}
}

// TestMapValues_ShareMemory decodes a map of many long structs, and many maps of a few.
func TestMapValues_ShareMemory(t *testing.T) {
	const n = 100
	large, few := map[int32]*bounds.Large{}, make([]bounds.Switch, n)
	for i := range int32(n) {
		large[i] = &bounds.Large{A: bounds.Line{A: int64(i)}}
		few[i].Next = map[bool]*bounds.Switch{true: {Text: fmt.Sprint(i)}}
	}
	for name, test := range map[string]struct {
		s        thrift.Struct
		received func() thrift.Struct
		most     float64
	}{
		"one map": {&bounds.Presets{LargeByNumber: large}, func() thrift.Struct { return new(bounds.Presets) }, 20},
		// An empty map is an allocation, of which there are three for each value, one with
		// an entry are two, and the values add nothing to that.
		"many maps": {&bounds.Switch{List: few}, func() thrift.Struct { return new(bounds.Switch) }, 5*n + 30},
	} {
		b, err := thrift.Marshal(test.s)
		if err != nil {
			t.Fatal(err)
		}
		received := test.received()
		if got := testing.AllocsPerRun(10, func() {
			received = test.received()
			if err := thrift.Unmarshal(b, received); err != nil {
				t.Fatal(err)
			}
		}); got > test.most {
			t.Errorf("%s: decoding takes %v allocations (limit %v)", name, got, test.most)
		}
		again, err := thrift.Marshal(received)
		if err != nil || len(again) != len(b) || !equal(received.(sized), test.s.(sized)) {
			t.Errorf("%s: received %v, %v", name, received, err)
		}
	}
}
