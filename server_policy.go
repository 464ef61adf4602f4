package fulmar

import (
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/transport"
	"github.com/fulmar-rpc/fulmar/policy"
)

// serverGovernor is what policies make of the calls of a server. Calls and streams of all
// protocols go through it before anything of them is decoded. Safe for concurrent use.
type serverGovernor struct {
	// active is whether any limit is set, or on trial. Without one a call costs a look at it,
	// and does not count: two additions for each of server, service and method, which all
	// processors share, cost more than what they are for, a limit that comes while calls run
	// that began without.
	active   atomic.Bool
	current  atomic.Pointer[heldServerPolicy]
	all      *policy.Limiter
	callers  *policy.Callers
	adaptive *policy.AdaptiveLimit
	// refused counts calls. What limits count of their own goes with a document that names
	// them no more.
	refused atomic.Uint64
	// named are the limiters of what the document names.
	named atomic.Pointer[namedLimiters]
	// trial is told of calls, if there is one.
	trial atomic.Pointer[policy.ServerTrial]

	mu sync.Mutex
	// registered are the limiters of what is registered; each entry of the method table
	// refers to its own.
	registered namedLimiters
}

// namedLimiters are limiters of services and methods by their names. Those of a document
// are there for calls of what is not registered: peers make up any number of names, and the
// document bounds how many have a limiter. The maps of those never change.
type namedLimiters struct {
	services map[string]*policy.Limiter
	methods  map[methodName]*policy.Limiter
}

func newNamedLimiters() *namedLimiters {
	return &namedLimiters{services: map[string]*policy.Limiter{}, methods: map[methodName]*policy.Limiter{}}
}

type heldServerPolicy struct {
	policy  policy.Server
	version uint64
	source  string
}

func newServerGovernor(document policy.Server) *serverGovernor {
	now := time.Now()
	g := &serverGovernor{
		all:      policy.NewLimiter(document.Limit, now),
		callers:  policy.NewCallers(document.CallerLimit, now),
		adaptive: policy.NewAdaptiveLimit(document.Adaptive, now),
	}
	g.registered = *newNamedLimiters()
	g.named.Store(newNamedLimiters())
	g.set(document, 0, policySourceConfig)
	return g
}

// set makes a document hold for the calls that come from now on. It keeps a copy: what
// holds has been validated, has a version, and is read by calls that take no lock.
func (g *serverGovernor) set(document policy.Server, version uint64, source string) {
	document = document.Clone()
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	g.current.Store(&heldServerPolicy{document, version, source})
	g.all.Configure(document.Limit, now)
	g.callers.Configure(document.CallerLimit)
	g.adaptive.Configure(document.Adaptive)
	for service, limiter := range g.registered.services {
		ofService, _ := document.For(service, "")
		limiter.Configure(ofService, now)
	}
	for name, limiter := range g.registered.methods {
		_, ofMethod := document.For(name.service, name.method)
		limiter.Configure(ofMethod, now)
	}
	g.nameLocked(document, now)
	g.activateLocked()
}

// activateLocked finds out whether there is anything to ask.
func (g *serverGovernor) activateLocked() {
	none, document := policy.Limit{}, &g.current.Load().policy
	g.active.Store(document.Limit != none || document.CallerLimit != none || len(document.Methods) > 0 || document.Adaptive.Enabled ||
		g.trial.Load() != nil)
}

// try has a trial told of the calls that come from now on.
func (g *serverGovernor) try(trial *policy.ServerTrial) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.trial.Store(trial)
	g.activateLocked()
}

// register makes limiters for what a service has.
func (g *serverGovernor) register(service string, entries []*methodEntry) {
	g.mu.Lock()
	defer g.mu.Unlock()
	document, now := g.current.Load().policy, time.Now()
	ofService, _ := document.For(service, "")
	limiter := policy.NewLimiter(ofService, now)
	g.registered.services[service] = limiter
	for _, entry := range entries {
		_, ofMethod := document.For(service, entry.method.Name)
		entry.serviceLimiter, entry.limiter = limiter, policy.NewLimiter(ofMethod, now)
		g.registered.methods[methodName{service, entry.method.Name}] = entry.limiter
	}
	g.nameLocked(document, now)
}

