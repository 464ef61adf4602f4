package eventloop

import (
	"math/bits"
	"os"
	"testing"
)

// connState is a model of one connection of EngineEpoll and of the poller that
// watches it. Each step is what happens under one lock, or in one system call.
// What to do next is decided by Conn.next itself.
type connState struct {
	// outside has the bits of what may still happen.
	outside uint16
	// toSend pieces are not sent yet, unread ones are in the kernel, buffered
	// ones in the Reader. fin: the end is in the kernel.
	toSend, unread, buffered uint8
	fin                      bool

	// The socket.
	watched, expired, shut bool
	// The poller. polls: it has the role and nothing to do. event: it looks at an
	// event of the socket, reported: it is about to tell the connection.
	polls, event, reported bool

	// expiry: readExpired is about to run; shutting, closing: so are the second
	// halves of Shutdown and Close.
	expiry, shutting, closing bool

	// loopState and served.
	owned, drained                                  bool
	fresh, again, wake, released, looked, idle      bool
	paused, eof, eofTold, broken, failed, finishing bool
	draining                                        bool
	holds                                           uint8

	// Whoever owns the connection: how many do, what it does, and on which
	// goroutine: one that polls, or did, or another.
	owners   uint8
	at       ownerStep
	leads    bool
	turn     uint8
	got      uint8
	gotEnd   bool
	gotError bool
	// detached: the handler has let go of the connection. checks: it is about to
	// look whether that must go on without it, taken: so is who took the role.
	// lost: the role was lost in this call.
	detached, checks, taken, lost bool
	// poked: something has happened to the connection since it waited.
	poked bool
	// left are calls that it has gone on without; leftLeads: one is on the
	// goroutine that polls.
	left      uint8
	leftLeads bool
	// replies: some wait in the Writer. dropped: they did when it lingered.
	replies, dropped bool
	// asked: Wake was called, and the handler was not called since.
	asked bool
	// finished counts the calls of finish.
	finished uint8
}

type ownerStep uint8

const (
	ownerNone ownerStep = iota
	ownerAwaits
	ownerChecks // the deadline, before it reads
	ownerReads
	ownerRecords // what it has read
	ownerActs    // in code of the user, as next said
	ownerTellsEnd
	ownerLingers
	ownerFinishes
	ownerLooks
)

// What may happen outside, each once.
const (
	outsideEnd uint16 = 1 << iota
	outsideDeadline
	outsideWake
	outsidePause
	outsideHold // in the handler, and Release afterwards
	outsideFailure
	outsideClose
	outsideShutdown
	outsideDetach  // in the handler
	outsideResume  // possible after a pause
	outsideRelease // possible after a hold
)

// connMistake is one that the model can be given.
type connMistake uint8

const (
	noConnMistake connMistake = iota
	// waitsPastDeadline: await does not look at the deadline.
	waitsPastDeadline
	// waitsUnwatched: await does not watch what the poller has unwatched.
	waitsUnwatched
	// watchesOwned: the poller goes on watching a connection that is owned.
	watchesOwned
	// pokesOwned: poke does not look whether somebody owns the connection.
	pokesOwned
	// forgetsWakes: Wake during the handler is forgotten.
	forgetsWakes
	// keepsUnread: Detach on another goroutine leaves unread bytes to it.
	keepsUnread
	// keepsPoked: it leaves what has happened meanwhile to it.
	keepsPoked
	// forgetsFull: the end of a call does not tell a connection that waits for it.
	forgetsFull
	// leavesReplies: the poller takes a connection that has replies to write.
	leavesReplies
	// lingersUnflushed: replies that wait are not written before the end.
	lingersUnflushed
	// seizesWhatever: a connection is seized whether its handler has let go or not.
	seizesWhatever
)

const (
	modelBuffered = 2 // ReadBufferBytes, and what is sent in all
	modelKinds    = 2 // how many kinds of things happen beside
)

