package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"time"
)

// scenario is one way in which things go wrong.
type scenario struct {
	id, name string
	// run lets it happen and returns what was seen. An error is about the scenario
	// itself, not about what was seen.
	run func(ctx context.Context, size size) (figures, error)
	// quick scenarios are part of make test.
	quick bool
	// missing says why there is none yet.
	missing string
}

// size says how much of a scenario runs.
type size struct {
	short bool
	// soak is how long S19 takes; 0 for a minute, or less if it is short.
	soak time.Duration
	// raced is this command, built with the race detector; empty if there is none.
	raced string
}

// of returns one of two numbers.
func (s size) of(short, long int) int {
	if s.short {
		return short
	}
	return long
}

// during returns one of two times.
func (s size) during(short, long time.Duration) time.Duration {
	if s.short {
		return short
	}
	return long
}

// figures are what a scenario has seen, in the order of the line that is printed.
type figures struct {
	text   string
	failed bool
	// late: a figure about time does not hold.
	late bool
	// undecided: one does not hold, but the machine had too much else to do.
	undecided bool
}

// note adds a figure without a limit.
func (f *figures) note(format string, arguments ...any) {
	if f.text != "" {
		f.text += ", "
	}
	f.text += fmt.Sprintf(format, arguments...)
}

// most adds a figure that may be at most so much.
func (f *figures) most(name string, got, limit float64, unit string) {
	f.note("%s %s%s (limit %s%s)", name, number(got), unit, number(limit), unit)
	f.failed = f.failed || !(got <= limit)
}

// least adds a figure that must be at least so much.
func (f *figures) least(name string, got, limit float64, unit string) {
	f.note("%s %s%s (at least %s%s)", name, number(got), unit, number(limit), unit)
	f.failed = f.failed || !(got >= limit)
}

// busyShare is how much of their processors others may take from the processes of a
// scenario until its times say more about them than about it.
const busyShare = 0.1

// unlessBusy adds a figure about time that add judges, or only tells it where others
// had more than busyShare of the processors: then the line says that nothing is
// decided.
func (f *figures) unlessBusy(taken float64, add func(*figures)) { f.unlessTaken(taken, busyShare, add) }

// unlessTaken is unlessBusy with another share.
func (f *figures) unlessTaken(taken, share float64, add func(*figures)) {
	judged := figures{}
	add(&judged)
	f.note("%s", judged.text)
	switch {
	case !judged.failed:
	case taken <= share:
		f.late = true
	default:
		f.note("others had the processors for %.0f %%", taken*100)
		f.undecided = true
	}
}

// mostUnlessBusy is most for times.
func (f *figures) mostUnlessBusy(name string, got, limit float64, unit string, taken float64) {
	f.unlessBusy(taken, func(f *figures) { f.most(name, got, limit, unit) })
}

// busyTail is busyShare for what the slowest hundredth of the calls decides: where others had
// more than a hundredth of the time, in pieces of 10 ms and more, those are the calls they hit.
const busyTail = 0.01

// tailUnlessBusy is mostUnlessBusy for a p99.
func (f *figures) tailUnlessBusy(name string, got, limit float64, unit string, taken float64) {
	f.unlessTaken(taken, busyTail, func(f *figures) { f.most(name, got, limit, unit) })
}

// number prints three digits, or all of a whole number.
func number(value float64) string {
	if value == float64(int64(value)) {
		return thousands(int64(value))
	}
	return fmt.Sprintf("%.4g", value)
}

