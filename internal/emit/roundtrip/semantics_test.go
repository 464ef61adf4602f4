package roundtrip_test

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/ids/golden/ids"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/names/golden/names"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/orders/golden/orders"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/recursion/golden/recursion"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/shapes/golden/shapes"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/values/golden/values"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// The tests of this file are about sentences of docs/guide/idl.md, "What
// generated code does". Bytes are written out, so that they do not depend on how
// code is generated.

// readBytes decodes a message of exactly these bytes.
func readBytes(t *testing.T, message string, s thrift.Struct) {
	t.Helper()
	if err := thrift.Unmarshal([]byte(message), s); err != nil {
		t.Fatalf("%q: %v", message, err)
	}
}

func TestSemantics_OnlyOneIsTrue(t *testing.T) {
	for stored, want := range map[string]bool{"\x00": false, "\x01": true, "\x02": false, "\xff": false} {
		plain, list := &shapes.Plain{ABool: !want}, &shapes.Containers{}
		readBytes(t, "\x02\x00\x01"+stored+"\x00", plain)
		readBytes(t, "\x0f\x00\x01\x02\x00\x00\x00\x02\x01"+stored+"\x00", list)
		if plain.ABool != want || !slices.Equal(list.Bools, []bool{true, want}) {
			t.Errorf("%q: field %v, list %v", stored, plain.ABool, list.Bools)
		}
		// No other value of the byte may have come into the bool.
		message, err := thrift.Marshal(&shapes.Containers{Bools: list.Bools})
		written := map[bool]string{false: "\x00", true: "\x01"}[want]
		if err != nil || !bytes.Contains(message, []byte("\x0f\x00\x01\x02\x00\x00\x00\x02\x01"+written)) {
			t.Errorf("%q: is written as %q, %v", stored, message, err)
		}
	}
}

func TestSemantics_BytesAreSigned(t *testing.T) {
	plain := &shapes.Plain{}
	readBytes(t, "\x03\x00\x02\x80\x00", plain)
	if plain.AnI8 != -128 {
		t.Errorf("0x80 is %d", plain.AnI8)
	}
	if list := copyOf(t, &shapes.Containers{Bytes: []int8{-128, -1, 127}}); !slices.Equal(list.Bytes, []int8{-128, -1, 127}) {
		t.Errorf("list %v", list.Bytes)
	}
}

// TestSemantics_DoublesKeepTheirBits has numbers that are not equal to
// themselves, or equal to others.
func TestSemantics_DoublesKeepTheirBits(t *testing.T) {
	for _, bits := range []uint64{0x7ff8000000000001, 0xfff0000000000000, 0x8000000000000000, 1} {
		number := math.Float64frombits(bits)
		received := copyOf(t, &shapes.Optional{ADouble: thrift.Some(number)})
		if got, set := received.ADouble.Get(); !set || math.Float64bits(got) != bits {
			t.Errorf("%#x arrived as %#x, %v", bits, math.Float64bits(got), set)
		}
	}
	// A default is no reason to leave a value out, be it equal or not.
	if same := copyOf(t, &values.Optionals{Ratio: thrift.Some(2.0)}); !same.Ratio.IsSet() {
		t.Error("a value that equals the default was left out")
	}
}

// TestSemantics_KeysThatAreNotANumberStay has a map that Go cannot look into.
func TestSemantics_KeysThatAreNotANumberStay(t *testing.T) {
	const required = "\x0d\x00\x0e\x0b\x0f\x00\x00\x00\x00\x00" // a field of the same struct, and the end
	notANumber := "\x7f\xf8\x00\x00\x00\x00\x00\x00"
	keys := &shapes.Keys{}
	readBytes(t, "\x0d\x00\x03\x04\x0b\x00\x00\x00\x02"+notANumber+"\x00\x00\x00\x01a"+notANumber+"\x00\x00\x00\x01b"+required, keys)
	if len(keys.Doubles) != 2 {
		t.Fatalf("%d entries", len(keys.Doubles))
	}
	if _, found := keys.Doubles[math.NaN()]; found {
		t.Error("found in a map")
	}
	var texts []string
	for key, text := range copyOf(t, &shapes.Keys{Doubles: keys.Doubles}).Doubles {
		if !math.IsNaN(key) {
			t.Errorf("key %v", key)
		}
		texts = append(texts, text)
	}
	if slices.Sort(texts); !slices.Equal(texts, []string{"a", "b"}) {
		t.Errorf("sent on as %q", texts)
	}
}

