package cluster

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// Balancer chooses the instance that a call goes to, as a Balancing says. Instances that
// refuse connections, or whose calls fail too often, are ejected: left alone for a pause
// that doubles with every failure, after which one call tries whether they are back, and
// another one if that takes longer than 10 s (EjectTrialTime). If all are ejected, the one
// whose pause ends first is chosen: a call that may fail is better than one that must.
//
// It opens no connection and reads no clock: what time it is, and what became of a call,
// is told to it. Safe for concurrent use.
type Balancer struct {
	random func(n int) int
	seed   uint64
	config atomic.Pointer[balancerConfig]
	view   atomic.Pointer[view]
	// due is when Pick has to look at more than the view, and turns counts for RoundRobin.
	due   atomic.Int64
	turns atomic.Uint64
	// hashed are the calls in flight that were chosen by hash.
	hashed atomic.Int64
	// resting is how many members get no calls.
	resting atomic.Int64

	// mu guards what follows, and who replaces view.
	mu      sync.Mutex
	epoch   time.Time
	members []*Member
	// near and far are the members in the zone of the caller and the others; all are near
	// if zones do not count. With a subset they are in the order of this client.
	near, far []*Member
	zones     int
	// nearRing and farRing are those of near and far for ConsistentHash.
	nearRing, farRing *ring
	ejected           []*Member
	// tooMany: those that are ejected for failing get calls all the same.
	tooMany bool
	// step is when the view has to be made anew: weights change that grow, or it is behind.
	step int64
	// made is when the view was made, and behind says that members were ejected, or are
	// back, since then.
	made   int64
	behind bool
}

// The view of a list of up to viewAtOnce members is made anew whenever one of them is ejected
// or back, which takes 20 µs at most. Of a longer one it is made once in viewPause: with
// 10,000 members it takes 0.7 ms, and when 5,000 of them were gone those were 3.7 s in which
// calls waited for the lock. Until then the view has members that rest, which are passed
// over, and lacks some that are back.
const (
	viewAtOnce = 256
	viewPause  = 5 * time.Millisecond
)

// balancerConfig is what SetConfig has set.
type balancerConfig struct {
	balancing Balancing
	rules     rules
}

// NewBalancer returns a Balancer without instances. The seed says which of the instances
// are this client's if it uses a subset: clients with different seeds use different ones.
// random returns a number from 0 to below its argument, and must be safe for concurrent
// use; nil means the generator of package math/rand/v2.
func NewBalancer(balancing Balancing, ejection Ejection, seed uint64, random func(n int) int) *Balancer {
	if random == nil {
		random = rand.IntN
	}
	b := &Balancer{random: random, seed: seed}
	// So that clients which start together do not all begin with the first.
	b.turns.Store(uint64(random(1 << 20)))
	b.config.Store(&balancerConfig{balancing: balancing, rules: ejection.rules()})
	return b
}

// SetConfig goes on with another configuration. Calls in flight, latencies and ejections
// stay.
func (b *Balancer) SetConfig(balancing Balancing, ejection Ejection, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.config.Store(&balancerConfig{balancing: balancing, rules: ejection.rules()})
	if b.epoch.IsZero() {
		return
	}
	b.arrangeLocked()
	b.rebuildLocked(b.at(now))
}

// HashKey returns the metadata whose value chooses the instance, "" if none does.
func (b *Balancer) HashKey() string {
	if balancing := &b.config.Load().balancing; balancing.Method == ConsistentHash {
		return balancing.HashKey
	}
	return ""
}

// Update goes on with another list of instances, and returns the members that are new
// and those that are gone, whose calls in flight go on. Of several instances with one
// address the first counts, and of those that are too many the first ones; see
// limits.Instances.
func (b *Balancer) Update(list []Instance, now time.Time) (added, removed []*Member) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.epoch.IsZero() {
		b.epoch = now
	}
	at := b.at(now)
	before := make(map[string]*Member, len(b.members))
	for _, m := range b.members {
		before[m.Address()] = m
		m.gone.Store(true)
	}
	since := at
	if len(b.members) == 0 {
		since = -1
	}
	b.members = make([]*Member, 0, min(len(list), limits.Instances))
	for _, instance := range list {
		if len(b.members) == limits.Instances {
			break
		}
		m := before[instance.Address]
		switch {
		case m == nil:
			m = &Member{hash: Hash(instance.Address), since: since}
			m.rank = mix(m.hash ^ b.seed)
			before[instance.Address] = m
			added = append(added, m)
		case !m.gone.Load():
			continue // There is one with this address.
		}
		m.gone.Store(false)
		if old := m.instance.Load(); old == nil || !old.same(&instance) {
			kept := instance // of 10,000 that stay as they are none is copied
			m.instance.Store(&kept)
		}
		b.members = append(b.members, m)
	}
	for _, m := range before {
		if m.gone.Load() {
			removed = append(removed, m)
			if m.resting.Load() {
				b.resting.Add(-1)
			}
		}
	}
	b.arrangeLocked()
	b.rebuildLocked(at)
	return added, removed
}

