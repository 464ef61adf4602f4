package eventloop

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"

	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/peerlog"
)

// Listener accepts connections and serves them. Its methods are safe for
// concurrent use.
type Listener struct {
	// brought is what the user or package net made, socket what accepts from it.
	brought, socket net.Listener
	config          Config
	// handler is that of Serve; no connection is accepted before.
	handler Handler
	engine  engine
	// std runs connections that engine does not take, and is it elsewhere.
	std  stdEngine
	pool linkbuf.Pool
	left leftMemory
	// contents holds what Writers use, of type *content.
	contents sync.Pool
	stats    counters
	log      *peerlog.Log
	// handshakes are those that go on.
	handshakes handshakes
	// draining makes connections close as soon as they are idle. Whoever sets
	// it pokes them afterwards.
	draining atomic.Bool

	mu          sync.Mutex
	connections connections
	// limitedTo is how many of them may be open, 0 for Config.MaxConnections.
	limitedTo int
	serving   bool // Serve was called
	accepting bool // Serve's loop runs
	stopped   bool // no further connections
	ending    bool // Shutdown or Close was called
	// exclusive: nobody else has the listening socket. shared: another process goes
	// on with it, so that nothing is reset when it is closed here.
	exclusive, shared bool
	// rested is closed when the last connection was accepted; nil until somebody
	// waits for that.
	rested chan struct{}
	// stopAccept ends the pause after an accept that failed.
	stopAccept  chan struct{}
	closeSocket func() error // at most once
	// ended is closed when the listener is ending and nothing of it is left.
	ended     chan struct{}
	endedOnce sync.Once
}

// Listen listens on a network "tcp", "tcp4", "tcp6" or "unix". The address of a
// Unix socket is its path, or a name after an "@" in Linux's abstract namespace.
func Listen(network, address string, config Config) (*Listener, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if err := checkNetwork(network); err != nil {
		return nil, err
	}
	set := config.withDefaults()
	// A Listener keeps listening after its caller's context has ended.
	listen := net.ListenConfig{KeepAlive: netKeepAliveOff, KeepAliveConfig: set.keepAlive(), Control: set.control()}
	// The default would be MPTCP, which does not have all options and is slower.
	listen.SetMultipathTCP(false)
	socket, err := listen.Listen(context.Background(), network, address)
	if err != nil {
		return nil, fmt.Errorf("eventloop: %w", err)
	}
	l, err := newListener(socket, config, true)
	if err == nil {
		l.exclusive = true
	}
	return l, err
}

func checkNetwork(network string) error {
	switch network {
	case "tcp", "tcp4", "tcp6", "unix":
		return nil
	default:
		return fmt.Errorf("eventloop: unknown network (want tcp, tcp4, tcp6 or unix, got %q)", network)
	}
}

// ListenFile listens on a socket that listens already, such as one that another
// process left to this one: its Listener.File, or a descriptor from a service
// manager. It must be a TCP or Unix stream socket. The caller may close file
// afterwards.
//
// KeepAlive and UserTimeout apply as in Listen. On Linux they become options of
// the socket: if the other process accepts still, its connections get them too.
// ReusePort is an error, it comes too late.
func ListenFile(file *os.File, config Config) (*Listener, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if config.ReusePort {
		return nil, errors.New("eventloop: listen file: ReusePort is for sockets that are not open yet")
	}
	socket, err := net.FileListener(file)
	if err != nil {
		return nil, fmt.Errorf("eventloop: listen file: %w", err)
	}
	set := config.withDefaults()
	if err := set.configure(socket); err != nil {
		_ = socket.Close()
		return nil, fmt.Errorf("eventloop: listen file: listener %s: %w", text(socket.Addr()), err)
	}
	l, err := newListener(socket, config, true)
	if err == nil && l.socket == socket {
		l.socket = keepAliveListener{socket, set.keepAlive()}
	}
	return l, err
}

// keepAliveListener accepts from a socket of package net that it has not opened
// itself: it would set its own default.
type keepAliveListener struct {
	net.Listener
	config net.KeepAliveConfig
}

// Accept waits for a connection.
func (l keepAliveListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok {
		// It fails for a connection that is gone, which a read will tell.
		_ = tcp.SetKeepAliveConfig(l.config)
	}
	return conn, err
}

