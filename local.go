package fulmar

import (
	"net"
	"slices"
	"sync"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/internal/transport"
)

// instances returns where the calls of a client go: a list that stays as it is, or who
// knows the lists.
func (c ClientConfig) instances() (found []cluster.Instance, resolver cluster.Resolver, err error) {
	if c.Local != nil {
		return []cluster.Instance{{Address: transport.LocalAddress}}, nil, nil
	}
	if c.Resolver != nil {
		return nil, c.Resolver, nil
	}
	resolver, err = parseTarget(c.Target, c.Registries)
	if static, ok := resolver.(cluster.Static); ok && err == nil {
		return slices.Clone(static), nil, nil
	}
	return nil, resolver, err
}

// deafListener is the listener of a server that only serves calls of its process: no
// connection ever comes, so that starting and stopping are as with any other.
type deafListener struct {
	closed chan struct{}
	once   sync.Once
}

var _ net.Listener = (*deafListener)(nil)

func newDeafListener() *deafListener { return &deafListener{closed: make(chan struct{})} }

// Accept implements net.Listener.
func (l *deafListener) Accept() (net.Conn, error) {
	<-l.closed
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (l *deafListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *deafListener) Addr() net.Addr { return localAddr{} }

// localAddr is the address of a server that has none.
type localAddr struct{}

// Network implements net.Addr.
func (localAddr) Network() string { return transport.LocalAddress }

// String implements net.Addr.
func (localAddr) String() string { return transport.LocalAddress }
