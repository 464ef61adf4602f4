package eventloop

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/workers"
)

// stdEngine runs each connection on a goroutine of its own, which waits in a
// read and calls the handler itself. To interrupt the read it sets a deadline
// in the past, the one way that every net.Conn has.
type stdEngine struct {
	// left runs connections whose handlers have let go of them.
	left *workers.Pool[*Conn]
}

func newStdEngine() stdEngine {
	var e stdEngine
	e.left = workers.New(func(c *Conn) { e.run(c, c.flushReplies) })
	return e
}

// stdState is what stdEngine keeps for a connection, guarded by Conn.mu.
type stdState struct {
	changed sync.Cond // something that next looks at, while nobody reads
	reading bool      // the goroutine is in fill, or about to be
	shaking bool      // it is in shake, or about to be
}

func (stdEngine) accepts(socket net.Listener, _ bool) (net.Listener, error) { return socket, nil }

func (stdEngine) takes(net.Conn) bool { return true }

func (e stdEngine) close() { e.left.Close() }

func (e stdEngine) serve(c *Conn) {
	c.served.std = &stdState{}
	c.served.std.changed.L = &c.mu
	first := c.open
	if c.tlsOf() != nil {
		first = c.expectHandshake // which opens it
	}
	go e.run(c, first)
}

// mustGoOn: nobody else reads the connection.
func (stdEngine) mustGoOn(*Conn, bool) bool { return true }

func (stdEngine) yields(*Conn) bool { return false }

func (stdEngine) answers(*Conn, uint32) {}

func (e stdEngine) goOn(c *Conn) { e.left.Do(c) }

// run runs a connection until it ends, or goes on without this goroutine. Code of
// the user may end the goroutine too.
func (e stdEngine) run(c *Conn, first func()) {
	turn := c.served.turn.Load()
	defer func() {
		if c.reattach(turn) {
			c.finish()
		}
	}()
	first()
	for {
		switch e.await(c) {
		case actionHandshake:
			e.readReturned(c, 0, c.shake())
		case actionRead:
			n, err := c.fill()
			e.readReturned(c, n, err)
		case actionHandle:
			again, owned := c.handle()
			switch {
			case !owned:
				return
			case again:
				c.handleAgain()
			}
		case actionLook:
			c.look()
		case actionEOF:
			c.tellEOF()
		case actionLinger:
			c.linger()
			return
		case actionFinish:
			return
		}
	}
}

// await returns the next action that is not waiting.
func (stdEngine) await(c *Conn) action {
	std := c.served.std
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch next := c.next(); next {
		case actionWait:
			std.changed.Wait()
		case actionHandshake:
			std.shaking = true
			return next
		case actionRead:
			std.reading = true
			return next
		default:
			return next
		}
	}
}

// readReturned records how fill or shake ended.
func (stdEngine) readReturned(c *Conn, n int, err error) {
	std := c.served.std
	if n == 0 {
		c.reader.settle()
	} else {
		c.served.readAt = time.Now()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	std.reading, std.shaking = false, false
	if c.ownsDeadline {
		c.ownsDeadline = false
		// If the user's deadline has passed too, the next read will tell.
		_ = c.socket.SetReadDeadline(c.usersDeadline())
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = nil
		}
	}
	c.handshakeEnded(n, err)
}

func (stdEngine) poke(c *Conn) {
	std := c.served.std
	if (std.reading || std.shaking && c.listener.draining.Load()) && !c.ownsDeadline {
		c.ownsDeadline = true
		// It fails only if the socket is closed, which ends the read as well.
		_ = c.socket.SetReadDeadline(time.Unix(1, 0))
	}
	std.changed.Signal()
}
