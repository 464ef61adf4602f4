package transport

import (
	"context"
	"slices"

	"github.com/fulmar-rpc/fulmar/internal/wire"
)

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

// CallLeft opens a connection that calls share and that is left before its first
// call, which it makes then. again says that Do would make it once more.
func (p *Peer) CallLeft(ctx context.Context, request *Request) (again bool, err error) {
	opened, err := p.open(ctx)
	if err != nil {
		return false, err
	}
	opened.leave()
	_, again, err = opened.callFirst(ctx, request)
	return again, err
}

// ManyPairs is from how many pairs on there is an index of them.
const ManyPairs = manyPairs

// RequestMetadata returns the metadata of a request with this info,
// ReplyMetadata that of a reply.
func RequestMetadata(info wire.Info) []Pair {
	head := new(callerNames).read(info)
	return head.Metadata
}

func ReplyMetadata(info wire.Info) []Pair {
	head, _, _, _ := readReplyHead(info)
	return head.Metadata
}

// PairsWalked returns over how many pairs a look-up walks once these are
// collected.
func PairsWalked(pairs []Pair) int {
	var set pairSet
	for _, pair := range pairs {
		set.add("", []byte(pair.Key), []byte(pair.Value))
	}
	if len(set.index) == len(set.pairs) {
		return 0
	}
	return len(set.pairs)
}
