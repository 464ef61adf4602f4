package emit

import (
	"bytes"
	"fmt"
	"go/format"
	"slices"
)

// layout makes of printed declarations what gofmt would. It fails if they are
// not Go, as far as it looks. Its result does not share memory with source.
type layout func(source []byte) ([]byte, error)

var (
	_ layout = gofmt
	_ layout = indent
)

// gofmt is the layout of everything. It parses the source.
func gofmt(source []byte) ([]byte, error) {
	const clause = "package p\n"
	formatted, err := format.Source(append([]byte(clause), source...))
	return bytes.TrimPrefix(formatted, []byte(clause)), err
}

// settle is gofmt for what it has laid out once: it may want to change that again, as
// where it drops an empty comment behind which it has aligned fields.
func settle(source []byte) ([]byte, error) {
	for range 4 {
		again, err := gofmt(source)
		if err != nil || bytes.Equal(again, source) {
			return source, err
		}
		source = again
	}
	return source, nil
}

// indent is the layout of codecs, in which nothing has to be aligned: gofmt
// would change nothing but the tabs in front of lines. Codecs are three
// quarters of what is generated, and with gofmt they took two thirds of the
// time of a run: 20,000 structs of ten fields 7.8 s of processor time instead
// of 3.0 s. What definitions say reaches them as identifiers and quoted
// texts only, so it is enough to check that brackets and quotes are in pairs.
func indent(source []byte) ([]byte, error) {
	out := make([]byte, 0, len(source)+len(source)/2)
	var open brackets
	number, continued := 0, false
	for line := range bytes.Lines(source) {
		number++
		if bytes.HasPrefix(line, []byte("func ")) && !bytes.HasSuffix(line, []byte("{\n")) {
			return nil, fmt.Errorf("line %d: a function on one line, which gofmt breaks if names are long", number)
		}
		level := len(open)
		if err := open.pass(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		level = min(level, len(open))
		if continued {
			level++
		}
		continued = bytes.HasSuffix(line, []byte("&&\n")) || bytes.HasSuffix(line, []byte("||\n")) || bytes.HasSuffix(line, []byte(" +\n"))
		switch {
		case line[0] == '\n':
			level = 0
		case bytes.HasPrefix(line, []byte("} else")):
			level--
		case bytes.Equal(line, []byte("fields:\n")): // a label
			level--
		case bytes.HasPrefix(line, []byte("case ")), bytes.HasPrefix(line, []byte("default:")):
			level--
		}
		for range level {
			out = append(out, '\t')
		}
		out = append(out, line...)
	}
	if len(open) > 0 {
		return nil, fmt.Errorf("line %d: the end, expected %q", number, open)
	}
	return slices.Clip(out), nil
}

// brackets are those that are open, as what closes them.
type brackets []byte

// pass goes over a line of Go without raw strings, characters and comments of
// more than one line.
func (b *brackets) pass(line []byte) error {
	quoted := false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case quoted && c != '\n':
		case quoted || c == '`' || c == '\'' || c < ' ' && c != '\n':
			return fmt.Errorf("unexpected %q", c)
		case c == '/' && bytes.HasPrefix(line[i:], []byte("// ")):
			return nil
		case c == '(':
			*b = append(*b, ')')
		case c == '[':
			*b = append(*b, ']')
		case c == '{':
			*b = append(*b, '}')
		case c == ')' || c == ']' || c == '}':
			last := len(*b) - 1
			if last < 0 || (*b)[last] != c {
				return fmt.Errorf("unexpected %q", c)
			}
			*b = (*b)[:last]
		}
	}
	return nil
}
