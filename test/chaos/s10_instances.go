package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/observe"
	"github.com/fulmar-rpc/fulmar/policy"
	"github.com/fulmar-rpc/fulmar/test/chaos/gen/chaosapi"
	"github.com/fulmar-rpc/fulmar/test/chaos/ledger"
)

// governed returns callers in each protocol over a policy of ours, half of whose calls may
// run twice. Between two calls of a caller is an interval of gather.
func governed(closing *closing, ids *callers, target string, each int, limit time.Duration, document policy.Client) (all []*caller, clients []*fulmar.Client, err error) {
	for _, protocol := range []fulmar.Protocol{fulmar.TTHeader, fulmar.Framed, fulmar.TTHeaderFramed} {
		for _, repeatable := range []bool{true, false} {
			document.Retry.Idempotent = repeatable
			c, err := fulmar.NewClient(fulmar.ClientConfig{Target: target, Protocol: protocol, Timeout: -1, Policy: document})
			if err != nil {
				return nil, nil, err
			}
			closing.add(func() { _ = c.Close() })
			clients = append(clients, c)
			for range each {
				all = append(all, &caller{
					api: chaosapi.NewChaosClient(c), book: ids.book(), limit: limit, repeatable: repeatable,
					request: chaosapi.Request{Payload: make([]byte, 100), Nap: 500},
				})
			}
		}
	}
	return all, clients, nil
}

// fails counts the calls of books that failed, by whether they may run twice.
func fails(books []*ledger.Book) (repeatable, others, maybe int) {
	for _, book := range books {
		for _, call := range book.Calls() {
			switch {
			case call.Outcome == ledger.Success:
			case call.Repeatable:
				repeatable++
			default:
				others++
				if call.Outcome == ledger.Maybe {
					maybe++
				}
			}
		}
	}
	return repeatable, others, maybe
}

// kills is S10: one of three servers is killed every two seconds, and comes back.
func kills(ctx context.Context, size size) (seen figures, err error) {
	var closing closing
	defer closing.close()
	fleet, err := startFleet(&closing, 3, fulmar.ServerConfig{})
	if err != nil {
		return seen, err
	}
	var ids callers
	document := policy.Client{Method: policy.Method{Retry: policy.Retry{Attempts: 4}}}
	all, _, err := governed(&closing, &ids, fleet.target(), 4, 5*time.Second, document)
	if err != nil {
		return seen, err
	}
	quiet := busyMachine()
	// 24 callers with a pause of 11 ms and calls of half a millisecond are 2,000 a second.
	before := gather(ctx, all, 11*time.Millisecond)
	pause(ctx, size.during(500*time.Millisecond, 10*time.Second))
	normal := quantile(took(before.end(), func(*ledger.Call) bool { return true }), 0.99)
	crowd := gather(ctx, all, 11*time.Millisecond)
	least := int64(size.of(1000, 100_000))
	rounds := 0
	for ; rounds < size.of(2, 30) || crowd.made.Load() < least && rounds < 90; rounds++ {
		victim := rounds % len(fleet.servers)
		pause(ctx, size.during(200*time.Millisecond, 1200*time.Millisecond))
		fleet.servers[victim].kill()
		pause(ctx, size.during(200*time.Millisecond, 800*time.Millisecond))
		if err := fleet.restart(victim, fulmar.ServerConfig{}); err != nil {
			return seen, err
		}
	}
	books := crowd.end()
	taken := quiet()
	executions, err := fleet.executions()
	if err != nil {
		return seen, err
	}
	verdict := ledger.Judge(books, executions, 0)
	repeatable, others, maybe := fails(books)
	seen.note("killed %d times", rounds)
	seen.least("calls", float64(verdict.Calls), float64(least), "")
	seen.most("failed of those that may run twice", float64(repeatable), 0, "")
	// A call that was on its way when its server was killed may have run, and nobody can
	// know: at most those of all callers, each time.
	seen.most("unknown of the others", float64(maybe), float64(rounds*len(all)/2), "")
	seen.most("failed of the others though they did not run", float64(others-maybe), 0, "")
	p99 := quantile(took(books, func(*ledger.Call) bool { return true }), 0.99)
	seen.tailUnlessBusy("p99", ms(p99), 3*ms(normal), " ms", taken)
	seen.ended(books, taken)
	seen.judged(verdict)
	seen.examples(books)
	return seen, nil
}