// File returns another descriptor of the listening socket, for a process that is
// to go on with it: pass it in exec.Cmd.ExtraFiles and open it there with
// ListenFile. Connections that arrive until one of the two accepts them wait in
// the socket, so none is refused. Closing the Listener does not close the file;
// for Unix sockets it does not remove the path either, from now on. The descriptor does
// not block, and must not be made to: that is a property of the socket, and so of the
// Listener's as well. The error is errors.ErrUnsupported for a listener without descriptor.
func (l *Listener) File() (*os.File, error) {
	file, err := fileOf(l.brought)
	if err == nil {
		file, err = withoutBlocking(file)
	}
	if err != nil {
		return nil, fmt.Errorf("eventloop: listener %s: file: %w", text(l.Addr()), err)
	}
	l.mu.Lock()
	l.shared = true
	l.mu.Unlock()
	return file, nil
}

// fileOf returns another descriptor of a listening socket. Whoever gets it goes
// on listening, so the path of a Unix socket stays.
func fileOf(socket net.Listener) (*os.File, error) {
	switch socket := socket.(type) {
	case *net.TCPListener:
		return socket.File()
	case *net.UnixListener:
		socket.SetUnlinkOnClose(false)
		return socket.File()
	default:
		return nil, errors.ErrUnsupported
	}
}

// NewListener serves the connections of a listener that the caller brings and
// that it must not use any more. They must support deadlines, as net.Conn
// promises. If an Accept fails because of the one connection that it was about
// to return, its error must have a method Temporary that returns true, as
// net/http wants it too: other errors end Serve.
func NewListener(listener net.Listener, config Config) (*Listener, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if listener == nil {
		return nil, errors.New("eventloop: new listener: listener is nil")
	}
	return newListener(listener, config, false)
}

