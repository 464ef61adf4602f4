package main

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/chaos/ledger"
)

// clientHello returns what a client begins with.
func clientHello() ([]byte, error) {
	near, far := net.Pipe()
	defer near.Close()
	go func() {
		_ = tls.Client(far, &tls.Config{ServerName: "127.0.0.1", InsecureSkipVerify: true}).Handshake()
		_ = far.Close()
	}()
	hello := make([]byte, 4<<10)
	n, err := near.Read(hello)
	return hello[:n], err
}

// half is a crowd of peers that begin a handshake and do not go on.
type half struct {
	mu      sync.Mutex
	conns   []net.Conn
	waiting sync.WaitGroup
	// last is when the last one was closed, open how many never were.
	last time.Duration
	open int
}

// begin opens connections, and says parts of a handshake on them: nothing, some bytes,
// all that a client begins with.
func (h *half) begin(address string, count int) error {
	hello, err := clientHello()
	if err != nil {
		return err
	}
	parts := [][]byte{nil, hello[:9], hello}
	for len(h.conns) < count {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		h.conns = append(h.conns, conn)
	}
	start := time.Now()
	for i, conn := range h.conns {
		_, _ = conn.Write(parts[i%len(parts)])
		h.waiting.Go(func() { h.await(conn, start) })
	}
	return nil
}

// await reads what the server says until it closes the connection.
func (h *half) await(conn net.Conn, start time.Time) {
	_ = conn.SetReadDeadline(start.Add(25 * time.Second))
	var err error
	for buf := make([]byte, 4<<10); err == nil; {
		_, err = conn.Read(buf)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if failed, ok := err.(net.Error); ok && failed.Timeout() {
		h.open++
	}
	h.last = max(h.last, time.Since(start))
}

func (h *half) close() {
	for _, conn := range h.conns {
		_ = conn.Close()
	}
	h.waiting.Wait()
}

// halfHandshakes lets thousands begin, while others call.
func halfHandshakes(ctx context.Context, size size, s *secured, seen *figures) error {
	own, err := s.authority.issue(nil)
	if err != nil {
		return err
	}
	timeout := size.during(2*time.Second, 10*time.Second)
	server, _, err := s.start(own, func(r *role) { r.Config.TLS.HandshakeTimeout = timeout })
	if err != nil {
		return err
	}
	files, err := store(s.folder, "client", own, s.authority)
	if err != nil {
		return err
	}
	var all []*caller
	for i := range 8 {
		one, err := s.caller(server.Address, fourProtocols()[i%4], fulmar.ClientTLS{Files: files}, nil)
		if err != nil {
			return err
		}
		all = append(all, one)
	}
	every := func(*ledger.Call) bool { return true }
	crowd := gather(ctx, all, 2*time.Millisecond)
	pause(ctx, size.during(500*time.Millisecond, 3*time.Second))
	alone := quantile(took(crowd.end(), every), 0.99)
	for _, one := range all {
		one.book = s.ids.book()
		s.books = append(s.books, one.book)
	}
	before, peers := server.residentBytes(), &half{}
	s.closing.add(peers.close)
	quiet := busyMachine()
	crowd = gather(ctx, all, 2*time.Millisecond)
	if err := peers.begin(server.Address, size.of(300, 5000)); err != nil {
		crowd.end()
		return err
	}
	// One of those who come behind them all.
	late, err := s.caller(server.Address, fulmar.TTHeader, fulmar.ClientTLS{Files: files}, func(c *fulmar.ClientConfig) { c.ConnectTimeout = 20 * time.Second })
	if err != nil {
		crowd.end()
		return err
	}
	late.limit = 25 * time.Second
	came := late.call(ctx)
	peers.waiting.Wait()
	books := crowd.end()
	taken := quiet()
	calls := took(books, every)
	seen.note("half handshakes %s", thousands(int64(len(peers.conns))))
	seen.most("open after 25 s", float64(peers.open), 0, "")
	seen.mostUnlessBusy("closed within", peers.last.Seconds(), timeout.Seconds()+1, " s", taken)
	seen.most("memory", mib(server.peakBytes()-before), 64, " MiB")
	// The cryptography of a crowd takes processors from calls: 256 of them (Handshakes) at
	// a time, each for a third of a millisecond.
	seen.mostUnlessBusy("p99 of good calls", ms(quantile(calls, 0.99)), 100, " ms", taken)
	seen.note("without the crowd %.3g ms", ms(alone))
	// 256 lose their places each 625 ms at the latest, of 3,300 that want one, and each second
	// when 512 are left.
	seen.mostUnlessBusy("a new client behind them is served after", came.Took.Seconds(), min(9, timeout.Seconds()+1), " s", taken)
	seen.most("good calls failed", float64(ledger.Judge(s.books, nil, 0).Failed()), 0, "")
	seen.examples(s.books)
	return s.note(seen)
}
