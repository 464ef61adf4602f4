// Package harness runs a suite: contestants in processes of their own, taking
// turns, and turns what they report into medians and ratios.
package harness

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Suite is what a package of the benchmark module says about itself.
type Suite struct {
	Name     string
	Programs []Program
	// Client makes the calls of all contestants. Its Package is empty if each
	// contestant's program brings its own.
	Client Program
	Cases  []Case
	// Deciding is the placement that a plain case name stands for.
	Deciding Placement
	// QuickWindow is how long a window of a quick run is, where that run would
	// take more than five minutes with the usual ones; else 0.
	QuickWindow time.Duration
	// Notes finds out what else belongs to the results, as lines of text. It may
	// be nil. root is the root of the repository.
	Notes func(ctx context.Context, root string) ([]string, error)
	// AlsoAs are second names of contestants: their lines are printed once more
	// under them.
	AlsoAs map[string]string
}

// Program is built from a package of a module, and knows contestants.
type Program struct {
	// Module is the folder of the module, relative to the root of the
	// repository; Package is relative to the module, and is a Go package or one
	// file in C.
	Module, Package string
	Contestants     []string
	// Root is the root of the tree that it is built from, empty for that of the run.
	// See Suite.Before.
	Root string
	// Plays is for contestants with two programs: which of the cases this one plays.
	Plays Plays
}

// Plays says which cases a program plays.
type Plays uint8

// The choices.
const (
	PlaysAll Plays = iota
	// PlaysOperations is for a program that plays the cases that repeat.
	PlaysOperations
	// PlaysCalls is for one that plays the others.
	PlaysCalls
)

// plays tells whether the program plays cases that repeat, or the others.
func (p Program) plays(repeats bool) bool {
	return p.Plays == PlaysAll || repeats == (p.Plays == PlaysOperations)
}

// Case compares contestants in one situation.
type Case struct {
	Name string
	// Pairs are the comparisons, ours first. Contestants take part if they stand
	// in one.
	Pairs []Pair
	// Quick are those of the pairs that run in a quick run.
	Quick []Pair
	// Open says when open loops follow the closed ones.
	Open OpenLoops
	// Serve and Load are what servers and clients are told beside the name of the
	// case.
	Serve, Load []string
	// Certificate tells that server and client need one for TLS: the name of a file
	// that holds it, as contestant.Played says.
	Certificate bool
	// Kind is what it is about.
	Kind Kind
	// Share is how many times the faster contestant's peak is offered with Overload.
	Share float64
	// Local tells that the client's process is the server too: there is no other.
	Local bool
	// Repeats tells that contestants repeat an operation by themselves: one
	// process, where the server would be, without calls.
	Repeats bool
	// DecidingOnly is for cases that run in the deciding placement only, unless
	// another one is asked for. Those that repeat are such cases.
	DecidingOnly bool
	// Only is the placement of a case that has one of its own, unless another one is asked
	// for. It is for cases that run once: those that repeat, and DecidingOnly.
	Only Placement
	// Published are figures by contestant that somebody else has published for
	// the same thing, as texts: a column of the table.
	Published map[string]string
}

// Kind says which figures of a case mean what.
type Kind string

// The kinds. The zero Kind is about calls.
const (
	// Idle is about connections that are silent: latencies are those of all calls
	// of a closed loop, which are made at the same moment.
	Idle Kind = "idle"
	// Overload offers more than can be done: figures are those of the open loops,
	// also for calls that were refused. Closed loops find out what can be done.
	Overload Kind = "overload"
	// Meanwhile is about an operation that is repeated while calls are made: latencies
	// are those of the calls that had to do with it.
	Meanwhile Kind = "meanwhile"
)

// OpenLoops says when a case has open loops.
type OpenLoops uint8

// The choices.
const (
	OpenAlways OpenLoops = iota
	// OpenUnlessQuick is for cases of which no floor names a latency.
	OpenUnlessQuick
	// OpenNever is for cases that are about something other than calls.
	OpenNever
)

// wanted tells whether there are open loops in a run of that kind.
func (o OpenLoops) wanted(quick bool) bool {
	return o == OpenAlways || o == OpenUnlessQuick && !quick
}

// Pair is one comparison.
type Pair struct {
	Ours string `json:"ours"`
	Peer string `json:"peer"`
}

// Against returns the pairs of one contestant with several peers.
func Against(ours string, peers ...string) []Pair {
	pairs := make([]Pair, len(peers))
	for i, peer := range peers {
		pairs[i] = Pair{ours, peer}
	}
	return pairs
}

// Placement is where server and client run.
type Placement string

// The placements.
const (
	// Pinned binds the server to one processor and the client to another, with
	// one of Go's processors each.
	Pinned Placement = "pinned"
	// Free leaves both to the scheduler.
	Free Placement = "free"
)

