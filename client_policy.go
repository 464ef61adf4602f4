package fulmar

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/observe"
	"github.com/fulmar-rpc/fulmar/policy"
)

// governor is what policies make of the calls of a client. A document that comes while
// calls run holds for those that begin afterwards; breakers and budgets keep what they have
// counted. Safe for concurrent use.
type governor struct {
	current atomic.Pointer[heldPolicy]
	budget  *policy.Budget
	target  *policy.Circuit
	// trial is told of what is decided; nil if no policy is on trial.
	trial atomic.Pointer[policy.Trial]
	// methods are those that were called. The map never changes: a method that is called
	// for the first time makes another one.
	methods atomic.Pointer[map[*MethodDesc]*governedMethod]

	mu sync.Mutex
	// raw are methods that nothing in this process defines, by name. Peers of a proxy make
	// up any number of names, so those share others that the document does not name: it has
	// one for each service that the document names, and one without a name.
	raw, others map[methodName]*governedMethod
}

// heldPolicy is a document and where it comes from.
type heldPolicy struct {
	policy  policy.Client
	version uint64
	source  string
}

type methodName struct{ service, method string }

// governedMethod is a method of a client.
type governedMethod struct {
	name    methodName
	held    atomic.Pointer[heldMethod]
	circuit *policy.Circuit
}

// heldMethod is what a document has for a method. It never changes: a call takes it once.
type heldMethod struct {
	policy.Method
	// document is where it is from.
	document *heldPolicy
	// timeoutByName is what the document has for the method or its service, and not for all:
	// a limit that is meant for calls would end every stream. 0 is none.
	timeoutByName time.Duration
}

func newGovernor(document policy.Client) *governor {
	document, now := document.Clone(), time.Now()
	g := &governor{
		budget: policy.NewBudget(document.RetryBudget, now),
		target: policy.NewCircuit(document.TargetBreaker, now),
		raw:    map[methodName]*governedMethod{},
		others: map[methodName]*governedMethod{},
	}
	g.current.Store(&heldPolicy{policy: document, source: policySourceConfig})
	g.methods.Store(&map[*MethodDesc]*governedMethod{})
	return g
}

// policySourceConfig is the source of what a program has in its configuration.
const policySourceConfig = "configuration"

// set makes a document hold for the calls that begin from now on. It keeps a copy: what
// holds has been validated, has a version, and is read by calls that take no lock.
func (g *governor) set(document policy.Client, version uint64, source string) {
	document = document.Clone()
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	held := &heldPolicy{document, version, source}
	g.current.Store(held)
	g.budget.Configure(document.RetryBudget, now)
	g.target.Configure(document.TargetBreaker, now)
	for _, m := range *g.methods.Load() {
		m.configure(held, now)
	}
	// Names have places beyond the bound because a document named them. With one document
	// behind the other they would be more and more.
	for name := range g.raw {
		if _, method := document.Named(name.service, name.method); len(g.raw) > limits.PolicyMethods && method == "" {
			delete(g.raw, name)
		}
	}
	for name := range g.others {
		if service, _ := document.Named(name.service, ""); service != name.service {
			delete(g.others, name)
		}
	}
	for _, some := range []map[methodName]*governedMethod{g.raw, g.others} {
		for _, m := range some {
			m.configure(held, now)
		}
	}
}

func (m *governedMethod) configure(held *heldPolicy, now time.Time) {
	m.circuit.Configure(m.take(held).Breaker, now)
}

// take makes what a document has for the method hold, and returns it.
func (m *governedMethod) take(held *heldPolicy) *heldMethod {
	taken := &heldMethod{Method: held.policy.For(m.name.service, m.name.method), document: held}
	byName := policy.Client{Methods: held.policy.Methods}
	taken.timeoutByName = max(byName.For(m.name.service, m.name.method).Timeout, 0)
	m.held.Store(taken)
	return taken
}

func (g *governor) newMethod(name methodName) *governedMethod {
	m := &governedMethod{name: name}
	m.circuit = policy.NewCircuit(m.take(g.current.Load()).Breaker, time.Now())
	return m
}

