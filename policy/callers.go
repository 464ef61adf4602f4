package policy

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// Callers is the state of a Limit for each of many callers. It knows 10,000 (Callers) of
// them apart. For one more it forgets one whose calls have all ended and whose burst is
// whole again, which is as if it had never been there. If there is none, the callers that
// have no place share the limit of one: so a flood of names takes no memory, and neither
// lifts the limits of callers that are known nor takes away from what they may. A caller that
// was quiet so long that it was forgotten shares like the others while a flood lasts.
//
// Only those of which no call runs are looked through for one to forget. While all were, the
// four oldest of each shard hid the others: 64 callers with a stream each had everybody new
// share a limit.
//
// Safe for concurrent use. A call takes one of sixteen locks for a moment, twice.
type Callers struct {
	base   time.Time
	seed   maphash.Seed
	config atomic.Pointer[callerConfig]
	shards [callerShards]callerShard
}

type callerConfig struct {
	// rate is nil and running 0 where there is no such limit.
	rate    *rateConfig
	running int
}

const (
	callerShards   = 16
	callersAtShard = limits.Callers / callerShards
	// idleLooked is how many callers without calls are looked at to find one to forget.
	idleLooked = 4
)

type callerShard struct {
	mu sync.Mutex
	// known are callers by the hash of their names. Names are not compared: of 10,000 two
	// have the same hash of 64 bits once in 10^11 times, and nobody can look for them
	// because the seed is random.
	known map[uint64]*caller
	// latest and oldest are the ends of the list of those of which no call runs, in the order
	// in which their last calls ended or were refused. One that is found with a burst that
	// is not whole yet goes to the latest, so that those behind it are looked at.
	latest, oldest *caller
	// others is for those without a place.
	others  caller
	refused uint64
	_       [64]byte // Locks of two shards in one cache line would slow each other down.
}

// caller is what is known of one: its calls that run, and the time that rate calls even.
type caller struct {
	hash         uint64
	name         string
	running      int
	even         int64
	refused      uint64
	newer, older *caller
}

// CallerPass lets a call of a caller go on.
type CallerPass struct {
	shard  *callerShard
	caller *caller
}

// NewCallers returns a Callers that knows nobody.
func NewCallers(limit Limit, now time.Time) *Callers {
	c := &Callers{base: now, seed: maphash.MakeSeed()}
	for i := range c.shards {
		c.shards[i].known = map[uint64]*caller{}
	}
	c.Configure(limit)
	return c
}

// Configure changes the limit of each caller from now on. What runs and has begun counts if
// there was a limit when it began: without one callers are not told apart.
func (c *Callers) Configure(limit Limit) {
	c.config.Store(&callerConfig{rate: limit.rate(), running: max(limit.Running, 0)})
}

// Allow reports whether a call of a caller may begin at now. If it may, which is
// NotRefused, Done must follow. If too many have begun, wait is how long until one may.
func (c *Callers) Allow(name string, now time.Time) (pass CallerPass, refusal Refusal, wait time.Duration) {
	config := c.config.Load()
	if config.rate == nil && config.running == 0 {
		return CallerPass{}, NotRefused, 0
	}
	hash, at := maphash.String(c.seed, name), int64(now.Sub(c.base))*ticksPerNanosecond
	shard := &c.shards[hash%callerShards]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	it := shard.take(hash, name, config, at)
	refusal, wait = it.allow(config, at)
	if refusal != NotRefused {
		it.refused++
		shard.refused++
		shard.rest(it)
		return CallerPass{}, refusal, wait
	}
	return CallerPass{shard, it}, NotRefused, 0
}

// Done ends a call that was allowed.
func (c *Callers) Done(pass CallerPass) {
	if pass.caller == nil {
		return
	}
	pass.shard.mu.Lock()
	defer pass.shard.mu.Unlock()
	pass.caller.running--
	pass.shard.rest(pass.caller)
}

