package registries

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
)

// some returns instances by their numbers.
func some(from, to int) []cluster.Instance {
	var list []cluster.Instance
	for i := from; i < to; i++ {
		list = append(list, cluster.Instance{Address: fmt.Sprintf("10.0.0.%03d:1", i)})
	}
	return list
}

func TestRoster_Lists(t *testing.T) {
	type step struct {
		at   time.Duration
		says []cluster.Instance
		want int // length of the list, -1 for none
	}
	const hold, interval = time.Minute, time.Second
	cases := map[string][]step{
		"the first list is what the registry says, even if that is nothing": {{0, nil, 0}},
		"one of two that leaves is gone":                                    {{0, some(0, 2), 2}, {interval, some(0, 1), 1}},
		"the last one that leaves is held":                                  {{0, some(0, 1), 1}, {interval, nil, -1}, {interval + hold, nil, 0}},
		"a quarter may leave":                                               {{0, some(0, 20), 20}, {interval, some(0, 15), 15}},
		"more than a quarter is held":                                       {{0, some(0, 20), 20}, {interval, some(0, 14), -1}, {interval + hold, some(0, 14), 14}},
		"who left one by one is back when many have": {
			{0, some(0, 20), 20}, {interval, some(0, 17), 17}, {2 * interval, some(0, 14), 20}, {3 * interval, nil, -1},
		},
		"who is held stays until it is back": {
			{0, some(0, 20), 20}, {interval, nil, -1}, {2 * interval, some(0, 19), -1}, {3 * interval, some(0, 20), -1}, {4 * interval, some(0, 19), 19},
		},
		"who vanished with all others is held though some are back when a list is due": {
			{0, some(0, 3), 3}, {interval / 4, nil, -1}, {interval / 2, some(0, 2), -1}, {interval, some(0, 2), -1}, {interval + hold, some(0, 2), 2},
		},
		"others that come take nobody's place": {{0, some(0, 10), 10}, {interval, some(10, 20), 20}, {interval + hold, some(10, 20), 10}},
		"lists are apart":                      {{0, some(0, 2), 2}, {interval / 2, some(0, 3), -1}, {interval, some(0, 3), 3}},
		"the same list is not made twice":      {{0, some(0, 2), 2}, {interval, append(some(0, 2), some(0, 2)...), -1}},
	}
	for name, steps := range cases {
		t.Run(name, func(t *testing.T) {
			r := &Roster{Hold: hold, Interval: interval, Max: 100}
			begin := time.Now()
			for _, s := range steps {
				list, ok, _ := r.Update(begin.Add(s.at), s.says)
				if ok != (s.want >= 0) || ok && len(list) != s.want {
					t.Fatalf("after %v: %d instances, %v, want %d", s.at, len(list), ok, s.want)
				}
			}
		})
	}
}

// TestRoster_ChangesAreUpdates: who tells only what is different gets the same lists.
func TestRoster_ChangesAreUpdates(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 2))
		bound := 100
		if seed%2 > 0 {
			bound = 6 // not all have room
		}
		changes := &Roster{Hold: 10 * time.Second, Interval: time.Second, Max: bound}
		updates := &Roster{Hold: 10 * time.Second, Interval: time.Second, Max: bound}
		now, there := time.Now(), map[int]bool{}
		made := 0
		for range 300 {
			now = now.Add(time.Duration(random.IntN(1500)) * time.Millisecond)
			var came []cluster.Instance
			var left []string
			keep := random.IntN(10) > 0 // else most leave together
			for number := range 12 {
				one := some(number, number+1)[0]
				switch stays := keep || random.IntN(4) == 0; {
				case !there[number] && random.IntN(3) == 0:
					there[number] = true
					came = append(came, one)
				case there[number] && (!stays || random.IntN(20) == 0):
					delete(there, number)
					left = append(left, one.Address)
				}
			}
			var all []cluster.Instance
			for number := range there {
				all = append(all, some(number, number+1)...)
			}
			changes.Change(now, came, left)
			got, gotOK, gotAgain := changes.List(now)
			want, ok, again := updates.Update(now, all)
			if ok != gotOK || again != gotAgain || !slices.EqualFunc(got, want, sameInstance) {
				t.Fatalf("seed %d: %v, %v, %v, want %v, %v, %v", seed, got, gotOK, gotAgain, want, ok, again)
			}
			if ok {
				made++
			}
		}
		if made < 20 {
			t.Fatalf("%d lists", made)
		}
	}
}

