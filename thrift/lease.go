package thrift

import (
	"fmt"
	"sync/atomic"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// Lease is how long views of a request may be used that a method lends: generated
// arguments hold one. It belongs to one call, and so need not be told from those of others:
// arguments are never used for another call, whatever becomes of the bytes.
type Lease struct {
	method string
	// recycled: the bytes are used again when it has ended.
	recycled bool
	// ended is 1 when the call has ended. It is no atomic.Bool because arguments are copied
	// before they are sent.
	ended uint32
}

// lender is implemented by generated arguments of which views are lent; method is what a
// panic names.
type lender interface {
	LeaseThrift() (lease *Lease, method string)
}

// Lends reports whether views in body, the arguments of a call, may refer to bytes that
// are recycled when EndLease was called.
func (c Codec) Lends(body any) bool {
	_, lends := body.(lender)
	return lends && c.Strings == StringsScoped
}

// lend begins the lease of arguments that are read from so many bytes. Long ones are kept,
// not lent, as those of StringsScoped; the lease ends all the same, so that what is used too
// late is found whatever its length.
func (Codec) lend(body lender, length int) (lease, *Lease) {
	views, method := body.LeaseThrift()
	*views = Lease{method: method, recycled: length < limits.LinkedStringBytes}
	if views.recycled {
		return lent, views
	}
	return owned, views
}

// EndLease is called before the bytes that body was read from become something else: views
// in it panic when they are used later.
func (c Codec) EndLease(body any) {
	if c.Strings != StringsScoped {
		return
	}
	if l, ok := body.(lender); ok {
		lease, _ := l.LeaseThrift()
		atomic.StoreUint32(&lease.ended, 1)
	}
}

// Check panics if the call has ended. It may be called on a nil lease, which has no end,
// by any goroutine. Who has read the bytes before knows then that they were the message's.
func (l *Lease) Check() {
	if l != nil && atomic.LoadUint32(&l.ended) != 0 {
		panic(fmt.Sprintf("thrift: a view of the request of %s is used when its call has ended; the method has go.strings = \"scoped\", so what is to live longer must be copied before", l.method))
	}
}

// Recycles reports whether the bytes are used again when the lease has ended. A nil lease
// does not.
func (l *Lease) Recycles() bool { return l != nil && l.recycled }
