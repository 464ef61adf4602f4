package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
)

// streamMessages is what a stream of messages over a connection is on either side: those
// that have arrived, and the one that is being sent. It bounds what is held to the window
// of the stream and one message.
//
// The lock of the connection guards what is named in front of readable.
type streamMessages struct {
	id     uint32
	flow   messageFlow
	limit  int
	pool   *linkbuf.Pool
	budget *budget

	// arrived holds messages with the prefixes of gRPC, whole is where in it the first one
	// begins that is not complete, want how long that is with its prefix, 0 if nobody knows.
	// owed is how much of it the window lacks, owedMessages in how many messages, charged how
	// much the budget has counted, takenCharged that of taken.
	arrived       []byte
	whole, want   int
	owed, charged int
	owedMessages  int
	takenCharged  int
	// encoding is how messages that arrive are compressed, which may be named encodingName
	// and not known; packs how those that are sent are. nil is for not at all.
	encoding, packs *encoding
	encodingName    string
	// ended is why nothing follows what has arrived. broken is why not even that counts,
	// and nothing is sent any more.
	ended, broken error
	// closed: nothing more can be sent, and the other side has said how the call ended.
	closed bool
	// rest is what is still to be sent of a message, last that the sending side ends there.
	// unsendable is why it cannot be sent, waitingCharged how much the budget has counted.
	rest           [][]byte
	last           bool
	unsendable     error
	waitingCharged int

	// readable and writable have room for one: there is news for who receives, or sends.
	readable, writable chan struct{}
	// burst is how many messages were sent since the receiver last waited.
	burst atomic.Int32
	// connection is where the messages go.
	connection messageCarrier
	// expiry ends the time of a server's call.
	expiry *time.Timer
	// willWait is told that a goroutine is going to wait; nil if nobody wants to know.
	willWait func()
	// life ends when nobody wants messages any more. blame, if it is set, is told why one
	// could not be inflated.
	life  context.Context
	blame func(error)

	// taken is what the receiver works at, from next on, inflated a message that was
	// compressed; only the receiver changes them, with the lock. kept, inflatedKept: others
	// have that memory now. givenUp: nobody should use the stream any more.
	taken, inflated             []byte
	kept, inflatedKept, givenUp bool
	inflatedCharged             int

	// Of the receiver; failed is why it cannot go on with what it has taken.
	next   int
	failed error
	timer  *time.Timer

	// Of the sender. patience is how long it waits while the other side takes nothing, 0
	// for ever; the lock guards moved: some of the message has left since it began to wait.
	room     linkbuf.Buffer
	pieces   [4][]byte
	patience time.Duration
	moved    bool
	stalled  *time.Timer
	// others write what sendLocked has left with the connection.
	others bool
}

// stalledError is the error for a peer that has taken nothing of a message for so long.
func stalledError(patience time.Duration) error {
	return &StalledError{patience}
}

// StalledError says that the other side of a stream takes nothing.
type StalledError struct{ Limit time.Duration }

// Error implements error.
func (e *StalledError) Error() string {
	return fmt.Sprintf("the other side of the stream has made no room for a message for %v (limit StreamSendTimeout)", e.Limit)
}

// lacksMessage is how a stream ends whose handler has succeeded though it could not send all.
func lacksMessage() *grpc.Error {
	return &grpc.Error{Code: grpc.Internal, Detail: "the handler succeeded, but a message could not be sent"}
}

// messageFlow is the state machine of a connection that streams of messages are on. The
// lock of the connection guards it.
type messageFlow interface {
	// pending reports whether flushNow has something to do.
	pending() bool
	// consume says that so many bytes of a stream, in so many messages, were taken.
	consume(m *streamMessages, bytes, messages int)
	// pump sends of a message what there is room for: of rest that is left which is not sent.
	pump(m *streamMessages)
}

// messageCarrier is a connection that streams of messages are on.
type messageCarrier interface {
	sync.Locker
	// othersLocked reports whether somebody gathers what waits, and will write it.
	othersLocked() bool
	// flushNow writes what waits, if nobody does. flushSoon leaves that to a goroutine, and
	// what is sent until that runs goes with it.
	flushNow()
	flushSoon()
}

