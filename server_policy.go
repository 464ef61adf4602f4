package fulmar

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/transport"
	"github.com/fulmar-rpc/fulmar/policy"
)

// serverGovernor is what policies make of the calls of a server. Calls and streams of all
// protocols go through it before anything of them is decoded. Safe for concurrent use.
type serverGovernor struct {
	// active is whether any limit is set. Without one a call costs a look at it.
	active   atomic.Bool
	current  atomic.Pointer[heldServerPolicy]
	all      *policy.Limiter
	callers  *policy.Callers
	adaptive *policy.AdaptiveLimit

	mu sync.Mutex
	// services and methods are the limiters of what is registered; each entry of the
	// method table refers to its own.
	services map[string]*policy.Limiter
	entries  []*methodEntry
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
		services: map[string]*policy.Limiter{},
	}
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
	for service, limiter := range g.services {
		ofService, _ := document.For(service, "")
		limiter.Configure(ofService, now)
	}
	for _, entry := range g.entries {
		_, ofMethod := document.For(entry.method.Service, entry.method.Name)
		entry.limiter.Configure(ofMethod, now)
	}
	none := policy.Limit{}
	g.active.Store(document.Limit != none || document.CallerLimit != none || len(document.Methods) > 0 || document.Adaptive.Enabled)
}

// register makes limiters for what a service has.
func (g *serverGovernor) register(service string, entries []*methodEntry) {
	g.mu.Lock()
	defer g.mu.Unlock()
	document, now := g.current.Load().policy, time.Now()
	ofService, _ := document.For(service, "")
	limiter := policy.NewLimiter(ofService, now)
	g.services[service] = limiter
	for _, entry := range entries {
		_, ofMethod := document.For(service, entry.method.Name)
		entry.serviceLimiter, entry.limiter = limiter, policy.NewLimiter(ofMethod, now)
		g.entries = append(g.entries, entry)
	}
}

// permits are what a call has taken of the limits.
type permits struct {
	governor *serverGovernor
	entry    *methodEntry
	caller   policy.CallerPass
	began    time.Time
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
	now := time.Now()
	p = permits{governor: g, entry: entry, began: now}
	caller := callerOf(in)
	var refusal policy.Refusal
	var wait time.Duration
	if p.caller, refusal, wait = g.callers.Allow(caller, now); refusal != policy.NotRefused {
		return permits{}, overLimit("the caller", g.current.Load().policy.CallerLimit, refusal, wait)
	}
	if entry.limiter != nil {
		if err := entry.permit(now); err != nil {
			g.callers.Done(p.caller)
			return permits{}, err
		}
	}
	if refusal, wait := g.all.Allow(now); refusal != policy.NotRefused {
		p.giveBackOwn()
		return permits{}, overLimit("the server", g.all.Limit(), refusal, wait)
	}
	if !g.adaptive.Allow() {
		p.giveBackLimits()
		return permits{}, overLimit("the server", policy.Limit{Running: g.adaptive.Show().Limit}, policy.RefusedByAdaptive, 0)
	}
	return p, nil
}

// permit asks the limits of a method and its service.
func (e *methodEntry) permit(now time.Time) error {
	if refusal, wait := e.limiter.Allow(now); refusal != policy.NotRefused {
		return overLimit(e.method.fullName(), e.limiter.Limit(), refusal, wait)
	}
	if refusal, wait := e.serviceLimiter.Allow(now); refusal != policy.NotRefused {
		e.limiter.Done()
		return overLimit(e.method.Service, e.serviceLimiter.Limit(), refusal, wait)
	}
	return nil
}

// done hands back what a call has taken when it has ended. How long a stream took says
// nothing about how busy the server is.
func (p *permits) done(stream bool) {
	took := time.Since(p.began)
	if stream {
		took = 0
	}
	p.giveBack(took)
}

// giveBack is done for a call that took so long; 0 if it did not run. Nothing may have
// been taken.
func (p *permits) giveBack(took time.Duration) {
	if p.governor == nil {
		return
	}
	p.governor.adaptive.Done(p.began.Add(took), took)
	p.giveBackLimits()
}

func (p *permits) giveBackLimits() {
	p.governor.all.Done()
	p.giveBackOwn()
}

// giveBackOwn gives back what is of the caller and the method.
func (p *permits) giveBackOwn() {
	if p.entry.limiter != nil {
		p.entry.limiter.Done()
		p.entry.serviceLimiter.Done()
	}
	p.governor.callers.Done(p.caller)
}

// SetPolicy makes a policy hold for the calls that come from now on, in place of what the
// configuration, a file or a source has said. What limits have counted stays. It returns
// all that is wrong with the policy, which then changes nothing. It keeps none of the maps
// of the policy.
func (s *Server) SetPolicy(document policy.Server) error {
	whole := policy.Document{Server: document.Clone()} // what is validated is what will hold
	if err := whole.Validate(); err != nil {
		return err
	}
	s.policies.set(whole, "SetPolicy")
	return nil
}

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
