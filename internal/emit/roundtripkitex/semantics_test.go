package roundtripkitex_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/kitex/golden/shape"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/kitexown/golden/own"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// field is the header of a field.
func field(t thrift.Type, id int16) string {
	return string(binary.BigEndian.AppendUint16([]byte{byte(t)}, uint16(id)))
}

// number is an i32 on the wire.
func number(v int32) string { return string(binary.BigEndian.AppendUint32(nil, uint32(v))) }

func list(element thrift.Type, n int32) string { return string([]byte{byte(element)}) + number(n) }

const stop = "\x00"

func read(s thrift.Struct, parts ...string) error {
	return thrift.Unmarshal([]byte(strings.Join(parts, "")), s)
}

func TestUnion_LastFieldStays(t *testing.T) {
	choice := shape.NewChoice()
	if err := read(choice, field(thrift.String, 1), number(1), "a", field(thrift.I32, 5), number(5), stop); err != nil {
		t.Fatal(err)
	}
	if choice.IsSetText() || choice.GetColor() != shape.Color_GREEN || choice.CountSetFieldsChoice() != 1 {
		t.Errorf("read %s", choice)
	}
	// A field with a default is not set while it equals that.
	preset := &shape.Preset{Number: 9}
	if err := read(preset, field(thrift.String, 2), number(1), "a", stop); err != nil {
		t.Fatal(err)
	}
	if preset.IsSetNumber() || preset.GetText() != "a" || preset.Number != 5 {
		t.Errorf("read %s", preset)
	}
	for _, wrong := range []thrift.Struct{shape.NewChoice(), shape.NewPreset(), &shape.Containers{Choices: []*shape.Choice{{}}}} {
		if _, err := thrift.Marshal(wrong); err == nil || !strings.Contains(err.Error(), "exactly one field must be set, 0 are") {
			t.Errorf("%T: %v", wrong, err)
		}
	}
}

func TestRequired_IsMissed(t *testing.T) {
	err := read(shape.NewRequired(), field(thrift.Bool, 1), "\x01", stop)
	if err == nil || !strings.Contains(err.Error(), "shape.Required: required but absent: large, text, bytes, color, leaf, list, leaves, table") {
		t.Errorf("error %v", err)
	}
}

func TestEnum_HasTheBytesOfANumber(t *testing.T) {
	c := &shape.Containers{Colors: []shape.Color{shape.Color_GREEN, -1, math.MinInt32, shape.Color(1<<32 + 3)}}
	message, err := thrift.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if want := field(thrift.List, 9) + list(thrift.I32, 4) + number(5) + number(-1) + number(math.MinInt32) + number(3); !strings.Contains(string(message), want) {
		t.Errorf("message %x, want %x in it", message, want)
	}
	received := shape.NewContainers()
	if err := thrift.Unmarshal(message, received); err != nil || fmt.Sprintf("%d", received.Colors) != "[5 -1 -2147483648 3]" {
		t.Errorf("%d, %v", received.Colors, err)
	}
	// Elements of another type leave the field as it is.
	if err := read(received, field(thrift.List, 9), list(thrift.I64, 1), "\x00\x00\x00\x00\x00\x00\x00\x01", stop); err != nil || len(received.Colors) != 4 {
		t.Errorf("%d, %v", received.Colors, err)
	}
	if err := read(received, field(thrift.List, 9), list(thrift.I32, 0), stop); err != nil || received.Colors == nil || len(received.Colors) != 0 {
		t.Errorf("%d, %v", received.Colors, err)
	}
}

func TestUnknown_IsSentOn(t *testing.T) {
	sent := field(thrift.I32, 1) + number(7) + field(thrift.String, 9) + number(2) + "ab" + field(thrift.Bool, 2) + "\x01" +
		field(thrift.List, 2) + list(thrift.I32, 0) + stop
	keeps := own.NewKeeps()
	if err := read(keeps, sent); err != nil {
		t.Fatal(err)
	}
	message, err := thrift.Marshal(keeps)
	if err != nil || keeps.BLength() != len(sent) || len(message) != len(sent) || !strings.HasSuffix(string(message), field(thrift.Bool, 2)+"\x01"+stop) {
		t.Errorf("%x became %x, %v; %d bytes", sent, message, err, keeps.BLength())
	}
	arm := own.NewKeepsArm()
	if err := read(arm, field(thrift.I32, 1), number(7), field(thrift.I32, 5), number(8), stop); err != nil {
		t.Fatal(err)
	}
	if message, err := thrift.Marshal(arm); err != nil || arm.CountSetFieldsKeepsArm() != 1 || string(message) != field(thrift.I32, 5)+number(8)+stop || arm.BLength() != len(message) {
		t.Errorf("%x, %v; %d set, %d bytes", message, err, arm.CountSetFieldsKeepsArm(), arm.BLength())
	}
}

