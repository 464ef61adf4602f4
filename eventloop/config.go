package eventloop

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"runtime"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// The smallest values that make sense, so that a forgotten unit is noticed, and the
// largest that the system takes.
const (
	readBufferBytesMin   = 512
	writeStallTimeoutMin = 10 * time.Millisecond
	// keepAliveMin is the resolution of TCP keep-alive; Linux takes 15 bits of it.
	keepAliveMin = time.Second
	keepAliveMax = math.MaxInt16 * time.Second
	// keepAliveProbes is how many probes may stay without an answer where there is
	// no user timeout.
	keepAliveProbes = 2
	// userTimeoutMin is the resolution of TCP_USER_TIMEOUT, whose 0 is off; Linux
	// takes 31 bits of it, almost 25 days.
	userTimeoutMin = time.Millisecond
	userTimeoutMax = math.MaxInt32 * time.Millisecond

	// netKeepAliveOff keeps package net from its own default where KeepAlive is off;
	// elsewhere the net.KeepAliveConfig beside it counts.
	netKeepAliveOff = -1

	// spinTimeMax is the longest that makes sense: more than waking up takes.
	spinTimeMax = time.Millisecond
	// coalesceTimeMax is the longest that a request should wait for others.
	coalesceTimeMax = time.Millisecond
)

