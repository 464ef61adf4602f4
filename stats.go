package fulmar

import (
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/policy"
)

// ServerStats counts what a server does, since it was made unless it says now.
// They are read one after the other: what happens meanwhile may be in some of
// them only.
type ServerStats struct {
	// Network is what its listener counts: connections, bytes, and what went
	// wrong with them. Zero before Listen.
	Network eventloop.Stats
	// Calls is how many calls run now.
	Calls int
	// BufferedBytes is how many bytes of messages are held for peers now; see
	// ServerConfig.MaxBufferedBytes.
	BufferedBytes int64
	// PoliciesRefused counts what was wrong with PolicyFile and PolicySource, and so changed
	// nothing: documents, and files and sources that could not be read. What stays wrong
	// counts once.
	PoliciesRefused uint64
	// Policy is what the limits of the policy do.
	Policy policy.ServerState
}

// Stats returns the counts.
func (s *Server) Stats() ServerStats {
	s.mu.Lock()
	listener := s.listener
	s.mu.Unlock()
	stats := ServerStats{
		Calls: s.transport.Running(), BufferedBytes: s.transport.Buffered(),
		PoliciesRefused: s.policies.refused.Load(), Policy: s.governor.state(time.Now()),
	}
	if listener != nil {
		stats.Network = listener.Stats()
	}
	return stats
}

// ClientStats counts what a client does, at all instances of its target
// together.
type ClientStats struct {
	// Connections is how many are open or being opened now, Multiplexed how many
	// of them calls share.
	Connections int
	Multiplexed int
	// LateReplies counts, since the client was made, replies on shared
	// connections that nobody waited for: their calls had given up, or there
	// never was such a call.
	LateReplies uint64
	// PoliciesRefused counts what was wrong with PolicyFile and PolicySource, and so changed
	// nothing: documents, and files and sources that could not be read. What stays wrong
	// counts once.
	PoliciesRefused uint64
	// Policy is what breakers and the budget for further attempts do.
	Policy policy.ClientState
	// Ejected is how many instances of a target that has several get no calls now
	// because they refused a connection or failed.
	Ejected int
	// The rest is zero unless the target is looked up. Instances is how many there are,
	// Lists counts the lists of them that were used since the client was made, KeptOut
	// empty ones in place of which the last one stayed, and LookupFailures what went wrong.
	Instances      int
	Lists          uint64
	KeptOut        uint64
	LookupFailures uint64
}

// Stats returns the counts.
func (c *Client) Stats() ClientStats {
	if c.instances == nil {
		stats := c.peer.Stats()
		return ClientStats{
			Connections: stats.Connections, Multiplexed: stats.Shared, LateReplies: stats.LateReplies,
			PoliciesRefused: c.policies.refused.Load(), Policy: c.governor.state(time.Now()),
		}
	}
	peers := c.instances.stats()
	stats := ClientStats{
		Connections: peers.Connections, Multiplexed: peers.Shared, LateReplies: peers.LateReplies,
		PoliciesRefused: c.policies.refused.Load(), Policy: c.governor.state(time.Now()),
		Ejected: c.instances.balancer.Ejected(),
	}
	if l := c.instances.lists; l != nil {
		stats.Instances = c.instances.balancer.Len()
		stats.Lists, stats.KeptOut, stats.LookupFailures = l.applied.Load(), l.keptOut.Load(), l.failures.Load()
	}
	return stats
}

// state returns what breakers and the budget do.
func (g *governor) state(now time.Time) policy.ClientState {
	g.mu.Lock()
	defer g.mu.Unlock()
	state := policy.ClientState{TargetBreaker: g.target.Show(now), Methods: map[string]policy.CircuitState{}}
	state.RetriesLeft, state.RetriesSaved = g.budget.Show(now)
	state.Refused = state.TargetBreaker.Refused
	add := func(m *governedMethod, name string) {
		breaker := m.circuit.Show(now)
		state.Refused += breaker.Refused
		if breaker.Position != policy.CircuitOff {
			state.Methods[name] = breaker
		}
	}
	for _, m := range *g.methods.Load() {
		add(m, m.name.service+"."+m.name.method)
	}
	for _, m := range g.raw {
		add(m, m.name.service+"."+m.name.method)
	}
	for _, m := range g.others {
		add(m, m.name.service)
	}
	return state
}
