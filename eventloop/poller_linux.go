package eventloop

import (
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// readEvents say that bytes have arrived, or that the peer stopped sending.
const readEvents = unix.EPOLLIN | unix.EPOLLRDHUP

// batchEvents is how many events one look at epoll brings at most: what a
// leader leaves to its successor has to be copied, and 128 connections with
// 5 us of work each are half a millisecond.
const batchEvents = 128

// poller watches sockets. One goroutine at a time, its leader, waits for events
// and acts on them. While the leader runs what a user wrote, its role can be
// taken from it: then it goes on as an ordinary goroutine, and another leads.
//
//	            events                       code of the user
//	waiting --------------> handing out --------------------------> lent
//	   ^                         |  ^                                 | |
//	   +---- batch is done ------+  +-------- it has returned --------+ |
//	                                                                    |
//	(another goroutine: handing out the rest) <--- release, monitor ----+
type poller struct {
	engine *epollEngine
	epoll  int
	// file is epoll. nested says that the leader waits for it in the runtime's
	// poller; otherwise it waits for epoll on a thread of its own. See newPoller.
	file   *os.File
	raw    syscall.RawConn
	nested bool
	// waker is an eventfd that ends a wait.
	waker int
	slots slots
	// spinner and coalescer belong to the leader.
	spinner   spinner
	coalescer coalescer
	// alarm belongs to the leader.
	alarm alarm
	// starved: calls have kept the leader from the processors, and more of them can run.
	starved atomic.Bool
	// starvedAt is when they last kept him for starvedLong, or a nap of his for starvedLeast
	// longer than it is. Only who leads uses it.
	starvedAt time.Time
	// leader is who has the role.
	leader atomic.Pointer[leader]

	mu sync.Mutex
	// buffers wait for the next leader.
	buffers [][]byte
	// closing is closed when the poller is to end, ended when it has.
	closing, ended chan struct{}
}

// newPoller returns a poller whose leader does not lead yet.
//
// With one processor its leader waits in the runtime's poller: on a thread of its
// own it would keep the processor until the runtime's monitor takes it away, up
// to 10 ms later, and connections that package net polls would wait as long. With
// more, the runtime's poller would be told of every event, also while the leader
// looks itself, and wake a thread for nothing: with 64 connections on two
// processors fulmar-inline of suite net went from 69 to 102 thousand calls a
// second.
func newPoller(engine *epollEngine) (*poller, error) {
	p := &poller{
		engine: engine, nested: engine.single, spinner: newSpinner(engine.listener.config.SpinTime, new(spinBudget)),
		coalescer: coalescer{pause: engine.listener.config.CoalesceTime},
		closing:   make(chan struct{}), ended: make(chan struct{}),
	}
	var err error
	if p.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	// Only what does not block gets into the runtime's poller.
	if err := unix.SetNonblock(p.epoll, p.nested); err != nil {
		_ = unix.Close(p.epoll)
		return nil, os.NewSyscallError("fcntl", err)
	}
	p.file = os.NewFile(uintptr(p.epoll), "epoll")
	if p.raw, err = p.file.SyscallConn(); err == nil {
		p.waker, err = newWaker(p.epoll)
	}
	if err != nil {
		_ = p.file.Close()
		return nil, err
	}
	p.leader.Store(p.newLeader())
	return p, nil
}

// newWaker returns an eventfd that epoll watches, under a token of no socket.
func newWaker(epoll int) (int, error) {
	waker, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return 0, os.NewSyscallError("eventfd2", err)
	}
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: -1, Pad: -1}
	if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, waker, &event); err != nil {
		_ = unix.Close(waker)
		return 0, os.NewSyscallError("epoll_ctl", err)
	}
	return waker, nil
}

// free closes the descriptors.
func (p *poller) free() {
	_ = p.file.Close()
	_ = unix.Close(p.waker)
	p.alarm.free()
}

// discard gives back everything of a poller whose leader does not lead yet.
func (p *poller) discard() {
	close(p.closing) // so that the buffer is not kept for another leader
	p.leader.Load().retire()
	p.free()
}

// wake makes the leader look whether the poller is closing. It is not reset: the
// poller ends.
func (p *poller) wake() {
	// Any number will do, in whatever order the bytes are.
	_, _ = unix.Write(p.waker, []byte{0, 0, 0, 1, 0, 0, 0, 0})
}

