package roundtrip_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/shapes/golden/shapes"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// TestRead_FirstFieldsInAnyOrder: fields of a fixed size that arrive as they are written
// are read in one step. In any other order, with others between them, or more than once,
// they are the same fields.
func TestRead_FirstFieldsInAnyOrder(t *testing.T) {
	want := newFilled(&shapes.Required{}, 1).(*shapes.Required)
	message, err := thrift.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var fields [][]byte
	at := 0
	for _, size := range []int{4, 4, 5, 7, 11, 11} { // 1: bool to 6: double
		fields = append(fields, message[at:at+size])
		at += size
	}
	rest := message[at:]
	unknown := []byte{byte(thrift.I8), 0, 99, 1}
	otherType := []byte{byte(thrift.I8), 0, 1, 7} // of field 1
	older := []byte{byte(thrift.I8), 0, 2, 123}
	for i := range fields {
		swapped := slices.Clone(fields)
		swapped[i], swapped[(i+1)%6] = swapped[(i+1)%6], swapped[i]
		for name, list := range map[string][][]byte{
			"swapped":    swapped,
			"unknown":    slices.Insert(slices.Clone(fields), i, unknown),
			"other type": slices.Insert(slices.Clone(fields), i, otherType),
			"repeated":   append(slices.Clone(fields), fields[i]),
			"replaced":   slices.Insert(slices.Clone(fields), 0, older),
		} {
			received := &shapes.Required{}
			err := thrift.Unmarshal(slices.Concat(append(list, rest)...), received)
			if err != nil || !reflect.DeepEqual(received, want) {
				t.Errorf("%s at field %d: %+v, %v", name, i+1, received, err)
			}
		}
		missing := slices.Concat(append(slices.Delete(slices.Clone(fields), i, i+1), rest)...)
		wantError(t, thrift.Unmarshal(missing, &shapes.Required{}), "required but absent: "+[]string{"aBool", "anI8", "anI16", "anI32", "anI64", "aDouble"}[i])
		for cut := range at {
			if err := thrift.Unmarshal(message[:cut], &shapes.Required{}); err == nil {
				t.Errorf("nothing is said of %d bytes of %d", cut, len(message))
			}
		}
	}
	last := slices.Concat(append(slices.Clone(fields), older, rest)...)
	received := &shapes.Required{}
	if err := thrift.Unmarshal(last, received); err != nil || received.AnI8 != 123 {
		t.Errorf("of a field that arrives twice %v stays, %v, want the last one", received.AnI8, err)
	}
}
