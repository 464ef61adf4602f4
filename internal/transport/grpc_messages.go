package transport

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// grpcMessages is what a stream of messages in gRPC is on either side: those that have
// arrived, and the one that is being sent. It bounds what is held to the window of the
// stream and one message: bytes go back to the window when they are taken by the receiver,
// but those of the message that he waits for at once.
//
// The lock of the connection guards what is named in front of readable.
type grpcMessages struct {
	id    uint32
	http2 *http2.Conn
	// base is when the clock of http2 began.
	base   time.Time
	limit  int
	pool   *linkbuf.Pool
	budget *budget
	gzip   *gzipCodec

	// arrived begins with a message, whole is where in it the first one begins that is not
	// complete, want how long that is with its prefix, 0 if nobody knows. owed is how much
	// of it the window lacks, charged how much the budget has counted, takenCharged that of
	// taken.
	arrived       []byte
	whole, want   int
	owed, charged int
	takenCharged  int
	encoding      string
	// ended is why nothing follows what has arrived. broken is why not even that counts,
	// and nothing is sent any more.
	ended, broken error
	// closed: nothing more can be sent, and the other side has said how the call ended.
	closed bool
	// rest is what is still to be sent of a message, last that the sending side ends there.
	rest [][]byte
	last bool

	// readable and writable have room for one: there is news for who receives, or sends.
	readable, writable chan struct{}
	// burst is how many messages were sent since the receiver last waited.
	burst atomic.Int32
	// connection is where the messages go.
	connection messageCarrier
	// willWait is told that a goroutine is going to wait; nil if nobody wants to know.
	willWait func()

	// taken is what the receiver works at, from next on, inflated a message that was
	// compressed; only the receiver changes them, with the lock. kept, inflatedKept: others
	// have that memory now. givenUp: nobody should use the stream any more.
	taken, inflated             []byte
	kept, inflatedKept, givenUp bool

	// Of the receiver; failed is why it cannot go on with what it has taken.
	next   int
	failed error
	timer  *time.Timer

	// Of the sender.
	room   linkbuf.Buffer
	prefix []byte
	pieces [4][]byte
}

// messageCarrier is a connection that streams of messages are on.
type messageCarrier interface {
	sync.Locker
	// flushNow writes what waits, if nobody does. flushSoon leaves that to a goroutine, and
	// what is sent until that runs goes with it.
	flushNow()
	flushSoon()
}

func (m *grpcMessages) init(pool *linkbuf.Pool) {
	m.pool = pool
	m.readable, m.writable = make(chan struct{}, 1), make(chan struct{}, 1)
	m.room.Init(pool)
}

