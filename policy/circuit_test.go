package policy_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/observe"
	"github.com/fulmar-rpc/fulmar/policy"
)

// circuitScript drives a Circuit through one case, step by step.
type circuitScript struct {
	t       *testing.T
	circuit *policy.Circuit
	now     time.Time
	passes  map[string]policy.Pass
}

func newCircuitScript(t *testing.T, config policy.Breaker) *circuitScript {
	return &circuitScript{t: t, circuit: policy.NewCircuit(config, epoch()), now: epoch(), passes: map[string]policy.Pass{}}
}

// run takes steps with spaces between:
//
//	+3s -1h      the clock goes on, or back
//	ok fail mute a call that is let through and ends so; ok*8 is eight of them
//	no           a call that is refused
//	begin:a      a call that is let through; ok:a, fail:a and mute:a end it
//	=open        the state
//	=3/10        three failures of ten calls are shown
func (s *circuitScript) run(steps string) {
	s.t.Helper()
	for step := range strings.FieldsSeq(steps) {
		word, count := step, 1
		if name, times, ok := strings.Cut(step, "*"); ok {
			word = name
			if _, err := fmt.Sscan(times, &count); err != nil {
				s.t.Fatalf("%s: %v", step, err)
			}
		}
		for range count {
			s.step(word)
			if s.t.Failed() {
				s.t.Fatalf("at %q of %q", step, steps)
			}
		}
	}
}

func (s *circuitScript) step(word string) {
	s.t.Helper()
	results := map[string]policy.Result{"ok": policy.Succeeded, "fail": policy.Failed, "mute": policy.Silent}
	name, id, named := strings.Cut(word, ":")
	switch {
	case word[0] == '+', word[0] == '-':
		by, err := time.ParseDuration(word)
		if err != nil {
			s.t.Fatal(err)
		}
		s.now = s.now.Add(by)
	case word[0] == '=':
		state := s.circuit.Show(s.now)
		if got := []string{state.Position.String(), fmt.Sprintf("%d/%d", state.Failures, state.Calls)}; got[0] != word[1:] && got[1] != word[1:] {
			s.t.Errorf("it shows %v, want %s", got, word[1:])
		}
	case name == "no":
		if _, allowed := s.circuit.Allow(s.now); allowed {
			s.t.Errorf("a call was let through")
		}
	case name == "begin", !named:
		pass, allowed := s.circuit.Allow(s.now)
		if !allowed {
			s.t.Errorf("a call was refused")
		}
		s.passes[id] = pass
		if name != "begin" {
			s.circuit.Done(pass, s.now, results[name])
		}
	default:
		s.circuit.Done(s.passes[id], s.now, results[name])
	}
}

