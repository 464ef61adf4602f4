package transport

import "testing"

// interleaved is a lock of which the holder is told when it lets others run.
type interleaved struct {
	yields int
	others func()
}

func (l *interleaved) Lock() {}

func (l *interleaved) Unlock() {
	l.yields++
	l.others()
}

func TestGathering_WhoseTurnItIs(t *testing.T) {
	part := crowdedCalls * gatheringEighths / 8
	for name, test := range map[string]struct {
		crowd         int
		before, after gathering
		others        func(g *gathering)
		ready         bool
		yields        int
	}{
		"few calls do not wait": {
			crowd: crowdedCalls - 1, before: gathering{messages: 1}, after: gathering{messages: 1}, ready: true,
		},
		"a part is written at once": {
			crowd: crowdedCalls, before: gathering{messages: part, part: part}, after: gathering{messages: part, part: part}, ready: true,
		},
		"the second leaves it to the first": {
			crowd: crowdedCalls, before: gathering{messages: 2, part: part}, after: gathering{messages: 2, part: part},
		},
		"the first writes when all have answered": {
			crowd: crowdedCalls, before: gathering{messages: 1, arrived: 3}, after: gathering{messages: 3, arrived: 3},
			others: func(g *gathering) { g.messages = 3 }, ready: true, yields: 1,
		},
		"the first waits once more for who is missing": {
			crowd: crowdedCalls, before: gathering{messages: 1, arrived: 3}, after: gathering{messages: 2, arrived: 3},
			others: func(g *gathering) { g.messages = 2 }, ready: true, yields: gatheringYields,
		},
		"the first does not wait for anybody if nothing has arrived": {
			crowd: crowdedCalls, before: gathering{messages: 1}, after: gathering{messages: 1}, ready: true, yields: 1,
		},
		"the first has nothing to do when another has written": {
			crowd: crowdedCalls, before: gathering{messages: 1, arrived: 7}, after: gathering{messages: 1, turns: 1, arrived: 7},
			others: func(g *gathering) {
				g.takenLocked()
				g.messages = 1 // by somebody who gathers now
			},
			yields: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := test.before
			lock := &interleaved{others: func() {
				if !g.waits() {
					t.Error("it lets others run without saying that it waits")
				}
				if test.others != nil {
					test.others(&g)
				}
			}}
			if ready := g.readyLocked(test.crowd, lock); ready != test.ready {
				t.Errorf("ready is %v, want %v", ready, test.ready)
			}
			if lock.yields != test.yields {
				t.Errorf("others ran %d times, want %d", lock.yields, test.yields)
			}
			if others := g.othersLocked(); others != (test.after.part > 0 && !test.ready) {
				t.Errorf("others write it: %v", others)
			}
			if g != test.after {
				t.Errorf("left %+v, want %+v", g, test.after)
			}
		})
	}
}
