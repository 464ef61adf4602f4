package fulmar_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// reuse is the stress of TestReuse_NoCallSeesAnother.
type reuse struct {
	t        *testing.T
	protocol fulmar.Protocol
	server   *running
	client   atomic.Pointer[fulmar.Client]
	closed   atomic.Int64
	// over is closed when all callers have ended.
	over chan struct{}
	// cancels has how handlers end the calls that wait for them, by their ids.
	cancels sync.Map
	// left are goroutines that handlers have left behind, and that end calls.
	left sync.WaitGroup

	mu sync.Mutex
	// kept and dials are contexts of calls and of dials, to be looked at when all calls
	// have ended.
	kept  []keptContext
	dials []keptContext
}

// keptContext is what a context said while its call lasted.
type keptContext struct {
	ctx      context.Context
	id       string
	deadline time.Time
}

// reuseKey is the key of a call's id in the context of its caller.
type reuseKey struct{}

// What a call does, which its handler is told.
const (
	reusePlain = iota
	reuseShort
	reuseCancelled
	reuseForever
	reusePanics
	reuseEnds
	reuseFails
	reuseLeaves
	reuseKinds
)

// serve is the handler. It compares what it is told in the message with what its
// context says.
func (r *reuse) serve(ctx context.Context, message *testservice.Message) (*testservice.Message, error) {
	kind, id := message.GetNumber(), message.Labels["id"]
	call, ok := fulmar.CallFrom(ctx)
	deadline, limited := ctx.Deadline()
	if r.protocol != fulmar.Framed {
		told, _ := call.Metadata().Persistent("ID")
		left := time.Until(deadline)
		if !ok || told != id || limited != (kind != reuseForever) || limited && (left > time.Hour || (left > time.Minute) == (kind == reuseShort)) {
			r.t.Errorf("call %s of kind %d has metadata of %q, and %v until its deadline (%v)", id, kind, told, left, limited)
		}
	}
	r.mu.Lock()
	r.kept = append(r.kept, keptContext{ctx, id, deadline})
	r.mu.Unlock()
	switch kind {
	case reuseShort, reuseCancelled:
		if cancel, ok := r.cancels.LoadAndDelete(id); ok {
			cancel.(context.CancelFunc)()
		}
		select {
		case <-ctx.Done():
		case <-r.over: // its client was closed
		}
	case reusePanics:
		panic("it was asked to")
	case reuseEnds:
		runtime.Goexit()
	case reuseFails:
		return nil, fulmar.NewError(fulmar.NotFound, id)
	case reuseLeaves:
		client := r.client.Load()
		r.left.Go(func() {
			<-ctx.Done()
			err := testservice.NewEchoClient(client).Nothing(ctx)
			if e := (*fulmar.Error)(nil); !errors.As(err, &e) || ctx.Err() == nil {
				r.t.Errorf("a call with the context of call %s, which has ended: %v", id, err)
			}
		})
	}
	return &testservice.Message{Text: message.Text, Labels: map[string]string{"id": id}}, nil
}

// dial keeps the context that it is given, as nobody should.
func (r *reuse) dial(ctx context.Context, network, address string) (net.Conn, error) {
	deadline, _ := ctx.Deadline()
	r.mu.Lock()
	r.dials = append(r.dials, keptContext{ctx: ctx, deadline: deadline})
	r.mu.Unlock()
	return new(net.Dialer).DialContext(ctx, network, address)
}

func (r *reuse) renew() {
	config := fulmar.ClientConfig{Target: r.server.address, Protocol: r.protocol, Dial: r.dial, MaxConnections: 4, ConnectTimeout: time.Minute, Timeout: 10 * time.Minute}
	if r.protocol == 0 {
		config = fulmar.ClientConfig{Local: r.server.server, Timeout: 10 * time.Minute}
	}
	client, err := fulmar.NewClient(config)
	if err != nil {
		r.t.Error(err)
		return
	}
	if old := r.client.Swap(client); old != nil {
		r.closed.Add(1)
		_ = old.Close()
	}
}

