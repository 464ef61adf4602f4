package eventloop

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
)

const (
	// recordBytes is what a record of TLS holds at most. Shorter ones cost more: a
	// header, a tag and a pass through the cipher each.
	recordBytes = 16 << 10
	// recordOverhead is what a record adds at most, with the ciphers that are allowed.
	recordOverhead = 32
	// sealedBytes is how much is encrypted before it is written: what three records
	// become fits into a chunk of 64 KiB.
	sealedBytes = 3 * recordBytes
	// answersBytes is how much TLS may want to send by itself, such as answers to
	// changes of keys, while the peer takes nothing.
	answersBytes = 4 << 10
	// recordHeader is the length of what a record begins with, of which the last two
	// bytes are the length of the rest.
	recordHeader = 5
)

// tlsConn is TLS over a connection. What package crypto/tls encrypts goes to memory
// first, and from there to the connection without any of its locks: a read never
// waits for a write, although TLS may have to answer what it reads. Reads of a
// connection that a poller watches do not wait at all.
//
//	plaintext -- seal --> sealed -- flush --> connection
//	plaintext <-- decrypt -- connection
//
// Who holds the token of outbound seals and flushes; who owns the connection reads.
type tlsConn struct {
	net.Conn
	listener *Listener // nil for dialled ones
	// watched is Conn if a poller watches it, else nil.
	watched watchedSocket
	// raw writes to other sockets without waiting; nil until it is needed.
	raw sink
	// session is nil once the peer turned out to speak without TLS.
	session *tls.Conn
	// made: the handshake has succeeded. Before, asking package crypto/tls for its state
	// would wait for that.
	made atomic.Bool
	// started is the handshake of a served connection.
	started *startingTLS
	// shaking: the handshake goes on, in a goroutine that may wait, and holds the
	// token.
	shaking bool
	// silentSince is since when the handshake waits for the peer, nil if it does not.
	silentSince atomic.Pointer[time.Time]
	// told: the handshake has failed, and the peer was told.
	told bool
	// failing: what was read cannot be understood, and an alert says so to the peer.
	failing atomic.Bool

	// What the owner of the reading side knows. early are bytes that were read before
	// the handshake; dry: the socket had no more. ended: the socket is at its end.
	// more: the last read did not take everything that was decrypted.
	early            []byte
	dry, ended, more bool
	received         bool
	records          recordTracker

	// sending is being written, from sent on; scratch joins pieces of dialled
	// connections. For who holds the token.
	sending []byte
	sent    int
	scratch []byte
	// passed counts bytes that the socket has taken.
	passed int64

	mu sync.Mutex
	// sealed waits to become sending. Records come here in their order.
	sealed []byte
	// leaving: a goroutine writes the rest, and calls closing behind it.
	leaving bool
	closing func()
}

// watchedSocket is a polledSocket that is also read.
type watchedSocket interface {
	net.Conn
	polledSocket
	tryRead(p []byte) (int, error)
	awaitRead() error
	forgetDeadlines()
	CheckIdle() error
}

// wouldBlock is the error of a read that would have to wait. It is temporary: package
// crypto/tls goes on with the record when it is asked again. Any other error stays.
type wouldBlock struct{}

func (wouldBlock) Error() string   { return "eventloop: nothing to read yet" }
func (wouldBlock) Timeout() bool   { return true }
func (wouldBlock) Temporary() bool { return true }

// errAnswers ends a connection whose peer makes TLS answer and reads
// no answers.
var errAnswers = errors.New("eventloop: the peer wants answers of TLS and takes none")

// ErrTruncated is the error of a TLS connection that ended without the notice with
// which a peer closes it. Somebody may have cut off what came last.
var ErrTruncated = fmt.Errorf("eventloop: the TLS connection ended without close_notify: %w", io.ErrUnexpectedEOF)

// newTLSConn returns a connection whose handshake is to come.
func newTLSConn(conn net.Conn, config *Config, listener *Listener) *tlsConn {
	t := &tlsConn{Conn: conn, listener: listener, shaking: true}
	t.watched, _ = conn.(watchedSocket)
	if listener != nil {
		t.session = tls.Server(cipherText{t}, config.TLS)
	} else {
		t.session = tls.Client(cipherText{t}, config.TLS)
	}
	return t
}

// tlsOf returns the TLS of a connection, nil if it has none.
func (c *Conn) tlsOf() *tlsConn {
	t, _ := c.socket.(*tlsConn)
	return t
}

