package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
)

// named returns the scenario of a name.
func named(t *testing.T, name string) scenario {
	t.Helper()
	for _, sc := range scenarios() {
		if sc.name == name {
			return sc
		}
	}
	t.Fatalf("no scenario %q", name)
	return scenario{}
}

// TestRun_IsAQueue compares the mean with what queueing theory says: drawn at
// random, calls come to each instance as to a queue M/M/2, which is known exactly.
func TestRun_IsAQueue(t *testing.T) {
	s := newSimulation(setup{instances: 10, clients: 1, balancing: cluster.Balancing{Method: cluster.Random}, seed: 1})
	s.run(nil)
	sum := 0.0
	for _, latency := range s.latencies {
		sum += float64(latency)
	}
	got := time.Duration(sum / float64(len(s.latencies)) * float64(time.Microsecond))
	waits := 2 * load * load / (1 + load) // the part of the calls that wait, by Erlang's formula
	want := time.Duration(float64(callTime) * (1 + waits/(2*(1-load))))
	if got < want*95/100 || got > want*105/100 {
		t.Errorf("calls take %v in the mean, want %v", got, want)
	}
}

func TestRun_RepeatsItself(t *testing.T) {
	sc := named(t, "one fails")
	for _, method := range methods() {
		if first, second := sc.simulate(method, 10, 7), sc.simulate(method, 10, 7); first != second {
			t.Errorf("%s: %+v and %+v with the same seed", method, first, second)
		}
	}
	if sc.simulate(cluster.Random, 10, 7) == sc.simulate(cluster.Random, 10, 8) {
		t.Error("the seed does not matter")
	}
}

// TestGuide_HasTheTable: the figures with ten instances, which take a second, are those
// of the guide; the others are from the same run.
func TestGuide_HasTheTable(t *testing.T) {
	guide, err := os.ReadFile(documents + "/balancing.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(guide), legend()) {
		t.Error("the guide explains other scenarios: go run . -write")
	}
	if runtime.GOARCH != "amd64" {
		t.Skip("floating point is rounded differently elsewhere")
	}
	text := newTable(10, 1, func(scenario) bool { return true }).text()
	if !strings.Contains(string(guide), text) {
		t.Errorf("the guide does not have this table: go run . -write\n%s", text)
	}
}

// TestGuide_IsRight: what the guide concludes from the table, with another seed too.
func TestGuide_IsRight(t *testing.T) {
	for seed := range uint64(2) {
		for name, check := range map[string]func(c *claims){
			"unequal instances": unequalInstances, "broken instances": brokenInstances,
			"new instances": newInstances, "many clients": manyClients,
		} {
			t.Run(fmt.Sprint(name, ", seed ", seed+1), func(t *testing.T) { check(&claims{t, seed + 1}) })
		}
	}
}

// claims are those of the guide about a hundred instances.
type claims struct {
	*testing.T
	seed uint64
}

func (c *claims) run(scenario string, method cluster.Method) result {
	c.Helper()
	return named(c.T, scenario).simulate(method, plotted, c.seed)
}

func (c *claims) claim(holds bool, format string, values ...any) {
	c.Helper()
	if !holds {
		c.Errorf(format, values...)
	}
}

func unequalInstances(c *claims) {
	even, hashed := c.run("even", cluster.LeastLoaded), c.run("even", cluster.ConsistentHash)
	c.claim(hashed.p99*10 > even.p99*15 && hashed.p99 < even.p99*2, "even: p99 %v with consistent_hash, %v with least_loaded", hashed.p99, even.p99)
	sizes := c.run("sizes", cluster.LeastLoaded)
	for _, other := range methods()[1:] {
		r := c.run("sizes", other)
		c.claim(sizes.p99*10 < r.p99*9, "sizes: p99 %v with least_loaded, %v with %s", sizes.p99, r.p99, other)
		if other == cluster.RoundRobin || other == cluster.Random {
			c.claim(r.failed > 0.05, "sizes: %.2f %% fail with %s", r.failed*100, other)
		}
	}
	slow := c.run("one slow", cluster.LeastLoaded)
	c.claim(slow.bad < 0.001, "one slow: it gets %.3f %% of the calls", slow.bad*100)
}

func brokenInstances(c *claims) {
	for _, method := range methods() {
		dead := c.run("one dead", method)
		c.claim(dead.badCalls < 7*clientsUsual, "one dead: %d calls with %s", dead.badCalls, method)
		fails, share := c.run("one fails", method), c.run("one fails, by share", method)
		c.claim(fails.badCalls < 20*clientsUsual, "one fails: %d calls with %s", fails.badCalls, method)
		errs := c.run("one errs", method)
		c.claim(errs.badCalls == share.badCalls, "one errs: %d calls with %s, %d that fail by their share", errs.badCalls, method, share.badCalls)
		c.claim(share.badCalls > 2*fails.badCalls, "one fails: %d calls with %s, %d by their share", fails.badCalls, method, share.badCalls)
	}
	sheds := c.run("one sheds", cluster.LeastLoaded)
	c.claim(sheds.failed < 0.001, "one sheds: %.3f %% fail", sheds.failed*100)
}

func newInstances(c *claims) {
	cold, warm := c.run("new", cluster.RoundRobin), c.run("new, `SlowStart`", cluster.RoundRobin)
	c.claim(warm.failed*20 < cold.failed, "new: %.2f %% fail with slow start, %.2f %% without", warm.failed*100, cold.failed*100)
	coldest, warmest := c.run("new", cluster.LeastLoaded), c.run("new, `SlowStart`", cluster.LeastLoaded)
	c.claim(coldest.p99 < 200*time.Millisecond && warmest.p99 < coldest.p99, "new: p99 %v, %v with slow start", coldest.p99, warmest.p99)
}

func manyClients(c *claims) {
	loaded, inTurn, drawn := c.run("100 clients", cluster.LeastLoaded), c.run("100 clients", cluster.RoundRobin), c.run("100 clients", cluster.Random)
	c.claim(loaded.p99*10 > drawn.p99*8 && inTurn.p99 < loaded.p99, "100 clients: p99 %v, %v in turn, %v drawn", loaded.p99, inTurn.p99, drawn.p99)
	subset := c.run("100 clients, `Subset`", cluster.LeastLoaded)
	c.claim(subset.failed == 0 && subset.p99 < loaded.p99, "subsets: p99 %v, %v without, %.3f %% fail", subset.p99, loaded.p99, subset.failed*100)
	for _, method := range []cluster.Method{cluster.Random, cluster.RoundRobin} {
		r := c.run("100 clients, `Subset`", method)
		c.claim(r.skew > 1.3, "subsets: %.2f of the mean with %s", r.skew, method)
	}
}

func TestFinishes_AreInOrder(t *testing.T) {
	var heap finishes
	for i := range 1000 {
		heap.push(finish{at: int64(i * 7919 % 100), order: uint64(i)})
	}
	last := finish{at: -1}
	for len(heap) > 0 {
		next := heap.pop()
		if next.before(last) {
			t.Fatalf("%+v behind %+v", next, last)
		}
		last = next
	}
}