// nameLocked makes the limiters of all names of a document. A name has at most two: what
// reads "Orders.place" is that method, or a service of that name. Those that it had before
// keep what they have counted, and what is registered has one limiter however it is called.
func (g *serverGovernor) nameLocked(document policy.Server, now time.Time) {
	before, named := g.named.Load(), newNamedLimiters()
	for name, limit := range document.Methods {
		key, ofMethod, ofService := scopesOf(name)
		if ofService {
			named.services[name] = limiterOf(name, limit, now, g.registered.services, before.services)
		}
		if !ofMethod {
			continue
		}
		named.methods[key] = limiterOf(key, limit, now, g.registered.methods, before.methods)
	}
	g.named.Store(named)
}

// scopesOf returns what a name in a document may be that of: a method, a service, or both.
func scopesOf(name string) (method methodName, ofMethod, ofService bool) {
	if service, method, ok := strings.Cut(name, "/"); ok {
		return methodName{service, method}, true, false
	}
	if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
		return methodName{name[:dot], name[dot+1:]}, true, true
	}
	return methodName{}, false, true
}

// limiterOf returns the limiter that is known by a name, or a new one.
func limiterOf[K comparable](name K, limit policy.Limit, now time.Time, registered, before map[K]*policy.Limiter) *policy.Limiter {
	if limiter := registered[name]; limiter != nil {
		return limiter
	}
	limiter := before[name]
	if limiter == nil {
		return policy.NewLimiter(limit, now)
	}
	limiter.Configure(limit, now)
	return limiter
}

// permits are what a call has taken of the limits.
type permits struct {
	governor *serverGovernor
	// method and service are nil if they have no limiter: nothing is registered, or named in
	// the document, that the call is for.
	method, service *policy.Limiter
	caller          policy.CallerPass
	// stream says that it is a stream, which takes no place of the adaptive limit.
	stream bool
	began  time.Time
	// tried tells a trial that the call has ended; nil if there was none.
	tried func(took time.Duration, refused bool)
}

// permit takes a call's share of each limit, or says which of them refuses it. Those that
// it was given must be handed back with done. A rate that has counted a call does not take
// that back when another limit refuses it, so they are asked from those that the fewest
// share to that of all: a caller who asks for too much uses up what is his, and a method
// of which too much is asked what is its own.
func (g *serverGovernor) permit(in *transport.Inbound, entry *methodEntry) (p permits, err error) {
	if !g.active.Load() {
		return permits{}, nil
	}
	now, caller, stream := time.Now(), callerOf(in), in.Stream != nil
	p, err = g.permitLive(caller, stream, entry, now)
	if trial := g.trial.Load(); trial != nil {
		p.tried = trial.Begin(caller, entry.method.Service, entry.method.Name, stream, now)
		if err != nil {
			p.tried(0, true)
		}
	}
	return p, err
}

// permitLive asks the limits that hold.
func (g *serverGovernor) permitLive(caller string, stream bool, entry *methodEntry, now time.Time) (p permits, err error) {
	p = permits{governor: g, method: entry.limiter, service: entry.serviceLimiter, stream: stream, began: now}
	if entry.unknown {
		named := g.named.Load()
		p.method, p.service = named.methods[methodName{entry.method.Service, entry.method.Name}], named.services[entry.method.Service]
	}
	var refusal policy.Refusal
	var wait time.Duration
	if p.caller, refusal, wait = g.callers.Allow(caller, now); refusal != policy.NotRefused {
		return permits{}, g.refuse("the caller", g.current.Load().policy.CallerLimit, refusal, wait)
	}
	if err := p.permitMethod(entry, now); err != nil {
		g.callers.Done(p.caller)
		return permits{}, err
	}
	if refusal, wait := g.all.Allow(now); refusal != policy.NotRefused {
		p.giveBackOwn()
		return permits{}, g.refuse("the server", g.all.Limit(), refusal, wait)
	}
	if !g.adaptive.Allow() {
		p.giveBackLimits()
		return permits{}, g.refuse("the server", policy.Limit{Running: g.adaptive.Show().Limit}, policy.RefusedByAdaptive, 0)
	}
	if stream {
		// It has asked whether there is room, because to begin is work like a call, and holds
		// no place: the limit grows by calls that end, and none could begin any more once
		// streams that last for hours had all places. See policy.AdaptiveLimit.
		g.adaptive.Done(now, 0)
	}
	return p, nil
}