// TestRoster_AsksToBeCalledAgain: nothing else would tell it that a time is over.
func TestRoster_AsksToBeCalledAgain(t *testing.T) {
	r := &Roster{Hold: time.Minute, Interval: time.Second, Max: 100}
	begin := time.Now()
	if _, _, again := r.Update(begin, some(0, 9)); again != 0 {
		t.Error(again)
	}
	if _, ok, again := r.Update(begin.Add(time.Millisecond), some(0, 8)); ok || again != 999*time.Millisecond {
		t.Error(ok, again)
	}
	if _, ok, again := r.Update(begin.Add(time.Second), nil); !ok && again != time.Minute-time.Second+time.Millisecond {
		t.Error(ok, again)
	}
}

func TestRoster_ChangedInstance(t *testing.T) {
	r := &Roster{Max: 100}
	begin := time.Now()
	one := cluster.Instance{Address: "10.0.0.1:1", Tags: map[string]string{"a": "b"}}
	r.Update(begin, []cluster.Instance{one})
	for _, change := range []func(*cluster.Instance){
		func(i *cluster.Instance) { i.Weight = 3 }, func(i *cluster.Instance) { i.Zone = "x" },
		func(i *cluster.Instance) { i.Tags = map[string]string{"a": "c"} },
	} {
		change(&one)
		if _, ok, _ := r.Update(begin, []cluster.Instance{one}); !ok {
			t.Errorf("no list for %+v", one)
		}
	}
}

// TestRoster_ForgetsStrangers: instances that come and go by the thousand are not all
// kept in mind.
func TestRoster_ForgetsStrangers(t *testing.T) {
	r := &Roster{Hold: time.Minute, Max: 10}
	begin := time.Now()
	for i := range 100 {
		r.Update(begin.Add(time.Duration(i)), some(i*5, i*5+5))
	}
	if kept := r.departures.Len(); kept > 10 || len(r.gone) != kept {
		t.Errorf("%d are kept in mind, %d by address", kept, len(r.gone))
	}
}

// TestRoster_WhoVanishedLastIsKeptInMind: strangers that have gone before do not keep those
// from being held who vanish when the registry is emptied.
func TestRoster_WhoVanishedLastIsKeptInMind(t *testing.T) {
	r := &Roster{Hold: time.Minute, Max: 10}
	begin := time.Now()
	servers, strangers := some(0, 3), some(100, 110)
	r.Update(begin, servers)
	r.Update(begin.Add(time.Second), append(strangers, servers...))
	r.Update(begin.Add(2*time.Second), servers)
	r.Update(begin.Add(3*time.Second), nil)
	if want := slices.Concat(servers, strangers[3:]); !slices.EqualFunc(r.last, want, sameInstance) {
		t.Errorf("%v, want %v", r.last, want)
	}
}

// TestRoster_HeldTakeNobodysPlace: who takes no more than Max instances has all that there
// are, and of those that vanished the last.
func TestRoster_HeldTakeNobodysPlace(t *testing.T) {
	r := &Roster{Hold: time.Minute, Max: 10}
	begin := time.Now()
	r.Update(begin, some(0, 8))
	r.Update(begin.Add(time.Second), some(0, 4))
	for _, s := range []struct {
		there, want []cluster.Instance
		again       time.Duration
	}{
		{some(20, 25), slices.Concat(some(0, 4), some(7, 8), some(20, 25)), 59 * time.Second},
		{some(20, 27), slices.Concat(some(1, 4), some(20, 27)), time.Minute},
		{some(20, 30), some(20, 30), 0},
		{some(20, 31), some(20, 31), 0},
	} {
		list, ok, again := r.Update(begin.Add(2*time.Second), s.there)
		if !ok || again != s.again || !slices.EqualFunc(list, s.want, sameInstance) {
			t.Errorf("%v, %v, again after %v, want %v", list, ok, again, s.want)
		}
	}
}
