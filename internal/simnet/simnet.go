// Package simnet is an in-memory network with faults: delay, split writes,
// resets, half-closed connections, stalls and partitions, drawn from a seed.
//
// Connections behave like TCP where programs can tell: a direction holds a
// bounded number of bytes and then makes its writer wait; a write may arrive in
// pieces, or together with the next one; each direction closes on its own;
// closing with unread bytes, or writing to a peer that is gone, resets the
// connection. A reset destroys what the other side has not read, as it does on
// every system but Linux, where programs are only lucky.
//
// Everything works inside a bubble of testing/synctest, where delays take no
// time: there are no goroutines in here, and whoever waits does so on channels
// and timers. The Network must be made inside the bubble.
//
// With one seed and one order of calls the faults are the same in every run.
// Each direction of each connection draws from a source of its own, so
// connections do not disturb each other, however their goroutines are scheduled.
package simnet

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// bufferBytes is what one direction holds, on the way and unread together:
	// about what Linux starts a loopback connection with.
	bufferBytes = 256 << 10

	// backlogMax is how many connections wait for Accept before a Dial waits.
	backlogMax = 128

	// firstPort is where ports for addresses that end in ":0" start.
	firstPort = 10000
)

// Config describes a Network. The zero value is a perfect one.
type Config struct {
	// Seed decides all random choices.
	Seed uint64
	// Delay is how long bytes take from one end to the other; connecting takes
	// twice as long. Default: 0.
	Delay time.Duration
	// DelayJitter is the most that may be added to Delay, chosen anew for each
	// write. Bytes stay in order. Default: 0.
	DelayJitter time.Duration
	// SplitPercent is how many of 100 writes arrive in two to four pieces, each
	// with a delay of its own. A read never crosses the end of a piece.
	SplitPercent int
	// BufferBytes is what one direction of a connection holds before its writer
	// has to wait. Default: 256 KiB.
	BufferBytes int
}

// Network connects listeners and dialers by address. It is safe for concurrent
// use.
type Network struct {
	config Config

	mu       sync.Mutex
	links    map[string]*link
	nextPort int
}

// link is what all connections to one address share: the listener, the faults,
// and a lock.
type link struct {
	network *Network
	address address

	mu       sync.Mutex
	listener *listener // nil: connections are refused
	pairs    map[*pair]struct{}
	dials    uint64
	// changed is for dialers, who wait for the listener or for the end of a
	// partition.
	changed event

	stalled, partitioned bool
	// refusing: connections are refused as if nobody listened.
	refusing bool
	// frozenSince is when the first of these two began. What had arrived by
	// then can still be read.
	frozenSince time.Time
}

// New returns an empty Network.
func New(config Config) *Network {
	config.BufferBytes = cmp.Or(config.BufferBytes, bufferBytes)
	return &Network{config: config, links: make(map[string]*link), nextPort: firstPort}
}

func (n *Network) link(at string) *link {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.links[at]
	if l == nil {
		l = &link{network: n, address: address(at), pairs: make(map[*pair]struct{})}
		n.links[at] = l
	}
	return l
}

// Listen accepts connections at an address, which can be any text. A port of 0,
// as in "server:0", is replaced by a free one.
func (n *Network) Listen(at string) (net.Listener, error) {
	if host, ok := strings.CutSuffix(at, ":0"); ok {
		n.mu.Lock()
		at = fmt.Sprintf("%s:%d", host, n.nextPort)
		n.nextPort++
		n.mu.Unlock()
	}
	l := n.link(at)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listener != nil {
		return nil, &net.OpError{Op: "listen", Net: networkName, Addr: l.address, Err: syscall.EADDRINUSE}
	}
	l.listener = &listener{link: l}
	l.changed.happened()
	return l.listener, nil
}

// Dial connects to an address. The network is not looked at; it is there so
// that Dial can stand in for a net.Dialer.
func (n *Network) Dial(ctx context.Context, _, at string) (net.Conn, error) {
	l := n.link(at)
	l.mu.Lock()
	defer l.mu.Unlock()
	client, err := l.dial(ctx)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: networkName, Addr: l.address, Err: err}
	}
	return client, nil
}

// dial is called with l.mu held.
func (l *link) dial(ctx context.Context) (*conn, error) {
	number := l.dials
	l.dials++
	p := l.newPair(number)
	arrived := time.Now().Add(p.client.out.delay() + p.server.out.delay())
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		switch {
		case time.Now().Before(arrived):
			l.changed.wait(&l.mu, arrived, ctx.Done())
		case l.partitioned, l.listener != nil && !l.refusing && len(l.listener.backlog) >= backlogMax:
			l.changed.wait(&l.mu, time.Time{}, ctx.Done())
		case l.listener == nil || l.refusing:
			return nil, syscall.ECONNREFUSED
		default:
			l.pairs[p] = struct{}{}
			l.listener.backlog = append(l.listener.backlog, p.server)
			l.listener.changed.happened()
			return p.client, nil
		}
	}
}

