package harness

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/fulmar-rpc/fulmar/bench/contestant"
)

// metric is a figure of one run, named as the lines name it.
type metric struct {
	name string
	// suffix goes behind the name of the case in the lines, where the figure is
	// not that of the server or the case has two of the same name.
	suffix string
	// open tells whether it is taken from open loops.
	open bool
	// format prints a value.
	format string
	// column is the heading in tables of what only some cases measure.
	column string
	// value returns the figure, NaN if the run does not tell it.
	value func(Sample) float64
}

// clientSuffix marks figures of the client. Without a suffix they are the server's,
// as processor time and memory are.
const clientSuffix = "@client"

// metrics are the figures that the lines report. Latencies are those of the open
// loop, all others those of the closed loop. What only some cases measure comes
// last.
func metrics() []metric {
	nanoseconds := func(pick func(Sample) int64) func(Sample) float64 {
		return func(r Sample) float64 {
			if r.Latency.Count == 0 {
				return math.NaN()
			}
			return float64(pick(r))
		}
	}
	return []metric{
		{name: "calls_per_s", format: "%.0f", value: func(r Sample) float64 {
			if r.Calls == 0 || r.Seconds <= 0 {
				return math.NaN()
			}
			return float64(r.Calls) / r.Seconds
		}},
		{name: "cpu_ns", format: "%.0f", value: func(r Sample) float64 { return perCall(r, r.ServerCPU) }},
		{name: "p50", open: true, format: "%.0f", value: nanoseconds(func(r Sample) int64 { return r.Latency.P50 })},
		{name: "p99", open: true, format: "%.0f", value: nanoseconds(func(r Sample) int64 { return r.Latency.P99 })},
		{name: "p999", open: true, format: "%.0f", value: nanoseconds(func(r Sample) int64 { return r.Latency.P999 })},
		{name: "msgs_per_s", column: "messages/s", format: "%.0f", value: func(r Sample) float64 {
			if r.Calls == 0 || r.Seconds <= 0 || r.CallMessages == 0 {
				return math.NaN()
			}
			return float64(r.Calls) * float64(r.CallMessages) / r.Seconds
		}},
		{name: "mb_per_s", column: "MB/s", format: "%.1f", value: megabytes},
		{name: "ns_op", format: "%.1f", value: operation(func(o contestant.Operation) float64 { return o.Nanoseconds })},
		{name: "allocs", column: "allocs/op", format: "%.3f", value: operation(func(o contestant.Operation) float64 { return o.Allocations })},
		{name: "allocs", column: "server allocs/call", format: "%.3f", value: func(r Sample) float64 { return known(r.ServerAllocations) }},
		{name: "allocs", suffix: clientSuffix, column: "client allocs/call", format: "%.3f", value: func(r Sample) float64 { return known(r.ClientAllocations) }},
		{name: "bytes", column: "bytes/op", format: "%.1f", value: operation(func(o contestant.Operation) float64 { return o.Bytes })},
		{name: "bytes", column: "bytes/connection", format: "%.1f", value: func(r Sample) float64 { return known(r.ConnectionBytes) }},
		{name: "heap_mb", column: "heap MiB", format: "%.2f", value: func(r Sample) float64 { return known(r.HeapBytes) / (1 << 20) }},
	}
}

// metrics are those of a case of its kind.
func (c CaseResult) metrics() []metric {
	all := metrics()
	if c.Kind == Overload {
		return overloadMetrics()
	}
	if c.Kind == Idle || c.Kind == Meanwhile {
		for i := range all {
			if all[i].open {
				all[i].open, all[i].column = false, all[i].name+" ns"
			}
		}
	}
	return all
}

// The suffixes of cases that offer more than can be done: figures of calls that
// were refused, and what was reached in a closed loop.
const (
	refusedSuffix  = "@refused"
	capacitySuffix = "@capacity"
)

// overloadMetrics are those of Overload. That no call succeeds is a figure too.
func overloadMetrics() []metric {
	served := func(r Sample) float64 { return float64(r.Calls) / r.Seconds }
	refused := func(r Sample) float64 { return float64(r.Refused) / r.Seconds }
	all := []metric{
		{name: "calls_per_s", open: true, format: "%.0f", value: served},
		{name: "calls_per_s", suffix: refusedSuffix, open: true, format: "%.0f", value: refused},
		{name: "calls_per_s", suffix: capacitySuffix, format: "%.0f", value: served},
	}
	for _, m := range metrics() {
		if m.open {
			of := m
			of.suffix = refusedSuffix
			of.value = func(r Sample) float64 {
				if r.RefusedLatency == nil {
					return math.NaN()
				}
				return m.value(Sample{Report: contestant.Report{Latency: *r.RefusedLatency}})
			}
			all = append(all, m, of)
		}
	}
	return all
}

// megabytes is the payload of a second, in millions of bytes.
func megabytes(r Sample) float64 {
	switch {
	case r.CallBytes == 0:
		return math.NaN()
	case r.Operation != nil:
		return float64(r.CallBytes) / r.Operation.Nanoseconds * 1e3
	case r.Seconds <= 0:
		return math.NaN()
	}
	return float64(r.Calls) * float64(r.CallBytes) / r.Seconds / 1e6
}

// operation picks a figure of contestants that repeat an operation.
func operation(pick func(contestant.Operation) float64) func(Sample) float64 {
	return func(r Sample) float64 {
		if r.Operation == nil {
			return math.NaN()
		}
		return pick(*r.Operation)
	}
}

// known is a figure that not every case measures.
func known(value *float64) float64 {
	if value == nil {
		return math.NaN()
	}
	return *value
}

