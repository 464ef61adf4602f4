package roundtrip_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/views/golden/views"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/views/golden/views/other"
	"github.com/fulmar-rpc/fulmar/thrift"
	fieldview "github.com/fulmar-rpc/fulmar/thrift/view"
)

// loadPartly loads a message until some of its fields, and says what is different in these
// from the struct that was decoded from it.
func loadPartly(v view, s thrift.Struct, message []byte, random *rand.Rand) string {
	var ids []int16
	asked := map[string]bool{}
	for _, field := range v.(interface{ ViewShape() *fieldview.Shape }).ViewShape().Fields {
		if random.IntN(3) == 0 {
			ids, asked[field.Name] = append(ids, field.Key.ID()), true
		}
	}
	if err := v.(interface {
		LoadUntil(b []byte, ids ...int16) error
	}).LoadUntil(message, ids...); err != nil {
		return fmt.Sprintf("loaded until %d it is %v", ids, err)
	}
	if repeats(message) {
		return "" // what was found first is not what counts
	}
	structure := reflect.ValueOf(s)
	for detached := range 2 {
		for i := range structure.Elem().NumField() {
			if asked[structure.Elem().Type().Field(i).Name] {
				if problem := compareField(reflect.ValueOf(v), structure, i); problem != "" {
					return fmt.Sprintf("loaded until %d, detached %d times: %s", ids, detached, problem)
				}
			}
		}
		if again, err := thrift.Marshal(v); err != nil || !bytes.Equal(again, message) {
			return fmt.Sprintf("loaded until %d, detached %d times and forwarded it is %x, %v", ids, detached, again, err)
		}
		v.(interface{ Detach() }).Detach()
	}
	return ""
}

// repeats reports whether a struct has a field twice.
func repeats(message []byte) bool {
	seen := map[int16]bool{}
	for p := 0; message[p] != 0; {
		const header = 3
		key := thrift.KeyAt(message, p)
		if seen[key.ID()] {
			return true
		}
		seen[key.ID()] = true
		p += header
		if size := key.Type().FixedSize(); size > 0 {
			p += size
		} else if key.Type() == thrift.String {
			_, size := fieldview.Binary(message[p:])
			p += size
		} else {
			p += fieldview.Size(message[p:], key.Type())
		}
	}
	return false
}

func TestView_LoadedUntilFieldsHasThese(t *testing.T) {
	for _, test := range viewed {
		for seed := range uint64(60) {
			s := newFilled(test.prototype, seed)
			message, err := thrift.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			if problem := loadPartly(test.view(), s, message, rand.New(rand.NewPCG(seed, 4))); problem != "" {
				t.Fatalf("%T, seed %d: %s", s, seed, problem)
			}
		}
	}
}

// leafThen is a Leaf of number 5, a text, and what follows.
func leafThen(rest string) []byte {
	return []byte("\x08\x00\x01\x00\x00\x00\x05\x0b\x00\x02\x00\x00\x00\x01t" + rest)
}

// TestView_LoadedUntilAFieldDoesNotLookBehind passes what is behind on as it came, where
// it is bytes of its own; and within a message only what is one struct.
func TestView_LoadedUntilAFieldDoesNotLookBehind(t *testing.T) {
	for name, test := range map[string]struct {
		rest          string
		loads, writes bool
	}{
		"nothing":                {"\x00", true, true},
		"another field":          {"\x06\x00\x09\x00\x01\x00", true, true},
		"the field once more":    {"\x08\x00\x01\x00\x00\x00\x06\x00", true, true},
		"a type that is none":    {"\x63\x00\x09\x00", true, false},
		"a string that is cut":   {"\x0b\x00\x09\x00\x00\x00\x09\x00", true, false},
		"an end before the end":  {"\x00\x08\x00\x01\x00\x00\x00\x06\x00", true, false},
		"no end":                 {"\x06\x00\x09\x00\x01", false, false},
		"nothing, not even that": {"", false, false},
	} {
		message := leafThen(test.rest)
		var v views.LeafView
		err := v.LoadUntil(message, 1)
		if (err == nil) != test.loads {
			t.Errorf("%s: %v, want it loaded: %v", name, err, test.loads)
		}
		if err != nil {
			continue
		}
		if again, err := v.AppendTo(nil); err != nil || !bytes.Equal(again, message) {
			t.Errorf("%s: appended it is %x, %v", name, again, err)
		}
		if pieces, _, err := v.AppendPieces(nil, nil); err != nil || !bytes.Equal(bytes.Join(pieces, nil), message) {
			t.Errorf("%s: its pieces are %x, %v", name, pieces, err)
		}
		if again, err := thrift.Marshal(&v); (err == nil) != test.writes || err == nil && !bytes.Equal(again, message) {
			t.Errorf("%s: written it is %x, %v, want it written: %v", name, again, err, test.writes)
		}
		var outer views.OptionalView
		outer.SetALeaf(v)
		if _, err := outer.AppendTo(nil); (err == nil) != test.writes {
			t.Errorf("%s: in another view it is %v, want it written: %v", name, err, test.writes)
		}
		var whole views.LeafView
		wanted := whole.Load(message)
		if _, err := v.Struct(); (err == nil) != (wanted == nil) {
			t.Errorf("%s: the struct is %v, want %v", name, err, wanted)
		}
		if text := v.String(); wanted == nil && text != whole.String() || wanted != nil && text != wanted.Error() {
			t.Errorf("%s: the text is %s", name, text)
		}
		v.SetNumber(6)
		if got, err := v.AppendTo(nil); err != nil || v.Number() != 6 || !bytes.Equal(got, bytes.Replace(message, []byte("\x05"), []byte("\x06"), 1)) {
			t.Errorf("%s: changed it is %x, %v", name, got, err)
		}
		if _, err := v.MarshalJSON(); (err == nil) != (wanted == nil) {
			t.Errorf("%s: changed the JSON is %v, want %v", name, err, wanted)
		}
	}
}