// newListener makes a Listener of a socket, which nobody else has if exclusive is
// set: then it is closed if that fails.
func newListener(socket net.Listener, config Config, exclusive bool) (*Listener, error) {
	newEngine, err := engineOf(config.Engine)
	if err != nil {
		return nil, fmt.Errorf("eventloop config: %w", err)
	}
	config = config.withDefaults()
	l := &Listener{
		brought:    socket,
		config:     config,
		log:        peerlog.New(config.Logger),
		stopAccept: make(chan struct{}),
		ended:      make(chan struct{}),
	}
	l.closeSocket = sync.OnceValue(func() error {
		// That somebody else has closed it is what Serve reports.
		if err := l.socket.Close(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	})
	l.std = newStdEngine()
	l.engine = newEngine(l)
	if l.socket, err = l.engine.accepts(socket, exclusive); err != nil {
		if exclusive {
			_ = socket.Close()
		}
		return nil, fmt.Errorf("eventloop: listener %s: %w", text(socket.Addr()), err)
	}
	return l, nil
}

// Addr returns the address that the Listener listens on.
func (l *Listener) Addr() net.Addr { return l.socket.Addr() }

// Serve accepts connections and calls the handler for them, until Shutdown or
// Close; the end of ctx closes. It returns nil when the last connection has
// ended and its OnClose has returned, so it waits for handlers that run. It does
// not wait for goroutines that handlers have started, nor for calls that connections
// have gone on without (Conn.Detach), which a peer that leaves, or Close, has cut
// off: nothing calls a handler any more when it has returned, so the user can wait
// for these then. StopAccepting alone does not end it. It can be called once.
//
// An accept that failed for a reason that can pass, such as a lack of file
// descriptors or an error with a method Timeout or Temporary that returns true,
// is tried again after a pause. Any other error closes the listening socket, and
// Serve returns it at once, with the listener's address; errors.Is(err,
// net.ErrClosed) holds if the net.Listener was closed other than through this
// Listener. Connections that are open are served on then, until Shutdown, which
// waits for them, or Close; the end of ctx does nothing any more.
func (l *Listener) Serve(ctx context.Context, handler Handler) error {
	if handler == nil {
		return errors.New("eventloop: serve: handler is nil")
	}
	l.mu.Lock()
	if l.serving {
		l.mu.Unlock()
		return errors.New("eventloop: serve: called before on this listener")
	}
	l.serving = true
	l.handler = handler
	l.accepting = !l.stopped
	accepting := l.accepting
	l.mu.Unlock()

	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	if accepting {
		if err := l.acceptAll(); err != nil {
			return err
		}
	}
	l.waitEnded()
	return nil
}

// waitEnded waits until nothing of the listener is left.
func (l *Listener) waitEnded() {
	<-l.ended
	l.closeEngines()
}

func (l *Listener) closeEngines() {
	l.engine.close()
	l.std.close()
	l.pool.DropSpare()
}

// connections is a list: 20 bytes less for each than a map.
type connections struct {
	youngest *Conn
	count    int
}

func (l *connections) add(c *Conn) {
	if c.older = l.youngest; c.older != nil {
		c.older.younger = c
	}
	l.youngest = c
	l.count++
}

func (l *connections) remove(c *Conn) {
	if c.older != nil {
		c.older.younger = c.younger
	}
	if c.younger != nil {
		c.younger.older = c.older
	} else {
		l.youngest = c.older
	}
	c.older, c.younger = nil, nil
	l.count--
}

// remove forgets a connection that has ended.
func (l *Listener) remove(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.connections.remove(c)
	l.checkEnded()
}

// checkEnded is called with l.mu held whenever something of the listener ended.
func (l *Listener) checkEnded() {
	if l.ending && !l.accepting && l.connections.count == 0 {
		l.endedOnce.Do(func() {
			close(l.ended)
			// Who waits for the end does it too, but maybe nobody does.
			go l.closeEngines()
		})
	}
}

// StopAccepting closes the listening socket. Connections are served on, until
// Shutdown or Close. It is for what has to be done between the two, such as a
// goodbye to everybody. Further calls do nothing.
//
// Connections that the system has opened and nobody has accepted yet would be reset by
// that, with the requests that came behind them. So those are accepted before, which
// takes 20 ms (AcceptRest) and at most 200 ms (AcceptRestMax), if Serve runs; not
// after File, because then they wait for another process, and not from a net.Listener
// without SetDeadline. On Linux no further connection comes meanwhile, if the socket
// is one of Listen.
func (l *Listener) StopAccepting() error {
	l.acceptRest(nil)
	return l.closeAccepting()
}

// closeAccepting closes the listening socket, whatever waits in it.
func (l *Listener) closeAccepting() error {
	l.mu.Lock()
	if !l.stopped {
		l.stopped = true
		close(l.stopAccept)
	}
	l.mu.Unlock()
	return l.closeSocket()
}

// Shutdown stops accepting and closes each connection as soon as no handler
// runs for it, nothing is unread and it is not held. It returns when all have
// ended. The beginning of a message is unread too: peers that send one and not
// the rest last until ctx ends. When ctx ends first, it closes those that are
// left, does not wait for their handlers, and returns the error of ctx. A handler
// or callback must not call it, it would wait for itself.
func (l *Listener) Shutdown(ctx context.Context) error {
	l.acceptRest(ctx.Done())
	err := l.closeAccepting()
	l.draining.Store(true)
	for _, c := range l.end() {
		c.mu.Lock()
		c.engine().poke(c)
		c.mu.Unlock()
	}
	select {
	case <-l.ended:
		l.closeEngines()
		return err
	case <-ctx.Done():
		_ = l.Close()
		return ctx.Err()
	}
}

// Close stops accepting and closes all connections. It does not wait for
// handlers; Serve does, and Shutdown.
func (l *Listener) Close() error {
	err := l.closeAccepting()
	for _, c := range l.end() {
		_ = c.Close()
	}
	return err
}

// end lets Serve return once nothing is left, and returns what is.
func (l *Listener) end() []*Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ending = true
	l.checkEnded()
	return l.snapshot()
}

func (l *Listener) snapshot() []*Conn {
	all := make([]*Conn, 0, l.connections.count)
	for c := l.connections.youngest; c != nil; c = c.older {
		all = append(all, c)
	}
	return all
}

// Connections calls yield for each connection that is open now, until it
// returns false. Among them may be some whose OnOpen has not run yet, and some
// that have closed meanwhile. It holds no lock, so yield may call everything.
func (l *Listener) Connections(yield func(*Conn) bool) {
	l.mu.Lock()
	all := l.snapshot()
	l.mu.Unlock()
	for _, c := range all {
		if !yield(c) {
			return
		}
	}
}