// TestUnion_HasItsDefaultForItself reads unions in which another field than the one with
// a default is set: that one counts as not set, and is nobody else's memory.
func TestUnion_HasItsDefaultForItself(t *testing.T) {
	number, unknown := field(thrift.I32, 1)+number(7), field(thrift.I32, 5)+number(8)
	for name, parts := range map[string][]string{
		"an arm": {number, stop}, "an unknown one": {unknown, stop},
		"after the default": {field(thrift.String, 2), "\x00\x00\x00\x01b", number, stop},
	} {
		union := &own.KeepsPreset{}
		if err := read(union, parts...); err != nil {
			t.Fatal(err)
		}
		message, err := thrift.Marshal(union)
		if want := strings.Join(parts[len(parts)-2:], ""); err != nil || string(message) != want || union.IsSetBytes() {
			t.Errorf("%s: %x, %v, want %x", name, message, err, want)
		}
		if got := string(union.Bytes); got != "bin" {
			t.Fatalf("%s: the default is %q", name, got)
		}
		union.Bytes[0] = 'B'
		if got := string(own.KeepsPreset_Bytes_DEFAULT); got != "bin" {
			t.Fatalf("%s: the default of all became %q", name, got)
		}
	}
}

func TestString_ShowsWhatIsThere(t *testing.T) {
	count, note := int32(3), "n"
	leaf := &shape.Leaf{Name: "a", Count: &count, Note: &note}
	if got, want := leaf.String(), `shape.Leaf(name: "a", count: 3, weight: 0, note: "n")`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := (&shape.Failed{Reason: "r"}).Error(), `shape.Failed(reason: "r")`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := fmt.Sprint(shape.Color_GREEN, shape.Color(8)); got != "GREEN <UNSET>" {
		t.Error(got)
	}
}

// TestMemory_OfPointersIsShared decodes many structs with optional fields in them:
// what they take is far fewer allocations than pointers.
func TestMemory_OfPointersIsShared(t *testing.T) {
	const structs = 1000
	sent := &shape.Containers{ByName: map[string]*shape.Leaf{}}
	for i := range structs {
		count, note := int32(i), "note"
		sent.Leaves = append(sent.Leaves, &shape.Leaf{Name: "name", Count: &count, Note: &note})
	}
	message, err := thrift.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	allocations := testing.AllocsPerRun(10, func() {
		received := shape.NewContainers()
		if err := thrift.Unmarshal(message, received); err != nil || *received.Leaves[structs-1].Count != structs-1 {
			t.Fatal(err)
		}
	})
	if allocations > 40 {
		t.Errorf("%v allocations for %d structs with 2 pointers each", allocations, structs)
	}
}