// --- faults ---

// Cut resets all connections to an address, at once for both ends.
func (n *Network) Cut(at string) {
	n.fault(at, func(l *link, now time.Time) {
		for p := range l.pairs {
			p.client.reset(now)
			p.server.reset(now)
		}
	})
}

// HalfClose ends sending on the listener's side of all connections to an
// address, as if the server had called CloseWrite.
func (n *Network) HalfClose(at string) {
	n.fault(at, func(l *link, now time.Time) {
		for p := range l.pairs {
			p.server.out.finish(now)
		}
	})
}

// Stall stops (or with false continues) everything that is on the way between
// an address and its peers. Nobody is told. Dialing goes on working.
func (n *Network) Stall(at string, on bool) {
	n.fault(at, func(l *link, now time.Time) { l.freeze(&l.stalled, on, now) })
}

// Partition is Stall, and connections that are being dialled hang as well.
func (n *Network) Partition(at string, on bool) {
	n.fault(at, func(l *link, now time.Time) { l.freeze(&l.partitioned, on, now) })
}

// Refuse refuses (or with false accepts again) new connections to an address, as if
// nobody listened there. Those that exist go on.
func (n *Network) Refuse(at string, on bool) {
	n.fault(at, func(l *link, _ time.Time) { l.refusing = on })
}

// fault changes a link and makes all who wait look again.
func (n *Network) fault(at string, change func(*link, time.Time)) {
	l := n.link(at)
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l, time.Now())
	l.changed.happened()
	for p := range l.pairs {
		p.client.out.changed.happened()
		p.server.out.changed.happened()
	}
}

func (l *link) freeze(flag *bool, on bool, now time.Time) {
	if !l.stalled && !l.partitioned {
		l.frozenSince = now
	}
	*flag = on
}

// delivered tells whether what arrives at a time can be seen now.
func (l *link) delivered(at, now time.Time) bool {
	if l.stalled || l.partitioned {
		return !at.After(l.frozenSince)
	}
	return !at.After(now)
}

// visible returns when what arrives at a time can be seen; zero if that needs a
// change of the faults first. It must not have been delivered yet.
func (l *link) visible(at time.Time) time.Time {
	if l.stalled || l.partitioned {
		return time.Time{}
	}
	return at
}

func (l *link) random(number uint64) *rand.Rand {
	hash := fnv.New64a()
	hash.Write([]byte(l.address))
	return rand.New(rand.NewPCG(l.network.config.Seed^hash.Sum64(), number))
}

// --- waiting ---

// event lets goroutines wait for the next change of something that a lock
// guards. It makes no channel while nobody waits.
type event struct{ channel chan struct{} }

// happened wakes all who wait.
func (e *event) happened() {
	if e.channel != nil {
		close(e.channel)
		e.channel = nil
	}
}

// wait returns after the next change, at a time unless that is zero, or when
// canceled is closed. It is called with mu held, and gives it up meanwhile.
func (e *event) wait(mu *sync.Mutex, until time.Time, canceled <-chan struct{}) {
	if e.channel == nil {
		e.channel = make(chan struct{})
	}
	changed := e.channel
	mu.Unlock()
	defer mu.Lock()
	var expired <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case <-changed:
	case <-expired:
	case <-canceled:
	}
}

// --- listeners and addresses ---

const networkName = "sim"

type address string

func (address) Network() string  { return networkName }
func (a address) String() string { return string(a) }

type listener struct {
	link *link
	// What follows is guarded by link.mu.
	backlog []*conn
	closed  bool
	changed event
}

func (l *listener) Addr() net.Addr { return l.link.address }

func (l *listener) Accept() (net.Conn, error) {
	l.link.mu.Lock()
	defer l.link.mu.Unlock()
	for {
		switch {
		case l.closed:
			return nil, &net.OpError{Op: "accept", Net: networkName, Addr: l.link.address, Err: net.ErrClosed}
		case len(l.backlog) > 0:
			c := l.backlog[0]
			l.backlog = l.backlog[1:]
			l.link.changed.happened()
			return c, nil
		}
		l.changed.wait(&l.link.mu, time.Time{}, nil)
	}
}

// Close resets the connections that nobody accepted.
func (l *listener) Close() error {
	l.link.mu.Lock()
	defer l.link.mu.Unlock()
	if l.closed {
		return &net.OpError{Op: "close", Net: networkName, Addr: l.link.address, Err: net.ErrClosed}
	}
	l.closed = true
	now := time.Now()
	for _, c := range l.backlog {
		c.abort(now)
	}
	l.backlog = nil
	l.link.listener = nil
	l.link.changed.happened()
	l.changed.happened()
	return nil
}
