package eventloop

import (
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fulmar-rpc/fulmar/internal/workers"
)

// epollEngine runs connections on pollers. A connection is owned by the
// goroutine that runs it, or by nobody while it waits:
//
//	waiting --- event, poke ---> owned --- next is to wait or read ---> waiting
//
// Only its owner uses a connection's Reader and calls its handler. While it is
// owned its socket is watched still; if bytes arrive the poller stops watching,
// and the owner starts that again.
type epollEngine struct {
	listener *Listener
	pollers  []*poller
	next     atomic.Uint32
	choice   *choice
	workers  *workers.Pool[epollJob]
	// single: there is one processor, so others run only when the leader lets
	// them.
	single bool

	mu      sync.Mutex
	started bool
	closed  bool
}

// loopState is what epollEngine keeps for a connection, guarded by Conn.mu.
type loopState struct {
	socket *socket
	// leader runs the handler now, on the goroutine that polls; nil if none does.
	leader atomic.Pointer[leader]
}

// epollJob is a connection for another goroutine, with the action that its last
// owner has begun; actionWait if none.
type epollJob struct {
	conn   *Conn
	action action
}

// epoll is the constructor of EngineEpoll.
func epoll() func(*Listener) engine { return newEpollEngine }

func newEpollEngine(l *Listener) engine {
	e := &epollEngine{listener: l, single: runtime.GOMAXPROCS(0) == 1}
	e.workers = workers.New(e.work)
	e.choice = newChoice(l.config.Dispatch, e.leaders)
	return e
}

func (e *epollEngine) leaders(yield func(*leader) bool) {
	for _, p := range e.pollers {
		if !yield(p.leader.Load()) {
			return
		}
	}
}

func (e *epollEngine) takes(conn net.Conn) bool {
	_, ok := conn.(*socket)
	return ok
}

func (e *epollEngine) accepts(socket net.Listener, exclusive bool) (net.Listener, error) {
	if !exclusive {
		return converter{socket, e}, nil
	}
	a, err := newAcceptor(socket, e)
	if a == nil {
		return socket, err
	}
	return a, nil
}

// start makes the pollers, when there is a first connection.
func (e *epollEngine) start() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed:
		return net.ErrClosed
	case e.started:
		return nil
	}
	var pollers []*poller
	for range e.listener.config.Pollers {
		p, err := newPoller(e)
		if err != nil {
			for _, p := range pollers {
				p.discard()
			}
			return err
		}
		pollers = append(pollers, p)
	}
	e.pollers, e.started = pollers, true
	for _, p := range pollers {
		go p.leader.Load().lead() // it may start the monitor, which looks at all of them
	}
	return nil
}

// adopt makes a connected socket one that a poller watches. It takes over fd.
func (e *epollEngine) adopt(fd int) (*socket, error) {
	if err := e.start(); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("starting the pollers: %w", err)
	}
	s := &socket{fd: fd, poller: e.pollers[e.next.Add(1)%uint32(len(e.pollers))]}
	s.poller.slots.add(s)
	return s, nil
}

// close ends pollers and goroutines, when the listener has no connections.
func (e *epollEngine) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	e.closed = true
	e.choice.close()
	for _, p := range e.pollers {
		p.close()
	}
	e.workers.Close()
}

// failed is told that a poller cannot wait any more, which must not happen.
func (e *epollEngine) failed(err error) {
	e.listener.log.Error("eventloop: connections are not served any more", "address", text(e.listener.Addr()), "reason", err.Error())
	go func() { _ = e.listener.Close() }()
}

// --- the engine of a connection ---

