package eventloop

import (
	"slices"
	"testing"
	"time"
)

// TestHandshakes_TurnsAlternate: of those that wait the newest and the oldest begin in turn,
// so that a client is not kept out by a crowd in front of it, nor by one that comes later.
func TestHandshakes_TurnsAlternate(t *testing.T) {
	const most = 2
	h := handshakes{timer: new(time.Timer)} // nobody is hurried: they have no connections
	var granted []int
	wait := func(number int) *startingTLS {
		s := &startingTLS{grant: func() { granted = append(granted, number) }}
		if began := h.enter(s, most); began != (number < most) {
			t.Fatalf("connection %d began: %v", number, began)
		}
		return s
	}
	var all []*startingTLS
	for number := range 7 {
		all = append(all, wait(number))
	}
	h.leave(all[0])
	h.leave(all[1])
	all = append(all, wait(7))
	for len(granted) < 6 {
		before := len(granted)
		if h.leave(all[granted[before-2]]); len(granted) != before+1 {
			t.Fatalf("%v may begin, and another one has ended", granted)
		}
	}
	if want := []int{6, 2, 7, 3, 5, 4}; !slices.Equal(granted, want) {
		t.Errorf("began %v, want %v", granted, want)
	}
	for _, number := range granted[4:] {
		h.leave(all[number])
	}
	if len(h.running) != 0 || len(h.waiting) != 0 || len(granted) != 6 {
		t.Errorf("%d run and %d wait at the end, granted %v", len(h.running), len(h.waiting), granted)
	}
}