// TestView_LoadedUntilAFieldPanicsForOthers, whether they are there or not: a getter that
// said they are absent would be believed.
func TestView_LoadedUntilAFieldPanicsForOthers(t *testing.T) {
	var v views.OptionalView
	s := views.NewOptional()
	s.ALeaf, s.Leaves = views.NewLeaf(), map[string]*views.Leaf{"k": views.NewLeaf()}
	message, err := thrift.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var leaf views.LeafView
	for name, use := range map[string]func(){
		"number": func() { v.AnI32() }, "text": func() { v.AString() }, "binary": func() { v.ABinary() }, "uuid": func() { v.AUUID() }, "struct": func() { v.Choice() },
		"list": func() { v.Numbers() }, "map": func() { v.Leaves() }, "has": func() { v.HasAString() }, "set": func() { v.SetAString("") }, "clear": func() { v.ClearAString() },
		"append": func() { v.AppendNumbers(1) }, "set at": func() { v.SetNumbersAt(0, 1) }, "entry": func() { v.SetLeavesEntry("k", leaf) },
		"delete": func() { v.DeleteLeavesEntry("k") }, "edit": func() { v.EditFailure(func(*views.FailureView) {}) },
		"edit entry": func() { v.EditLeavesEntry("k", func(*views.LeafView) {}) },
	} {
		if err := v.LoadUntil(message, 11); err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.Contains(text, "for which LoadUntil was not asked") {
					t.Errorf("%s: %s", name, text)
				}
			}()
			use()
		}()
		if !v.HasALeaf() {
			t.Errorf("%s: the field that was asked for is not there", name)
		}
	}
	v.ClearALeaf()
	if again, err := v.AppendTo(nil); err != nil || v.HasALeaf() || len(again) >= len(message) {
		t.Errorf("without the field it is %x, %v", again, err)
	}
}

// TestView_LoadedUntilAFieldThatCannotBeFoundChecksAll, so that all fields may be used.
func TestView_LoadedUntilAFieldThatCannotBeFoundChecksAll(t *testing.T) {
	for name, test := range map[string]struct {
		rest string
		ids  []int16
		want int32
	}{
		"no ids":                 {"\x00", nil, 5},
		"absent":                 {"\x00", []int16{1, 2, 1}, 5},
		"twice before the other": {"\x08\x00\x01\x00\x00\x00\x07\x00", []int16{1}, 5},
	} {
		message := leafThen(test.rest)
		if name == "absent" { // the text becomes an unknown field
			message[9] = 3
		} else if name != "no ids" { // the number comes twice, and then the text
			message = []byte("\x08\x00\x01\x00\x00\x00\x05\x08\x00\x01\x00\x00\x00\x07\x0b\x00\x02\x00\x00\x00\x00\x00")
			test.ids, test.want = []int16{1, 2}, 7
		}
		var v views.LeafView
		if err := v.LoadUntil(message, test.ids...); err != nil || v.Number() != test.want {
			t.Errorf("%s: %v, %d", name, err, v.Number())
		}
		v.SetText("new")
		v.SetNumber(9)
		var leaf views.Leaf
		if written, err := thrift.Marshal(&v); err != nil || thrift.Unmarshal(written, &leaf) != nil || leaf.Number != 9 || bytes.Count(written, []byte("\x08\x00\x01")) != 1 {
			t.Errorf("%s: written it is %x, %v", name, written, err)
		}
		if err := v.LoadUntil(message[:len(message)-1], test.ids...); err == nil {
			t.Errorf("%s: what is cut was taken", name)
		}
	}
	var v views.LeafView
	if err := v.LoadUntil(leafThen("\x00"), 1, 77); err == nil || !strings.Contains(err.Error(), "field 77") || v.HasText() {
		t.Errorf("a field that the definition does not have: %v", err)
	}
	var choice views.ChoiceView
	union, err := thrift.Marshal(&views.Choice{Leaf: views.NewLeaf()})
	if err != nil {
		t.Fatal(err)
	}
	if err := choice.LoadUntil(union, 4); err != nil || !choice.HasLeaf() || choice.HasStrict() {
		t.Errorf("a union: %v", err)
	}
}

