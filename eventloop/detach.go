package eventloop

import "runtime"

// Detached is a call of a handler that has let go of its connection.
type Detached struct {
	conn *Conn
	turn uint32
}

// Detach lets the connection go on without the handler that calls it: for
// protocols in which requests of one connection need not wait for each other.
// From then on this call may use what it has read from the Reader until it
// returns, and the methods of Conn that any goroutine may call, but neither
// Reader nor Writer; what it has consumed is consumed. The handler may be called
// for what else has arrived, on another goroutine, while this call goes on.
//
//	frame, err := conn.Reader().Next(size)
//	...
//	call := conn.Detach()
//	call.WillWait()       // if it is going to wait for something
//	reply := serve(frame) // it may take its time
//	if call.Attach() {
//		conn.Writer().Append(reply) // leaves with the replies before and after it
//		return nil
//	}
//	_, err = conn.WriteBuffers([][]byte{reply})
//	return err
//
// How soon the connection goes on depends on Config.Dispatch: at once if bytes are
// unread and the handler was spawned, when more arrive, or when the goroutine that
// polls is taken away from a handler that takes long. On EngineStd it always goes on
// at once, on another goroutine, which each call costs. A call that the connection
// has gone on without counts as a Hold until it returns. Its error closes the
// connection as that of any call, but it must not be ErrMore, and OnEOF and
// OnClose may have been called before it returns. If it ends its goroutine, the
// connection goes on without it. A connection goes on without Config.MaxDetached
// calls at most. A call that has consumed nothing is not called again for the same
// bytes. Only the goroutine of the handler may call Detach, and once in each call: who
// calls it again may let go of what is another call's by then. In callbacks it does
// nothing. Listener.Serve does not wait for calls that connections have gone on
// without: they are like goroutines that handlers have started.
func (c *Conn) Detach() Detached {
	s := c.served
	if s == nil || !s.handling {
		return Detached{} // nobody else would go on with it
	}
	d := Detached{c, s.turn.Load() &^ 1}
	c.reader.Commit()
	unread := c.reader.Len() > 0 && c.reader.progress
	more := unread || c.writer.Len() > 0
	yields := unread && c.engine().yields(c)
	s.turn.Store(d.turn | 1)
	// From here on others may own the connection.
	if c.engine().mustGoOn(c, more) {
		c.goOn()
		if yields {
			// Who goes on reads the next request first, so that this call and that one
			// wait where any processor can take them: what is about to run next on this
			// processor is left to it for 50 us.
			runtime.Gosched()
		}
	}
	return d
}

// Answers says that the connection has gone on without the call, and that what is left of it
// is to write its answer. That time does not count where DispatchAuto decides whether handlers
// run on the goroutine that polls: those that do have their answers written together, by
// somebody else. It may be called from any goroutine, until the handler returns.
func (d Detached) Answers() {
	if d.conn != nil {
		d.conn.engine().answers(d.conn, d.turn)
	}
}

// Attach takes the connection back, if it has not gone on without this call: then
// the handler may use Reader and Writer again.
func (d Detached) Attach() bool { return d.conn == nil || d.conn.reattach(d.turn) }

// reattach takes a connection back for the handler that was called in that turn.
func (c *Conn) reattach(turn uint32) bool {
	now := c.served.turn.Load()
	return now == turn || now == turn|1 && c.served.turn.CompareAndSwap(now, turn)
}

// seizeLocked takes a connection from a handler that has let go of it. If it
// returns true, its caller owns the connection.
func (c *Conn) seizeLocked() bool {
	now := c.served.turn.Load()
	if now&1 == 0 || !c.served.turn.CompareAndSwap(now, now+1) {
		return false
	}
	c.served.handling = false
	c.reader.share(now &^ 1)
	c.served.left++
	if c.reader.Len() > 0 && c.reader.progress {
		c.served.again = true
		c.backlog.Store(true)
	}
	c.holdLocked()
	return true
}

// goOn runs a connection on another goroutine, if its handler has let go of it.
func (c *Conn) goOn() {
	c.mu.Lock()
	seized := c.seizeLocked()
	c.mu.Unlock()
	if seized {
		c.engine().goOn(c)
	}
}

// WillWait is Conn.WillWait for a call that has let go of its connection. Once that
// has gone on without it, there is nothing to say.
func (d Detached) WillWait() {
	if d.conn != nil && d.conn.served.turn.Load() == d.turn|1 {
		d.conn.waits()
	}
}

// WillWait says that the handler is going to wait for something, such as the answer
// of another server: if it runs on the goroutine that polls, another one polls from
// now on. Without it DispatchAuto notices a handler that waits up to 4 ms later,
// and DispatchInline never; both see at once that one waits in a method of its Conn.
// It costs about 20 us then, and nothing elsewhere. Any goroutine may call it.
func (c *Conn) WillWait() { c.waits() }

// leave ends a call that its connection has gone on without, which began in that turn.
func (c *Conn) leave(turn uint32, err error) {
	c.mu.Lock()
	if err != nil {
		c.failLocked(err)
	}
	waits := int(c.served.left) >= c.config.MaxDetached
	c.served.left--
	if err != nil || waits {
		c.engine().poke(c)
	}
	c.mu.Unlock()
	c.listener.giveBack(leftBy{c, turn})
	c.Release()
}
