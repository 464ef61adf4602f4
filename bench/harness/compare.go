package harness

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// Compare prints how every contestant did in two files of results, and which
// ratios between contestants have changed. Values of different machines or days
// mean little; ratios, which were taken within one run, mean more.
func Compare(out io.Writer, before, after *Results) error {
	text := &strings.Builder{}
	for _, r := range []*Results{before, after} {
		fmt.Fprintf(text, "%s, commit %s, %s\n", r.Date.UTC().Format("2006-01-02 15:04"), r.Commit, r.Machine)
	}
	if before.Suite != after.Suite {
		return fmt.Errorf("suites differ: %q and %q", before.Suite, after.Suite)
	}
	if before.Machine != after.Machine {
		fmt.Fprintln(text, "WARNING the machines differ: compare ratios only")
	}
	compared := 0
	for _, old := range before.Cases {
		at := slices.IndexFunc(after.Cases, func(c CaseResult) bool { return c.Name == old.Name })
		if at < 0 {
			continue
		}
		compared++
		var rows strings.Builder
		compareCase(&rows, old, after.Cases[at])
		if rows.Len() == 0 {
			continue
		}
		fmt.Fprintf(text, "\n%s/%s\n", before.Suite, old.Name)
		table := tabwriter.NewWriter(text, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintf(table, "\tmetric\tbefore\tafter\tchange\t\n%s", rows.String())
		if err := table.Flush(); err != nil {
			return err
		}
	}
	if compared == 0 {
		return fmt.Errorf("the files have no case in common")
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// compareCase writes the rows of a case, their cells behind tabs.
func compareCase(table io.Writer, before, after CaseResult) {
	for _, name := range before.contestants() {
		for _, m := range before.metrics() {
			old := before.seriesFor(name, before.pairFor(name), m)
			now := after.seriesFor(name, after.pairFor(name), m)
			row(table, name, m.name+m.suffix, old.median(), now.median(), m.format, overlap(old, now))
		}
	}
	for i := range before.Pairs {
		pair := before.Pairs[i]
		at := slices.Index(after.Pairs, pair)
		if at < 0 {
			continue
		}
		for _, m := range before.metrics() {
			old := ratio(before.seriesFor(pair.Ours, &before.Pairs[i], m), before.seriesFor(pair.Peer, &before.Pairs[i], m))
			now := ratio(after.seriesFor(pair.Ours, &after.Pairs[at], m), after.seriesFor(pair.Peer, &after.Pairs[at], m))
			row(table, pair.Ours+"/"+pair.Peer, m.name+m.suffix, old, now, "%.3f", false)
		}
	}
}

// row prints one line of a comparison. A change between series that overlap is
// marked with "~": it may be noise.
func row(table io.Writer, name, metric string, before, after float64, format string, noise bool) {
	if math.IsNaN(before) || math.IsNaN(after) {
		return
	}
	change := "-"
	if before > 0 {
		change = fmt.Sprintf("%+.1f %%", (after/before-1)*100)
	}
	if noise {
		change = "~ " + change
	}
	fmt.Fprintf(table, "%s\t%s\t"+format+"\t"+format+"\t%s\t\n", name, metric, before, after, change)
}

// overlap tells whether the ranges of two series have a value in common.
func overlap(a, b series) bool {
	lowA, highA := a.spread()
	lowB, highB := b.spread()
	return lowA <= highB && lowB <= highA
}
