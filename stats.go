package fulmar

import (
	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/transport"
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
}

// Stats returns the counts.
func (s *Server) Stats() ServerStats {
	s.mu.Lock()
	listener := s.listener
	s.mu.Unlock()
	stats := ServerStats{Calls: s.transport.Running(), BufferedBytes: s.transport.Buffered()}
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
	// Ejected is how many instances of a target that is a list get no calls now
	// because they refused a connection.
	Ejected int
}

// Stats returns the counts.
func (c *Client) Stats() ClientStats {
	var stats transport.PeerStats
	ejected := 0
	if c.instances != nil {
		stats, ejected = c.instances.stats(), c.instances.balancer.Ejected()
	} else {
		stats = c.peer.Stats()
	}
	return ClientStats{Connections: stats.Connections, Multiplexed: stats.Shared, LateReplies: stats.LateReplies, Ejected: ejected}
}