// rawLocked returns what governs a method that nothing in this process defines.
func (g *governor) rawLocked(name methodName) *governedMethod {
	if m := g.raw[name]; m != nil {
		return m
	}
	methods := g.raw
	if len(methods) >= limits.PolicyMethods {
		service, method := g.current.Load().policy.Named(name.service, name.method)
		if name = (methodName{service, method}); method == "" {
			methods = g.others
		}
	}
	m := methods[name]
	if m == nil {
		// A copy, because the names may be in the memory of a request.
		name = methodName{strings.Clone(name.service), strings.Clone(name.method)}
		m = g.newMethod(name)
		methods[name] = m
	}
	return m
}

// method returns what governs the calls of a method.
func (g *governor) method(method *MethodDesc) *governedMethod {
	if m := (*g.methods.Load())[method]; m != nil {
		return m
	}
	name := methodName{method.Service, method.Name}
	g.mu.Lock()
	defer g.mu.Unlock()
	if m := (*g.methods.Load())[method]; m != nil {
		return m
	}
	if method.isRaw() {
		return g.rawLocked(name)
	}
	known := *g.methods.Load()
	grown := make(map[*MethodDesc]*governedMethod, len(known)+1)
	for other, m := range known {
		grown[other] = m
	}
	m := g.newMethod(name)
	grown[method] = m
	g.methods.Store(&grown)
	return m
}

// setPolicy makes a document hold.
func (c *Client) setPolicy(document policy.Document, version uint64, source string) {
	c.governor.set(document.Client, version, source)
	if c.instances != nil {
		c.instances.balancer.SetConfig(document.Client.Balancing, document.Client.Ejection, time.Now())
	}
}

// SetPolicy makes a policy hold for the calls that begin from now on, in place of what the
// configuration, a file or a source has said. Breakers, budgets and balancers keep what
// they know. It returns all that is wrong with the policy, which then changes nothing. It
// keeps none of the maps of the policy.
func (c *Client) SetPolicy(document policy.Client) error {
	whole := policy.Document{Client: document.Clone()} // what is validated is what will hold
	if err := whole.Validate(); err != nil {
		return err
	}
	c.policies.set(whole, "SetPolicy")
	return nil
}

// Try tells a trial of each call that begins from now on, and of what is decided about it;
// nil ends that. One policy at a time is on trial.
func (c *Client) Try(trial *policy.Trial) { c.governor.trial.Store(trial) }

// Policy returns what holds now, with its version and where it comes from. It is a copy, to
// be changed and given to SetPolicy.
func (c *Client) Policy() (document policy.Client, version uint64, source string) {
	held := c.governor.current.Load()
	return held.policy.Clone(), held.version, held.source
}

// passes are what the breakers of a call gave it.
type passes struct {
	target, method policy.Pass
	// trial and tried are of the policy that was on trial when the call began.
	trial *policy.Trial
	tried policy.TrialCall
	// told: what follows is about the same attempts again, when a call waits for a connection.
	told bool
}

// enter asks the breakers, and returns why the call is refused if it is.
func (g *governor) enter(m *governedMethod, now time.Time, explained *policy.Explanation) (p passes, err *Error) {
	if explained != nil {
		explained.TargetBreaker, explained.MethodBreaker = g.target.Show(now).Position, m.circuit.Show(now).Position
	}
	var ok bool
	if p.target, ok = g.target.Allow(now); !ok {
		explainRefusal(explained, policy.RefusedByTargetBreaker)
		err = refusedByBreaker("the target", g.target.Show(now))
	} else if p.method, ok = m.circuit.Allow(now); !ok {
		g.target.Done(p.target, now, policy.Silent)
		explainRefusal(explained, policy.RefusedByMethodBreaker)
		err = refusedByBreaker(m.name.service+"."+m.name.method, m.circuit.Show(now))
	}
	if trial := g.trial.Load(); trial != nil {
		p.trial, p.tried = trial, trial.Begin(m.name.service, m.name.method, now, err != nil)
		if err != nil {
			trial.End(p.tried, 0, true, now)
		}
	}
	return p, err
}