func perCall(r Sample, processorTime int64) float64 {
	if r.Calls == 0 {
		return math.NaN()
	}
	return float64(processorTime) / float64(r.Calls)
}

// series are the figures of one contestant by round.
type series map[int]float64

// seriesOf picks a metric of a contestant out of the runs. Open loops belong to
// a pair; pair is nil for closed ones. Runs with a failed call do not count.
func seriesOf(runs []Sample, contestant string, pair *Pair, m metric) series {
	found := series{}
	for _, run := range runs {
		same := run.Pair == nil && pair == nil || run.Pair != nil && pair != nil && *run.Pair == *pair
		if run.Contestant != contestant || !same || run.Failed > 0 {
			continue
		}
		if value := m.value(run); !math.IsNaN(value) && !math.IsInf(value, 0) {
			found[run.Round] = value
		}
	}
	return found
}

// median of the values, NaN of none.
func (s series) median() float64 {
	values := make([]float64, 0, len(s))
	for _, value := range s {
		values = append(values, value)
	}
	return median(values)
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	values = slices.Sorted(slices.Values(values))
	middle := len(values) / 2
	if len(values)%2 == 1 {
		return values[middle]
	}
	return (values[middle-1] + values[middle]) / 2
}

// spread returns the lowest and the highest value.
func (s series) spread() (low, high float64) {
	low, high = math.NaN(), math.NaN()
	for _, value := range s {
		if !(low <= value) {
			low = value
		}
		if !(high >= value) {
			high = value
		}
	}
	return low, high
}

// ratio divides within each round, where both contestants met the same machine,
// and returns the median of that.
func ratio(ours, theirs series) float64 {
	var ratios []float64
	for round, value := range ours {
		if other, ok := theirs[round]; ok && other > 0 {
			ratios = append(ratios, value/other)
		}
	}
	return median(ratios)
}

// pairFor returns the comparison whose open loops stand for a contestant's
// latencies: the first that it is part of.
func (c CaseResult) pairFor(contestant string) *Pair {
	for i, pair := range c.Pairs {
		if pair.Ours == contestant || pair.Peer == contestant {
			return &c.Pairs[i]
		}
	}
	return nil
}

// contestants returns who has run, in the order of the pairs and then of the
// runs.
func (c CaseResult) contestants() []string {
	var names []string
	add := func(name string) {
		ran := slices.ContainsFunc(c.Runs, func(r Sample) bool { return r.Contestant == name })
		if ran && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, pair := range c.Pairs {
		add(pair.Ours)
		add(pair.Peer)
	}
	for _, run := range c.Runs {
		add(run.Contestant)
	}
	return names
}

// seriesFor returns a metric of a contestant within a comparison.
func (c CaseResult) seriesFor(contestant string, pair *Pair, m metric) series {
	if !m.open {
		pair = nil
	} else if pair == nil {
		return nil
	}
	return seriesOf(c.Runs, contestant, pair, m)
}

// lines returns the RATIO and VALUE lines of a case. What could not be measured
// has no line.
func (c CaseResult) lines(suite string) []string {
	var lines []string
	for i, pair := range c.Pairs {
		if pair.Ours == pair.Peer {
			continue // There is nobody else, and its values say all.
		}
		for _, m := range c.metrics() {
			value := ratio(c.seriesFor(pair.Ours, &c.Pairs[i], m), c.seriesFor(pair.Peer, &c.Pairs[i], m))
			if !math.IsNaN(value) {
				lines = append(lines, fmt.Sprintf("RATIO %s/%s %s %s/%s %s", suite, c.Name+m.suffix, m.name, pair.Ours, pair.Peer, fraction(value)))
			}
		}
	}
	for _, name := range c.contestants() {
		for _, m := range c.metrics() {
			if value := c.seriesFor(name, c.pairFor(name), m).median(); !math.IsNaN(value) {
				lines = append(lines, fmt.Sprintf("VALUE %s/%s %s %s "+m.format, suite, c.Name+m.suffix, m.name, name, value))
			}
		}
	}
	return lines
}

// fraction prints a ratio, with more digits where three would leave nothing of it.
func fraction(value float64) string {
	if 0 < value && value < 0.01 {
		return fmt.Sprintf("%.6f", value)
	}
	return fmt.Sprintf("%.3f", value)
}

// columns returns the metrics that this case measures and others do not.
func (c CaseResult) columns() []metric {
	return slices.DeleteFunc(c.metrics(), func(m metric) bool {
		return m.column == "" || !slices.ContainsFunc(c.Runs, func(r Sample) bool { return !math.IsNaN(m.value(r)) })
	})
}

// withSecondNames prints the lines of contestants that have a second name once more under
// it, each behind the original.
func (s Suite) withSecondNames(lines []string) []string {
	var all []string
	for _, line := range lines {
		all = append(all, line)
		fields := strings.Split(line, " ")
		names := strings.Split(fields[3], "/")
		for i, name := range names {
			names[i] = cmp.Or(s.AlsoAs[name], name)
		}
		fields[3] = strings.Join(names, "/")
		if renamed := strings.Join(fields, " "); renamed != line {
			all = append(all, renamed)
		}
	}
	return all
}

// allLines returns the lines of all cases, ratios first.
func (r *Results) allLines() []string {
	var lines []string
	for _, c := range r.Cases {
		lines = append(lines, c.lines(r.Suite)...)
	}
	slices.SortStableFunc(lines, func(a, b string) int { return cmp.Compare(a[:1], b[:1]) })
	return lines
}
