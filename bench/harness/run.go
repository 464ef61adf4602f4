package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fulmar-rpc/fulmar/bench/contestant"
	"github.com/fulmar-rpc/fulmar/bench/machine"
)

// Options say what to run.
type Options struct {
	Settings Settings
	// Only are the names of the cases to run; empty means all. Placement is the
	// only one to run in; empty means those that the settings ask for.
	Only      []string
	Placement Placement
	// Binaries is the folder with the programs that Build has built.
	Binaries string
	Network  machine.Network
	// Commit is what is measured.
	Commit string
	// Progress is told how far it is, and Log what the programs print. Log is
	// used concurrently.
	Progress, Log io.Writer
}

// runner is a suite being run.
type runner struct {
	suite   Suite
	options Options
	// operations are the contestants of cases that repeat, and calls those of the others.
	operations, calls roster
	processors        [2]int
	progress          io.Writer
	log               io.Writer
	// certificate is the name of a file, empty if no case needs it.
	certificate string
	results     *Results
}

// roster is who is there for cases of one kind.
type roster struct {
	binaries map[string]string // by contestant
	missing  map[string]string // contestants that cannot take part, and why
}

func newRoster() roster {
	return roster{binaries: map[string]string{}, missing: map[string]string{}}
}

// roster returns who is there for cases that repeat, or for the others.
func (r *runner) roster(repeats bool) roster {
	if repeats {
		return r.operations
	}
	return r.calls
}

// busyLoad is the load average before the first run, and busyOthers the
// processors that others take in the median run, above which results are said
// not to be trusted. Less than that is the system's own housekeeping.
const (
	busyLoad   = 0.5
	busyOthers = 0.1
)

// movedFactor is how many times as far from each other the processors may be in one run as in
// another before results are said not to be trusted: they keep within a third while a virtual
// machine stays where it is.
const movedFactor = 2

// Run runs a suite. If a contestant fails, its figures are missing, the others'
// are there, and the error names it.
func Run(ctx context.Context, suite Suite, options Options) (*Results, error) {
	if err := options.Settings.Validate(); err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	if options.Settings.Slice > 0 && suite.Client.Package != "" {
		return nil, fmt.Errorf("suite %s: its client makes the calls of all contestants and takes no turns", suite.Name)
	}
	r := &runner{
		suite: suite, options: options, progress: options.Progress, log: options.Log,
		operations: newRoster(), calls: newRoster(),
		results: &Results{
			Format: resultsFormat, Suite: suite.Name, Date: time.Now().UTC().Truncate(time.Second), Commit: options.Commit,
			Machine: machine.Describe(), Network: options.Network, Settings: options.Settings,
		},
	}
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	var failures []error
	if slices.ContainsFunc(suite.Cases, func(c Case) bool { return c.Certificate }) {
		name, remove, err := certificateFile()
		if err != nil {
			return nil, fmt.Errorf("certificate: %w", err)
		}
		defer func() { _ = remove() }()
		r.certificate = name
	}
	for _, placement := range r.placements() {
		for _, c := range suite.Cases {
			if err := r.runCase(ctx, c, placement); err != nil {
				failures = append(failures, err)
			}
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
		}
	}
	if len(r.results.Cases) == 0 {
		failures = append(failures, errors.New("no case was run"))
	}
	r.results.LoadAfter, _ = machine.Load()
	if others := r.results.others(); others > busyOthers {
		r.results.Warnings = append(r.results.Warnings, fmt.Sprintf("others kept %.2f processors busy in the median run: repeat this on a quiet machine", others))
	}
	if shortest, longest := r.results.distances(); longest > movedFactor*shortest {
		r.results.Warnings = append(r.results.Warnings, fmt.Sprintf("the two processors were %v to %v apart: the host has moved them, so rounds do not compare with each other", shortest, longest))
	}
	for _, failure := range failures {
		r.results.Warnings = append(r.results.Warnings, oneLine(failure))
	}
	r.results.Lines = suite.withSecondNames(r.results.allLines())
	return r.results, errors.Join(failures...)
}

func (r *runner) warn(format string, arguments ...any) {
	warning := fmt.Sprintf(format, arguments...)
	r.results.Warnings = append(r.results.Warnings, warning)
	fmt.Fprintln(r.progress, "WARNING", warning)
}

func (r *runner) placements() []Placement {
	if r.options.Placement != "" {
		return []Placement{r.options.Placement}
	}
	return r.suite.placements(r.options.Settings.Quick)
}

