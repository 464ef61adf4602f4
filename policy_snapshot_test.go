package fulmar_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/policy"
)

// TestExplain_VersionIsThatOfTheCall: a document that comes while calls run holds for none of
// them in part.
func TestExplain_VersionIsThatOfTheCall(t *testing.T) {
	const versions = 300
	stub, _ := failingCalls(fulmar.Unavailable, -1)
	r := serve(t, fulmar.ServerConfig{}, stub)
	client := dialAny(t, fulmar.ClientConfig{Target: r.address, Policy: retries(policy.Retry{Attempts: 1}).Policy})
	api := testservice.NewEchoClient(client)
	var stop atomic.Bool
	var calls atomic.Int64
	wrong := make(chan string, 2)
	for range 2 {
		go func() {
			said := ""
			for !stop.Load() {
				var e policy.Explanation
				_, _ = api.Add(context.Background(), 1, 2, fulmar.Explain(&e))
				calls.Add(1)
				// Odd versions have two attempts, even ones have one.
				if want := int(e.Version%2) + 1; e.Len() != want {
					said = fmt.Sprintf("%d attempts, want %d: %v", e.Len(), want, &e)
				}
			}
			wrong <- said
		}()
	}
	for version := 1; version <= versions; version++ {
		document := retries(policy.Retry{Attempts: version%2 + 1, BackoffMin: -1}).Policy
		document.RetryBudget.PerSecond = 1_000_000
		if err := client.SetPolicy(document); err != nil {
			t.Fatal(err)
		}
		for before := calls.Load(); calls.Load() < before+2; {
			runtime.Gosched() // until some have begun and ended with it
		}
	}
	stop.Store(true)
	for range 2 {
		if said := <-wrong; said != "" {
			t.Error(said)
		}
	}
}

// TestTrial_OfThePolicyThatHolds decides as that does, whatever is special about the call.
func TestTrial_OfThePolicyThatHolds(t *testing.T) {
	for name, test := range map[string]struct {
		instances int
		config    fulmar.ClientConfig
		stub      *testservice.Stub
	}{
		"one instance":      {instances: 1, config: retries(policy.Retry{BackoffMin: -1})},
		"several instances": {instances: 3, config: retries(policy.Retry{Attempts: 3, BackoffMin: -1})},
		"RetryIf": {instances: 2, config: func() fulmar.ClientConfig {
			config := retries(policy.Retry{Attempts: 3, BackoffMin: -1})
			calls := 0
			config.RetryIf = func(fulmar.Unary, error) bool { calls++; return calls%3 > 0 }
			return config
		}()},
		"RetryIf, replies": {instances: 2, stub: &testservice.Stub{OnAdd: func(context.Context, int32, int32) (int32, error) { return 3, nil }}, config: func() fulmar.ClientConfig {
			config := retries(policy.Retry{Attempts: 3, BackoffMin: -1})
			config.RetryIf = func(fulmar.Unary, error) bool { return true }
			return config
		}()},
	} {
		t.Run(name, func(t *testing.T) {
			test.config.Policy.Ejection.FailurePercent = -1
			withSeveral(t, test.instances, test.config, func(s *several) {
				stub, _ := failingCalls(fulmar.Unavailable, -1)
				if test.stub != nil {
					stub = test.stub
				}
				s.serve(stub, s.addresses...)
				trial, err := policy.NewTrial(test.config.Policy, time.Now())
				if err != nil {
					t.Fatal(err)
				}
				s.client.Try(trial)
				for range 20 {
					_, _ = s.api.Add(context.Background(), 1, 2)
				}
				if got := trial.Show(); got.Calls != 20 || got.Differs != 0 || got.Retries != got.RetriesLive {
					t.Errorf("%v", got)
				}
			})
		})
	}
}

// TestPolicy_NamesThatPeersMakeUp take nothing from the methods that the document names,
// however many there are, nor from a service that it names.
func TestPolicy_NamesThatPeersMakeUp(t *testing.T) {
	slow := func(ctx context.Context, _ fulmar.Raw) (fulmar.Raw, error) {
		if call, _ := fulmar.CallFrom(ctx); call.Service() != "Junk" {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return fulmar.Raw{0}, nil
	}
	r := serveAny(t, fulmar.ServerConfig{UnknownHandler: slow}, func(fulmar.Registrar) {})
	client := dialAny(t, fulmar.ClientConfig{Target: r.address, Policy: policy.Client{Methods: map[string]policy.Method{
		"Orders.place": {Timeout: 20 * time.Millisecond}, "Stock": {Timeout: 30 * time.Millisecond},
	}}})
	call := func(service, name string) (time.Duration, error) {
		method, err := fulmar.RawMethod(service, name, false)
		if err != nil {
			t.Fatal(err)
		}
		in, out := fulmar.Raw{0}, fulmar.Raw{}
		began := time.Now()
		err = client.Call(context.Background(), method, &in, &out)
		return time.Since(began), err
	}
	for i := range limits.PolicyMethods + 10 {
		if _, err := call("Junk", fmt.Sprint("m", i)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range [][2]string{{"Orders", "place"}, {"Stock", "count"}, {"Stock", "move"}} {
		if took, err := call(name[0], name[1]); fulmar.CodeOf(err) != fulmar.DeadlineExceeded {
			t.Errorf("%s: %v after %v", name, err, took)
		}
	}
	document, _, _ := client.Policy()
	document.Methods = map[string]policy.Method{"Orders": {Timeout: 20 * time.Millisecond}}
	if err := client.SetPolicy(document); err != nil {
		t.Fatal(err)
	}
	if took, err := call("Orders", "cancel"); fulmar.CodeOf(err) != fulmar.DeadlineExceeded {
		t.Errorf("behind another document: %v after %v", err, took)
	}
	// What documents have named that hold no more takes no memory.
	document.Breaker = policy.Breaker{FailurePercent: 90}
	for i := range 20 {
		service := fmt.Sprint("Other", i)
		document.Methods = map[string]policy.Method{service + ".place": {Timeout: time.Millisecond}, service: {Timeout: time.Millisecond}}
		if err := client.SetPolicy(document); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"place", "count"} {
			if took, err := call(service, name); fulmar.CodeOf(err) != fulmar.DeadlineExceeded {
				t.Errorf("%s.%s: %v after %v", service, name, err, took)
			}
		}
	}
	document.Methods = nil
	if err := client.SetPolicy(document); err != nil {
		t.Fatal(err)
	}
	if n := len(client.Stats().Policy.Methods); n != limits.PolicyMethods+1 {
		t.Errorf("%d names have a breaker, want %d and one for others", n, limits.PolicyMethods)
	}
}