// conn returns a connection in the state of the model.
func (s *connState) conn(l *Listener, config *Config) *Conn {
	l.draining.Store(s.draining)
	c := &Conn{listener: l, config: config, closed: s.finishing, served: &served{
		fresh: s.fresh, again: s.again, wake: s.wake, released: s.released, looked: s.looked, idle: s.idle,
		left:   int32(s.left),
		paused: s.paused, holds: int32(s.holds), eof: s.eof, eofTold: s.eofTold, failed: s.failed,
	}}
	c.reader.end = int(s.buffered)
	if s.broken {
		c.served.readErr = os.ErrDeadlineExceeded
	}
	return c
}

// next asks Conn.next.
func (s *connState) next(l *Listener, config *Config) action {
	c := s.conn(l, config)
	next := c.next()
	v := c.served
	s.finishing = c.closed
	s.fresh, s.again, s.wake, s.released, s.looked, s.idle = v.fresh, v.again, v.wake, v.released, v.looked, v.idle
	s.eofTold = v.eofTold
	return next
}

// readable: the kernel would report it.
func (s *connState) readable() bool { return s.unread > 0 || s.fin }

func (s *connState) poke(mistake connMistake) {
	s.poked = true
	if s.seize(false, mistake) || s.owned && mistake != pokesOwned {
		return
	}
	s.owned, s.leads, s.at, s.turn = true, false, ownerAwaits, 0
	s.owners++
}

// seize is Conn.seizeLocked.
func (s *connState) seize(leads bool, mistake connMistake) bool {
	if !s.owned || !s.detached && (mistake != seizesWhatever || s.at != ownerActs) {
		return false
	}
	if !s.detached {
		s.owners++ // the handler does not know
	}
	s.left++
	s.holds++
	s.again = s.again || s.buffered > 0
	s.detached, s.lost, s.leftLeads = false, false, s.leftLeads || s.leads
	s.leads, s.at, s.turn = leads, ownerAwaits, 0
	s.replies = s.replies && leads // another goroutine flushes first
	return true
}

func (s *connState) letGo() {
	s.owned, s.poked, s.at = false, false, ownerNone
	s.owners--
	if s.leads {
		s.leads, s.polls = false, true
	}
}

type connModel struct {
	mistake  connMistake
	listener Listener
	config   Config
}

type addConn func(name string, outside bool, change func(*connState))

// newConnModel returns a model of a connection that goes on without so many calls.
func newConnModel(mistake connMistake, detached int) *explorer[connState] {
	m := &connModel{mistake: mistake, config: Config{ReadBufferBytes: modelBuffered, MaxDetached: detached}}
	return &explorer[connState]{
		acyclic: true,
		check:   m.check,
		steps: func(s connState) []transition[connState] {
			var all []transition[connState]
			add := func(name string, outside bool, change func(*connState)) {
				next := s
				change(&next)
				all = append(all, transition[connState]{name, next, outside})
			}
			m.outsideSteps(s, add)
			m.pollerSteps(s, add)
			m.pendingSteps(s, add)
			m.detachSteps(s, add)
			m.ownerSteps(s, add)
			return all
		},
	}
}

// outsideSteps are those of the peer, and of whoever has the connection.
func (m *connModel) outsideSteps(s connState, add addConn) {
	may := func(what uint16, name string, change func(*connState)) {
		if s.outside&what != 0 {
			add(name, true, func(s *connState) { s.outside &^= what; change(s) })
		}
	}
	if s.toSend > 0 && !s.fin {
		add("the peer sends", true, func(s *connState) { s.toSend--; s.unread++ })
	}
	if !s.fin {
		may(outsideEnd, "the peer ends", func(s *connState) { s.fin = true })
	}
	may(outsideDeadline, "the deadline passes", func(s *connState) { s.expired, s.expiry = true, !s.shut })
	may(outsideWake, "Wake", func(s *connState) { s.wake, s.asked = true, true; s.poke(m.mistake) })
	may(outsidePause, "PauseReading", func(s *connState) { s.paused = true; s.outside |= outsideResume; s.poke(m.mistake) })
	may(outsideResume, "ResumeReading", func(s *connState) { s.paused = false; s.poke(m.mistake) })
	may(outsideRelease, "Release", func(s *connState) {
		s.holds--
		s.released = s.eof
		if s.eof || s.draining {
			s.poke(m.mistake)
		}
	})
	may(outsideShutdown, "Shutdown", func(s *connState) { s.draining, s.shutting = true, true })
	if !s.finishing {
		may(outsideClose, "Close", func(s *connState) { s.finishing, s.closing = true, true; s.poke(m.mistake) })
	}
}

