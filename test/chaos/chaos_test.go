package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

// TestMain is also the main function of the servers that scenarios start.
func TestMain(m *testing.M) {
	if asRole() {
		os.Exit(0)
	}
	testkit.Main(m)
}

// TestScenarios runs short versions of the scenarios that are quick. All of them,
// and at full length, run with make chaos.
func TestScenarios(t *testing.T) {
	for _, s := range scenarios() {
		if !s.quick {
			continue
		}
		t.Run(s.id+"_"+s.name, func(t *testing.T) {
			var line strings.Builder
			if err := perform(context.Background(), &line, s, size{short: true}); err != nil {
				t.Error(line.String())
			}
			t.Log(line.String())
		})
	}
}

// TestFigures_FailBeyondTheirLimits: a scenario whose figure does not hold fails.
func TestFigures_FailBeyondTheirLimits(t *testing.T) {
	for name, test := range map[string]struct {
		add    func(*figures)
		failed bool
		text   string
	}{
		"within":        {func(f *figures) { f.most("failed", 0, 0, "") }, false, "failed 0 (limit 0)"},
		"beyond":        {func(f *figures) { f.most("stop", 2.5, 2, " s") }, true, "stop 2.5 s (limit 2 s)"},
		"enough":        {func(f *figures) { f.least("calls", 100000, 100000, "") }, false, "calls 100,000 (at least 100,000)"},
		"less":          {func(f *figures) { f.least("calls", 1, 2, "") }, true, "calls 1 (at least 2)"},
		"not a number":  {func(f *figures) { f.most("ratio", nan(), 2, "") }, true, "ratio NaN (limit 2)"},
		"without limit": {func(f *figures) { f.note("peak %d", 7) }, false, "peak 7"},
	} {
		var seen figures
		if test.add(&seen); seen.failed != test.failed || seen.text != test.text {
			t.Errorf("%s: %q, failed %v", name, seen.text, seen.failed)
		}
		s := scenario{id: "S0", name: "test", run: func(context.Context, size) (figures, error) { return seen, nil }}
		var line strings.Builder
		if err := perform(context.Background(), &line, s, size{}); (err != nil) != test.failed || strings.Contains(line.String(), "FAILED") != test.failed {
			t.Errorf("%s: %v, %s", name, err, line.String())
		}
	}
}

// TestFigures_TimesAreToldByTestsOnly: what takes too long fails make chaos, not a test.
func TestFigures_TimesAreToldByTestsOnly(t *testing.T) {
	for name, test := range map[string]struct {
		taken   float64
		short   bool
		err     error
		verdict string
	}{
		"quiet":       {0, false, errFailed, " FAILED\n"},
		"quiet, test": {0, true, nil, " ok but for times\n"},
		"busy":        {1, false, errBusy, " UNDECIDED (machine busy)\n"},
		"busy, test":  {1, true, nil, " ok but for times\n"},
		// A p99 of 3 % in which others ran is theirs.
		"hardly busy": {0.03, false, errBusy, " UNDECIDED (machine busy)\n"},
	} {
		s := scenario{id: "S0", name: "test", run: func(context.Context, size) (seen figures, err error) {
			seen.mostUnlessBusy("stop", 1, 2, " ms", test.taken)
			seen.tailUnlessBusy("p99", 3, 2, " ms", test.taken)
			return seen, nil
		}}
		var line strings.Builder
		err := perform(context.Background(), &line, s, size{short: test.short})
		if !errors.Is(err, test.err) || !strings.HasSuffix(line.String(), test.verdict) || !strings.Contains(line.String(), "p99 3 ms (limit 2 ms)") {
			t.Errorf("%s: %v, %q", name, err, line.String())
		}
	}
}

func nan() float64 {
	zero := 0.0
	return zero / zero
}