func (it *caller) allow(config *callerConfig, at int64) (refusal Refusal, wait time.Duration) {
	if config.running > 0 && it.running >= config.running {
		return RefusedByRunning, 0
	}
	if rate := config.rate; rate != nil {
		if rate.setBack(it.even, at) {
			it.even = at + rate.ahead
		}
		next, over := rate.next(it.even, at)
		if over > 0 {
			return RefusedByRate, time.Duration(over+ticksPerNanosecond-1) / ticksPerNanosecond
		}
		it.even = next
	}
	it.running++
	return NotRefused, 0
}

// whole reports whether forgetting a caller of which no call runs changes nothing for it.
func (it *caller) whole(config *callerConfig, at int64) bool {
	return config.rate == nil || it.even <= at
}

// take returns what is known of a caller, makes a place for it, or returns what those
// without one share. It is not in the list, where rest puts it back.
func (s *callerShard) take(hash uint64, name string, config *callerConfig, at int64) *caller {
	it := s.known[hash]
	switch {
	case it != nil:
		if it.running == 0 {
			s.unlink(it)
		}
		return it
	case len(s.known) < callersAtShard:
		it = &caller{}
	default:
		if it = s.takeIdle(config, at); it == nil {
			return &s.others
		}
		delete(s.known, it.hash)
	}
	*it = caller{hash: hash, name: shownName(name)}
	s.known[hash] = it
	return it
}

// rest puts a caller into the list if no call of it runs.
func (s *callerShard) rest(it *caller) {
	if it.running == 0 && it != &s.others {
		s.link(it)
	}
}

// shownName is what is kept of a caller's name.
func shownName(name string) string {
	if name == "" {
		return "-"
	}
	return strings.Clone(name[:min(len(name), limits.CallerNameBytes)])
}

// takeIdle takes a caller to forget out of the list, among those whose last calls ended
// longest ago.
func (s *callerShard) takeIdle(config *callerConfig, at int64) *caller {
	for range idleLooked {
		it := s.oldest
		if it == nil {
			return nil
		}
		s.unlink(it)
		if it.whole(config, at) {
			return it
		}
		s.link(it)
	}
	return nil
}

func (s *callerShard) link(it *caller) {
	it.newer, it.older = nil, s.latest
	if s.latest != nil {
		s.latest.newer = it
	}
	s.latest = it
	if s.oldest == nil {
		s.oldest = it
	}
}

func (s *callerShard) unlink(it *caller) {
	if it.newer != nil {
		it.newer.older = it.older
	} else {
		s.latest = it.older
	}
	if it.older != nil {
		it.older.newer = it.newer
	} else {
		s.oldest = it.newer
	}
	it.newer, it.older = nil, nil
}

// CallersState is what a Callers shows of itself.
type CallersState struct {
	// Known is how many callers are known apart.
	Known int
	// Refused is how many calls were refused so far, of all callers.
	Refused uint64
	// Callers are those of whose calls most were refused, and those without a place in
	// one, with the name "".
	Callers []LimiterState
}

// Show returns its state, with so many callers at most.
func (c *Callers) Show(most int, now time.Time) CallersState {
	config, at := c.config.Load(), int64(now.Sub(c.base))*ticksPerNanosecond
	state, others := CallersState{}, LimiterState{Left: -1}
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		state.Known += len(s.known)
		state.Refused += s.refused
		others.Running += s.others.running
		others.Refused += s.others.refused
		for _, it := range s.known {
			state.Callers = append(state.Callers, LimiterState{it.name, it.running, config.rate.left(it.even, at), it.refused})
		}
		s.mu.Unlock()
		state.Callers = mostRefused(state.Callers, most) // so that not all are held, nor sorted
	}
	if others.Running > 0 || others.Refused > 0 {
		state.Callers = append(state.Callers, others)
	}
	state.Callers = mostRefused(state.Callers, most)
	return state
}

// mostRefused returns those of whose calls most were refused, in that order.
func mostRefused(callers []LimiterState, most int) []LimiterState {
	slices.SortFunc(callers, func(a, b LimiterState) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(b.Running, a.Running), cmp.Compare(a.Caller, b.Caller))
	})
	return callers[:min(len(callers), max(most, 0))]
}