// TLS returns what the handshake of Config.TLS has found out, nil if the connection
// has none, or it is not over. It never waits; anybody may ask.
func (c *Conn) TLS() *tls.ConnectionState {
	t := c.tlsOf()
	if t == nil || !t.made.Load() {
		return nil
	}
	state := t.session.ConnectionState()
	return &state
}

// secureConfig returns a copy of what Config.TLS says, with records as long as they
// can be. Those of package crypto/tls begin short, for pages that are shown while
// they arrive; a message is of no use before it is there.
func secureConfig(config *tls.Config) *tls.Config {
	if config == nil {
		return nil
	}
	config = config.Clone()
	config.DynamicRecordSizingDisabled = true
	return config
}

// --- what package crypto/tls reads and writes ---

// cipherText is the net.Conn below TLS.
type cipherText struct{ *tlsConn }

// Read returns what has arrived. Only during the handshake, and where nobody watches
// the socket, it waits.
func (c cipherText) Read(p []byte) (n int, err error) {
	t := c.tlsConn
	switch {
	case len(t.early) > 0:
		n = copy(p, t.early)
		t.early = t.early[n:]
	case t.shaking:
		if err = t.flushAll(); err == nil {
			now := time.Now()
			t.silentSince.Store(&now)
			n, err = t.Conn.Read(p)
			t.silentSince.Store(nil)
		}
	case t.watched == nil:
		n, err = t.Conn.Read(p)
	case t.dry:
		return 0, wouldBlock{}
	default:
		n, err = t.watched.tryRead(p)
		if errors.Is(err, syscall.EAGAIN) {
			err = wouldBlock{}
		}
		t.dry = n < len(p)
	}
	t.records.passed(p[:n])
	t.ended = t.ended || errors.Is(err, io.EOF)
	return n, err
}

// Write keeps what is to be sent.
func (c cipherText) Write(p []byte) (int, error) {
	t := c.tlsConn
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.shaking && len(t.sealed)+len(p) > sealedBytes+3*recordOverhead+answersBytes {
		return 0, errAnswers
	}
	t.sealed = append(t.grown(t.sealed, len(p)), p...)
	return len(p), nil
}

// The deadlines are those of the connection, which package crypto/tls must not touch.

func (cipherText) SetDeadline(time.Time) error      { return nil }
func (cipherText) SetReadDeadline(time.Time) error  { return nil }
func (cipherText) SetWriteDeadline(time.Time) error { return nil }

// recordTracker follows the records in a stream, to know whether one is incomplete.
type recordTracker struct {
	header [recordHeader]byte
	// have is how much of the header is there, rest what is to come of its record.
	have, rest int
}

func (r *recordTracker) passed(p []byte) {
	for len(p) > 0 {
		if r.rest > 0 {
			n := min(r.rest, len(p))
			r.rest -= n
			p = p[n:]
			continue
		}
		n := copy(r.header[r.have:], p)
		p = p[n:]
		if r.have += n; r.have == recordHeader {
			r.have, r.rest = 0, int(r.header[3])<<8|int(r.header[4])
		}
	}
}

func (r *recordTracker) incomplete() bool { return r.have > 0 || r.rest > 0 }

// --- reading ---

// Read waits for plaintext.
func (t *tlsConn) Read(p []byte) (int, error) {
	if t.session == nil {
		return t.Conn.Read(p)
	}
	for {
		t.dry = false
		n, err := t.decrypt(p)
		if n > 0 || err == nil {
			t.more = true
			return n, nil // an error is told again
		}
		if err != (wouldBlock{}) {
			return 0, err
		}
		if err := t.watched.awaitRead(); err != nil {
			return 0, err
		}
	}
}

// tryRead reads what is there, from a socket that a poller watches. drained says that
// this was all of it.
func (t *tlsConn) tryRead(p []byte) (n int, drained bool, err error) {
	if t.session == nil {
		n, err = t.watched.tryRead(p)
		if errors.Is(err, syscall.EAGAIN) {
			err = nil
		}
		return n, n < len(p), err
	}
	t.dry = false
	for n < len(p) && err == nil {
		var more int
		more, err = t.decrypt(p[n:])
		n += more
	}
	t.more = err == nil
	if err == (wouldBlock{}) {
		return n, true, nil
	}
	return n, false, err
}

