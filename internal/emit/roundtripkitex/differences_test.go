package roundtripkitex_test

import (
	"encoding/json"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/kitex/golden/shape"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/kitexown/golden/own"
)

// TestShape_DiffersAsTheGuideSays holds what docs/guide/from-kitex.md says of values that
// Kitex's code treats in another way.
func TestShape_DiffersAsTheGuideSays(t *testing.T) {
	var leaf *shape.Leaf
	if got := leaf.String(); got != "shape.Leaf(nil)" {
		t.Errorf("a nil struct is printed as %q", got)
	}
	choice := shape.NewChoice()
	if got := choice.BLength(); got != 1 {
		t.Errorf("a union without a field has %d bytes, want that of its end", got)
	}
	var value any = leaf
	for name, there := range map[string]bool{
		"Equal": implements[interface{ Equal(*shape.Leaf) bool }](value), "Clone": implements[interface{ Clone() *shape.Leaf }](value),
		"Detach": implements[interface{ Detach() }](value), "SizeThrift": implements[interface{ SizeThrift() int }](value),
		"DeepEqual": implements[interface{ DeepEqual(*shape.Leaf) bool }](value),
	} {
		if there {
			t.Errorf("there is %s, and the guide says there is none", name)
		}
	}
}

// TestJSON_HasWhatKitexHides has fields that begin with an underscore.
func TestJSON_HasWhatKitexHides(t *testing.T) {
	hidden := own.NewHidden()
	hidden.Set__1(7)
	const want = `{"_1":7,"_name":"n","X_name":0,"__x":0}`
	if text, err := json.Marshal(hidden); err != nil || string(text) != want || hidden.X__1 != hidden.Get__1() {
		t.Errorf("%s, %v, want %s", text, err, want)
	}
}

func implements[T any](value any) bool {
	_, ok := value.(T)
	return ok
}
