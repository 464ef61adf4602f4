package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/chaos/gen/chaosapi"
	"github.com/fulmar-rpc/fulmar/test/chaos/ledger"
)

// readAgain is what is logged when certificates were.
const readAgain = "certificates were read again"

// reloads is a logger that counts that.
type reloads struct{ n *atomic.Int64 }

func (r reloads) Enabled(context.Context, slog.Level) bool { return true }
func (r reloads) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r reloads) WithGroup(string) slog.Handler            { return r }
func (r reloads) Handle(_ context.Context, record slog.Record) error {
	if record.Message == readAgain {
		r.n.Add(1)
	}
	return nil
}

// changing is servers and clients whose certificates change under load.
type changing struct {
	*secured
	server         *process
	log            string
	serving        fulmar.CertificateFiles
	calling        fulmar.CertificateFiles
	lasting        []*caller
	read           []*atomic.Int64
	comers         sync.WaitGroup
	stop           context.CancelFunc
	mu             sync.Mutex
	clients, wrong int
	why            error
}

// rotation changes all certificates, and who signs them, on both sides, in the order in
// which that is done: both are trusted, the servers' change, the clients' change, the
// old one is trusted no more.
func rotation(ctx context.Context, size size, s *secured, seen *figures) error {
	c := &changing{secured: s}
	if err := c.begin(); err != nil {
		return err
	}
	crowd := gather(ctx, c.lasting, time.Millisecond)
	c.come(ctx)
	rounds, shown := size.of(1, 8), map[string]bool{}
	var err error
	for range rounds {
		var own issued
		if own, err = c.change(ctx); err != nil {
			break
		}
		shown[string(own.pem)] = true
	}
	pause(ctx, 200*time.Millisecond)
	crowd.end()
	c.stop()
	c.comers.Wait()
	if err != nil {
		return err
	}
	verdict, err := s.verdict()
	if err != nil {
		return err
	}
	seen.note("certificates and authorities changed %d times on both sides, clients %s, calls %s", rounds, thousands(int64(c.clients)), thousands(int64(verdict.Calls)))
	seen.least("different ones shown", float64(len(shown)), float64(rounds), "")
	seen.most("failed", float64(verdict.Failed()+c.wrong), 0, "")
	if c.why != nil {
		seen.note("such as %q", c.why)
	}
	seen.examples(s.books)
	seen.judged(verdict)
	old, err := s.refused(ctx, "a client of the old authority", c.server.Address, fulmar.ClientTLS{Files: fulmar.CertificateFiles{
		Certificate: s.folder("old.pem"), Key: s.folder("old.pem"), Authorities: c.calling.Authorities,
	}}, seen)
	seen.most("of the old authority served", float64(old), 0, "")
	return err
}

// begin starts the server, and clients that last, whose connections do not.
func (c *changing) begin() error {
	own, err := c.authority.issue(nil)
	if err != nil {
		return err
	}
	c.log = c.folder("log")
	if err := os.WriteFile(c.log, nil, 0o600); err != nil {
		return err
	}
	if c.server, c.serving, err = c.start(own, func(r *role) { r.LogFile = c.log }); err != nil {
		return err
	}
	if c.calling, err = store(c.folder, "client", own, c.authority); err != nil {
		return err
	}
	for i := range 8 {
		read := new(atomic.Int64)
		one, err := c.caller(c.server.Address, fourProtocols()[i%4], fulmar.ClientTLS{Files: c.calling}, func(config *fulmar.ClientConfig) {
			config.MaxConnectionAge, config.Logger = 100*time.Millisecond, slog.New(reloads{read})
		})
		if err != nil {
			return err
		}
		c.lasting, c.read = append(c.lasting, one), append(c.read, read)
	}
	return nil
}

