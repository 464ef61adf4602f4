package roundtrip_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/views/golden/views"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
	fieldview "github.com/fulmar-rpc/fulmar/thrift/view"
)

// entriesOf returns a views.Containers whose map byBool has n entries with the same key:
// the last one has another value.
func entriesOf(n int) []byte {
	b := []byte{13, 0, 19, 2, 8}
	b = binary.BigEndian.AppendUint32(b, uint32(n))
	b = append(b, bytes.Repeat([]byte{1, 0, 0, 0, 1}, n-1)...)
	return append(b, 1, 0, 0, 0, 2, 0)
}

// TestView_TextsOfEntriesThatCameOften take memory for what they say, not for what came: an
// entry takes two bytes of a message, and 50 where somebody remembers it.
func TestView_TextsOfEntriesThatCameOften(t *testing.T) {
	const n = 100_000
	message := entriesOf(n)
	var v, other views.ContainersView
	if err := v.Load(message); err != nil {
		t.Fatal(err)
	}
	other = v
	other.SetByBool(map[bool]views.Color{true: views.Color_BLUE})
	for name, test := range map[string]struct {
		do   func() string
		most int // in lengths of the message
		want string
	}{
		"text":  {v.String, 1, "byBool: {true: BLUE}"},
		"JSON":  {func() string { b, _ := v.MarshalJSON(); return string(b) }, 3, `"byBool":{"true":2}`},
		"equal": {func() string { return fmt.Sprint(v.Equal(&other)) }, 2, "true"},
	} {
		most := int64(test.most * len(message))
		least := testkit.Allocated(most, func() {
			if got := test.do(); !strings.Contains(got, test.want) {
				t.Errorf("%s: it is %.200s, want %s", name, got, test.want)
			}
		})
		if least > most {
			t.Errorf("%s of %d bytes takes %d bytes, want %d at most", name, len(message), least, most)
		}
	}
}

// TestView_TextOfALongMap has the entries that came first, with the values that count.
func TestView_TextOfALongMap(t *testing.T) {
	b := []byte{13, 0, 22, 11, 11, 0, 0, 0, 101}
	entry := func(key, value string) {
		for _, text := range []string{key, value} {
			b = append(binary.BigEndian.AppendUint32(b, uint32(len(text))), text...)
		}
	}
	for i := range 100 {
		entry(fmt.Sprintf("k%02d", i), "old")
	}
	entry("k05", "new")
	var v views.ContainersView
	if err := v.Load(append(b, 0)); err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range limits.TextElements {
		want = append(want, fmt.Sprintf(`"k%02d": "old"`, i))
	}
	want[5] = `"k05": "new"`
	if got, want := v.String(), "texts: {"+strings.Join(slices.Sorted(slices.Values(want)), ", ")+", ... 68 more}"; !strings.Contains(got, want) {
		t.Errorf("the text is %s, want %s", got, want)
	}
}

// A map that is absent stays so if what is to be changed is not in its default.
func TestView_ChangesNoEntryThatIsNotThere(t *testing.T) {
	edit := func(leaf *views.LeafView) { leaf.SetNumber(9) }
	for name, test := range map[string]struct {
		change         func(v *views.AroundView)
		counts, leaves bool
	}{
		"deleted, not there": {change: func(v *views.AroundView) { v.DeleteCountsEntry("b"); v.DeleteLeavesEntry("b") }},
		"edited, not there": {change: func(v *views.AroundView) {
			if v.EditLeavesEntry("b", edit) {
				t.Error("it is there")
			}
		}},
		"deleted": {change: func(v *views.AroundView) { v.DeleteCountsEntry("a") }, counts: true},
		"edited": {change: func(v *views.AroundView) {
			if !v.EditLeavesEntry("a", edit) {
				t.Error("it is not there")
			}
		}, leaves: true},
	} {
		var v views.AroundView
		v.SetNumber(3)
		test.change(&v)
		if v.HasCounts() != test.counts || v.HasLeaves() != test.leaves || v.Number() != 3 {
			t.Errorf("%s: %v, %v, %d", name, v.HasCounts(), v.HasLeaves(), v.Number())
		}
		leaves := v.Leaves()
		if leaf, found := fieldview.Lookup(leaves, "a"); !found || leaf.Number() == 9 != test.leaves {
			t.Errorf("%s: the leaf is %v, %v", name, leaf.Number(), found)
		}
	}
}
