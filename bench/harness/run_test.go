//go:build linux

package harness

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/bench/machine"
)

// fakeSuite is a suite of programs that are this test program. See playFake.
func fakeSuite(t *testing.T, kinds ...string) (Suite, Options) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	suite := Suite{Name: "fakes", Deciding: Free}
	for _, kind := range kinds {
		program := Program{Module: "bench", Package: fakePrefix + kind, Contestants: []string{kind}}
		if kind == "good" {
			program.Contestants = append(program.Contestants, "gone")
		}
		if err := os.Symlink(self, filepath.Join(folder, program.binary())); err != nil {
			t.Fatal(err)
		}
		suite.Programs = append(suite.Programs, program)
	}
	settings := DefaultSettings(false)
	settings.Rounds, settings.WarmUp, settings.Duration = 3, 0, time.Millisecond
	return suite, Options{
		Settings: settings, Placement: Free, Binaries: folder, Network: machine.Network{Isolated: true},
		Progress: io.Discard, Log: io.Discard,
	}
}

// syncBuffer is a buffer that several programs may write to.
type syncBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

func TestRun_ComparesWhoIsThere(t *testing.T) {
	suite, options := fakeSuite(t, "good", "slow")
	suite.Cases = []Case{{Name: "a", Pairs: append(Against("good", "slow"), Against("gone", "slow")...)}, {Name: "b", Pairs: Against("gone", "slow")}}
	var log syncBuffer
	options.Log = &log
	results, err := Run(t.Context(), suite, options)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"RATIO fakes/a calls_per_s good/slow 2.000",
		"RATIO fakes/a p99 good/slow 1.000",
		"VALUE fakes/a calls_per_s good 100",
		"VALUE fakes/a cpu_ns slow 50",
		"VALUE fakes/b calls_per_s slow 50",
	} {
		if !slices.Contains(results.Lines, want) {
			t.Errorf("no line %q in\n%s", want, strings.Join(results.Lines, "\n"))
		}
	}
	if strings.Contains(strings.Join(results.Lines, "\n"), "gone") {
		t.Errorf("figures of a contestant that is not there:\n%s", strings.Join(results.Lines, "\n"))
	}
	// Three rounds of two closed loops and of two open ones.
	if runs := len(results.Cases[0].Runs); runs != 12 {
		t.Errorf("%d runs, want 12", runs)
	}
	if err := results.validate(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "a library says hello") {
		t.Errorf("what a server prints is not in the log: %q", log.String())
	}
}

// A suite may have one client for all, and cases that tell it more.
func TestRun_UsesTheClientOfTheSuite(t *testing.T) {
	suite, options := fakeSuite(t, "good", "client")
	suite.Programs, suite.Client = suite.Programs[:1], suite.Programs[1]
	suite.Cases = []Case{{Name: "a", Pairs: Against("good", "good"), Load: []string{"-bytes", "128"}}}
	results, err := Run(t.Context(), suite, options)
	if err != nil {
		t.Fatal(err)
	}
	if want := "VALUE fakes/a calls_per_s good 150"; !slices.Contains(results.Lines, want) {
		t.Errorf("no line %q in\n%s", want, strings.Join(results.Lines, "\n"))
	}
}

// With overload, both get more than either can do; that none succeeds is a figure.
func TestRun_OffersMoreThanCanBeDone(t *testing.T) {
	suite, options := fakeSuite(t, "good", "refuses")
	suite.Cases = []Case{{Name: "a", Pairs: Against("good", "refuses"), Kind: Overload, Share: 2}}
	results, err := Run(t.Context(), suite, options)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"VALUE fakes/a calls_per_s good 100", "VALUE fakes/a@capacity calls_per_s good 100",
		"VALUE fakes/a calls_per_s refuses 0", "VALUE fakes/a@refused calls_per_s refuses 45",
		"VALUE fakes/a@capacity calls_per_s refuses 50", "VALUE fakes/a@refused p99 refuses 3",
		"VALUE fakes/a p99 good 30",
	} {
		if !slices.Contains(results.Lines, want) {
			t.Errorf("no line %q in\n%s", want, strings.Join(results.Lines, "\n"))
		}
	}
	if err := results.validate(); err != nil {
		t.Error(err)
	}
	state := caseRun{runner: &runner{options: options}, Case: suite.Cases[0]}
	if got := state.rate(100, 50); got != 200 {
		t.Errorf("%v calls a second are offered, want twice what the faster can do", got)
	}
	state.Case = Case{}
	if got := state.rate(100, 50); got != 35 {
		t.Errorf("%v calls a second are offered, want 70 %% of what the slower can do", got)
	}
	var out bytes.Buffer
	if err := results.Print(&out); err != nil || !strings.Contains(out.String(), "refused/s") {
		t.Errorf("%v, the table does not tell about refused calls:\n%s", err, out.String())
	}
}

