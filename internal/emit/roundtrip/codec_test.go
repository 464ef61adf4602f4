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
type fields func(m *message)

func (f fields) WriteThrift(w *thrift.Writer, b []byte) []byte {
	if !w.BeginStruct() {
		return b
	}
	m := &message{w, b}
	f(m)
	return w.EndStruct(m.b)
}

func (f fields) ReadThrift(*thrift.Reader, int) int { panic("not readable") }

// message is a chunk with a Writer that fills it.
type message struct {
	w *thrift.Writer
	b []byte
}

// put writes a field of size bytes.
func put[T any](m *message, size int, write func(b []byte, id int16, v T), id int16, v T) {
	m.b = m.w.Room(m.b, size)
	write(m.b[len(m.b):len(m.b)+size], id, v)
	m.b = m.b[:len(m.b)+size]
}

func (m *message) FieldBool(id int16, v bool)     { put(m, 4, thrift.PutBool, id, v) }
func (m *message) FieldI8(id int16, v int8)       { put(m, 4, thrift.PutI8, id, v) }
func (m *message) FieldI32(id int16, v int32)     { put(m, 7, thrift.PutI32, id, v) }
func (m *message) FieldI64(id int16, v int64)     { put(m, 11, thrift.PutI64, id, v) }
func (m *message) FieldString(id int16, v string) { m.b = m.w.FieldString(m.b, id, v) }
func (m *message) Field(t thrift.Type, id int16) {
	m.b = thrift.PutField(m.w.Room(m.b, 4), thrift.Key(t, id))
}
func (m *message) BeginList(t thrift.Type, n int) { m.b = m.w.BeginList(m.b, 0, t, n) }
func (m *message) EndList()                       { m.w.EndList() }
func (m *message) EndMap()                        { m.w.EndMap() }
func (m *message) String(v string)                { m.b = m.w.String(m.b, v) }
func (m *message) Bool(v bool)                    { m.b = m.w.Bool(m.b, v) }
func (m *message) I8(v int8)                      { m.b = m.w.I8(m.b, v) }
func (m *message) I32(v int32)                    { m.b = m.w.I32(m.b, v) }
func (m *message) I64(v int64)                    { m.b = m.w.I64(m.b, v) }
func (m *message) Struct(s thrift.Struct)         { m.b = s.WriteThrift(m.w, m.b) }
func (m *message) BeginMap(key, value thrift.Type, n int) {
	m.b = m.w.BeginMap(m.b, 0, key, value, n)
}

// read decodes what the fields write into s.
func read(t *testing.T, s thrift.Struct, f fields) error {
	t.Helper()
	sent, err := thrift.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return thrift.Unmarshal(sent, s)
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
	union := &shapes.Shape{Pairs: []thrift.Pair[[]int32, *shapes.Point]{}}
	if received := copyOf(t, union); !reflect.DeepEqual(received, union) {
		t.Errorf("received %+v", received)
	}
}

func TestUnion_LastFieldWins(t *testing.T) {
	received := &shapes.Shape{AnI64: thrift.Some[int64](9)}
	err := read(t, received, func(m *message) {
		m.FieldString(7, "first")
		m.FieldI32(4, 2)
	})
	if want := (&shapes.Shape{AnI32: thrift.Some[int32](2)}); err != nil || !reflect.DeepEqual(received, want) {
		t.Errorf("received %+v, %v", received, err)
	}
}

func TestRead_RepeatedFieldReplaces(t *testing.T) {
	received := values.NewHolder()
	err := read(t, received, func(m *message) {
		m.Field(thrift.StructType, 1)
		m.Struct(fields(func(m *message) { m.FieldI8(2, 50); m.FieldBool(1, false); m.FieldI32(13, 1) }))
		m.Field(thrift.StructType, 1)
		m.Struct(fields(func(m *message) { m.FieldI32(13, 7) }))
		for range 2 {
			m.Field(thrift.List, 2)
			m.BeginList(thrift.StructType, 1)
			m.Struct(fields(func(m *message) { m.FieldI32(13, 8) }))
			m.EndList()
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
	err := read(t, received, func(m *message) {
		m.FieldI64(2, 77)
		m.FieldI32(3, 1)
		m.FieldString(99, "unknown")
		m.Field(thrift.Map, 100)
		m.BeginMap(thrift.String, thrift.I32, 1)
		m.String("a")
		m.I32(1)
		m.EndMap()
		m.FieldString(1, "new")
	})
	if want := (&orders.Item{Sku: "new", Quantity: 4}); err != nil || !reflect.DeepEqual(received, want) {
		t.Errorf("received %+v, %v", received, err)
	}
}

func TestRead_ContainerOfOtherElementsIsSkipped(t *testing.T) {
	received := &shapes.Containers{Bools: []bool{true}}
	err := read(t, received, func(m *message) {
		m.Field(thrift.List, 1)
		m.BeginList(thrift.I64, 1)
		m.I64(5)
		m.EndList()
		m.Field(thrift.List, 9)
		m.BeginList(thrift.List, 1)
		m.BeginList(thrift.Bool, 1)
		m.Bool(true)
		m.EndList()
		m.EndList()
		m.Field(thrift.List, 2)
		m.BeginList(thrift.I8, 1)
		m.I8(3)
		m.EndList()
	})
	if err != nil || len(received.Bools) != 1 || len(received.Cube) != 1 || len(received.Cube[0]) != 0 || len(received.Bytes) != 1 {
		t.Errorf("received %+v, %v", received, err)
	}
	err = read(t, &shapes.Required{}, func(m *message) {
		m.Field(thrift.List, 12)
		m.BeginList(thrift.I64, 1)
		m.I64(5)
		m.EndList()
	})
	wantError(t, err, "aList")
}

func TestRead_NamesMissingFields(t *testing.T) {
	wantError(t, read(t, &orders.Item{}, func(*message) {}), "orders.Item", "sku")
	wantError(t, read(t, &shapes.Required{}, func(m *message) { m.FieldBool(1, true) }), "shapes.Required", "anI8", "aBlob")
	err := read(t, &shapes.Wide{}, func(m *message) {
		for id := range int16(65) {
			if id != 0 && id != 64 {
				m.FieldI8(id, 1)
			}
		}
	})
	wantError(t, err, "absent: f64, f65")
}

func TestRecursion_NilEndsIt(t *testing.T) {
	list := &recursion.Node{Value: 1, Next: &recursion.Node{Value: 2}, Children: []recursion.Node{}, Named: map[string]*recursion.Node{}}
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
	first.Named["p"].Y = 9
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
	if got := absent.Error(); got != "orders.OutOfStock(nil)" {
		t.Errorf("nil exception is %q", got)
	}
	if got := new(orders.Forbidden).Error(); got != "orders.Forbidden" {
		t.Errorf("exception without fields is %q", got)
	}
	caused := &recursion.Caused{Message: "a", Cause: &recursion.Caused{Message: "b"}}
	if got, want := caused.Error(), `recursion.Caused(message: "a", cause: (message: "b"))`; got != want {
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
