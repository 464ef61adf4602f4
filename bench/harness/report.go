package harness

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Print writes the heading, a table for each case, warnings, and the lines that
// programs read.
func (r *Results) Print(out io.Writer) error {
	text := &strings.Builder{}
	fmt.Fprintf(text, "\nsuite %s, %s, commit %s\n%s\n", r.Suite, r.Date.UTC().Format(time.DateTime), r.Commit, r.Machine)
	turns := ""
	if r.Settings.Slice > 0 {
		turns = fmt.Sprintf(" in turns of %v", r.Settings.Slice)
	}
	fmt.Fprintf(text, "%d rounds of %v%s after %v of warm-up; load average %.2f before; others kept %s processors busy; congestion control %s\n",
		r.Settings.Rounds, r.Settings.Duration, turns, r.Settings.WarmUp, r.LoadBefore, hundredths(r.others()), r.Network.CongestionControl)
	for _, info := range r.Contestants {
		if info.Unavailable != "" {
			fmt.Fprintf(text, "%s is not available: %s\n", info.Name, info.Unavailable)
		}
	}
	for _, c := range r.Cases {
		c.print(text, r.Suite)
	}
	if len(r.Notes) > 0 {
		fmt.Fprintf(text, "\n%s\n", strings.Join(r.Notes, "\n"))
	}
	if len(r.Warnings) > 0 {
		fmt.Fprintln(text)
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(text, "WARNING %s\n", warning)
	}
	fmt.Fprintf(text, "\n%s\n", strings.Join(r.Lines, "\n"))
	_, err := io.WriteString(out, text.String())
	return err
}

// print writes a table: one row for a contestant's closed loops, or what it
// repeated, and one for the open loops of each comparison.
func (c CaseResult) print(out io.Writer, suite string) {
	fmt.Fprintf(out, "\n%s/%s (%s)\n", suite, c.Name, c.Placement)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	if slices.ContainsFunc(c.Runs, func(r Sample) bool { return r.Operation != nil }) {
		c.printOperations(table)
	} else {
		c.printCalls(table)
	}
	table.Flush()
}

// printOperations writes the rows of contestants that repeat an operation.
func (c CaseResult) printOperations(table *tabwriter.Writer) {
	each := metrics()[slices.IndexFunc(metrics(), func(m metric) bool { return m.name == "ns_op" })]
	fmt.Fprint(table, "contestant\tns/op\tlowest\thighest\tpeak MB\t")
	c.printHeadings(table)
	for _, name := range c.contestants() {
		took := c.seriesFor(name, nil, each)
		low, high := took.spread()
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t", name, number(each.format, took.median()), number(each.format, low), number(each.format, high),
			whole(c.median(name, nil, func(r Sample) float64 { return float64(r.ServerPeak) / 1e6 })))
		c.printColumns(table, name)
	}
}

// printHeadings and printColumns end a line with what only some cases measure,
// and what others have published.
func (c CaseResult) printHeadings(table io.Writer) {
	for _, m := range c.columns() {
		fmt.Fprintf(table, "%s\t", m.column)
	}
	if len(c.Published) > 0 {
		fmt.Fprint(table, "published\t")
	}
	fmt.Fprintln(table)
}

func (c CaseResult) printColumns(table io.Writer, name string) {
	for _, m := range c.columns() {
		fmt.Fprintf(table, "%s\t", number(m.format, c.seriesFor(name, nil, m).median()))
	}
	if len(c.Published) > 0 {
		fmt.Fprintf(table, "%s\t", cmp.Or(c.Published[name], "-"))
	}
	fmt.Fprintln(table)
}

// printCalls writes the rows of contestants that are called.
func (c CaseResult) printCalls(table *tabwriter.Writer) {
	fmt.Fprint(table, "contestant\tcalls/s\tlowest\thighest\tserver us/call\tclient us/call\tserver MB\tclient MB\tfailed\t")
	c.printHeadings(table)
	for _, name := range c.contestants() {
		rate := c.seriesFor(name, nil, metrics()[0])
		low, high := rate.spread()
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t", name, whole(rate.median()), whole(low), whole(high),
			micro(c.median(name, nil, func(r Sample) float64 { return perCall(r, r.ServerCPU) })),
			micro(c.median(name, nil, func(r Sample) float64 { return perCall(r, r.ClientCPU) })),
			whole(c.median(name, nil, func(r Sample) float64 { return float64(r.ServerPeak) / 1e6 })),
			whole(c.median(name, nil, func(r Sample) float64 { return float64(r.ClientPeak) / 1e6 })),
			c.failed(name))
		c.printColumns(table, name)
	}
	table.Flush()
	if !slices.ContainsFunc(c.Runs, func(r Sample) bool { return r.Pair != nil }) {
		return
	}
	fmt.Fprint(table, "at equal load\toffered/s\tp50 us\tp90 us\tp99 us\tp99.9 us\tmax us\tserver us/call\tmissed\t")
	if c.Kind == Overload {
		fmt.Fprint(table, "served/s\trefused/s\trefused p99 us\t")
	}
	fmt.Fprintln(table)
	for i := range c.Pairs {
		pair := &c.Pairs[i]
		for _, name := range []string{pair.Ours, pair.Peer} {
			row := func(pick func(Sample) float64) float64 { return c.median(name, pair, pick) }
			fmt.Fprintf(table, "%s (%s)\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t", name, pair.other(name),
				whole(row(func(r Sample) float64 { return r.Rate })),
				micro(row(func(r Sample) float64 { return float64(r.Latency.P50) })),
				micro(row(func(r Sample) float64 { return float64(r.Latency.P90) })),
				micro(row(func(r Sample) float64 { return float64(r.Latency.P99) })),
				micro(row(func(r Sample) float64 { return float64(r.Latency.P999) })),
				micro(row(func(r Sample) float64 { return float64(r.Latency.Max) })),
				micro(row(func(r Sample) float64 { return perCall(r, r.ServerCPU) })),
				whole(row(func(r Sample) float64 { return float64(r.Missed) })))
			if c.Kind == Overload {
				fmt.Fprintf(table, "%s\t%s\t%s\t", whole(row(func(r Sample) float64 { return float64(r.Calls) / r.Seconds })),
					whole(row(func(r Sample) float64 { return float64(r.Refused) / r.Seconds })),
					micro(row(refusedP99)))
			}
			fmt.Fprintln(table)
		}
	}
}

func refusedP99(r Sample) float64 {
	if r.RefusedLatency == nil {
		return math.NaN()
	}
	return float64(r.RefusedLatency.P99)
}

// other returns the opponent of a contestant.
func (p Pair) other(name string) string {
	if name == p.Ours {
		return "with " + p.Peer
	}
	return "with " + p.Ours
}

// median of any figure over the rounds of a contestant.
func (c CaseResult) median(contestant string, pair *Pair, pick func(Sample) float64) float64 {
	return seriesOf(c.Runs, contestant, pair, metric{value: pick}).median()
}

func (c CaseResult) failed(contestant string) uint64 {
	var failed uint64
	for _, run := range c.Runs {
		if run.Contestant == contestant {
			failed += run.Failed
		}
	}
	return failed
}

// number prints a value, or "-" if there is none.
func number(format string, value float64) string {
	if math.IsNaN(value) {
		return "-"
	}
	return fmt.Sprintf(format, value)
}

func whole(value float64) string { return number("%.0f", value) }

func hundredths(value float64) string { return number("%.2f", value) }

// micro prints nanoseconds as microseconds.
func micro(value float64) string { return number("%.1f", value/1000) }
