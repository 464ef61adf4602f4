package cluster_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// TestMethods_SharesFollowWeights: also where the weights have no common divisor, and
// where one is many times another.
func TestMethods_SharesFollowWeights(t *testing.T) {
	const calls = 20_000
	for _, weights := range [][]int{{10, 10, 10, 10}, {10, 20, 30}, {7, 11, 13, 1}, {1, 1000}, {0, 5}} {
		for _, method := range methods() {
			b := balancerOf(t, cluster.Balancing{Method: method}, seeded(1), instances(len(weights), weights...))
			count := b.count(start(), calls)
			sum := 0
			for _, weight := range weights {
				sum += weightOf(weight)
			}
			for i, got := range count {
				want := float64(calls) * float64(weightOf(weights[i])) / float64(sum)
				if math.Abs(float64(got)-want) > want*0.05+50 {
					t.Errorf("%s, weights %v: %v, want %.0f at %d", method, weights, count, want, i)
				}
			}
		}
	}
}

func weightOf(weight int) int {
	if weight == 0 {
		return limits.InstanceWeight
	}
	return weight
}

// TestMethods_InFlightFollowsWeights: what does not end is shared out by weight.
func TestMethods_InFlightFollowsWeights(t *testing.T) {
	weights := []int{10, 20, 30, 40}
	for _, method := range []cluster.Method{cluster.LeastLoaded, cluster.LeastRequests} {
		b := balancerOf(t, cluster.Balancing{Method: method}, seeded(1), instances(len(weights), weights...))
		for range 1000 {
			b.pick(start())
		}
		for i, m := range b.members {
			if got := m.InFlight(); math.Abs(float64(got-10*weights[i])) > 10 {
				t.Errorf("%s: %d calls in flight at weight %d, want %d", method, got, weights[i], 10*weights[i])
			}
		}
	}
}

// TestMethods_NegativeWeight: no calls, as long as anybody else is there.
func TestMethods_NegativeWeight(t *testing.T) {
	for _, method := range methods() {
		b := balancerOf(t, cluster.Balancing{Method: method}, seeded(1), instances(3, -1, 10, 20))
		if count := b.count(start(), 1000); count[0] != 0 || count[1] == 0 || count[2] == 0 {
			t.Errorf("%s: %v", method, count)
		}
		b = balancerOf(t, cluster.Balancing{Method: method}, seeded(1), instances(2, -1, -1))
		for key := range uint64(100) {
			b.pickKey(start(), key)
		}
	}
}

// TestRoundRobin_TakesTurns: alike instances strictly, weighted ones without long runs.
func TestRoundRobin_TakesTurns(t *testing.T) {
	b := balancerOf(t, cluster.Balancing{Method: cluster.RoundRobin}, nil, instances(5))
	first := b.call(start(), cluster.Reached)
	for i := 1; i < 100; i++ {
		if got := b.call(start(), cluster.Reached); got != (first+i)%5 {
			t.Fatalf("call %d went to %d", i, got)
		}
	}
	b = balancerOf(t, cluster.Balancing{Method: cluster.RoundRobin}, nil, instances(3, 50, 10, 10))
	count, run, longest, last := make([]int, 3), 0, 0, -1
	for range 700 {
		place := b.call(start(), cluster.Reached)
		if run++; place != last {
			run, last = 1, place
		}
		longest = max(longest, run)
		count[place]++
		for i, want := range []float64{5. / 7, 1. / 7, 1. / 7} {
			if all := float64(count[0] + count[1] + count[2]); math.Abs(float64(count[i])-all*want) > 3 {
				t.Fatalf("after %v calls: %v", all, count)
			}
		}
	}
	if longest > 4 {
		t.Errorf("%d calls in a row", longest)
	}
}

// drive makes n calls that take as long as the member's latency says, one after the other.
func (b *bench) drive(now time.Time, n int, latency func(place int) time.Duration) (count []int, end time.Time) {
	b.t.Helper()
	count = make([]int, len(b.members))
	for range n {
		choice, place := b.pick(now)
		now = now.Add(latency(place))
		b.Done(choice, cluster.Reached, latency(place), now)
		count[place]++
	}
	return count, now
}

