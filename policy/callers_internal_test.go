package policy

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"testing"
	"time"
)

// The list of callers of which no call runs, by when their last ones ended, has no effect
// that one could see from outside but which of two is forgotten first, so it is looked at
// here.
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
		}
		if len(passes) > 0 && random.IntN(10) > 0 {
			i := random.IntN(len(passes))
			c.Done(passes[i])
			last[passes[i].caller] = call
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
			idle := 0
			for _, it := range s.known {
				if it.running == 0 {
					idle++
				}
			}
			if listed != idle || idle == len(s.known) || len(s.known) > callersAtShard {
				t.Fatalf("call %d: %d callers are in the list, %d of %d in the map are idle, %d may be", call, listed, idle, len(s.known), callersAtShard)
			}
		}
	}
}

// shardful is one shard of a Callers, which callers fill whose calls have ended.
type shardful struct {
	*Callers
	shard *callerShard
	next  int
}

func newShardful(limit Limit, now time.Time) *shardful {
	c := NewCallers(limit, now)
	s := &shardful{Callers: c, shard: &c.shards[0]}
	for len(s.shard.known) < callersAtShard {
		c.Done(s.come(now))
	}
	return s
}

// come has another caller make a call.
func (s *shardful) come(now time.Time) CallerPass {
	for {
		name := fmt.Sprint(s.next)
		if s.next++; maphash.String(s.seed, name)%callerShards == 0 {
			pass, _, _ := s.Allow(name, now)
			return pass
		}
	}
}

// Callers with calls that run stand in nobody's way, however many they are and whenever
// those began: a new caller has a place of its own as long as one other is idle.
func TestCallers_BusyOnesStandInNobodysWay(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, busy := range []int{0, 1, 4, 5, 300, callersAtShard - 1, callersAtShard} {
		s := newShardful(Limit{Running: 1}, start)
		var passes []CallerPass
		for range busy {
			passes = append(passes, s.come(start))
		}
		for i := range 2 * callersAtShard {
			pass := s.come(start.Add(time.Hour))
			if shares := pass.caller == &s.shard.others; shares != (busy == callersAtShard) {
				t.Fatalf("new caller %d beside %d that are busy shares a place: %v", i, busy, shares)
			}
			s.Done(pass)
		}
		for i, pass := range passes {
			if s.shard.known[pass.caller.hash] != pass.caller || pass.caller.running != 1 {
				t.Fatalf("busy caller %d of %d was forgotten", i, busy)
			}
			s.Done(pass)
		}
		if pass := s.come(start.Add(time.Hour)); pass.caller == &s.shard.others {
			t.Errorf("when all %d have ended a new caller shares a place", busy)
		}
	}
}

// Callers that must wait long for their burst are passed over: each is looked at once, and
// then again when all the others were.
func TestCallers_ThoseThatWaitAreLookedAtInTurn(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const waiting = 10 * idleLooked
	s := newShardful(Limit{PerSecond: 1, Burst: 3600}, start)
	it := s.shard.oldest
	for range waiting {
		it.even = int64(time.Hour) * ticksPerNanosecond
		it = it.newer
	}
	now, shared := start.Add(time.Minute), 0
	for range callersAtShard - waiting {
		if pass := s.come(now); pass.caller == &s.shard.others {
			shared++
		} else {
			s.Done(pass)
		}
	}
	if most := waiting / idleLooked; shared > most {
		t.Errorf("%d new callers share a place, want %d at most", shared, most)
	}
	kept := 0
	for _, it := range s.shard.known {
		if it.even == int64(time.Hour)*ticksPerNanosecond {
			kept++
		}
	}
	if kept != waiting {
		t.Errorf("%d of %d that must wait are known still", kept, waiting)
	}
}

// TestCallers_NewOnesBesideLongCalls is a server with 400 long calls, of as many callers, on
// which 40,000 others have made a short one, an hour later: 184 of 200 new callers with a
// call each were refused.
func TestCallers_NewOnesBesideLongCalls(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := NewCallers(Limit{Running: 1}, start)
	call := func(kind string, i int, at time.Time) CallerPass {
		pass, refusal, _ := c.Allow(fmt.Sprint(kind, i), at)
		if refusal != NotRefused {
			t.Fatalf("%s %d is refused", kind, i)
		}
		return pass
	}
	for i := range 400 {
		call("long", i, start)
	}
	for i := range 40_000 {
		c.Done(call("short", i, start.Add(time.Duration(i)*time.Millisecond)))
	}
	for i := range 200 {
		call("new", i, start.Add(time.Hour))
	}
}
