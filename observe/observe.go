// Package observe says what happens to calls and connections: one contract for
// events, with counters, latency histograms and a log that are built on it.
//
// What is given to ServerConfig.Observers and ClientConfig.Observers is told of
// each phase of a call. Where nobody listens a phase costs a look at a pointer, and
// no clock is read. Where somebody does, a call costs one allocation more, and the
// clock is read for the phases that he wants.
package observe

import (
	"context"
	"time"
)

// Observer is told what happens. Every function may be nil. Several of them are
// told one after the other, in the order of the configuration.
//
// The functions run on goroutines that have calls to go on with, and Connection on
// one that may poll for others: they must not wait, and must not end their goroutine.
// They are called for many calls at the same time. A panic is recovered and logged,
// and the call goes on.
type Observer struct {
	// Phases that Event is told of. Each that nobody wants saves a look at the
	// clock. Default: all.
	Phases PhaseSet
	// Begin is told that a call begins. The call goes on with the context that it
	// returns, which must be ctx or be made from it: interceptors and handlers get
	// it, and on the client the metadata in it is sent. value is passed to Event for
	// this call; a pointer in it costs no allocation.
	//
	// On the client ctx is that of the caller; on the server fulmar.CallFrom finds
	// metadata and peer in it, unless the call was refused.
	Begin func(ctx context.Context, call *Call) (next context.Context, value any)
	// Event is told of one phase. The events of one call come one at a time, in
	// order, on the goroutine that makes it or serves it, of a stream on any that uses
	// it; PhaseDone is the last.
	Event func(call *Call, value any, event Event)
	// Connection is told of connections.
	Connection func(connection Connection)
}

// Call is the call that an event is of. It never changes, and may be kept. Its
// address is the same in all events of the call, and no other call's while somebody
// keeps it.
type Call struct {
	// ID is a random number, for logs and traces; not 0.
	ID   uint64
	Side Side
	// Service and Method are names in the IDL.
	Service string
	Method  string
	// Undefined says that no definition in this process has these names: a peer or
	// a user made them up, so there may be any number of them. On the server that
	// is so for what is not registered, on the client for calls without generated
	// code.
	Undefined bool
	Oneway    bool
	// Protocol is how the call is framed.
	Protocol string
	// Peer is the other side: the caller's socket address on the server, the target
	// on the client.
	Peer string
	// Start is when the call began: on the server when its message was complete.
	Start time.Time
}

// Side tells the two ends of a call apart.
type Side uint8

// The sides.
const (
	Client Side = iota
	Server
)

// String returns "client" or "server".
func (s Side) String() string { return [...]string{"client", "server"}[s] }

// Phase is what an Event is about.
type Phase uint8

// The phases, in the order of a call's life; each side has some of them. A call of
// a client that is tried again repeats those between PhasePicked and PhaseRetried.
const (
	// PhaseStarted: the call has begun.
	PhaseStarted Phase = iota
	// PhasePicked, client: the address that the attempt goes to is known.
	PhasePicked
	// PhaseEncoded: the body of the request (client) or of the reply (server) is
	// encoded; Bytes is its length. A reply that is an error has none.
	PhaseEncoded
	// PhaseConnected, client: the call has a connection, or a place on one.
	PhaseConnected
	// PhaseWritten: on the client the network has accepted the request, on the
	// server the reply was handed to its connection. Bytes is the length of the
	// message.
	PhaseWritten
	// PhaseFirstByte: the first byte of the reply (client) or of the request
	// (server, where it comes first and At is not above 0) was read.
	PhaseFirstByte
	// PhaseReceived: the reply (client) or the request (server) is complete. Bytes
	// is the length of the message.
	PhaseReceived
	// PhaseDecoded: its body is decoded.
	PhaseDecoded
	// PhaseHandled, server: the handler has returned; Err is what.
	PhaseHandled
	// PhaseRetried, client: an attempt has failed with Err, and another one follows.
	PhaseRetried
	// PhaseSent: a message of a stream was handed to its connection, which may have
	// waited for the other side to take some; Bytes is its length.
	PhaseSent
	// PhaseArrived: a message of a stream was received by whoever waited for it; Bytes
	// is its length.
	PhaseArrived
	// PhaseDone: the call has ended. Every call ends once.
	PhaseDone

	phases
)

