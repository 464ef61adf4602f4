package roundtrip_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/views/golden/views"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// nestedNode is a node in so many others, with a long name in the innermost one.
func nestedNode(levels, long int, last string) *views.Node {
	n := views.NewNode()
	n.Place.Name = strings.Repeat("x", long) + last
	for range levels {
		outer := views.NewNode()
		outer.Children = []views.Node{*n}
		n = outer
	}
	return n
}

// TestView_OfLongMessagesThatNestDeep: what is in them is not gone through once for each
// level around it, and is the same all the same.
func TestView_OfLongMessagesThatNestDeep(t *testing.T) {
	for _, test := range []struct {
		levels, long int
		cut          bool
	}{
		{5, 100, false}, {25, 100, false}, {2, 1 << 20, false}, {7, 1 << 20, true}, {25, 1 << 20, true},
	} {
		t.Run(fmt.Sprint(test.levels, " ", test.long), func(t *testing.T) {
			v, err := views.NewNodeView(nestedNode(test.levels, test.long, ""))
			if err != nil {
				t.Fatal(err)
			}
			s, err := v.Struct()
			if err != nil {
				t.Fatal(err)
			}
			// Nobody prints what is within as many levels.
			if text := v.String(); (text != s.String()) != test.cut || test.cut && !strings.Contains(text, "children: [(...)]") {
				t.Errorf("the text is %.300s, want it cut: %v", text, test.cut)
			}
			got, err := v.MarshalJSON()
			want, wanted := json.Marshal(s)
			if err != nil || wanted != nil || !bytes.Equal(got, want) {
				t.Errorf("the JSON is %.300s, %v, want %.300s, %v", got, err, want, wanted)
			}
			same, err := views.NewNodeView(s)
			if err != nil {
				t.Fatal(err)
			}
			same.SetPlace(same.Place()) // so that the bytes are not compared
			differs, err := views.NewNodeView(nestedNode(test.levels, test.long, "y"))
			if err != nil {
				t.Fatal(err)
			}
			if !v.Equal(&same) || v.Equal(&differs) {
				t.Error("Equal is wrong")
			}
		})
	}
}

// TestView_ChangesManyElementsOfAList as the guide says how: while it is ranged over. That
// a list is put together for each of them would take a hundred times the memory.
func TestView_ChangesManyElementsOfAList(t *testing.T) {
	const n = 2000
	s := views.NewContainers()
	s.Leaves = make(views.Leaves, n)
	message, err := thrift.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var v views.ContainersView
	most := int64(100 * len(message))
	got := testkit.Allocated(most, func() {
		if err := v.Load(message); err != nil {
			t.Fatal(err)
		}
		for i, leaf := range v.Leaves().All() {
			leaf.SetNumber(int32(i))
			v.SetLeavesAt(i, leaf)
		}
	})
	changed, err := v.Struct()
	if err != nil || len(changed.Leaves) != n || changed.Leaves[0].Number != 0 || changed.Leaves[n-1].Number != n-1 {
		t.Fatalf("%d elements, %v", len(changed.Leaves), err)
	}
	if got > most {
		t.Errorf("changing %d elements of %d bytes takes %d bytes, want %d at most", n, len(message), got, most)
	}
}

// TestView_OfStructsThatDidNotCome: what stands for them has its required fields, so that
// nothing has to be decoded to print and compare it. Of so many, a byte each, the
// structs are more than decoding may make where pointers have 64 bits.
func TestView_OfStructsThatDidNotCome(t *testing.T) {
	const n = 10_000
	message := append([]byte{15, 0, 3, 12, 0, 0, n >> 8, n & 0xff}, make([]byte, n+1)...)
	var v, same views.NodeView
	if err := errorOf(v.Load(message), same.Load(message)); err != nil {
		t.Fatal(err)
	}
	same.SetValue(0) // so that the bytes are not compared
	if !v.Equal(&same) {
		t.Error("they are not equal")
	}
	empty, err := json.Marshal(&views.Node{})
	if err != nil {
		t.Fatal(err)
	}
	empty = bytes.ReplaceAll(empty, []byte(`"floor":0`), []byte(`"floor":1`))
	got, err := v.MarshalJSON()
	if want := fmt.Sprintf(`{"value":0,"children":[%s]`, strings.Repeat(","+string(empty), n)[1:]); err != nil || !strings.HasPrefix(string(got), want) {
		t.Errorf("the JSON is %.300s, %v, want %.300s", got, err, want)
	}
	if got, want := v.String(), `views.Node(value: 0, children: [(value: 0, place: (name: "", floor: 1)), (value: 0, `; !strings.HasPrefix(got, want) {
		t.Errorf("the text is %.300s, want %s", got, want)
	}
}
