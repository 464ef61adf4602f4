package eventloop

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// acceptAll accepts until the listener is stopped, then it returns nil. A failed
// accept that may succeed later is tried again after a pause; any other error
// ends it.
func (l *Listener) acceptAll() error {
	defer l.acceptEnded()
	pause := limits.AcceptBackoffMin
	var rest resting
	for {
		socket, err := l.socket.Accept()
		switch {
		case err == nil:
			pause = limits.AcceptBackoffMin
			rest.accepted = true
			l.admit(socket)
			continue
		case l.isStopped():
			return nil
		}
		if over, again := rest.over(l, err); over {
			return nil
		} else if again {
			continue
		}
		l.stats.acceptErrors.Add(1)
		if !temporary(err) {
			// Left open, it would collect connections that nobody accepts.
			_ = l.closeAccepting()
			return l.acceptFailed(err)
		}
		l.log.Warn("eventloop: accept failed", "address", text(l.Addr()), "reason", err.Error(), "retry_in", pause)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-l.stopAccept:
			timer.Stop()
		}
		pause = min(2*pause, limits.AcceptBackoffMax)
	}
}

func (l *Listener) acceptFailed(err error) error {
	what := "accept failed for good"
	if errors.Is(err, net.ErrClosed) {
		what = "its socket was not closed through the Listener"
	}
	return fmt.Errorf("eventloop: listener %s: %s: %w", text(l.Addr()), what, err)
}

// temporary reports whether an accept that failed may succeed when it is tried
// again. What nobody says that of would fail for ever.
func temporary(err error) bool {
	if errors.Is(err, net.ErrClosed) {
		return false
	}
	// Both methods say it, each of some errors. Temporary is deprecated because
	// it means nothing clear for other operations; for accepts it is how every
	// net.Listener tells, since net/http asks for it.
	var timeout interface{ Timeout() bool }
	var again interface{ Temporary() bool }
	return errors.As(err, &timeout) && timeout.Timeout() || errors.As(err, &again) && again.Temporary() || temporaryErrno(err)
}

func (l *Listener) acceptEnded() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.accepting = false
	if l.rested == nil {
		l.rested = make(chan struct{})
	}
	close(l.rested)
	l.checkEnded()
}

func (l *Listener) isStopped() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stopped
}

// admit serves an accepted connection, or closes it at once if it may not.
func (l *Listener) admit(socket net.Conn) {
	l.mu.Lock()
	if most := l.connectionsMost(); l.connections.count >= most || l.stopped {
		full := l.connections.count >= most
		l.mu.Unlock()
		l.refuse(socket, full, most)
		return
	}
	c := l.newServed(socket)
	l.stats.accepted.Add(1)
	// Before anybody else knows the connection: Close and Shutdown poke those that
	// are listed, and one that nobody owned yet would get two owners.
	c.engine().serve(c)
	l.connections.add(c)
	l.mu.Unlock()
}

// LimitConnections changes how many connections the listener keeps open, within
// Config.MaxConnections; 0 and less is as many as that. Those that are open stay.
func (l *Listener) LimitConnections(most int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limitedTo = most
}

// connectionsMost returns how many connections may be open; mu is held.
func (l *Listener) connectionsMost() int {
	if l.limitedTo > 0 {
		return min(l.limitedTo, l.config.MaxConnections)
	}
	return l.config.MaxConnections
}

// newServed returns a connection that nobody knows yet.
func (l *Listener) newServed(socket net.Conn) *Conn {
	beside := !l.engine.takes(socket)
	var secured *tlsConn
	if l.config.TLS != nil {
		secured = newTLSConn(socket, &l.config, l)
		socket = secured
	}
	c := newConn(socket, &l.config)
	c.listener = l
	c.served = &served{beside: beside}
	if secured != nil {
		secured.started = &startingTLS{conn: c}
		c.served.handshake = func(context.Context) error { return c.secureBeside(secured) }
		// Who wants to write before the end of the handshake waits for it.
		c.outbound.lock()
	} else if secure, ok := socket.(secureConn); ok {
		c.served.handshake = secure.HandshakeContext
	}
	c.source = newRawSource(socket, &c.reader)
	return c
}

// refuse closes a connection that was accepted and may not be served, because
// the listener is full or has been stopped meanwhile.
func (l *Listener) refuse(socket net.Conn, full bool, most int) {
	l.stats.refused.Add(1)
	if full {
		l.log.Warn("eventloop: connection refused: too many are open", "peer", text(socket.RemoteAddr()), "limit", most)
	}
	_ = socket.Close()
}