func (m *grpcMessages) now() http2.Nanoseconds {
	return http2.Nanoseconds(max(time.Since(m.base), 0))
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (m *grpcMessages) waits() {
	if m.willWait != nil {
		m.willWait()
	}
}

// --- receiving ---

// dataLocked takes bytes that have arrived. It returns what is wrong with them: nothing
// more is taken then.
func (m *grpcMessages) dataLocked(b []byte) error {
	if m.ended != nil || m.broken != nil {
		m.http2.Consume(m.id, len(b), m.now())
		return nil
	}
	if m.whole > 0 {
		m.owed += len(b)
	} else {
		m.http2.Consume(m.id, len(b), m.now())
	}
	if err := m.appendLocked(b); err != nil {
		return err
	}
	before := m.whole
	for len(m.arrived)-m.whole >= grpc.PrefixSize {
		if m.want == 0 {
			_, _, used, need, err := grpc.Next(m.arrived[m.whole:m.whole+grpc.PrefixSize], m.limit)
			if err != nil {
				return err
			}
			m.want = max(used, need)
		}
		if len(m.arrived)-m.whole < m.want {
			break
		}
		m.whole += m.want
		m.want = 0
	}
	if before == 0 && m.whole > 0 {
		wake(m.readable)
	}
	return nil
}

// messagePiece is how much memory messages get at first.
const messagePiece = 2 << 10

// appendLocked adds bytes to those that have arrived. Memory follows them, whatever a
// prefix says.
func (m *grpcMessages) appendLocked(b []byte) error {
	need := len(m.arrived) + len(b)
	if m.arrived == nil || need > cap(m.arrived) {
		size := max(need, messagePiece, 2*cap(m.arrived))
		if m.want > 0 {
			size = max(need, min(size, m.whole+m.want))
		}
		if m.budget != nil && size >= budgetBytesMin {
			if err := m.budget.takePart(size - m.charged); err != nil {
				return err
			}
			m.charged = size
		}
		before := m.arrived
		m.arrived = append(m.pool.Get(size), before...)
		if before != nil {
			m.pool.Put(before)
		}
	}
	m.arrived = append(m.arrived, b...)
	return nil
}

// endLocked says that nothing follows what has arrived.
func (m *grpcMessages) endLocked(err error) {
	if m.ended != nil {
		return
	}
	if err == io.EOF && len(m.arrived) > m.whole {
		err = &grpc.Error{Code: grpc.Internal, Detail: "the stream ends within a message"}
	}
	m.ended = err
	wake(m.readable)
}

// breakLocked makes sending and receiving fail at once.
func (m *grpcMessages) breakLocked(err error) {
	if m.broken == nil {
		m.broken = err
	}
	m.closeLocked()
	wake(m.readable)
}

// closeLocked says that nothing can be sent any more.
func (m *grpcMessages) closeLocked() {
	m.closed, m.rest = true, nil
	wake(m.writable)
}

// Receive implements Stream.
func (m *grpcMessages) Receive(timeout time.Duration) ([]byte, error) {
	m.dropInflated()
	if m.failed != nil {
		return nil, m.failed
	}
	var late <-chan time.Time
	for m.next == len(m.taken) {
		there, err := m.take()
		if err != nil {
			return nil, err
		}
		if there {
			break
		}
		if timeout > 0 && late == nil {
			if m.timer == nil {
				m.timer = time.NewTimer(timeout)
			} else {
				m.timer.Reset(timeout)
			}
			defer m.timer.Stop()
			late = m.timer.C
		}
		m.waits()
		if late == nil {
			<-m.readable
			continue
		}
		select {
		case <-m.readable:
		case <-late:
			return nil, os.ErrDeadlineExceeded
		}
	}
	rest := m.taken[m.next:]
	message, compressed, used, _, err := grpc.Next(rest, m.limit)
	m.next += used
	if err == nil && compressed {
		message, err = m.inflate(message)
	}
	if err != nil {
		m.failed = err
		return nil, err
	}
	return message[:len(message):len(message)], nil
}

// take takes the messages that have arrived, if there are any. Others arrive into other
// memory.
func (m *grpcMessages) take() (there bool, err error) {
	c := m.connection
	c.Lock()
	m.dropTakenLocked()
	switch {
	case m.broken != nil:
		err = m.broken
	case m.whole > 0:
		m.takeLocked()
		there = true
	case m.ended != nil:
		err = m.ended
	default:
		m.burst.Store(0)
	}
	unsent := m.http2.Unsent() > 0
	c.Unlock()
	if there && unsent {
		c.flushNow()
	}
	return there, err
}

func (m *grpcMessages) takeLocked() {
	tail := m.arrived[m.whole:]
	m.taken, m.next, m.takenCharged = m.arrived[:m.whole], 0, m.charged
	m.arrived, m.whole, m.charged = nil, 0, 0
	if len(tail) > 0 {
		m.arrived = append(m.pool.Get(max(len(tail), messagePiece)), tail...)
		if m.budget != nil && cap(m.arrived) >= budgetBytesMin {
			// What was counted is more, and given back before that becomes more.
			m.charged = len(tail)
			m.budget.add(m.charged)
		}
	}
	if m.owed > 0 {
		m.http2.Consume(m.id, m.owed, m.now())
		m.owed = 0
	}
}

// dropTakenLocked gives the memory back that the receiver is through with.
func (m *grpcMessages) dropTakenLocked() {
	if m.taken != nil && !m.kept {
		m.pool.Put(m.taken)
	}
	m.taken, m.next, m.kept = nil, 0, false
	m.dischargeLocked()
}

// dropInflated gives the memory back of a message that was compressed.
func (m *grpcMessages) dropInflated() {
	if m.inflated == nil {
		return
	}
	m.connection.Lock()
	defer m.connection.Unlock()
	if !m.inflatedKept {
		m.pool.Put(m.inflated)
	}
	m.inflated, m.inflatedKept = nil, false
}

// dischargeLocked tells the budget that nobody takes up what was taken any more.
func (m *grpcMessages) dischargeLocked() {
	if m.takenCharged > 0 {
		m.budget.give(m.takenCharged)
		m.takenCharged = 0
	}
}

func (m *grpcMessages) inflate(message []byte) ([]byte, error) {
	switch m.encoding {
	case gzipName:
	case "":
		return nil, &grpc.Error{Code: grpc.Internal, Detail: "the message is compressed, and no encoding was named"}
	default:
		return nil, &grpc.Error{Code: grpc.Internal, Detail: fmt.Sprintf("the message is compressed with %.40q (known: %s)", m.encoding, gzipName)}
	}
	out, err := m.gzip.inflate(message, m.limit, m.pool)
	if err != nil {
		return nil, err
	}
	m.connection.Lock()
	defer m.connection.Unlock()
	m.inflated = out
	m.forgetIfGivenUpLocked()
	return out, nil
}

// KeepBody implements Stream.
func (m *grpcMessages) KeepBody() {
	m.connection.Lock()
	defer m.connection.Unlock()
	if m.inflated != nil {
		m.keepInflatedLocked()
	} else {
		m.keepTakenLocked()
	}
}

func (m *grpcMessages) keepTakenLocked() {
	if m.taken != nil && !m.kept {
		m.pool.Forget(m.taken)
		m.kept = true
	}
}

func (m *grpcMessages) keepInflatedLocked() {
	if m.inflated != nil && !m.inflatedKept {
		m.pool.Forget(m.inflated)
		m.inflatedKept = true
	}
}

// --- sending ---

// Room implements Stream.
func (m *grpcMessages) Room() *linkbuf.Buffer {
	m.room.Release()
	m.prefix = m.room.Reserve(grpc.PrefixSize)
	return &m.room
}

// message returns what is sent of what was appended to Room. packed is that as gzip.
func (m *grpcMessages) message(packed bool) [][]byte {
	if packed && m.room.Len() >= deflateLeast {
		return append(m.pieces[:0], m.gzip.deflate(m.room.Slices(nil), m.room.Len()))
	}
	grpc.PutPrefix(m.prefix, m.room.Len()-grpc.PrefixSize, false)
	return m.room.Slices(m.pieces[:0])
}

// sendLocked begins to send pieces. It reports whether they are all in the hands of the
// connection. io.EOF says that the call has ended, and Receive how.
func (m *grpcMessages) sendLocked(pieces [][]byte, last bool) (done bool, err error) {
	switch {
	case m.broken != nil:
		return true, m.broken
	case m.closed:
		return true, io.EOF
	}
	m.rest, m.last = pieces, last
	m.pumpLocked()
	return m.rest == nil, nil
}

// pumpLocked sends of a message what there is room for.
func (m *grpcMessages) pumpLocked() {
	for len(m.rest) > 0 {
		sent, err := m.http2.Data(m.id, m.rest[0], m.last && len(m.rest) == 1)
		if err != nil {
			break // The other side has ended the stream, and an event says how.
		}
		if sent < len(m.rest[0]) {
			m.rest[0] = m.rest[0][sent:]
			return
		}
		m.rest = m.rest[1:]
	}
	if m.rest != nil {
		m.rest = nil
		wake(m.writable)
	}
}

// await waits until the connection has all of a message.
func (m *grpcMessages) await(done bool) error {
	c := m.connection
	if m.burst.Add(1) > 1 {
		// Who sends one message after the other has them leave together.
		c.flushSoon()
	} else {
		c.flushNow()
	}
	var err error
	for !done {
		m.waits()
		<-m.writable
		c.Lock()
		switch {
		case m.broken != nil:
			done, err = true, m.broken
		case m.closed:
			done, err = true, io.EOF
		default:
			done = m.rest == nil
		}
		c.Unlock()
	}
	return err
}

// giveUpLocked follows the last use of a stream. What a goroutine may have that uses it all
// the same is left to it, and to the garbage collector.
func (m *grpcMessages) giveUpLocked() {
	m.breakLocked(errStreamGivenUp)
	m.givenUp = true
	m.forgetIfGivenUpLocked()
	m.dischargeLocked()
	if m.arrived != nil {
		m.pool.Put(m.arrived)
		m.arrived, m.whole, m.want = nil, 0, 0
	}
	if m.charged > 0 {
		m.budget.give(m.charged)
		m.charged = 0
	}
}

// forgetIfGivenUpLocked leaves what the receiver has to the garbage collector.
func (m *grpcMessages) forgetIfGivenUpLocked() {
	if m.givenUp {
		m.keepTakenLocked()
		m.keepInflatedLocked()
	}
}

// errStreamGivenUp is what somebody gets who uses a stream behind its end.
var errStreamGivenUp = errors.New("the stream is used after its end")