// TestStructs_AreBounded wants errors, and little memory, for counts that the bytes do not
// back, for nesting that is too deep, and for structs that are large in Go.
func TestStructs_AreBounded(t *testing.T) {
	deep := strings.Repeat(field(thrift.StructType, 2), 70) + strings.Repeat(stop, 71)
	children := strings.Repeat(field(thrift.List, 4)+list(thrift.StructType, 1), 70) + strings.Repeat(stop, 71)
	many := field(thrift.List, 1) + list(thrift.StructType, 1<<20) + strings.Repeat(stop, 1<<20) + stop
	for name, test := range map[string]struct {
		s       thrift.Struct
		message string
		part    string
	}{
		"list":      {shape.NewContainers(), field(thrift.List, 12) + list(thrift.StructType, 1<<24) + stop, "16777216"},
		"map":       {shape.NewContainers(), field(thrift.Map, 14) + "\x0b\x0c" + number(1<<24) + stop, "16777216"},
		"negative":  {shape.NewContainers(), field(thrift.List, 12) + list(thrift.StructType, -1) + stop, "-1"},
		"deep":      {shape.NewTree(), deep, "64"},
		"children":  {shape.NewTree(), children, "64"},
		"budget":    {own.NewWides(), many, "decoding needs"},
		"truncated": {shape.NewContainers(), field(thrift.List, 12) + list(thrift.StructType, 2) + stop + "\x0b", "needs"},
		"by path":   {own.NewOwn(), field(thrift.Map, 4) + "\x0f\x0c" + number(1<<20) + stop, "1048576"},
	} {
		var wireError *thrift.Error
		if err := read(test.s, test.message); !errors.As(err, &wireError) || !strings.Contains(err.Error(), test.part) {
			t.Errorf("%s: error %v, want one with %q", name, err, test.part)
		}
		if n, err := test.s.(kitexStruct).FastRead([]byte(test.message)); err == nil || n != 0 {
			t.Errorf("%s: FastRead returns %d, %v", name, n, err)
		}
	}
}

// TestDefaults_AreChargedForWhatTheyTake has many structs in which a new one holds others
// by its default: those that hold little arrive, and those that hold more than the message
// may take are refused before.
func TestDefaults_AreChargedForWhatTheyTake(t *testing.T) {
	const n = 20_000
	for name, test := range map[string]struct {
		field   int16
		element string
		most    int64 // of memory, 0 for an error
	}{
		"items":   {1, field(thrift.I32, 1) + number(7) + stop, n * 64},
		"refused": {2, stop, 0},
	} {
		message := field(thrift.List, test.field) + list(thrift.StructType, n) + strings.Repeat(test.element, n) + stop
		var err error
		items := own.NewItems()
		budget := limits.DefaultMessage().DecodeBytes(len(message))
		const refused = 64 << 10 // the error, and a copy of what is read
		got := testkit.Allocated(budget, func() { items = own.NewItems(); err = thrift.Unmarshal([]byte(message), items) })
		if got > budget+int64(len(message))+refused {
			t.Errorf("%s: %d bytes allocated (limit %d)", name, got, budget)
		}
		if test.most == 0 {
			if err == nil {
				t.Errorf("%s: no error, %d bytes allocated", name, got)
			}
			continue
		}
		if err != nil || len(items.Items) != n || items.Items[n-1].Id != 7 || items.Items[n-1].Heavy == nil || items.Items[n-1].Heavy.Numbers != nil {
			t.Errorf("%s: %v, %d items", name, err, len(items.Items))
		}
		if got > test.most+int64(len(message)) {
			t.Errorf("%s: %d bytes allocated (limit %d)", name, got, test.most)
		}
	}
}

// TestDefaults_AreNotMadeBeforeTheyArePaid: the struct that was too much has no defaults.
func TestDefaults_AreNotMadeBeforeTheyArePaid(t *testing.T) {
	const n = 20_000
	message := field(thrift.List, 2) + list(thrift.StructType, n) + strings.Repeat(stop, n) + stop
	items := own.NewItems()
	if err := read(items, message); err == nil || !strings.Contains(err.Error(), "bytes more memory than a message of") {
		t.Fatal(err)
	}
	last := len(items.Filled) - 1
	if last < 1 || items.Filled[last].Heavy != nil || items.Filled[last-1].Heavy == nil {
		t.Errorf("of %d structs the last is %v", last+1, items.Filled[max(last, 0)])
	}
}

func TestFastWrite_PanicsWhereItCannotWrite(t *testing.T) {
	circle := &shape.Tree{}
	circle.Right = circle
	for name, write := range map[string]func(){
		"union":  func() { shape.NewChoice().FastWrite(make([]byte, 100)) },
		"short":  func() { (&shape.Leaf{Name: "name"}).FastWrite(make([]byte, 17)) },
		"circle": func() { circle.FastWrite(make([]byte, 100)) },
	} {
		if !panics(write) {
			t.Errorf("%s: no panic", name)
		}
	}
	if n := circle.BLength(); n < 1000 {
		t.Errorf("a value that contains itself has %d bytes", n)
	}
	// Deeper than a message may be, and still written.
	var tree *shape.Tree
	for range 200 {
		tree = &shape.Tree{Right: tree}
	}
	buf := make([]byte, tree.BLength())
	if n := tree.FastWrite(buf); n != len(buf) {
		t.Errorf("%d of %d bytes", n, len(buf))
	}
}