// Where client and server are one process there is no other, and nobody to be
// compared with.
func TestRun_PlaysLocalCases(t *testing.T) {
	suite, options := fakeSuite(t, "alone")
	suite.Cases = []Case{{Name: "a", Pairs: Against("alone", "alone"), Local: true, Open: OpenNever}}
	results, err := Run(t.Context(), suite, options)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"VALUE fakes/a calls_per_s alone 200", "VALUE fakes/a cpu_ns alone 12"}
	if !slices.Equal(results.Lines, want) {
		t.Errorf("lines\n%s\nwant\n%s", strings.Join(results.Lines, "\n"), strings.Join(want, "\n"))
	}
}

// Operations that are repeated need no server and no client, and are measured in
// turns as calls are, in one placement.
func TestRun_RepeatsOperations(t *testing.T) {
	suite, options := fakeSuite(t, "good", "slow")
	suite.Deciding, options.Placement = Free, ""
	suite.Cases = []Case{{Name: "a", Pairs: Against("good", "slow"), Repeats: true, Published: map[string]string{"good": "240 ns"}}}
	results, err := Run(t.Context(), suite, options)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"RATIO fakes/a ns_op good/slow 0.500", "RATIO fakes/a allocs good/slow 1.000", "RATIO fakes/a bytes good/slow 1.000",
		"VALUE fakes/a ns_op good 250.0", "VALUE fakes/a allocs good 0.500", "VALUE fakes/a bytes good 16.0",
		"VALUE fakes/a ns_op slow 500.0", "VALUE fakes/a allocs slow 0.500", "VALUE fakes/a bytes slow 16.0",
	}
	if !slices.Equal(results.Lines, want) {
		t.Errorf("lines\n%s\nwant\n%s", strings.Join(results.Lines, "\n"), strings.Join(want, "\n"))
	}
	if len(results.Cases) != 1 || len(results.Cases[0].Runs) != 6 {
		t.Fatalf("%+v, want one case with three rounds of two contestants", results.Cases)
	}
	first := func(round int) string { return results.Cases[0].Runs[2*round].Contestant }
	if first(0) == first(1) || first(0) != first(2) {
		t.Errorf("%s, %s and %s began the rounds, want turns", first(0), first(1), first(2))
	}
	if results.Cases[0].Published["good"] != "240 ns" {
		t.Errorf("published figures %v", results.Cases[0].Published)
	}
	if err := results.validate(); err != nil {
		t.Error(err)
	}
}

func TestRun_LeavesOutWhoRepeatsNothing(t *testing.T) {
	for kind, complaint := range map[string]string{"idle": "calls where operations were asked for", "crash": "ended without a result"} {
		suite, options := fakeSuite(t, "good", kind)
		suite.Cases = []Case{{Name: "a", Pairs: Against("good", kind), Repeats: true}}
		results, err := Run(t.Context(), suite, options)
		if err == nil || !strings.Contains(err.Error(), complaint) || !strings.Contains(err.Error(), kind+" is left out") {
			t.Errorf("%s: %v, want an error that says %q", kind, err, complaint)
		}
		if results == nil || !slices.Contains(results.Lines, "VALUE fakes/a ns_op good 250.0") {
			t.Errorf("%s: the other contestant's figures are missing", kind)
		}
	}
}

func TestRun_MakesOpenLoopsWhereTheyAreWanted(t *testing.T) {
	for _, c := range []struct {
		open  OpenLoops
		quick bool
		want  int
	}{
		{OpenAlways, false, 6}, {OpenAlways, true, 6},
		{OpenUnlessQuick, false, 6}, {OpenUnlessQuick, true, 0},
		{OpenNever, false, 0}, {OpenNever, true, 0},
	} {
		suite, options := fakeSuite(t, "good")
		options.Settings.Quick = c.quick
		pairs := Against("good", "good")
		suite.Cases = []Case{{Name: "a", Pairs: pairs, Quick: pairs, Open: c.open}}
		results, err := Run(t.Context(), suite, options)
		if err != nil {
			t.Fatal(err)
		}
		open := 0
		for _, run := range results.Cases[0].Runs {
			if run.Pair != nil {
				open++
			}
		}
		if open != c.want {
			t.Errorf("choice %d, quick %v: %d open loops in three rounds, want %d", c.open, c.quick, open, c.want)
		}
	}
}

