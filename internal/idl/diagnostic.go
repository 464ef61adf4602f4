package idl

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// Severity tells errors and warnings apart.
type Severity uint8

// A program with errors cannot be generated; one with warnings can.
const (
	SeverityError Severity = iota
	SeverityWarning
)

// Diagnostic is one thing to tell the author of a definition.
type Diagnostic struct {
	Severity Severity
	// Position has Line 0 if the message is about a file as a whole.
	Position schema.Position
	Message  string
}

// String returns "file:line:column: message".
func (d Diagnostic) String() string {
	place := d.Position.String()
	if d.Position.Line == 0 {
		place = d.Position.File
	}
	if d.Severity == SeverityWarning {
		return place + ": warning: " + d.Message
	}
	return place + ": " + d.Message
}

// Diagnostics are what one run has to tell.
type Diagnostics []Diagnostic

// HasErrors says that at least one is an error.
func (d Diagnostics) HasErrors() bool {
	return slices.ContainsFunc(d, func(one Diagnostic) bool { return one.Severity == SeverityError })
}

// Sorted orders the diagnostics by file, line and column, and removes
// repetitions. It reuses the memory of d.
func (d Diagnostics) Sorted() Diagnostics {
	slices.SortStableFunc(d, func(a, b Diagnostic) int {
		return cmp.Or(
			cmp.Compare(a.Position.File, b.Position.File),
			cmp.Compare(a.Position.Line, b.Position.Line),
			cmp.Compare(a.Position.Column, b.Position.Column),
		)
	})
	return slices.Compact(d)
}

// String returns one line for each.
func (d Diagnostics) String() string {
	var text strings.Builder
	for _, one := range d {
		text.WriteString(one.String())
		text.WriteByte('\n')
	}
	return text.String()
}

// collector gathers diagnostics, up to limits.IDLErrors of each severity.
type collector struct {
	list             Diagnostics
	errors, warnings int
}

func (c *collector) errorf(position schema.Position, format string, arguments ...any) {
	if c.errors++; c.errors <= limits.IDLErrors {
		c.add(SeverityError, position, fmt.Sprintf(format, arguments...))
	}
}

func (c *collector) warningf(position schema.Position, format string, arguments ...any) {
	if c.warnings++; c.warnings <= limits.IDLErrors {
		c.add(SeverityWarning, position, fmt.Sprintf(format, arguments...))
	}
}

func (c *collector) add(severity Severity, position schema.Position, message string) {
	c.list = append(c.list, Diagnostic{Severity: severity, Position: position, Message: message})
}

// full says that further errors would not be shown.
func (c *collector) full() bool { return c.errors > limits.IDLErrors }

func (c *collector) finish() Diagnostics {
	list := c.list.Sorted()
	if c.full() {
		list = append(list, Diagnostic{
			Position: schema.Position{File: "fulmar gen"},
			Message:  fmt.Sprintf("too many errors (limit %d), the rest is not shown", limits.IDLErrors),
		})
	}
	return list
}

// arrows shows a way through declarations. The middle of a long one is left out:
// it can be as long as the input.
func arrows(names []string) string {
	const shown = 5
	if len(names) > 2*shown {
		left := fmt.Sprintf("%d more", len(names)-2*shown)
		names = slices.Concat(names[:shown], []string{left}, names[len(names)-shown:])
	}
	return strings.Join(names, " -> ")
}

// clip shortens what a file says to what fits a message.
func clip(s string) string {
	const longest = 80
	if len(s) <= longest {
		return s
	}
	return s[:longest] + "..."
}
