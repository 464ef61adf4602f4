package eventloop

import (
	"sync"
	"sync/atomic"
)

// leftMemory is what calls look into of which their connections have gone on without. It
// is not in the connection, where it would make each of them longer for what only long
// messages need.
type leftMemory struct {
	// count is how many entries there are: calls that have none, nearly all, lock nothing.
	count atomic.Int32
	mu    sync.Mutex
	of    map[leftBy][]byte
}

// leftBy is a call: that of a handler of a connection in a turn.
type leftBy struct {
	conn *Conn
	turn uint32
}

// add notes memory that one call looks into, and reports false if it has some already.
func (l *leftMemory) add(by leftBy, memory []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, exists := l.of[by]; exists {
		return false // turns have begun anew since
	}
	if l.of == nil {
		l.of = map[leftBy][]byte{}
	}
	l.of[by] = memory
	l.count.Add(1)
	return true
}

// take returns what a call has looked into, and notes that it does not any more; nil if that is
// noted of nothing. Conn.mu was locked since the connection has gone on.
func (l *leftMemory) take(by leftBy) []byte {
	if l.count.Load() == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	memory, exists := l.of[by]
	if exists {
		delete(l.of, by)
		l.count.Add(-1)
	}
	return memory
}

// giveBack puts what a call has looked into back into the pool.
func (l *Listener) giveBack(by leftBy) {
	if memory := l.left.take(by); memory != nil {
		l.pool.Put(memory)
	}
}

// Done is Reader.Done for a call that has let go of its connection: it does not look any
// more into what it has read. A long message lies in memory that the connection, or
// another one, can then use again; without it that is so when the call returns. Only the
// goroutine of the handler may call it.
func (d Detached) Done() {
	c := d.conn
	if c == nil {
		return
	}
	c.mu.Lock()
	gone := c.served.turn.Load()&^1 != d.turn
	if !gone {
		c.reader.done = true
	}
	c.mu.Unlock()
	if gone {
		c.listener.giveBack(leftBy{c, d.turn})
	}
}

// Keep is Reader.Keep for a call that has let go of its connection, and has not called Done.
// Only the goroutine of the handler may call it.
func (d Detached) Keep(n int) bool {
	c := d.conn
	if c == nil {
		return false
	}
	c.mu.Lock()
	gone := c.served.turn.Load()&^1 != d.turn
	kept := !gone && c.reader.Keep(n)
	c.mu.Unlock()
	if !gone {
		return kept
	}
	by := leftBy{c, d.turn}
	memory := c.listener.left.take(by)
	switch {
	case memory == nil:
		return false
	case !worthKeeping(n, cap(memory)):
		c.listener.left.add(by, memory)
		return false
	}
	c.listener.pool.Forget(memory)
	return true
}
