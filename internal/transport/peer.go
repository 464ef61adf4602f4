package transport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/wire"
)

// Peer makes the calls of a client to one address. Where both sides can match
// replies, calls share a few connections; otherwise each has one to itself for
// as long as it takes. Safe for concurrent use.
//
// Whether a server can multiplex shows in the reply to the first call on a
// connection, so until then that call has it to itself. What earlier
// connections showed is a hint only: it decides whether other calls wait a
// moment for that reply.
type Peer struct {
	config PoolConfig
	pool   *Pool
	// encodings are for requests and replies in gRPC.
	encodings encodings

	mu sync.Mutex
	// shared are the connections that calls may be added to.
	shared []*muxConn
	// asking counts calls that have a connection to themselves and may show that
	// it can be shared; answered is closed when that has happened, or has not.
	asking   int
	answered chan struct{}
	// refused: the last peer that was asked cannot multiplex.
	refused bool
	// growAfter is when a further connection may be tried, growPause how long
	// after the last failure that is; 0 if there was none.
	growAfter time.Time
	growPause time.Duration
	reaper    *time.Timer
	closed    bool

	late atomic.Uint64
	// local is how calls reach a server of this process; nil for an address.
	local *localPeer
	// grpc is how calls are made in gRPC; nil for the other protocols.
	grpc *streamPeer
	// streams is how streaming methods are called over TTHeader, nil before the first one. It
	// has connections of its own.
	streams *streamPeer

	// requests holds *Request that are not in use.
	requests *sync.Pool
}

// NewPeer returns a Peer without connections. Close must be called in the end.
func NewPeer(config PoolConfig) *Peer {
	p := &Peer{config: config, encodings: newEncodings(config.Encodings, 0), requests: config.Requests}
	if p.requests == nil {
		p.requests = new(sync.Pool)
	}
	if hasTTHeader(config.Protocol) {
		config.Share = p.share
	}
	p.pool = NewPool(config)
	if config.Local != nil {
		p.local = newLocalPeer(p, config.Local)
	}
	if config.Protocol == wire.GRPC {
		p.grpc = &streamPeer{peer: p, pool: p.pool, start: startGRPC}
	}
	return p
}

// WaiterKey is the key of a Waiter in a context.
type WaiterKey struct{}

// Waiter is what runs a call that makes calls of its own, with its context, and
// has to know that it waits for them.
type Waiter interface{ WillWait() }

// Do makes a call: it sends the request and waits for what comes back, until
// ctx ends. A oneway request returns once it was handed to the network. If a
// connection that was used before fails before the network has accepted the
// request, it tries once more: nothing was sent, so nothing can have been
// executed. It fails with a *CallError.
func (p *Peer) Do(ctx context.Context, request *Request) (*Response, error) {
	if waiter, ok := ctx.Value(WaiterKey{}).(Waiter); ok {
		waiter.WillWait()
	}
	if p.local != nil {
		return p.local.call(ctx, request)
	}
	if p.grpc != nil {
		return p.grpc.do(ctx, request, nil)
	}
	for attempt := 0; ; {
		var response *Response
		var used bool
		shared, ask, err := p.shares(ctx, request)
		switch {
		case err != nil:
		case ask:
			response, used, err = p.ask(ctx, request, shared)
		case shared != nil:
			response, err = shared.call(ctx, request)
			used = !errors.Is(err, ErrExhausted)
		default:
			response, used, err = p.aloneWithin(ctx, ctx, request)
		}
		if err == nil {
			return response, nil
		}
		if errors.Is(err, errShared) || errors.Is(err, errLeaving) {
			// The call has not begun.
			continue
		}
		if p.pool.Closed() && !errors.Is(err, ErrClosed) {
			err = &CallError{Phase: phaseOf(err), Sent: sent(err), Err: fmt.Errorf("%w (%w)", err, ErrClosed)}
		}
		if sent(err) || !used || attempt > 0 || ctx.Err() != nil || request.shared() {
			return nil, err
		}
		attempt++
		request.tellRetried(err)
	}
}