// close ends the poller, which has no sockets any more, and waits for that.
func (p *poller) close() {
	close(p.closing)
	// To close the file here would free a number that the leader may be about to
	// use.
	p.wake()
	<-p.ended
	p.mu.Lock()
	defer p.mu.Unlock()
	p.engine.listener.stats.buffers.Add(-int64(len(p.buffers)))
	p.buffers = nil
}

func (p *poller) isClosing() bool {
	select {
	case <-p.closing:
		return true
	default:
		return false
	}
}

// watch changes what is reported for a socket from one set of events to another;
// 0 is none.
func (p *poller) watch(s *socket, from, to uint32) error {
	operation := unix.EPOLL_CTL_MOD
	switch {
	case from == 0:
		operation = unix.EPOLL_CTL_ADD
	case to == 0:
		operation = unix.EPOLL_CTL_DEL
	}
	event := unix.EpollEvent{Events: to, Fd: int32(s.token.slot), Pad: int32(s.token.generation)}
	return unix.EpollCtl(p.epoll, operation, s.fd, &event)
}

// poll looks for events without waiting. Waits for 0 ms cannot block, so the
// scheduler need not be told: 54 ns of 373.
func (p *poller) poll(events []unix.EpollEvent) (int, error) {
	for {
		n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.epoll), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), 0, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
		default:
			return 0, os.NewSyscallError("epoll_pwait", errno)
		}
	}
}

// --- leading ---

// leader is a goroutine that has, or had, the role of its poller.
type leader struct {
	poller *poller
	// buffer is what it reads into. It keeps it when it loses the role, because
	// what the user's code looks at may be in it.
	buffer []byte
	events [batchEvents]unix.EpollEvent
	// next is the event to look at, count how many there are.
	next, count int
	// clock is what time it was lately, read when looks was clockAt; zero if it has to
	// be read. looks counts events and calls, between which time passes.
	clock          time.Time
	looks, clockAt uint64
	// attempt polls once, for raw.Read; made once instead of for every wait.
	attempt func(uintptr) bool
	pollErr error
	// spawned is how many connections of this batch other goroutines run. busy:
	// some that were started may wait for a processor. A leader that waits in the
	// kernel keeps its own one from them, until the runtime's monitor looks, which
	// may be 10 ms.
	spawned int
	busy    bool
	samples [1]metrics.Sample
	// nap wakes it when it is starved.
	nap *time.Timer
	// calls numbers the calls of users' code, in steps of two; turn are those for
	// one connection since its last event, turns counts these events.
	calls uint64
	turn  int
	turns atomic.Uint64
	// state is calls, one more while such a call runs, and lost when another has
	// the role.
	state atomic.Uint64
	// conn is whose call that is.
	conn atomic.Pointer[Conn]
}

const lost = ^uint64(0)

// inCall reports whether a leader of that state runs code of the user.
func inCall(state uint64) bool { return state&1 == 1 && state != lost }

func (p *poller) newLeader() *leader {
	l := &leader{poller: p}
	l.attempt = func(uintptr) bool {
		l.count, l.pollErr = p.poll(l.events[:])
		return l.pollErr != nil || l.count > 0
	}
	p.mu.Lock()
	if last := len(p.buffers) - 1; last >= 0 {
		l.buffer = p.buffers[last]
		p.buffers = p.buffers[:last]
	}
	p.mu.Unlock()
	if l.buffer == nil {
		l.buffer = make([]byte, readBytes)
		p.engine.listener.stats.buffers.Add(1)
	}
	return l
}

// retire gives back what a former leader kept, once.
func (l *leader) retire() {
	if l.buffer == nil {
		return
	}
	p := l.poller
	if l.state.Load() == lost {
		p.engine.choice.left.Add(-1)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.buffers) < limits.PollerBuffers && !p.isClosing() {
		p.buffers = append(p.buffers, l.buffer)
	} else {
		p.engine.listener.stats.buffers.Add(-1)
	}
	l.buffer = nil
}

// lead waits and acts until the role is lost or the poller closed.
func (l *leader) lead() {
	// Deferred, because code of the user may end the goroutine, also after it has
	// lost the role.
	defer l.retire()
	p := l.poller
	p.coalescer.resumed = time.Time{} // the role may come from a leader whose handler has waited
	for {
		for l.next < l.count {
			event := &l.events[l.next]
			l.next++
			s := p.slots.find(token{uint32(event.Fd), uint32(event.Pad)})
			if s == nil || !s.event(event.Events) {
				continue
			}
			if !p.engine.readable(s.conn, l) {
				return
			}
		}
		if err := l.wait(); err != nil {
			l.retire()
			if !p.isClosing() {
				p.engine.failed(fmt.Errorf("eventloop: poller: %w", err))
				<-p.closing // until then connections name epoll by its number
			}
			p.free()
			close(p.ended)
			return
		}
	}
}

