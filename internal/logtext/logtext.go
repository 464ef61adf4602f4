// Package logtext writes values as a text of one line for logs, which is as long as such
// a line may be whatever the values are.
package logtext

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// Printer appends to a text. Once that is Full, whoever prints may stop, so that of a long
// message little is looked at. The zero Printer has printed nothing. One goroutine may use
// it at a time.
type Printer struct {
	b []byte
	// depth is how many structs deep it is.
	depth   int
	stopped bool
}

// Full reports whether the text is long enough.
func (p *Printer) Full() bool { return len(p.b) > limits.TextBytes || p.stopped }

// Stop makes the Printer full, for one whose text nobody is going to use.
func (p *Printer) Stop() { p.stopped = true }

// String returns the text, cut if it is longer than TextBytes.
func (p *Printer) String() string {
	if len(p.b) > limits.TextBytes {
		return wholeRunes(string(p.b), limits.TextBytes) + "..."
	}
	return string(p.b)
}

// Whole returns the text as it is, for a part of another one.
func (p *Printer) Whole() string { return string(p.b) }

// Named prints a name and, by fields, what is in a struct of that name. If that is
// nothing the name stands alone.
func (p *Printer) Named(name string, fields func()) {
	p.Print(name)
	end := len(p.b)
	fields()
	if string(p.b[end:]) == "()" {
		p.b = p.b[:end]
	}
}

// Inner returns a Printer for a part of the text that is needed by itself.
func (p *Printer) Inner() Printer { return Printer{depth: p.depth} }

// Print appends a text as it is.
func (p *Printer) Print(text string) { p.b = append(p.b, text...) }

// Bool appends a bool.
func (p *Printer) Bool(value bool) { p.b = strconv.AppendBool(p.b, value) }

// Int appends an integer.
func (p *Printer) Int(value int64) { p.b = strconv.AppendInt(p.b, value, 10) }

// Float appends a double.
func (p *Printer) Float(value float64) { p.b = strconv.AppendFloat(p.b, value, 'g', -1, 64) }

// Quote appends a text in quotes that has size bytes in all, of which text has all, or
// more than TextStringBytes.
func (p *Printer) Quote(text string, size int) {
	if size <= limits.TextStringBytes {
		p.b = strconv.AppendQuote(p.b, text)
		return
	}
	p.b = strconv.AppendQuote(p.b, wholeRunes(text, limits.TextStringBytes))
	p.Print("... (" + strconv.Itoa(size) + " bytes)")
}

// wholeRunes returns the first n bytes of a text, less those of a character that does
// not end there.
func wholeRunes(text string, n int) string {
	for end := n; end > n-utf8.UTFMax; end-- {
		if utf8.RuneStart(text[end]) {
			return text[:end]
		}
	}
	return text[:n] // it is not UTF-8
}

// Begin begins a struct, which End ends, unless it is too deep: then it is done.
func (p *Printer) Begin() bool {
	if p.depth == limits.TextDepth {
		p.Print("(...)")
		return false
	}
	p.depth++
	p.Print("(")
	return true
}

// Label prints the name of a field; first says that it is the first one in its struct.
func (p *Printer) Label(name string, first bool) {
	if !first {
		p.Print(", ")
	}
	p.Print(name)
	p.Print(": ")
}

// End ends a struct.
func (p *Printer) End() {
	p.Print(")")
	p.depth--
}

// Elements prints as many of n elements as a container may have, each by element.
func (p *Printer) Elements(open string, n int, end string, element func(i int)) {
	p.Print(open)
	for i := range min(n, limits.TextElements) {
		if p.Full() {
			return
		}
		if i > 0 {
			p.Print(", ")
		}
		element(i)
	}
	if more := n - limits.TextElements; more > 0 {
		p.Print(", ... " + strconv.Itoa(more) + " more")
	}
	p.Print(end)
}

// Entry is an entry of a map, with the text of its key.
type Entry[V any] struct {
	Key   string
	Value V
}

// Entries prints a map of n entries, in the order of their texts: those that are given,
// which are all, or TextElements of them.
func Entries[V any](p *Printer, entries []Entry[V], n int, value func(V)) {
	slices.SortFunc(entries, func(a, b Entry[V]) int { return strings.Compare(a.Key, b.Key) })
	p.Elements("{", n, "}", func(i int) {
		p.Print(entries[i].Key)
		p.Print(": ")
		value(entries[i].Value)
	})
}
