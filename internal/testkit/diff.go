package testkit

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// diffContext is how many equal lines a difference is shown with.
	diffContext = 2
	// diffLinesMax bounds what is printed; whoever changed more looks at the
	// difference with git after accepting it.
	diffLinesMax = 200
	// diffCellsMax bounds the table for the longest common subsequence, 16 MB.
	// Beyond it the differing part is shown as one block.
	diffCellsMax = 4 << 20
)

// edit is one line of a difference.
type edit struct {
	mark byte // ' ' both, '-' only before, '+' only after
	text string
}

// lineDiff returns the lines that lead from before to after, with line numbers
// of before.
func lineDiff(before, after string) string {
	a, b := splitLines(before), splitLines(after)
	prefix := 0
	for prefix < min(len(a), len(b)) && a[prefix] == b[prefix] {
		prefix++
	}
	suffix := 0
	for suffix < min(len(a), len(b))-prefix && a[len(a)-1-suffix] == b[len(b)-1-suffix] {
		suffix++
	}
	var edits []edit
	for _, line := range a[:prefix] {
		edits = append(edits, edit{' ', line})
	}
	edits = append(edits, middle(a[prefix:len(a)-suffix], b[prefix:len(b)-suffix])...)
	for _, line := range a[len(a)-suffix:] {
		edits = append(edits, edit{' ', line})
	}
	return format(edits)
}

// splitLines keeps the line ends, so that a missing one is a difference.
func splitLines(s string) []string {
	lines := strings.SplitAfter(s, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// middle compares by the longest common subsequence.
func middle(a, b []string) []edit {
	var edits []edit
	i, j := 0, 0
	if len(a)*len(b) <= diffCellsMax {
		// common[i][j] is the length of the longest common subsequence of
		// a[i:] and b[j:].
		common := make([][]int32, len(a)+1)
		for i := range common {
			common[i] = make([]int32, len(b)+1)
		}
		for i := len(a) - 1; i >= 0; i-- {
			for j := len(b) - 1; j >= 0; j-- {
				if a[i] == b[j] {
					common[i][j] = common[i+1][j+1] + 1
				} else {
					common[i][j] = max(common[i+1][j], common[i][j+1])
				}
			}
		}
		for i < len(a) && j < len(b) {
			switch {
			case a[i] == b[j]:
				edits = append(edits, edit{' ', a[i]})
				i++
				j++
			case common[i+1][j] >= common[i][j+1]:
				edits = append(edits, edit{'-', a[i]})
				i++
			default:
				edits = append(edits, edit{'+', b[j]})
				j++
			}
		}
	}
	for _, line := range a[i:] {
		edits = append(edits, edit{'-', line})
	}
	for _, line := range b[j:] {
		edits = append(edits, edit{'+', line})
	}
	return edits
}

func format(edits []edit) string {
	var out strings.Builder
	line, printed, shown := 1, 0, true
	for i, e := range edits {
		if near(edits, i) {
			if printed == diffLinesMax {
				out.WriteString("... and more\n")
				break
			}
			if !shown || i == 0 {
				fmt.Fprintf(&out, "@@ line %d\n", line)
			}
			fmt.Fprintf(&out, "%c %s\n", e.mark, printable(e.text))
			printed++
			shown = true
		} else {
			shown = false
		}
		if e.mark != '+' {
			line++
		}
	}
	return out.String()
}

// near tells whether the edit at i is a change or belongs to one's context.
func near(edits []edit, i int) bool {
	for _, e := range edits[max(0, i-diffContext):min(len(edits), i+diffContext+1)] {
		if e.mark != ' ' {
			return true
		}
	}
	return false
}

// printable quotes lines that a terminal would not show as they are.
func printable(line string) string {
	text, ended := strings.CutSuffix(line, "\n")
	if !ended {
		return strconv.Quote(text) + " without a line end"
	}
	for _, r := range text {
		if r == utf8.RuneError || (!strconv.IsPrint(r) && r != '\t') {
			return strconv.Quote(text)
		}
	}
	return text
}