// Config describes listeners and connections. The zero value is ready to use:
// 0 means the default that the field documents, a negative value switches it
// off. A Config is copied when it is used.
//
// The names in brackets behind defaults, such as WriteStallTimeout, are those of
// the table in docs/guide/limits.md, which has their reasons.
type Config struct {
	// Engine selects how served connections wait for bytes. Dialled ones wait in
	// the reads of their users, whatever it says.
	Engine Engine

	// Dispatch selects on which goroutines EngineEpoll calls handlers, OnEOF and
	// OnClose. Other engines have a goroutine for each connection, where these
	// may wait.
	Dispatch Dispatch

	// Pollers is how many goroutines of EngineEpoll wait for connections, which
	// are spread over them. Default: one for two processors.
	Pollers int

	// SpinTime is how long a goroutine of EngineEpoll looks for events before it
	// waits, while two of five times some come; beyond what waiting would take, that is a
	// fifth of a processor at most, each. It never does where the machine has one processor,
	// or when a control group allows less than one, and for at most 30 µs (SpinTimeAlone)
	// with a GOMAXPROCS of one. For readers of dialled connections see [Conn.SpinReads].
	// Default: 50 µs (SpinTime). Negative: never.
	SpinTime time.Duration

	// CoalesceTime is how long a goroutine of EngineEpoll sleeps that would wait for events,
	// so that requests gather, where about sixteen connections or more take turns and keep it
	// busy for half of the time. Linux makes that up to 60 µs. Requests wait for as long then,
	// and 6 to 14 % of the processor are saved. Default: 10 µs (CoalesceTime). Negative: never.
	CoalesceTime time.Duration

	// ReadBufferBytes is how many unread bytes a connection holds before it
	// stops reading, and so the longest piece that a Reader can wait for. What
	// arrives in one read may come on top. At least 512. Default: one message of
	// the largest size and what may follow it, 16 MiB (MessageBytes) + 64 KiB
	// (ReadAheadBytes). A protocol with shorter messages sets less, because so much
	// is what each peer can make the process keep. Negative: unlimited.
	ReadBufferBytes int

	// MaxDetached is how many calls that have let go of their connection (see
	// Conn.Detach) one connection goes on without; then neither is its handler called
	// nor anything read until one of them returns. Default: 1,024 (DetachedCalls).
	// Negative: unlimited.
	MaxDetached int

	// WriteStallTimeout closes a connection whose peer takes no bytes for this
	// long while some wait to be written; errors.Is(err, ErrWriteStalled) holds
	// for what the write returns and OnClose gets. Every byte that it takes starts
	// the time anew, but a write takes no longer than this time and what its bytes
	// take at WriteBytesPerSecond: a peer must not take a little now and then. It
	// may fire late by a quarter, and a shorter UserTimeout comes first where the peer
	// takes nothing at all. At least 10 ms. Default: 30 s (WriteStallTimeout).
	// Negative: never.
	WriteStallTimeout time.Duration

	// MaxConnections is how many connections a listener keeps open; further
	// ones are accepted and closed at once. Default: 90 (ConnectionsPercent) percent
	// of the file descriptors that the process may have beyond 64 (ConnectionsReserve).
	// Negative: unlimited.
	MaxConnections int

	// KeepAlive is after how long without a byte the peer of a TCP connection is
	// asked whether it is there still, then twice as often. One that does not answer
	// has vanished: the connection ends after about twice KeepAlive; with a longer
	// UserTimeout after that, with a shorter one half a KeepAlive earlier. It is
	// for connections that Dial opens and listeners of Listen and ListenFile accept. The
	// system counts in whole seconds, at least one, at most 32,767. Default: 10 s
	// (KeepAlive). Negative: off, and a peer that vanishes while nothing is sent to it is
	// never missed.
	KeepAlive time.Duration

	// UserTimeout ends a TCP connection whose peer has not acknowledged what was
	// sent for this long, as one does that has vanished, or has had no room for
	// more for this long (TCP_USER_TIMEOUT). A write that waits for the peer then
	// has stalled: errors.Is(err, ErrWriteStalled) holds, unless a read that waits at
	// the same time is told instead, as the system tells one only. It has an effect
	// on Linux, for connections that Dial opens and listeners of Listen and
	// ListenFile accept. At least a millisecond, at most 2,147,483,647, almost 25
	// days. Default: 20 s (UserTimeout), or a longer WriteStallTimeout that is set here, up
	// to the maximum; off if WriteStallTimeout is. Negative: off, and the system
	// retries for about 15 minutes.
	UserTimeout time.Duration

	// ReusePort lets several listeners, also of other processes of the same user,
	// have one address; the system spreads connections over them (SO_REUSEPORT).
	// Listen only, on Linux, macOS and the BSDs.
	ReusePort bool

	// Memory is what dialled connections take room from for long messages that they read,
	// and for what waits in their Writer, and give it back to when that has been consumed.
	// Default: each has its own from the garbage collector. A listener has memory for its
	// connections, whatever this says.
	Memory *Memory `json:"-"`

	// TLS secures all connections of a listener, and those that Dial and NewTLSConn
	// open; NewConn leaves it alone. A listener needs a certificate in it, or functions
	// that return one. It is copied; its functions run on goroutines that may wait.
	// Writes wait for the end of the handshake. It must not allow renegotiation.
	// Default: no TLS.
	TLS *tls.Config `json:"-"`

	// AllowPlaintext lets clients speak to a listener with TLS without it as well: the
	// first byte tells. Default: their connections are closed.
	AllowPlaintext bool

	// HandshakeTimeout closes connections whose TLS handshake is not complete in time,
	// since they were opened. Default: 10 s (HandshakeTimeout). Negative: never.
	HandshakeTimeout time.Duration

	// MaxHandshakes bounds the TLS handshakes of a listener that go on at once; each
	// takes a goroutine. More wait for their turn, and while some do, one that takes
	// longer than 1 s (HandshakePatience), or is silent for half of that if many wait,
	// ends. Default: 256 (Handshakes). Negative: unlimited.
	MaxHandshakes int

	// OnOpen is called for each connection before its first byte is read, with TLS when
	// the handshake has succeeded. It may write, set deadlines and close. It is not
	// called for connections that are refused because of MaxConnections, nor for those
	// whose handshake fails; OnClose is, with a *HandshakeError.
	OnOpen func(*Conn) `json:"-"`

	// OnEOF is called at most once for each served connection, when the peer
	// has stopped sending and the handler has been called with all bytes that
	// came before; never at the same time as the handler, and before OnClose.
	// The connection closes afterwards unless it is held.
	OnEOF func(*Conn) `json:"-"`

	// OnClose is called exactly once for each connection, for served ones after
	// the last call of the handler has returned, but for calls that it has gone on
	// without (see Conn.Detach). The error is nil when the peer
	// stopped sending in good order, after Close, and at Shutdown; otherwise it
	// tells why the connection ended: what the handler returned, what
	// CloseWithError was given, or how reading or writing failed. io.ErrUnexpectedEOF
	// means that the peer stopped sending and left bytes that the handler has not
	// consumed, as a rule the beginning of a message.
	OnClose func(*Conn, error) `json:"-"`

	// Logger receives what no caller can be told: panics in handlers, accepts
	// that are tried again, connections refused because of MaxConnections, and
	// those closed because of WriteStallTimeout or UserTimeout. Of each kind at most
	// PeerLogsPerSecond lines are written in a second; Listener.Stats counts
	// all. Default: slog.Default().
	Logger *slog.Logger `json:"-"`
}

