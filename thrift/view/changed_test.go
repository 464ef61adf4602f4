package view

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/thrift"
)

// TestChangedList_KnowsHowLongItIs also when one element was set again and again: only a
// list that could be too long to be written is not read where it is.
func TestChangedList_KnowsHowLongItIs(t *testing.T) {
	const long = 1 << 30 // there is no such text: nobody reads it
	list := changedList{base: []byte{byte(thrift.String), listHeader - 1: 0}, more: 2}
	for range 9 {
		list.add(&viewPatch{form: patchText, number: long, from: listHeader, to: listHeader})
	}
	field := func() (*View, Slot) {
		v := View{}
		v.add(&viewPatch{form: patchNested, value: partPatch(&viewElements{changedList: list}).value})
		return &v, Slot{start: slotPatched}
	}
	if v, s := field(); v.changedList(s, thrift.String) == nil || v.changedList(s, thrift.I64) != nil {
		t.Errorf("a list of %d bytes is too long, or has elements of another type", list.added)
	}
	list.add(&viewPatch{form: patchText, of: 1, number: long, from: listHeader, to: listHeader})
	if v, s := field(); v.changedList(s, thrift.String) != nil {
		t.Errorf("a list of %d bytes is not too long", list.added)
	}
}
