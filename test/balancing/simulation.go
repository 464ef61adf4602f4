package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
)

// What all scenarios have in common.
const (
	// callTime is how long a call takes in the mean at an instance of speed 1 that has
	// nothing else to do; how long one takes is drawn from an exponential distribution.
	callTime = 20 * time.Millisecond
	// callTimeout is how long callers wait.
	callTimeout = time.Second
	// quickFailure is how long an instance takes that refuses a call or fails at once.
	quickFailure = 200 * time.Microsecond
	// load is how many calls there are, in parts of what the instances can take.
	load = 0.7
	// keys are how many values ConsistentHash hashes, each as frequent as the next.
	keys = 100_000
	// Scenarios change at changesAt, and are measured from then to endsAt.
	changesAt = 12 * time.Second
	endsAt    = 32 * time.Second
	// shedsAt is how many calls wait at an instance that sheds what is more.
	shedsAt = 4
)

// fault is what is wrong with an instance.
type fault uint8

const (
	healthy fault = iota
	// refusing: nothing listens.
	refusing
	// unavailable: it answers at once that it cannot, with the code unavailable.
	unavailable
	// internal: it answers at once that something is broken, with the code internal. The
	// client of Fulmar tells its Balancer that it erred.
	internal
	// shedding: it answers at once with the code resource_exhausted when shedsAt calls
	// wait. Its Balancer is told that it is busy.
	shedding
)

// instance is a queue with some workers.
type instance struct {
	cluster.Instance
	workers int
	speed   float64
	// coldUntil is when one that is new has warmed up: until then calls take up to
	// coldFactor times as long.
	coldSince, coldUntil int64
	fault                fault
	listed               bool
	listedSince          int64

	busy  int
	queue queue
	// calls are those that were measured, listedTime how long it was in the list.
	calls      int
	listedTime int64
}

// coldFactor is how much longer calls take at an instance that has just begun.
const coldFactor = 5

// call is one that has begun.
type call struct {
	client   *cluster.Balancer
	choice   cluster.Choice
	at       *instance
	began    int64
	ended    bool
	measured bool
	// failsAtOnce: the instance does not work on it.
	failsAtOnce bool
}

// simulation is a run of one scenario with one method.
type simulation struct {
	now       int64
	epoch     time.Time
	random    *rand.Rand
	clients   []*cluster.Balancer
	instances []*instance
	byAddress map[string]*instance
	// arrivals is the mean time between two calls.
	arrivals float64
	hashed   bool

	finishes  finishes
	order     uint64
	waiting   queue // for their deadlines
	latencies []int32
	measured  int
	failed    int
}

// setup is what a run begins with.
type setup struct {
	instances, clients int
	balancing          cluster.Balancing
	ejection           cluster.Ejection
	seed               uint64
}

func newSimulation(with setup) *simulation {
	s := &simulation{
		epoch: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), random: rand.New(rand.NewPCG(with.seed, 1)),
		byAddress: map[string]*instance{}, hashed: with.balancing.Method == cluster.ConsistentHash,
	}
	for i := range with.instances {
		s.add(&instance{Instance: cluster.Instance{Address: fmt.Sprintf("10.0.%d.%d:8888", i/250, i%250+1)}, workers: 2, speed: 1, listed: true})
	}
	for range with.clients {
		s.clients = append(s.clients, cluster.NewBalancer(with.balancing, with.ejection, s.random.Uint64(), s.random.IntN))
	}
	return s
}

func (s *simulation) add(it *instance) {
	s.instances = append(s.instances, it)
	s.byAddress[it.Address] = it
}

// time returns the moment as Balancers want it.
func (s *simulation) time() time.Time { return s.epoch.Add(time.Duration(s.now)) }

// announce gives all clients the list of those that are listed.
func (s *simulation) announce() {
	var list []cluster.Instance
	for _, it := range s.instances {
		if it.listed {
			list = append(list, it.Instance)
		}
	}
	for _, client := range s.clients {
		client.Update(list, s.time())
	}
}

// list puts an instance into the list or takes it out, for the next announce.
func (s *simulation) list(it *instance, listed bool) {
	if it.listed && !listed {
		it.listedTime += s.now - max(it.listedSince, int64(changesAt))
	}
	if !it.listed && listed {
		it.listedSince = s.now
	}
	it.listed = listed
}

// event is a change of a scenario at a time.
type event struct {
	at   time.Duration
	does func(s *simulation)
}

// run runs until endsAt, with events in the order of their times.
func (s *simulation) run(events []event) {
	s.announce()
	capacity := 0.0
	for _, it := range s.instances {
		if it.listed {
			capacity += it.capacity()
		}
	}
	s.arrivals = float64(callTime) / capacity / load
	next := int64(0)
	for {
		deadline, finished, change := int64(math.MaxInt64), int64(math.MaxInt64), int64(endsAt)
		for !s.waiting.empty() && s.waiting.first().ended {
			s.waiting.pop()
		}
		if !s.waiting.empty() {
			deadline = s.waiting.first().began + int64(callTimeout)
		}
		if len(s.finishes) > 0 {
			finished = s.finishes[0].at
		}
		if len(events) > 0 {
			change = int64(events[0].at)
		}
		s.now = min(next, deadline, finished, change)
		switch s.now {
		case finished:
			s.finish(s.finishes.pop().call)
		case deadline:
			c := s.waiting.pop()
			s.end(c, cluster.Failed, callTimeout, true)
		case change:
			if len(events) == 0 {
				s.close()
				return
			}
			events[0].does(s)
			events = events[1:]
		default:
			s.begin()
			next = s.now + int64(s.random.ExpFloat64()*s.arrivals)
		}
	}
}