// TestLeastLoaded_AvoidsTheSlow one, does not forget it, and finds out when it is fast
// again.
func TestLeastLoaded_AvoidsTheSlow(t *testing.T) {
	b := newBench(t, 3, seeded(1))
	slow := 10 * time.Millisecond
	latency := func(place int) time.Duration {
		if place == 0 {
			return slow
		}
		return time.Millisecond
	}
	count, now := b.drive(start(), 3000, latency)
	if count[0] > 100 || count[1] < 1000 || count[2] < 1000 {
		t.Errorf("with one that takes ten times as long: %v", count)
	}
	slow = time.Millisecond
	b.drive(now.Add(6*limits.LatencyHalfLife), 300, latency)
	if count, _ = b.drive(now.Add(6*limits.LatencyHalfLife), 3000, latency); count[0] < 800 {
		t.Errorf("fast again: %v", count)
	}
}

// TestLeastLoaded_NoiseIsNoDifference: latencies that differ by a third leave nobody
// without calls.
func TestLeastLoaded_NoiseIsNoDifference(t *testing.T) {
	b := newBench(t, 2, seeded(1))
	count, _ := b.drive(start(), 2000, func(place int) time.Duration { return time.Duration(3+place) * time.Millisecond })
	if slices.Min(count) < 800 {
		t.Errorf("3 and 4 ms: %v", count)
	}
}

// TestLeastLoaded_NewInstances get calls, and not all of them.
func TestLeastLoaded_NewInstances(t *testing.T) {
	b := newBench(t, 4, seeded(1))
	same := func(int) time.Duration { return time.Millisecond }
	_, now := b.drive(start(), 400, same)
	b.Update(instances(5), now)
	b.number()
	if count, _ := b.drive(now, 1000, same); count[4] < 100 || count[4] > 300 {
		t.Errorf("the last one is new: %v", count)
	}
}

// TestLeastLoaded_FailingFastIsNotFast: an instance that refuses at once what others
// work on must not get everything.
func TestLeastLoaded_FailingFastIsNotFast(t *testing.T) {
	b := balancerOf(t, cluster.Balancing{}, seeded(1), instances(3))
	b.SetConfig(cluster.Balancing{}, cluster.Ejection{FailurePercent: -1}, start())
	now, count := start(), make([]int, 3)
	for range 3000 {
		choice, place := b.pick(now)
		latency, outcome := 10*time.Millisecond, cluster.Reached
		if place == 0 {
			latency, outcome = time.Microsecond, cluster.Failed
		}
		now = now.Add(latency)
		b.Done(choice, outcome, latency, now)
		count[place]++
	}
	if count[0] > 1300 {
		t.Errorf("more than its share went to who fails at once: %v", count)
	}
}

// TestConsistentHash_FewKeysMove when an instance comes, goes, is ejected or changes its
// weight, and none at all among those that stay.
func TestConsistentHash_FewKeysMove(t *testing.T) {
	const n, keys = 20, 10_000
	b := balancerOf(t, cluster.Balancing{Method: cluster.ConsistentHash}, nil, instances(n))
	owners := func() map[string]int {
		owners := map[string]int{}
		for i := range keys {
			key := fmt.Sprintf("key %d", i)
			choice, _ := b.pickKey(start(), cluster.Hash(key))
			b.done(choice, cluster.Reached, start())
			owners[key] = slices.IndexFunc(b.members, func(m *cluster.Member) bool { return m == choice.Member })
			var number int
			if _, err := fmt.Sscanf(choice.Member.Address(), "server%d:1", &number); err != nil {
				t.Fatal(err)
			}
			owners[key] = number
		}
		return owners
	}
	before := owners()
	count := make([]int, n)
	for _, owner := range before {
		count[owner]++
	}
	if slices.Min(count) < keys/n/2 || slices.Max(count) > keys/n*2 {
		t.Errorf("shares of the keys: %v", count)
	}
	if again := owners(); !equalOwners(before, again, -1) {
		t.Error("a key moved although nothing changed")
	}
	b.eject(start(), 3)
	if ejected := owners(); !equalOwners(before, ejected, 3) {
		t.Error("a key moved although its instance is not ejected")
	}
	b.Update(slices.Delete(instances(n), 7, 8), start())
	b.Update(instances(n), start()) // 7 is new, and not ejected; 3 still is
	b.Update(instances(n+1), start())
	moved := 0
	for key, owner := range owners() {
		if owner != before[key] && before[key] != 3 {
			if owner != n {
				t.Errorf("%s moved from %d to %d", key, before[key], owner)
			}
			moved++
		}
	}
	if moved < keys/n/2 || moved > keys/n*2 {
		t.Errorf("%d of %d keys moved to the new one of %d", moved, keys, n+1)
	}
}

