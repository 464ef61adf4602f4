package eventloop

import (
	"math/bits"
	"testing"
)

// combineState is a model of goroutines that write to one polled connection, of
// combined, and of all that ends such a connection. Each step is one section of
// the code that others cannot see the middle of: under combined.mu, Conn.mu or
// socket.mu, one system call, one atomic operation. What only the holder of the
// token sees, such as outbound.broken, is part of the step next to it. A piece
// has two units; all writes are whole ones, as those of WriteBuffers.
type combineState struct {
	// outside has the bits of what may still happen.
	outside uint8

	// The socket: Close, CloseWrite, a reset, the deadline, and whether that is
	// LingerTimeout.
	shut, shutWrite, reset, expired, lingers bool
	// Conn, with the second halves of Abort and CloseWrite.
	closed, aborted, aborting, closesWrite, finished bool
	closer                                           closerStep
	// waitsEnd: Conn.drained is set.
	waitsEnd bool

	// outbound: ending, and whether combined is there, and broken.
	ending, made bool
	broken       combineFailure
	// combined; ended: the channel waits to be closed; told: it is.
	writing, spare, closing, ended, told bool
	left                                 pieceQueue

	// The writers, with the number of the piece that they write, and the
	// goroutine of writeRest, when it has given the token back.
	at         [modelWriters]writerStep
	next       [modelWriters]uint8
	restCloses bool

	// Who has the token. holder is the number of a writer or holderRest.
	holders, holder, rounds uint8
	does                    holderStep
	// first: it writes its own piece, plain: without combined. taken, lost: bytes
	// of others are, or were, in what it has failed to write.
	first, plain, taken, lost bool
	failure                   combineFailure
	current                   pieceQueue
	// half: the first unit of the first piece in current is written.
	half bool

	// What has become of the pieces: units in the stream, and bits. open is the
	// piece whose end is not in the stream yet. late pieces began when nothing
	// could be written any more.
	units                    [modelPieces]uint8
	open                     uint8
	succeeded, dropped, late uint8
	wrong                    string
}

const (
	modelWriters = 3
	modelPieces  = 2 * modelWriters // the numbers 2w and 2w+1 are those of writer w
	pieceUnits   = 2
	holderRest   = modelWriters
)

// pieceQueue has a piece's number plus 1 in each half byte, the first one lowest.
type pieceQueue uint32

func (q pieceQueue) length() int               { return (bits.Len32(uint32(q)) + 3) / 4 }
func (q pieceQueue) first() uint8              { return uint8(q&15) - 1 }
func (q pieceQueue) rest() pieceQueue          { return q >> 4 }
func (q pieceQueue) behind(p uint8) pieceQueue { return q<<4 | pieceQueue(p+1) }
func (q pieceQueue) with(p uint8) pieceQueue {
	return q | pieceQueue(p+1)<<(4*q.length())
}

type (
	writerStep     uint8
	holderStep     uint8
	closerStep     uint8
	combineFailure uint8
)

const (
	writerIdle   writerStep = iota
	writerMakes             // combined
	writerLocks             // waits for the token
	writerHolds             // has it
	writerCloses            // is about to call CloseWithError
	writerWaits             // for the closing of the socket
)

const (
	holderNone   holderStep = iota
	holderBegins            // combined.begin
	holderTakes             // combined.take
	holderCalls             // socket.unusable and acquire
	holderInCall            // write(2)
	holderWaits             // socket.wait
	holderWrote             // combined.written
	holderEnds              // combined.end
	holderHands             // go writeRest
	holderFails             // combined.fail
	holderShuts             // combined.closing
	holderTells             // close(ended)
	holderUnlocks
)

const (
	closerNone    closerStep = iota
	closerBegins             // shutSocket
	closerLooks              // combined.closeAfter
	closerShuts              // socket.Close
	closerLingers            // outbound.setDeadline
	closerDone
)

// Why a write has failed.
const (
	noFailure combineFailure = iota
	failsClosed
	failsDeadline
	failsReset
	failsEnded // CloseWrite
)

// What may happen outside, each once.
const (
	combineClose uint8 = 1 << iota
	combineAbort
	combineCloseWrite
	combineReset
	combineDeadline
	combineExtend // possible after a deadline
)

// combineMistake is one that the model can be given.
type combineMistake uint8

