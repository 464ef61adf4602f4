package eventloop

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// combineView is what can be seen of a connection, and of its model.
type combineView struct {
	units       [modelPieces]uint8
	results     [modelPieces]byte // 's' for success, 'f' for failure
	does        holderStep        // holderInCall, holderWaits or holderNone
	pending     int
	shut        bool
	shutWrite   bool
	made        bool
	writing     bool
	spare       bool
	ended       bool
	left, turns int
}

// view is what the model shows when all is still; turns is up to the replay.
func (s *combineState) view(turns int) combineView {
	v := combineView{
		units: s.units, does: s.does, shut: s.shut, shutWrite: s.shutWrite, made: s.made, writing: s.writing,
		spare: s.spare, ended: s.ended, left: s.left.length() * pieceUnits, turns: turns,
	}
	if s.does == holderInCall {
		v.pending = s.current.length() * pieceUnits
		if s.half {
			v.pending--
		}
	}
	for p := range uint8(modelPieces) {
		switch {
		case s.succeeded>>p&1 != 0:
			v.results[p] = 's'
		case p&1 < s.next[p/2]:
			v.results[p] = 'f'
		}
	}
	return v
}

// waiting is who waits for the token.
func (s *combineState) waiting() (who uint8) {
	for writer := range modelWriters {
		if s.at[writer] == writerLocks {
			who |= 1 << writer
		}
	}
	if s.closesWrite {
		who |= 1 << modelWriters
	}
	return who
}

// combineReplay does with a connection what the model does.
type combineReplay struct {
	t       *testing.T
	conn    *Conn
	socket  *scriptedSocket
	calls   sync.WaitGroup
	turns   int
	history []string

	mu      sync.Mutex
	results [modelPieces]byte
	// closing counts calls of CloseWrite that have not returned.
	closing int
}

// view is what the connection shows now. Its caller says how often somebody must
// have waited for the token.
func (r *combineReplay) view() combineView {
	s := r.socket
	s.mu.Lock()
	v := combineView{shut: s.shut, shutWrite: s.shutWrite, pending: s.pending, turns: s.turns}
	switch {
	case s.inCall:
		v.does = holderInCall
	case s.waiting:
		v.does = holderWaits
	}
	for _, unit := range s.wire {
		v.units[unit/pieceUnits]++
	}
	s.mu.Unlock()
	r.mu.Lock()
	v.results = r.results
	r.mu.Unlock()
	v.spare = true
	if c := r.conn.outbound.combined.Load(); c != nil {
		c.mu.Lock()
		v.made, v.writing, v.spare, v.ended, v.left = true, c.writing, c.spare != nil, c.ended != nil, c.left.Len()
		c.mu.Unlock()
	}
	return v
}

// expect waits until the connection shows what the model does.
func (r *combineReplay) expect(s *combineState) {
	r.t.Helper()
	want, got := s.view(r.turns), r.view()
	for begin := time.Now(); got != want || !r.returned(s) || s.holders == 0 && !r.free(); got = r.view() {
		if time.Since(begin) > 10*time.Second {
			r.t.Fatalf("after %s\n the code shows %+v\nthe model shows %+v", strings.Join(r.history, " / "), got, want)
		}
		runtime.Gosched()
	}
}

// returned reports whether CloseWrite has, if it has in the model: what it does cannot
// always be seen, and while it has the token others would wait.
func (r *combineReplay) returned(s *combineState) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return s.closesWrite || r.closing == 0
}

// free reports whether nobody has the token: who gave it back last may still be on
// its way.
func (r *combineReplay) free() bool {
	if !r.conn.outbound.tryLock() {
		return false
	}
	r.conn.outbound.unlock()
	return true
}

// does lets one thing happen to the connection.
func (r *combineReplay) does(name string, s *combineState) {
	r.t.Helper()
	r.history = append(r.history, name)
	change := func(what func()) { r.socket.change(what) }
	var err error
	switch name {
	case "Close":
		err = r.conn.Close()
	case "Abort":
		err = r.conn.Abort()
	case "CloseWrite":
		r.mu.Lock()
		r.closing++
		r.mu.Unlock()
		r.calls.Go(func() {
			_ = r.conn.CloseWrite() // it may be closed
			r.mu.Lock()
			defer r.mu.Unlock()
			r.closing--
		})
	case "the peer resets":
		change(func() { r.socket.reset = true })
	case "the deadline passes":
		err = r.conn.SetWriteDeadline(time.Unix(1, 0))
	case "the deadline is lifted":
		err = r.conn.SetWriteDeadline(time.Time{})
	case "LingerTimeout passes":
		change(func() { r.socket.expired = true })
	case "the socket has room":
		change(func() { r.socket.full = false })
	case "the kernel takes all", "the kernel takes a part", "the kernel takes nothing":
		change(func() { r.socket.does = name })
	default:
		p := s.own(name[0] - 'A')
		r.calls.Go(func() { r.write(p) })
	}
	if err != nil {
		r.t.Fatalf("%s: %v", strings.Join(r.history, " / "), err)
	}
}

func (r *combineReplay) write(p uint8) {
	n, err := r.conn.WriteBuffers([][]byte{{2 * p}, {2*p + 1}})
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.results[p] = 's'; err != nil || n != pieceUnits {
		r.results[p] = 'f'
	}
}

