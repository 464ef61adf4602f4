package policy_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/policy"
)

// callPath is what a call asks when everything is switched on, without clocks, which the
// caller reads anyway.
type callPath struct {
	budget  *policy.Budget
	method  *policy.Circuit
	target  *policy.Circuit
	limiter *policy.Limiter
	breaker policy.Breaker
}

func newCallPath() *callPath {
	breaker := policy.Breaker{FailurePercent: 50}
	return &callPath{
		budget: policy.NewBudget(policy.RetryBudget{}, epoch()), method: policy.NewCircuit(breaker, epoch()), target: policy.NewCircuit(breaker, epoch()),
		limiter: policy.NewLimiter(policy.Limit{PerSecond: 10_000_000, Burst: 1000, Running: 100}, epoch()), breaker: breaker,
	}
}

func (p *callPath) call(now time.Time) bool {
	p.budget.Call()
	ofMethod, allowed := p.method.Allow(now)
	if !allowed {
		return false
	}
	ofTarget, allowed := p.target.Allow(now)
	if !allowed {
		return false
	}
	if refusal, _ := p.limiter.Allow(now); refusal != policy.NotRefused {
		return false
	}
	p.limiter.Done()
	result := p.breaker.Judge(0)
	p.method.Done(ofMethod, now, result)
	p.target.Done(ofTarget, now, result)
	return true
}

// everything is what happens to calls, once each, by name.
func everything() map[string]func(now time.Time) {
	path := newCallPath()
	budget := policy.NewBudget(policy.RetryBudget{PerSecond: 10_000_000}, epoch())
	circuit := policy.NewCircuit(policy.Breaker{FailurePercent: 50}, epoch())
	open := policy.NewCircuit(policy.Breaker{FailurePercent: 1, MinCalls: 1, Pause: 24 * time.Hour}, epoch())
	pass, _ := open.Allow(epoch())
	open.Done(pass, epoch(), policy.Failed)
	limiter := policy.NewLimiter(policy.Limit{PerSecond: 10_000_000, Running: 10}, epoch())
	empty := policy.NewLimiter(policy.Limit{PerSecond: 1}, epoch())
	callers := policy.NewCallers(policy.Limit{PerSecond: 10_000_000, Running: 10}, epoch())
	adaptive := policy.NewAdaptiveLimit(policy.Adaptive{Enabled: true}, epoch())
	retry := policy.Retry{Idempotent: true}
	failed := policy.Failure{Attempt: 1, Code: 14, Sent: true, Left: time.Second}
	var (
		explanation policy.Explanation
		breaker     policy.Breaker
	)
	return map[string]func(now time.Time){
		"Path":        func(now time.Time) { path.call(now) },
		"BudgetCall":  func(time.Time) { budget.Call() },
		"BudgetTake":  func(now time.Time) { budget.Take(now) },
		"CircuitOpen": func(now time.Time) { open.Allow(now) },
		"Limiter": func(now time.Time) {
			if refusal, _ := limiter.Allow(now); refusal == policy.NotRefused {
				limiter.Done()
			}
		},
		"LimiterRefuses": func(now time.Time) { empty.Allow(now) },
		"Judge":          func(time.Time) { _ = breaker.Judge(14) },
		"Decide":         func(now time.Time) { retry.Decide(failed, nil).Spend(budget, now) },
		"CircuitShow":    func(now time.Time) { circuit.Show(now) },
		"BudgetChange":   func(now time.Time) { budget.Configure(policy.RetryBudget{PerSecond: 10_000_000}, now) },
		"CircuitClosed": func(now time.Time) {
			pass, _ := circuit.Allow(now)
			circuit.Done(pass, now, policy.Succeeded)
		},
		"CircuitFailing": func(now time.Time) {
			pass, _ := circuit.Allow(now)
			circuit.Done(pass, now, policy.Failed)
			pass, _ = circuit.Allow(now)
			circuit.Done(pass, now, policy.Succeeded)
			pass, _ = circuit.Allow(now)
			circuit.Done(pass, now, policy.Succeeded)
		},
		"Callers": func(now time.Time) {
			if pass, refusal, _ := callers.Allow("spiffe://example.org/orders", now); refusal == policy.NotRefused {
				callers.Done(pass)
			}
		},
		"Adaptive": func(now time.Time) {
			if adaptive.Allow() {
				adaptive.Done(now, time.Millisecond)
			}
		},
		"Explain": func(now time.Time) {
			explanation.Reset()
			explanation.Start = now
			explanation.Add(policy.Attempt{Instance: "10.0.0.1:80", Picked: "least loaded of two"}).Duration = time.Millisecond
			explanation.Add(policy.Attempt{Instance: "10.0.0.2:80", Picked: "in turn"}).Duration = time.Millisecond
		},
	}
}

func TestPath_AllocatesNothing(t *testing.T) {
	for name, step := range everything() {
		now := epoch()
		if got := testing.AllocsPerRun(1000, func() {
			now = now.Add(time.Microsecond)
			step(now)
		}); got != 0 {
			t.Errorf("%s allocates %v times", name, got)
		}
	}
	path, now := newCallPath(), epoch()
	for i := range 100_000 {
		if now = now.Add(time.Microsecond); !path.call(now) {
			t.Fatalf("call %d was refused, so what is measured is not the path", i)
		}
	}
}

func BenchmarkPolicy(b *testing.B) {
	steps := everything()
	for _, name := range slices.Sorted(maps.Keys(steps)) {
		step := steps[name]
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			now := epoch()
			for b.Loop() {
				now = now.Add(time.Microsecond)
				step(now)
			}
		})
		if name == "Explain" {
			continue // It belongs to one goroutine.
		}
		b.Run(name+"Parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				now := epoch()
				for pb.Next() {
					now = now.Add(time.Microsecond)
					step(now)
				}
			})
		})
	}
}