// gray is S12: one of three servers is stopped as a process for ten seconds. It is still
// connected, and answers nothing.
func gray(ctx context.Context, size size) (seen figures, err error) {
	var closing closing
	defer closing.close()
	fleet, err := startFleet(&closing, 3, fulmar.ServerConfig{})
	if err != nil {
		return seen, err
	}
	var ids callers
	document := policy.Client{
		Method:      policy.Method{Retry: policy.Retry{Attempts: 3, AttemptTimeout: 250 * time.Millisecond, Idempotent: true}},
		Ejection:    cluster.Ejection{PauseMax: 2 * time.Second},
		RetryBudget: policy.RetryBudget{PerSecond: 100},
	}
	c, err := fulmar.NewClient(fulmar.ClientConfig{Target: fleet.target(), Timeout: -1, Policy: document})
	if err != nil {
		return seen, err
	}
	closing.add(func() { _ = c.Close() })
	var all []*caller
	for range 24 {
		all = append(all, &caller{
			api: chaosapi.NewChaosClient(c), book: ids.book(), limit: time.Second, repeatable: true,
			request: chaosapi.Request{Payload: make([]byte, 100), Nap: 500},
		})
	}
	quiet := busyMachine()
	crowd := gather(ctx, all, 11*time.Millisecond)
	pause(ctx, time.Second)
	stopped := time.Now()
	fleet.servers[1].signal(syscall.SIGSTOP)
	pause(ctx, time.Second+size.during(time.Second, 9*time.Second))
	fleet.servers[1].signal(syscall.SIGCONT)
	// Of three servers it has a third, and half of that is enough not to take chance for less.
	back, err := fleet.trafficBack(ctx, 1, 1.0/6)
	if err != nil {
		return seen, err
	}
	books := crowd.end()
	taken := quiet()
	executions, err := fleet.executions()
	if err != nil {
		return seen, err
	}
	verdict := ledger.Judge(books, executions, 0)
	// A call that begins when nobody has noticed waits for the time of an attempt.
	atFirst, failedAtFirst, failed := aroundAStop(books, stopped, stopped.Add(time.Second))
	seen.note("stopped for %.3g s", time.Since(stopped).Seconds()-back.Seconds())
	seen.least("calls", float64(verdict.Calls), float64(size.of(500, 15_000)), "")
	seen.most("failed in the first second", float64(failedAtFirst), float64(atFirst)/100, "")
	seen.most("failed afterwards", float64(failed), 0, "")
	seen.mostUnlessBusy("its share again after", back.Seconds(), 5, " s", taken)
	seen.ended(books, taken)
	seen.judged(verdict)
	seen.examples(books)
	return seen, nil
}

// aroundAStop returns how many calls that began before it was noticed ended behind a stop, how many
// of all that began so early failed, and how many of those that began later.
func aroundAStop(books []*ledger.Book, stopped, noticed time.Time) (atFirst, failedAtFirst, failed int) {
	for _, book := range books {
		for _, call := range book.Calls() {
			early := call.Began.Before(noticed)
			if early && call.Began.Add(call.Took).After(stopped) {
				atFirst++
			}
			switch {
			case call.Outcome == ledger.Success:
			case early: // also before anything had happened
				failedAtFirst++
			default:
				failed++
			}
		}
	}
	return atFirst, failedAtFirst, failed
}

// trafficBack waits until a server has executed a hundred calls more, and so large a share of all
// in the last quarter of a second, and returns how long that took. 20 s are too much.
func (f *fleet) trafficBack(ctx context.Context, server int, share float64) (time.Duration, error) {
	executed := func() (one, all int, err error) {
		for i, journal := range f.journals {
			var its ledger.Executions
			if err := its.Read(journal); err != nil {
				return 0, 0, err
			}
			if all += its.Len(); i == server {
				one = its.Len()
			}
		}
		return one, all, nil
	}
	begin := time.Now()
	one, all, err := executed()
	for enough := one + 100; err == nil && time.Since(begin) < 20*time.Second; {
		pause(ctx, 250*time.Millisecond)
		oneBefore, allBefore := one, all
		one, all, err = executed()
		if one >= enough && float64(one-oneBefore) >= share*float64(all-allBefore) {
			return time.Since(begin), err
		}
	}
	if err == nil {
		err = fmt.Errorf("server %d executes less than %.2g of all calls after %v", server, share, time.Since(begin))
	}
	return 0, err
}