// decrypt returns plaintext of one record.
func (t *tlsConn) decrypt(p []byte) (int, error) {
	n, err := t.session.Read(p)
	t.received = t.received || n > 0
	if err == nil || err == (wouldBlock{}) {
		return n, err
	}
	t.failing.Store(!t.ended)
	switch {
	case t.ended && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)):
		err = ErrTruncated
	case !t.received && n == 0 && refusal(err):
		// With TLS 1.3 a client has made its handshake before the server has looked
		// at the client's certificate.
		err = &HandshakeError{Err: err}
	}
	return n, err
}

// CheckIdle is that of a socket that a poller watches. A record of which only a part
// has arrived counts as unread.
func (t *tlsConn) CheckIdle() error {
	if t.session != nil && (t.more || t.records.incomplete()) {
		return ErrUnread
	}
	return t.watched.CheckIdle()
}

// --- memory ---

func (t *tlsConn) memory(n int) []byte {
	if t.listener != nil {
		return t.listener.pool.Get(n)
	}
	return make([]byte, 0, n)
}

func (t *tlsConn) recycle(b []byte) {
	if t.listener != nil && b != nil {
		t.listener.pool.Put(b)
	}
}

// grown returns b with room for n bytes more.
func (t *tlsConn) grown(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	bigger := append(t.memory(max(len(b)+n, 2*len(b))), b...)
	t.recycle(b)
	return bigger
}

// forget gives back all memory, when the socket is closed and nobody writes.
func (t *tlsConn) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recycle(t.sealed)
	t.recycle(t.sending)
	t.sealed, t.sending, t.sent = nil, nil, 0
}

// --- writing: for who holds the token ---

// seal encrypts up to sealedBytes of buffers, and returns how many that were. Short
// pieces are joined to records as long as they can be.
func (t *tlsConn) seal(buffers [][]byte) (sealed int64, err error) {
	total := int(min(lengthOf(buffers), sealedBytes))
	if total == 0 {
		return 0, nil
	}
	t.mu.Lock()
	t.sealed = t.grown(t.sealed, total+3*recordOverhead)
	t.mu.Unlock()
	var block []byte
	if len(buffers) > 1 {
		block = t.block(total)
		defer func() { t.recycle(block) }()
	}
	for rest := (pieces{list: buffers}); sealed < int64(total); {
		record := rest.next(block, min(total-int(sealed), recordBytes))
		n, err := t.session.Write(record)
		sealed += int64(n)
		if err != nil {
			return sealed, err
		}
	}
	return sealed, nil
}

// pieces is what is left of a list of buffers, which it does not change.
type pieces struct {
	list   [][]byte
	offset int // into the first
}

// next returns the next n bytes, which are there, joined in block if they are in
// several buffers.
func (p *pieces) next(block []byte, n int) []byte {
	for p.offset == len(p.list[0]) {
		p.list, p.offset = p.list[1:], 0
	}
	if first := p.list[0][p.offset:]; len(first) >= n {
		p.offset += n
		return first[:n]
	}
	joined := block[:0]
	for len(joined) < n {
		piece := p.list[0][p.offset:]
		if len(piece) > n-len(joined) {
			piece = piece[:n-len(joined)]
		}
		joined = append(joined, piece...)
		if p.offset += len(piece); p.offset == len(p.list[0]) {
			p.list, p.offset = p.list[1:], 0
		}
	}
	return joined
}

// block returns memory for a record.
func (t *tlsConn) block(total int) []byte {
	if t.listener != nil {
		return t.listener.pool.Get(min(total, recordBytes))
	}
	if cap(t.scratch) < min(total, recordBytes) {
		t.scratch = make([]byte, 0, min(total, recordBytes))
	}
	return t.scratch[:0]
}

// next makes what is sealed sending, when that was written. It reports whether there
// is something to write.
func (t *tlsConn) next() bool {
	if t.sent < len(t.sending) {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	written := t.sending
	t.sent = 0
	if len(t.sealed) > 0 {
		t.sending, t.sealed = t.sealed, nil
		t.recycle(written)
		return true
	}
	t.sending = nil
	if t.listener != nil {
		t.recycle(t.sealed)
		t.recycle(written)
		t.sealed = nil
	} else if t.sealed == nil && cap(written) <= keepBytes {
		t.sealed = written[:0] // for the next message
	}
	return false
}

// flush writes what the connection takes at once. It reports whether that is all.
func (t *tlsConn) flush() (all bool, err error) {
	for t.next() {
		n, err := t.tryWrite(t.sending[t.sent:])
		t.sent += n
		t.passed += int64(n)
		if err != nil || t.sent < len(t.sending) {
			return false, err
		}
	}
	return true, nil
}

// flushAll writes everything, and waits for the peer.
func (t *tlsConn) flushAll() error {
	for t.next() {
		n, err := t.Conn.Write(t.sending[t.sent:])
		t.sent += n
		t.passed += int64(n)
		if err != nil {
			return err
		}
	}
	return nil
}

// hasAnswers reports whether records wait that nobody writes yet. Anybody may ask.
func (t *tlsConn) hasAnswers() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.sealed) > 0
}