// What LoadUntil has not looked at must be good when it is written into something else: what
// is around it would not be read any more.
func TestView_LoadedUntilIsCheckedWhenItIsWritten(t *testing.T) {
	var place other.PlaceView
	if err := place.LoadUntil([]byte{8, 0, 2, 0, 0, 0, 7, 0}, 2); err != nil {
		t.Fatal(err)
	}
	if _, err := thrift.Marshal(&place); err == nil || !strings.Contains(err.Error(), "required but absent: name") {
		t.Errorf("without its required field it is written: %v", err)
	}
	// Behind what was looked at: a struct in a field 9 that nests too deeply, of no end.
	deep := append([]byte{11, 0, 1, 0, 0, 0, 1, 'm', 8, 0, 2, 0, 0, 0, 7}, bytes.Repeat([]byte{12, 0, 9}, 1000)...)
	deep = append(deep, 0)
	if err := place.LoadUntil(deep, 1, 2); err != nil {
		t.Fatal(err)
	}
	var failed, decoded *thrift.Error
	if err := thrift.Unmarshal(deep, new(other.Place)); !errors.As(err, &decoded) {
		t.Fatalf("decoded: %v", err)
	}
	if _, err := thrift.Marshal(&place); !errors.As(err, &failed) || failed.Kind != decoded.Kind {
		t.Errorf("with what nests too deeply behind it: %v", err)
	}
	if err := place.LoadUntil([]byte{8, 0, 2, 0, 0, 0, 7, 0}, 2); err != nil {
		t.Fatal(err)
	}
	var node views.NodeView
	good := views.NewNode()
	good.Places = []other.Place{{Name: "a"}, {Name: "b"}}
	message, err := thrift.Marshal(good)
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Load(message); err != nil {
		t.Fatal(err)
	}
	node.SetPlacesAt(0, place)
	if b, err := node.AppendTo(nil); err == nil {
		t.Errorf("written into a list it is %x", b)
	}
	node.SetValue(3)
	if node.Detach(); node.Value() != 3 {
		t.Errorf("what is around it has become %v", node.Value())
	}
	node.SetPlacesAt(0, placeViewNamed("c"))
	if places := node.Places(); places.Len() != 2 {
		t.Errorf("%d places", places.Len())
	} else if at := places.At(1); at.Name() != "b" {
		t.Errorf("the other place has become %q", at.Name())
	}
}

// placeViewNamed is a view that can be written.
func placeViewNamed(name string) (v other.PlaceView) {
	v.SetName(name)
	return v
}

// Detach leaves a view that LoadUntil has made what it was, also if the message has fields
// once more behind what was looked at, or is none.
func TestView_LoadedUntilDetaches(t *testing.T) {
	first, again := []byte{11, 0, 1, 0, 0, 0, 1, 'm'}, []byte{11, 0, 1, 0, 0, 0, 1, 'y', 0}
	floor := []byte{8, 0, 2, 0, 0, 0, 7}
	message := slices.Concat(first, floor, again)
	for name, test := range map[string]struct {
		message []byte
		change  func(p *other.PlaceView)
		name    string
		floor   int32
	}{
		"unchanged":            {message, func(*other.PlaceView) {}, "m", 7},
		"one set":              {message, func(p *other.PlaceView) { p.SetName("longer") }, "longer", 7},
		"other set":            {message, func(p *other.PlaceView) { p.SetFloor(8) }, "m", 8},
		"both set":             {message, func(p *other.PlaceView) { p.SetName("n"); p.SetFloor(8) }, "n", 8},
		"removed":              {message, func(p *other.PlaceView) { p.ClearFloor() }, "m", 1},
		"removed and set":      {message, func(p *other.PlaceView) { p.ClearFloor(); p.Detach(); p.SetFloor(9) }, "m", 9},
		"no message":           {slices.Concat(first, floor, []byte{99, 0, 0, 0}), func(p *other.PlaceView) { p.SetFloor(8) }, "m", 8},
		"no message, the same": {slices.Concat(first, floor, []byte{99, 0, 0, 0}), func(*other.PlaceView) {}, "m", 7},
	} {
		t.Run(name, func(t *testing.T) {
			var p other.PlaceView
			if err := p.LoadUntil(slices.Clone(test.message), 1, 2); err != nil {
				t.Fatal(err)
			}
			test.change(&p)
			before, wrong := p.AppendTo(nil)
			for range 2 {
				p.Detach()
				if p.Name() != test.name || p.Floor() != test.floor {
					t.Errorf("it has become %q, floor %d, want %q, %d", p.Name(), p.Floor(), test.name, test.floor)
				}
				if after, err := p.AppendTo(nil); (err == nil) != (wrong == nil) || !bytes.Equal(before, after) {
					t.Errorf("it is written as %x, %v, want %x, %v", after, err, before, wrong)
				}
			}
		})
	}
}
