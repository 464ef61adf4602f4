package policy_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/policy"
)

func newServerTrial(t *testing.T, document policy.Server) *policy.ServerTrial {
	t.Helper()
	trial, err := policy.NewServerTrial(document, epoch())
	if err != nil {
		t.Fatal(err)
	}
	return trial
}

// TestServerTrial_SaysWhatItWouldHaveRefused plays ten calls that come at once, and end, to
// each kind of limit, while the policy that holds has none.
func TestServerTrial_SaysWhatItWouldHaveRefused(t *testing.T) {
	limit := policy.Limit{Running: 3}
	for name, test := range map[string]struct {
		document policy.Server
		refused  uint64
	}{
		"none":                   {policy.Server{}, 0},
		"all":                    {policy.Server{Limit: limit}, 7},
		"rate":                   {policy.Server{Limit: policy.Limit{PerSecond: 10, Burst: 4}}, 6},
		"caller":                 {policy.Server{CallerLimit: limit}, 4},
		"service":                {policy.Server{Methods: map[string]policy.Limit{"Orders": limit}}, 7},
		"method":                 {policy.Server{Methods: map[string]policy.Limit{"Orders.place": limit}}, 2},
		"method, as gRPC has it": {policy.Server{Methods: map[string]policy.Limit{"Orders/place": limit}}, 2},
		"another method":         {policy.Server{Methods: map[string]policy.Limit{"Orders.cancel": limit, "Books": limit}}, 0},
		"adaptive":               {policy.Server{Adaptive: policy.Adaptive{Enabled: true, MinRunning: 2, MaxRunning: 3}}, 7},
	} {
		t.Run(name, func(t *testing.T) {
			trial := newServerTrial(t, test.document)
			now := epoch()
			for round := range 3 {
				var calls []func(time.Duration, bool)
				for i := range 10 {
					calls = append(calls, trial.Begin(fmt.Sprint("caller ", i%2), "Orders", []string{"list", "place"}[i%2], false, now))
				}
				for _, end := range calls {
					end(time.Millisecond, false)
				}
				rounds := uint64(round + 1)
				got := trial.Show(now)
				if got.Calls != 10*rounds || got.Refused != test.refused*rounds || got.Differs != got.Refused || got.RefusedLive != 0 || got.Limits.Refused != got.Refused {
					t.Errorf("round %d: %+v, want %d refused", round, got, test.refused*rounds)
				}
				if got.Limits.Limit.Running != 0 {
					t.Errorf("%d calls run that have ended", got.Limits.Limit.Running)
				}
				now = now.Add(time.Minute)
			}
		})
	}
}

// TestServerTrial_NamesTheLimits that would have refused.
func TestServerTrial_NamesTheLimits(t *testing.T) {
	trial := newServerTrial(t, policy.Server{
		CallerLimit: policy.Limit{Running: 9},
		Methods:     map[string]policy.Limit{"Orders": {Running: 8}, "Orders.place": {Running: 2}, "Orders.list": {Running: 1}, "Books": {Running: 1}},
	})
	for range 5 {
		trial.Begin("a", "Orders", "place", false, epoch())
	}
	for range 20 {
		trial.Begin("b", "Orders", "find", false, epoch())
	}
	state := trial.Show(epoch())
	if len(state.Limits.Methods) != 2 || state.Limits.Methods["Orders.place"].Refused != 3 || state.Limits.Methods["Orders"].Refused != 14 ||
		state.Limits.Methods["Orders.place"].Running != 2 || state.Limits.Methods["Orders"].Running != 8 || state.Limits.Callers.Known != 2 {
		t.Errorf("%+v", state.Limits)
	}
	if text := state.String(); text != "of 25 calls it would have refused 17 (0 were): 0 decisions differ" {
		t.Error(text)
	}
}

// TestServerTrial_RefusedCallsTakeNothing: neither those that it would have refused, nor those
// that the policy that holds has.
func TestServerTrial_RefusedCallsTakeNothing(t *testing.T) {
	trial := newServerTrial(t, policy.Server{
		Limit: policy.Limit{Running: 2}, CallerLimit: policy.Limit{Running: 5}, Methods: map[string]policy.Limit{"Orders": {Running: 4}, "Orders.place": {Running: 3}},
	})
	for range 100 {
		trial.Begin("a", "Orders", "place", false, epoch())(time.Millisecond, true)
	}
	first, second := trial.Begin("a", "Orders", "place", false, epoch()), trial.Begin("a", "Orders", "place", false, epoch())
	for range 100 {
		trial.Begin("a", "Orders", "place", false, epoch())(time.Millisecond, true)
	}
	state := trial.Show(epoch())
	if state.Calls != 202 || state.RefusedLive != 200 || state.Refused != 100 || state.Differs != 100 {
		t.Errorf("%+v", state)
	}
	first(time.Millisecond, false)
	second(time.Millisecond, false)
	for name, limiter := range map[string]policy.LimiterState{
		"all": trial.Show(epoch()).Limits.Limit, "service": trial.Show(epoch()).Limits.Methods["Orders"],
		"method": trial.Show(epoch()).Limits.Methods["Orders.place"], "caller": trial.Show(epoch()).Limits.Callers.Callers[0],
	} {
		if limiter.Running != 0 {
			t.Errorf("%s: %d run", name, limiter.Running)
		}
	}
}

