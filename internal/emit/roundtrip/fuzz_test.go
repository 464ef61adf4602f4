package roundtrip_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/shapes/golden/shapes"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// FuzzGenerated reads any bytes as any of the structs, with any policy for strings. It
// must not panic or take more memory than it may, and agree with who passes over the same
// bytes. What was read can do everything that values can.
func FuzzGenerated(f *testing.F) {
	for i, prototype := range declared {
		message, err := thrift.Marshal(newFilled(prototype, 1))
		if err != nil {
			f.Fatal(err)
		}
		if len(message) < 400 { // the fuzzer minimizes long ones instead of trying more
			f.Add(byte(i), byte(i), message)
		}
	}
	f.Fuzz(func(t *testing.T, which, policy byte, message []byte) {
		prototype := declared[int(which)%len(declared)]
		config := thrift.UnmarshalConfig{Strings: thrift.Strings(policy % 4)}
		var s thrift.Struct
		kept := bytes.Clone(message) // the fuzzer writes over what it gave
		var err error
		// A map of more than 896 entries may take a half more than it is charged for.
		const others = 16 << 10
		most := limits.DefaultMessage().DecodeBytes(len(message))*3/2 + others
		got := testkit.Allocated(most, func() {
			s = reflect.New(reflect.TypeOf(prototype).Elem()).Interface().(thrift.Struct)
			err = thrift.UnmarshalOwned(kept, s, config)
		})
		if got > most {
			t.Errorf("%d bytes allocated for a message of %d (limit %d), %v", got, len(message), most, err)
		}
		skipped := thrift.Unmarshal(message, new(shapes.Empty)) // which knows no field
		if err == nil {
			if skipped != nil {
				t.Fatalf("%T: it is read, but not passed over: %v", s, skipped)
			}
			useAll(t, s)
			return
		}
		var wireError *thrift.Error
		if !errors.As(err, &wireError) {
			t.Fatalf("%v is not a *thrift.Error", err)
		}
		if skipped == nil && !strings.Contains(err.Error(), "required but absent") && !strings.Contains(err.Error(), "more memory") &&
			!strings.Contains(err.Error(), "counted from 0") { // a set with equal elements
			t.Fatalf("%T: it is passed over, but not read: %v", s, err)
		}
	})
}

// useAll wants everything that a value can do to fit together.
func useAll(t *testing.T, read thrift.Struct) {
	t.Helper()
	if text := read.(interface{ String() string }).String(); len(text) > limits.TextBytes+len("...") {
		t.Errorf("a text of %d bytes", len(text))
	}
	message, err := thrift.Marshal(read)
	if err != nil {
		if !strings.Contains(err.Error(), "union") && !strings.Contains(err.Error(), "deeper") {
			t.Fatalf("written again: %v", err)
		}
		return
	}
	again := reflect.New(reflect.TypeOf(read).Elem()).Interface().(thrift.Struct)
	if err := thrift.Unmarshal(message, again); err != nil {
		if !strings.Contains(err.Error(), "more memory") {
			t.Fatalf("read again: %v", err)
		}
		return
	}
	s, ok := read.(sized)
	if !ok {
		return // arguments or a result
	}
	if n := s.SizeThrift(); n != len(message) {
		t.Errorf("%d bytes were written, SizeThrift is %d", len(message), n)
	}
	same := !holdsNaNKeys(reflect.ValueOf(s))
	clone := cloneOf(s)
	if equal(s, clone) != same || equal(clone, s) != same {
		t.Errorf("the clone of %v is %v", s, clone)
	}
	s.Detach()
	if equal(s, clone) != same || same && !equal(again.(sized), clone) {
		t.Errorf("%v is not equal to %v or %v", clone, s, again)
	}
}

// holdsNaNKeys reports whether there is a map in v with a key that equals nothing.
func holdsNaNKeys(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer:
		return !v.IsNil() && holdsNaNKeys(v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			if holdsNaNKeys(v.Index(i)) {
				return true
			}
		}
	case reflect.Map:
		for iterator := v.MapRange(); iterator.Next(); {
			if !iterator.Key().Equal(iterator.Key()) || holdsNaNKeys(iterator.Value()) {
				return true
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if holdsNaNKeys(v.Field(i)) {
				return true
			}
		}
	}
	return false
}