// unflushed reports whether records wait.
func (t *tlsConn) unflushed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sent < len(t.sending) || len(t.sealed) > 0
}

// tryWrite writes without waiting.
func (t *tlsConn) tryWrite(p []byte) (int, error) {
	piece := [1][]byte{p}
	n, err := t.sink().write(piece[:])
	return int(n), err
}

func (t *tlsConn) sink() sink {
	if t.watched != nil {
		return t.watched
	}
	if t.raw == nil {
		t.raw = newRawSink(t.Conn, nil)
	}
	return t.raw
}

// canTry reports whether it can write without waiting at all.
func (t *tlsConn) canTry() bool {
	_, no := t.sink().(noSink)
	return !no
}

// write encrypts one piece of buffers and writes what the connection takes of it. It
// returns how much was encrypted, of which a part may be unflushed; nothing, if what
// was encrypted before is.
func (t *tlsConn) write(buffers [][]byte) (int64, error) {
	if t.session == nil {
		return t.sink().write(linkbuf.Vector(buffers))
	}
	if all, err := t.flush(); !all || err != nil {
		return 0, err
	}
	// A deadline that has passed is found before there is a record that has to be sent.
	if _, err := t.sink().write(nil); err != nil {
		return 0, err
	}
	n, err := t.seal(buffers)
	if err != nil {
		return n, err
	}
	_, err = t.flush()
	return n, err
}

// writeBuffers writes all of buffers, waiting for the peer, and removes from them what
// was encrypted.
func (t *tlsConn) writeBuffers(buffers *[][]byte) (written int64, err error) {
	if t.session == nil {
		if t.watched != nil {
			return t.watched.writeBuffers(buffers)
		}
		return (*net.Buffers)(buffers).WriteTo(t.Conn)
	}
	for {
		if err := t.flushAll(); err != nil || lengthOf(*buffers) == 0 {
			return written, err
		}
		n, err := t.seal(*buffers)
		written += n
		*buffers = linkbuf.Advance(*buffers, n)
		if err != nil {
			return written, err
		}
	}
}

// Write is for who holds the token, as all writes of tlsConn.
func (t *tlsConn) Write(p []byte) (int, error) {
	buffers := [][]byte{p}
	n, err := t.writeBuffers(&buffers)
	return int(n), err
}

// waits is that of a polledSocket.
func (t *tlsConn) waits() {
	if t.watched != nil {
		t.watched.waits()
	}
}

// --- the end ---

// CloseWrite says that nothing more will come, in TLS and below it.
func (t *tlsConn) CloseWrite() error {
	var err error
	if t.session != nil && !t.told {
		// It fails behind another alert, which is to be sent as well: answer may have
		// found a writer there.
		err = t.session.CloseWrite()
		// The peer may take nothing, and nothing else is to be written.
		_ = t.Conn.SetWriteDeadline(time.Now().Add(limits.LingerTimeout))
		err = errors.Join(err, t.flushAll())
	}
	if socket, ok := t.Conn.(interface{ CloseWrite() error }); ok {
		err = errors.Join(err, socket.CloseWrite())
	}
	return err
}

// SetLinger is that of the socket.
func (t *tlsConn) SetLinger(seconds int) error {
	if socket, ok := t.Conn.(interface{ SetLinger(seconds int) error }); ok {
		return socket.SetLinger(seconds)
	}
	return errors.ErrUnsupported
}

// farewell closes the socket, after the notice of it as far as the peer takes that at
// once. Its caller holds the token.
func (t *tlsConn) farewell() error {
	if t.session != nil {
		// It fails behind another alert, which is to be sent as well.
		_ = t.session.CloseWrite()
		_, _ = t.flush()
	}
	err := t.Conn.Close()
	t.forget()
	return err
}