func TestCircuit_FollowsItsStates(t *testing.T) {
	quick := policy.Breaker{FailurePercent: 50, MinCalls: 4}
	twice := policy.Breaker{FailurePercent: 50, MinCalls: 4, Probes: 2}
	tests := []struct {
		name   string
		config policy.Breaker
		steps  string
	}{
		{"off by default", policy.Breaker{}, "=off fail*1000 =off ok"},
		{"closed", quick, "=closed ok*100 =0/100 mute*5 =0/100"},
		{"opens", quick, "ok*2 fail =closed fail =open no no"},
		{"needs calls", quick, "fail*3 =closed =3/3 fail =open"},
		{"needs failures", quick, "ok*5 fail*4 =closed fail =open"},
		{"does not open for a success", quick, "fail*3 ok =closed ok fail =open"},
		{"default number of calls", policy.Breaker{FailurePercent: 100}, "fail*199 =closed fail =open"},
		{"opens by a share only", policy.Breaker{FailurePercent: 100, MinCalls: 1}, "ok fail*100 =closed"},
		{"forgets after the window", quick, "fail*3 +9s =3/3 +1s =0/0 fail*3 =closed fail =open"},
		{"forgets a tenth at a time", quick, "fail +1s fail +1s fail +7s =3/3 +1s =2/2 +1s =1/1 +1s =0/0"},
		{"pauses", quick, "fail*4 +4999ms no =open +1ms ok =closed =0/0"},
		{"probes fail", quick, "fail*4 +5s fail =open no +4s no +1s ok =closed"},
		{"one probe at a time", quick, "fail*4 +5s begin:a no no =probing ok:a =closed ok"},
		{"two probes", twice, "fail*4 +5s ok =probing ok =closed"},
		{"two probes, one at a time", twice, "fail*4 +5s begin:a no ok:a begin:b no ok:b =closed"},
		{"second probe fails", twice, "fail*4 +5s ok fail =open no"},
		{"a silent probe lets the next", quick, "fail*4 +5s begin:a no mute:a =probing begin:b no ok:b =closed"},
		{"a probe that never ends", quick, "fail*4 +5s begin:a +9s no +1s begin:b no ok:b =closed"},
		{"what it says late counts", twice, "fail*4 +5s begin:a +10s begin:b ok:a no =probing ok:b =closed"},
		{"and fails late", quick, "fail*4 +5s begin:a +10s begin:b fail:a =open ok:b =open no"},
		{"a late probe of another time says nothing", quick, "fail*4 +5s begin:a +10s begin:b fail:b +5s begin:c ok:a =probing fail:a =probing ok:c =closed"},
		{"what began before it opened says nothing", quick, "begin:a fail*4 +5s begin:p ok:a =probing fail:a =probing ok:p =closed fail:a =0/0"},
		{"a call that ends while it is open", quick, "begin:a fail*4 +1s ok:a =open fail:a +4s ok =closed"},
		{"clock goes far", quick, "fail*3 +8760h =0/0 ok fail =1/2"},
		{"clock goes far while open", quick, "fail*4 +8760h ok =closed"},
		{"clock is a little back while open", quick, "fail*4 -500ms no +5s no +499ms no +1ms ok"},
		{"clock is set back while open", quick, "fail*4 -8760h no +4999ms no +1ms ok =closed"},
		{"clock is set back while probing", quick, "fail*4 +5s begin:a -8760h begin:b no ok:b =closed"},
		{"clock is set back while closed", quick, "fail*3 -8760h =0/0 fail*3 =closed fail =open"},
		{"a window of two seconds", policy.Breaker{FailurePercent: 50, MinCalls: 4, Window: 2 * time.Second}, "fail*3 +2s =0/0 fail +1s fail*2 fail =open"},
		{"a pause of one second", policy.Breaker{FailurePercent: 50, MinCalls: 4, Pause: time.Second}, "fail*4 +999ms no +1ms ok"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { newCircuitScript(t, test.config).run(test.steps) })
	}
}

func TestCircuit_ChangesWhileItRuns(t *testing.T) {
	config := policy.Breaker{FailurePercent: 50, MinCalls: 10}
	change := func(s *circuitScript, by func(*policy.Breaker)) {
		next := config
		by(&next)
		s.circuit.Configure(next, s.now)
	}
	tests := []struct {
		name, before string
		by           func(*policy.Breaker)
		after        string
	}{
		{"fewer calls", "fail*8", func(b *policy.Breaker) { b.MinCalls = 9 }, "=8/8 fail =open"},
		{"a longer window", "fail*3 +4s ok*3 +4s", func(b *policy.Breaker) { b.Window = time.Minute }, "=3/6 +40s =3/6 +20s =0/0"},
		{"a shorter window", "fail*3 +4s ok*3 +4s", func(b *policy.Breaker) { b.Window = 5 * time.Second }, "=0/3 +2s =0/0"},
		{"a shorter window, in which old calls would have the places of new ones", "+4s fail*3 +5s fail*2", func(b *policy.Breaker) { b.Window = 5 * time.Second }, "=2/2 +4500ms =2/2 +500ms =0/0"},
		{"a much shorter window", "fail*3", func(b *policy.Breaker) { b.Window = 100 * time.Millisecond }, "=3/3 +100ms =0/0"},
		{"a shorter pause", "fail*10 +2s no", func(b *policy.Breaker) { b.Pause = time.Second }, "ok =closed"},
		{"a longer pause", "fail*10 +2s no", func(b *policy.Breaker) { b.Pause = time.Minute }, "+57s no +1s ok =closed"},
		{"more probes", "fail*10 +5s begin:a", func(b *policy.Breaker) { b.Probes = 2 }, "ok:a =probing ok =closed"},
		{"off while open", "begin:a fail*10 no", func(b *policy.Breaker) { b.FailurePercent = 0 }, "ok =off fail:a =off fail*20 ok"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newCircuitScript(t, config)
			s.run(test.before)
			change(s, test.by)
			s.run(test.after)
		})
	}
	t.Run("on", func(t *testing.T) {
		s := newCircuitScript(t, policy.Breaker{})
		s.run("begin:a fail*100")
		s.circuit.Configure(config, s.now)
		s.run("=closed =0/0 fail:a =0/0 fail*9 =closed fail =open")
	})
}