// close counts how long instances were listed that still are.
func (s *simulation) close() {
	for _, it := range s.instances {
		s.list(it, false)
	}
	slices.Sort(s.latencies)
}

// begin begins a call of one of the clients.
func (s *simulation) begin() {
	c := &call{client: s.clients[s.random.IntN(len(s.clients))], began: s.now, measured: s.now >= int64(changesAt)}
	key := uint64(0)
	if s.hashed {
		key = cluster.Hash(fmt.Sprint(s.random.IntN(keys)))
	}
	choice, ok := c.client.Pick(s.time(), key)
	if !ok {
		panic("no instance")
	}
	c.choice, c.at = choice, s.byAddress[choice.Member.Address()]
	if c.measured {
		c.at.calls++
	}
	switch it := c.at; {
	case it.fault != healthy && it.fault != shedding, it.fault == shedding && it.queue.waiting() >= shedsAt:
		c.failsAtOnce = true
		s.finishAt(c, s.now+int64(quickFailure))
	case it.busy < it.workers:
		s.work(c)
		s.waiting.push(c)
	default:
		it.queue.push(c)
		s.waiting.push(c)
	}
}

// work has a worker of an instance begin with a call.
func (s *simulation) work(c *call) {
	c.at.busy++
	took := s.random.ExpFloat64() * float64(callTime) / c.at.speed
	if left := c.at.coldUntil - s.now; left > 0 {
		took *= 1 + (coldFactor-1)*float64(left)/float64(c.at.coldUntil-c.at.coldSince)
	}
	s.finishAt(c, s.now+max(int64(took), 1))
}

func (s *simulation) finishAt(c *call, at int64) {
	s.order++
	s.finishes.push(finish{at: at, order: s.order, call: c})
}

// finish ends a call at its instance, which goes on with the next one that somebody waits for.
func (s *simulation) finish(c *call) {
	took := time.Duration(s.now - c.began)
	switch it := c.at; {
	case it.fault == refusing:
		s.end(c, cluster.Refused, took, false)
	case it.fault == unavailable:
		s.end(c, cluster.Failed, took, false)
	case it.fault == internal:
		s.end(c, cluster.Erred, took, false)
	case c.failsAtOnce:
		s.end(c, cluster.Busy, took, false)
	default:
		it.busy--
		for !it.queue.empty() && it.busy < it.workers {
			if waits := it.queue.pop(); !waits.ended {
				s.work(waits)
			}
		}
		if !c.ended {
			s.end(c, cluster.Reached, took, true)
		}
	}
}

// end ends a call for its caller. timed says that how long it took counts for the table.
func (s *simulation) end(c *call, outcome cluster.Outcome, took time.Duration, timed bool) {
	if c.ended {
		return
	}
	c.ended = true
	c.client.Done(c.choice, outcome, took, s.time())
	if !c.measured {
		return
	}
	s.measured++
	if outcome != cluster.Reached || !timed {
		s.failed++
	}
	if timed {
		s.latencies = append(s.latencies, int32(took/time.Microsecond))
	}
}

// capacity is how many calls an instance can work off in callTime.
func (it *instance) capacity() float64 { return float64(it.workers) * it.speed }

// result is what a run has shown.
type result struct {
	p50, p99 time.Duration
	// failed and bad are parts of all calls: those that failed, and those that went to
	// instances with something wrong.
	failed, bad float64
	// badCalls is bad as a number.
	badCalls int
	// skew is how many calls the instance got that got the most, in multiples of the mean,
	// each measured by its capacity and how long it was in the list.
	skew float64
}

// result returns what has been measured. bad says which instances have something wrong.
func (s *simulation) result(bad func(it *instance) bool) result {
	r := result{p50: s.percentile(50), p99: s.percentile(99), failed: float64(s.failed) / float64(max(s.measured, 1))}
	most, sum, count := 0.0, 0.0, 0
	for _, it := range s.instances {
		if bad != nil && bad(it) {
			r.badCalls += it.calls
		}
		if it.listedTime == 0 {
			continue
		}
		share := float64(it.calls) / it.capacity() / float64(it.listedTime)
		most, sum, count = max(most, share), sum+share, count+1
	}
	r.skew = most / (sum / float64(count))
	r.bad = float64(r.badCalls) / float64(max(s.measured, 1))
	return r
}

func (s *simulation) percentile(percent int) time.Duration {
	if len(s.latencies) == 0 {
		return 0
	}
	at := min(len(s.latencies)*percent/100, len(s.latencies)-1)
	return time.Duration(s.latencies[at]) * time.Microsecond
}