// shares is pick, if calls may share connections.
func (p *Peer) shares(ctx context.Context, request *Request) (shared *muxConn, ask bool, err error) {
	if !hasTTHeader(p.config.Protocol) || p.config.Short {
		return nil, false, nil
	}
	return p.pick(ctx, request)
}

// ask makes a call on a connection that is opened for it, for which others wait, or on the
// shared one if there is one and that fails. used reports whether the connection had served
// a call before.
func (p *Peer) ask(ctx context.Context, request *Request, shared *muxConn) (response *Response, used bool, err error) {
	request.at = time.Time{}
	if shared == nil {
		return p.first(ctx, ctx, request)
	}
	response, used, err = p.grow(ctx, request)
	if err == nil || sent(err) || errors.Is(err, errShared) || ctx.Err() != nil || request.shared() {
		return response, used, err
	}
	// There is a connection that works.
	response, err = shared.call(ctx, request)
	return response, !errors.Is(err, ErrExhausted), err
}

// grow makes a call on one more connection. What hinders that must not cost the
// call its deadline, because it can go over one that works.
func (p *Peer) grow(ctx context.Context, request *Request) (response *Response, used bool, err error) {
	patience, cancel := ctx, context.CancelFunc(func() {})
	if deadline, ok := ctx.Deadline(); ok {
		patience, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
	}
	defer cancel()
	response, used, err = p.first(ctx, patience, request)
	// A shared connection on which the first call timed out is there all the same.
	stays := p.config.Multiplexed && ctx.Err() != nil && phaseOf(err) > PhaseHandshake
	p.grew(err == nil || errors.Is(err, errShared) || stays)
	return response, used, err
}

// first makes the first call on a connection that others wait for. The call
// waits for that until patience ends.
func (p *Peer) first(ctx, patience context.Context, request *Request) (response *Response, used bool, err error) {
	if !p.config.Multiplexed {
		defer p.asked()
		return p.aloneWithin(ctx, patience, request)
	}
	opened, err := func() (*muxConn, error) {
		defer p.asked() // also if an observer ends the goroutine
		return p.open(patience)
	}()
	if err != nil {
		return nil, false, err
	}
	return opened.callFirst(ctx, request)
}

// aloneWithin makes a call on a connection of its own. It waits for that until patience
// ends.
func (p *Peer) aloneWithin(ctx, patience context.Context, request *Request) (response *Response, used bool, err error) {
	var conn *ClientConn
	for {
		now := request.at
		request.at = time.Time{} // it may wait here, and go to a shared connection then
		if conn, err = p.pool.acquire(patience, now); err != nil {
			return nil, false, err
		}
		if request.teller == nil || !conn.stale() {
			if response, err = conn.carry(ctx, request); !errors.Is(err, errStale) {
				break
			}
		}
		p.pool.discard(conn)
	}
	switch {
	case err != nil:
		conn.broke = err
		conn.Discard()
		return nil, conn.Reused(), err
	case request.oneway:
		conn.Retire()
		request.response = Response{}
		return &request.response, true, nil
	case hasTTHeader(p.config.Protocol):
		p.learned(conn.mux)
		if conn.mux {
			// At once, because others wait for it.
			response.leave(request, p.pool.buffers)
		}
	}
	return response, true, nil
}

// open opens a connection to a peer that is known to multiplex.
func (p *Peer) open(ctx context.Context) (*muxConn, error) {
	conn, err := p.pool.Acquire(ctx)
	for err == nil && conn.stale() {
		p.pool.discard(conn)
		conn, err = p.pool.Acquire(ctx)
	}
	if err != nil {
		return nil, err
	}
	opened := p.add(conn)
	if opened == nil {
		p.pool.discard(conn)
		return nil, errBroke()
	}
	return opened, nil
}

// errBroke is the error of a call whose connection ended before it could be used.
func errBroke() error {
	return &CallError{Phase: PhaseConnect, Err: errors.New("the connection broke before it was used")}
}