func TestSemantics_LastOfEqualKeysStays(t *testing.T) {
	const required = "\x0d\x00\x0e\x0b\x0f\x00\x00\x00\x00\x00" // a field of the same struct, and the end
	keys := &shapes.Keys{}
	readBytes(t, "\x0d\x00\x02\x03\x03\x00\x00\x00\x03\x01\x02\x04\x05\x01\x03"+required, keys)
	if want := map[int8]int8{1: 3, 4: 5}; !reflect.DeepEqual(keys.Bytes, want) {
		t.Errorf("%v, want %v", keys.Bytes, want)
	}
	// In pairs each stays.
	readBytes(t, "\x0d\x00\x08\x0f\x0b\x00\x00\x00\x02"+
		"\x08\x00\x00\x00\x00\x00\x00\x00\x01a"+"\x08\x00\x00\x00\x00\x00\x00\x00\x01b"+required, keys)
	if len(keys.Lists) != 2 || keys.Lists[0].Value != "a" || keys.Lists[1].Value != "b" {
		t.Errorf("pairs %v", keys.Lists)
	}
}

func TestSemantics_SetsKeepOrderAndRepetitions(t *testing.T) {
	sent := &shapes.Containers{Colors: []shapes.Color{2, 0, 2, 1}}
	if received := copyOf(t, sent); !slices.Equal(received.Colors, sent.Colors) {
		t.Errorf("set %v", received.Colors)
	}
}

func TestSemantics_EmptyBinaryIsNotNil(t *testing.T) {
	received := copyOf(t, &shapes.Optional{ABinary: []byte{}, ABlob: nil})
	if received.ABinary == nil || received.ABlob != nil {
		t.Errorf("empty %v, absent %v", received.ABinary, received.ABlob)
	}
	blobs := copyOf(t, &shapes.Containers{Blobs: []shapes.Blob{nil, {}, {0}}})
	if len(blobs.Blobs) != 3 || blobs.Blobs[0] == nil || blobs.Blobs[1] == nil {
		t.Errorf("elements %v", blobs.Blobs)
	}
}

func TestSemantics_EnumsAreOpen(t *testing.T) {
	received := copyOf(t, &shapes.Containers{Colors: []shapes.Color{-5, math.MaxInt32}})
	if !slices.Equal(received.Colors, []shapes.Color{-5, math.MaxInt32}) || received.Colors[0].String() != "-5" {
		t.Errorf("unknown numbers are %v", received.Colors)
	}
}

// TestSemantics_UnknownArmOfAUnionIsNone reads an arm that this definition does
// not have.
func TestSemantics_UnknownArmOfAUnionIsNone(t *testing.T) {
	choice := &values.Choice{}
	readBytes(t, "\x08\x00\x63\x00\x00\x00\x05\x00", choice)
	if !reflect.DeepEqual(choice, &values.Choice{}) {
		t.Errorf("read %+v", choice)
	}
	_, err := thrift.Marshal(choice)
	wantError(t, err, "values.Choice", "0 are")
}

// TestSemantics_MissingFieldsAreReportedBehindTheStruct has a required field
// that is missing in a struct inside of another one, whose own missing field is
// found too: the reader was still in step.
func TestSemantics_MissingFieldsAreReportedBehindTheStruct(t *testing.T) {
	whole := "\x0b\x00\x01\x00\x00\x00\x01s\x08\x00\x02\x00\x00\x00\x01"
	item := &orders.Item{}
	readBytes(t, whole+"\x00", item)
	for name, message := range map[string]string{
		"first":                  "\x08\x00\x02\x00\x00\x00\x01\x00",
		"of another type":        "\x08\x00\x01\x00\x00\x00\x01\x08\x00\x02\x00\x00\x00\x01\x00",
		"before unknown fields":  "\x0f\x00\x63\x08\x00\x00\x00\x01\x00\x00\x00\x05\x00",
		"with bytes behind them": "\x00",
	} {
		err := thrift.Unmarshal([]byte(message), &orders.Item{})
		wantError(t, err, "orders.Item", "sku")
		if truncated := thrift.Unmarshal([]byte(message[:len(message)-1]), &orders.Item{}); truncated == nil || truncated.Error() == err.Error() {
			t.Errorf("%s: reported before the struct has ended: %v", name, truncated)
		}
	}
}

