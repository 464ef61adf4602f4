package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fulmar-rpc/fulmar/cluster/registries"
)

// ErrClosed is what calls of a Registry return that is closed.
var ErrClosed = errors.New("zookeeper registry: closed")

// errDisconnected says that there is no session at the moment.
var errDisconnected = errors.New("not connected")

// packetBytesMax bounds one answer of ZooKeeper, whose own limit is 1 MiB.
const packetBytesMax = 4 << 20

// session is a connection to ZooKeeper with a session, and the next one when that is
// lost. Its goroutine owns the client; everybody else borrows it. Safe for concurrent use.
//
// Those who announce and those who watch have one each. What was announced lives as long
// as its session, so that goes on in another connection. What is watched does not: the
// client sets its watches again while answers already arrive, with a number that both
// read and write, and reads everything as fast anew.
type session struct {
	config  Config
	notices *registries.Notices
	// single: a session ends with its connection.
	single bool

	ctx    context.Context
	cancel context.CancelFunc
	ended  chan struct{}
	// requests are those under way: the client cannot interrupt one, so who gives up on
	// it leaves it behind until the connection is lost or closed.
	requests sync.WaitGroup
	// poked tells the goroutine to look at what events changed.
	poked chan struct{}

	mu     sync.Mutex
	closed bool
	// conn is the client, connected whether it has a session, id that of the session for
	// which ready is closed; lost is since when there is none.
	conn      *zk.Conn
	connected bool
	ready     chan struct{}
	id        int64
	lost      time.Time
	// cause is why the last server that was tried could not be reached, nil since there was a
	// session.
	cause  error
	wakers map[*waker]struct{}
	paths  map[string]map[*waker]struct{}
}

func newSession(config Config, notices *registries.Notices, single bool) *session {
	s := &session{
		config: config, notices: notices, single: single, ended: make(chan struct{}), poked: make(chan struct{}, 1),
		ready: make(chan struct{}), lost: time.Now(),
		wakers: map[*waker]struct{}{}, paths: map[string]map[*waker]struct{}{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	go func() {
		defer close(s.ended)
		s.run()
	}()
	return s
}

// close ends the session, and with it what it had announced, and waits for that.
func (s *session) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	<-s.ended
	s.requests.Wait()
}

// run keeps a client until the session is closed. A client that has had no session for
// longer than one lives is replaced: it would go on with the number of the last change
// that it has seen, and a ZooKeeper that has lost its data refuses it for that, for ever.
func (s *session) run() {
	pauses := registries.Pauses{Min: s.config.BackoffMin, Max: s.config.BackoffMax}
	for s.ctx.Err() == nil {
		err := s.connect()
		if s.ctx.Err() != nil {
			return
		}
		s.notices.Warn(time.Now(), "zookeeper: beginning anew, what is known stays", s.config.Servers[0], "error", err)
		if registries.Wait(s.ctx, pauses.Next()) != nil {
			return
		}
	}
}

// connect has one client for as long as that is of use.
func (s *session) connect() error {
	ctx, cancel := context.WithCancel(s.ctx)
	dialer := newDialer(ctx, s.config, s.unreachable)
	s.mu.Lock()
	s.lost = time.Now()
	s.mu.Unlock()
	conn, events, err := zk.Connect(s.config.Servers, s.config.SessionTimeout,
		zk.WithDialer(dialer.dial), zk.WithHostProvider(&hosts{connected: dialer.succeeded}),
		zk.WithEventCallback(func(event zk.Event) { s.happened(dialer, event) }),
		zk.WithMaxBufferSize(packetBytesMax), zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil {
		cancel()
		return err
	}
	defer func() {
		s.mu.Lock()
		s.lose()
		s.conn = nil
		s.mu.Unlock()
		conn.Close()
		cancel()
		for range events { // its end is the end of the client
		}
	}()
	return s.live(conn)
}

// live looks after a client, and returns when it is of no use any more.
func (s *session) live(conn *zk.Conn) error {
	introduced, had := s.config.User == "", false
	look := time.NewTicker(max(s.config.SessionTimeout/10, 10*time.Millisecond))
	defer look.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return s.ctx.Err()
		case <-s.poked:
		case <-look.C:
		}
		s.mu.Lock()
		connected, lost := s.connected, s.lost
		s.mu.Unlock()
		had = had || connected
		switch {
		case !connected && had && s.single:
			return errors.New("the connection was lost")
		case !connected && time.Since(lost) > s.config.SessionTimeout:
			return errors.New("no session for longer than one lives")
		case connected && !introduced:
			if err := s.introduce(conn); err != nil {
				return err
			}
			// From now on the client does so itself when it connects again.
			introduced = true
		}
		if connected {
			s.offer(conn)
		}
	}
}

