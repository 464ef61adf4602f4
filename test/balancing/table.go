package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
)

// row is what all methods have shown in a scenario.
type row struct {
	scenario scenario
	results  map[cluster.Method]result
}

// table is a row for each scenario, with so many instances.
type table struct {
	instances int
	rows      []row
}

func newTable(instances int, seed uint64, wanted func(sc scenario) bool) table {
	t := table{instances: instances}
	for _, sc := range scenarios() {
		if !wanted(sc) {
			continue
		}
		r := row{sc, map[cluster.Method]result{}}
		for _, method := range methods() {
			r.results[method] = sc.simulate(method, instances, seed)
		}
		t.rows = append(t.rows, r)
	}
	return t
}

// text returns the table in Markdown.
func (t table) text() string {
	var out strings.Builder
	fmt.Fprintf(&out, "| %s instances |", group(t.instances))
	for _, method := range methods() {
		fmt.Fprintf(&out, " `%s` |", method)
	}
	out.WriteString("\n|---|" + strings.Repeat("---|", len(methods())) + "\n")
	for _, r := range t.rows {
		fmt.Fprintf(&out, "| %s |", r.scenario.name)
		for _, method := range methods() {
			fmt.Fprintf(&out, " %s |", r.results[method].text())
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// legend returns what the scenarios are, in Markdown.
func legend() string {
	var out strings.Builder
	for _, sc := range scenarios() {
		fmt.Fprintf(&out, "- **%s**: %s.\n", sc.name, sc.what)
	}
	return out.String()
}

func (r result) text() string {
	return fmt.Sprintf("%s / %s · %s · %.2f", milliseconds(r.p50), milliseconds(r.p99), percent(r.failed), r.skew)
}

func milliseconds(d time.Duration) string {
	return group(int(d.Round(time.Millisecond).Milliseconds()))
}

func percent(part float64) string {
	switch part *= 100; {
	case part == 0:
		return "0"
	case part < 0.01:
		return "<0.01 %"
	case part < 1:
		return fmt.Sprintf("%.2f %%", part)
	}
	return fmt.Sprintf("%.1f %%", part)
}

// group writes a number as documents do.
func group(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

const (
	tableBegin = "<!-- balancing: begin -->\n"
	tableEnd   = "<!-- balancing: end -->\n"
)

// writeTables puts the tables into a document, between its marks.
func writeTables(name, text string) error {
	content, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	before, rest, ok := bytes.Cut(content, []byte(tableBegin))
	_, after, ends := bytes.Cut(rest, []byte(tableEnd))
	if !ok || !ends {
		return fmt.Errorf("%s: no place for the table between %q and %q", name, tableBegin, tableEnd)
	}
	var out bytes.Buffer
	out.Write(before)
	out.WriteString(tableBegin + "\n" + text + "\n" + tableEnd)
	out.Write(after)
	return os.WriteFile(name, out.Bytes(), 0o644)
}