func (e *epollEngine) serve(c *Conn) {
	loop := &c.served.loop
	t := c.tlsOf()
	if t == nil {
		loop.socket = c.socket.(*socket)
	} else {
		loop.socket = t.Conn.(*socket)
	}
	loop.socket.conn = c
	// So that also connections with few calls are measured, and a peer does not
	// know which ones are.
	c.served.handles = uint8(rand.Uint32())
	c.served.owned, c.served.drained = true, true
	first := actionOpen
	if t != nil {
		// The handshake opens it.
		c.expectHandshake()
		first = actionWait
	}
	e.workers.Do(epollJob{conn: c, action: first})
}

func (e *epollEngine) poke(c *Conn) {
	c.served.poked.Store(true) // before it looks: see Detach
	e.interruptHandshake(c)
	if c.served.owned && !e.seizeLocked(c) {
		return
	}
	c.served.owned = true
	e.workers.Do(epollJob{conn: c})
}

// seizeLocked takes a connection from a call that has let go of it. If that call
// runs on the goroutine that polls, another one polls from now on: what the call
// still does with the connection may wait, and nobody would see it any more.
func (e *epollEngine) seizeLocked(c *Conn) bool {
	if !c.seizeLocked() {
		return false
	}
	e.seized(c)
	return true
}

// seized takes the role from the call that had the connection.
func (e *epollEngine) seized(c *Conn) {
	if l := c.served.loop.leader.Swap(nil); l != nil {
		l.give(c)
	}
}

// mustGoOn: the poller, or who takes its role, goes on with a connection when there
// is something to do. What is there already would wait, if the handler was spawned or
// has lost the role.
func (e *epollEngine) mustGoOn(c *Conn, more bool) bool {
	l := c.served.loop.leader.Load()
	if l == nil {
		return more || c.served.poked.Load()
	}
	return c.served.ending.Load() || l.state.Load() == lost
}

// yields: requests of one connection that take long are shared out to all
// processors, if there are several, but for those that are measured. Where processors
// are short, all that have arrived should wait as calls, which somebody counts, and what
// is behind them be read.
func (e *epollEngine) yields(c *Conn) bool {
	shared := !e.single && e.choice.long.Load() && c.served.handles%sampled != 0
	return shared || c.inFlight.Load() < starvedCalls && c.served.loop.socket.poller.starved.Load()
}

func (e *epollEngine) goOn(c *Conn) {
	e.seized(c)
	next := actionWait
	if c.writer.Len() == 0 {
		if next = e.await(c, false); next == actionWait {
			return
		}
	}
	e.listener.stats.spawned.Add(1)
	e.workers.Do(epollJob{conn: c, action: next})
}

// readable runs a connection whose socket has something to read. It reports
// whether the leader still leads.
func (e *epollEngine) readable(c *Conn, l *leader) bool {
	loop := &c.served.loop
	c.mu.Lock()
	if c.served.owned {
		c.served.poked.Store(true)
	}
	if c.served.owned && !e.seizeLocked(c) {
		// Its owner looks again. Until then this would be reported for ever.
		loop.socket.unwatchReads()
		c.mu.Unlock()
		return true
	}
	c.served.owned, c.served.drained = true, false
	if c.writer.Len() > 0 {
		c.mu.Unlock()
		// The call that has let go of it has left replies of others, whose flush may
		// wait; the event may be about bytes that were read since.
		e.workers.Do(epollJob{conn: c})
		return true
	}
	next := e.awaitLocked(c, false)
	c.mu.Unlock()
	return e.run(c, l, next)
}

// work runs a connection on a goroutine that does not poll.
func (e *epollEngine) work(job epollJob) {
	if job.action == actionWait {
		// Another goroutine may have left it with replies.
		job.conn.flushReplies()
		job.action = e.await(job.conn, false)
	}
	e.run(job.conn, nil, job.action)
}

