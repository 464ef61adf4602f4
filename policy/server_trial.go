package policy

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// ServerTrial finds out which calls other limits would have refused: it is told of the calls
// that a server gets under those that hold, counts them against limits of its own, and
// changes nothing. How long calls take, and who makes how many, is what comes of the policy
// that holds. Connections and waiting calls are not tried. Safe for concurrent use.
type ServerTrial struct {
	document Server
	all      *Limiter
	callers  *Callers
	adaptive *AdaptiveLimit

	calls, refused, refusedLive, differs atomic.Uint64

	mu sync.Mutex
	// services and methods are the limiters of what the document names, by how it does.
	services, methods map[string]*Limiter
}

// NewServerTrial returns a ServerTrial of a policy, or all that is wrong with that.
func NewServerTrial(policy Server, now time.Time) (*ServerTrial, error) {
	policy = policy.Clone() // the caller may go on to change his
	document := Document{Server: policy}
	if err := document.Validate(); err != nil {
		return nil, err
	}
	return &ServerTrial{
		document: policy,
		all:      NewLimiter(policy.Limit, now), callers: NewCallers(policy.CallerLimit, now), adaptive: NewAdaptiveLimit(policy.Adaptive, now),
		services: map[string]*Limiter{}, methods: map[string]*Limiter{},
	}, nil
}

// limiters returns those of a method and of its service, nil where the document names none.
func (t *ServerTrial) limiters(service, method string, now time.Time) (ofMethod, ofService *Limiter) {
	if len(t.document.Methods) == 0 {
		return nil, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	names := scopes(service, method)
	ofService = t.limiterLocked(t.services, names[0], now)
	for _, name := range names[1:] {
		if limiter := t.limiterLocked(t.methods, name, now); limiter != nil {
			ofMethod = limiter
		}
	}
	return ofMethod, ofService
}

func (t *ServerTrial) limiterLocked(known map[string]*Limiter, name string, now time.Time) *Limiter {
	limiter := known[name]
	if limiter == nil {
		limit, named := t.document.Methods[name]
		if !named {
			return nil
		}
		limiter = NewLimiter(limit, now)
		known[name] = limiter
	}
	return limiter
}

// trialPass is what a call has taken of the limits on trial.
type trialPass struct {
	method, service *Limiter
	caller          CallerPass
}

// Begin tells that a call or a stream has come, and returns what is to be called once when it
// has ended, with how long it took, or was refused by the limits that hold. A time of 0 says
// nothing about how busy the server is: that of a call that did not run. That of a stream
// never does, nor does one hold a place of the adaptive limit. Limits are asked in the order
// of a server, from those that the fewest calls share to that of all.
func (t *ServerTrial) Begin(caller, service, method string, stream bool, now time.Time) (end func(took time.Duration, refused bool)) {
	t.calls.Add(1)
	var pass trialPass
	pass.method, pass.service = t.limiters(service, method, now)
	would := !t.allow(&pass, caller, now)
	if would {
		t.refused.Add(1)
	} else if stream {
		t.adaptive.Done(now, 0)
	}
	return func(took time.Duration, refused bool) {
		if refused {
			t.refusedLive.Add(1)
		}
		if refused != would {
			t.differs.Add(1)
		}
		if would {
			return
		}
		if refused {
			took = 0
		}
		if !stream {
			t.adaptive.Done(now.Add(took), took)
		}
		t.giveBack(&pass, t.ofCall(&pass))
	}
}

// ofCall returns the limits that a call has besides that of its caller.
func (t *ServerTrial) ofCall(pass *trialPass) [3]*Limiter {
	return [...]*Limiter{pass.method, pass.service, t.all}
}

// allow takes a call's share of each limit, or of none if one refuses it.
func (t *ServerTrial) allow(pass *trialPass, caller string, now time.Time) bool {
	var refusal Refusal
	if pass.caller, refusal, _ = t.callers.Allow(caller, now); refusal != NotRefused {
		return false
	}
	all, taken := t.ofCall(pass), [3]*Limiter{}
	for i, limiter := range all {
		if limiter == nil {
			continue
		}
		if refusal, _ := limiter.Allow(now); refusal != NotRefused {
			t.giveBack(pass, taken)
			return false
		}
		taken[i] = limiter
	}
	if !t.adaptive.Allow() {
		t.giveBack(pass, taken)
		return false
	}
	return true
}

func (t *ServerTrial) giveBack(pass *trialPass, taken [3]*Limiter) {
	for _, limiter := range taken {
		if limiter != nil {
			limiter.Done()
		}
	}
	t.callers.Done(pass.caller)
}

// Show returns what it has found so far. Calls that still run are not compared yet.
func (t *ServerTrial) Show(now time.Time) TrialState {
	shown := &ServerState{
		Refused: t.refused.Load(), Limit: t.all.Show(now), Callers: t.callers.Show(limits.CallersShown, now), Adaptive: t.adaptive.Show(),
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.services)+len(t.methods) > 0 {
		shown.Methods = map[string]LimiterState{}
	}
	for name, limiter := range t.services {
		shown.Methods[name] = limiter.Show(now)
	}
	for name, limiter := range t.methods {
		state := limiter.Show(now)
		if service, both := shown.Methods[name]; both {
			state = state.With(service)
		}
		shown.Methods[name] = state
	}
	return TrialState{
		Calls: t.calls.Load(), Refused: shown.Refused, RefusedLive: t.refusedLive.Load(), Differs: t.differs.Load(), Limits: shown,
	}
}
