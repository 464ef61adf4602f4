package fulmar

import (
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/transport"
)

// keeper is implemented by codecs of which some messages keep the bytes that they are
// read from.
type keeper interface{ Keeps(body any) bool }

// keeps reports whether message, a request or a reply of the method, keeps the bytes that
// it is read from, for ever.
func (m *MethodDesc) keeps(message any) bool {
	if m.isRaw() {
		return true
	}
	codec, ok := m.Codec.(keeper)
	return ok && codec.Keeps(message)
}

// lender is implemented by codecs of which some messages refer to bytes that are only lent,
// and must be told when that ends.
type lender interface {
	Lends(body any) bool
	EndLease(body any)
}

// lends reports whether request may refer to bytes until endLease.
func (m *MethodDesc) lends(request any) bool {
	codec, ok := m.Codec.(lender)
	return ok && codec.Lends(request)
}

// endLease is called when the bytes that request was read from are about to become
// something else.
func (m *MethodDesc) endLease(request any) {
	if m.InvokeInto != nil {
		return // it lends nothing, see methodTable.add
	}
	if codec, ok := m.Codec.(lender); ok {
		codec.EndLease(request)
	}
}

// referrer is implemented by codecs whose messages may refer to the bytes of a request.
type referrer interface{ Refers() bool }

// refers reports whether a short request is lent for as long as the call runs, so that
// it is to lie somewhere of its own.
func (m *MethodDesc) refers() bool {
	codec, ok := m.Codec.(referrer)
	return m.isRaw() || ok && codec.Refers()
}

// requestBody returns the body of a request, and whether what is read from it may refer to
// it. keeps is what m.keeps says of the request.
//
// From LinkedStringBytes on strings are sent from where they are, and may be in use when
// the call has ended: nothing refers to a body as long, unless it is kept. A shorter one
// is lent, but not to a view, which is the handler's for ever unless its method lends it: a
// copy takes as much memory as there are bytes, what is kept as much as was made for it. Nor
// is one lent that still lies where the connection reads: fields can be scoped by themselves.
func (m *MethodDesc) requestBody(in *transport.Inbound, request any, keeps bool) (body []byte, mayRefer bool) {
	long := len(in.Body) >= limits.LinkedStringBytes
	switch {
	case !keeps:
		return in.Body, !long && !in.Short()
	case long:
		return in.KeepBody(), true
	default:
		return in.Body, m.isRaw() || m.lends(request)
	}
}