// permitMethod asks the limits of the method and its service.
func (p *permits) permitMethod(entry *methodEntry, now time.Time) error {
	if p.method != nil {
		if refusal, wait := p.method.Allow(now); refusal != policy.NotRefused {
			return p.governor.refuse(entry.method.fullName(), p.method.Limit(), refusal, wait)
		}
	}
	if p.service != nil {
		if refusal, wait := p.service.Allow(now); refusal != policy.NotRefused {
			if p.method != nil {
				p.method.Done()
			}
			return p.governor.refuse(entry.method.Service, p.service.Limit(), refusal, wait)
		}
	}
	return nil
}

// refuse counts a call that a limit refuses, and returns its error.
func (g *serverGovernor) refuse(of string, limit policy.Limit, refusal policy.Refusal, wait time.Duration) error {
	g.refused.Add(1)
	return overLimit(of, limit, refusal, wait)
}

// done hands back what a call has taken when it has ended.
func (p *permits) done() { p.giveBack(time.Since(p.began)) }

// giveBack is done for a call that took so long; 0 if it did not run. Nothing may have
// been taken.
func (p *permits) giveBack(took time.Duration) {
	if p.governor == nil {
		return
	}
	if !p.stream {
		p.governor.adaptive.Done(p.began.Add(took), took)
	}
	p.giveBackLimits()
	if p.tried != nil {
		p.tried(took, false)
	}
}

func (p *permits) giveBackLimits() {
	p.governor.all.Done()
	p.giveBackOwn()
}

// giveBackOwn gives back what is of the caller and the method.
func (p *permits) giveBackOwn() {
	if p.method != nil {
		p.method.Done()
	}
	if p.service != nil {
		p.service.Done()
	}
	p.governor.callers.Done(p.caller)
}

// state returns what the limits do.
func (g *serverGovernor) state(now time.Time) policy.ServerState {
	state := policy.ServerState{
		Refused: g.refused.Load(), Limit: g.all.Show(now), Callers: g.callers.Show(limits.CallersShown, now), Adaptive: g.adaptive.Show(),
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	document, named := g.current.Load().policy, g.named.Load()
	if len(document.Methods) > 0 {
		state.Methods = make(map[string]policy.LimiterState, len(document.Methods))
	}
	for name := range document.Methods {
		key, ofMethod, ofService := scopesOf(name)
		switch {
		case ofMethod && ofService:
			state.Methods[name] = named.methods[key].Show(now).With(named.services[name].Show(now))
		case ofMethod:
			state.Methods[name] = named.methods[key].Show(now)
		default:
			state.Methods[name] = named.services[name].Show(now)
		}
	}
	return state
}

// SetPolicy makes a policy hold for the calls that come from now on, in place of what the
// configuration, a file or a source has said. What limits have counted stays; calls that
// began while there was no limit at all do not count. It returns all that is wrong with the
// policy, which then changes nothing. It keeps none of the maps of the policy.
func (s *Server) SetPolicy(document policy.Server) error {
	whole := policy.Document{Server: document.Clone()} // what is validated is what will hold
	if err := whole.Validate(); err != nil {
		return err
	}
	s.policies.set(whole, "SetPolicy")
	return nil
}

// Try tells a trial of each call and stream that comes from now on, and of whether it was
// refused; nil ends that. One policy at a time is on trial.
func (s *Server) Try(trial *policy.ServerTrial) { s.governor.try(trial) }

// Policy returns what holds now, with its version and where it comes from. It is a copy, to
// be changed and given to SetPolicy.
func (s *Server) Policy() (document policy.Server, version uint64, source string) {
	held := s.governor.current.Load()
	return held.policy.Clone(), held.version, held.source
}

// callerOf returns by what a limit of callers knows one: its identity in TLS, or the host
// that its connection comes from. What it says of itself does not count.
func callerOf(in *transport.Inbound) string {
	if identity, ok := in.Identity.(*Identity); ok && identity != nil {
		if name := identity.name(); name != "" {
			return name
		}
	}
	if host, _, err := net.SplitHostPort(in.Peer); err == nil {
		return host
	}
	return in.Peer
}