// come lets clients come, call and go.
func (c *changing) come(ctx context.Context) {
	ctx, c.stop = context.WithCancel(ctx)
	for i := range 4 {
		c.comers.Go(func() {
			for ctx.Err() == nil {
				book, err := c.comer(fourProtocols()[i])
				c.mu.Lock()
				c.clients++
				if err != nil {
					c.wrong++
					c.why = err
				} else {
					c.books = append(c.books, book)
				}
				c.mu.Unlock()
				pause(ctx, 5*time.Millisecond)
			}
		})
	}
}

func (c *changing) comer(protocol fulmar.Protocol) (*ledger.Book, error) {
	one, err := fulmar.NewClient(fulmar.ClientConfig{
		Target: c.server.Address, Protocol: protocol, TLS: fulmar.ClientTLS{Files: c.calling}, Timeout: -1, ConnectTimeout: 4 * time.Second,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	defer one.Close()
	caller := &caller{api: chaosapi.NewChaosClient(one), book: c.ids.book(), limit: 5 * time.Second}
	for range 4 {
		caller.call(context.Background())
	}
	return caller.book, nil
}

// change is one round. It returns the certificate that the server shows then. Each step waits until everybody has taken the one before, as whoever does this
// to a fleet has to.
func (c *changing) change(ctx context.Context) (own issued, err error) {
	old := c.authority
	fresh, err := newAuthority(fmt.Sprintf("authority %d", time.Now().UnixNano()))
	if err != nil {
		return own, err
	}
	if own, err = fresh.issue(nil); err != nil {
		return own, err
	}
	last, err := old.issue(nil)
	if err != nil {
		return own, err
	}
	if err := replace(c.folder("old.pem"), last.pem); err != nil {
		return own, err
	}
	everybody := c.waiting(true)
	err = errors.Join(trust(c.serving, old, fresh), trust(c.calling, old, fresh))
	if err = errors.Join(err, everybody(ctx)); err != nil {
		return own, err
	}
	if err := replace(c.serving.Certificate, own.pem); err != nil {
		return own, err
	}
	if err := c.shows(ctx, own); err != nil {
		return own, err
	}
	clients := c.waiting(false)
	if err := errors.Join(replace(c.calling.Certificate, own.pem), clients(ctx)); err != nil {
		return own, err
	}
	everybody = c.waiting(true)
	err = errors.Join(trust(c.serving, fresh), trust(c.calling, fresh))
	c.authority = fresh
	return own, errors.Join(err, everybody(ctx))
}

// errNotTaken says that somebody goes on with an old certificate.
var errNotTaken = errors.New("not everybody has read the new certificates")

// waiting returns what waits until everybody, or all clients, have read their files
// again from now on.
func (c *changing) waiting(server bool) func(context.Context) error {
	before := make([]int64, len(c.read))
	for i, read := range c.read {
		before[i] = read.Load()
	}
	logged := c.serverRead()
	return func(ctx context.Context) error {
		// Nobody logs more than ten lines of a kind a second, and the eleventh would be missed.
		pause(ctx, time.Second/10)
		return until(ctx, errNotTaken, func() bool {
			for i, read := range c.read {
				if read.Load() == before[i] {
					return false
				}
			}
			return !server || c.serverRead() > logged
		})
	}
}

func (c *changing) serverRead() int {
	text, _ := os.ReadFile(c.log)
	return strings.Count(string(text), readAgain)
}

// shows waits until the server shows a certificate.
func (c *changing) shows(ctx context.Context, want issued) error {
	pair, err := want.pair()
	if err != nil {
		return err
	}
	return until(ctx, errNotTaken, func() bool {
		conn, err := tls.Dial("tcp", c.server.Address, &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}})
		if err != nil {
			return false
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].Equal(pair.Leaf)
	})
}

// until waits until something holds, at most 30 s.
func until(ctx context.Context, otherwise error, holds func() bool) error {
	for start := time.Now(); !holds(); pause(ctx, 5*time.Millisecond) {
		if ctx.Err() != nil || time.Since(start) > 30*time.Second {
			return otherwise
		}
	}
	return nil
}
