package thrift_test

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/fulmar-rpc/fulmar/thrift"
)

func TestAppend_GoesOnBehindWhatIsThere(t *testing.T) {
	want := sample()
	b, err := thrift.Append([]byte("before"), want)
	if err != nil {
		t.Fatal(err)
	}
	rest, ok := bytes.CutPrefix(b, []byte("before"))
	if !ok {
		t.Fatalf("the message begins with %.10q, want what was there before it", b)
	}
	var got node
	if err := thrift.Unmarshal(rest, &got); err != nil || !reflect.DeepEqual(&got, want) {
		t.Errorf("read back %+v, %v; want %+v", got, err, want)
	}
}

func TestAppend_ReusesMemory(t *testing.T) {
	first, err := thrift.Append(nil, sample())
	if err != nil {
		t.Fatal(err)
	}
	again, err := thrift.Append(first[:0], sample())
	if err != nil || len(again) != len(first) || &again[0] != &first[0] {
		t.Errorf("the second message of %d bytes is not where the first of %d bytes was: %v", len(again), len(first), err)
	}
}

func TestAppend_LeavesTheSliceOnErrors(t *testing.T) {
	bad := structFunc(func(w *thrift.Writer) {
		w.FieldString(1, "written before the error")
		w.FailNil("test.node")
	})
	before := append(make([]byte, 0, 100), "before"...)
	b, err := thrift.Append(before, bad)
	if err == nil || string(b) != "before" {
		t.Errorf("Append: %q, %v; want %q and an error", b, err, "before")
	}
}