// Members returns all instances, in the order of the last list.
func (b *Balancer) Members() []*Member {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.members)
}

// Len returns how many instances there are.
func (b *Balancer) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.members)
}

// Choice is the instance that a call goes to.
type Choice struct {
	// Member is the instance, Reason why it was chosen.
	Member *Member
	Reason Reason
	// trial: it was ejected when it was chosen, in a round of its ejections. hashed: it counts
	// for the bound of ConsistentHash.
	trial, hashed bool
	round         uint32
}

// Trial reports whether the call finds out if an ejected instance is back.
func (c Choice) Trial() bool { return c.trial }

// Outcome is what a call has shown of its instance.
type Outcome uint8

// The outcomes.
const (
	// Unknown: nothing, for example because the caller gave up before there was a connection,
	// or because nobody answers calls like this one.
	Unknown Outcome = iota
	// Reached: the instance answered, or there was a connection at least and nothing says
	// that the instance is at fault.
	Reached
	// Refused: no connection could be opened.
	Refused
	// Failed: the call failed by the fault of the instance, which counts for
	// Ejection.FailurePercent and Ejection.Consecutive.
	Failed
	// Erred: the instance answered with an error that may be its own or the caller's, as
	// with the codes internal, unknown and data_loss, or that some time is over which is not
	// that of the caller. It counts for
	// Ejection.FailurePercent, which compares the instance with the others.
	Erred
	// Busy: the instance refused the call because it has enough to do. That is no fault,
	// and how fast it refuses does not make it look faster.
	Busy
)

// Pick chooses an instance for a call at now; ok is false if there is none. With
// ConsistentHash key is the Hash of what chooses it, 0 if nothing does. Done must follow
// if ok is true.
func (b *Balancer) Pick(now time.Time, key uint64) (choice Choice, ok bool) {
	v := b.view.Load()
	if v == nil {
		return Choice{}, false
	}
	if at := v.at(now); at < b.due.Load() {
		if choice = b.choose(v, at, key, nil); choice.Member != nil {
			return choice, true
		}
	}
	return b.pickSlowly(now, key)
}

// pickSlowly is Pick when something is due, or no member is ready.
func (b *Balancer) pickSlowly(now time.Time, key uint64) (choice Choice, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.at(now)
	if at >= b.step {
		b.rebuildLocked(at)
	}
	if m := nextDue(b.ejected, at); m != nil {
		return b.tryLocked(m, at, ReasonTrial), true
	}
	if at >= b.due.Load() {
		b.dueLocked() // learn notes only that it may be sooner
	}
	if choice = b.chooseLocked(at, key, nil); choice.Member != nil {
		return choice, true
	}
	return b.lastResortLocked(at, nil)
}

// chooseLocked is choose with a view that is not behind if that is why there is none.
func (b *Balancer) chooseLocked(at int64, key uint64, tried []*Member) Choice {
	choice := b.choose(b.view.Load(), at, key, tried)
	if choice.Member == nil && b.behind {
		b.rebuildLocked(at)
		choice = b.choose(b.view.Load(), at, key, tried)
	}
	return choice
}

// PickOther chooses an instance besides those that were tried, for a further attempt of a
// call, which prefers instances that are not ejected. ok is false if all were tried. Done
// must follow if it is true.
func (b *Balancer) PickOther(now time.Time, key uint64, tried []*Member) (choice Choice, ok bool) {
	v := b.view.Load()
	if v == nil {
		return Choice{}, false
	}
	if choice = b.choose(v, v.at(now), key, tried); choice.Member != nil {
		return choice, true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	// Somebody may be back since.
	at := b.at(now)
	if choice = b.chooseLocked(at, key, tried); choice.Member != nil {
		return choice, true
	}
	return b.lastResortLocked(at, tried)
}

func (b *Balancer) lastResortLocked(at int64, tried []*Member) (choice Choice, ok bool) {
	m := lastResort(b.ejected, tried)
	if m == nil {
		return Choice{}, false
	}
	return b.tryLocked(m, at, ReasonLastResort), true
}

func (b *Balancer) tryLocked(m *Member, at int64, reason Reason) Choice {
	m.ejection.trials++
	m.ejection.tried = at
	b.dueLocked()
	m.calls.Add(1)
	return Choice{Member: m, Reason: reason, trial: true, round: m.ejection.round}
}

// Done ends what Pick or PickOther began. latency is how long the call took at the
// instance, or has taken until it was given up; 0 if that says nothing.
func (b *Balancer) Done(choice Choice, outcome Outcome, latency time.Duration, now time.Time) {
	m := choice.Member
	m.calls.Add(-1)
	if choice.hashed {
		b.hashed.Add(-1)
	}
	at := b.view.Load().at(now)
	// A call that was given up, or failed, would have taken longer, if anything: else an
	// instance that fails at once would seem the fastest.
	switch {
	case latency <= 0 || outcome == Refused:
	case choice.trial && outcome == Reached:
		// It is back: how slow it was before it was left alone says nothing any more. Of an
		// instance that was stopped for two seconds (scenario S12, short) it was believed for
		// 13 s. A trial that others have overtaken says nothing of it any more.
		if b.isTrial(choice) {
			m.latency.restart(latency, at)
		}
	case outcome == Reached || m.latency.slower(latency):
		m.latency.add(latency, at)
	}
	found := m.suspicion(&b.config.Load().rules, outcome, at)
	// A call that was sent before its instance was ejected proves nothing: a
	// server that stops answers what it has, and accepts no connections.
	if choice.trial || found != nothing || outcome == Refused {
		b.learn(choice, outcome, found, at)
	}
}

// isTrial reports whether a choice is a trial of an instance that has not come back since.
func (b *Balancer) isTrial(choice Choice) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return choice.isTrialLocked()
}

