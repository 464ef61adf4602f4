package roundtrip_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/views/golden/views"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/thrift"
	fieldview "github.com/fulmar-rpc/fulmar/thrift/view"
)

// compareTexts compares the text and the JSON of a view with those of the struct that it
// is of.
func compareTexts(v view, s thrift.Struct) string {
	got, err := json.Marshal(v)
	want, wanted := json.Marshal(s)
	if (err == nil) != (wanted == nil) || !bytes.Equal(got, want) {
		return fmt.Sprintf("the JSON is\n%s, %v, want\n%s, %v", got, err, want, wanted)
	}
	if longMap(reflect.ValueOf(s)) {
		return "" // of which texts have some entries
	}
	if got, want := fmt.Sprint(v), fmt.Sprint(s); got != want {
		return fmt.Sprintf("the text is\n%s, want\n%s", got, want)
	}
	return ""
}

// longMap reports whether there is a map of which a text has not all entries, or none of
// whose order is known: keys of different values may have the same text.
func longMap(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer:
		return !v.IsNil() && longMap(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if longMap(v.Field(i)) {
				return true
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if longMap(v.Index(i)) {
				return true
			}
		}
	case reflect.Map:
		if v.Len() > limits.TextElements {
			return true
		}
		for key, value := range v.Seq2() {
			if key.Kind() == reflect.Struct || key.Kind() == reflect.String && key.Len() > limits.TextStringBytes || longMap(value) {
				return true
			}
		}
	}
	return false
}

// equalViews calls Equal of two views.
func equalViews(a, b view) bool {
	return reflect.ValueOf(a).MethodByName("Equal").Call([]reflect.Value{reflect.ValueOf(b)})[0].Bool()
}

// compareEqual compares Equal of two views with that of the structs that they are of.
func compareEqual(a, b view, s, other thrift.Struct) string {
	got := equalViews(a, b)
	if want := equal(s.(sized), other.(sized)); got != want && !holdsNaNKeys(reflect.ValueOf(s)) {
		return fmt.Sprintf("views are equal: %v, structs %v:\n%v\n%v", got, want, s, other)
	}
	return ""
}

// TestView_HasTheTextsOfTheStruct compares JSON, text and Equal of views, as they came and
// changed, with those of structs that were decoded from the same bytes.
func TestView_HasTheTextsOfTheStruct(t *testing.T) {
	for _, test := range viewed {
		t.Run(reflect.TypeOf(test.prototype).Elem().Name(), func(t *testing.T) {
			var before view
			var beforeStruct thrift.Struct
			for seed := range uint64(60) {
				message, err := thrift.Marshal(newFilled(test.prototype, seed))
				if err != nil {
					t.Fatal(err)
				}
				s, v := newLike(test.prototype), test.view()
				if err := errorOf(thrift.Unmarshal(message, s), v.Load(message)); err != nil {
					t.Fatal(err)
				}
				if problem := compareTexts(v, s); problem != "" {
					t.Fatalf("seed %d: %s", seed, problem)
				}
				if before != nil {
					if problem := compareEqual(v, before, s, beforeStruct); problem != "" {
						t.Fatalf("seed %d: %s", seed, problem)
					}
				}
				before, beforeStruct = v, s
				if problem := compareEdited(test.prototype, test.view, message, seed); problem != "" {
					t.Fatalf("seed %d, changed: %s", seed, problem)
				}
			}
		})
	}
}

func errorOf(list ...error) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}

// compareEdited changes some fields of a view of a message, and compares it with the
// struct of what it writes, and with the view as it was.
func compareEdited(prototype thrift.Struct, newView func() view, message []byte, seed uint64) string {
	v, was := newView(), newView()
	s, first := newLike(prototype), newLike(prototype)
	if errorOf(v.Load(message), was.Load(message), thrift.Unmarshal(message, s), thrift.Unmarshal(message, first)) != nil {
		return ""
	}
	random := rand.New(rand.NewPCG(seed, 5))
	donor := newFilled(prototype, seed+1)
	for range random.IntN(3) {
		setOne(reflect.ValueOf(v), reflect.ValueOf(s).Elem(), reflect.ValueOf(donor).Elem(), random)
	}
	written, err := thrift.Marshal(v)
	decoded := newLike(prototype)
	if err != nil || thrift.Unmarshal(written, decoded) != nil {
		return ""
	}
	if problem := compareTexts(v, decoded); problem != "" {
		return problem
	}
	if problem := compareEqual(v, was, decoded, first); problem != "" {
		return problem
	}
	v.(interface{ Detach() }).Detach()
	if again, err := thrift.Marshal(v); err != nil || !bytes.Equal(again, written) {
		return fmt.Sprintf("detached it is written as %x, %v, want %x", again, err, written)
	}
	if problem := compareTexts(v, decoded); problem != "" {
		return "detached, " + problem
	}
	return ""
}

// TestView_HasTheTextsOfHostileMessages changes every byte of messages: what can be read
// has the same texts.
func TestView_HasTheTextsOfHostileMessages(t *testing.T) {
	for _, test := range viewed {
		for seed := range uint64(3) {
			message, err := thrift.Marshal(newFilled(test.prototype, seed))
			if err != nil {
				t.Fatal(err)
			}
			message = message[:min(len(message), 300)]
			original := test.view()
			if original.Load(message) != nil {
				original = nil
			}
			for at := range message {
				changed := slices.Clone(message)
				changed[at] ^= 0x01
				s, v := newLike(test.prototype), test.view()
				if thrift.Unmarshal(changed, s) != nil || v.Load(changed) != nil {
					continue
				}
				if problem := compareTexts(v, s); problem != "" {
					t.Fatalf("%T %x: %s", s, changed, problem)
				}
				first := newLike(test.prototype)
				if original == nil || thrift.Unmarshal(message, first) != nil {
					continue
				}
				if problem := compareEqual(v, original, s, first); problem != "" {
					t.Fatalf("%T %x: %s", s, changed, problem)
				}
			}
		}
	}
}

