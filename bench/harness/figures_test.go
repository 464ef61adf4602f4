package harness

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/bench/contestant"
	"github.com/fulmar-rpc/fulmar/bench/machine"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{3}, 3},
		{[]float64{9, 1, 5}, 5},
		{[]float64{4, 1, 2, 9}, 3},
	} {
		if got := median(c.values); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.values, got, c.want)
		}
	}
	if got := median(nil); !math.IsNaN(got) {
		t.Errorf("median of nothing is %v", got)
	}
}

// A machine that becomes slower from round to round changes every value and no
// ratio; and the median of ratios is not the ratio of medians.
func TestRatio_IsTakenWithinRounds(t *testing.T) {
	ours := series{0: 100, 1: 50, 2: 10}
	theirs := series{0: 50, 1: 25, 2: 5}
	if got := ratio(ours, theirs); got != 2 {
		t.Errorf("ratio %v, want 2", got)
	}
	ours, theirs = series{0: 1, 1: 10, 2: 100}, series{0: 1, 1: 100, 2: 10}
	if got := ratio(ours, theirs); got != 1 {
		t.Errorf("ratio %v, want 1", got)
	}
	// Only rounds that both have count.
	if got := ratio(series{0: 4, 1: 100}, series{0: 2, 2: 1}); got != 2 {
		t.Errorf("ratio %v, want 2", got)
	}
	if got := ratio(series{0: 1}, series{0: 0, 1: 3}); !math.IsNaN(got) {
		t.Errorf("ratio %v of rounds that cannot be compared", got)
	}
}

func TestSpread(t *testing.T) {
	low, high := series{0: 5, 1: 2, 2: 9}.spread()
	if low != 2 || high != 9 {
		t.Errorf("%v to %v, want 2 to 9", low, high)
	}
}

// sample is a run with plausible figures: factor 2 means twice as fast.
func sample(round int, who string, pair *Pair, factor float64) Sample {
	slow := func(nanoseconds float64) int64 { return int64(nanoseconds / factor) }
	report := contestant.Report{
		Calls: uint64(10_000 * factor), Seconds: 2,
		ServerCPU: 1e8, ClientCPU: 2e8, ServerPeak: 10e6, ClientPeak: 20e6,
		Latency: contestant.Latency{Count: 10_000, Mean: 100, P50: slow(1e5), P90: slow(2e5), P99: slow(4e5), P999: slow(8e5), Max: slow(9e5)},
	}
	if pair != nil {
		report.Rate, report.Due = 3500, 7000
	} else {
		server, client := 14/factor, 0.25
		report.ServerAllocations, report.ClientAllocations = &server, &client
	}
	return Sample{Round: round, Contestant: who, Pair: pair, Report: report}
}

// fixture is a complete file of results. ours is twice as fast in every round;
// the machine has become slower in the last one.
func fixture() *Results {
	pair := Pair{"ours", "peer"}
	c := CaseResult{Name: "echo", Placement: Pinned, Pairs: []Pair{pair, {"ours", "other"}}}
	for round, machine := range []float64{1, 1.1, 0.5} {
		c.Runs = append(c.Runs,
			sample(round, "ours", nil, 2*machine), sample(round, "peer", nil, machine), sample(round, "other", nil, machine),
			sample(round, "ours", &pair, 2*machine), sample(round, "peer", &pair, machine))
	}
	repeated := CaseResult{Name: "repeated", Placement: Pinned, Pairs: []Pair{pair}, Published: map[string]string{"ours": "270 ns"}}
	for round, machine := range []float64{1, 1.1, 0.5} {
		for _, who := range []struct {
			name      string
			operation contestant.Operation
		}{{"ours", contestant.Operation{Count: 5, Nanoseconds: 100 * machine}}, {"peer", contestant.Operation{Count: 5, Nanoseconds: 400 * machine, Allocations: 1.5, Bytes: 24}}} {
			repeated.Runs = append(repeated.Runs, Sample{Round: round, Contestant: who.name, Report: contestant.Report{Seconds: 2, ServerPeak: 3e6, CallBytes: 74, Operation: &who.operation}})
		}
	}
	settings := DefaultSettings(true)
	settings.Rounds = 3
	memory := CaseResult{Name: "memory", Placement: Pinned, Pairs: []Pair{pair}}
	for _, who := range []struct {
		name            string
		connection, max float64
	}{{"ours", 0, 2 << 20}, {"peer", 15800.25, 800 << 20}} {
		run := sample(0, who.name, nil, 1)
		run.CallBytes, run.ConnectionBytes, run.HeapBytes = 1<<20, &who.connection, &who.max
		memory.Runs = append(memory.Runs, run)
	}
	r := &Results{
		Format: resultsFormat, Suite: "demo", Date: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Commit: "abc123",
		Machine:     machine.Facts{System: "linux/amd64", Kernel: "6.1.0", Go: "go1.26.0", CPU: "Some CPU", Processors: 2, MemoryBytes: 8 << 30},
		Network:     machine.Network{Isolated: true, CongestionControl: "cubic"},
		LoadBefore:  0.1,
		LoadAfter:   1.9,
		Settings:    settings,
		Contestants: []contestant.Info{{Name: "ours"}, {Name: "peer"}, {Name: "other"}, {Name: "gone", Unavailable: "not built"}},
		Warnings:    []string{"the load average is high"},
		Notes:       []string{"what a suite has found out", "and more of it"},
		Cases:       []CaseResult{c, {Name: "echo@free", Placement: Free}, memory, repeated},
	}
	r.Lines = r.allLines()
	return r
}