// equalOwners compares owners but those of one instance.
func equalOwners(a, b map[string]int, but int) bool {
	for key, owner := range a {
		if owner != but && b[key] != owner {
			return false
		}
	}
	return true
}

// TestConsistentHash_BoundsLoad: a key that everybody asks for does not fill one instance.
func TestConsistentHash_BoundsLoad(t *testing.T) {
	const n, calls = 10, 1000
	b := balancerOf(t, cluster.Balancing{Method: cluster.ConsistentHash}, nil, instances(n))
	first, _ := b.pickKey(start(), cluster.Hash("the key"))
	if first.Reason != cluster.ReasonHash {
		t.Errorf("the first call: %v", first.Reason)
	}
	moved := 0
	for range calls - 1 {
		if choice, _ := b.pickKey(start(), cluster.Hash("the key")); choice.Reason == cluster.ReasonMovedOn {
			moved++
		}
	}
	if moved < calls/2 {
		t.Errorf("%d of %d calls moved on", moved, calls)
	}
	for _, m := range b.members {
		if in := m.InFlight(); in > calls/n*limits.HashLoadPercent/100+1 {
			t.Errorf("%d calls in flight at %s", in, m.Address())
		}
	}
}

// TestConsistentHash_FewCallsStayTogether: the bound is for load, and two calls of one key at
// a time are none, although one of them is more than its instance's share.
func TestConsistentHash_FewCallsStayTogether(t *testing.T) {
	b := balancerOf(t, cluster.Balancing{Method: cluster.ConsistentHash}, seeded(1), instances(10))
	for i := range 20 {
		key := cluster.Hash(fmt.Sprint(i))
		var held []cluster.Choice
		for range limits.HashCallsMin {
			choice, _ := b.pickKey(start(), key)
			if held = append(held, choice); choice.Member != held[0].Member || choice.Reason != cluster.ReasonHash {
				t.Errorf("key %d: call %d is at %s (%v)", i, len(held), choice.Member.Address(), choice.Reason)
			}
		}
		choice, _ := b.pickKey(start(), key)
		if held = append(held, choice); choice.Member == held[0].Member {
			t.Errorf("key %d: %d calls are at one of ten", i, len(held))
		}
		for _, choice := range held {
			b.done(choice, cluster.Reached, start())
		}
	}
}

// TestConsistentHash_KeysStayInTheirZone: where calls are shared between zones, those of a
// key are not.
func TestConsistentHash_KeysStayInTheirZone(t *testing.T) {
	b := balancerOf(t, cluster.Balancing{Method: cluster.ConsistentHash, Zone: "a"}, seeded(1), zoned(1, 3))
	zones := map[bool]int{}
	for i := range 40 {
		key, first := cluster.Hash(fmt.Sprint(i)), -1
		for range 20 {
			choice, place := b.pickKey(start(), key)
			b.done(choice, cluster.Reached, start())
			if first < 0 {
				first = place
			}
			if place != first {
				t.Fatalf("key %d is at %d and at %d", i, first, place)
			}
		}
		zones[first == 0]++
	}
	if zones[true] < 10 || zones[false] < 10 {
		t.Errorf("%d of 40 keys are in the zone, want about half", zones[true])
	}
}

// TestConsistentHash_WithoutAKey goes anywhere, and PickOther behind the first.
func TestConsistentHash_WithoutAKey(t *testing.T) {
	b := balancerOf(t, cluster.Balancing{Method: cluster.ConsistentHash, HashKey: "user"}, seeded(1), instances(4))
	if count := b.count(start(), 400); slices.Min(count) < 50 {
		t.Errorf("calls without a key: %v", count)
	}
	if b.HashKey() != "user" {
		t.Errorf("hash key %q", b.HashKey())
	}
	key := cluster.Hash("a")
	var tried []*cluster.Member
	for range 4 {
		choice, ok := b.PickOther(start(), key, tried)
		if !ok || slices.Contains(tried, choice.Member) {
			t.Fatalf("after %d tries: %v, %v", len(tried), choice, ok)
		}
		tried = append(tried, choice.Member)
	}
	if _, ok := b.PickOther(start(), key, tried); ok {
		t.Error("a fifth of four instances")
	}
}

