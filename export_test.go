package fulmar

import (
	"context"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/transport"
	"github.com/fulmar-rpc/fulmar/policy"
)

// NewCallContext makes the context of a call for its own tests.
func NewCallContext(parent context.Context, deadline time.Time) (ctx context.Context, finish func()) {
	c := &callContext{parent: parent, deadline: deadline}
	return c, c.finish
}

// CallContextShared reports whether the client may not use a context of NewCallContext
// for another call.
func CallContextShared(ctx context.Context) bool { return ctx.(*callContext).shared() }

// PermitOf returns what asks the limits of a document about a call of a method.
func PermitOf(document policy.Server, service, method string) func() error {
	g := newServerGovernor(document)
	entry := &methodEntry{method: &MethodDesc{Service: service, Name: method}}
	g.register(service, []*methodEntry{entry})
	in := &transport.Inbound{Ends: &transport.Ends{Peer: "127.0.0.1:8888"}}
	return func() error {
		_, err := g.permit(in, entry)
		return err
	}
}

// LimitersOf returns how many limiters the names of a document have.
func LimitersOf(document policy.Server) (services, methods int) {
	named := newServerGovernor(document).named.Load()
	return len(named.services), len(named.methods)
}

// Limiters returns how many limiters a server has for what is not registered.
func (s *Server) Limiters() int {
	named := s.governor.named.Load()
	return len(named.services) + len(named.methods)
}

// Kept returns what a stream keeps of a message of so many bytes, which begins within pieces.
func Kept(pieces [][]byte, skip, length int) [][]byte {
	var r replay
	r.keepLocked(pieces, skip, length)
	return r.messages
}

// StreamLock is what makes sure that one goroutine at a time sends on a stream.
type StreamLock = streamLock