func (m *streamMessages) init(pool *linkbuf.Pool) {
	m.pool, m.life = pool, context.Background()
	m.readable, m.writable = make(chan struct{}, 1), make(chan struct{}, 1)
	m.room.Init(pool)
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (m *streamMessages) waits() {
	if m.willWait != nil {
		m.willWait()
	}
}

// --- receiving ---

// messagePiece is how much memory messages get at first.
const messagePiece = 2 << 10

// appendLocked adds bytes to those that have arrived. Memory follows them, whatever a
// prefix says.
func (m *streamMessages) appendLocked(pieces ...[]byte) error {
	need := len(m.arrived)
	for _, piece := range pieces {
		need += len(piece)
	}
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
	for _, piece := range pieces {
		m.arrived = append(m.arrived, piece...)
	}
	return nil
}

// endLocked says that nothing follows what has arrived.
func (m *streamMessages) endLocked(err error) {
	if m.ended != nil {
		return
	}
	if err == io.EOF && len(m.arrived) > m.whole {
		err = &grpc.Error{Code: grpc.Internal, Detail: "the stream ends within a message"}
	}
	m.ended = err
	wake(m.readable)
}

// EndReceiving implements ServerStream.
func (m *streamMessages) EndReceiving() {
	m.connection.Lock()
	defer m.connection.Unlock()
	m.endLocked(ErrStopping)
}

// dropPartLocked gives the memory back of a message that will not be whole, unless others
// have arrived in front of it.
func (m *streamMessages) dropPartLocked() {
	if m.whole > 0 || m.arrived == nil {
		return
	}
	m.pool.Put(m.arrived)
	m.arrived, m.want = nil, 0
	if m.charged > 0 {
		m.budget.give(m.charged)
		m.charged = 0
	}
}

// breakLocked makes sending and receiving fail at once.
func (m *streamMessages) breakLocked(err error) {
	if m.broken == nil {
		m.broken = err
	}
	m.closeLocked()
	wake(m.readable)
}

// closeLocked says that nothing can be sent any more.
func (m *streamMessages) closeLocked() {
	m.closed, m.rest = true, nil
	m.dischargeWaitingLocked()
	wake(m.writable)
}

// Receive implements Stream.
func (m *streamMessages) Receive(timeout time.Duration) ([]byte, error) {
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
func (m *streamMessages) take() (there bool, err error) {
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
	pending := m.flow.pending() && !c.othersLocked()
	c.Unlock()
	if there && pending {
		c.flushNow()
	}
	return there, err
}

func (m *streamMessages) takeLocked() {
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
		m.flow.consume(m, m.owed, m.owedMessages)
		m.owed, m.owedMessages = 0, 0
	}
}

// dropTakenLocked gives the memory back that the receiver is through with.
func (m *streamMessages) dropTakenLocked() {
	if m.taken != nil && !m.kept {
		m.pool.Put(m.taken)
	}
	m.taken, m.next, m.kept = nil, 0, false
	m.dischargeLocked()
}

// dropInflated gives the memory back of a message that was compressed.
func (m *streamMessages) dropInflated() {
	if m.inflated == nil {
		return
	}
	m.connection.Lock()
	defer m.connection.Unlock()
	if !m.inflatedKept {
		m.pool.Put(m.inflated)
	}
	m.inflated, m.inflatedKept = nil, false
	m.dischargeInflatedLocked()
}

func (m *streamMessages) dischargeInflatedLocked() {
	if m.inflatedCharged > 0 {
		m.budget.give(m.inflatedCharged)
		m.inflatedCharged = 0
	}
}

// dischargeLocked tells the budget that nobody takes up what was taken any more.
func (m *streamMessages) dischargeLocked() {
	if m.takenCharged > 0 {
		m.budget.give(m.takenCharged)
		m.takenCharged = 0
	}
}

func (m *streamMessages) inflate(message []byte) ([]byte, error) {
	if m.encoding == nil {
		return nil, &grpc.Error{Code: grpc.Internal, Detail: m.compressedWith()}
	}
	out, charged, err := m.encoding.inflate(m.life, message, m.limit, m.pool, m.budget)
	if err != nil {
		if m.blame != nil {
			m.blame(err)
		}
		return nil, err
	}
	m.connection.Lock()
	defer m.connection.Unlock()
	m.inflated, m.inflatedCharged = out, charged
	m.forgetIfGivenUpLocked()
	return out, nil
}

// compressedWith says what is wrong with a message that is compressed.
func (m *streamMessages) compressedWith() string {
	if m.encodingName == "" {
		return "the message is compressed, and no encoding was named"
	}
	return fmt.Sprintf("the message is compressed with %.40q, which is not known here", m.encodingName)
}

// KeepBody implements Stream.
func (m *streamMessages) KeepBody() {
	m.connection.Lock()
	defer m.connection.Unlock()
	if m.inflated != nil {
		m.keepInflatedLocked()
	} else {
		m.keepTakenLocked()
	}
}

func (m *streamMessages) keepTakenLocked() {
	if m.taken != nil && !m.kept {
		m.pool.Forget(m.taken)
		m.kept = true
	}
}

func (m *streamMessages) keepInflatedLocked() {
	if m.inflated != nil && !m.inflatedKept {
		m.pool.Forget(m.inflated)
		m.inflatedKept = true
	}
}

// --- sending ---

// sendLocked begins to send pieces. It reports whether they are all in the hands of the
// connection. io.EOF says that the call has ended, and Receive how.
func (m *streamMessages) sendLocked(pieces [][]byte, last bool) (done bool, err error) {
	switch {
	case m.broken != nil:
		return true, m.broken
	case m.closed:
		return true, io.EOF
	}
	m.rest, m.last, m.unsendable, m.moved = pieces, last, nil, false
	m.others = m.connection.othersLocked()
	if m.pumpLocked(); m.rest == nil {
		return true, m.unsendable
	}
	m.chargeWaitingLocked()
	return false, nil
}

// chargeWaitingLocked has the budget count a message that could not leave at once, all of it
// until its last byte leaves: the memory is held for as long. Without room for it the stream
// ends as one that stalls.
func (m *streamMessages) chargeWaitingLocked() {
	if m.budget == nil {
		return
	}
	length := m.room.Len()
	if err := m.budget.take(length); err != nil {
		m.unsendable = err
		m.closeLocked()
		return
	}
	m.waitingCharged = length
}

func (m *streamMessages) dischargeWaitingLocked() {
	if m.waitingCharged > 0 {
		m.budget.give(m.waitingCharged)
		m.waitingCharged = 0
	}
}

// pumpLocked sends of a message what there is room for.
func (m *streamMessages) pumpLocked() {
	if m.rest == nil {
		return
	}
	before := lengthOf(m.rest)
	if m.flow.pump(m); len(m.rest) == 0 {
		m.rest = nil
		m.dischargeWaitingLocked()
		wake(m.writable)
		return
	}
	m.moved = m.moved || lengthOf(m.rest) != before
}

func lengthOf(pieces [][]byte) (length int) {
	for _, piece := range pieces {
		length += len(piece)
	}
	return length
}

// await waits until the connection has all of a message.
func (m *streamMessages) await(done bool) error {
	c := m.connection
	switch burst := m.burst.Add(1); {
	case m.others:
	case burst > 1:
		// Who sends one message after the other has them leave together.
		c.flushSoon()
	default:
		c.flushNow()
	}
	if done {
		return nil
	}
	var err error
	if m.patience > 0 {
		c.Lock()
		if m.moved = false; m.stalled == nil {
			m.stalled = time.AfterFunc(m.patience, m.stall)
		} else {
			m.stalled.Reset(m.patience)
		}
		c.Unlock()
		defer m.stalled.Stop()
	}
	for !done {
		m.waits()
		<-m.writable
		c.Lock()
		switch {
		case m.broken != nil:
			done, err = true, m.broken
		case m.unsendable != nil:
			done, err = true, m.unsendable
		case m.closed:
			done, err = true, io.EOF
		default:
			done = m.rest == nil
		}
		c.Unlock()
	}
	return err
}

// stall ends a stream whose other side takes nothing, or gives it more time if it did.
func (m *streamMessages) stall() {
	m.connection.Lock()
	defer m.connection.Unlock()
	switch {
	case m.rest == nil:
	case m.moved:
		m.moved = false
		m.stalled.Reset(m.patience)
	default:
		// The rest of a message that has begun can be left out only with all that follows.
		m.unsendable = stalledError(m.patience)
		m.closeLocked()
	}
}

// expireAt has the call end some time after it has arrived, if that is not 0.
func (m *streamMessages) expireAt(arrived time.Time, timeout time.Duration) {
	if timeout <= 0 {
		return
	}
	m.expiry = time.AfterFunc(time.Until(arrived.Add(timeout)), func() {
		m.connection.Lock()
		defer m.connection.Unlock()
		m.breakLocked(context.DeadlineExceeded)
	})
}

// giveUpLocked follows the last use of a stream. What a goroutine may have that uses it all
// the same is left to it, and to the garbage collector.
func (m *streamMessages) giveUpLocked() {
	if m.expiry != nil {
		m.expiry.Stop()
	}
	m.breakLocked(errStreamGivenUp)
	m.givenUp = true
	m.forgetIfGivenUpLocked()
	m.dischargeLocked()
	m.dischargeInflatedLocked()
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
func (m *streamMessages) forgetIfGivenUpLocked() {
	if m.givenUp {
		m.keepTakenLocked()
		m.keepInflatedLocked()
		m.dischargeInflatedLocked()
	}
}

// errStreamGivenUp is what somebody gets who uses a stream behind its end.
var errStreamGivenUp = errors.New("the stream is used after its end")