// zoned returns n instances in zone a and m in zone b.
func zoned(n, m int) []cluster.Instance {
	list := instances(n + m)
	for i := range list {
		list[i].Zone = "a"
		if i >= n {
			list[i].Zone = "b"
		}
	}
	return list
}

// TestZones_SpillOver: the zone of the caller keeps its calls as long as it can take them.
func TestZones_SpillOver(t *testing.T) {
	const calls = 20_000
	for _, c := range []struct {
		near, far, ejected int
		want               float64
	}{
		{near: 3, far: 3, want: 1},
		{near: 5, far: 1, want: 1},
		{near: 1, far: 3, want: 0.5},
		{near: 3, far: 3, ejected: 2, want: 0.5},
		{near: 3, far: 3, ejected: 3, want: 0},
		{near: 0, far: 3, want: 0},
		{near: 3, far: 0, want: 1},
	} {
		for _, method := range methods() {
			b := balancerOf(t, cluster.Balancing{}, seeded(1), zoned(c.near, c.far))
			for i := range c.ejected {
				b.eject(start(), i)
			}
			b.SetConfig(cluster.Balancing{Method: method, Zone: "a"}, cluster.Ejection{}, start())
			near := 0
			for i := range calls {
				key := uint64(0)
				if method == cluster.ConsistentHash {
					key = cluster.Hash(fmt.Sprint(i))
				}
				choice, place := b.pickKey(start(), key)
				if b.done(choice, cluster.Reached, start()); place < c.near {
					near++
				}
			}
			if got := float64(near) / calls; math.Abs(got-c.want) > 0.02 {
				t.Errorf("%s, %+v: %.2f of the calls stayed", method, c, got)
			}
		}
	}
}

// TestSubset_IsStable: each client uses as many as it should, the same as before except
// for what came and went, other clients others, and one that is ejected is replaced.
func TestSubset_IsStable(t *testing.T) {
	const n, subset = 40, 5
	used := func(b *bench) map[string]bool {
		used := map[string]bool{}
		for range 1000 {
			choice, _ := b.pick(start())
			b.done(choice, cluster.Reached, start())
			used[choice.Member.Address()] = true
		}
		if len(used) != subset {
			t.Errorf("%d are used: %v", len(used), used)
		}
		return used
	}
	all := map[string]int{}
	for seed := range uint64(100) {
		b := &bench{t: t, Balancer: cluster.NewBalancer(cluster.Balancing{Subset: subset}, cluster.Ejection{}, seed, seeded(seed))}
		b.Update(instances(n), start())
		b.number()
		before := used(b)
		for address := range before {
			all[address]++
		}
		if seed > 10 {
			continue
		}
		b.Update(slices.Delete(instances(n+1), 17, 18), start())
		changed := 0
		after := used(b)
		for address := range before {
			if !after[address] {
				changed++
			}
		}
		if changed > 2 {
			t.Errorf("seed %d: one came and one went, and %d of the subset changed", seed, changed)
		}
		for _, m := range b.Members() {
			if after[m.Address()] {
				b.Done(cluster.Choice{Member: m}, cluster.Refused, 0, start())
				if used(b)[m.Address()] {
					t.Error("it is ejected and used")
				}
				break
			}
		}
	}
	if len(all) != n {
		t.Errorf("100 clients use %d of %d", len(all), n)
	}
}

// TestSlowStart_Grows from a tenth to all of its share; what was there at the beginning,
// and what is known already, does not start anew.
func TestSlowStart_Grows(t *testing.T) {
	for _, method := range []cluster.Method{cluster.LeastLoaded, cluster.RoundRobin, cluster.Random} {
		const slow = 10 * time.Second
		b := balancerOf(t, cluster.Balancing{Method: method, SlowStart: slow}, seeded(1), instances(4))
		if count := b.count(start(), 4000); slices.Min(count) < 800 {
			t.Errorf("%s: in the beginning %v", method, count)
		}
		came := start().Add(time.Second)
		b.Update(instances(5), came)
		b.number()
		for _, c := range []struct {
			after time.Duration
			want  float64
		}{{0, 0.1}, {slow / 2, 0.5}, {slow, 1}, {2 * slow, 1}} {
			const calls = 20_000
			count := b.count(came.Add(c.after), calls)
			if want := calls * c.want / (4 + c.want); math.Abs(float64(count[4])-want) > 0.2*want {
				t.Errorf("%s: after %v it got %d of %d calls, want %.0f", method, c.after, count[4], calls, want)
			}
		}
	}
}
