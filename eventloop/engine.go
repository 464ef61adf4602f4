package eventloop

import "fmt"

// Engine selects how a listener waits for bytes.
type Engine uint8

const (
	// EngineDefault is the best engine for the platform, at present EngineStd.
	EngineDefault Engine = iota
	// EngineStd runs one goroutine for each connection on Go's own network
	// poller. It works with every net.Conn and on every platform.
	EngineStd
)

// engineOf returns the implementation that a value selects. It is the only place
// that knows them.
func engineOf(selected Engine) (engine, error) {
	switch selected {
	case EngineDefault, EngineStd:
		return stdEngine{}, nil
	default:
		return nil, fmt.Errorf("Engine: unknown (limit %d, got %d)", EngineStd, selected)
	}
}

// action is what a served connection needs next from its engine.
type action uint8

const (
	// actionWait: nothing, until poke.
	actionWait action = iota
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
	// serve takes over a connection. It returns at once.
	serve(c *Conn)
	// poke makes the engine ask next again, also while it waits for bytes. It
	// is called with c.mu held.
	poke(c *Conn)
}
