package fulmar_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

var simSeeds = flag.Int("seeds", 200, "how many seeds the simulation runs")
var simFirst = flag.Uint64("seed", 1, "the first seed of the simulation; use with -seeds 1 to replay")

// TestSimulation runs clients against a server that is restarted, over a network
// that delays, splits, cuts and stalls, and checks for every call what must hold
// whatever happens: it ends once, by its deadline or when it is cancelled, with
// its own result; a success was executed, no call was executed twice, and what is
// said not to have been executed was not.
func TestSimulation(t *testing.T) {
	total := tally{codes: map[fulmar.Code]int{}}
	for i := range *simSeeds {
		seed := *simFirst + uint64(i)
		if !t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { simulateSeed(t, seed, &total) }) {
			t.Fatalf("replay with: go test . -run TestSimulation -seed %d -seeds 1", seed)
		}
	}
	t.Logf("calls by code, 0 is success: %v; %d on shared connections at least; %d late replies", total.codes, total.shared, total.late)
	if *simSeeds < 10 {
		return
	}
	for _, code := range []fulmar.Code{0, fulmar.Canceled, fulmar.DeadlineExceeded, fulmar.Unavailable} {
		if total.codes[code] == 0 {
			t.Errorf("no call ended with code %d: the simulation does not reach what it is for", code)
		}
	}
	if total.shared == 0 || total.late == 0 || total.notExecuted == 0 {
		t.Errorf("%d seeds shared connections, %d late replies, %d calls were said not to be executed: the simulation does not reach what it is for", total.shared, total.late, total.notExecuted)
	}
}

// tally counts over all seeds, to see that there is something to check.
type tally struct {
	codes       map[fulmar.Code]int
	notExecuted int
	// shared counts the times that connections were seen to be shared.
	shared int
	late   uint64
}

// ledger is what both sides note of every call.
type ledger struct {
	mu       sync.Mutex
	executed map[int32]int
	ended    []ended
}

// ended is how a call ended for its caller.
type ended struct {
	id     int32
	oneway bool
	err    error
	// took is how long it took of limit.
	took, limit time.Duration
	// right: a success brought the call's own result.
	right bool
}

func (l *ledger) execute(id int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.executed[id]++
}

func (l *ledger) end(e ended) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = append(l.ended, e)
}

// sumOf is what add returns here: it is different for all calls.
func sumOf(id, work int32) int32 { return id*100 + work }

// check wants of each call what must hold when everything has settled.
func (l *ledger) check(t *testing.T, calls int, total *tally) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ended) != calls {
		t.Errorf("%d outcomes of %d calls", len(l.ended), calls)
	}
	const slack = 50 * time.Millisecond
	for _, call := range l.ended {
		n, e := l.executed[call.id], (*fulmar.Error)(nil)
		total.codes[fulmar.CodeOf(call.err)]++
		switch {
		case call.took > call.limit+slack:
			t.Errorf("call %d took %v of %v: %v", call.id, call.took, call.limit, call.err)
		case n > 1:
			t.Errorf("call %d was executed %d times", call.id, n)
		case call.err == nil && !call.oneway && (n != 1 || !call.right):
			t.Errorf("call %d succeeded, its own result: %v, executed %d times", call.id, call.right, n)
		case call.err != nil && !errors.As(call.err, &e):
			t.Errorf("call %d: %v (%T) is not a *fulmar.Error", call.id, call.err, call.err)
		case e != nil && e.Executed() == fulmar.ExecutedNo && n != 0:
			t.Errorf("call %d was executed, the error says %v", call.id, e)
		case e != nil && e.Executed() == fulmar.ExecutedNo:
			total.notExecuted++
		}
	}
}

func simulateSeed(t *testing.T, seed uint64, total *tally) {
	random := rand.New(rand.NewPCG(seed, 0))
	network := simnet.Config{
		Seed:         seed,
		Delay:        time.Duration(random.IntN(5)) * time.Millisecond,
		DelayJitter:  time.Duration(random.IntN(20)) * time.Millisecond,
		SplitPercent: random.IntN(100),
	}
	const timeout, callers, each = 200 * time.Millisecond, 12, 8
	client := fulmar.ClientConfig{
		Protocol:       allProtocols[random.IntN(len(allProtocols))],
		Timeout:        timeout,
		MaxConnections: 1 + random.IntN(8),
	}
	l := &ledger{executed: map[int32]int{}}
	stub := &testservice.Stub{
		OnAdd: func(_ context.Context, left, right int32) (int32, error) {
			l.execute(left)
			time.Sleep(time.Duration(right) * time.Millisecond)
			return sumOf(left, right), nil
		},
		OnNotify: func(_ context.Context, text string) error {
			id, err := strconv.Atoi(text)
			l.execute(int32(id))
			return err
		},
	}
	simulate(t, network, fulmar.ServerConfig{}, client, stub, func(s *simulation) {
		var all sync.WaitGroup
		for caller := range int32(callers) {
			random := rand.New(rand.NewPCG(seed, 100+uint64(caller)))
			all.Go(func() {
				for i := range int32(each) {
					s.callOnce(l, random, caller*each+i, timeout)
				}
			})
		}
		injectFaults(s, rand.New(rand.NewPCG(seed, 1)), total)
		all.Wait()
		// After the faults everything works again at once.
		time.Sleep(time.Second)
		for range 3 {
			if _, err := s.api.Add(context.Background(), -1, 0); err != nil {
				t.Errorf("after the faults: %v", err)
			}
		}
		total.late += s.client.Stats().LateReplies
		// What is on its way to servers that stop arrives before they have.
		time.Sleep(limits.StopGrace + time.Second)
		delete(l.executed, -1)
		l.check(t, callers*each, total)
	})
}

// callOnce makes a call that may be oneway, and may be cancelled.
func (s *simulation) callOnce(l *ledger, random *rand.Rand, id int32, timeout time.Duration) {
	call := ended{id: id, oneway: random.IntN(8) == 0, limit: timeout}
	work := random.Int32N(60)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if random.IntN(4) == 0 {
		call.limit = time.Duration(random.IntN(60)) * time.Millisecond
		stop := time.AfterFunc(call.limit, cancel)
		defer stop.Stop()
	}
	start := time.Now()
	if call.oneway {
		call.err = s.api.Notify(ctx, strconv.Itoa(int(id)))
	} else {
		var sum int32
		sum, call.err = s.api.Add(ctx, id, work)
		call.right = sum == sumOf(id, work)
	}
	call.took = time.Since(start)
	l.end(call)
	time.Sleep(time.Duration(random.IntN(30)) * time.Millisecond)
}

// injectFaults disturbs the network and the server for about a second.
func injectFaults(s *simulation, faults *rand.Rand, total *tally) {
	for range 10 {
		time.Sleep(time.Duration(faults.IntN(60)) * time.Millisecond)
		if s.client.Stats().Multiplexed > 0 {
			total.shared++
		}
		switch faults.IntN(7) {
		case 0:
			s.network.Cut(simAddress)
		case 1:
			s.network.HalfClose(simAddress)
		case 2:
			s.network.Stall(simAddress, true)
			time.Sleep(time.Duration(faults.IntN(100)) * time.Millisecond)
			s.network.Stall(simAddress, false)
		case 3:
			s.network.Partition(simAddress, true)
			time.Sleep(time.Duration(faults.IntN(100)) * time.Millisecond)
			s.network.Partition(simAddress, false)
		case 4:
			s.restart(true)
		case 5:
			s.restart(false)
		}
	}
}