// Suffixed returns the name of a case in a placement: the deciding one has no
// suffix.
func (s Suite) Suffixed(name string, placement Placement) string {
	if placement == s.Deciding {
		return name
	}
	return name + "@" + string(placement)
}

// placements returns the deciding placement and, in a full run, the other.
func (s Suite) placements(quick bool) []Placement {
	switch {
	case quick:
		return []Placement{s.Deciding}
	case s.Deciding == Pinned:
		return []Placement{Pinned, Free}
	default:
		return []Placement{Free, Pinned}
	}
}

// takesTurns reports whether contestants make the calls of a case in turns within one window.
func (c Case) takesTurns(settings Settings) bool {
	return settings.Slice > 0 && c.Kind == "" && !c.Repeats && !c.Local
}

// Settings are how a suite is run. They stand in the result.
type Settings struct {
	Quick    bool          `json:"quick"`
	Rounds   int           `json:"rounds"`
	WarmUp   time.Duration `json:"warm_up_ns"`
	Duration time.Duration `json:"duration_ns"`
	// Slice is how long turns are in which the contestants of a case make their calls within
	// one window that is all of theirs, so that everything that the machine does meets all;
	// 0 for windows one after the other. Open loops, and with them latencies, are left out.
	Slice time.Duration `json:"slice_ns,omitempty"`
	// LoadShare of the slower contestant's peak is offered in open loops.
	LoadShare float64 `json:"load_share"`
	// Seed decides who begins.
	Seed uint64 `json:"seed"`
}

// loadShare is the share of a peak that open loops offer: enough to queue, and
// far enough from the peak that the queue does not grow.
const loadShare = 0.7

// Limits of what a user can ask for, so that a slip does not run for days.
const (
	roundsMax   = 100
	durationMax = time.Minute
	// sliceMin is much longer than the calls in flight take, at the end of a turn.
	sliceMin = 10 * time.Millisecond
)

// DefaultSettings are those of a full run, or of a quick one.
func DefaultSettings(quick bool) Settings {
	return Settings{Quick: quick, Rounds: 5, WarmUp: 500 * time.Millisecond, Duration: 2 * time.Second, LoadShare: loadShare, Seed: 1}
}

// Settings are the default ones of a suite.
func (s Suite) Settings(quick bool) Settings {
	settings := DefaultSettings(quick)
	if quick && s.QuickWindow > 0 {
		settings.Duration = s.QuickWindow
	}
	return settings
}

// Validate returns what is wrong with the settings.
func (s Settings) Validate() error {
	switch {
	case s.Rounds < 1 || s.Rounds > roundsMax:
		return fmt.Errorf("%d rounds (limits 1 and %d)", s.Rounds, roundsMax)
	case s.Duration <= 0 || s.Duration > durationMax || s.WarmUp < 0 || s.WarmUp > durationMax:
		return fmt.Errorf("duration %v, warm-up %v (limit %v)", s.Duration, s.WarmUp, durationMax)
	case s.Slice != 0 && (s.Slice < sliceMin || s.Slice > s.Duration):
		return fmt.Errorf("turns of %v (limits %v and the length of a window, %v)", s.Slice, sliceMin, s.Duration)
	case !(s.LoadShare > 0 && s.LoadShare <= 1):
		return fmt.Errorf("load share %v (limits 0 and 1)", s.LoadShare)
	}
	return nil
}

// available drops the pairs of whoever is not there, and returns the
// contestants that remain, each once. Who has nobody left to be compared with
// still runs, for its own values.
func available(pairs []Pair, missing map[string]string) (left []Pair, contestants []string) {
	for _, pair := range pairs {
		for _, name := range []string{pair.Ours, pair.Peer} {
			if _, gone := missing[name]; !gone && !slices.Contains(contestants, name) {
				contestants = append(contestants, name)
			}
		}
		_, noOurs := missing[pair.Ours]
		_, noPeer := missing[pair.Peer]
		if !noOurs && !noPeer {
			left = append(left, pair)
		}
	}
	return left, contestants
}

// order returns the order in which n contestants take their turns in a round.
// The first round's is shuffled. Later ones begin one further each, so that
// everybody is first as often, and every other round runs backwards, so that
// nobody always runs behind the same neighbour.
func order(seed uint64, round, n int) []int {
	if n == 0 {
		return nil
	}
	base := rand.New(rand.NewPCG(seed, 0)).Perm(n)
	turn := make([]int, n)
	for i := range turn {
		turn[i] = base[(i+round)%n]
	}
	// Two contestants alternate by beginning in turn already.
	if n > 2 && round%2 == 1 {
		slices.Reverse(turn)
	}
	return turn
}
