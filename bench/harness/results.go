package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/fulmar-rpc/fulmar/bench/contestant"
	"github.com/fulmar-rpc/fulmar/bench/machine"
)

// resultsFormat changes when old files cannot be read any more.
const resultsFormat = 1

// Results are everything that is known about a run of a suite: what it ran on,
// and the raw figures of every round.
type Results struct {
	Format      int               `json:"format"`
	Suite       string            `json:"suite"`
	Date        time.Time         `json:"date"`
	Commit      string            `json:"commit"`
	Machine     machine.Facts     `json:"machine"`
	Network     machine.Network   `json:"network"`
	LoadBefore  float64           `json:"load_average_before"`
	LoadAfter   float64           `json:"load_average_after"`
	Settings    Settings          `json:"settings"`
	Contestants []contestant.Info `json:"contestants"`
	// Warnings are what makes these results less comparable.
	Warnings []string     `json:"warnings,omitempty"`
	Cases    []CaseResult `json:"cases"`
	// Notes are those of the suite, for people.
	Notes []string `json:"notes,omitempty"`
	// Lines are the RATIO and VALUE lines that were printed.
	Lines []string `json:"lines"`
}

// CaseResult holds the runs of one case in one placement.
type CaseResult struct {
	// Name carries the placement's suffix.
	Name      string    `json:"name"`
	Placement Placement `json:"placement"`
	Pairs     []Pair    `json:"pairs"`
	// Kind is what the case is about.
	Kind Kind     `json:"kind,omitempty"`
	Runs []Sample `json:"runs"`
	// Published are figures by contestant from elsewhere.
	Published map[string]string `json:"published,omitempty"`
}

// Sample is one run: one server and one client, or one process that repeats an
// operation, from their start to their end.
type Sample struct {
	// Round counts from 0, Turn is the place within the round.
	Round      int    `json:"round"`
	Turn       int    `json:"turn"`
	Contestant string `json:"contestant"`
	// Pair is the comparison that an open loop belongs to. It is nil for the
	// closed loop, which all comparisons share.
	Pair *Pair `json:"pair,omitempty"`
	// Others is how many processors worked for neither the server nor the client
	// meanwhile.
	Others float64 `json:"others"`
	// DistanceNS is how far the server's processor was from the client's before the run, see
	// machine.Distance; 0 if they were not bound to any, or nobody knows.
	DistanceNS int64 `json:"distance_ns,omitempty"`
	contestant.Report
}

// These bound what Load accepts: a file of results may come from anywhere.
const (
	resultsBytesMax = 256 << 20
	casesMax        = 1000
	runsMax         = 100_000
	linesMax        = 100_000
	processorsMax   = 1 << 16
)

// Load reads a file of results.
func Load(name string) (*Results, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	results, err := ReadResults(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return results, nil
}

// ReadResults reads what Write has written.
func ReadResults(in io.Reader) (*Results, error) {
	content, err := io.ReadAll(io.LimitReader(in, resultsBytesMax+1))
	if err != nil {
		return nil, err
	}
	if len(content) > resultsBytesMax {
		return nil, fmt.Errorf("results of more than %d bytes", resultsBytesMax)
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	var results Results
	if err := decoder.Decode(&results); err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	if rest := bytes.TrimSpace(content[decoder.InputOffset():]); len(rest) > 0 {
		return nil, fmt.Errorf("results: %d bytes behind them", len(rest))
	}
	return &results, results.validate()
}

func (r *Results) validate() error {
	switch {
	case r.Format != resultsFormat:
		return fmt.Errorf("results have format %d (this program reads %d)", r.Format, resultsFormat)
	case len(r.Cases) > casesMax || len(r.Lines) > linesMax || len(r.Notes) > linesMax:
		return fmt.Errorf("results hold %d cases, %d lines and %d notes (limits %d, %d and %d)",
			len(r.Cases), len(r.Lines), len(r.Notes), casesMax, linesMax, linesMax)
	}
	problems := []error{
		contestant.CheckText("suite", r.Suite, 1), contestant.CheckText("commit", r.Commit, 0),
		contestant.CheckText("machine", r.Machine.String(), 0), r.Settings.Validate(),
	}
	for _, note := range r.Notes {
		problems = append(problems, contestant.CheckText("note", note, 1))
	}
	for _, c := range r.Cases {
		if len(c.Runs) > runsMax || len(c.Pairs) > casesMax {
			return fmt.Errorf("case %.60q has %d runs and %d pairs (limits %d and %d)", c.Name, len(c.Runs), len(c.Pairs), runsMax, casesMax)
		}
		problems = append(problems, contestant.CheckText("case", c.Name, 1), contestant.CheckText("kind", string(c.Kind), 0))
		for _, pair := range c.Pairs {
			problems = append(problems, contestant.CheckText("contestant", pair.Ours, 1), contestant.CheckText("contestant", pair.Peer, 1))
		}
		if len(c.Published) > casesMax {
			return fmt.Errorf("case %.60q has %d published figures (limit %d)", c.Name, len(c.Published), casesMax)
		}
		for name, figure := range c.Published {
			problems = append(problems, contestant.CheckText("contestant", name, 1), contestant.CheckText("published figure", figure, 1))
		}
		for i, run := range c.Runs {
			if err := run.validate(); err != nil {
				problems = append(problems, fmt.Errorf("case %.60q, run %d: %w", c.Name, i, err))
			}
		}
	}
	return errors.Join(problems...)
}

func (s Sample) validate() error {
	if s.Round < 0 || s.Round >= roundsMax {
		return fmt.Errorf("round %d (limit %d)", s.Round, roundsMax)
	}
	if !(s.Others >= 0 && s.Others <= processorsMax) {
		return fmt.Errorf("%v processors worked for others (limit %d)", s.Others, processorsMax)
	}
	if s.DistanceNS < 0 || s.DistanceNS > int64(time.Minute) {
		return fmt.Errorf("processors that are %d ns apart (limit %v)", s.DistanceNS, time.Minute)
	}
	return errors.Join(contestant.CheckText("contestant", s.Contestant, 1), s.Validate())
}

// distances returns the shortest and the longest distance of the runs that have one, 0 if
// none has.
func (r *Results) distances() (shortest, longest time.Duration) {
	for _, c := range r.Cases {
		for _, run := range c.Runs {
			if at := time.Duration(run.DistanceNS); at > 0 {
				if longest = max(longest, at); shortest == 0 || at < shortest {
					shortest = at
				}
			}
		}
	}
	return shortest, longest
}

// others returns the median of Others.
func (r *Results) others() float64 {
	var all []float64
	for _, c := range r.Cases {
		for _, run := range c.Runs {
			all = append(all, run.Others)
		}
	}
	return median(all)
}

// Write writes the results to a file, which is complete or not there.
func (r *Results) Write(name string) error {
	content, err := json.Marshal(r)
	if err != nil {
		return err
	}
	// A line for each case, run and printed line, so that a difference can be
	// read. A quote inside of a text is escaped, so none of these is in a text.
	for _, start := range []string{`{"name":`, `{"round":`, `"RATIO `, `"VALUE `} {
		content = bytes.ReplaceAll(content, []byte(start), []byte("\n"+start))
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	temporary := name + ".part"
	if err := os.WriteFile(temporary, append(content, '\n'), 0o666); err != nil {
		return err
	}
	return os.Rename(temporary, name)
}
