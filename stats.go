package fulmar

import "github.com/fulmar-rpc/fulmar/eventloop"

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
}

// Stats returns the counts.
func (s *Server) Stats() ServerStats {
	s.mu.Lock()
	listener := s.listener
	s.mu.Unlock()
	stats := ServerStats{Calls: s.transport.Running(), BufferedBytes: s.transport.Buffered(), PoliciesRefused: s.policies.refused.Load()}
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
			PoliciesRefused: c.policies.refused.Load(),
		}
	}
	peers := c.instances.stats()
	stats := ClientStats{
		Connections: peers.Connections, Multiplexed: peers.Shared, LateReplies: peers.LateReplies,
		PoliciesRefused: c.policies.refused.Load(),
		Ejected:         c.instances.balancer.Ejected(),
	}
	if l := c.instances.lists; l != nil {
		stats.Instances = len(c.instances.balancer.Members())
		stats.Lists, stats.KeptOut, stats.LookupFailures = l.applied.Load(), l.keptOut.Load(), l.failures.Load()
	}
	return stats
}