func TestResults_Lines(t *testing.T) {
	for _, want := range []string{
		"RATIO demo/echo calls_per_s ours/peer 2.000",
		"RATIO demo/echo calls_per_s ours/other 2.000",
		"RATIO demo/echo cpu_ns ours/peer 0.500",
		"RATIO demo/echo p99 ours/peer 0.500",
		"VALUE demo/echo calls_per_s ours 10000",
		"VALUE demo/echo cpu_ns peer 10000",
		"VALUE demo/echo p999 peer 800000",
		"RATIO demo/echo allocs ours/peer 0.500",
		"VALUE demo/echo allocs ours 7.000",
		"RATIO demo/echo@client allocs ours/peer 1.000",
		"VALUE demo/echo@client allocs peer 0.250",
		"RATIO demo/memory mb_per_s ours/peer 1.000",
		"RATIO demo/repeated mb_per_s ours/peer 4.000",
		"VALUE demo/repeated mb_per_s ours 740.0",
		"VALUE demo/memory mb_per_s ours 5242.9",
		"RATIO demo/memory bytes ours/peer 0.000", // Nothing is a figure too.
		"VALUE demo/memory bytes ours 0.0",
		"VALUE demo/memory bytes peer 15800.2",
		"RATIO demo/memory heap_mb ours/peer 0.002500",
		"VALUE demo/memory heap_mb ours 2.00",
		"RATIO demo/repeated ns_op ours/peer 0.250",
		"VALUE demo/repeated ns_op peer 400.0",
		"VALUE demo/repeated allocs peer 1.500",
		"VALUE demo/repeated bytes peer 24.0",
	} {
		if !slices.Contains(fixture().Lines, want) {
			t.Errorf("no line %q in\n%s", want, strings.Join(fixture().Lines, "\n"))
		}
	}
	for _, line := range fixture().Lines {
		if strings.Contains(line, "demo/echo heap_mb") || strings.Contains(line, "demo/repeated c") || strings.Contains(line, "demo/repeated p") {
			t.Errorf("%q was not measured", line)
		}
		// Nobody measured an open loop against other.
		if strings.Contains(line, "p99 ours/other") || strings.Contains(line, "p99 other") {
			t.Errorf("%q was not measured", line)
		}
	}
}

// Where all connections call at once, latencies are those of the closed loop.
func TestResults_LatenciesOfIdleConnections(t *testing.T) {
	c := CaseResult{Name: "idle", Kind: Idle, Pairs: Against("ours", "peer")}
	c.Runs = []Sample{sample(0, "ours", nil, 2), sample(0, "peer", nil, 1)}
	lines := c.lines("demo")
	for _, want := range []string{"RATIO demo/idle p99 ours/peer 0.500", "VALUE demo/idle p99 peer 400000"} {
		if !slices.Contains(lines, want) {
			t.Errorf("no line %q in\n%s", want, strings.Join(lines, "\n"))
		}
	}
}