func thousands(n int64) string {
	if n < 0 {
		return "-" + thousands(-n)
	}
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// scenarios are all of them, in the order of their numbers.
func scenarios() []scenario {
	return []scenario{
		{id: "S1", name: "splits", run: splits, quick: true},
		{id: "S2", name: "memory-bombs", run: bombs, quick: true},
		{id: "S3", name: "depth", run: depth, quick: true},
		{id: "S4", name: "slow-loris", run: slowLoris},
		{id: "S6", name: "slow-reader", run: slowReader},
		{id: "S7", name: "blackhole", run: blackhole, quick: true},
		{id: "S8", name: "loss", run: loss},
		{id: "S9", name: "resets", run: resets, quick: true},
		{id: "S10", name: "kills", run: kills, quick: true},
		// Not part of make test, for the time that its calls take.
		{id: "S11", name: "rolling-restart", run: rollingRestart},
		{id: "S12", name: "gray-failure", run: gray, quick: true},
		{id: "S13", name: "overload", run: overload},
		{id: "S14", name: "retry-storm", run: storm, quick: true},
		{id: "S15", name: "cancels", run: cancels, quick: true},
		{id: "S16", name: "descriptors", run: descriptors},
		{id: "S17", name: "disorder", run: disorder, quick: true},
		{id: "S18", name: "panics", run: panics, quick: true},
		{id: "S19", name: "soak", run: soak},
		{id: "S20", name: "abuse", run: abused, quick: true},
		{id: "S24", name: "suspended", run: suspended, quick: true},
		{id: "S25", name: "partition", run: partition, quick: true},
		{id: "S26", name: "tls", run: secure, quick: true},
		{id: "S27", name: "limits", run: atTheLimit},
		{id: "S28", name: "runtimes", run: runtimes},
		{id: "S30", name: "disk-full", run: diskFull, quick: true},
	}
}

// errFailed says that a figure does not hold.
var errFailed = errors.New("a figure does not hold")

// errBusy says that one may or may not hold.
var errBusy = errors.New("nothing can be said: other processes had the processors")

// perform runs one scenario and prints its line.
func perform(ctx context.Context, out io.Writer, s scenario, size size) error {
	if s.run == nil {
		fmt.Fprintf(out, "CHAOS %s %s: not built (%s)\n", s.id, s.name, s.missing)
		return nil
	}
	start := time.Now()
	seen, err := s.run(ctx, size)
	if err != nil {
		fmt.Fprintf(out, "CHAOS %s %s: %v FAILED\n", s.id, s.name, err)
		return fmt.Errorf("%s: %w", s.id, err)
	}
	verdict := "ok"
	switch {
	case seen.failed, seen.late && !size.short:
		verdict, err = "FAILED", fmt.Errorf("%s: %w", s.id, errFailed)
	case size.short && (seen.late || seen.undecided):
		// A test asserts no times: a noisy machine would fail it now and then.
		verdict = "ok but for times"
	case seen.undecided:
		verdict, err = "UNDECIDED (machine busy)", fmt.Errorf("%s: %w", s.id, errBusy)
	}
	fmt.Fprintf(out, "CHAOS %s %s: %s, %.1f s %s\n", s.id, s.name, seen.text, time.Since(start).Seconds(), verdict)
	return err
}

func command() error {
	run := flag.String("run", "", "only scenarios whose \"id name\" this regular expression matches")
	short := flag.Bool("short", false, "the versions that make test runs")
	soak := flag.Duration("soak", 0, "how long S19 takes, a minute by default")
	raced := flag.String("race", "", "this command, built with the race detector, for S28")
	flag.Parse()
	wanted, err := chosen(*run)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var failures []error
	for _, s := range wanted {
		if ctx.Err() != nil {
			failures = append(failures, fmt.Errorf("%s: %w", s.id, ctx.Err()))
			break
		}
		failures = append(failures, perform(ctx, os.Stdout, s, size{*short, *soak, *raced}))
	}
	return errors.Join(failures...)
}

// chosen returns the scenarios of which a regular expression matches the id, or the id
// and the name. That there is none is an error: who meant some would take it for "ok".
func chosen(expression string) (list []scenario, err error) {
	wanted, err := regexp.Compile(expression)
	if err != nil {
		return nil, err
	}
	for _, s := range scenarios() {
		if wanted.MatchString(s.id) || wanted.MatchString(s.id+" "+s.name) {
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no scenario has an id or a name that %q matches", expression)
	}
	return list, nil
}

func main() {
	if asRole() {
		return
	}
	if err := command(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
