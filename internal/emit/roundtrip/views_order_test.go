package roundtrip_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/views/golden/views"
)

// listModel is a view with a list of strings and one of numbers, and what it must hold.
type listModel struct {
	view    views.ContainersView
	strings []string
	longs   []int64
}

// change makes a change at random.
func (m *listModel) change(random *rand.Rand, n int) {
	text := strings.Repeat("x", random.IntN(5)) + fmt.Sprint(n)
	at := random.IntN(len(m.strings))
	switch random.IntN(20) {
	case 0:
		m.view.AppendStrings(text)
		m.strings = append(slices.Clip(m.strings), text)
		m.view.AppendLongs(int64(n))
		m.longs = append(slices.Clip(m.longs), int64(n))
	case 1:
		m.view.RemoveStringsAt(at)
		m.strings = slices.Concat(m.strings[:at], m.strings[at+1:])
	default:
		m.view.SetStringsAt(at, text)
		m.strings = slices.Clone(m.strings)
		m.strings[at] = text
		at = random.IntN(len(m.longs))
		m.view.SetLongsAt(at, int64(n))
		m.longs = slices.Clone(m.longs)
		m.longs[at] = int64(n)
	}
}

// TestView_ElementsInAnyOrder changes lists at random, and copies of the view on the way,
// and compares with slices. There are so many changes that those of a list are in several runs.
func TestView_ElementsInAnyOrder(t *testing.T) {
	const elements, changes = 3_000, 4_000
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 1))
		first := listModel{}
		for i := range elements {
			first.strings = append(first.strings, strings.Repeat("y", i%7))
			first.longs = append(first.longs, int64(-i))
		}
		view, err := views.NewContainersView(&views.Containers{Strings: first.strings, Longs: first.longs})
		if err != nil {
			t.Fatal(err)
		}
		first.view = view
		all := []listModel{first}
		for n := range changes {
			if n%500 == 250 {
				all = append(all, all[random.IntN(len(all))])
			}
			// Mostly the newest one: its lists get long ones of changes.
			m := &all[len(all)-1]
			if random.IntN(8) == 0 {
				m = &all[random.IntN(len(all))]
			}
			m.change(random, n)
		}
		for i := range all {
			m := &all[i]
			if got := m.view.Strings().AppendTo(nil); !slices.Equal(got, m.strings) {
				t.Fatalf("seed %d, copy %d: the strings differ from element %d on", seed, i, firstDifference(got, m.strings))
			}
			if got := m.view.Longs().AppendTo(nil); !slices.Equal(got, m.longs) {
				t.Fatalf("seed %d, copy %d: the numbers differ from element %d on", seed, i, firstDifference(got, m.longs))
			}
		}
	}
}

func firstDifference[E comparable](a, b []E) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// allocated returns how many bytes f allocates, with what others do meanwhile.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestView_ElementsFromTheLast changes elements from the last to the first. One slice of all changes,
// copied for each, were 2.5 GB.
func TestView_ElementsFromTheLast(t *testing.T) {
	const elements = 12_000
	v, err := views.NewContainersView(&views.Containers{Strings: make([]string, elements)})
	if err != nil {
		t.Fatal(err)
	}
	size := allocated(func() {
		for i := elements - 1; i >= 0; i-- {
			v.SetStringsAt(i, "x")
		}
	})
	if size > 250<<20 {
		t.Errorf("%d bytes were allocated", size)
	}
	for i, text := range v.Strings().AppendTo(nil) {
		if text != "x" {
			t.Fatalf("element %d is %q", i, text)
		}
	}
}