// String returns the name in lower case.
func (p Phase) String() string {
	return [...]string{
		"started", "picked", "encoded", "connected", "written", "first byte",
		"received", "decoded", "handled", "retried", "message sent", "message arrived", "done",
	}[p]
}

// PhaseSet is some of the phases.
type PhaseSet uint16

// SetOf returns the set of phases.
func SetOf(phases ...Phase) PhaseSet {
	var set PhaseSet
	for _, p := range phases {
		set |= 1 << p
	}
	return set
}

// All is the set of all phases.
const All PhaseSet = 1<<phases - 1

// Has reports whether a phase is in the set.
func (s PhaseSet) Has(p Phase) bool { return s&(1<<p) != 0 }

// Event is one phase of a call. It is a value and may be kept, but for the text of
// Err on a server whose methods decode with thrift.StringsScoped: that is valid
// until Event returns.
type Event struct {
	Phase Phase
	// At is when, counted from Call.Start. The clock is monotonic.
	At time.Duration
	// Attempt counts from 1, on the client; 0 if none has begun.
	Attempt int
	// Address is that of the instance that the attempt goes to, on the client.
	Address string
	// Connection says how the call came to its connection, at PhaseConnected.
	Connection Use
	// Bytes is the length of what the phase is about.
	Bytes int

	// The rest is of PhaseDone, but for Err.

	// BytesOut and BytesIn are what was sent and received, headers included, in all
	// attempts; of streams the messages, and on the server the headers in front of them.
	BytesOut int
	BytesIn  int
	// MessagesOut and MessagesIn are how many messages were sent and received, of streams.
	MessagesOut int
	MessagesIn  int
	// Code is that of Err, 0 for success.
	Code Code
	// Declared says that Err is an answer rather than a failure: an exception that
	// the IDL declares, or a business error.
	Declared bool
	// Origin is where the error arose: "local", "transport" or "remote"; empty
	// without one. Executed is whether the handler ran: "yes", "no" or "maybe".
	Origin   string
	Executed string
	// Err is what the call ended in, or the attempt at PhaseRetried.
	Err error
}

// Use is how a call of a client came to its connection.
type Use uint8

// The uses.
const (
	// UseNone: the event is not about it.
	UseNone Use = iota
	// UseDialled: it was opened for the call.
	UseDialled
	// UsePooled: it was idle.
	UsePooled
	// UseQueued: it had to be waited for.
	UseQueued
	// UseShared: other calls use it at the same time.
	UseShared
	// UseLocal: there is none, the server is in this process.
	UseLocal
)

// String returns the name in lower case.
func (u Use) String() string {
	return [...]string{"none", "dialled", "pooled", "queued", "shared", "local"}[u]
}

// Connection is what happened to a connection. It may be kept.
type Connection struct {
	Kind ConnectionKind
	Side Side
	// Peer is the other side's address.
	Peer string
	// Took is how long it was open, or how long opening it took; 0 for
	// ConnectionRefused, and for ConnectionOpened on a server.
	Took time.Duration
	// Err is why it ended or could not be opened; nil if all is as it should be.
	Err error
}

// ConnectionKind is what can happen to a connection.
type ConnectionKind uint8

// The kinds.
const (
	// ConnectionOpened: there is one more.
	ConnectionOpened ConnectionKind = iota
	// ConnectionFailed, client: it could not be opened.
	ConnectionFailed
	// ConnectionRefused, server: its first bytes, or those behind a message, are of
	// no protocol that is allowed. ConnectionClosed follows.
	ConnectionRefused
	// ConnectionClosed: it is gone.
	ConnectionClosed
)

// String returns the name in lower case.
func (k ConnectionKind) String() string {
	return [...]string{"opened", "failed", "refused", "closed"}[k]
}