// isTrialLocked is isTrial with the lock of the Balancer held.
func (c Choice) isTrialLocked() bool { return c.trial && c.round == c.Member.ejection.round }

// suspicion is what the calls of a member say against it.
type suspicion uint8

const (
	nothing suspicion = iota
	// byShare: the share of those that failed is high, which is its own fault if others do
	// better.
	byShare
	// byRow: so many have failed one behind the other that no comparison is needed.
	byRow
)

// suspicion counts an outcome, and returns what the calls of the member say now.
func (m *Member) suspicion(r *rules, outcome Outcome, at int64) suspicion {
	if r.failurePercent > 100 || outcome == Unknown || outcome == Refused {
		return nothing
	}
	row := false
	if outcome == Failed {
		row = m.failures.Add(1) >= r.consecutive
	} else if m.failures.Load() != 0 {
		m.failures.Store(0)
	}
	part, bad := at/r.part, outcome == Failed || outcome == Erred
	m.window.add(part, bad)
	switch {
	case row:
		return byRow
	case !bad:
		return nothing
	}
	if calls, failures := m.window.sum(part); calls < r.minCalls || failures*100 < calls*r.failurePercent {
		return nothing
	}
	if m.acquitted.Load() > 0 && m.acquitted.Add(-1) > 0 {
		return nothing
	}
	return byShare
}

// worseLocked reports whether the share of the calls that failed is at least twice as high
// at a member as at all others, of which some must have had calls. If not, the next
// comparison, which looks at every member, comes after as many further failures as are
// needed for one. What was counted stays: it is what others are compared with.
func (b *Balancer) worseLocked(m *Member, r *rules, part int64) bool {
	var calls, failures int64
	for _, other := range b.members {
		if other != m {
			otherCalls, otherFailures := other.window.sum(part)
			calls, failures = calls+otherCalls, failures+otherFailures
		}
	}
	own, ownFailures := m.window.sum(part)
	if calls > 0 && float64(ownFailures)*float64(calls) >= 2*float64(failures)*float64(own) {
		return true
	}
	m.acquitted.Store(r.minCalls)
	return false
}

// learn changes the ejection of a member.
func (b *Balancer) learn(choice Choice, outcome Outcome, found suspicion, at int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m, r := choice.Member, &b.config.Load().rules
	trial := choice.isTrialLocked()
	if trial {
		m.ejection.trials--
	}
	before := m.ejection
	switch {
	case m.gone.Load():
		return
	case outcome == Refused:
		m.ejection = before.failed(refusing, at, r)
	case trial && before.ejected() && (outcome == Failed || outcome == Erred && before.fault == failing),
		found == byRow && !before.ejected(),
		found == byShare && !before.ejected() && b.worseLocked(m, r, at/r.part):
		m.ejection = before.failed(failing, at, r)
	case trial && (outcome == Reached || outcome == Erred || outcome == Busy):
		m.ejection = before.reached()
		m.window.reset()
	case trial && before.ejected():
		m.ejection = before.undecided(at, r)
	}
	changed := m.ejection.ejected() != before.ejected() || m.ejection.fault != before.fault
	switch {
	case changed && (len(b.members) <= viewAtOnce || at < b.made || at >= b.made+int64(viewPause)):
		b.rebuildLocked(at)
		return
	case changed:
		b.moveLocked(m, before.ejected())
	}
	if m.ejection.ejected() {
		b.due.Store(min(b.due.Load(), m.ejection.due()))
	}
}

