package cluster

import (
	"math/bits"
	"slices"
	"sort"
	"time"
)

// Reason is why a call goes to an instance.
type Reason uint8

// The reasons.
const (
	// ReasonLeastLoaded: the better of two that were drawn.
	ReasonLeastLoaded Reason = iota + 1
	// ReasonInTurn: it was its turn.
	ReasonInTurn
	// ReasonDrawn: it was drawn, or stands behind one that was drawn and cannot be used.
	ReasonDrawn
	// ReasonFewestRequests: it has the fewest calls in flight.
	ReasonFewestRequests
	// ReasonHash: the key of the call belongs to it.
	ReasonHash
	// ReasonMovedOn: the key belongs to one that has too many calls, is ejected or was
	// tried.
	ReasonMovedOn
	// ReasonTrial: it is ejected, and the call tries whether it is back.
	ReasonTrial
	// ReasonLastResort: all that were not tried are ejected.
	ReasonLastResort
	// ReasonPanic: it is ejected because its calls fail, but so many are that this counts
	// for nothing.
	ReasonPanic
)

// String returns the reason in words.
func (r Reason) String() string {
	switch r {
	case ReasonLeastLoaded:
		return "least loaded of two"
	case ReasonInTurn:
		return "in turn"
	case ReasonDrawn:
		return "drawn"
	case ReasonFewestRequests:
		return "fewest calls in flight"
	case ReasonHash:
		return "by hash"
	case ReasonMovedOn:
		return "next by hash, because the first cannot take it"
	case ReasonTrial:
		return "trial of an ejected one"
	case ReasonLastResort:
		return "last resort, because all are ejected"
	case ReasonPanic:
		return "ejected, but too many are"
	}
	return "no reason"
}

// view is what Pick needs to know. It never changes, so that Pick takes no lock. Members of
// a long list may rest although they are in it; see viewPause.
type view struct {
	epoch  time.Time
	method Method
	// near and far are those that get calls in the zone of the caller and elsewhere, share
	// how many of shareWhole calls go to near.
	near, far pool
	share     int
}

const shareWhole = 1 << 16

func (v *view) at(now time.Time) int64 { return max(int64(now.Sub(v.epoch)), 0) }

// pool is members of which one is chosen.
type pool struct {
	members []*Member
	// parts are, for each, what one call in flight counts: less at those with more weight.
	parts []float64
	// keep and alias draw by weight in constant time, after Walker: of 1<<16 draws of a
	// place keep stay there, the others go to alias. nil if all weights are equal.
	keep  []uint32
	alias []int32
	// until is the sum of the weights up to each, for RoundRobin; nil if all are equal.
	until []uint64
	// sum is of all weights.
	sum  int64
	ring *ring
}

// newPool makes a pool of the first ready members, most of them.
func newPool(members []*Member, most int, method Method) pool {
	var p pool
	var weights []int64
	sum, equal := int64(0), true
	for _, allowed := range []bool{false, true} {
		// Those without weight get calls only where nobody has any.
		for _, m := range members {
			weight := m.weight.Load()
			if m.resting.Load() || weight == 0 && !allowed || len(p.members) == most {
				continue
			}
			weight = max(weight, 1)
			equal = equal && (len(weights) == 0 || weights[0] == weight)
			p.members, weights, sum = append(p.members, m), append(weights, weight), sum+weight
		}
		if len(p.members) > 0 {
			break
		}
	}
	p.sum = sum
	p.parts = make([]float64, len(weights))
	for i, weight := range weights {
		p.parts[i] = float64(sum) / float64(len(weights)) / float64(weight)
	}
	switch {
	case equal:
	case method == RoundRobin:
		p.until = make([]uint64, len(weights))
		until := uint64(0)
		for i, weight := range weights {
			until += uint64(weight)
			p.until[i] = until
		}
	default:
		p.keep, p.alias = aliases(weights, sum)
	}
	return p
}

// aliases makes the table with which draw draws by weight.
func aliases(weights []int64, sum int64) (keep []uint32, alias []int32) {
	keep, alias = make([]uint32, len(weights)), make([]int32, len(weights))
	left := make([]float64, len(weights))
	var small, large []int32
	for i, weight := range weights {
		left[i] = float64(weight) * float64(len(weights)) / float64(sum)
		keep[i], alias[i] = 1<<16, int32(i)
		if left[i] < 1 {
			small = append(small, int32(i))
		} else {
			large = append(large, int32(i))
		}
	}
	for len(small) > 0 && len(large) > 0 {
		little, much := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		keep[little], alias[little] = uint32(left[little]*(1<<16)), much
		if left[much] -= 1 - left[little]; left[much] < 1 {
			large, small = large[:len(large)-1], append(small, much)
		}
	}
	return keep, alias
}

// draw draws a place by weight.
func (p *pool) draw(random func(n int) int) int {
	if p.keep == nil {
		return random(len(p.members))
	}
	drawn := random(len(p.members) << 16)
	place := drawn >> 16
	if uint32(drawn&0xffff) >= p.keep[place] {
		return int(p.alias[place])
	}
	return place
}