// grew notes whether a further connection could be opened. If not, the next
// try waits, for longer each time: every try takes a call that a connection
// which works would have carried.
func (p *Peer) grew(ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ok {
		p.growPause, p.growAfter = 0, time.Time{}
		return
	}
	p.growPause = min(max(2*p.growPause, limits.GrowPauseMin), limits.GrowPauseMax)
	p.growAfter = time.Now().Add(p.growPause)
}

// growsIn returns how long it is until a further connection may be tried, 0 or less if it may now.
func (p *Peer) growsIn() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.growPause == 0 {
		return 0
	}
	return time.Until(p.growAfter)
}

// learned notes whether the server can multiplex.
func (p *Peer) learned(mux bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = !mux
}

// pick returns a shared connection. If there is none the caller uses one of its
// own. ask says that others wait for what that shows, so asked must follow; a
// shared connection beside it is for when that fails.
func (p *Peer) pick(ctx context.Context, request *Request) (shared *muxConn, ask bool, err error) {
	var patience <-chan time.Time
	for {
		p.mu.Lock()
		shared, waiting := p.leastBusy()
		// Where no more may be opened, waiting for one would not help.
		grow := len(p.shared) < limits.MultiplexedConnections && waiting >= limits.MultiplexedGrow && p.pool.hasRoom() &&
			(p.growPause == 0 || time.Now().After(p.growAfter))
		switch {
		case p.closed:
			p.mu.Unlock()
			return nil, false, &CallError{Phase: PhaseAcquire, Err: ErrClosed}
		case shared != nil && (!grow || p.asking > 0):
			p.mu.Unlock()
			return shared, false, nil
		case p.refused && !p.config.Multiplexed:
			// Should that have changed, the first call on a new connection shows it.
			p.mu.Unlock()
			return nil, false, nil
		case p.asking == 0:
			p.asking++
			p.answered = make(chan struct{})
			p.mu.Unlock()
			return shared, true, nil
		}
		answered := p.answered
		p.mu.Unlock()
		request.at = time.Time{}
		if patience == nil && !p.config.Multiplexed {
			timer := time.NewTimer(limits.CapabilityWait)
			defer timer.Stop()
			patience = timer.C
		}
		select {
		case <-answered:
		case <-patience:
			return nil, false, nil
		case <-ctx.Done():
			return nil, false, &CallError{Phase: PhaseAcquire, Err: fmt.Errorf(
				"waiting for the first call on a connection: %w", ctx.Err())}
		}
	}
}

// asked ends what pick has begun.
func (p *Peer) asked() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asking--
	close(p.answered)
}

// leastBusy returns the shared connection with the fewest calls, and how many.
func (p *Peer) leastBusy() (best *muxConn, waiting int) {
	for _, c := range p.shared {
		if n := int(c.waiting.Load()); best == nil || n < waiting {
			best, waiting = c, n
		}
	}
	return best, waiting
}

// share makes a connection one that calls share, if it can.
func (p *Peer) share(conn *ClientConn) bool { return p.add(conn) != nil }

// add makes a connection one that calls share. It returns nil if that is not
// possible.
func (p *Peer) add(conn *ClientConn) *muxConn {
	if conn.conn.SetDeadline(time.Time{}) != nil {
		return nil
	}
	p.mu.Lock()
	if p.closed || len(p.shared) >= limits.MultiplexedConnections {
		p.mu.Unlock()
		return nil
	}
	shared := newMuxConn(p, conn)
	p.shared = append(p.shared, shared)
	p.scheduleReaperLocked()
	p.mu.Unlock()
	go shared.read()
	p.pool.toShared(conn, shared)
	return shared
}

// leave takes a connection out of those that calls may be added to.
func (p *Peer) leave(shared *muxConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.shared, shared); i >= 0 {
		p.shared = slices.Delete(p.shared, i, i+1)
	}
}

// scheduleReaperLocked makes sure that shared connections without calls, and old ones,
// are closed. There is no timer while there are none.
func (p *Peer) scheduleReaperLocked() {
	pause := p.config.reaperPause()
	if p.reaper == nil && len(p.shared) > 0 && pause > 0 {
		p.reaper = time.AfterFunc(pause, p.reap)
	}
}

