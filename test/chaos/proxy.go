package main

import (
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// proxy is a network that fails: it passes on what comes over TCP, unless it is told
// otherwise. Packets cannot be dropped from here, only bytes delayed: a lost packet is
// a pause of the time after which TCP sends again.
type proxy struct {
	target   string
	listener net.Listener
	ended    sync.WaitGroup
	// lossPer10000 of the pieces that pass are late by resendTime, bandwidth is how
	// many bytes pass in a second; 0 for any number.
	lossPer10000, bandwidth atomic.Int64
	lost                    atomic.Int64

	mu    sync.Mutex
	pairs map[*pair]struct{}
}

// resendTime is the least after which Linux sends a packet again.
const resendTime = 200 * time.Millisecond

// pair is a connection through the proxy.
type pair struct {
	sides [2]net.Conn
	// dark: nothing passes any more, in either direction, and nobody is told.
	dark atomic.Bool
}

func startProxy(target string) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{target: target, listener: listener, pairs: map[*pair]struct{}{}}
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

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) connect(conn net.Conn) {
	other, err := net.DialTimeout("tcp", p.target, time.Second)
	if err != nil {
		reset(conn)
		return
	}
	two := &pair{sides: [2]net.Conn{conn, other}}
	p.mu.Lock()
	p.pairs[two] = struct{}{}
	p.mu.Unlock()
	var both sync.WaitGroup
	for i := range 2 {
		both.Go(func() { p.pass(two, two.sides[i], two.sides[1-i]) })
	}
	both.Wait()
	p.mu.Lock()
	delete(p.pairs, two)
	p.mu.Unlock()
	_, _ = conn.Close(), other.Close()
}

// pass carries bytes in one direction.
func (p *proxy) pass(two *pair, from, to net.Conn) {
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		if two.dark.Load() {
			if err != nil {
				return
			}
			continue
		}
		if n > 0 {
			if loss := p.lossPer10000.Load(); loss > 0 && rand.Int64N(10000) < loss {
				p.lost.Add(1)
				time.Sleep(resendTime)
			}
			if rate := p.bandwidth.Load(); rate > 0 {
				time.Sleep(time.Duration(n) * time.Second / time.Duration(rate))
			}
			if _, err := to.Write(buf[:n]); err != nil {
				_ = from.Close()
				return
			}
		}
		if err != nil {
			if half, ok := to.(*net.TCPConn); ok {
				_ = half.CloseWrite()
			}
			return
		}
	}
}

// each calls f with every connection.
func (p *proxy) each(f func(*pair)) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for two := range p.pairs {
		f(two)
	}
	return len(p.pairs)
}

// reset resets all connections, at both ends, and returns how many.
func (p *proxy) reset() int {
	return p.each(func(two *pair) {
		reset(two.sides[0])
		reset(two.sides[1])
	})
}

// darken makes the ends of all connections that there are vanish for each other.
func (p *proxy) darken() int { return p.each(func(two *pair) { two.dark.Store(true) }) }

// reset closes a connection in such a way that its peer sees a reset.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.reset()
	p.ended.Wait()
}