// drawOther draws another place than first, which is not the only one.
func (p *pool) drawOther(first int, random func(n int) int) int {
	if p.keep == nil {
		second := random(len(p.members) - 1)
		if second >= first {
			second++ // Each of the others as likely as the next.
		}
		return second
	}
	for range 3 {
		if second := p.draw(random); second != first {
			return second
		}
	}
	return (first + 1 + random(len(p.members)-1)) % len(p.members)
}

// turn returns the place whose turn it is. By weights, turns go through the golden
// section of what the weights add up to: whatever part one has of that, it gets the same
// part of each run of turns, within one or two, and they are spread.
func (p *pool) turn(turn uint64) int {
	if p.until == nil {
		return int(turn % uint64(len(p.members)))
	}
	const golden = 0x9e3779b97f4a7c15
	at, _ := bits.Mul64(turn*golden, p.until[len(p.until)-1])
	return sort.Search(len(p.until), func(i int) bool { return p.until[i] > at })
}

// better returns the place on which a call is expected to take less time, the first if
// that is the same. Latencies of which none is half as much again as the other are taken
// for equal: that is noise, which would leave one of two idle servers without calls.
func (p *pool) better(first, second int, at int64) int {
	a, b := p.members[first], p.members[second]
	slow, fast := a.latency.expected(at), b.latency.expected(at)
	if slow == 0 || fast == 0 || slow < fast+fast/2 && fast < slow+slow/2 {
		slow, fast = 1, 1
	}
	if float64(fast)*(1+float64(b.calls.Load())*p.parts[second]) < float64(slow)*(1+float64(a.calls.Load())*p.parts[first]) {
		return second
	}
	return first
}

// fewest returns the place with the fewest calls by weight, the first one behind start.
func (p *pool) fewest(start int, tried []*Member) int {
	best, least := -1, 0.0
	for i := range p.members {
		place := start + i
		if place >= len(p.members) {
			place -= len(p.members)
		}
		m := p.members[place]
		if calls := float64(m.calls.Load()) * p.parts[place]; (best < 0 || calls < least) && m.canTake(tried) {
			best, least = place, calls
		}
	}
	return best
}

// canTake reports whether a member may get a call: it does not rest and was not tried.
func (m *Member) canTake(tried []*Member) bool {
	return !m.resting.Load() && (len(tried) == 0 || !slices.Contains(tried, m))
}

// untried returns a place that can take a call: place, or one that another draw finds, or
// the next; -1 if there is none.
func (p *pool) untried(place int, tried []*Member, random func(n int) int) int {
	for range 4 {
		if p.members[place].canTake(tried) {
			return place
		}
		place = p.draw(random)
	}
	for range p.members {
		if p.members[place].canTake(tried) {
			return place
		}
		if place++; place == len(p.members) {
			place = 0
		}
	}
	return -1
}

// choose chooses a member that is ready and was not tried, and counts the call; without a
// Member if there is none.
func (b *Balancer) choose(v *view, at int64, key uint64, tried []*Member) Choice {
	first, second := &v.near, &v.far
	if v.share < shareWhole {
		drawn := 0
		if v.method == ConsistentHash && key != 0 {
			drawn = int(mix(key) % shareWhole) // So that a key stays where it is.
		} else {
			drawn = b.random(shareWhole)
		}
		if drawn >= v.share {
			first, second = second, first
		}
	}
	choice := b.chooseOf(first, v.method, at, key, tried)
	if choice.Member == nil {
		if choice = b.chooseOf(second, v.method, at, key, tried); choice.Member == nil {
			return choice
		}
	}
	choice.Member.calls.Add(1)
	if choice.hashed {
		b.hashed.Add(1)
	}
	if choice.Member.suspect.Load() {
		choice.Reason = ReasonPanic
	}
	return choice
}

// chooseOf chooses a member of a pool.
func (b *Balancer) chooseOf(p *pool, method Method, at int64, key uint64, tried []*Member) Choice {
	if len(p.members) == 0 {
		return Choice{}
	}
	place, reason := 0, ReasonLeastLoaded
	switch method {
	case RoundRobin:
		place, reason = p.turn(b.turns.Add(1)), ReasonInTurn
	case Random:
		place, reason = p.draw(b.random), ReasonDrawn
	case LeastRequests:
		place, reason = p.fewest(p.draw(b.random), tried), ReasonFewestRequests
	case ConsistentHash:
		if key != 0 && len(p.ring.points) > 0 {
			return p.ring.choose(key, b.hashed.Load()+1, p.sum, tried)
		}
		fallthrough
	default:
		if place = p.draw(b.random); len(p.members) > 1 {
			place = p.better(place, p.drawOther(place, b.random), at)
		}
	}
	if place >= 0 && !p.members[place].canTake(tried) {
		place, reason = p.untried(place, tried, b.random), ReasonDrawn
	}
	if place < 0 {
		return Choice{}
	}
	return Choice{Member: p.members[place], Reason: reason}
}
