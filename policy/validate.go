package policy

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/observe"
)

// Validate returns everything that is wrong with the document, each with its place, in the
// names of documents: client.methods["Orders.place"].retry.attempts.
func (d Document) Validate() error {
	var p problems
	d.validate(&p)
	return p.err()
}

func (d Document) validate(p *problems) {
	d.Client.validate(p)
	d.Server.validate(p)
}

func (c Client) validate(p *problems) {
	c.Method.validate(p, "client", c.Method)
	checkNames(p, "client.methods", c.Methods)
	broken, hedged := c.setFor(hasBreaker), c.setFor(isHedged)
	if !broken[""] {
		c.Method.Breaker.checkOn(p, "client.breaker")
	}
	c.Method.checkTimes(p, "client", c.Method)
	c.Method.Hedge.checkOn(p, "client.hedge", hedged[""])
	for _, name := range slices.Sorted(maps.Keys(c.Methods)) {
		m, path := c.Methods[name], entry("client.methods", name)
		m.validate(p, path, c.scope(name))
		m.checkTimes(p, path, c.scope(name))
		c.checkHedge(p, path, name)
		if merged := c.scope(name); !hasBreaker(merged) && !broken[name] {
			m.Breaker.checkOn(p, path+".breaker")
		}
		m.Hedge.checkOn(p, path+".hedge", hedged[name] || isHedged(c.scope(name)))
	}
	validateBalancing(p, "client.balancing", c.Balancing)
	validateEjection(p, "client.ejection", c.Ejection)
	p.percent("client.retry_budget.percent", c.RetryBudget.Percent)
	p.count("client.retry_budget.per_second", c.RetryBudget.PerSecond, limits.PolicyCountMax)
	c.TargetBreaker.validate(p, "client.target_breaker")
	c.TargetBreaker.checkOn(p, "client.target_breaker")
}

// checkHedge finds a hedge that may never be: "shop.v1.Orders" can be the method Orders of a
// service shop.v1, which is idempotent, or a service of its own, for which what is set for
// "shop.v1" does not hold. A service whose name has no dot is taken for one: in Thrift they
// have none.
func (c Client) checkHedge(p *problems, path, name string) {
	service := serviceOf(name)
	if m := c.Methods[name]; m.Hedge.After <= 0 || strings.Contains(name, "/") || !strings.Contains(service, ".") || c.Method.with(m).Retry.Idempotent {
		return
	}
	if c.Methods[service].Retry.Idempotent {
		p.add(path+".hedge.after", "%v without retry.idempotent: %s holds for a service of that name only (name a method of it %q, or set it here)",
			c.Methods[name].Hedge.After, quoted(service), service+"/"+name[len(service)+1:])
	}
}

func hasBreaker(m Method) bool { return m.Breaker.FailurePercent != 0 }

func isHedged(m Method) bool { return m.Hedge.After != 0 }

// setFor returns the names under which, or for a method of which, something is set, and ""
// if it is anywhere.
func (c Client) setFor(isSet func(Method) bool) map[string]bool {
	names := map[string]bool{}
	if isSet(c.Method) {
		names[""] = true
	}
	for name, m := range c.Methods {
		if isSet(m) {
			names[""], names[name], names[serviceOf(name)] = true, true, true
		}
	}
	return names
}

// scope returns what holds under a name of Methods: for all methods of a service, or one.
func (c Client) scope(name string) Method {
	merged := c.Method
	if service := serviceOf(name); service != "" {
		merged = merged.with(c.Methods[service])
	}
	return merged.with(c.Methods[name])
}

// validate looks at what is set at a path, and at what holds there with what is set for
// more methods.
func (m Method) validate(p *problems, path string, merged Method) {
	p.duration(path+".timeout", m.Timeout)
	m.Retry.validate(p, path+".retry", merged.Retry)
	p.duration(path+".hedge.after", m.Hedge.After)
	p.count(path+".hedge.attempts", m.Hedge.Attempts, limits.RetryAttemptsMax)
	if m.Hedge.After > 0 && !merged.Retry.Idempotent {
		p.add(path+".hedge.after", "%v without retry.idempotent: the method would be executed twice", m.Hedge.After)
	}
	m.Breaker.validate(p, path+".breaker")
}

// checkTimes finds a time that never passes within a shorter one. A method whose timeout is
// shorter than the times that are set for more methods is none of that.
func (m Method) checkTimes(p *problems, path string, merged Method) {
	if merged.Timeout <= 0 {
		return
	}
	if m.Retry.AttemptTimeout > merged.Timeout {
		p.add(path+".retry.attempt_timeout", "%v is above timeout (%v)", m.Retry.AttemptTimeout, merged.Timeout)
	}
	if m.Hedge.After >= merged.Timeout {
		p.add(path+".hedge.after", "%v is not below timeout (%v)", m.Hedge.After, merged.Timeout)
	}
}