// Validate reports all values that cannot work.
func (c Config) Validate() error {
	var problems []error
	report := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("eventloop config: "+format, args...))
	}
	if _, err := engineOf(c.Engine); err != nil {
		report("%w", err)
	}
	if c.Dispatch > DispatchAuto {
		report("Dispatch: unknown (limit %d, got %d)", DispatchAuto, c.Dispatch)
	}
	if c.Pollers < 0 || c.Pollers > limits.Pollers {
		report("Pollers: must be 0 to %d (got %d)", limits.Pollers, c.Pollers)
	}
	if c.ReadBufferBytes > 0 && c.ReadBufferBytes < readBufferBytesMin {
		report("ReadBufferBytes: too small (limit %d, got %d)", readBufferBytesMin, c.ReadBufferBytes)
	}
	if c.WriteStallTimeout > 0 && c.WriteStallTimeout < writeStallTimeoutMin {
		report("WriteStallTimeout: too short (limit %v, got %v)", writeStallTimeoutMin, c.WriteStallTimeout)
	}
	if c.KeepAlive > 0 && c.KeepAlive < keepAliveMin {
		report("KeepAlive: too short (limit %v, got %v)", keepAliveMin, c.KeepAlive)
	}
	if c.KeepAlive > keepAliveMax {
		report("KeepAlive: too long (limit %v, got %v)", keepAliveMax, c.KeepAlive)
	}
	if c.SpinTime > spinTimeMax {
		report("SpinTime: too long (limit %v, got %v)", spinTimeMax, c.SpinTime)
	}
	if c.CoalesceTime > coalesceTimeMax {
		report("CoalesceTime: too long (limit %v, got %v)", coalesceTimeMax, c.CoalesceTime)
	}
	if c.UserTimeout > 0 && c.UserTimeout < userTimeoutMin {
		report("UserTimeout: too short (limit %v, got %v)", userTimeoutMin, c.UserTimeout)
	}
	if c.UserTimeout > userTimeoutMax {
		report("UserTimeout: too long (limit %v, got %v)", userTimeoutMax, c.UserTimeout)
	}
	if c.TLS != nil && c.TLS.Renegotiation != tls.RenegotiateNever {
		report("TLS: Renegotiation: must be RenegotiateNever")
	}
	if c.AllowPlaintext && c.TLS == nil {
		report("AllowPlaintext: there is no TLS that it would be an exception to")
	}
	if c.ReusePort && !canReusePort {
		report("ReusePort: %s cannot do that", runtime.GOOS)
	}
	return errors.Join(problems...)
}

// keepAlive returns what a Config with its defaults wants of TCP keep-alive: two
// probes, the second of which has half of the time.
func (c Config) keepAlive() net.KeepAliveConfig {
	if c.KeepAlive == 0 {
		return net.KeepAliveConfig{}
	}
	return net.KeepAliveConfig{Enable: true, Idle: c.KeepAlive, Interval: max(c.KeepAlive/2, keepAliveMin), Count: keepAliveProbes}
}

// withDefaults returns c with every 0 replaced and every "off" turned into the
// value that has no effect: the largest limit, or a timeout of 0.
func (c Config) withDefaults() Config {
	c.ReadBufferBytes = limits.Or(c.ReadBufferBytes, limits.MessageBytes+limits.ReadAheadBytes, math.MaxInt)
	c.MaxDetached = limits.Or(c.MaxDetached, limits.DetachedCalls, math.MaxInt)
	c.SpinTime = limits.Or(c.SpinTime, limits.SpinTime, 0)
	c.CoalesceTime = limits.Or(c.CoalesceTime, limits.CoalesceTime, 0)
	// Before WriteStallTimeout, whose default must not make it longer.
	c.UserTimeout = limits.Or(c.UserTimeout, userTimeoutFor(c.WriteStallTimeout), 0)
	c.WriteStallTimeout = limits.Or(c.WriteStallTimeout, limits.WriteStallTimeout, 0)
	c.TLS = secureConfig(c.TLS)
	c.HandshakeTimeout = limits.Or(c.HandshakeTimeout, limits.HandshakeTimeout, 0)
	c.MaxHandshakes = limits.Or(c.MaxHandshakes, limits.Handshakes, math.MaxInt)
	c.KeepAlive = limits.Or(c.KeepAlive, limits.KeepAlive, 0)
	if c.MaxConnections == 0 {
		c.MaxConnections = connectionsFor(descriptorLimit())
	}
	c.MaxConnections = limits.Or(c.MaxConnections, math.MaxInt, math.MaxInt)
	if c.Dispatch == DispatchDefault {
		c.Dispatch = DispatchAuto
	}
	if c.Pollers == 0 {
		c.Pollers = min((runtime.GOMAXPROCS(0)+1)/2, limits.Pollers)
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// userTimeoutFor returns the default of UserTimeout for a WriteStallTimeout as it
// was set, 0 for off.
func userTimeoutFor(stall time.Duration) time.Duration {
	if stall < 0 {
		return 0
	}
	return min(max(limits.UserTimeout, stall), userTimeoutMax)
}

// connectionsFor returns how many connections one listener may keep in a
// process that may open this many files.
func connectionsFor(descriptors uint64) int {
	if descriptors <= limits.ConnectionsReserve {
		return 1
	}
	rest := descriptors - limits.ConnectionsReserve
	// In two parts, because rest may be the largest of all numbers.
	share := rest/100*limits.ConnectionsPercent + rest%100*limits.ConnectionsPercent/100
	return int(max(1, min(share, math.MaxInt)))
}
