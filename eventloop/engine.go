package eventloop

import (
	"fmt"
	"net"
	"runtime"
)

// Engine selects how a listener waits for bytes.
type Engine uint8

const (
	// EngineDefault is the best engine for the platform: EngineEpoll on Linux,
	// EngineStd elsewhere.
	EngineDefault Engine = iota
	// EngineStd runs one goroutine for each connection on Go's own network
	// poller. It works with every net.Conn and on every platform.
	EngineStd
	// EngineEpoll waits for all connections on a few goroutines. It is for TCP
	// and Unix sockets on Linux, also with Config.TLS; connections of any other kind
	// run on EngineStd beside it.
	EngineEpoll
)

// Dispatch selects on which goroutines EngineEpoll calls handlers, and OnEOF and
// OnClose with them. OnOpen always runs beside those that poll. What is promised
// about the calls for one connection does not depend on it.
type Dispatch uint8

const (
	// DispatchDefault is DispatchAuto.
	DispatchDefault Dispatch = iota
	// DispatchSpawn calls each handler on a goroutine beside those that poll. It
	// may wait for whatever it likes, as long as it likes. There are as many of
	// these goroutines as connections have something to do.
	DispatchSpawn
	// DispatchInline calls handlers on the goroutines that poll, so a handler
	// that waits for something, or computes for long, stops all connections of
	// its poller. It may wait for its own connection, with Read, Write,
	// WriteBuffers or Writer.Flush: then another goroutine polls. Before anything
	// else that it waits for it calls Conn.WillWait. Writing to another connection
	// is such a thing: its peer may take nothing until WriteStallTimeout. With 64
	// handlers (LeftBuffers) that others have stopped waiting for, further ones are
	// spawned.
	DispatchInline
	// DispatchAuto spawns handlers, and runs them inline while there is much to do
	// and they are short: 14 us in the mean. A handler that waits all the same, or
	// takes long, is left behind by the goroutine that polls: within 2 ms if no other
	// goroutine runs, else within 4 ms; while that happens often, within 0.5 and
	// 1.5 ms. It takes longer where no processor is free for who looks. When more
	// than 1 in 2,000 need it, one soon after that was so before, or 1 in 128 wait for
	// their own connection or call WillWait, handlers are spawned again.
	DispatchAuto
)

// engineOf returns what makes the selected engine for a listener. It is the only
// place that knows them.
func engineOf(selected Engine) (func(*Listener) engine, error) {
	std := func(l *Listener) engine { return l.std }
	switch selected {
	case EngineDefault:
		if epoll := epoll(); epoll != nil {
			return epoll, nil
		}
		return std, nil
	case EngineStd:
		return std, nil
	case EngineEpoll:
		if epoll := epoll(); epoll != nil {
			return epoll, nil
		}
		return nil, fmt.Errorf("Engine: EngineEpoll does not exist on %s", runtime.GOOS)
	default:
		return nil, fmt.Errorf("Engine: unknown (limit %d, got %d)", EngineEpoll, selected)
	}
}

// action is what a served connection needs next from its engine.
type action uint8

const (
	// actionWait: nothing, until poke.
	actionWait action = iota
	// actionOpen: call open. It comes first, and next never returns it.
	actionOpen
	// actionHandshake: call shake, then arrived. To interrupt it is to end it,
	// so that is done only when the listener is draining.
	actionHandshake
	// actionRead: call fill, then arrived.
	actionRead
	// actionHandle: call handle.
	actionHandle
	// actionLook: call look.
	actionLook
	// actionEOF: call tellEOF.
	actionEOF
	// actionLinger: the handler failed. Let the peer read the last words, then
	// close.
	actionLinger
	// actionFinish: call finish, and forget the connection.
	actionFinish
)

// engine runs served connections. For each it calls open, then does whatever
// next says until that is finish, all of it one step at a time.
type engine interface {
	// accepts returns what accepts connections of its own kind, where it can, in
	// place of socket. If exclusive is set nobody else has socket.
	accepts(socket net.Listener, exclusive bool) (net.Listener, error)
	// takes reports whether it can serve a connection that was accepted.
	takes(socket net.Conn) bool
	// serve takes over a connection. It returns at once.
	serve(c *Conn)
	// mustGoOn reports whether a connection whose handler has let go of it has to
	// go on at once; more says that there are requests or replies. It is called by
	// that handler.
	mustGoOn(c *Conn, more bool) bool
	// yields reports whether a handler that lets go of its connection lets others run
	// first. It is called by that handler before it does.
	yields(c *Conn) bool
	// answers is told that the call that the handler began in that turn has come to its
	// answer.
	answers(c *Conn, turn uint32)
	// goOn runs a connection that its caller owns on another goroutine.
	goOn(c *Conn)
	// poke makes the engine ask next again, also while it waits for bytes. It
	// is called with c.mu held.
	poke(c *Conn)
	// close ends what the engine has started, and waits for that. It is called,
	// maybe more than once, when there are no connections any more.
	close()
}