// checkOn finds a hedge of which something is set, and that never begins.
func (h Hedge) checkOn(p *problems, path string, begins bool) {
	if h.Attempts > 0 && !begins {
		p.add(path+".attempts", "%d without after: there is no hedge", h.Attempts)
	}
}

func (r Retry) validate(p *problems, path string, merged Retry) {
	p.count(path+".attempts", r.Attempts, limits.RetryAttemptsMax)
	p.codes(path+".codes", r.Codes)
	p.duration(path+".attempt_timeout", r.AttemptTimeout)
	p.duration(path+".backoff_min", r.BackoffMin)
	p.duration(path+".backoff_max", r.BackoffMax)
	if r.BackoffMin == 0 && r.BackoffMax == 0 {
		return
	}
	least, most := merged.backoff()
	if least > most {
		p.add(path+".backoff_min", "%v is above backoff_max (%v%s)", least, most, isDefault(merged.BackoffMax == 0))
	}
}

func (b Breaker) validate(p *problems, path string) {
	p.percent(path+".failure_percent", b.FailurePercent)
	p.positive(path+".min_calls", b.MinCalls, limits.PolicyCountMax)
	p.window(path+".window", b.Window)
	p.window(path+".pause", b.Pause)
	p.positive(path+".probes", b.Probes, limits.PolicyCountMax)
	p.codes(path+".codes", b.Codes)
}

// checkOn finds a breaker of which something is set, and that never opens, because the share
// of failures is not. One that is switched off in so many words may keep the rest.
func (b Breaker) checkOn(p *problems, path string) {
	const why = "%v without failure_percent: there is no breaker"
	switch {
	case b.FailurePercent != 0:
	case b.MinCalls > 0:
		p.add(path+".min_calls", why, b.MinCalls)
	case b.Window > 0:
		p.add(path+".window", why, b.Window)
	case b.Pause > 0:
		p.add(path+".pause", why, b.Pause)
	case b.Probes > 0:
		p.add(path+".probes", why, b.Probes)
	case b.Codes != 0:
		p.add(path+".codes", why, b.Codes)
	}
}

func (s Server) validate(p *problems) {
	s.Limit.validate(p, "server.limit")
	s.CallerLimit.validate(p, "server.caller_limit")
	checkNames(p, "server.methods", s.Methods)
	for _, name := range slices.Sorted(maps.Keys(s.Methods)) {
		s.Methods[name].validate(p, entry("server.methods", name))
	}
	s.Adaptive.validate(p, "server.adaptive")
	p.count("server.connections", s.Connections, limits.PolicyCountMax)
	p.percent("server.queue.wait_percent", s.Queue.WaitPercent)
	p.count("server.queue.calls", s.Queue.Calls, limits.PolicyCountMax)
	p.duration("server.queue.time", s.Queue.Time)
}

func (l Limit) validate(p *problems, path string) {
	p.count(path+".per_second", l.PerSecond, limits.PolicyCountMax)
	p.positive(path+".burst", l.Burst, limits.PolicyCountMax)
	p.count(path+".running", l.Running, limits.PolicyCountMax)
	if l.Burst > 0 && l.PerSecond <= 0 {
		p.add(path+".burst", "%d without per_second", l.Burst)
	}
}

func (a Adaptive) validate(p *problems, path string) {
	p.positive(path+".min_running", a.MinRunning, limits.PolicyCountMax)
	p.positive(path+".max_running", a.MaxRunning, limits.PolicyCountMax)
	if !a.Enabled {
		const why = "%d without enabled: there is no such limit"
		switch {
		case a.MinRunning > 0:
			p.add(path+".min_running", why, a.MinRunning)
		case a.MaxRunning > 0:
			p.add(path+".max_running", why, a.MaxRunning)
		}
		return
	}
	if least, most := a.bounds(); least > most {
		p.add(path+".min_running", "%d%s is above max_running (%d%s)", least, isDefault(a.MinRunning == 0), most, isDefault(a.MaxRunning == 0))
	}
}