// TestFastWrite_TakesNoSecondBuffer writes structs whose optional fields are absent to
// memory that has no room for them.
func TestFastWrite_TakesNoSecondBuffer(t *testing.T) {
	wides := &own.Wides{}
	for range 20_000 {
		wides.List = append(wides.List, &own.Wide{})
	}
	buf := make([]byte, wides.BLength())
	const most = 8 << 10
	n := 0
	if got := testkit.Allocated(most, func() { n = wides.FastWrite(buf) }); got > most {
		t.Errorf("%d bytes allocated to write %d", got, len(buf))
	}
	if n != len(buf) || !bytes.Equal(buf[n-3:], make([]byte, 3)) {
		t.Errorf("%d of %d bytes", n, len(buf))
	}
}

// TestFastRead_TakesNothingForWhatFollows reads structs one behind the other: what they
// take does not depend on how many there are.
func TestFastRead_TakesNothingForWhatFollows(t *testing.T) {
	note := "a note"
	one, err := thrift.Marshal(&shape.Leaf{Name: "the name of a leaf", Note: &note})
	if err != nil {
		t.Fatal(err)
	}
	many := bytes.Repeat(one, 300)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for rest := many; len(rest) > 0; {
		leaf := shape.NewLeaf()
		n, err := leaf.FastRead(rest)
		if err != nil || n != len(one) || leaf.GetNote() != note {
			t.Fatalf("%d, %v, %s", n, err, leaf)
		}
		rest = rest[n:]
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("%d bytes allocated to read %d", got, len(many))
	}
}

func panics(call func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	call()
	return false
}

// FuzzFastRead reads any bytes as structs of all kinds: what is accepted is written
// and read again alike.
func FuzzFastRead(f *testing.F) {
	for i, prototype := range declared {
		message, err := thrift.Marshal(newFilled(prototype, 1))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), message)
	}
	f.Fuzz(func(t *testing.T, kind uint8, message []byte) {
		prototype := declared[int(kind)%len(declared)]
		first := newOf(prototype)
		n, err := first.FastRead(message)
		if err != nil {
			return
		}
		if err := thrift.Unmarshal(message[:n], newOf(prototype)); err != nil {
			t.Fatalf("FastRead accepts what Unmarshal does not: %v", err)
		}
		if _, err := thrift.Marshal(first); err != nil {
			return // a union that did not arrive
		}
		buf := make([]byte, first.BLength())
		if written := first.FastWrite(buf); written != len(buf) {
			t.Fatalf("%d of %d bytes", written, len(buf))
		}
		second := newOf(prototype)
		if _, err := second.FastRead(buf); err != nil {
			if strings.Contains(err.Error(), "limit") {
				return // a nil struct came back as an empty one, which nests deeper
			}
			t.Fatal(err)
		}
		third := newOf(prototype)
		again, err := thrift.Marshal(second)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := third.FastRead(again); err == nil {
			writtenEmpty(reflect.ValueOf(second))
			if text(second) != text(third) {
				t.Fatalf("\nsecond %s\nthird  %s", text(second), text(third))
			}
		}
	})
}

// writtenEmpty puts a new struct where a pointer is nil that is written as an empty struct,
// as Kitex does with what is not optional. What is new has such pointers itself: each time
// that a value travels they are a level deeper.
func writtenEmpty(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			writtenEmpty(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			writtenEmpty(v.Index(i))
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			writtenEmpty(entries.Key())
			writtenEmpty(entries.Value())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field, tag := v.Field(i), v.Type().Field(i).Tag.Get("frugal")
			if field.Kind() == reflect.Pointer && field.IsNil() && field.CanSet() && (strings.Contains(tag, ",default,") || strings.Contains(tag, ",required,")) {
				field.Set(reflect.New(field.Type().Elem()))
				field.Interface().(interface{ InitDefault() }).InitDefault()
				continue
			}
			writtenEmpty(field)
		}
	}
}
