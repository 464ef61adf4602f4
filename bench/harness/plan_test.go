package harness

import (
	"reflect"
	"slices"
	"testing"
	"time"
)

// Over as many rounds as there are contestants everybody has every place once,
// and with three or more nobody always follows the same neighbour.
func TestOrder_IsFair(t *testing.T) {
	for n := 1; n <= 7; n++ {
		places := make([]map[int]bool, n)
		behind := map[[2]int]int{}
		for i := range places {
			places[i] = map[int]bool{}
		}
		for round := range 2 * n {
			turns := order(1, round, n)
			sorted := slices.Sorted(slices.Values(turns))
			for i, who := range sorted {
				if i != who {
					t.Fatalf("%d contestants, round %d: order %v", n, round, turns)
				}
			}
			for place, who := range turns {
				places[who][place] = true
				if place > 0 {
					behind[[2]int{turns[place-1], who}]++
				}
			}
		}
		for who, seen := range places {
			if len(seen) < (n+1)/2 {
				t.Errorf("%d contestants: number %d had the places %v only", n, who, seen)
			}
		}
		for pair, times := range behind {
			if n > 2 && behind[[2]int{pair[1], pair[0]}] == 0 {
				t.Errorf("%d contestants: %d follows %d %d times and never runs before it", n, pair[1], pair[0], times)
			}
		}
	}
}

func TestOrder_TwoAlternate(t *testing.T) {
	for round := range 6 {
		now, next := order(7, round, 2), order(7, round+1, 2)
		if now[0] == next[0] {
			t.Errorf("rounds %d and %d begin with the same contestant: %v, %v", round, round+1, now, next)
		}
	}
}

func TestOrder_DependsOnTheSeed(t *testing.T) {
	first := order(1, 0, 7)
	if !slices.Equal(first, order(1, 0, 7)) {
		t.Error("one seed gives two orders")
	}
	for seed := uint64(2); seed < 10; seed++ {
		if !slices.Equal(first, order(seed, 0, 7)) {
			return
		}
	}
	t.Error("every seed gives the same order")
}

func TestAvailable_LeavesOutWhoIsMissing(t *testing.T) {
	pairs := append(Against("ours", "a", "b"), Against("new", "b", "c")...)
	left, contestants := available(pairs, map[string]string{"new": "not built", "a": "crashed"})
	if want := Against("ours", "b"); !reflect.DeepEqual(left, want) {
		t.Errorf("pairs %v, want %v", left, want)
	}
	if want := []string{"ours", "b", "c"}; !slices.Equal(contestants, want) {
		t.Errorf("contestants %v, want %v: who has no opponent still runs", contestants, want)
	}
}

func TestSettings_Validate(t *testing.T) {
	for _, quick := range []bool{false, true} {
		if err := DefaultSettings(quick).Validate(); err != nil {
			t.Errorf("defaults: %v", err)
		}
	}
	for name, change := range map[string]func(*Settings){
		"no rounds":    func(s *Settings) { s.Rounds = 0 },
		"many rounds":  func(s *Settings) { s.Rounds = roundsMax + 1 },
		"no time":      func(s *Settings) { s.Duration = 0 },
		"long":         func(s *Settings) { s.Duration = time.Hour },
		"before start": func(s *Settings) { s.WarmUp = -1 },
		"no load":      func(s *Settings) { s.LoadShare = 0 },
		"overload":     func(s *Settings) { s.LoadShare = 1.1 },
	} {
		settings := DefaultSettings(false)
		change(&settings)
		if err := settings.Validate(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestSuite_NamesPlacements(t *testing.T) {
	pinned := Suite{Deciding: Pinned}
	free := Suite{Deciding: Free}
	for _, c := range []struct{ got, want string }{
		{pinned.Suffixed("a", Pinned), "a"},
		{pinned.Suffixed("a", Free), "a@free"},
		{free.Suffixed("a", Free), "a"},
		{free.Suffixed("a", Pinned), "a@pinned"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
	if got := pinned.placements(true); !slices.Equal(got, []Placement{Pinned}) {
		t.Errorf("a quick run has the placements %v, want the deciding one", got)
	}
	if got := free.placements(false); !slices.Equal(got, []Placement{Free, Pinned}) {
		t.Errorf("a full run has the placements %v, want both", got)
	}
}

func TestProgram_BinariesDoNotCollide(t *testing.T) {
	for _, c := range []struct {
		program Program
		want    string
	}{
		{Program{Module: "bench", Package: "fulmar"}, "fulmar"},
		{Program{Module: "bench/peers", Package: "kitex"}, "peers-kitex"},
		{Program{Module: "bench", Package: "net/client.c"}, "net-client"},
	} {
		if got := c.program.binary(); got != c.want {
			t.Errorf("%v is built as %q, want %q", c.program, got, c.want)
		}
	}
}

func TestSuite_SettingsOfQuickRuns(t *testing.T) {
	for _, c := range []struct {
		window, quick time.Duration
	}{{0, 2 * time.Second}, {time.Second, time.Second}} {
		suite := Suite{QuickWindow: c.window}
		quick, full := suite.Settings(true), suite.Settings(false)
		if quick.Duration != c.quick || full.Duration != 2*time.Second || !quick.Quick || full.Quick {
			t.Errorf("window %v: quick %+v, full %+v; want windows of %v and 2s", c.window, quick, full, c.quick)
		}
	}
}