const (
	_ combineMistake = iota // none
	// failsOnWriting: fail does not say that nobody writes any more.
	failsOnWriting
	// failsKeeping: fail keeps what is left.
	failsKeeping
	// failsUntold: fail does not close what waits to be closed.
	failsUntold
	// failsOn: endCombined does not note that bytes of others are lost.
	failsOn
	// failsTorn: writeCombined does not note that it wrote a part.
	failsTorn
	// endsAgain: endAndUnlock leaves ended for who waited to write meanwhile.
	endsAgain
	// endsUnseen: end does not look whether something was left.
	endsUnseen
	// takesCopy: take leaves what it takes.
	takesCopy
	// keepsTaken: written is not called after a failure.
	keepsTaken
	// leavesToNobody: leave does not look whether somebody writes.
	leavesToNobody
	// leavesLate: leave does not look whether the connection closes.
	leavesLate
	// leavesBehindEnd: CloseWrite does not keep others from leaving bytes.
	leavesBehindEnd
	// leavesFirst: leave puts a piece before those that are there.
	leavesFirst
	// closesAtOnce: close does not wait for the one who writes.
	closesAtOnce
	// closesTaken: closeAfter does not see what is being written.
	closesTaken
	// closesForEver: close sets no deadline.
	closesForEver
	// closesWithError: close reports that its deadline came too late.
	closesWithError
	// locksWhatever: the token is not waited for.
	locksWhatever
	// unlocksEarly: who leaves the rest to a goroutine gives the token back.
	unlocksEarly
	// restKeeps: that goroutine does not give it back.
	restKeeps
)

// --- what the steps do ---

func (s *combineState) fault(what string) {
	if s.wrong == "" {
		s.wrong = what
	}
}

// own is the piece of a writer that it writes now.
func (s *combineState) own(writer uint8) uint8 { return 2*writer + s.next[writer] }

// returned is the result of a piece.
func (s *combineState) returned(p uint8, success bool) {
	if success {
		s.succeeded |= 1 << p
	}
	switch whole := s.units[p] == pieceUnits; {
	case success && s.late&(1<<p) != 0:
		s.fault("a write after the end succeeded")
	case !success && whole:
		s.fault("a write that succeeded failed")
	}
	s.next[p/2]++
}

// sendUnit is one unit that the kernel takes.
func (s *combineState) sendUnit() {
	p := s.current.first()
	switch earlier := p &^ 1; {
	case s.open != 0 && s.open != p+1:
		s.fault("a piece is torn")
	case s.units[p] == pieceUnits:
		s.fault("a piece is written twice")
	case earlier != p && s.succeeded&(1<<earlier) != 0 && s.units[earlier] < pieceUnits:
		s.fault("a writer's pieces are in disorder")
	}
	s.units[p] = min(s.units[p]+1, pieceUnits)
	s.open = 0
	if s.units[p] < pieceUnits {
		s.open = p + 1
	}
	if s.half = !s.half; !s.half {
		s.current = s.current.rest()
	}
}

// drop loses pieces that were left to the holder, which is right if it could not
// write them, unless that is because the connection closes: that waits.
func (s *combineState) drop(pieces pieceQueue) {
	for ; pieces != 0; pieces = pieces.rest() {
		p := pieces.first()
		switch {
		case s.dropped&(1<<p) != 0:
			s.fault("a piece is dropped twice")
		case s.failure == failsEnded, s.failure == failsClosed && !s.aborted:
			s.fault("a write that succeeded is lost")
		}
		s.dropped |= 1 << p
	}
}

// shutNow is socket.Close.
func (s *combineState) shutNow() {
	if s.shut {
		s.fault("Close fails")
	}
	s.shut = true
	for p := range uint8(modelPieces) {
		if (s.succeeded&^s.dropped)>>p&1 != 0 && s.units[p] < pieceUnits && !s.aborted {
			s.fault("the socket is closed before everything is written")
		}
	}
}

// closes is Conn.CloseWithError. It returns false if somebody else closes, or has.
func (s *combineState) closes() bool {
	if s.closed {
		return false
	}
	s.closed, s.closer = true, closerBegins
	return true
}

// over: nothing that begins now may succeed.
func (s *combineState) over() bool {
	return s.closer == closerDone || s.broken != noFailure && s.holders == 0 || s.shutWrite
}

type combineModel struct {
	mistake combineMistake
	// pieces says how many each writer writes, long which are too long to be left.
	pieces [modelWriters]uint8
	long   uint8
	// room is CombinedBytes, in pieces, rounds is combinedRounds.
	room   int
	rounds uint8
}

type addCombine func(name string, outside bool, change func(*combineState))

func (m *combineModel) steps(s combineState) []transition[combineState] {
	all := make([]transition[combineState], 0, 8)
	add := func(name string, outside bool, change func(*combineState)) {
		next := s
		change(&next)
		all = append(all, transition[combineState]{name, next, outside})
	}
	if s.wrong != "" {
		return nil
	}
	m.outsideSteps(s, add)
	m.closerSteps(s, add)
	for writer := range uint8(modelWriters) {
		m.writerSteps(s, writer, add)
	}
	m.writingSteps(s, add)
	m.holderSteps(s, add)
	return all
}

