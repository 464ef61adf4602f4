package testservers

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Proxy is a network in front of a server: it passes on what comes over TCP, unless it is
// told otherwise. Safe for concurrent use.
type Proxy struct {
	// Address is where clients connect to.
	Address string

	target   string
	listener net.Listener
	ended    sync.WaitGroup
	// delay is how long every piece is under way, in nanoseconds.
	delay atomic.Int64

	mu     sync.Mutex
	broken bool
	dark   chan struct{} // closed while nothing is dark
	conns  map[net.Conn]struct{}
}

// NewProxy listens on a free port of the loopback interface.
func NewProxy(target string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		Address: listener.Addr().String(), target: target, listener: listener,
		dark: make(chan struct{}), conns: map[net.Conn]struct{}{},
	}
	close(p.dark)
	p.ended.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			p.ended.Go(func() { p.connect(conn) })
		}
	})
	return p, nil
}

// Cut resets all connections, and new ones at once, until Restore.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = true
	for conn := range p.conns {
		reset(conn)
	}
}

// Darken lets nothing through any more, and tells nobody, until Restore or Cut: bytes and
// new connections wait.
func (p *Proxy) Darken() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.dark:
		p.dark = make(chan struct{})
	default:
	}
}

// Slow makes every piece that passes late by d.
func (p *Proxy) Slow(d time.Duration) { p.delay.Store(int64(d)) }

// Restore ends all faults. Connections that were dark are reset: what a network has lost
// for long does not come.
func (p *Proxy) Restore() {
	p.Slow(0)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = false
	select {
	case <-p.dark:
	default:
		for conn := range p.conns {
			reset(conn)
		}
		close(p.dark)
	}
}

// Close ends all connections and waits for that.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	p.Restore()
	p.Cut()
	p.ended.Wait()
}

// add keeps a connection, unless the network is cut.
func (p *Proxy) add(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken {
		reset(conn)
		return false
	}
	p.conns[conn] = struct{}{}
	return true
}

func (p *Proxy) remove(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, conn)
	_ = conn.Close()
}

// light waits while everything is dark.
func (p *Proxy) light() {
	p.mu.Lock()
	dark := p.dark
	p.mu.Unlock()
	<-dark
}

func (p *Proxy) connect(conn net.Conn) {
	if !p.add(conn) {
		return
	}
	defer p.remove(conn)
	p.light()
	other, err := net.DialTimeout("tcp", p.target, time.Second)
	if err != nil {
		reset(conn)
		return
	}
	if !p.add(other) {
		return
	}
	defer p.remove(other)
	var both sync.WaitGroup
	both.Go(func() { p.pass(conn, other) })
	both.Go(func() { p.pass(other, conn) })
	both.Wait()
}

// pass carries bytes in one direction.
func (p *Proxy) pass(from, to net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		p.light()
		if n > 0 {
			time.Sleep(time.Duration(p.delay.Load()))
			if _, err := to.Write(buf[:n]); err != nil {
				_ = from.Close()
				return
			}
		}
		if err != nil {
			_ = to.Close()
			return
		}
	}
}

// reset closes a connection in such a way that its peer sees a reset.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
