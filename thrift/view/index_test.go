package view_test

import (
	"slices"
	"testing"

	"github.com/fulmar-rpc/fulmar/thrift"
	"github.com/fulmar-rpc/fulmar/thrift/view"
)

func TestList_IndexFindsAllElements(t *testing.T) {
	want := []string{"a", "", "ccc", "dd"}
	b, err := thrift.Binary.AppendPart(nil, 1, func(w *thrift.Writer, b []byte) []byte { return w.StringList(b, 0, want) })
	if err != nil {
		t.Fatal(err)
	}
	list := view.ListOf(b, thrift.String, view.Text)
	index := list.Index()
	var got []string
	for i := range index.Len() {
		got = append(got, index.At(i))
		if index.At(i) != list.At(i) {
			t.Errorf("element %d is %q", i, index.At(i))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, i := range []int{-1, len(want)} {
		if message := panicOf(func() { index.At(i) }); message == nil {
			t.Errorf("there is an element %d", i)
		}
	}
	if n := view.ListOf(nil, thrift.String, view.Text).Index().Len(); n != 0 {
		t.Errorf("the index of nothing has %d elements", n)
	}
}

func panicOf(run func()) (message any) {
	defer func() { message = recover() }()
	run()
	return nil
}