// wait waits for the next batch.
func (l *leader) wait() (err error) {
	p := l.poller
	if l.spawned > 0 || p.engine.single {
		// What was started runs before the next batch: else, on one processor, a
		// steady stream of events would let calls wait for milliseconds.
		l.busy = l.busy || l.spawned > 0
		l.spawned = 0
		l.yield()
	}
	if p.isClosing() {
		return os.ErrClosed
	}
	stats := &p.engine.listener.stats
	l.next = 0
	for {
		if l.count, err = p.poll(l.events[:]); err != nil {
			return err
		}
		if l.busy = l.busy && l.mayStarve() && goroutinesWait(&l.samples); l.count > 0 || !l.busy || !l.yield() {
			break
		}
	}
	if !l.busy && p.starved.Load() && l.rested() {
		p.starved.Store(false)
	}
	if l.count == 0 {
		if err := l.waitLonger(); err != nil {
			return err
		}
	} else {
		l.clock, l.clockAt = time.Now(), l.looks
	}
	for i := range l.count {
		p.coalescer.saw(uint32(l.events[i].Fd))
	}
	stats.wakeups.Add(1)
	stats.events.Add(uint64(l.count))
	return nil
}

// waitLonger waits when there are no events: it lets some gather, or spins at first, if that
// pays.
func (l *leader) waitLonger() (err error) {
	p := l.poller
	stats := &p.engine.listener.stats
	began := time.Now()
	if l.coalesces(began) {
		stats.coalesced.Add(1)
		l.pause()
		if l.count, err = p.poll(l.events[:]); err != nil {
			return err
		}
		p.coalescer.gathered(l.count)
	} else if p.spinner.worth(began) {
		stats.spins.Add(1)
		spun := time.Duration(0)
		for l.count == 0 && spun < p.spinner.most {
			// Whoever else is ready runs first.
			runtime.Gosched()
			if l.count, err = p.poll(l.events[:]); err != nil {
				return err
			}
			spun = time.Since(began)
		}
		p.spinner.tried(spun, l.count > 0)
	}
	if l.count == 0 {
		stats.parks.Add(1)
		if err := l.park(); err != nil {
			return err
		}
	}
	l.clock, l.clockAt = time.Now(), l.looks
	took := l.clock.Sub(began)
	p.spinner.waited(took, l.count)
	p.coalescer.waited(l.clock, took)
	return nil
}

// clockLooks is after how many events and calls of handlers a leader looks at the clock
// again. To look takes 50 ns, of a call's 4 us.
const clockLooks = 8

// arrival returns when what the event of a connection is about had arrived. More may
// have come while the leader was busy with others: it would seem to be as old, and be
// refused as expired, if the time were that of the poll.
func (l *leader) arrival() time.Time {
	if l.looks-l.clockAt >= clockLooks || l.clock.IsZero() {
		l.clock, l.clockAt = time.Now(), l.looks
	}
	l.looks++
	return l.clock
}

// park waits until there are events.
func (l *leader) park() (err error) {
	p := l.poller
	if p.nested {
		if err := p.raw.Read(l.attempt); err != nil {
			return err
		}
		return l.pollErr
	}
	for {
		if l.count, err = unix.EpollWait(p.epoll, l.events[:], -1); err != unix.EINTR {
			return os.NewSyscallError("epoll_wait", err)
		}
	}
}

// enter says that code of the user runs now, if it may run here. If it may not,
// but the role was lost meanwhile, it may all the same.
func (l *leader) enter() bool {
	choice := l.poller.engine.choice
	if !choice.runInline() {
		return false
	}
	l.turn++
	l.looks++
	l.calls += 2
	l.state.Store(l.calls | 1)
	// Once more: a monitor that ended in between has not seen that l is in a
	// call, and nobody would take the role from it. See choice.rest.
	return choice.runInline() || !l.leave()
}

