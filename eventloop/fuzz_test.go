package eventloop_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
)

// FuzzReaderProgram runs its input as a program of arrivals and reader calls,
// on a served and on a dialled connection, against a model: the stream as one
// slice, what has arrived of it, and what is consumed.
//
// The first half of the program says how many bytes each read of the socket
// returns, the second half which calls are made.
func FuzzReaderProgram(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x05\x03\x00\x01\x40\x12\x07\xff\x21\x33\x10\x42\x55\x01\x02\x0f"))
	f.Add(append(bytes.Repeat([]byte{1, 13, 200, 3}, 20), bytes.Repeat([]byte{0x22, 0x0f, 0x2c, 0x5d, 0x37}, 30)...))
	f.Add(append(bytes.Repeat([]byte{255, 250}, 30), bytes.Repeat([]byte{0xfa, 0x0f, 0x07, 0x81, 0xfe}, 30)...))
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) > 2048 {
			return
		}
		arrivals, calls := program[:len(program)/2], program[len(program)/2:]
		runServed(t, arrivals, calls)
		runDialled(t, arrivals, calls)
	})
}

// script is a socket on which a stream arrives piece by piece.
type script struct {
	net.Conn // nil: nothing else is used
	t        *testing.T
	stream   []byte
	pieces   []int
	arrived  int
	// due: the handler must be called before the next read.
	due bool
}

func newScript(t *testing.T, arrivals []byte) *script {
	s := &script{t: t}
	total := 0
	for _, b := range arrivals {
		length := int(b)
		if length > 250 {
			length <<= 5 // longer than a buffer
		}
		s.pieces = append(s.pieces, length)
		total += length
	}
	s.stream = make([]byte, total)
	for i := range s.stream {
		s.stream[i] = byte(i ^ i>>8) // every delimiter occurs, at changing distances
	}
	return s
}

func (s *script) Read(p []byte) (int, error) {
	if s.due {
		s.t.Error("the engine reads although the handler must be called first")
	}
	if len(s.pieces) == 0 {
		return 0, io.EOF
	}
	n := min(s.pieces[0], len(p))
	copy(p, s.stream[s.arrived:s.arrived+n])
	s.arrived += n
	s.due = n > 0
	s.pieces[0] -= n
	if s.pieces[0] == 0 {
		s.pieces = s.pieces[1:]
	}
	return n, nil
}

func (s *script) Close() error                     { return nil }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }

// model makes reader calls and knows what they must return.
type model struct {
	*script
	conn     *eventloop.Conn
	calls    []byte
	consumed int
	mark     int
	served   bool
}

// reachable returns the bytes that a call can get at, and the error if they do
// not suffice.
func (m *model) reachable() ([]byte, error) {
	switch rest := m.stream[m.consumed:]; {
	case m.served:
		return m.stream[m.consumed:m.arrived], eventloop.ErrMore
	case len(rest) > 0:
		return rest, io.ErrUnexpectedEOF
	default:
		return nil, io.EOF
	}
}

// step makes the next call of the program. It returns false at its end, and
// where a handler is to return.
func (m *model) step() bool {
	if len(m.calls) == 0 {
		return false
	}
	operation, n := m.calls[0]&7, int(m.calls[0]>>3)
	m.calls = m.calls[1:]
	r := m.conn.Reader()
	reachable, short := m.reachable()
	length := n * n * n / 3 // up to 9,930
	switch operation {
	case 0:
		if got := r.Buffered(); !bytes.Equal(got, m.stream[m.consumed:m.consumed+r.Len()]) || len(got) != cap(got) {
			m.t.Errorf("Buffered() differs at %d", m.consumed)
		}
	case 1:
		got, err := r.Peek(length)
		m.compare("Peek", got, err, reachable, length, short)
	case 2:
		got, err := r.Next(length)
		m.consumed += m.compare("Next", got, err, reachable, length, short)
	case 3:
		err := r.Skip(length)
		if err == nil {
			m.consumed += length
		}
		if (err == nil) != (length <= len(reachable)) || err != nil && err != short {
			m.t.Errorf("Skip(%d) = %v with %d bytes", length, err, len(reachable))
		}
	case 4:
		got, err := r.Until(byte(n))
		want := bytes.IndexByte(reachable, byte(n)) + 1
		if want == 0 {
			want = len(reachable) + 1
		}
		m.consumed += m.compare("Until", got, err, reachable, want, short)
	case 5:
		r.Commit()
		m.mark = m.consumed
	case 6:
		m.read(length + 1)
	case 7:
		return false
	}
	return true
}