// introduce tells ZooKeeper who this is.
func (s *session) introduce(conn *zk.Conn) error {
	_, err := ask(s.ctx, s, conn, func(conn *zk.Conn) (struct{}, error) {
		return struct{}{}, conn.AddAuth("digest", []byte(s.config.User+":"+string(s.config.Password)))
	})
	return err
}

// offer makes a client that has a session available, and wakes those who have to see to
// it that all of theirs is there.
func (s *session) offer(conn *zk.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := conn.SessionID()
	if !s.connected || id == 0 {
		return
	}
	select {
	case <-s.ready:
		if s.conn == conn && s.id == id {
			return
		}
	default:
		close(s.ready)
	}
	renewed := s.id != id
	s.conn, s.id, s.cause = conn, id, nil
	for w := range s.wakers {
		w.reconnected(renewed)
	}
}

// lose is for who holds the lock: there is no session.
func (s *session) lose() {
	if s.connected {
		s.connected, s.lost = false, time.Now()
	}
	select {
	case <-s.ready:
		s.ready = make(chan struct{})
	default:
	}
}

// unreachable notes why there is no session.
func (s *session) unreachable(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cause = err
}

// happened is called by the client, which must not wait.
func (s *session) happened(dialer *dialer, event zk.Event) {
	if event.Type != zk.EventSession {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, name := range []string{event.Path, parent(event.Path)} {
			for w := range s.paths[name] {
				w.touched(event.Path)
			}
		}
		return
	}
	if dialer.ctx.Err() != nil {
		return // of a client that is being closed
	}
	s.mu.Lock()
	switch event.State {
	case zk.StateHasSession:
		s.connected = true
		dialer.introduced()
	case zk.StateDisconnected, zk.StateExpired, zk.StateAuthFailed:
		if s.single && s.connected {
			dialer.refuse()
		}
		s.lose()
	}
	s.mu.Unlock()
	select {
	case s.poked <- struct{}{}:
	default:
	}
}

// borrow returns the client and the id of its session as soon as there is one, within
// RequestTimeout.
func (s *session) borrow(ctx context.Context) (*zk.Conn, int64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.RequestTimeout)
	defer cancel()
	for {
		s.mu.Lock()
		conn, id, ready, closed := s.conn, s.id, s.ready, s.closed
		s.mu.Unlock()
		if closed {
			return nil, 0, ErrClosed
		}
		select {
		case <-ready:
			if conn != nil {
				return conn, id, nil
			}
		default:
		}
		select {
		case <-ready:
		case <-ctx.Done():
			s.mu.Lock()
			cause := s.cause
			s.mu.Unlock()
			if cause == nil {
				cause = ctx.Err()
			}
			return nil, 0, fmt.Errorf("%w: %w", errDisconnected, cause)
		case <-s.ctx.Done():
			return nil, 0, ErrClosed
		}
	}
}

// ask makes one request, and gives up on it when ctx ends or RequestTimeout has passed.
func ask[T any](ctx context.Context, s *session, conn *zk.Conn, request func(*zk.Conn) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.RequestTimeout)
	defer cancel()
	type answer struct {
		value T
		err   error
	}
	var none T
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return none, ErrClosed
	}
	s.requests.Add(1)
	s.mu.Unlock()
	answers := make(chan answer, 1)
	go func() {
		defer s.requests.Done()
		value, err := request(conn)
		answers <- answer{value, err}
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// silent is where the client's own lines go: the Registry logs what matters.
type silent struct{}

func (silent) Printf(string, ...any) {}