// A contestant that fails is named and left out; the others' figures stay.
func TestRun_LeavesOutWhoFails(t *testing.T) {
	for kind, complaint := range map[string]string{
		"deaf":    "is not ready",
		"garbled": "is not ready",
		"crash":   "ended without a result",
		"liar":    "7 calls failed: the reply differs from the request",
		"idle":    "no call finished",
		"flood":   "reading its output",
	} {
		t.Run(kind, func(t *testing.T) {
			suite, options := fakeSuite(t, "good", kind)
			suite.Cases = []Case{{Name: "a", Pairs: Against("good", kind)}}
			results, err := Run(t.Context(), suite, options)
			if err == nil || !strings.Contains(err.Error(), complaint) || !strings.Contains(err.Error(), "fakes/a: "+kind+" is left out") {
				t.Fatalf("error %v, want one that says %q", err, complaint)
			}
			if !slices.Contains(results.Lines, "VALUE fakes/a calls_per_s good 100") {
				t.Errorf("the other contestant's figures are missing:\n%s", strings.Join(results.Lines, "\n"))
			}
			for _, line := range results.Lines {
				if strings.Contains(line, kind) {
					t.Errorf("%q comes from a contestant that failed", line)
				}
			}
			if len(results.Warnings) == 0 || !strings.Contains(strings.Join(results.Warnings, "\n"), kind) {
				t.Errorf("warnings %q do not tell", results.Warnings)
			}
			if err := results.validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRun_ContestantsTakeTurns within one window, where the case is about calls, and without
// open loops. If one fails, the figures of the other are there once.
func TestRun_ContestantsTakeTurns(t *testing.T) {
	for _, second := range []string{"second", "liar", "crash"} {
		suite, options := fakeSuite(t, "first", second, "good", "alone")
		options.Settings.Duration, options.Settings.Slice = 20*time.Millisecond, 10*time.Millisecond
		suite.Cases = []Case{{Name: "a", Pairs: Against("first", second)}, {Name: "b", Pairs: Against("good", "good"), Repeats: true}, {Name: "c", Pairs: Against("alone", "alone"), Local: true, Open: OpenNever}}
		results, err := Run(t.Context(), suite, options)
		if (err != nil) != (second != "second") {
			t.Fatalf("%s: %v", second, err)
		}
		for _, want := range []string{"VALUE fakes/a calls_per_s first 50", "VALUE fakes/b ns_op good 250.0", "VALUE fakes/c calls_per_s alone 200"} {
			if !slices.Contains(results.Lines, want) {
				t.Errorf("%s: no line %q in\n%s", second, want, strings.Join(results.Lines, "\n"))
			}
		}
		firsts := 0
		for _, run := range results.Cases[0].Runs {
			if run.Contestant == "first" && run.Failed == 0 {
				firsts++
			}
		}
		if firsts != 3 {
			t.Errorf("%s: %d runs of its partner, want one for each of 3 rounds", second, firsts)
		}
		if err := results.validate(); err != nil {
			t.Error(err)
		}
	}
}

func TestRun_RefusesWrongOptions(t *testing.T) {
	for name, change := range map[string]func(*Suite, *Options){
		"unknown case": func(_ *Suite, o *Options) { o.Only = []string{"b"} },
		"no rounds":    func(_ *Suite, o *Options) { o.Settings.Rounds = 0 },
		"short turns":  func(_ *Suite, o *Options) { o.Settings.Duration, o.Settings.Slice = time.Second, time.Millisecond },
		"long turns":   func(_ *Suite, o *Options) { o.Settings.Slice = time.Second },
		"turns of one client": func(s *Suite, o *Options) {
			o.Settings.Duration, o.Settings.Slice, s.Client.Package = time.Second, 10*time.Millisecond, "client"
		},
		"no programs":        func(_ *Suite, o *Options) { o.Binaries = filepath.Join(o.Binaries, "none") },
		"unknown contestant": func(s *Suite, _ *Options) { s.Programs[0].Contestants = []string{"other"} },
	} {
		suite, options := fakeSuite(t, "good")
		suite.Cases = []Case{{Name: "a", Pairs: Against("good", "good")}}
		change(&suite, &options)
		if results, err := Run(t.Context(), suite, options); err == nil {
			t.Errorf("%s: no error, got %+v", name, results)
		}
	}
}

func TestRun_SaysThatNothingWasRun(t *testing.T) {
	suite, options := fakeSuite(t, "good")
	suite.Cases = []Case{{Name: "a", Pairs: Against("gone", "gone")}}
	if _, err := Run(t.Context(), suite, options); err == nil {
		t.Error("no error although nobody was there")
	}
}

func TestRun_EndsWithItsContext(t *testing.T) {
	suite, options := fakeSuite(t, "good", "slow")
	suite.Cases = []Case{{Name: "a", Pairs: Against("good", "slow")}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, suite, options); err == nil {
		t.Error("no error although the context had ended")
	}
}

// A contestant may have a program for what it repeats and another for calls. Fakes that
// repeat say 250 ns or 500 ns, and those that are called answer 200 calls or 100.
func TestRun_ChoosesTheProgramByTheKindOfACase(t *testing.T) {
	suite, options := fakeSuite(t, "good", "slow")
	suite.Programs[0].Plays, suite.Programs[1].Plays = PlaysOperations, PlaysCalls
	for i := range suite.Programs {
		suite.Programs[i].Contestants = []string{"gone"}
	}
	missing := runner{suite: suite, options: options, log: io.Discard, progress: io.Discard, operations: newRoster(), calls: newRoster(), results: &Results{}}
	if err := missing.enlist(t.Context()); err != nil {
		t.Fatal(err)
	}
	for repeats, want := range map[bool]string{true: fakePrefix + "good", false: fakePrefix + "slow"} {
		here := missing.roster(repeats)
		if got := filepath.Base(here.binaries["gone"]); got != want || here.missing["gone"] == "" {
			t.Errorf("repeats %v: %s plays it, missing %v, want %s and a reason", repeats, got, here.missing, want)
		}
	}
	// Two programs for the same cases: nobody could say whose figures they are.
	suite.Programs[1].Plays = PlaysAll
	if _, err := Run(t.Context(), suite, options); err == nil || !strings.Contains(err.Error(), "both play the contestant") {
		t.Errorf("%v, want an error that names both programs", err)
	}
}

func TestRun_PlaysBothKindsInOneSuite(t *testing.T) {
	suite, options := fakeSuite(t, "good", "slow")
	suite.Programs[0].Plays, suite.Programs[0].Contestants = PlaysOperations, []string{"good"}
	suite.Programs[1].Plays = PlaysCalls
	suite.Cases = []Case{{Name: "a", Pairs: Against("good", "good"), Repeats: true}, {Name: "b", Pairs: Against("slow", "slow"), Open: OpenNever}}
	suite.AlsoAs = map[string]string{"slow": "snail"}
	results, err := Run(t.Context(), suite, options)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"VALUE fakes/a ns_op good 250.0", "VALUE fakes/b calls_per_s slow 50", "VALUE fakes/b calls_per_s snail 50"} {
		if !slices.Contains(results.Lines, want) {
			t.Errorf("no line %q in\n%s", want, strings.Join(results.Lines, "\n"))
		}
	}
	// Whoever plays only one kind is not there for the other.
	suite.Cases = []Case{{Name: "b", Pairs: Against("slow", "slow"), Repeats: true}}
	if _, err := Run(t.Context(), suite, options); err == nil || !strings.Contains(err.Error(), "no program knows") {
		t.Errorf("%v, want an error that says that there is no program", err)
	}
}

func TestSuite_PrintsSecondNamesInLines(t *testing.T) {
	suite := Suite{AlsoAs: map[string]string{"ours-view": "ours"}}
	got := suite.withSecondNames([]string{"RATIO s/c p99 ours-view/peer 0.500", "VALUE s/ours-view p99 peer 3", "VALUE s/c p99 ours-view 2"})
	want := []string{
		"RATIO s/c p99 ours-view/peer 0.500", "RATIO s/c p99 ours/peer 0.500", "VALUE s/ours-view p99 peer 3",
		"VALUE s/c p99 ours-view 2", "VALUE s/c p99 ours 2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("lines\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A case can have a placement of its own, which its name tells, and runs there once.
func TestRun_PlacesCasesWhereTheyBelong(t *testing.T) {
	suite, options := fakeSuite(t, "good")
	suite.Deciding, options.Placement = Pinned, ""
	suite.Cases = []Case{{Name: "a", Pairs: Against("good", "good"), Only: Free, DecidingOnly: true}}
	results, err := Run(t.Context(), suite, options)
	if err != nil {
		t.Skip(err) // Pinned needs two processors.
	}
	if len(results.Cases) != 1 || results.Cases[0].Name != "a@free" || results.Cases[0].Placement != Free {
		t.Errorf("%+v, want a@free once", results.Cases)
	}
}