// compare checks a call that should have returned n bytes, and returns how many
// it did return.
func (m *model) compare(call string, got []byte, err error, reachable []byte, n int, short error) int {
	if n > len(reachable) {
		if err != short || got != nil {
			m.t.Errorf("%s of %d bytes = %d bytes, %v, want %v", call, n, len(got), err, short)
		}
		return 0
	}
	if err != nil || !bytes.Equal(got, reachable[:n]) || cap(got) != n {
		m.t.Errorf("%s of %d bytes at %d = %d bytes, %v", call, n, m.consumed, len(got), err)
	}
	return len(got)
}

// read calls Conn.Read, which may read the socket even in a handler.
func (m *model) read(length int) {
	due := m.due
	m.due = false
	p := make([]byte, length)
	n, err := m.conn.Read(p)
	m.due = due
	if !bytes.Equal(p[:n], m.stream[m.consumed:m.consumed+n]) {
		m.t.Errorf("Read at %d differs", m.consumed)
	}
	if err != nil && (err != io.EOF || m.consumed+n < len(m.stream)) {
		m.t.Errorf("Read at %d of %d = %v", m.consumed, len(m.stream), err)
	}
	m.consumed += n
	m.mark = m.consumed
}

func runDialled(t *testing.T, arrivals, calls []byte) {
	s := newScript(t, arrivals)
	m := &model{script: s, conn: eventloop.NewConn(undue{s}, eventloop.Config{}), calls: calls}
	defer m.conn.Close()
	for len(m.calls) > 0 {
		m.step()
	}
}

// undue is a script without a handler.
type undue struct{ *script }

func (u undue) Read(p []byte) (int, error) {
	u.due = false
	return u.script.Read(p)
}

func runServed(t *testing.T, arrivals, calls []byte) {
	m := &model{script: newScript(t, arrivals), calls: calls, served: true}
	closed := make(chan error, 1)
	socket := &singleListener{conn: m.script, done: make(chan struct{})}
	listener, err := eventloop.NewListener(socket, eventloop.Config{
		OnClose: func(_ *eventloop.Conn, err error) { closed <- err },
	})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- listener.Serve(context.Background(), m.handle) }()
	closeErr := receive(t, closed, "OnClose")
	var want error
	if m.consumed < m.arrived {
		want = io.ErrUnexpectedEOF
	}
	if closeErr != want || m.due {
		t.Errorf("OnClose got %v, want %v; the handler is due: %v", closeErr, want, m.due)
	}
	listener.Close()
	if err := receive(t, served, "Serve"); err != nil {
		t.Error(err)
	}
}

// handle makes calls until the program says that a handler returns, and checks
// the rules for when it is called.
func (m *model) handle(conn *eventloop.Conn) error {
	m.conn = conn
	if !m.due {
		m.t.Error("the handler was called without need")
	}
	if got := conn.Reader().Buffered(); !bytes.Equal(got, m.stream[m.consumed:m.arrived]) {
		m.t.Errorf("the handler got %d bytes, want %d from %d on", len(got), m.arrived-m.consumed, m.consumed)
	}
	began := m.consumed
	m.mark = began
	for m.step() {
		continue
	}
	if len(m.calls)%2 == 0 {
		m.due = m.consumed > began && m.consumed < m.arrived
		return nil
	}
	m.consumed = m.mark
	m.due = false
	return errors.Join(eventloop.ErrMore)
}

// singleListener accepts one connection.
type singleListener struct {
	conn net.Conn
	done chan struct{}
}

func (l *singleListener) Accept() (net.Conn, error) {
	if conn := l.conn; conn != nil {
		l.conn = nil
		return conn, nil
	}
	<-l.done
	return nil, net.ErrClosed
}

func (l *singleListener) Close() error   { close(l.done); return nil }
func (l *singleListener) Addr() net.Addr { return &net.TCPAddr{} }
