package roundtrip_test

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/views/golden/views"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// A detached view keeps nothing but what it is, and is what it was.
func TestView_Detaches(t *testing.T) {
	s := views.NewNode()
	s.Value, s.Next = 1, views.NewNode()
	s.Next.Value = 2
	b, err := thrift.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var v views.NodeView
	if err := v.Load(b); err != nil {
		t.Fatal(err)
	}
	next := v.Next()
	next.EditNext(func(n *views.NodeView) { n.SetValue(3) })
	next.Detach()
	v.SetValue(5)
	v.Detach()
	for i := range b {
		b[i] = 0xff
	}
	want := views.NewNode()
	want.Value, want.Next = 2, views.NewNode()
	want.Next.Value = 3
	if got, err := next.Struct(); err != nil || !got.Equal(want) {
		t.Errorf("%v, %v", got, err)
	}
	if next := v.Next(); v.Value() != 5 || next.Value() != 2 {
		t.Errorf("%v", v)
	}
	var incomplete views.NodeView
	incomplete.SetPlace(placeViewWithoutName())
	incomplete.SetValue(4)
	if incomplete.Detach(); incomplete.Value() != 4 {
		t.Errorf("%d", incomplete.Value())
	}
	if _, err := incomplete.AppendTo(nil); err == nil {
		t.Error("what is missing was forgotten")
	}
}