// pendingSteps are the second halves of calls.
func (m *connModel) pendingSteps(s connState, add addConn) {
	if s.expiry {
		add("the deadline is told", false, func(s *connState) { s.expiry, s.drained = false, false; s.poke(m.mistake) })
	}
	if s.shutting {
		add("Shutdown pokes", false, func(s *connState) { s.shutting = false; s.poke(m.mistake) })
	}
	if s.closing {
		add("Close closes the socket", false, func(s *connState) { s.closing, s.shut, s.watched = false, true, false })
	}
}

// detachSteps are those of a handler that has let go, and of calls that the
// connection has gone on without. Nobody may count on their return.
func (m *connModel) detachSteps(s connState, add addConn) {
	if s.taken {
		add("who took the role goes on with it", false, func(s *connState) { s.taken = false; s.seize(false, m.mistake) })
	}
	switch {
	case s.checks && s.leads:
		add("it is on the goroutine that polls", false, func(s *connState) { s.checks = false })
	case s.checks:
		add("it is on another", false, func(s *connState) {
			s.checks = false
			if s.lost || s.replies || s.buffered > 0 && m.mistake != keepsUnread || s.poked && m.mistake != keepsPoked {
				s.seize(false, m.mistake)
			}
		})
	case s.detached:
		add("the call that has let go returns", true, func(s *connState) {
			s.detached, s.again, s.at = false, s.buffered > 0, ownerAwaits
			s.replies = s.again
		})
	}
	if s.left > 0 && !s.checks {
		ends := func(s *connState) {
			full := int(s.left) >= m.config.MaxDetached
			s.left--
			if s.leftLeads {
				s.leftLeads, s.polls = false, true
			}
			s.holds--
			s.released = s.eof
			if s.failed || s.eof || s.draining || full && m.mistake != forgetsFull {
				s.poke(m.mistake)
			}
		}
		add("a call that was left returns", true, ends)
		if s.outside&outsideFailure != 0 {
			add("a call that was left fails", true, func(s *connState) {
				s.outside &^= outsideFailure
				s.failed = true
				ends(s)
			})
		}
	}
	if s.leftLeads {
		add("the role is taken from a call that was left", false, func(s *connState) { s.leftLeads, s.polls = false, true })
	}
}

// pollerSteps are lead, socket.event and epollEngine.readable.
func (m *connModel) pollerSteps(s connState, add addConn) {
	switch {
	case s.polls && s.watched && s.readable():
		add("the poller has an event", false, func(s *connState) { s.polls, s.event = false, true })
	case s.event:
		add("it looks at it", false, func(s *connState) {
			s.event, s.reported = false, s.watched
			s.polls = !s.watched
		})
	case s.reported:
		add("it tells the connection", false, func(s *connState) {
			s.reported, s.poked = false, s.poked || s.owned
			if s.seize(!s.replies || m.mistake == leavesReplies, m.mistake) {
				s.drained, s.polls = false, !s.leads
				return
			}
			if s.owned {
				s.watched = s.watched && m.mistake == watchesOwned
				s.polls = true
				return
			}
			s.owned, s.drained, s.leads, s.at, s.turn = true, false, true, ownerAwaits, 0
			s.owners++
		})
	}
}

