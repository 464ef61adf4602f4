package rpc

import (
	"strings"
	"testing"
)

// TestViewCases_AreFoundAndHaveData has what clients compare: requests that differ from
// each other, with as many structs as the case says.
func TestViewCases_AreFoundAndHaveData(t *testing.T) {
	for _, want := range ViewCases() {
		c, err := FindCase(want.Name)
		if err != nil || c != want {
			t.Errorf("%s: found %+v, %v", want.Name, c, err)
		}
		if strings.HasPrefix(c.Name, "echo-items-") == (c.Items == 0) && !c.Hop {
			t.Errorf("%s has %d items", c.Name, c.Items)
		}
		if c.Items == 0 {
			continue
		}
		data := c.complexes(1)
		if len(data) != variants || data[0].Action == data[1].Action {
			t.Fatalf("%s: the requests of a caller are the same", c.Name)
		}
		for _, one := range data {
			if len(one.Parts) != c.Items {
				t.Errorf("%s: %d structs, want %d", c.Name, len(one.Parts), c.Items)
			}
		}
	}
}