// storm is S14: the servers fail every call, and the clients would try all of them again.
func storm(ctx context.Context, size size) (seen figures, err error) {
	var closing closing
	defer closing.close()
	fleet, err := startFleet(&closing, 2, fulmar.ServerConfig{})
	if err != nil {
		return seen, err
	}
	attempts := func(document policy.Client, during time.Duration) (calls, executed int, openAfter time.Duration, err error) {
		c, err := fulmar.NewClient(fulmar.ClientConfig{Target: fleet.target(), Policy: document})
		if err != nil {
			return 0, 0, 0, err
		}
		defer c.Close()
		before, err := fleet.executions()
		if err != nil {
			return 0, 0, 0, err
		}
		var ids callers
		var all []*caller
		for range 20 {
			all = append(all, &caller{api: chaosapi.NewChaosClient(c), book: ids.book(), limit: time.Second, repeatable: true,
				request: chaosapi.Request{Zeros: -1}}) // answered with InvalidArgument
		}
		begin := time.Now()
		crowd := gather(ctx, all, 5*time.Millisecond)
		for time.Since(begin) < during {
			pause(ctx, 5*time.Millisecond)
			if openAfter == 0 {
				if _, err := chaosapi.NewChaosClient(c).Call(ctx, &chaosapi.Request{Zeros: -1}); err != nil && strings.Contains(err.Error(), "the breaker of") {
					openAfter = time.Since(begin)
				}
			}
		}
		books := crowd.end()
		after, err := fleet.executions()
		for _, book := range books {
			calls += len(book.Calls())
		}
		return calls, after.Len() - before.Len(), openAfter, err
	}
	all := policy.CodesOf(observe.Code(fulmar.InvalidArgument))
	retries := policy.Method{Retry: policy.Retry{Attempts: 5, Idempotent: true, Codes: all, BackoffMin: 5 * time.Millisecond, BackoffMax: 10 * time.Millisecond}}
	during := size.during(2*time.Second, 20*time.Second)
	calls, executed, _, err := attempts(policy.Client{Method: retries, Ejection: cluster.Ejection{FailurePercent: -1}}, during)
	if err != nil {
		return seen, err
	}
	// What a quiet time has saved comes on top: a tenth of a second's worth and some.
	allowed := float64(calls)*1.1 + 10*during.Seconds() + retriesSaved
	seen.note("calls %s", thousands(int64(calls)))
	seen.most("attempts", float64(executed), allowed, "")
	seen.least("attempts", float64(executed), float64(calls), "")
	retries.Breaker = policy.Breaker{FailurePercent: 50, Codes: all}
	calls, executed, open, err := attempts(policy.Client{Method: retries, Ejection: cluster.Ejection{FailurePercent: -1}}, during)
	if err != nil {
		return seen, err
	}
	if open == 0 {
		return seen, fmt.Errorf("the breaker did not open within %v and %d calls", during, calls)
	}
	seen.mostUnlessBusy("breaker open after", open.Seconds(), 1, " s", 0)
	seen.most("attempts then", float64(executed), float64(calls)/2, "")
	return seen, nil
}

// retriesSaved is what a budget has in the beginning, generously.
const retriesSaved = 100

// partition is S25: half of the servers cannot be reached for thirty seconds, and nobody is
// told: connections stay open and carry nothing.
func partition(ctx context.Context, size size) (seen figures, err error) {
	var closing closing
	defer closing.close()
	fleet, err := startFleet(&closing, 4, fulmar.ServerConfig{})
	if err != nil {
		return seen, err
	}
	var proxies []*proxy
	var addresses []string
	for _, server := range fleet.servers {
		p, err := startProxy(server.Address)
		if err != nil {
			return seen, err
		}
		closing.add(p.close)
		proxies, addresses = append(proxies, p), append(addresses, p.address())
	}
	document := policy.Client{
		Method:      policy.Method{Retry: policy.Retry{Attempts: 3, AttemptTimeout: 250 * time.Millisecond, Idempotent: true}},
		RetryBudget: policy.RetryBudget{PerSecond: 200},
	}
	c, err := fulmar.NewClient(fulmar.ClientConfig{Target: "static:///" + strings.Join(addresses, ","), Timeout: -1, Policy: document})
	if err != nil {
		return seen, err
	}
	closing.add(func() { _ = c.Close() })
	var ids callers
	callersOf := func() (all []*caller) {
		for range 24 {
			all = append(all, &caller{
				api: chaosapi.NewChaosClient(c), book: ids.book(), limit: time.Second, repeatable: true,
				request: chaosapi.Request{Payload: make([]byte, 100), Nap: 500},
			})
		}
		return all
	}
	quiet := busyMachine()
	first := gather(ctx, callersOf(), 11*time.Millisecond)
	pause(ctx, time.Second)
	cut := time.Now()
	mend := keepDark(proxies[:2])
	pause(ctx, 2*time.Second)
	early := first.end()
	later := gather(ctx, callersOf(), 11*time.Millisecond)
	pause(ctx, size.during(2*time.Second, 28*time.Second))
	mend()
	books := later.end()
	taken := quiet()
	executions, err := fleet.executions()
	if err != nil {
		return seen, err
	}
	all := append(early, books...)
	verdict := ledger.Judge(all, executions, 0)
	failedEarly, _, _ := fails(early)
	failed, _, _ := fails(books)
	calls := len(took(books, func(*ledger.Call) bool { return true }))
	seen.note("cut off for %.3g s, failed in the first two %d", time.Since(cut).Seconds(), failedEarly)
	seen.least("calls afterwards", float64(calls), float64(size.of(500, 20_000)), "")
	seen.unlessBusy(taken, func(f *figures) { f.most("failed of them", float64(failed), float64(calls)/1000, "") })
	seen.ended(all, taken)
	seen.judged(verdict)
	seen.examples(all)
	return seen, nil
}

// keepDark has connections through proxies carry nothing, those that are opened meanwhile
// too, until mend is called.
func keepDark(proxies []*proxy) (mend func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		for ctx.Err() == nil {
			for _, p := range proxies {
				p.darken()
			}
			pause(ctx, 10*time.Millisecond)
		}
	})
	return func() { cancel(); ended.Wait() }
}