// leave tells the breakers what became of a call.
func (g *governor) leave(call *governedCall, now time.Time, err error) {
	p := &call.passes
	code, silent := judgedCode(err)
	ofTarget, ofMethod := policy.Silent, policy.Silent
	if !silent {
		ofTarget, ofMethod = call.held.document.policy.TargetBreaker.Judge(code), call.held.Breaker.Judge(code)
	}
	g.target.Done(p.target, now, ofTarget)
	call.governed.circuit.Done(p.method, now, ofMethod)
	if p.trial != nil {
		p.tried.Start, p.tried.Timeout = call.start, call.policyTimeout
		p.trial.End(p.tried, code, silent, now)
	}
}

// judgedCode returns the code that says whether the called side works: 0 for what its
// handlers answer on purpose. silent is for what says nothing of it.
func judgedCode(err error) (code observe.Code, silent bool) {
	e, ok := err.(*Error)
	switch {
	case !ok:
		return 0, false // a result, a declared exception or a business error
	case e.phase == PhaseEncode || e.origin == OriginLocal && e.code != DeadlineExceeded:
		return 0, true
	case e.code == DeadlineExceeded && e.origin != OriginRemote && (e.phase == PhaseAcquire || e.phase == PhaseResolve):
		// Its time was over before there was a connection for it, or a list of instances: that
		// is the time that its caller had left.
		return 0, true
	}
	return observe.Code(e.code), false
}

// chainKey is the persistent metadata with which an attempt says that it is not the first
// one, as Kitex has it (TransitKey of its package retry): whoever is called then does not
// try again himself.
const chainKey = "RetryReq"

// inChain reports whether the handler that makes a call serves an attempt that is not the
// first one.
func inChain(ctx context.Context) bool {
	served, ok := ctx.Value(callKey{}).(*servedCall)
	if !ok {
		return false
	}
	for key := range served.metadata.AllPersistent() {
		// gRPC changes the case of keys, and what stands between their words.
		if len(key) <= len(chainKey)+1 && strings.EqualFold(strings.ReplaceAll(strings.ReplaceAll(key, "_", ""), "-", ""), chainKey) {
			return true
		}
	}
	return false
}

// decide says whether a call is tried again after an attempt that failed with e.
func (g *governor) decide(ctx context.Context, call *governedCall, e *Error, wish policy.Wish, attempt int, others bool, now time.Time) policy.Decision {
	retry, p := &call.held.Retry, &call.passes
	unsent := certainlyUnsent(e)
	if e.origin == OriginLocal && !unsent {
		return policy.Decision{Reason: policy.RetryAtFault}
	}
	failure := policy.Failure{
		Attempt: attempt, Code: observe.Code(e.code), Executed: policy.Executed(e.executed),
		// A server that stops refuses all that it still gets, at once, and others have to
		// take it: a budget would fail calls of a fleet that is merely restarted.
		Sent:     !unsent && refusedWith(e) != Unavailable,
		PushBack: e.pushBack, Others: others, Wish: wish, Left: -1,
	}
	if deadline, ok := ctx.Deadline(); ok {
		failure.Left = max(deadline.Sub(now), 0)
	}
	if ctx.Err() != nil {
		failure.Left = 0
	}
	// A trial has a policy of its own, which may not ignore it.
	failure.ChainRetries = failure.Sent && (!retry.IgnoreChain || p.trial != nil) && inChain(ctx)
	decision := retry.Decide(failure, rand.Int64N).Spend(g.budget, now)
	if p.trial != nil && !p.told {
		p.trial.Failed(p.tried, failure, decision, now)
	}
	return decision
}

// none reports whether nobody waits to hear what becomes of the call.
func (p *passes) none() bool {
	return p.target == policy.Pass{} && p.method == policy.Pass{} && p.trial == nil
}