// finish ends what is still going on, and looks at what is left of it.
func (r *combineReplay) finish() {
	r.socket.change(func() { r.socket.reset = true })
	r.calls.Wait()
	if r.t.Failed() {
		return
	}
	open := byte(0)
	for i, unit := range r.socket.wire {
		if unit%pieceUnits == 1 && (open == 0 || r.socket.wire[i-1] != unit-1) || unit%pieceUnits == 0 && open != 0 {
			r.t.Fatalf("%s\na piece is torn: % x", strings.Join(r.history, " / "), r.socket.wire)
		}
		open = 1 - unit%pieceUnits
	}
	if r.conn.drained != nil {
		<-r.conn.drained
	}
	if n := r.conn.listener.pool.Outstanding(); n != 0 {
		r.t.Fatalf("%s\n%d buffers are not given back", strings.Join(r.history, " / "), n)
	}
}

// scripted tells whether a step is one that a replay decides about.
func scripted(name string) bool {
	switch name {
	case "Close", "Abort", "CloseWrite", "the peer resets", "the deadline passes", "the deadline is lifted",
		"LingerTimeout passes", "the socket has room",
		"the kernel takes all", "the kernel takes a part", "the kernel takes nothing":
		return true
	default:
		return strings.HasSuffix(name, " writes")
	}
}

// settle follows the steps that are not scripted, and notes them in steps. It
// returns false if it depends on their order what can be seen in the end.
func settle(m *combineModel, s combineState, steps map[string]bool) (combineState, bool) {
	seen := map[combineState]bool{s: true}
	var still []combineState
	for queue := []combineState{s}; len(queue) > 0; queue = queue[1:] {
		moves := false
		for _, next := range m.steps(queue[0]) {
			if scripted(next.name) {
				continue
			}
			steps[next.name] = true
			if moves = true; !seen[next.to] {
				seen[next.to] = true
				queue = append(queue, next.to)
			}
		}
		if !moves {
			still = append(still, queue[0])
		}
	}
	for _, other := range still[1:] {
		if other != still[0] {
			return s, false
		}
	}
	return still[0], true
}

// walk replays a walk through the model that follows a script, and then random. It
// adds what the model did to steps.
func (r *combineReplay) walk(m *combineModel, script []string, random *rand.Rand, steps map[string]int) {
	const patient = 20 // so many steps on, the kernel takes something each time
	s := combineStart(combineClose | uint8(random.Uint32()&random.Uint32())&(combineExtend-1))
	for step := 0; ; step++ {
		type choice struct {
			name  string
			to    combineState
			steps map[string]bool
		}
		var choices []choice
		if step == len(script) {
			script = nil
		}
		for _, next := range m.steps(s) {
			did := map[string]bool{next.name: true}
			to, sure := settle(m, next.to, did)
			waiting := to.waiting()
			// Who of two that wait has the next turn is up to the mutex.
			if !sure || waiting&(waiting-1) != 0 || step > patient && next.name == "the kernel takes nothing" ||
				script != nil && next.name != script[step] {
				continue
			}
			choices = append(choices, choice{next.name, to, did})
			if next.name == "the kernel takes all" || strings.HasSuffix(next.name, " writes") {
				// Else most walks end before there is anything to combine.
				choices = append(choices, slices.Repeat(choices[len(choices)-1:], 5)...)
			}
		}
		if len(choices) == 0 {
			if s.finished = s.finished || !s.closed; m.check(s, true) != "" {
				r.t.Fatalf("nothing can be replayed after %s", strings.Join(r.history, " / "))
			}
			return
		}
		chosen := choices[random.IntN(len(choices))]
		if came := chosen.to.waiting() &^ s.waiting(); came != 0 {
			r.turns++
		}
		r.does(chosen.name, &s)
		s = chosen.to
		r.expect(&s)
		for name := range chosen.steps {
			steps[name]++
		}
	}
}

// TestCombineModel_IsWhatTheCodeDoes replays walks through the model with a socket
// whose kernel follows the same script.
func TestCombineModel_IsWhatTheCodeDoes(t *testing.T) {
	l, _ := unserved(t, Config{WriteStallTimeout: -1})
	steps := map[string]int{}
	replay := func(seed uint64, script ...string) {
		r := &combineReplay{t: t}
		r.conn, r.socket = scriptedConn(l)
		m := &combineModel{pieces: [modelWriters]uint8{2, 2, 2}, room: modelPieces, rounds: combinedRounds}
		defer r.finish()
		r.walk(m, script, rand.New(rand.NewPCG(seed, 0)), steps)
	}
	const all = "the kernel takes all"
	replay(0, "A writes", "B writes", all, "C writes", all, "B writes", all, "C writes", all, all)
	for seed := range uint64(300) {
		replay(seed)
	}
	for _, step := range []string{
		"A sees that it is broken", "A has closed", "CloseWrite has its turn", "LingerTimeout passes",
		"the kernel fails", "the kernel takes a part", "the kernel takes nothing", "the socket has room",
		"the wait ends with the deadline", "the wait ends with the socket", "the wait ends with a reset",
		"written", "fail", "a goroutine writes the rest", "ended is closed",
	} {
		if steps[step] == 0 {
			t.Errorf("no walk has the step %q", step)
		}
	}
}
