package zookeeper

import (
	"context"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster/registries"
)

// dialer connects one client. It is called by the client's goroutine only, but for
// introduced.
type dialer struct {
	ctx    context.Context
	config Config
	// report is told why a server could not be reached.
	report func(error)

	mu     sync.Mutex
	pauses registries.Pauses
	failed bool
	// refused: there are no more connections.
	refused bool
	last    *patientConn
}

func newDialer(ctx context.Context, config Config, report func(error)) *dialer {
	return &dialer{ctx: ctx, config: config, report: report, pauses: registries.Pauses{Min: config.BackoffMin, Max: config.BackoffMax}}
}

// dial connects, after a pause if the last attempt was no success.
func (d *dialer) dial(network, address string, _ time.Duration) (net.Conn, error) {
	d.mu.Lock()
	if d.refused {
		d.mu.Unlock()
		return nil, errRefused
	}
	pause := time.Duration(0)
	if d.failed {
		pause = d.pauses.Next()
	}
	d.failed = true
	d.mu.Unlock()
	if pause > 0 {
		if err := registries.Wait(d.ctx, pause); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(d.ctx, d.config.RequestTimeout)
	defer cancel()
	var plain net.Dialer
	conn, err := plain.DialContext(ctx, network, address)
	if err == nil && d.config.TLS != nil {
		conn, err = d.encrypt(ctx, conn, address)
	}
	if err != nil {
		d.report(err)
		return nil, err
	}
	patient := &patientConn{Conn: conn, limit: d.config.RequestTimeout}
	d.mu.Lock()
	d.last = patient
	d.mu.Unlock()
	return patient, nil
}

func (d *dialer) encrypt(ctx context.Context, conn net.Conn, address string) (net.Conn, error) {
	config := d.config.TLS
	if config.ServerName == "" {
		config = config.Clone()
		config.ServerName, _, _ = net.SplitHostPort(address)
	}
	encrypted := tls.Client(conn, config)
	if err := encrypted.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return encrypted, nil
}

// errRefused is for a client that is being replaced.
var errRefused = errors.New("this client has had its connection")

// refuse ends connecting: the client is being replaced.
func (d *dialer) refuse() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refused = true
}

// succeeded is told that a server has given a session.
func (d *dialer) succeeded() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failed = false
	d.pauses.Reset()
}

// introduced is told that the connection has a session.
func (d *dialer) introduced() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last != nil {
		d.last.free()
	}
}

// patientConn bounds how long the client waits for a session: by itself it would wait for
// more than six times as long as one lives, and for half of the answer for ever, when the
// server accepts connections and says nothing.
type patientConn struct {
	net.Conn

	mu    sync.Mutex
	limit time.Duration // 0 once there is a session
}

func (c *patientConn) free() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = 0
}

// SetReadDeadline sets the one that comes first, of the client's and ours.
func (c *patientConn) SetReadDeadline(deadline time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.limit > 0 {
		if most := time.Now().Add(c.limit); deadline.IsZero() || deadline.After(most) {
			deadline = most
		}
	}
	return c.Conn.SetReadDeadline(deadline)
}

// hosts says which server is next: all in turn, from one by chance on. Other than the
// client's own it leaves looking up their names to the dialer, so that servers may move.
type hosts struct {
	connected func()

	mu            sync.Mutex
	servers       []string
	current, last int
}

// Init is told the servers.
func (h *hosts) Init(servers []string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.servers = append([]string(nil), servers...)
	rand.Shuffle(len(h.servers), func(i, j int) { h.servers[i], h.servers[j] = h.servers[j], h.servers[i] })
	h.current, h.last = -1, -1
	return nil
}

// Len returns how many there are.
func (h *hosts) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.servers)
}

// Next returns a server, and whether all have been tried since one has given a session.
func (h *hosts) Next() (server string, again bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.current = (h.current + 1) % len(h.servers)
	again = h.current == h.last
	if h.last < 0 {
		h.last = 0
	}
	return h.servers[h.current], again
}

// Connected is told that the server has given a session.
func (h *hosts) Connected() {
	h.mu.Lock()
	h.last = h.current
	h.mu.Unlock()
	h.connected()
}
