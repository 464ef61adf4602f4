package eventloop

import (
	"fmt"
	"strings"
	"testing"
)

// transition is one step of a model.
type transition[S comparable] struct {
	name string
	to   S
	// outside: a step of the surroundings, which nobody may count on.
	outside bool
}

// explorer visits all states of a model.
type explorer[S comparable] struct {
	steps func(S) []transition[S]
	// check returns what is wrong in a state; idle says that only the
	// surroundings could go on.
	check func(s S, idle bool) string
	// acyclic: steps of the model's own must not lead back, that is, it must not
	// spin.
	acyclic bool

	seen  map[S]visit[S]
	found string
}

type visit[S comparable] struct {
	from S
	name string
	// depth is how many steps led here, at least; state says whether the search
	// for cycles is in it, or done with it.
	state uint8
}

// explore returns what it found, with the steps that lead there; "" if nothing.
func (e *explorer[S]) explore(start S) string {
	e.seen, e.found = map[S]visit[S]{start: {}}, ""
	for queue := []S{start}; len(queue) > 0; {
		s := queue[0]
		queue = queue[1:]
		idle := true
		for _, next := range e.steps(s) {
			idle = idle && next.outside
			if _, known := e.seen[next.to]; !known {
				e.seen[next.to] = visit[S]{from: s, name: next.name}
				queue = append(queue, next.to)
			}
		}
		if wrong := e.check(s, idle); wrong != "" {
			return e.trace(start, s, wrong)
		}
	}
	if e.acyclic {
		for s, v := range e.seen {
			if v.state == 0 && e.spins(s) {
				return e.trace(start, s, "it spins")
			}
		}
	}
	return ""
}

// spins reports whether steps of the model's own lead from a state to itself.
func (e *explorer[S]) spins(s S) bool {
	const inside, done = 1, 2
	v := e.seen[s]
	v.state = inside
	e.seen[s] = v
	for _, next := range e.steps(s) {
		if next.outside {
			continue
		}
		if state := e.seen[next.to].state; state == inside || state == 0 && e.spins(next.to) {
			return true
		}
	}
	v.state = done
	e.seen[s] = v
	return false
}

// trace tells how a state was reached.
func (e *explorer[S]) trace(start, s S, wrong string) string {
	var names []string
	for at := s; at != start; at = e.seen[at].from {
		names = append(names, e.seen[at].name)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s after", wrong)
	for i := len(names) - 1; i >= 0; i-- {
		fmt.Fprintf(&text, " / %s", names[i])
	}
	fmt.Fprintf(&text, "\nin %+v", s)
	return text.String()
}

// expectSound wants a model without mistakes, of more than a few states.
func expectSound[S comparable](t *testing.T, e *explorer[S], start S) {
	t.Helper()
	if found := e.explore(start); found != "" {
		t.Error(found)
	}
	if len(e.seen) < 100 {
		t.Errorf("the model has %d states only", len(e.seen))
	}
}

// expectFound wants that a model with a mistake in it is not taken for sound.
func expectFound[S comparable](t *testing.T, e *explorer[S], start S, what string) {
	t.Helper()
	if found := e.explore(start); !strings.HasPrefix(found, what) {
		t.Errorf("the mistake was not found: %q, want %q", found, what)
	}
}
