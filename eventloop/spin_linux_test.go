package eventloop

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// TestSpinner_SpinsWhileEventsComeFast is a white-box test: when to spin is a
// matter of times, which only a bubble can give.
func TestSpinner_SpinsWhileEventsComeFast(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		s := spinner{most: 50 * time.Microsecond, gap: 100 * time.Microsecond}
		waits := func(n int, took time.Duration) {
			for range n {
				s.waited(took, 1)
			}
		}
		if waits(50, 30*time.Microsecond); !s.worth(time.Now()) {
			t.Error("events every 30 us are not worth it")
		}
		for range 50 {
			s.waited(30*time.Microsecond, 10)
		}
		if s.worth(time.Now()) {
			t.Error("ten events at a time are worth it")
		}
		waits(50, 30*time.Microsecond)
		if waits(1, time.Second); !s.worth(time.Now()) {
			t.Error("one long pause ends it")
		}
		if waits(50, time.Millisecond); s.worth(time.Now()) {
			t.Error("events every millisecond are worth it")
		}
		waits(50, 30*time.Microsecond)
		s.spent += spinShare
		if s.worth(time.Now()) {
			t.Error("it takes more than its share of a processor")
		}
		if time.Sleep(spinWindow); !s.worth(time.Now()) {
			t.Error("it has no share in the next window")
		}
		if off := (spinner{}); off.worth(time.Now()) {
			t.Error("it spins although it is off")
		}
	})
}

func TestSpinner_NotOnOneProcessor(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if s := newSpinner(time.Millisecond); s.most != 0 {
		t.Errorf("it would spin for %v", s.most)
	}
}

func TestBelowOne_ReadsControlGroups(t *testing.T) {
	for text, want := range map[string]bool{
		"50000 100000\n":  true,
		"99999 100000":    true,
		"100000 100000\n": false,
		"200000 100000\n": false,
		"max 100000\n":    false,
		"":                false,
		"50000":           false,
		"-1 100000":       false,
		"1e4 100000":      false,
		"1 2 3":           false,
	} {
		if got := belowOne(text); got != want {
			t.Errorf("belowOne(%q) = %v", text, got)
		}
	}
}