// reaperPause returns how long to wait between looks at connections that are shared, 0 for
// ever.
func (c *PoolConfig) reaperPause() time.Duration {
	// Looked at twice in the idle time, so they live half as long again at most; ten
	// times in their age, whose jitter is as much.
	pause := c.IdleTimeout / 2
	if age := c.Age / 10; age > 0 && (pause <= 0 || age < pause) {
		pause = age
	}
	return pause
}

func (p *Peer) reap() {
	p.mu.Lock()
	shared := slices.Clone(p.shared)
	p.mu.Unlock()
	now := time.Now()
	for _, conn := range shared {
		conn.leaveIfDue(now, p.config.IdleTimeout)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reaper = nil
	if !p.closed {
		p.scheduleReaperLocked()
	}
}

// ttstreams returns what calls streaming methods over TTHeader.
func (p *Peer) ttstreams() *streamPeer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.streams == nil {
		config := p.config
		config.Share = nil
		p.streams = &streamPeer{peer: p, pool: NewPool(config), start: startTTStream, closed: p.closed}
		if p.closed {
			p.streams.pool.Close()
		}
	}
	return p.streams
}

// WarmUp opens a connection unless there is one. It fails with a *CallError.
func (p *Peer) WarmUp(ctx context.Context) error {
	if p.grpc != nil {
		return p.grpc.warmUp(ctx)
	}
	if p.pool.Open() > 0 {
		return nil
	}
	conn, err := p.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	p.pool.release(conn)
	return nil
}

// Close closes all connections. Calls in progress fail, later ones too, with
// ErrClosed.
func (p *Peer) Close() {
	p.mu.Lock()
	p.closed = true
	if p.reaper != nil {
		p.reaper.Stop()
	}
	shared := slices.Clone(p.shared)
	streams := p.streams
	p.mu.Unlock()
	p.pool.Close()
	if p.grpc != nil {
		p.grpc.close()
	}
	if streams != nil {
		streams.pool.Close()
		streams.close()
	}
	for _, conn := range shared {
		conn.fail(ErrClosed)
	}
}

// Retire closes each connection when it has no call any more, at once if it has none: for
// an address that gets no more calls. Calls that come all the same, because they were on
// their way, are made as before. Close must still be called.
func (p *Peer) Retire() {
	p.mu.Lock()
	shared := slices.Clone(p.shared)
	streams := p.streams
	p.mu.Unlock()
	p.pool.retire()
	for _, conn := range shared {
		conn.leave()
	}
	if p.grpc != nil {
		p.grpc.retire()
	}
	if streams != nil {
		streams.retire()
	}
}

// Closed reports whether Close was called.
func (p *Peer) Closed() bool { return p.pool.Closed() }

// PeerStats counts what happens between a client and one address.
type PeerStats struct {
	// Connections is how many are open or being opened, Shared how many of them
	// calls share now.
	Connections int
	Shared      int
	// LateReplies counts replies on shared connections that nobody waited for:
	// their calls had given up, or there never was such a call.
	LateReplies uint64
}

// Stats returns the counts of now.
func (p *Peer) Stats() PeerStats {
	p.mu.Lock()
	stats := PeerStats{Shared: len(p.shared), LateReplies: p.late.Load()}
	streams := p.streams
	p.mu.Unlock()
	if p.grpc != nil {
		stats.Shared = p.grpc.shared()
	}
	stats.Connections = p.pool.Open()
	if streams != nil {
		stats.Shared += streams.shared()
		stats.Connections += streams.pool.Open()
	}
	return stats
}

func phaseOf(err error) Phase {
	var failed *CallError
	if errors.As(err, &failed) {
		return failed.Phase
	}
	return PhaseAcquire
}

// sent reports whether the peer may have the whole request.
func sent(err error) bool {
	var failed *CallError
	return errors.As(err, &failed) && failed.Sent
}