// ownerSteps are epollEngine.run and what it calls.
func (m *connModel) ownerSteps(s connState, add addConn) {
	switch s.at {
	case ownerAwaits:
		m.awaitSteps(s, add)
	case ownerChecks:
		add("it may read", false, func(s *connState) {
			s.at, s.got, s.gotEnd, s.gotError = ownerReads, 0, false, false
			if s.expired || s.shut {
				s.at, s.gotError = ownerRecords, true
			}
		})
	case ownerReads:
		read := func(n uint8) func(*connState) {
			return func(s *connState) {
				s.at, s.got, s.unread = ownerRecords, n, s.unread-n
				s.gotEnd, s.gotError = n == 0 && s.fin && !s.shut, s.shut
			}
		}
		add("it reads all", false, read(s.unread))
		if s.unread > 1 {
			add("it reads some", false, func(s *connState) { read(1)(s); s.turn++ })
		}
	case ownerRecords:
		add("it has read", false, func(s *connState) {
			s.drained = s.unread == 0 || s.got == 0
			s.buffered += s.got
			s.fresh = s.fresh || s.got > 0
			s.eof, s.broken = s.eof || s.gotEnd, s.broken || s.gotError
			s.at, s.got, s.gotEnd, s.gotError = ownerAwaits, 0, false, false
		})
	case ownerLooks:
		add("it looks for bytes", false, func(s *connState) {
			s.looked, s.idle, s.at = true, !s.readable() && !s.shut, ownerAwaits
		})
	case ownerActs:
		if !s.detached {
			m.handlerSteps(s, add)
		}
	case ownerTellsEnd:
		add("OnEOF returns", false, func(s *connState) { s.at = ownerAwaits })
	case ownerLingers:
		add("it lingers", false, func(s *connState) {
			s.dropped = s.replies && m.mistake == lingersUnflushed
			s.replies, s.at = false, ownerFinishes
		})
	case ownerFinishes:
		add("it finishes", false, func(s *connState) {
			s.finished++
			s.finishing, s.shut, s.watched, s.at = true, true, false, ownerNone
			s.owners--
			if s.leads {
				s.leads, s.polls = false, true
			}
		})
	}
	inUsersCode := s.at == ownerActs || s.at == ownerTellsEnd || s.at == ownerFinishes
	if s.leads && inUsersCode {
		add("the role is taken over", false, func(s *connState) {
			s.leads, s.polls = false, true
			s.lost = s.at == ownerActs && (s.detached || s.outside&outsideDetach != 0)
			s.taken = s.lost
		})
		if !s.detached {
			add("it was spawned", false, func(s *connState) { s.leads, s.polls = false, true })
		}
	}
}

// awaitSteps are epollEngine.await.
func (m *connModel) awaitSteps(s connState, add addConn) {
	add("it asks what is next", false, func(s *connState) {
		s.lost = false
		next := s.next(&m.listener, &m.config)
		turnOver := s.leads && s.turn > 0
		switch {
		case next == actionRead && (s.drained || turnOver) && (s.expired || s.shut) && m.mistake != waitsPastDeadline:
			s.broken = true
			next = s.next(&m.listener, &m.config)
		case next == actionRead && (s.drained || turnOver):
			s.watched = s.watched || !s.shut && m.mistake != waitsUnwatched
			next = actionWait
		case next == actionWait:
			s.watched = false
		}
		switch next {
		case actionWait:
			s.letGo()
		case actionRead:
			s.at = ownerChecks
		case actionLook:
			s.at = ownerLooks
		case actionHandle:
			s.at, s.asked = ownerActs, false
		case actionEOF:
			s.at = ownerTellsEnd
		case actionLinger:
			s.at = ownerLingers
			if s.leads { // it is spawned
				s.leads, s.polls = false, true
			}
		case actionFinish:
			s.at = ownerFinishes
		}
	})
}

// handlerSteps are the ways in which a handler returns.
func (m *connModel) handlerSteps(s connState, add addConn) {
	returns := func(name string, left uint8) {
		add(name, false, func(s *connState) {
			s.again = left > 0 && left < s.buffered
			s.replies = s.again
			s.buffered, s.at = left, ownerAwaits
			s.wake = s.wake && m.mistake != forgetsWakes
		})
	}
	returns("the handler consumes all", 0)
	if s.buffered > 0 {
		returns("the handler consumes nothing", s.buffered)
	}
	if s.buffered > 1 {
		returns("the handler consumes some", s.buffered-1)
		if !s.finishing && !s.failed {
			add("it is called again at once", false, func(s *connState) { s.buffered--; s.asked, s.replies = false, true })
		}
	}
	if s.outside&outsideDetach != 0 && s.buffered > 0 {
		add("the handler lets go", false, func(s *connState) {
			s.outside &^= outsideDetach
			s.buffered--
			s.detached, s.checks = true, true
		})
	}
	if s.outside&outsideFailure != 0 {
		add("the handler fails", false, func(s *connState) {
			s.outside &^= outsideFailure
			s.failed, s.at = true, ownerAwaits
		})
	}
	if s.outside&outsideHold != 0 {
		add("the handler holds", false, func(s *connState) {
			s.outside = s.outside&^outsideHold | outsideRelease
			s.holds++
		})
	}
}