// Beside an operation, latencies are those of the calls that were made meanwhile.
func TestResults_LatenciesBesideAnOperation(t *testing.T) {
	c := CaseResult{Name: "update", Kind: Meanwhile, Pairs: Against("ours", "peer")}
	for name, p99 := range map[string]int64{"ours": 100, "peer": 400} {
		c.Runs = append(c.Runs, Sample{Contestant: name, Report: contestant.Report{
			Operation: &contestant.Operation{Count: 2, Nanoseconds: 1000}, Latency: contestant.Latency{Count: 9, P99: p99},
		}})
	}
	lines := c.lines("demo")
	for _, want := range []string{"RATIO demo/update p99 ours/peer 0.250", "VALUE demo/update p99 peer 400", "VALUE demo/update ns_op ours 1000.0"} {
		if !slices.Contains(lines, want) {
			t.Errorf("no line %q in\n%s", want, strings.Join(lines, "\n"))
		}
	}
}

// A run that lost calls or got wrong replies gives no figures.
func TestResults_FailedRunsDoNotCount(t *testing.T) {
	r := fixture()
	for i := range r.Cases[0].Runs {
		if run := &r.Cases[0].Runs[i]; run.Contestant == "peer" && run.Round == 0 {
			run.Failed, run.Calls = 3, 1<<40
		}
	}
	rates := r.Cases[0].seriesFor("peer", nil, metrics()[0])
	if _, counted := rates[0]; counted || len(rates) != 2 {
		t.Errorf("rounds %v count, want 1 and 2", rates)
	}
}

func TestResults_Print(t *testing.T) {
	var out bytes.Buffer
	if err := fixture().Print(&out); err != nil {
		t.Fatal(err)
	}
	testkit.Golden(t, "testdata/report.txt", out.Bytes())
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "VALUE ") {
		t.Errorf("the last line is %q, want the lines that programs read at the end", last)
	}
}

func TestCompare_Print(t *testing.T) {
	before, after := fixture(), fixture()
	for i := range after.Cases[0].Runs {
		if run := &after.Cases[0].Runs[i]; run.Contestant == "ours" {
			run.Calls *= 3
		}
	}
	after.Commit = "def456"
	var out bytes.Buffer
	if err := Compare(&out, before, after); err != nil {
		t.Fatal(err)
	}
	testkit.Golden(t, "testdata/compare.txt", out.Bytes())
}

func TestCompare_RefusesWhatCannotBeCompared(t *testing.T) {
	other := fixture()
	other.Suite = "else"
	if err := Compare(&bytes.Buffer{}, fixture(), other); err == nil {
		t.Error("different suites were compared")
	}
	other = fixture()
	for i := range other.Cases {
		other.Cases[i].Name += " of another suite"
	}
	if err := Compare(&bytes.Buffer{}, fixture(), other); err == nil {
		t.Error("files without a common case were compared")
	}
	other = fixture()
	other.Machine.CPU = "Another CPU"
	var out bytes.Buffer
	if err := Compare(&out, fixture(), other); err != nil || !strings.Contains(out.String(), "WARNING the machines differ") {
		t.Errorf("no warning about another machine: %v\n%s", err, out.String())
	}
}

// Calls that carry many messages have a figure for these.
func TestLines_CountMessagesWhereCallsCarryMany(t *testing.T) {
	run := Sample{Contestant: "a", Report: contestant.Report{Calls: 50, Seconds: 2, CallMessages: 100}}
	c := CaseResult{Name: "c", Pairs: Against("a", "a"), Runs: []Sample{run}}
	if want := "VALUE s/c msgs_per_s a 2500"; !slices.Contains(c.lines("s"), want) {
		t.Errorf("no line %q in %q", want, c.lines("s"))
	}
	c.Runs[0].CallMessages = 0
	for _, line := range c.lines("s") {
		if strings.Contains(line, "msgs_per_s") {
			t.Errorf("%q, where nobody counts messages", line)
		}
	}
}