func (m *combineModel) explorer() *explorer[combineState] {
	return &explorer[combineState]{steps: m.steps, check: m.check, acyclic: true}
}

// check says what must hold in every state, and when nothing happens any more.
func (m *combineModel) check(s combineState, idle bool) string {
	free := s.holders == 0
	switch {
	case s.wrong != "":
		return s.wrong
	case s.holders > 1:
		return "two have the token"
	case free && s.writing:
		return "somebody is said to write, and nobody does"
	case free && s.left != 0:
		return "bytes are left to nobody"
	case free && !s.spare:
		return "a buffer is not given back"
	case !idle:
		return ""
	case s.closed && (!s.shut || !s.finished || !free), !free && s.does != holderWaits:
		return "it hangs"
	case !free:
		return "" // the others wait as it does
	case s.waitsEnd != s.told, s.closesWrite, s.restCloses:
		return "it hangs"
	}
	for writer := range uint8(modelWriters) {
		if s.at[writer] != writerIdle || s.next[writer] < m.pieces[writer] {
			return "it hangs"
		}
	}
	for p := range uint8(modelPieces) {
		if (s.succeeded&^s.dropped)>>p&1 != 0 && s.units[p] < pieceUnits {
			return "a write that succeeded is lost"
		}
	}
	return ""
}

// combineStart is a connection that nobody has written to at the same time yet.
func combineStart(outside uint8) combineState {
	return combineState{outside: outside, spare: true}
}

// TestCombineModel_KeepsItsPromises visits all interleavings of writers, of a
// Close, and of up to two kinds of things beside.
func TestCombineModel_KeepsItsPromises(t *testing.T) {
	const everything = combineAbort | combineCloseWrite | combineReset | combineDeadline
	states := 0
	for _, test := range []struct {
		pieces [modelWriters]uint8
		long   uint8
		// beside may happen, up to so many kinds of it.
		beside uint8
		kinds  int
	}{
		{[modelWriters]uint8{1, 1}, 0, everything, 2},
		{[modelWriters]uint8{2, 1}, 0, everything, 1},
		{[modelWriters]uint8{2, 1}, 1 << 2, combineDeadline, 1},
		{[modelWriters]uint8{1, 1, 1}, 0, combineDeadline, 1},
	} {
		m := &combineModel{pieces: test.pieces, long: test.long, room: 2, rounds: 1}
		for beside := uint8(0); beside <= everything; beside++ {
			if beside&^test.beside != 0 || bits.OnesCount8(beside) > test.kinds {
				continue
			}
			e := m.explorer()
			e.acyclic = test.pieces[modelWriters-1] == 0 // it takes as long again
			expectSound(t, e, combineStart(combineClose|beside))
			states += len(e.seen)
			if t.Failed() {
				return
			}
		}
	}
	t.Logf("%d states", states)
}

func TestCombineModel_FindsMistakes(t *testing.T) {
	for _, test := range []struct {
		mistake combineMistake
		outside uint8
		found   string
	}{
		{failsOnWriting, combineReset, "somebody is said to write, and nobody does"},
		{failsKeeping, combineReset, "bytes are left to nobody"},
		{failsUntold, combineClose | combineReset, "it hangs"},
		{failsOn, combineDeadline, "a writer's pieces are in disorder"},
		{failsTorn, combineDeadline, "a piece is torn"},
		{endsAgain, combineClose, "Close fails"},
		{endsUnseen, 0, "bytes are left to nobody"},
		{takesCopy, 0, "a piece is written twice"},
		{keepsTaken, combineReset, "a buffer is not given back"},
		{leavesToNobody, 0, "bytes are left to nobody"},
		{leavesLate, combineClose, "a write after the end succeeded"},
		{leavesBehindEnd, combineCloseWrite, "a write after the end succeeded"},
		{leavesFirst, 0, "a writer's pieces are in disorder"},
		{closesAtOnce, combineClose, "the socket is closed before everything is written"},
		{closesTaken, combineClose, "the socket is closed before everything is written"},
		{closesForEver, combineClose, "it hangs"},
		{closesWithError, combineClose, "Close fails"},
		{locksWhatever, 0, "two have the token"},
		{unlocksEarly, 0, "somebody is said to write, and nobody does"},
		{restKeeps, 0, "it hangs"},
	} {
		m := &combineModel{
			mistake: test.mistake, pieces: [modelWriters]uint8{2, 1, 1}, room: 2, rounds: 1,
		}
		expectFound(t, m.explorer(), combineStart(test.outside), test.found)
	}
}
