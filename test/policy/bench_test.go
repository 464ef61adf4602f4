package policy_test

import (
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/budget"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	"github.com/fulmar-rpc/fulmar/policy"
	"github.com/sony/gobreaker/v2"
)

// What a call costs that passes a breaker, a limit of calls in a second and at once, and a
// budget of retries. All read the clock: failsafe-go by itself, ours once a call.

func BenchmarkCall_Fulmar(b *testing.B) {
	start := time.Now()
	breaker := policy.Breaker{FailurePercent: 50}
	circuit := policy.NewCircuit(breaker, start)
	limiter := policy.NewLimiter(policy.Limit{PerSecond: 10_000_000, Burst: 10_000_000, Running: 1000}, start)
	retries := policy.NewBudget(policy.RetryBudget{}, start)
	bench(b, func() {
		now := time.Now()
		pass, allowed := circuit.Allow(now)
		refusal, _ := limiter.Allow(now)
		if !allowed || refusal != policy.NotRefused {
			b.Error("a call was refused")
			return
		}
		retries.Call()
		limiter.Done()
		circuit.Done(pass, now, breaker.Judge(0))
	})
}

// The permits of failsafe-go's policies, without its executor. Its budget has none that
// others can take.
func BenchmarkCall_FailsafePermits(b *testing.B) {
	breaker, limiter, running := failsafeBreaker(), failsafeLimiter(), bulkhead.New[any](1000)
	bench(b, func() {
		if !breaker.TryAcquirePermit() || !limiter.TryAcquirePermit() || !running.TryAcquirePermit() {
			b.Error("a call was refused")
			return
		}
		running.ReleasePermit()
		breaker.RecordSuccess()
	})
}

// Failsafe-go as it is meant to be used.
func BenchmarkCall_FailsafeExecutor(b *testing.B) {
	retries := retrypolicy.NewBuilder[any]().WithMaxRetries(1).WithBudget(budget.New()).Build()
	executor := failsafe.With[any](retries, failsafeBreaker(), failsafeLimiter(), bulkhead.New[any](1000))
	call := func() error { return nil }
	bench(b, func() {
		if err := executor.Run(call); err != nil {
			b.Error(err)
		}
	})
}

func BenchmarkBreaker_Fulmar(b *testing.B) {
	circuit := policy.NewCircuit(policy.Breaker{FailurePercent: 50}, time.Now())
	bench(b, func() {
		now := time.Now()
		pass, _ := circuit.Allow(now)
		circuit.Done(pass, now, policy.Succeeded)
	})
}

func BenchmarkBreaker_Failsafe(b *testing.B) {
	breaker := failsafeBreaker()
	bench(b, func() {
		breaker.TryAcquirePermit()
		breaker.RecordSuccess()
	})
}

func BenchmarkBreaker_Gobreaker(b *testing.B) {
	breaker := gobreaker.NewTwoStepCircuitBreaker[any](gobreaker.Settings{Interval: 10 * time.Second, BucketPeriod: time.Second})
	bench(b, func() {
		if done, err := breaker.Allow(); err == nil {
			done(nil)
		}
	})
}

func failsafeBreaker() circuitbreaker.CircuitBreaker[any] {
	return circuitbreaker.NewBuilder[any]().WithFailureRateThreshold(0.5, 200, 10*time.Second).WithDelay(5 * time.Second).Build()
}

// failsafeLimiter has bursts, as its smooth one allows no two calls at once.
func failsafeLimiter() ratelimiter.RateLimiter[any] {
	return ratelimiter.NewBursty[any](10_000_000, time.Second)
}

func bench(b *testing.B, call func()) {
	b.Run("Alone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			call()
		}
	})
	b.Run("Shared", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				call()
			}
		})
	})
}