// moveLocked has a member rest, or not any more, and leaves the view as it is for now.
func (b *Balancer) moveLocked(m *Member, wasEjected bool) {
	ejected := m.ejection.ejected()
	switch {
	case ejected && !wasEjected:
		b.ejected = append(b.ejected, m)
	case wasEjected && !ejected:
		i := slices.Index(b.ejected, m)
		b.ejected = slices.Delete(b.ejected, i, i+1)
	}
	b.markLocked(m)
	b.behind = true
	b.step = min(b.step, b.made+int64(viewPause))
	b.due.Store(min(b.due.Load(), b.step))
}

// markLocked notes whether a member gets calls.
func (b *Balancer) markLocked(m *Member) {
	suspect := m.ejection.ejected() && m.ejection.fault == failing
	m.suspect.Store(suspect)
	rests := m.ejection.ejected() && !(suspect && b.tooMany)
	if m.resting.Swap(rests) == rests {
		return
	}
	if rests {
		b.resting.Add(1)
	} else {
		b.resting.Add(-1)
	}
}

// Ejected returns how many instances are left alone.
func (b *Balancer) Ejected() int { return int(b.resting.Load()) }

// at returns a time as the members and the view have it.
func (b *Balancer) at(now time.Time) int64 { return max(int64(now.Sub(b.epoch)), 0) }

// dueLocked notes when Pick has to look closer.
func (b *Balancer) dueLocked() { b.due.Store(min(b.step, firstDue(b.ejected))) }

// arrangeLocked makes what depends on the list and the configuration only.
func (b *Balancer) arrangeLocked() {
	balancing := &b.config.Load().balancing
	b.near, b.far, b.zones = b.members, nil, 1
	if balancing.Zone != "" {
		b.near = nil
		zones := map[string]struct{}{}
		for _, m := range b.members {
			zone := m.Instance().Zone
			zones[zone] = struct{}{}
			if zone == balancing.Zone {
				b.near = append(b.near, m)
			} else {
				b.far = append(b.far, m)
			}
		}
		b.zones = len(zones)
	}
	if balancing.Method == ConsistentHash {
		b.nearRing, b.farRing = newRing(b.near), newRing(b.far)
		return
	}
	b.nearRing, b.farRing = nil, nil
	if balancing.Subset > 0 {
		b.near, b.far = ranked(b.near), ranked(b.far)
	}
}

// rebuildLocked makes the view of now.
func (b *Balancer) rebuildLocked(at int64) {
	config := b.config.Load()
	v := &view{epoch: b.epoch, method: config.balancing.Method}
	b.ejected = b.ejected[:0]
	suspects := 0
	for _, m := range b.members {
		if m.ejection.ejected() {
			b.ejected = append(b.ejected, m)
			if m.ejection.fault == failing {
				suspects++
			}
		}
	}
	b.tooMany = int64(suspects)*100 > config.rules.maxPercent*int64(len(b.members))
	b.step, b.made, b.behind = math.MaxInt64, at, false
	slowStart := config.balancing.SlowStart
	for _, m := range b.members {
		b.markLocked(m)
		m.weight.Store(m.weightNow(at, slowStart))
		if m.starting(at, slowStart) {
			b.step = at + max(int64(slowStart/10), 1)
		}
	}
	subset := len(b.members)
	if config.balancing.Subset > 0 && config.balancing.Method != ConsistentHash {
		subset = config.balancing.Subset
	}
	v.near, v.far = newPool(b.near, subset, v.method), newPool(b.far, subset, v.method)
	v.near.ring, v.far.ring = b.nearRing, b.farRing
	v.share = shareOf(readyWeight(b.near), readyWeight(b.far), b.zones)
	b.view.Store(v)
	b.dueLocked()
}

// shareOf returns how many of the calls stay in the zone of the caller. The callers of each
// zone make as many as those of the others, so that a zone which has its part of the
// instances keeps its calls, and one that has half of that keeps half of them.
func shareOf(near, far int64, zones int) int {
	if far == 0 {
		return shareWhole
	}
	share := float64(near) / float64(near+far) * float64(zones)
	if share > 0.999 {
		return shareWhole
	}
	return int(share * shareWhole)
}

// readyWeight returns the weight of all members that get calls.
func readyWeight(members []*Member) (sum int64) {
	for _, m := range members {
		if !m.resting.Load() {
			sum += m.weight.Load()
		}
	}
	return sum
}

// ranked returns members in the order in which a client uses them.
func ranked(members []*Member) []*Member {
	members = slices.Clone(members)
	slices.SortFunc(members, func(a, b *Member) int {
		switch {
		case a.rank > b.rank:
			return -1
		case a.rank < b.rank:
			return 1
		}
		return 0
	})
	return members
}
