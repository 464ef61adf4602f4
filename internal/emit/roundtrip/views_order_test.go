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
		m.appendBoth(text)
	case 1:
		m.remove(at)
	default:
		if len(m.longs) == 0 {
			return
		}
		m.view.SetStringsAt(at, text)
		m.strings = slices.Clone(m.strings)
		m.strings[at] = text
		at = random.IntN(len(m.longs))
		m.view.SetLongsAt(at, int64(n))
		m.longs = slices.Clone(m.longs)
		m.longs[at] = int64(n)
	}
}

// appendBoth puts an element behind the others of each list.
func (m *listModel) appendBoth(text string) {
	m.view.AppendStrings(text)
	m.strings = append(slices.Clip(m.strings), text)
	m.view.AppendLongs(int64(len(text)))
	m.longs = append(slices.Clip(m.longs), int64(len(text)))
}

// remove takes a string away.
func (m *listModel) remove(at int) {
	m.view.RemoveStringsAt(at)
	m.strings = slices.Concat(m.strings[:at], m.strings[at+1:])
	if at %= len(m.longs) + 1; at < len(m.longs) && at%2 == 0 {
		m.view.RemoveLongsAt(at)
		m.longs = slices.Concat(m.longs[:at], m.longs[at+1:])
	}
}

// newListModel has so many elements in each list.
func newListModel(elements int) (*listModel, error) {
	m := &listModel{}
	for i := range elements {
		m.strings = append(m.strings, strings.Repeat("y", i%7))
		m.longs = append(m.longs, int64(-i))
	}
	view, err := views.NewContainersView(&views.Containers{Strings: m.strings, Longs: m.longs})
	m.view = view
	return m, err
}

// compareElements is compare for some elements alone, and for how many there are.
func (m *listModel) compareElements() string {
	texts, longs := m.view.Strings(), m.view.Longs()
	if texts.Len() != len(m.strings) || longs.Len() != len(m.longs) {
		return fmt.Sprintf("there are %d strings and %d numbers, want %d and %d", texts.Len(), longs.Len(), len(m.strings), len(m.longs))
	}
	for i := 0; i < len(m.strings); i += 1 + len(m.strings)/40 {
		if got := texts.At(i); got != m.strings[i] {
			return fmt.Sprintf("string %d is %q, want %q", i, got, m.strings[i])
		}
	}
	for i := 0; i < len(m.longs); i += 1 + len(m.longs)/300 {
		if got := longs.At(i); got != m.longs[i] {
			return fmt.Sprintf("number %d is %d, want %d", i, got, m.longs[i])
		}
	}
	return ""
}

// compare says what of the view is not as it must be.
func (m *listModel) compare() string {
	if problem := m.compareElements(); problem != "" {
		return problem
	}
	if got := m.view.Strings().AppendTo(nil); !slices.Equal(got, m.strings) {
		return fmt.Sprintf("the strings differ from element %d on", firstDifference(got, m.strings))
	}
	if got := m.view.Longs().AppendTo(nil); !slices.Equal(got, m.longs) {
		return fmt.Sprintf("the numbers differ from element %d on", firstDifference(got, m.longs))
	}
	return ""
}

// TestView_ElementsInAnyOrder changes lists at random, and copies of the view on the way,
// and compares with slices. There are so many changes that those of a list are in several runs.
func TestView_ElementsInAnyOrder(t *testing.T) {
	const elements, changes = 3_000, 4_000
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 1))
		first, err := newListModel(elements)
		if err != nil {
			t.Fatal(err)
		}
		all := []listModel{*first}
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
			if n%100 == 0 {
				if problem := m.compareElements(); problem != "" {
					t.Fatalf("seed %d, change %d: %s", seed, n, problem)
				}
			}
		}
		for i := range all {
			if problem := all[i].compare(); problem != "" {
				t.Fatalf("seed %d, copy %d: %s", seed, i, problem)
			}
		}
	}
}

// stride sets elements one behind the other, or with some between, forwards or backwards.
func (m *listModel) stride(from, step, count, value int) {
	m.strings, m.longs = slices.Clone(m.strings), slices.Clone(m.longs)
	for n := range count {
		at := from + n*step
		if at >= 0 && at < len(m.strings) {
			m.strings[at] = strings.Repeat("z", value%9) + fmt.Sprint(n)
			m.view.SetStringsAt(at, m.strings[at])
		}
		if at >= 0 && at < len(m.longs) {
			m.longs[at] = int64(value*n - value)
			m.view.SetLongsAt(at, m.longs[at])
		}
	}
}

// FuzzViewElements changes lists of a view as the bytes say, four for each change, and
// copies of the view on the way, and compares with slices.
func FuzzViewElements(f *testing.F) {
	f.Add(uint16(1000), []byte("\x00\x03\xe7\xff\x00\x03\xe7\xff\x01\x00\x00\x00\x02\x01\x00\x00\x03\x00\x05\x00\x04\x00\x00\x00\x00\x00\x01\xfe"))
	f.Add(uint16(600), []byte("\x00\x02\x57\xff\x04\x00\x00\x00\x00\x00\x00\x02\x05\x00\x00\x00\x00\x00\x01\x02"))
	f.Add(uint16(3), []byte("\x01\x00\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x03\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, elements uint16, changes []byte) {
		const most, changesMost, copiesMost = 2_000, 60, 6
		first, err := newListModel(int(elements % most))
		if err != nil {
			t.Fatal(err)
		}
		all, m := []*listModel{first}, first
		for n := 0; len(changes) >= 4 && n < changesMost; n++ {
			at, by := int(changes[1])<<8|int(changes[2]), int(int8(changes[3]))
			switch changes[0] % 6 {
			case 0:
				m.stride(at%most, by, 300, n)
			case 1:
				m.appendBoth(fmt.Sprint(n))
			case 2:
				if len(m.strings) > 0 {
					m.remove(at % len(m.strings))
				}
			case 3:
				m.stride(at%most, 1, 1, n)
			case 4:
				if len(all) < copiesMost {
					next := *m
					m = &next
					all = append(all, m)
				}
			default:
				m = all[at%len(all)]
			}
			if problem := m.compareElements(); problem != "" {
				t.Fatalf("change %d: %s", n, problem)
			}
			changes = changes[4:]
		}
		for i, m := range all {
			if problem := m.compare(); problem != "" {
				t.Fatalf("copy %d: %s", i, problem)
			}
		}
	})
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