// FuzzViewTexts compares the texts of views of any bytes with those of the structs, and
// whether they equal what is left when some of it was changed.
func FuzzViewTexts(f *testing.F) {
	for i, test := range viewed {
		for seed := range uint64(3) {
			if message, err := thrift.Marshal(newFilled(test.prototype, seed)); err == nil && len(message) < 400 {
				f.Add(byte(i), seed, message)
			}
		}
	}
	f.Fuzz(func(t *testing.T, which byte, seed uint64, message []byte) {
		test := viewed[int(which)%len(viewed)]
		message = bytes.Clone(message)
		s, v := newLike(test.prototype), test.view()
		if thrift.Unmarshal(message, s) != nil || v.Load(message) != nil || holdsNaNKeys(reflect.ValueOf(s)) {
			return
		}
		if problem := compareTexts(v, s); problem != "" {
			t.Fatalf("%T: %s", s, problem)
		}
		if problem := compareEdited(test.prototype, test.view, message, seed); problem != "" {
			t.Fatalf("%T, changed: %s", s, problem)
		}
	})
}

// TestView_ComparesAndPrintsWithoutTheStruct has budgets that do not grow with the message.
func TestView_ComparesAndPrintsWithoutTheStruct(t *testing.T) {
	load := func(elements int, last string) *views.NodeView {
		s := views.NewNode()
		for range elements {
			s.Children = append(s.Children, views.Node{Value: 7})
		}
		s.Place.Name = last
		v, err := views.NewNodeView(s)
		if err != nil {
			t.Fatal(err)
		}
		return &v
	}
	for _, elements := range []int{10, 5000} {
		v, same, differs := load(elements, "a"), load(elements, "a"), load(elements, "b")
		same.SetPlace(same.Place()) // so that the bytes are not compared
		if !v.Equal(same) || v.Equal(differs) {
			t.Fatal("Equal is wrong")
		}
		if n := testing.AllocsPerRun(20, func() { v.Equal(differs) }); n > 8 {
			t.Errorf("Equal of %d elements allocates %v times", elements, n)
		}
		if n := testing.AllocsPerRun(20, func() { _ = v.String() }); n > 30 {
			t.Errorf("String of %d elements allocates %v times", elements, n)
		}
		if n := testing.AllocsPerRun(20, func() { _, _ = v.MarshalJSON() }); n > 20 {
			t.Errorf("JSON of %d elements allocates %v times", elements, n)
		}
	}
}

// TestView_TextOfWhatCannotBeWritten says why there is none, as Struct does.
// What did not come is what a new struct has, nil containers in it too.
func TestView_HasTheTextsOfWhatDidNotCome(t *testing.T) {
	around := views.NewAround()
	around.Choice.Number = thrift.Some(int64(1))
	whole, err := thrift.Marshal(around)
	if err != nil {
		t.Fatal(err)
	}
	var fields [][]byte
	for p := 0; whole[p] != 0; {
		const header = 3
		key := thrift.KeyAt(whole, p)
		size := key.Type().FixedSize()
		if size == 0 {
			size = fieldview.Size(whole[p+header:], key.Type())
		}
		fields = append(fields, whole[p:p+header+size])
		p += header + size
	}
	for some := range 1 << len(fields) {
		var message []byte
		for i, field := range fields {
			if some>>i&1 == 1 {
				message = append(message, field...)
			}
		}
		message = append(message, 0)
		var v, same views.AroundView
		s, other := views.NewAround(), views.NewAround()
		if err := errorOf(v.Load(message), same.Load(message), thrift.Unmarshal(message, s), thrift.Unmarshal(message, other)); err != nil {
			t.Fatal(err)
		}
		if problem := compareTexts(&v, s); problem != "" {
			t.Fatalf("of %x %s", message, problem)
		}
		other.Size, other.Number = 7, 8
		same.SetSize(7)
		same.SetNumber(8)
		if problem := compareEqual(&v, &same, s, other); problem != "" {
			t.Fatalf("of %x %s", message, problem)
		}
		other.Size, other.Number = s.Size, s.Number
		same.SetSize(s.Size)
		same.SetNumber(s.Number)
		if problem := compareEqual(&v, &same, s, other); problem != "" {
			t.Fatalf("of %x %s", message, problem)
		}
	}
}

// A struct of which the defaults cannot be written, because it holds a union, does not have to
// be decoded for that.
func TestView_ComparesStructsWithUnionsThatDidNotCome(t *testing.T) {
	const n = 10_000
	message := append([]byte{15, 0, 1, 12, 0, 0, n >> 8, n & 0xff}, make([]byte, n+1)...)
	unknown := append(message[:len(message)-1:len(message)-1], 2, 0, 99, 1, 0)
	var v, same views.HolderView
	if err := errorOf(v.Load(message), same.Load(unknown)); err != nil {
		t.Fatal(err)
	}
	if !v.Equal(&same) {
		t.Error("they are not equal")
	}
}

func TestView_TextOfWhatCannotBeWritten(t *testing.T) {
	var v views.StrictView
	if text := v.String(); !strings.Contains(text, "required but absent") {
		t.Errorf("the text is %q", text)
	}
	if text, err := v.MarshalJSON(); err == nil {
		t.Errorf("the JSON is %s", text)
	}
	if other := v; v.Equal(&other) != true {
		t.Error("two views of nothing are not equal")
	}
}
