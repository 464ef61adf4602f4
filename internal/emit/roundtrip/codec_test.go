package roundtrip_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/names/golden/names"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/orders/golden/orders"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/recursion/golden/recursion"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/shapes/golden/shapes"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/values/golden/values"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// fields is a struct that writes what a test says, as a peer with another
// definition might.
type fields func(w *thrift.Writer)

func (f fields) WriteThrift(w *thrift.Writer) {
	if w.BeginStruct() {
		f(w)
		w.EndStruct()
	}
}

func (f fields) ReadThrift(*thrift.Reader) { panic("not readable") }

// read decodes what the fields write into s.
func read(t *testing.T, s thrift.Struct, f fields) error {
	t.Helper()
	message, err := thrift.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return thrift.Unmarshal(message, s)
}

// copyOf returns what arrives when s is sent.
func copyOf[T any, P interface {
	*T
	thrift.Struct
}](t *testing.T, s P) P {
	t.Helper()
	message, err := thrift.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	received := P(new(T))
	if err := thrift.Unmarshal(message, received); err != nil {
		t.Fatal(err)
	}
	return received
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one with %q", parts)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q, want one with %q", err, part)
		}
	}
}

func TestOptional_AbsenceAndEmptinessDiffer(t *testing.T) {
	absent := copyOf(t, &shapes.Optional{})
	if !reflect.DeepEqual(absent, &shapes.Optional{}) {
		t.Errorf("absent fields arrived as %+v", absent)
	}
	empty := &shapes.Optional{
		ABool:   thrift.Some(false),
		AnI32:   thrift.Some[int32](0),
		AString: thrift.Some(""),
		ABinary: []byte{},
		AnEnum:  thrift.Some(shapes.Color_RED),
		AStruct: &shapes.Point{},
		AList:   []int32{},
		AMap:    map[string]int64{},
		AUUID:   thrift.Some(thrift.UUID{}),
		ADouble: thrift.Some(math.Copysign(0, -1)),
	}
	if received := copyOf(t, empty); !reflect.DeepEqual(received, empty) {
		t.Errorf("empty fields arrived as %+v", received)
	}
}

func TestPlain_NilIsWrittenAsEmpty(t *testing.T) {
	received := copyOf(t, &shapes.Containers{})
	if received.Bools == nil || received.Cube == nil || received.Maps == nil {
		t.Errorf("nil containers arrived as %+v", received)
	}
	nested := copyOf(t, &shapes.Containers{Cube: [][][]int64{nil, {nil, {1}}}})
	if want := [][][]int64{{}, {{}, {1}}}; !reflect.DeepEqual(nested.Cube, want) {
		t.Errorf("cube %v, want %v", nested.Cube, want)
	}
}

func TestUnion_ExactlyOneFieldIsWritten(t *testing.T) {
	_, err := thrift.Marshal(&shapes.Shape{})
	wantError(t, err, "shapes.Shape", "0 are")
	_, err = thrift.Marshal(&shapes.Shape{ABool: thrift.Some(true), AList: []int32{}})
	wantError(t, err, "shapes.Shape", "2 are")
	_, err = thrift.Marshal(&recursion.Sum{Terms: []recursion.Expression{{Number: thrift.Some[int64](1)}, {}}})
	wantError(t, err, "recursion.Expression")
	union := &shapes.Shape{Pairs: []thrift.Pair[[]int32, shapes.Point]{}}
	if received := copyOf(t, union); !reflect.DeepEqual(received, union) {
		t.Errorf("received %+v", received)
	}
}

func TestUnion_LastFieldWins(t *testing.T) {
	received := &shapes.Shape{AnI64: thrift.Some[int64](9)}
	err := read(t, received, func(w *thrift.Writer) {
		w.FieldString(7, "first")
		w.FieldI32(4, 2)
	})
	if want := (&shapes.Shape{AnI32: thrift.Some[int32](2)}); err != nil || !reflect.DeepEqual(received, want) {
		t.Errorf("received %+v, %v", received, err)
	}
}

