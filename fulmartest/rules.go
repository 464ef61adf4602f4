package fulmartest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar"
)

// Rule says what becomes of calls that a server gets, streams among them.
type Rule struct {
	// Method chooses calls by the name of a service, "Orders", or a method,
	// "Orders.place", as the constants of generated code have them. Default: all calls.
	Method string
	// Calls is how many calls the rule is for: the next so many. Default: all, until
	// Remove.
	Calls int
	// Delay is how long a call waits first. It ends early, with the call, when the
	// caller stops waiting. Default: 0.
	Delay time.Duration
	// Err is what the call fails with then, in place of calling the handler:
	// fulmar.NewError(fulmar.Unavailable, "busy"), a business error, or an exception that
	// the IDL declares. Such a call counts as not executed. Default: the handler is called.
	Err error
	// After calls the handler before the call fails with Err, which then counts as
	// executed: its result is lost. The messages of a stream are not.
	After bool
	// Messages lets so many messages of the handler of a stream through. The next one
	// fails with Err, and so does the call, whatever the handler makes of it. Calls with
	// one answer are not concerned. Default: 0, which is none with Err, and no failure of
	// a message without it.
	Messages int
}

// Injection is a rule that a server obeys. Safe for concurrent use.
type Injection struct {
	rules *rules
	rule  Rule
	// hits is guarded by rules.mu.
	hits int
}

// Inject makes the server obey a rule, in front of those it has: of several that choose
// a call the last one counts. Rules outlast Stop and Start.
func (s *Server) Inject(rule Rule) *Injection {
	s.t.Helper()
	if rule.After && rule.Err == nil {
		s.t.Fatalf("fulmartest: a rule with After needs an Err")
	}
	if rule.Calls < 0 || rule.Delay < 0 || rule.Messages < 0 {
		s.t.Fatalf("fulmartest: a rule for %d calls with a delay of %v, behind %d messages", rule.Calls, rule.Delay, rule.Messages)
	}
	if rule.Messages > 0 && (rule.Err == nil || rule.After) {
		s.t.Fatalf("fulmartest: a rule with Messages needs an Err, and no After")
	}
	return s.rules.add(rule)
}

// Hits returns how many calls the rule was applied to.
func (i *Injection) Hits() int {
	i.rules.mu.Lock()
	defer i.rules.mu.Unlock()
	return i.hits
}

// Remove ends the rule for calls to come.
func (i *Injection) Remove() {
	i.rules.mu.Lock()
	defer i.rules.mu.Unlock()
	i.rules.injected = slices.DeleteFunc(i.rules.injected, func(other *Injection) bool { return other == i })
}

// rules are what a server obeys, the first one first. The zero value is ready to use.
type rules struct {
	mu       sync.Mutex
	injected []*Injection
}

func (r *rules) add(rule Rule) *Injection {
	r.mu.Lock()
	defer r.mu.Unlock()
	injection := &Injection{rules: r, rule: rule}
	r.injected = slices.Insert(r.injected, 0, injection)
	return injection
}

// take returns the rule for a call, and counts it.
func (r *rules) take(service, method string, streams bool) (Rule, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, injection := range r.injected {
		rule := injection.rule
		if rule.Calls > 0 && injection.hits >= rule.Calls || !methodMatches(rule.Method, service, method) || rule.Messages > 0 && !streams {
			continue
		}
		injection.hits++
		return rule, true
	}
	return Rule{}, false
}

// intercept is the interceptor of the server.
func (r *rules) intercept(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
	rule, found := r.take(call.Service(), call.Method(), false)
	if !found {
		return next(ctx, call)
	}
	return rule.apply(ctx, func() error { return next(ctx, call) })
}

// interceptStream is intercept for streams.
func (r *rules) interceptStream(ctx context.Context, call fulmar.Stream, next fulmar.StreamNext) error {
	rule, found := r.take(call.Service(), call.Method(), true)
	if !found {
		return next(ctx, call)
	}
	if rule.Messages == 0 {
		return rule.apply(ctx, func() error { return next(ctx, call) })
	}
	failure, sent := rule.Err, 0
	call.OnSend(func(any) error {
		if sent++; sent > rule.Messages {
			return failure
		}
		return nil
	})
	rule.Err = nil
	err := rule.apply(ctx, func() error { return next(ctx, call) })
	if sent > rule.Messages {
		return failure
	}
	return err
}

// apply does to a call what the rule says; handle calls the handler.
func (r *Rule) apply(ctx context.Context, handle func() error) error {
	if r.Delay > 0 {
		timer := time.NewTimer(r.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if r.Err == nil {
		return handle()
	}
	if r.After {
		// What it returns is lost.
		_ = handle()
	}
	return r.Err
}