// TestServerTrial_LearnsFromCallsThatRan: how long streams last says nothing about how busy
// the server is, nor how long it took to refuse a call.
func TestServerTrial_LearnsFromCallsThatRan(t *testing.T) {
	const took = 40 * time.Millisecond
	for name, test := range map[string]struct {
		stream, refused bool
		lately          time.Duration
	}{
		"calls":           {false, false, took},
		"streams":         {true, false, 0},
		"refused calls":   {false, true, 0},
		"refused streams": {true, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			trial := newServerTrial(t, policy.Server{Adaptive: policy.Adaptive{Enabled: true}})
			now := epoch()
			for range 4 * limits.AdaptiveCalls {
				end := trial.Begin("a", "Orders", "place", test.stream, now)
				now = now.Add(took)
				end(took, test.refused)
			}
			state := trial.Show(now).Limits.Adaptive
			if state.Lately.Round(time.Millisecond) != test.lately || state.Undisturbed.Round(time.Millisecond) != test.lately || state.Running != 0 {
				t.Errorf("%+v, want calls to have taken %v", state, test.lately)
			}
		})
	}
}

// TestServerTrial_StreamsHoldNoPlace of the adaptive limit, however many are open and however
// often they end. They are asked for one when they begin.
func TestServerTrial_StreamsHoldNoPlace(t *testing.T) {
	trial := newServerTrial(t, policy.Server{Adaptive: policy.Adaptive{Enabled: true, MinRunning: 2, MaxRunning: 2}})
	stream := func() func(time.Duration, bool) { return trial.Begin("a", "Orders", "watch", true, epoch()) }
	var open []func(time.Duration, bool)
	for range 100 {
		open = append(open, stream())
	}
	first, second := trial.Begin("a", "Orders", "place", false, epoch()), trial.Begin("a", "Orders", "place", false, epoch())
	if state := trial.Show(epoch()); state.Refused != 0 || state.Limits.Adaptive.Running != 2 || state.Limits.Limit.Running != 102 {
		t.Errorf("two calls beside 100 streams: %+v", state.Limits)
	}
	open = append(open, stream())
	if state := trial.Show(epoch()); state.Refused != 1 {
		t.Errorf("a stream beside two calls: %+v", state.Limits)
	}
	for _, end := range append(open, first, second) {
		end(time.Hour, false)
	}
	if state := trial.Show(epoch()); state.Limits.Adaptive.Running != 0 || state.Limits.Limit.Running != 0 {
		t.Errorf("all have ended: %+v", state.Limits)
	}
}

func TestNewServerTrial_RefusesWhatADocumentMayNotHave(t *testing.T) {
	_, err := policy.NewServerTrial(policy.Server{Connections: 2_000_000_000}, epoch())
	if err == nil || !strings.Contains(err.Error(), "server.connections") {
		t.Error(err)
	}
}

// TestServerTrial_IsBounded: names come from peers of a proxy.
func TestServerTrial_IsBounded(t *testing.T) {
	methods := map[string]policy.Limit{"Orders": {Running: 1}}
	trial := newServerTrial(t, policy.Server{Methods: methods})
	delete(methods, "Orders") // what it was given is the caller's
	for i := range 100_000 {
		trial.Begin("a", fmt.Sprint("Made", i), "up", false, epoch())(time.Millisecond, false)
	}
	trial.Begin("a", "Orders", "place", false, epoch())
	if state := trial.Show(epoch()); len(state.Limits.Methods) != 1 || state.Refused != 0 || state.Calls != 100_001 {
		t.Errorf("%+v", state)
	}
}

// TestServerTrial_ByManyAtOnce ends with nothing taken.
func TestServerTrial_ByManyAtOnce(t *testing.T) {
	trial := newServerTrial(t, policy.Server{
		Limit: policy.Limit{Running: 3}, CallerLimit: policy.Limit{Running: 2}, Methods: map[string]policy.Limit{"Orders": {Running: 2}, "Orders.m1": {Running: 1}},
		Adaptive: policy.Adaptive{Enabled: true},
	})
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 1))
			for range 2000 {
				end := trial.Begin(fmt.Sprint("caller ", random.IntN(3)), "Orders", fmt.Sprint("m", random.IntN(3)), false, epoch())
				end(time.Duration(random.IntN(2))*time.Millisecond, random.IntN(4) == 0)
			}
		})
	}
	all.Wait()
	state := trial.Show(epoch())
	if state.Calls != 16_000 || state.Limits.Limit.Running != 0 || state.Limits.Methods["Orders"].Running != 0 || state.Limits.Methods["Orders.m1"].Running != 0 {
		t.Errorf("%+v", state)
	}
	for _, caller := range state.Limits.Callers.Callers {
		if caller.Running != 0 {
			t.Errorf("%+v", caller)
		}
	}
}