func TestCircuit_ShowsTimes(t *testing.T) {
	s := newCircuitScript(t, policy.Breaker{FailurePercent: 50, MinCalls: 1})
	s.run("+1m fail +1s")
	want := policy.CircuitState{Position: policy.CircuitOpen, Since: epoch().Add(time.Minute), Until: epoch().Add(time.Minute + limits.BreakerPause)}
	if got := s.circuit.Show(s.now); got != want {
		t.Errorf("it shows %+v, want %+v", got, want)
	}
	if got, want := want.String(), "open since 2026-01-01T00:01:00Z until 2026-01-01T00:01:05Z"; got != want {
		t.Errorf("it is written as %q, want %q", got, want)
	}
	s.run("+4s ok ok")
	if got, want := s.circuit.Show(s.now), (policy.CircuitState{Position: policy.CircuitClosed, Since: s.now, Calls: 1}); got != want {
		t.Errorf("it shows %+v, want %+v", got, want)
	}
}

func TestBreaker_Judges(t *testing.T) {
	var b policy.Breaker
	for code := range 17 {
		want := policy.Succeeded
		switch code {
		case 1:
			want = policy.Silent
		case 2, 4, 8, 13, 14, 15:
			want = policy.Failed
		}
		if got := b.Judge(observe.Code(code)); got != want {
			t.Errorf("code %d is judged %d, want %d", code, got, want)
		}
	}
	b.Codes = policy.CodesOf(1, 5)
	if b.Judge(1) != policy.Failed || b.Judge(5) != policy.Failed || b.Judge(14) != policy.Succeeded {
		t.Error("the codes that are given do not count")
	}
}

// circuitModel is a breaker as one would write it without thinking of speed.
type circuitModel struct {
	config     policy.Breaker
	calls      []modelCall
	state      policy.CircuitPosition
	since      time.Time
	generation int
	probing    bool
	probe      int
	probeSince time.Time
	succeeded  int
}

type modelCall struct {
	at     time.Time
	failed bool
}

type modelPass struct{ generation, probe int }

func (m *circuitModel) enter(state policy.CircuitPosition, now time.Time) {
	m.state, m.since, m.generation, m.probing = state, now, m.generation+1, false
}

func (m *circuitModel) allow(now time.Time) (modelPass, bool) {
	if m.state == policy.CircuitClosed {
		return modelPass{generation: m.generation}, true
	}
	if m.state == policy.CircuitOpen {
		if now.Sub(m.since) < m.config.Pause {
			return modelPass{}, false
		}
		m.enter(policy.CircuitProbing, now)
		m.succeeded = 0
	}
	if m.probing && now.Sub(m.probeSince) < limits.BreakerProbeTime {
		return modelPass{}, false
	}
	m.probe++
	m.probing, m.probeSince = true, now
	return modelPass{m.generation, m.probe}, true
}

