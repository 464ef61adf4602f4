package roundtripkitex_test

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/kitex/golden/shape"
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

func implements[T any](value any) bool {
	_, ok := value.(T)
	return ok
}