func validateBalancing(p *problems, path string, b cluster.Balancing) {
	known := []cluster.Method{cluster.LeastLoaded, cluster.RoundRobin, cluster.Random, cluster.ConsistentHash, cluster.LeastRequests}
	if b.Method != "" && !slices.Contains(known, b.Method) {
		names := make([]string, len(known))
		for i, method := range known {
			names[i] = string(method)
		}
		p.add(path+".method", "%s is none%s (want one of %s)", quoted(string(b.Method)), meant(string(b.Method), names), strings.Join(names, ", "))
	}
	if b.Method == cluster.ConsistentHash && b.HashKey == "" {
		p.add(path+".hash_key", "nothing, and consistent_hash needs it")
	}
	if b.Method != cluster.ConsistentHash && b.HashKey != "" {
		p.add(path+".hash_key", "%s without the method consistent_hash: nothing asks for it", quoted(b.HashKey))
	}
	if b.Method == cluster.ConsistentHash && b.Subset > 0 {
		p.add(path+".subset", "%d with consistent_hash, which uses all instances", b.Subset)
	}
	p.text(path+".hash_key", b.HashKey)
	p.text(path+".zone", b.Zone)
	p.count(path+".subset", b.Subset, limits.PolicyCountMax)
	p.duration(path+".slow_start", b.SlowStart)
}

func validateEjection(p *problems, path string, e cluster.Ejection) {
	p.percent(path+".failure_percent", e.FailurePercent)
	p.positive(path+".min_calls", e.MinCalls, limits.PolicyCountMax)
	p.count(path+".consecutive", e.Consecutive, limits.PolicyCountMax)
	p.window(path+".window", e.Window)
	p.duration(path+".pause_min", e.PauseMin)
	p.duration(path+".pause_max", e.PauseMax)
	if least, most := limits.Or(e.PauseMin, limits.EjectPauseMin, 0), limits.Or(e.PauseMax, limits.EjectPauseMax, limits.PolicyDurationMax); least > most {
		p.add(path+".pause_min", "%v is above pause_max (%v%s)", least, most, isDefault(e.PauseMax == 0))
	}
	p.percent(path+".max_ejected_percent", e.MaxEjectedPercent)
}

// checkNames wants names that a service or a method can have, and one of each.
func checkNames[V any](p *problems, path string, entries map[string]V) {
	if len(entries) > limits.PolicyMethods {
		p.add(path, "%d names (limit %d)", len(entries), limits.PolicyMethods)
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		switch {
		case len(name) > limits.MethodNameBytes:
			p.add(path, "name of %d bytes (limit %d)", len(name), limits.MethodNameBytes)
		case !qualifiedName.MatchString(name):
			p.add(path, "%s cannot be the name of a service or method (want one like \"Orders\", \"Orders.place\" or \"shop.v1.Orders/Place\")", quoted(name))
		}
		if service, method, ok := strings.Cut(name, "/"); ok {
			if _, twice := entries[service+"."+method]; twice {
				p.add(path, "%s and %s are the same method", quoted(service+"."+method), quoted(name))
			}
		}
	}
}

func isDefault(it bool) string {
	if it {
		return ", the default"
	}
	return ""
}

func (p *problems) percent(path string, value int) {
	if value > 100 {
		p.add(path, "%d (at most 100)", value)
	}
}

func (p *problems) count(path string, value, most int) {
	if value > most {
		p.add(path, "%d (at most %d)", value, most)
	}
}

// positive is count for what cannot be switched off.
func (p *problems) positive(path string, value, most int) {
	if value < 0 {
		p.add(path, "%d (at least 1, and 0 is the default)", value)
	}
	p.count(path, value, most)
}

func (p *problems) duration(path string, value time.Duration) {
	switch {
	case value > 0 && value < limits.ConfigDurationMin:
		p.add(path, "%v (at least %v)", value, limits.ConfigDurationMin)
	case value > limits.PolicyDurationMax:
		p.add(path, "%v (at most %v)", value, limits.PolicyDurationMax)
	}
}

// window is duration for the time in which something is counted, which is not short and
// cannot be switched off.
func (p *problems) window(path string, value time.Duration) {
	if value < 0 || value > 0 && value < limits.PolicyWindowMin {
		p.add(path, "%v (at least %v, and 0s is the default)", value, limits.PolicyWindowMin)
		return
	}
	p.duration(path, value)
}

func (p *problems) codes(path string, set Codes) {
	if set.Has(0) {
		p.add(path, "%s is no failure", codeName(0))
	}
	if unknown := set &^ (1<<observe.Codes - 1); unknown != 0 {
		p.add(path, "%v: there are no such codes", unknown)
	}
}

// text is for names that go into messages and logs.
func (p *problems) text(path, value string) {
	if len(value) > limits.PolicyTextBytes {
		p.add(path, "%d bytes (limit %d)", len(value), limits.PolicyTextBytes)
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }) {
		p.add(path, "%s has characters that cannot be printed", quoted(value))
	}
}