func (m *circuitModel) done(pass modelPass, now time.Time, result policy.Result) {
	switch {
	case pass.generation != m.generation:
	case pass.probe != 0:
		m.probing = m.probing && pass.probe != m.probe
		if result == policy.Failed {
			m.enter(policy.CircuitOpen, now)
		} else if result == policy.Succeeded {
			if m.succeeded++; m.succeeded == m.config.Probes {
				m.calls = nil
				m.enter(policy.CircuitClosed, now)
			}
		}
	case result != policy.Silent:
		m.calls = append(m.calls, modelCall{now, result == policy.Failed})
		calls, failures := m.sum(now)
		if result == policy.Failed && calls >= m.config.MinCalls && failures*100 >= calls*m.config.FailurePercent {
			m.enter(policy.CircuitOpen, now)
		}
	}
}

// sum counts the calls of the tenth of the window that now is in, and of nine before.
func (m *circuitModel) sum(now time.Time) (calls, failures int) {
	tenth := func(t time.Time) time.Duration { return t.Sub(epoch()) / (m.config.Window / 10) }
	for _, call := range m.calls {
		if age := tenth(now) - tenth(call.at); age < 10 {
			calls++
			if call.failed {
				failures++
			}
		}
	}
	return calls, failures
}

func TestCircuit_DoesWhatTheModelDoes(t *testing.T) {
	var states [policy.CircuitProbing + 1]int
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 7))
		config := policy.Breaker{
			FailurePercent: 1 + random.IntN(100), MinCalls: 1 + random.IntN(20), Probes: 1 + random.IntN(3),
			Window: time.Duration(1+random.IntN(100)) * 100 * time.Millisecond, Pause: time.Duration(1+random.IntN(50)) * 100 * time.Millisecond,
		}
		circuit, model, now := policy.NewCircuit(config, epoch()), &circuitModel{config: config, state: policy.CircuitClosed}, epoch()
		type running struct {
			pass  policy.Pass
			model modelPass
		}
		var calls []running
		failing := 0
		for step := range 1000 {
			if step%100 == 0 {
				failing = random.IntN(101)
			}
			now = now.Add(time.Duration(random.ExpFloat64() * float64(100*time.Millisecond)))
			if random.IntN(50) == 0 {
				now = now.Add(time.Duration(random.IntN(20)) * time.Second)
			}
			if random.IntN(2) == 0 {
				pass, allowed := circuit.Allow(now)
				modelPass, modelAllowed := model.allow(now)
				if allowed != modelAllowed {
					t.Fatalf("seed %d, step %d: allowed %v, the model %v", seed, step, allowed, modelAllowed)
				}
				if allowed {
					calls = append(calls, running{pass, modelPass})
				}
			} else if len(calls) > 0 {
				i := random.IntN(len(calls))
				call, result := calls[i], policy.Succeeded
				calls[i] = calls[len(calls)-1]
				calls = calls[:len(calls)-1]
				if random.IntN(100) < failing {
					result = policy.Failed
				} else if random.IntN(10) == 0 {
					result = policy.Silent
				}
				circuit.Done(call.pass, now, result)
				model.done(call.model, now, result)
			}
			state := circuit.Show(now)
			states[state.Position]++
			if state.Position != model.state || state.Since.Sub(model.since) != 0 && step > 0 && model.generation > 0 {
				t.Fatalf("seed %d, step %d: %+v, the model %v since %v", seed, step, state, model.state, model.since)
			}
			if wantCalls, wantFailures := model.sum(now); state.Position == policy.CircuitClosed && (state.Calls != wantCalls || state.Failures != wantFailures) {
				t.Fatalf("seed %d, step %d: %+v, the model counts %d of %d", seed, step, state, wantFailures, wantCalls)
			}
		}
	}
	for position := policy.CircuitClosed; position <= policy.CircuitProbing; position++ {
		if states[position] < 200 {
			t.Errorf("the circuits were %v %d times only", position, states[position])
		}
	}
}