// call makes one call and checks that what comes back is its own.
func (r *reuse) call(id string, random *rand.Rand) {
	kind := int64(random.IntN(reuseKinds))
	ctx, cancel := context.WithCancel(context.WithValue(fulmar.WithPersistent(context.Background(), "ID", id), reuseKey{}, id))
	defer cancel()
	var options []fulmar.CallOption
	switch kind {
	case reuseShort:
		options = append(options, fulmar.Timeout(time.Duration(1+random.IntN(20))*time.Millisecond))
	case reuseCancelled:
		if random.IntN(2) == 0 {
			r.left.Go(cancel)
		} else {
			r.cancels.Store(id, cancel)
		}
	case reuseForever:
		options = append(options, fulmar.Timeout(-1))
	}
	text := strings.Repeat(id+" ", 1+random.IntN(2000))
	message := &testservice.Message{Text: text, Number: thrift.Some(kind), Labels: map[string]string{"id": id}}
	closed := r.closed.Load()
	reply, err := testservice.NewEchoClient(r.client.Load()).Echo(ctx, message, options...)
	var e *fulmar.Error
	switch failed := errors.As(err, &e); {
	case err == nil && (reply.Text != text || reply.Labels["id"] != id):
		r.t.Errorf("call %s of kind %d gets %.40q", id, kind, reply.Text)
	case err == nil && (kind == reusePanics || kind == reuseEnds || kind == reuseFails):
		r.t.Errorf("call %s of kind %d succeeds", id, kind)
	case err == nil || r.closed.Load() != closed:
	case !failed || kind == reusePlain || kind == reuseForever || kind == reuseLeaves,
		kind == reuseShort && e.Code() != fulmar.DeadlineExceeded, kind == reuseCancelled && e.Code() != fulmar.Canceled,
		kind == reuseFails && !strings.Contains(e.Message(), id), (kind == reusePanics || kind == reuseEnds) && e.Code() != fulmar.Internal:
		r.t.Errorf("call %s of kind %d: %v", id, kind, err)
	}
}

// check looks at the contexts when all calls have ended.
func (r *reuse) check() {
	for _, kept := range r.kept {
		call, ok := fulmar.CallFrom(kept.ctx)
		deadline, _ := kept.ctx.Deadline()
		id, _ := call.Metadata().Persistent("ID")
		if !ok || kept.ctx.Err() == nil || !deadline.Equal(kept.deadline) || r.protocol != fulmar.Framed && id != kept.id {
			r.t.Errorf("the context of call %s says %v, deadline %v (was %v), id %q", kept.id, kept.ctx.Err(), deadline, kept.deadline, id)
		}
	}
	for _, kept := range r.dials {
		deadline, _ := kept.ctx.Deadline()
		if id := kept.ctx.Value(reuseKey{}); kept.ctx.Err() == nil || id != nil || !deadline.Equal(kept.deadline) {
			r.t.Errorf("the context of a dial, which is no call's, says %v, deadline %v (was %v), id %v", kept.ctx.Err(), deadline, kept.deadline, id)
		}
	}
}

// TestReuse_NoCallSeesAnother: goal: the memory of calls is used again on both sides, and
// nobody who has it still may notice. Method: calls that end in every way there is beside
// each other, while clients are closed; each compares what it is told in three ways, and
// those who keep contexts look at them in the end.
func TestReuse_NoCallSeesAnother(t *testing.T) {
	for _, protocol := range []fulmar.Protocol{fulmar.TTHeader, fulmar.Framed, 0} {
		t.Run(strings.Replace(protocol.String(), "unknown", "local", 1), func(t *testing.T) {
			r := &reuse{t: t, protocol: protocol, over: make(chan struct{})}
			// A machine with other work must not make it refuse calls.
			r.server = serve(t, fulmar.ServerConfig{MaxWaitPercent: -1}, &testservice.Stub{OnEcho: r.serve, OnNothing: func(context.Context) error { return nil }})
			r.renew()
			var callers sync.WaitGroup
			for caller := range 12 {
				callers.Go(func() {
					random := rand.New(rand.NewPCG(uint64(caller), uint64(protocol)))
					for i := range 60 {
						r.call(fmt.Sprintf("%d.%d", caller, i), random)
						if caller == 0 && i%20 == 19 {
							r.renew()
						}
					}
				})
			}
			callers.Wait()
			close(r.over)
			if err := r.server.stop(); err != nil {
				t.Error(err)
			}
			r.left.Wait()
			_ = r.client.Load().Close()
			r.check()
		})
	}
}