// run does what a connection needs until it has to wait, next first. With a leader
// it runs on the goroutine that polls; it reports whether that still leads.
func (e *epollEngine) run(c *Conn, l *leader, next action) (leads bool) {
	leads = l != nil
	reads := 0
	if leads {
		l.turn = 0
		l.turns.Store(l.turns.Load() + 1) // nobody else does
	}
	for next != actionWait {
		switch {
		case next == actionRead:
			reads++
			next = e.read(c, l, leads, reads)
			continue
		case next == actionLook:
			c.look()
		case !leads:
			if _, owned := e.act(c, nil, next); !owned {
				return false
			}
		case next != actionLinger && next != actionHandshake && !l.turnOver() && l.enter():
			var owned bool
			if leads, owned = e.act(c, l, next); !owned {
				return leads
			}
		default:
			e.spawn(c, l, next)
			return true
		}
		if next == actionFinish || next == actionLinger {
			return leads
		}
		next = e.await(c, leads && reads >= turnReads)
	}
	return leads
}

// spawn lets another goroutine go on with a connection.
func (e *epollEngine) spawn(c *Conn, l *leader, next action) {
	// The leader's buffer is needed for the next connection.
	c.reader.keep()
	l.spawned++
	e.listener.stats.spawned.Add(1)
	e.workers.Do(epollJob{conn: c, action: next})
}

// act does what calls code of the user, on the goroutine that polls if there is
// a leader, which has entered. It reports whether that still leads, and whether the
// goroutine still owns the connection.
func (e *epollEngine) act(c *Conn, l *leader, next action) (leads, owned bool) {
	loop := &c.served.loop
	turn := c.served.turn.Load()
	if l != nil {
		l.conn.Store(c)
		loop.leader.Store(l)
	}
	returned := false
	defer func() {
		if l != nil {
			// Another leader may run it by now.
			loop.leader.CompareAndSwap(l, nil)
			if !returned {
				l.release(c)
			}
			l.conn.Store(nil)
		}
		if returned {
			return
		}
		// The user's code has ended its goroutine. Others go on.
		if next != actionFinish && next != actionLinger && c.served.turn.Load() == turn {
			e.workers.Do(epollJob{conn: c})
		}
	}()
	owned = true
	switch next {
	case actionOpen:
		c.open()
	case actionHandshake:
		owned = e.handshake(c)
	case actionHandle:
		owned = e.handle(c, l)
	case actionEOF:
		c.tellEOF()
	case actionLinger:
		c.linger()
		c.finish()
	case actionFinish:
		c.finish()
	}
	returned = true
	return l != nil && l.leave(), owned
}

// handle calls the handler until there is something else to do. It reports whether
// the goroutine still owns the connection.
//
// Between two calls it does not lock the connection: where many callers share one,
// shared-128-64 of suite net, that took a fifth of the server's CPU (907 to 712 ns a
// call, 9 interleaved runs).
func (e *epollEngine) handle(c *Conn, l *leader) (owned bool) {
	for {
		var again bool
		if c.served.handles++; c.served.handles%sampled == 0 && e.choice.arrived(sampled) {
			again, owned = e.handleTimed(c)
		} else {
			again, owned = c.handle()
		}
		if !again {
			return owned
		}
		if c.served.ending.Load() || l != nil && !l.enterAgain() {
			c.handleAgain()
			return true
		}
	}
}

// handleTimed calls the handler, and tells choice how long that took.
func (e *epollEngine) handleTimed(c *Conn) (again, owned bool) {
	var took time.Duration
	again, owned = c.handleWith(func(c *Conn) error {
		turn, began := c.served.turn.Load()&^1, time.Now()
		e.choice.begins(c, turn)
		defer func() { took = e.choice.ends(c, turn, began) }()
		return c.listener.handler(c)
	})
	e.choice.ran(took)
	return again, owned
}

func (e *epollEngine) answers(c *Conn, turn uint32) { e.choice.answers(c, turn) }

// turnCalls is after how many handlers a leader leaves a connection to another
// goroutine, if events of others wait; turnCallsMost is the same if it knows of
// none, for there may be some by then. 64 KiB hold thousands of requests.
// DispatchAuto knows how long handlers take in the mean, and lets no connection have
// more than fit into turnTime by that, but for turnCallsLeast; see turnMost for those
// that take longer. Not with one processor, which would do the rest all the same.
const (
	turnCallsLeast = 8
	turnCalls      = 128
	turnCallsMost  = 1024
)