// With goroutines: nothing is let through while it is open, one probe runs at a time, and
// no count is lost.
func TestCircuit_IsSharedByGoroutines(t *testing.T) {
	const goroutines, calls = 8, 20_000
	c := policy.NewCircuit(policy.Breaker{FailurePercent: 100}, epoch())
	var wait sync.WaitGroup
	for g := range goroutines {
		wait.Go(func() {
			for i := range calls {
				pass, _ := c.Allow(epoch())
				result := policy.Succeeded
				if (i+g)%4 == 1 {
					result = policy.Failed
				}
				c.Done(pass, epoch(), result)
			}
		})
	}
	wait.Wait()
	if got := c.Show(epoch()); got.Calls != goroutines*calls || got.Failures != goroutines*calls/4 {
		t.Errorf("%+v, want %d calls", got, goroutines*calls)
	}
	s := &circuitScript{t: t, circuit: policy.NewCircuit(policy.Breaker{FailurePercent: 1, MinCalls: 1, Probes: 1000}, epoch()), now: epoch(), passes: map[string]policy.Pass{}}
	s.run("fail +5s")
	var running, most, probes atomic.Int64
	for range goroutines {
		wait.Go(func() {
			for range calls {
				pass, allowed := s.circuit.Allow(s.now)
				if !allowed {
					continue
				}
				if pass.Probe() {
					probes.Add(1)
					if running.Add(1) > 1 {
						most.Store(2)
					}
					running.Add(-1)
				}
				s.circuit.Done(pass, s.now, policy.Succeeded)
			}
		})
	}
	wait.Wait()
	if most.Load() > 1 || probes.Load() != 1000 {
		t.Errorf("%d probes ran at once, %d in all, want 1000", most.Load(), probes.Load())
	}
	s.run("=closed")
}

// A configuration that comes while a probe ends is not lost.
func TestCircuit_KeepsTheLastConfiguration(t *testing.T) {
	config := policy.Breaker{FailurePercent: 1, MinCalls: 1}
	for i := range 10_000 {
		s := newCircuitScript(t, config)
		s.run("fail +5s begin:a")
		next := config
		next.Pause = time.Minute
		var wait sync.WaitGroup
		wait.Go(func() { s.circuit.Configure(next, s.now) })
		wait.Go(func() { s.circuit.Done(s.passes["a"], s.now, policy.Succeeded) })
		wait.Wait()
		s.run("=closed fail =open")
		if state := s.circuit.Show(s.now); state.Until.Sub(state.Since) != time.Minute {
			t.Fatalf("round %d: the pause is %v, want 1m", i, state.Until.Sub(state.Since))
		}
	}
}

// A bucket that is full is halved: the share of failures stays.
func TestCircuit_CountsMoreThanFits(t *testing.T) {
	if testing.Short() {
		t.Skip("makes five million calls")
	}
	s := newCircuitScript(t, policy.Breaker{FailurePercent: 50})
	pass, _ := s.circuit.Allow(s.now)
	for i := range 5_000_000 {
		result := policy.Succeeded
		if i%4 == 0 {
			result = policy.Failed
		}
		s.circuit.Done(pass, s.now, result)
	}
	got := s.circuit.Show(s.now)
	if share := float64(got.Failures) / float64(got.Calls); got.Calls < 1_000_000 || share < 0.249 || share > 0.251 || got.Position != policy.CircuitClosed {
		t.Errorf("after five million calls of which a quarter failed: %+v", got)
	}
}

// TestCircuit_CountsRefusals: those of an open one, of one that probes, and of one whose
// callers look at clocks that are a little late.
func TestCircuit_CountsRefusals(t *testing.T) {
	s := newCircuitScript(t, policy.Breaker{FailurePercent: 50, MinCalls: 2, Pause: time.Second})
	s.run("fail*2 =open no*3 -100ms no*4 +2s begin:a no*5 ok:a =closed ok*3")
	if refused := s.circuit.Show(s.now).Refused; refused != 12 {
		t.Errorf("%d calls were refused, want 12", refused)
	}
}