// TestSemantics_RequiredArgumentsAreMissed decodes a request that a handler must
// not see.
func TestSemantics_RequiredArgumentsAreMissed(t *testing.T) {
	wantError(t, thrift.Unmarshal([]byte("\x00"), new(shapes.EchoAnExceptionArgs)), "Echo.anException arguments", "absent: v")
	if err := thrift.Unmarshal([]byte("\x00"), new(shapes.EchoAStructArgs)); err != nil {
		t.Errorf("an argument without a requiredness: %v", err)
	}
}

func TestSemantics_UnknownFieldsAreNotSentOn(t *testing.T) {
	item := &orders.Item{}
	sku, quantity := "\x0b\x00\x01\x00\x00\x00\x01s", "\x08\x00\x02\x00\x00\x00\x01"
	readBytes(t, "\x0a\x00\x63\x00\x00\x00\x00\x00\x00\x00\x07"+sku+quantity+"\x00", item)
	message, err := thrift.Marshal(item)
	if text := string(message); err != nil || text != sku+quantity+"\x00" && text != quantity+sku+"\x00" {
		t.Errorf("%q, %v, want the two known fields", message, err)
	}
}

func TestSemantics_DefaultRequirednessIsAlwaysWritten(t *testing.T) {
	message, err := thrift.Marshal(&recursion.Leaf{})
	if want := "\x0b\x00\x01\x00\x00\x00\x00\x00"; err != nil || string(message) != want {
		t.Errorf("%q, %v, want %q", message, err, want)
	}
	// An optional field is left out even if it has a default.
	message, err = thrift.Marshal(values.NewOptionals())
	if err != nil || string(message) != "\x00" {
		t.Errorf("%q, %v, want nothing", message, err)
	}
	// A struct by value is written with what it holds.
	message, err = thrift.Marshal(&shapes.Failure{})
	if want := "\x08\x00\x01\x00\x00\x00\x00\x0b\x00\x03\x00\x00\x00\x00\x00"; err != nil || string(message) != want {
		t.Errorf("%q, %v, want %q", message, err, want)
	}
}

// TestSemantics_ExceptionsAreErrors has fields that are called like the method.
func TestSemantics_ExceptionsAreErrors(t *testing.T) {
	sent := &names.Error{Error_: "a", Error_2: "b", Message: "c"}
	var err error = copyOf(t, sent)
	if got, ok := errors.AsType[*names.Error](err); !ok || !reflect.DeepEqual(got, sent) {
		t.Errorf("arrived as %#v", err)
	}
	if want := `names.Error(error: "a", Error: "b", message: "c")`; err.Error() != want {
		t.Errorf("%s, want %s", err, want)
	}
}

// TestSemantics_IDsAreSixteenBitsWithASign has the ids at which an encoding of
// them could go wrong.
func TestSemantics_IDsAreSixteenBitsWithASign(t *testing.T) {
	sent := &ids.Extremes{
		Lowest: 1, Minus256: "a", Minus1: []int32{2}, Zero: 3, Low: thrift.Some(true), Page: 5, AfterPage: 6, Highest: "b",
	}
	message, err := thrift.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{
		"\x08\x80\x00\x00\x00\x00\x01", "\x0b\xff\x00\x00\x00\x00\x01a", "\x0f\xff\xff\x08\x00\x00\x00\x01\x00\x00\x00\x02",
		"\x0a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x03", "\x02\x00\x01\x01", "\x03\x00\xff\x05", "\x06\x01\x00\x00\x06", "\x0b\x7f\xff\x00\x00\x00\x01b",
	} {
		if !bytes.Contains(message, []byte(field)) {
			t.Errorf("%q has no field %q", message, field)
		}
	}
	if received := copyOf(t, sent); !reflect.DeepEqual(received, sent) {
		t.Errorf("arrived as %+v", received)
	}
	missing := thrift.Unmarshal([]byte("\x00"), &ids.Extremes{})
	wantError(t, missing, "lowest", "highest")
	// Who knows none of the ids skips the fields.
	item := &orders.Item{}
	readBytes(t, string(message[:len(message)-1])+"\x0b\x00\x01\x00\x00\x00\x01s\x08\x00\x02\x00\x00\x00\x01\x00", item)
	if item.Sku != "s" || item.Quantity != 1 {
		t.Errorf("read %+v", item)
	}
}