// turnOver reports whether a connection has had its turn.
func (l *leader) turnOver() bool {
	if l.turn < turnCallsLeast {
		return false
	}
	most := turnCallsMost
	if !l.poller.engine.single {
		most = int(l.poller.engine.choice.turn.Load())
	}
	return l.turn >= most || l.turn >= turnCalls && l.next < l.count
}

// turnReads is how often a leader reads one connection until it is the turn of
// others: a peer that sends as fast as it is read would keep the poller for
// itself. To come back costs one more poll, 0.4 us for 256 KiB.
const turnReads = 4

// await returns the next action. If that is to wait, or there is nothing to
// read, or its turn is over, the connection is owned by nobody any more.
func (e *epollEngine) await(c *Conn, turnOver bool) action {
	c.mu.Lock()
	next := e.awaitLocked(c, turnOver)
	c.mu.Unlock()
	return next
}

// awaitLocked is await with Conn.mu held.
func (e *epollEngine) awaitLocked(c *Conn, turnOver bool) action {
	loop := &c.served.loop
	next := c.next()
	if next == actionRead && c.secureGoesOn(turnOver) {
		if !turnOver {
			return next
		}
		// Nobody would report what has left the socket already.
		c.reader.keep()
		e.workers.Do(epollJob{conn: c})
		return actionWait
	}
	if (next == actionRead || next == actionHandshake) && (c.served.drained || turnOver) {
		// Whatever makes it unreadable from now on, such as a deadline, pokes.
		if err := loop.socket.watchReads(); err != nil {
			c.served.arrived(0, loop.socket.failure("read", err))
			return c.next()
		}
		next = actionWait
	} else if next == actionWait {
		loop.socket.unwatchReads()
	}
	if next == actionWait {
		c.reader.keep()
		c.served.owned = false
		if c.served.poked.Load() {
			c.served.poked.Store(false)
		}
		if c.backlog.Load() {
			c.backlog.Store(false)
		}
	}
	return next
}

// read reads once, without waiting, and returns what await does. reads counts the reads
// since the connection's event.
func (e *epollEngine) read(c *Conn, l *leader, leads bool, reads int) action {
	loop := &c.served.loop
	if leads {
		c.reader.borrow(l.buffer)
	}
	room := c.reader.room(readBytes, readBytesMin)
	n, drained, err := 0, false, error(nil)
	if t := c.tlsOf(); t != nil {
		n, drained, err = e.readSecure(c, t, room)
	} else {
		n, err = loop.socket.tryRead(room)
		drained = n < len(room)
		err = loop.socket.readFailure(err)
	}
	c.reader.end += n
	c.countRead(n)
	switch {
	case n == 0:
	case leads && reads == 1:
		c.served.readAt = l.arrival()
	default:
		c.served.readAt = time.Now()
	}
	c.mu.Lock()
	c.served.drained = drained
	c.served.arrived(n, err)
	next := e.awaitLocked(c, leads && reads >= turnReads)
	c.mu.Unlock()
	return next
}

// waits is told that the goroutine is going to wait for this connection's
// socket: if it is the one that polls, another has to.
func (c *Conn) waits() {
	if c.served == nil {
		return
	}
	if l := c.served.loop.leader.Load(); l != nil {
		l.release(c)
	}
}

// isPolling reports whether the connection's handler runs on a goroutine that
// polls.
func (c *Conn) isPolling() bool {
	return c.served != nil && c.served.loop.leader.Load() != nil
}

// readExpired is told that the deadline for reading has passed.
func (c *Conn) readExpired() {
	if c.served == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.served.drained = false
	c.engine().poke(c)
}