func TestRead_RepeatedFieldReplaces(t *testing.T) {
	received := values.NewHolder()
	err := read(t, received, func(w *thrift.Writer) {
		w.Field(thrift.StructType, 1)
		fields(func(w *thrift.Writer) { w.FieldI8(2, 50); w.FieldBool(1, false); w.FieldI32(13, 1) }).WriteThrift(w)
		w.Field(thrift.StructType, 1)
		fields(func(w *thrift.Writer) { w.FieldI32(13, 7) }).WriteThrift(w)
		for range 2 {
			w.Field(thrift.List, 2)
			w.BeginList(thrift.StructType, 1)
			fields(func(w *thrift.Writer) { w.FieldI32(13, 8) }).WriteThrift(w)
			w.EndList()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if received.Settings.Retries != 3 || !received.Settings.Verbose || received.Settings.Limit != 7 {
		t.Errorf("merged: %+v", received.Settings)
	}
	if len(received.List) != 1 || received.List[0].Limit != 8 || received.List[0].Name != values.TEXT {
		t.Errorf("list %+v", received.List)
	}
}

func TestRead_SkipsWhatItDoesNotExpect(t *testing.T) {
	received := &orders.Item{Sku: "old", Quantity: 4}
	err := read(t, received, func(w *thrift.Writer) {
		w.FieldI64(2, 77)
		w.FieldI32(3, 1)
		w.FieldString(99, "unknown")
		w.Field(thrift.Map, 100)
		w.BeginMap(thrift.String, thrift.I32, 1)
		w.String("a")
		w.I32(1)
		w.EndMap()
		w.FieldString(1, "new")
	})
	if want := (&orders.Item{Sku: "new", Quantity: 4}); err != nil || !reflect.DeepEqual(received, want) {
		t.Errorf("received %+v, %v", received, err)
	}
}

func TestRead_ContainerOfOtherElementsIsSkipped(t *testing.T) {
	received := &shapes.Containers{Bools: []bool{true}}
	err := read(t, received, func(w *thrift.Writer) {
		w.Field(thrift.List, 1)
		w.BeginList(thrift.I64, 1)
		w.I64(5)
		w.EndList()
		w.Field(thrift.List, 9)
		w.BeginList(thrift.List, 1)
		w.BeginList(thrift.Bool, 1)
		w.Bool(true)
		w.EndList()
		w.EndList()
		w.Field(thrift.List, 2)
		w.BeginList(thrift.I8, 1)
		w.I8(3)
		w.EndList()
	})
	if err != nil || len(received.Bools) != 1 || len(received.Cube) != 1 || len(received.Cube[0]) != 0 || len(received.Bytes) != 1 {
		t.Errorf("received %+v, %v", received, err)
	}
	err = read(t, &shapes.Required{}, func(w *thrift.Writer) {
		w.Field(thrift.List, 12)
		w.BeginList(thrift.I64, 1)
		w.I64(5)
		w.EndList()
	})
	wantError(t, err, "aList")
}

func TestRead_NamesMissingFields(t *testing.T) {
	wantError(t, read(t, &orders.Item{}, func(*thrift.Writer) {}), "orders.Item", "sku")
	wantError(t, read(t, &shapes.Required{}, func(w *thrift.Writer) { w.FieldBool(1, true) }), "shapes.Required", "anI8", "aBlob")
	err := read(t, &shapes.Wide{}, func(w *thrift.Writer) {
		for id := range int16(65) {
			if id != 0 && id != 64 {
				w.FieldI8(id, 1)
			}
		}
	})
	wantError(t, err, "absent: f64, f65")
}

func TestRecursion_NilEndsIt(t *testing.T) {
	list := &recursion.Node{Value: 1, Next: &recursion.Node{Value: 2}, Children: []recursion.Node{}, Named: map[string]recursion.Node{}}
	received := copyOf(t, list)
	if received.Next == nil || received.Next.Value != 2 || received.Next.Next != nil {
		t.Errorf("received %+v", received)
	}
	if outer := copyOf(t, &recursion.Outer{}); outer.Inner != nil {
		t.Errorf("received %+v", outer)
	}
	loop := &recursion.Node{}
	loop.Next = loop
	_, err := thrift.Marshal(loop)
	wantError(t, err, "nest")
}

func TestKeys_BinaryAndStructs(t *testing.T) {
	sent := &shapes.Keys{
		Blobs:    map[string]string{"\xff\x00": "x"},
		Painting: shapes.Painting{{X: 1, Label: thrift.Some("a")}: shapes.Color_BLUE},
		Lists:    []thrift.Pair[[]int32, string]{{Key: []int32{1}, Value: "one"}, {Key: []int32{}, Value: "none"}},
	}
	received := copyOf(t, sent)
	if !reflect.DeepEqual(received.Blobs, sent.Blobs) || !reflect.DeepEqual(received.Painting, sent.Painting) || !reflect.DeepEqual(received.Lists, sent.Lists) {
		t.Errorf("received %+v", received)
	}
	if received.Maybe != nil {
		t.Error("absent pairs arrived")
	}
}

func TestDefaults_BelongToTheirOwner(t *testing.T) {
	first, second := values.NewSettings(), values.NewSettings()
	first.List[0], first.Tags[0], first.Raw[0] = 99, "changed", 'X'
	first.Named["p"] = values.Point{}
	if second.List[0] != 1 || second.Tags[0] != "a" || string(second.Raw) != "raw" || second.Named["p"].Y != 5 || values.LIST[0] != 1 {
		t.Errorf("defaults are shared: %+v", second)
	}
	if second.Point != (values.Point{X: 7, Y: 2}) || second.Corner != (values.Point{X: 1, Y: 2}) {
		t.Errorf("points %+v, %+v", second.Point, second.Corner)
	}
}

func TestDefaults_OfOptionalFieldsComeFromGetters(t *testing.T) {
	absent := values.NewOptionals()
	if !reflect.DeepEqual(absent, &values.Optionals{}) {
		t.Errorf("optional fields are set: %+v", absent)
	}
	if absent.GetRetries() != 3 || absent.GetName() != values.TEXT || string(absent.GetRaw()) != "raw" || absent.GetLevel() != values.Level_LOW ||
		absent.GetPoint().X != 7 || absent.GetUnknown() != 77 || absent.GetSettings().Retries != 1 || absent.GetID() != values.ID {
		t.Error("a getter does not return the default")
	}
	set := &values.Optionals{Retries: thrift.Some[int8](0), Raw: []byte{}, Point: &values.Point{}}
	if set.GetRetries() != 0 || len(set.GetRaw()) != 0 || set.GetPoint().X != 0 {
		t.Error("a getter does not return the value")
	}
}

func TestConstants_HaveTheirValues(t *testing.T) {
	if !math.Signbit(values.NEGATIVE_ZERO) || values.LARGE != math.MinInt64 || values.TEXT != "a\"b\\c\n`d` ${e} %s\té" || string(values.BYTES) != "\x00\xff" {
		t.Error("scalars")
	}
	if values.ORIGIN != (values.Point{X: 1, Y: 2}) || values.CORNER.Y != 2 || values.SETTINGS.Retries != 9 || values.SETTINGS.Ratio != 0.5 {
		t.Error("structs")
	}
	if values.MAP_OF_LISTS[values.Level_LOW][0] != true || values.PAIRS[0].Key[1] != 2 || len(values.SET) != 2 {
		t.Error("containers")
	}
}

func TestEnum_Names(t *testing.T) {
	if text := orders.Status(9).String(); text != "CANCELLED" {
		t.Errorf("the second name of a number is %q", text)
	}
	if text := orders.Status(77).String(); text != "77" {
		t.Errorf("unknown number is %q", text)
	}
	if status, err := orders.ParseStatus("VOID"); err != nil || status != orders.Status_CANCELLED {
		t.Errorf("%v, %v", status, err)
	}
	_, err := orders.ParseStatus("paid")
	wantError(t, err, "orders.Status", `"paid"`)
	received := copyOf(t, &orders.Order{Status: 77})
	if received.Status != 77 {
		t.Errorf("unknown number arrived as %d", received.Status)
	}
}

func TestException_IsAnError(t *testing.T) {
	var err error = &orders.OutOfStock{Sku: "a\nb", Left: 2}
	if got, want := err.Error(), `orders.OutOfStock(sku: "a\nb", left: 2)`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if sold, ok := errors.AsType[*orders.OutOfStock](err); !ok || sold.Left != 2 {
		t.Error("not found by errors.AsType")
	}
	var absent *orders.OutOfStock
	if got := absent.Error(); got != "orders.OutOfStock" {
		t.Errorf("nil exception is %q", got)
	}
	if got := new(orders.Forbidden).Error(); got != "orders.Forbidden" {
		t.Errorf("exception without fields is %q", got)
	}
	caused := &recursion.Caused{Message: "a", Cause: &recursion.Caused{Message: "b"}}
	if got, want := caused.Error(), `recursion.Caused(message: "a", cause: recursion.Caused(message: "b", cause: recursion.Caused))`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestTags_AreThoseOfTheDefinition(t *testing.T) {
	text, err := json.Marshal(&names.Given{Alpha: 1, B: 2, C: 3})
	if want := `{"a":1,"bee":2,"c":3}`; err != nil || string(text) != want {
		t.Errorf("%s, %v, want %s", text, err, want)
	}
	field, _ := reflect.TypeFor[names.Given]().FieldByName("C")
	if tag := field.Tag.Get("yaml"); tag != "`c`" {
		t.Errorf("yaml tag %q", tag)
	}
	text, err = json.Marshal(&orders.Item{Sku: "x"})
	if want := `{"sku":"x","quantity":0}`; err != nil || string(text) != want {
		t.Errorf("%s, %v, want %s", text, err, want)
	}
}
