package transport

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