// prepare asks the programs who is there, and looks at the machine.
func (r *runner) prepare(ctx context.Context) error {
	for _, name := range r.options.Only {
		if !slices.ContainsFunc(r.suite.Cases, func(c Case) bool { return c.Name == name }) {
			return fmt.Errorf("suite %s has no case %q", r.suite.Name, name)
		}
	}
	if err := r.enlist(ctx); err != nil {
		return err
	}
	if slices.Contains(r.placements(), Pinned) {
		server, client, err := machine.Pair()
		if err != nil {
			return fmt.Errorf("pinned placement: %w", err)
		}
		r.processors = [2]int{server, client}
	}
	if warning := r.options.Network.Warning; warning != "" {
		r.warn("%s: plain loopback, where other settings and other packets count", warning)
	}
	var err error
	if r.results.LoadBefore, err = machine.Load(); err == nil && r.results.LoadBefore > busyLoad {
		r.warn("the load average is %.2f before the first run: others may be computing", r.results.LoadBefore)
	}
	return nil
}

// enlist asks all programs which contestants they know.
func (r *runner) enlist(ctx context.Context) error {
	for _, program := range r.suite.Programs {
		binary := filepath.Join(r.options.Binaries, program.binary())
		infos, err := r.ask(ctx, binary)
		if err != nil {
			return err
		}
		for _, name := range program.Contestants {
			at := slices.IndexFunc(infos, func(i contestant.Info) bool { return i.Name == name })
			if at < 0 {
				return fmt.Errorf("%s does not know the contestant %q", binary, name)
			}
			infos[at].Name = program.name(name)
			name = infos[at].Name
			r.results.Contestants = append(r.results.Contestants, infos[at])
			reason := infos[at].Unavailable
			if reason != "" {
				fmt.Fprintf(r.progress, "%s: not available: %s\n", name, reason)
			}
			for _, repeats := range []bool{false, true} {
				if !program.plays(repeats) {
					continue
				}
				here := r.roster(repeats)
				if other, twice := here.binaries[name]; twice {
					return fmt.Errorf("%s and %s both play the contestant %q", other, binary, name)
				}
				here.binaries[name] = binary
				if reason != "" {
					here.missing[name] = reason
				}
			}
		}
	}
	return nil
}

// runCase runs a case in one placement: first the closed loops of all
// contestants, round by round, then the open loops of each comparison, at a
// load that both can carry.
func (r *runner) runCase(ctx context.Context, c Case, placement Placement) error {
	pairs := c.Pairs
	if r.options.Settings.Quick {
		pairs = c.Quick
	}
	if len(r.options.Only) > 0 && !slices.Contains(r.options.Only, c.Name) {
		return nil
	}
	if (c.Repeats || c.DecidingOnly) && placement != r.placements()[0] {
		return nil
	}
	if c.Only != "" && r.options.Placement == "" {
		placement = c.Only
	}
	pairs, contestants := available(pairs, r.roster(c.Repeats).missing)
	if len(contestants) == 0 {
		return nil
	}
	result := CaseResult{Name: r.suite.Suffixed(c.Name, placement), Placement: placement, Pairs: pairs, Kind: c.Kind, Published: c.Published}
	fmt.Fprintf(r.progress, "%s/%s: ", r.suite.Name, result.Name)
	begun := time.Now()
	state := caseRun{runner: r, Case: c, result: &result, dropped: map[string]error{}}
	for round := range r.options.Settings.Rounds {
		state.closed(ctx, round, contestants)
	}
	for round := range r.options.Settings.Rounds {
		if c.Open.wanted(r.options.Settings.Quick) && !c.Repeats && !c.takesTurns(r.options.Settings) {
			state.open(ctx, round)
		}
	}
	fmt.Fprintf(r.progress, " %.0f s\n", time.Since(begun).Seconds())
	r.results.Cases = append(r.results.Cases, result)
	var failures []error
	for _, name := range slices.Sorted(maps.Keys(state.dropped)) {
		failures = append(failures, fmt.Errorf("%s/%s: %s is left out: %w", r.suite.Name, result.Name, name, state.dropped[name]))
	}
	return errors.Join(failures...)
}

// caseRun is a case being run in one placement.
type caseRun struct {
	*runner
	Case
	result  *CaseResult
	dropped map[string]error // contestants that failed
}

// closed plays one round of closed loops.
func (c *caseRun) closed(ctx context.Context, round int, contestants []string) {
	var runs []Sample
	for turn, at := range order(c.options.Settings.Seed, round, len(contestants)) {
		runs = append(runs, Sample{Round: round, Turn: turn, Contestant: contestants[at]})
	}
	if c.takesTurns(c.options.Settings) {
		c.play(ctx, runs, 0)
		return
	}
	for i := range runs {
		c.play(ctx, runs[i:i+1], 0)
	}
}

