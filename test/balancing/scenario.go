package main

import (
	"fmt"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
)

// scenario is what happens to instances and clients.
type scenario struct {
	name string
	// what it is, for the legend of the table.
	what string
	// clients share the calls equally. Default: 10.
	clients int
	// balancing is besides its Method.
	balancing cluster.Balancing
	ejection  cluster.Ejection
	// begin changes instances before the first call, events do later.
	begin  func(s *simulation)
	events func(s *simulation) []event
	// bad says which instances have something wrong, for the column of that name.
	bad func(it *instance) bool
}

const clientsUsual = 10

func scenarios() []scenario {
	faulty := func(it *instance) bool { return it.fault != healthy }
	return []scenario{
		{name: "even", what: "all instances are the same"},
		{name: "sizes", what: "instances of one to four workers, and nobody says so", begin: sizes(false)},
		{name: "sizes, weights", what: "the same, with weights that say so", begin: sizes(true)},
		{
			name: "one slow", what: "one instance becomes ten times as slow",
			events: first(func(_ *simulation, it *instance) { it.speed = 0.1 }),
			bad:    func(it *instance) bool { return it.speed < 1 },
		},
		{name: "one dead", what: "one instance refuses connections", events: broken(refusing), bad: faulty},
		{name: "one fails", what: "one instance answers at once with `unavailable`", events: broken(unavailable), bad: faulty},
		{
			name: "one fails, by share", what: "the same with `Ejection{Consecutive: -1}`, so that only the share of failures ejects it", events: broken(unavailable), bad: faulty,
			ejection: cluster.Ejection{Consecutive: -1},
		},
		{name: "one errs", what: "one instance answers at once with `internal`", events: broken(internal), bad: faulty},
		{
			name: "one sheds", what: "one instance becomes four times as slow, and answers at once with `resource_exhausted` when 4 calls wait",
			events: first(func(_ *simulation, it *instance) { it.fault, it.speed = shedding, 0.25 }), bad: faulty,
		},
		{name: "flapping", what: "every second a tenth leaves the list, and comes back two seconds later", events: flapping},
		{name: "new", what: "a fifth is replaced by new ones, which are five times as slow at first and warm up in ten seconds", events: replaced, bad: isNew},
		{
			name: "new, `SlowStart`", what: "the same with `Balancing{SlowStart: 10 * time.Second}`", events: replaced, bad: isNew,
			balancing: cluster.Balancing{SlowStart: 10 * time.Second},
		},
		{name: "100 clients", what: "100 clients instead of 10, each with all instances", clients: 100},
		{
			name: "100 clients, `Subset`", what: "each of 100 clients uses a fifth of the instances, 5 at least",
			clients: 100, balancing: cluster.Balancing{Subset: subsetOfFive},
		},
	}
}

// subsetOfFive stands for a fifth of the instances, 5 at least.
const subsetOfFive = -5

// isNew reports whether an instance was not there from the beginning.
func isNew(it *instance) bool { return it.coldUntil > 0 }

// sizes gives instances one to four workers.
func sizes(weights bool) func(s *simulation) {
	return func(s *simulation) {
		for i, it := range s.instances {
			it.workers = 1 + i%4
			if weights {
				it.Weight = 10 * it.workers
			}
		}
	}
}

// first has something happen to the first instance at changesAt.
func first(does func(s *simulation, it *instance)) func(s *simulation) []event {
	return func(*simulation) []event {
		return []event{{changesAt, func(s *simulation) { does(s, s.instances[0]) }}}
	}
}

// broken breaks the first instance: what waits there fails.
func broken(how fault) func(s *simulation) []event {
	return first(func(s *simulation, it *instance) {
		it.fault = how
		for !it.queue.empty() {
			c := it.queue.pop()
			s.end(c, cluster.Failed, time.Duration(s.now-c.began), false)
		}
	})
}

// flapping takes a tenth of the instances out of the list each second, and puts it back 2 s
// later. They go on working.
func flapping(s *simulation) []event {
	var events []event
	part := max(len(s.instances)/10, 1)
	for second := 0; changesAt+time.Duration(second)*time.Second < endsAt; second++ {
		events = append(events, event{changesAt + time.Duration(second)*time.Second, func(s *simulation) {
			for i := range part {
				s.list(s.instances[(second*part+i)%len(s.instances)], false)
				if second >= 2 {
					s.list(s.instances[((second-2)*part+i)%len(s.instances)], true)
				}
			}
			s.announce()
		}})
	}
	return events
}

// replaced replaces a fifth of the instances by new ones.
func replaced(*simulation) []event {
	return []event{{changesAt, func(s *simulation) {
		const warmUp = 10 * time.Second
		for i := range len(s.instances) / 5 {
			s.list(s.instances[i], false)
			s.add(&instance{
				Instance: cluster.Instance{Address: fmt.Sprintf("10.1.%d.%d:8888", i/250, i%250+1)}, workers: 2, speed: 1,
				listed: true, listedSince: s.now, coldSince: s.now, coldUntil: s.now + int64(warmUp),
			})
		}
		s.announce()
	}}}
}

// simulate runs a scenario.
func (sc scenario) simulate(method cluster.Method, instances int, seed uint64) result {
	with := setup{instances: instances, clients: sc.clients, balancing: sc.balancing, ejection: sc.ejection, seed: seed}
	with.balancing.Method = method
	if with.clients == 0 {
		with.clients = clientsUsual
	}
	if with.balancing.Subset == subsetOfFive {
		with.balancing.Subset = max(instances/5, 5)
	}
	s := newSimulation(with)
	if sc.begin != nil {
		sc.begin(s)
	}
	var events []event
	if sc.events != nil {
		events = sc.events(s)
	}
	s.run(events)
	return s.result(sc.bad)
}

func methods() []cluster.Method {
	return []cluster.Method{cluster.LeastLoaded, cluster.RoundRobin, cluster.Random, cluster.ConsistentHash, cluster.LeastRequests}
}
