package fulmar

import (
	"context"
	"net"
	"sync"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/internal/transport"
)

// instances returns where the calls of a client go.
func (c ClientConfig) instances() (found []cluster.Instance, err error) {
	if c.Local != nil {
		return []cluster.Instance{{Address: transport.LocalAddress}}, nil
	}
	resolver, err := parseTarget(c.Target)
	if err != nil {
		return nil, err
	}
	err = resolver.Resolve(context.Background(), func(list []cluster.Instance) { found = list })
	return found, err
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