// check says what must hold in every state, and when nothing happens any more.
func (m *connModel) check(s connState, idle bool) string {
	leaders := 0
	for _, role := range []bool{s.polls, s.event, s.reported, s.leads, s.leftLeads} {
		if role {
			leaders++
		}
	}
	switch {
	case s.owners > 1:
		return "there are two owners"
	case leaders != 1:
		return "there is not one leader"
	case s.finished > 1:
		return "it is finished twice"
	case s.dropped:
		return "replies are lost"
	case !idle:
		return ""
	case s.finished == 1, int(s.left) >= m.config.MaxDetached:
		return ""
	case s.owned && !s.detached, s.finishing && !s.owned:
		return "it hangs"
	case s.asked:
		return "a Wake is lost"
	case s.replies:
		return "replies are left"
	}
	after := s
	after.seize(false, m.mistake) // it must not matter how long a call takes that has let go
	switch next := after.next(&m.listener, &m.config); {
	case next == actionWait:
		return ""
	case next == actionLook && s.paused && s.readable():
		return "" // what has arrived must be taken before it closes, after ResumeReading
	case next != actionRead:
		return "something is left to do"
	case s.expired, !s.watched, s.readable():
		return "nobody looks at the socket"
	default:
		return ""
	}
}

// modelStart is a connection whose OnOpen has returned.
func modelStart(outside uint16) connState {
	return connState{
		outside: outside, toSend: modelBuffered, polls: true,
		owned: true, drained: true, owners: 1, at: ownerAwaits,
	}
}

// TestConnModel_LosesNothing visits all interleavings of what may happen to a
// connection, of up to three kinds beside its bytes and their end: one owner at
// most, one leader, nothing left to do when all is still, no spinning, and one
// end.
func TestConnModel_LosesNothing(t *testing.T) {
	states := 0
	all := outsideDeadline | outsideWake | outsidePause | outsideHold | outsideFailure | outsideClose | outsideShutdown | outsideDetach
	for outside := uint16(0); outside <= all; outside++ {
		if outside&^all != 0 || bits.OnesCount16(outside) > modelKinds {
			continue
		}
		for detached := 1; detached <= 2; detached++ {
			e := newConnModel(noConnMistake, detached)
			expectSound(t, e, modelStart(outside|outsideEnd))
			states += len(e.seen)
			if t.Failed() {
				return
			}
		}
	}
	t.Logf("%d states", states)
}

func TestConnModel_FindsMistakes(t *testing.T) {
	for _, test := range []struct {
		mistake connMistake
		outside uint16
		found   string
	}{
		{waitsPastDeadline, outsideDeadline, "nobody looks at the socket"},
		{waitsUnwatched, outsideEnd, "nobody looks at the socket"},
		{watchesOwned, outsideEnd, "it spins"},
		{pokesOwned, outsideWake, "there are two owners"},
		{forgetsWakes, outsideWake, "a Wake is lost"},
		{keepsUnread, outsideDetach, "something is left to do"},
		{keepsPoked, outsideDetach, "nobody looks at the socket"},
		{forgetsFull, outsideDetach, "something is left to do"},
		{leavesReplies, outsideDetach, "replies are left"},
		{lingersUnflushed, outsideDetach | outsideFailure, "replies are lost"},
		{seizesWhatever, outsideWake, "there are two owners"},
	} {
		detached := 2
		if test.mistake == forgetsFull {
			detached = 1
		}
		expectFound(t, newConnModel(test.mistake, detached), modelStart(test.outside), test.found)
	}
}
