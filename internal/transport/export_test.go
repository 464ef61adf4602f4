package transport

import "slices"

// SetSequence makes id the last sequence id that was given on the connections
// that calls share.
func (p *Peer) SetSequence(id int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, shared := range p.shared {
		shared.mu.Lock()
		shared.sequence = id
		shared.mu.Unlock()
	}
}

// LeaveAll makes all connections that calls share take no more of them, as a
// server does that stops.
func (p *Peer) LeaveAll() {
	p.mu.Lock()
	all := slices.Clone(p.shared)
	p.mu.Unlock()
	for _, shared := range all {
		shared.leave()
	}
}