// open plays one round of open loops: of every comparison, one contestant right
// behind the other.
func (c *caseRun) open(ctx context.Context, round int) {
	next := 0
	for _, at := range order(c.options.Settings.Seed, round, len(c.result.Pairs)) {
		pair := c.result.Pairs[at]
		rate := c.rate(c.peak(pair.Ours), c.peak(pair.Peer))
		both := []string{pair.Ours, pair.Peer}
		for _, side := range order(c.options.Settings.Seed, round, len(both)) {
			if c.dropped[pair.Ours] == nil && c.dropped[pair.Peer] == nil && rate > 0 {
				c.play(ctx, []Sample{{Round: round, Turn: next, Contestant: both[side], Pair: &pair}}, rate)
			}
			next++
		}
	}
}

// rate is what both contestants of a comparison are offered: what both can carry,
// or with Overload what neither can.
func (c *caseRun) rate(ours, peer float64) float64 {
	if c.Kind == Overload {
		return c.Share * max(ours, peer)
	}
	return c.options.Settings.LoadShare * min(ours, peer)
}

// peak returns the median throughput of a contestant's closed loops.
func (c *caseRun) peak(name string) float64 {
	return c.result.seriesFor(name, nil, metrics()[0]).median()
}

// attemptsMax is how often a run is tried. One that fails may have met a
// disturbance of the machine; two in a row have not.
const attemptsMax = 2

// play makes runs, which take turns if there are several, and keeps their figures. Whoever
// fails again is not run any more in this case: figures of a contestant that loses calls
// are worth nothing.
func (c *caseRun) play(ctx context.Context, runs []Sample, rate float64) {
	runs = slices.DeleteFunc(slices.Clone(runs), func(s Sample) bool { return c.dropped[s.Contestant] != nil })
	for attempt := 1; len(runs) > 0 && ctx.Err() == nil; attempt++ {
		failures := c.try(ctx, runs, rate, attempt == attemptsMax)
		if len(failures) == 0 {
			return
		}
		fmt.Fprint(c.progress, "!")
		for _, name := range slices.Sorted(maps.Keys(failures)) {
			err := failures[name]
			if attempt == attemptsMax {
				c.dropped[name] = fmt.Errorf("round %d: %w", runs[0].Round, err)
				continue
			}
			c.results.Warnings = append(c.results.Warnings, oneLine(fmt.Errorf("%s/%s: %s is tried again in round %d: %w",
				c.suite.Name, c.result.Name, name, runs[0].Round, err)))
		}
		if attempt == attemptsMax {
			return
		}
	}
}

// try makes runs, and returns what failed, by contestant. A failed run is kept as well, if
// there is a report; its figures do not count. The others are if none failed, or for good.
func (c *caseRun) try(ctx context.Context, runs []Sample, rate float64, forGood bool) (failures map[string]error) {
	var apart time.Duration
	if c.result.Placement == Pinned && !c.Repeats {
		// An error means that others have the processors, which Others shows.
		apart, _ = machine.Distance(c.runner.processors[0], c.runner.processors[1])
	}
	var turns []turn
	for i, run := range runs {
		asked := turn{contestant: run.Contestant, played: c.Case, placement: c.result.Placement, rate: rate, settings: c.options.Settings}
		if rate == 0 && c.takesTurns(c.options.Settings) {
			asked.index, asked.of = i, len(runs)
		}
		turns = append(turns, asked)
	}
	outcomes, others, err := c.runner.play(ctx, turns...)
	failures = map[string]error{}
	for i, run := range runs {
		if err != nil {
			failures[run.Contestant] = err
		} else if failed := cmp.Or(outcomes[i].err, c.wrong(outcomes[i].report, rate)); failed != nil {
			failures[run.Contestant] = failed
		}
	}
	for i, run := range runs {
		failed := failures[run.Contestant] != nil
		if err != nil || outcomes[i].err != nil || !failed && len(failures) > 0 && !forGood {
			continue
		}
		run.DistanceNS, run.Report, run.Others = apart.Nanoseconds(), outcomes[i].report, others
		c.result.Runs = append(c.result.Runs, run)
		fmt.Fprint(c.progress, ".")
	}
	return failures
}

// wrong returns what makes a run a failed one, or nil.
func (c *caseRun) wrong(report contestant.Report, rate float64) error {
	switch {
	case report.Failed > 0:
		return fmt.Errorf("%d calls failed: %s", report.Failed, report.Failure)
	case c.Repeats != (report.Operation != nil):
		return errors.New("it reported calls where operations were asked for, or the other way round")
	case report.Operation != nil:
		return nil
	case report.Calls == 0 && (report.Refused == 0 || rate == 0):
		return errors.New("no call finished within the window")
	}
	return nil
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
