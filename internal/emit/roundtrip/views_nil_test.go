package roundtrip_test

import (
	"bytes"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/views/golden/views"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// TestView_SetToNil sets optional containers and binaries to nil, and to empty ones: as in
// the struct nil is absence, and empty is not.
func TestView_SetToNil(t *testing.T) {
	var v views.OptionalView
	message, err := thrift.Marshal(&views.Optional{ABinary: []byte("b"), Numbers: []int64{1}, Leaves: map[string]*views.Leaf{}})
	if err == nil {
		err = v.Load(message)
	}
	if err != nil {
		t.Fatal(err)
	}
	v.SetABinary(nil)
	v.SetNumbers(nil)
	v.SetLeaves(nil)
	if v.HasABinary() || v.HasNumbers() || v.HasLeaves() {
		t.Error("nil is there")
	}
	if written, err := v.AppendTo(nil); err != nil || !bytes.Equal(written, []byte{0}) {
		t.Errorf("nil is written as %x, %v", written, err)
	}
	v.SetABinary([]byte{})
	v.SetNumbers([]int64{})
	v.SetLeaves(map[string]*views.Leaf{})
	if !v.HasABinary() || !v.HasNumbers() || !v.HasLeaves() {
		t.Error("what is empty is not there")
	}
	var plain views.PlainView
	plain.SetNumbers(nil)
	if !plain.HasNumbers() {
		t.Error("nil is not written as empty where there is no absence")
	}
}

// TestView_SetToWhatCannotBeWritten has the error of the struct, when it is written.
func TestView_SetToWhatCannotBeWritten(t *testing.T) {
	choices := []views.Choice{{}}
	_, want := thrift.Marshal(&views.Containers{Choices: choices})
	var v views.ContainersView
	v.SetChoices(choices)
	if _, err := thrift.Marshal(&v); err == nil || want == nil || err.Error() != want.Error() {
		t.Errorf("the view says %v, the struct %v", err, want)
	}
	v.SetChoices(nil)
	if _, err := thrift.Marshal(&v); err != nil {
		t.Errorf("after it was set to another value: %v", err)
	}
}
