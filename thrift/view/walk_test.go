package view

import "testing"

// TestWalk_IsBounded goes through the same struct again and again: as each level of a
// message does with what is in it.
func TestWalk_IsBounded(t *testing.T) {
	const size = 1 << 16
	b := make([]byte, size)
	copy(b, []byte{11, 0, 1, 0, 0, 0xff, 0xf8}) // a string, and the end mark behind it
	w, rounds := walkOf(size), 0
	for !w.failed && rounds < size {
		slots, end := w.start(&plan{shape: &Shape{}}, b)
		if end != size {
			t.Fatalf("round %d: the struct ends at %d of %d", rounds, end, size)
		}
		w.finish(slots)
		rounds++
	}
	if want := workLeast/size + workTimes + 2; rounds != want {
		t.Errorf("%d rounds until it failed, want %d", rounds, want)
	}
	w = walkOf(size)
	for range w.work/size + 1 {
		if value, _ := w.cut(b, 12); len(value) != size || w.failed {
			t.Fatalf("%d bytes were cut", len(value))
		}
	}
	if w.start(&plan{shape: &Shape{}}, b); !w.failed {
		t.Error("what was cut is not counted")
	}
}
