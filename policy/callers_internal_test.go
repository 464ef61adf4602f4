package policy

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"testing"
	"time"
)

// The list of callers by their last calls has no effect that one could see from outside
// but which of two is forgotten first, so it is looked at here.
func TestCallers_KeepTheirOrder(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	random := rand.New(rand.NewPCG(1, 72))
	c := NewCallers(Limit{PerSecond: 100, Running: 3}, start)
	var passes []CallerPass
	last := map[*caller]int{}
	for call := range 100_000 {
		pass, refusal, _ := c.Allow(fmt.Sprint(random.IntN(12_000)), start.Add(time.Duration(call)*time.Millisecond))
		if refusal == NotRefused {
			passes = append(passes, pass)
			last[pass.caller] = call
		}
		if len(passes) > 0 && random.IntN(10) > 0 {
			i := random.IntN(len(passes))
			c.Done(passes[i])
			passes[i] = passes[len(passes)-1]
			passes = passes[:len(passes)-1]
		}
		if call%10_000 != 9999 {
			continue
		}
		for i := range c.shards {
			s := &c.shards[i]
			listed := 0
			for it := s.oldest; it != nil && listed <= callersAtShard; it = it.newer {
				listed++
				if s.known[it.hash] != it || it.newer == nil && s.latest != it || it.newer != nil && (it.newer.older != it || it.refused == 0 && it.newer.refused == 0 && last[it] > last[it.newer]) {
					t.Fatalf("call %d: %q is not where it should be", call, it.name)
				}
			}
			if listed != len(s.known) || listed > callersAtShard {
				t.Fatalf("call %d: %d callers are in the list, %d in the map, %d may be", call, listed, len(s.known), callersAtShard)
			}
		}
	}
}

// A caller is forgotten for a new one although the three whose last calls are longer ago have
// calls that run; nobody looks at more than four.
func TestCallers_LookAtFourToForgetOne(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const looked = 4
	for busy := range looked + 1 {
		c := NewCallers(Limit{Running: 1}, start)
		shard := &c.shards[0]
		next := 0
		// come has another caller come to the shard, whose call ends at once.
		come := func() *caller {
			for {
				name := fmt.Sprint(next)
				if next++; maphash.String(c.seed, name)%callerShards != 0 {
					continue
				}
				pass, _, _ := c.Allow(name, start)
				c.Done(pass)
				return pass.caller
			}
		}
		for len(shard.known) < callersAtShard {
			come()
		}
		it := shard.oldest
		for range busy {
			it.running++
			it = it.newer
		}
		if shares := come() == &shard.others; shares != (busy == looked) {
			t.Errorf("behind %d that are busy a new caller shares a place: %v", busy, shares)
		}
	}
}
