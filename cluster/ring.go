package cluster

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// Hash returns what ConsistentHash knows a key by: the same in every process, so that all
// clients take the same instance for it. It is never 0, which is no key.
func Hash(text string) uint64 {
	// FNV-1a, whose high bits are poor for short texts, and a finish that mixes them.
	hash := uint64(14695981039346656037)
	for i := range len(text) {
		hash = (hash ^ uint64(text[i])) * 1099511628211
	}
	return max(mix(hash), 1)
}

// mix spreads what differs in some bits over all of them (SplitMix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// ring has points of each member on a circle of hashes; a key belongs to the next point.
// When a member comes or goes, only keys of its points move. Which member is ejected is
// not of the ring, so that it need not be made anew then.
type ring struct {
	points  []point
	members []*Member
}

type point struct {
	hash   uint64
	member int32
}

// newRing makes a ring. A member has points in proportion to its weight, whatever the
// others have, so that they keep their keys when its weight changes.
func newRing(members []*Member) *ring {
	r := &ring{members: members}
	points := func(m *Member) int64 {
		return (m.weightNow(0, 0)*limits.HashPoints + weightDefault*weightScale - 1) / (weightDefault * weightScale)
	}
	all, halvings := int64(0), 0
	for _, m := range members {
		all += points(m)
	}
	for ; all > limits.HashPointsMax; all /= 2 {
		halvings++
	}
	for i, m := range members {
		hash := m.hash
		for range (points(m) + 1<<halvings - 1) >> halvings {
			hash = mix(hash)
			r.points = append(r.points, point{hash, int32(i)})
		}
	}
	slices.SortFunc(r.points, func(a, b point) int { return cmp.Compare(a.hash, b.hash) })
	return r
}

// choose returns the member that a key belongs to, or the next one on the circle that can
// take a call, when calls are in flight together with this one, and whole is the weight of
// all that are ready. If nobody can, the first that is ready takes it.
func (r *ring) choose(key uint64, calls, whole int64, tried []*Member) Choice {
	start := sort.Search(len(r.points), func(i int) bool { return r.points[i].hash >= key })
	var full *Member
	for i := range r.points {
		place := start + i
		if place >= len(r.points) {
			place -= len(r.points)
		}
		m := r.members[r.points[place].member]
		if m == full || m.resting.Load() || slices.Contains(tried, m) {
			continue
		}
		if in := m.calls.Load(); in >= limits.HashCallsMin && in >= bound(calls, m.weight.Load(), whole) {
			if full == nil {
				full = m
			}
			continue
		}
		reason := ReasonHash
		if i > 0 {
			if first := r.members[r.points[start%len(r.points)].member]; first != m {
				reason = ReasonMovedOn
			}
		}
		return Choice{Member: m, Reason: reason, hashed: true}
	}
	return Choice{Member: full, Reason: ReasonMovedOn, hashed: full != nil}
}

// bound returns how many of all calls a member may have, a quarter above its share.
func bound(calls, weight, whole int64) int64 {
	return int64(math.Ceil(float64(calls) * float64(weight) / float64(max(whole, 1)) * limits.HashLoadPercent / 100))
}