// enterAgain says that one call of the handler has returned and the next one
// begins. If it returns false, leave follows.
func (l *leader) enterAgain() bool {
	if l.turnOver() || !l.poller.engine.choice.runInline() {
		return false
	}
	l.turn++
	l.looks++
	l.calls += 2
	return l.state.CompareAndSwap(l.calls-2|1, l.calls|1)
}

// leave says that it has returned. It reports whether l has the role still.
func (l *leader) leave() bool {
	return l.state.CompareAndSwap(l.calls|1, l.calls)
}

// release gives the role to another goroutine, because the code of the user that
// l runs for c is going to wait. c goes on if that call has let go of it.
func (l *leader) release(c *Conn) {
	if l.give(c) {
		c.goOn()
	}
}

// rescue takes the role from l if it is still in the call that state is about.
func (l *leader) rescue(state uint64) {
	if !l.lose(state, true) {
		return
	}
	if c := l.conn.Load(); c != nil {
		c.goOn()
	}
}

// give gives the role to another goroutine if l runs code of the user for c. It
// reports whether it did.
func (l *leader) give(c *Conn) bool {
	state := l.state.Load()
	// In this order: while conn is c, a state that was read before is that of a call
	// for c, or not the one any more that it is now. A call for another connection
	// would lose the role, and nobody would go on with that one.
	return inCall(state) && l.conn.Load() == c && l.lose(state, false)
}

// lose makes another goroutine the leader if l is in the call that state is about,
// and counts that: rescued, or released. It reports whether it did.
func (l *leader) lose(state uint64, rescued bool) bool {
	p := l.poller
	p.engine.choice.left.Add(1) // before: l may be about to return
	if !l.state.CompareAndSwap(state, lost) {
		p.engine.choice.left.Add(-1)
		return false
	}
	stats := &p.engine.listener.stats
	if rescued {
		stats.rescues.Add(1)
	} else {
		stats.released.Add(1)
	}
	successor := p.newLeader()
	p.engine.choice.lost(rescued)
	// l is in that call, or will find that it has lost the role.
	successor.busy = true
	successor.count = copy(successor.events[:], l.events[l.next:l.count])
	p.leader.Store(successor)
	go successor.lead()
	return true
}

// --- which socket an event is about ---

// token names a socket in the kernel's events: the index of its slot, and how
// often that was used before. A pointer would be a dangling one when an event
// comes after the end of its connection.
type token struct{ slot, generation uint32 }

// slotsPerBlock slots are allocated at a time. They stay where they are.
const slotsPerBlock = 256

type slotBlock [slotsPerBlock]struct {
	socket     atomic.Pointer[socket]
	generation uint32 // guarded by slots.mu
}

// slots is the table of a poller's sockets. Safe for concurrent use.
type slots struct {
	blocks atomic.Pointer[[]*slotBlock]
	mu     sync.Mutex
	free   []uint32
}

// add gives a socket its token.
func (t *slots) add(s *socket) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var blocks []*slotBlock
	if known := t.blocks.Load(); known != nil {
		blocks = *known
	}
	if len(t.free) == 0 {
		first := uint32(len(blocks) * slotsPerBlock)
		blocks = append(blocks[:len(blocks):len(blocks)], new(slotBlock))
		t.blocks.Store(&blocks)
		for i := uint32(slotsPerBlock); i > 0; i-- {
			t.free = append(t.free, first+i-1)
		}
	}
	last := len(t.free) - 1
	index := t.free[last]
	t.free = t.free[:last]
	slot := &blocks[index/slotsPerBlock][index%slotsPerBlock]
	slot.generation++
	s.token = token{index, slot.generation}
	slot.socket.Store(s)
}

// find returns the socket of a token, nil if it is gone.
func (t *slots) find(k token) *socket {
	blocks := t.blocks.Load()
	if blocks == nil || k.slot >= uint32(len(*blocks)*slotsPerBlock) {
		return nil
	}
	s := (*blocks)[k.slot/slotsPerBlock][k.slot%slotsPerBlock].socket.Load()
	if s == nil || s.token != k {
		return nil
	}
	return s
}

// remove frees a token.
func (t *slots) remove(k token) {
	t.mu.Lock()
	defer t.mu.Unlock()
	slot := &(*t.blocks.Load())[k.slot/slotsPerBlock][k.slot%slotsPerBlock]
	if s := slot.socket.Load(); s != nil && s.token == k {
		slot.socket.Store(nil)
		t.free = append(t.free, k.slot)
	}
}
