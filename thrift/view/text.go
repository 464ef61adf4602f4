package view

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// textPrinter appends values to a text for logs, as that of package methods does: it
// stops when that is long enough, so that of a long message little is looked at.
type textPrinter struct {
	walk
	b []byte
	// depth is how many structs deep it is.
	depth int
}

// whole returns the text of the struct that b begins with.
func (p *textPrinter) whole(s *plan, b []byte) string {
	if s.unfit {
		p.failed = true
		return ""
	}
	p.print(s.goType.String())
	name := len(p.b)
	p.fields(s, b)
	if string(p.b[name:]) == "()" {
		p.b = p.b[:name]
	}
	if len(p.b) > limits.TextBytes {
		return wholeRunes(string(p.b), limits.TextBytes) + "..."
	}
	return string(p.b)
}

func (p *textPrinter) full() bool { return len(p.b) > limits.TextBytes || p.failed }

func (p *textPrinter) print(text string) { p.b = append(p.b, text...) }

func (p *textPrinter) fields(s *plan, b []byte) {
	if p.depth == limits.TextDepth {
		p.print("(...)")
		return
	}
	slots, _ := p.start(s, b)
	defer p.finish(slots)
	p.depth++
	p.print("(")
	separator := ""
	for i := range s.fields {
		f := &s.fields[i]
		if p.full() {
			break
		}
		value := f.of(b, slots)
		if value == nil {
			continue
		}
		p.print(separator + f.label + ": ")
		separator = ", "
		p.value(&f.value, value)
	}
	p.print(")")
	p.depth--
}

func (p *textPrinter) value(v *planValue, b []byte) {
	switch v.form {
	case formStruct:
		p.fields(v.shape.plan(), b)
	case formText, formBinary:
		text, _ := Text(b)
		p.quote(text)
	case formList:
		n, b, _ := v.list(b)
		p.elements("[", n, "]", func(int) {
			var element []byte
			element, b = p.cut(b, v.element.wire)
			p.value(v.element, element)
		})
	case formPairs:
		n, b, _ := v.entries(b)
		p.elements("{", n, "}", func(int) {
			var key, value []byte
			key, b = p.cut(b, v.key.wire)
			value, b = p.cut(b, v.element.wire)
			p.value(v.key, key)
			p.print(": ")
			p.value(v.element, value)
		})
	case formMap:
		p.entries(v, b)
	default:
		p.number(v, b)
	}
}

// number prints a value of fixed size.
func (p *textPrinter) number(v *planValue, b []byte) {
	switch {
	case v.wire == thrift.Double && (!v.named || !v.opt):
		p.b = strconv.AppendFloat(p.b, thrift.DoubleAt(b, 0), 'g', -1, 64)
	case v.named || v.goType.Kind() == reflect.Array:
		p.print(fmt.Sprint(v.leaf(b).Interface()))
	case v.wire == thrift.Bool:
		p.b = strconv.AppendBool(p.b, b[0] == 1)
	default:
		p.b = strconv.AppendInt(p.b, v.integer(b), 10)
	}
}

func (p *textPrinter) quote(text string) {
	if len(text) <= limits.TextStringBytes {
		p.b = strconv.AppendQuote(p.b, text)
		return
	}
	p.b = strconv.AppendQuote(p.b, wholeRunes(text, limits.TextStringBytes))
	p.print("... (" + strconv.Itoa(len(text)) + " bytes)")
}

// wholeRunes returns the first n bytes of a text, less those of a character that does
// not end there.
func wholeRunes(text string, n int) string {
	for at := n; at > n-utf8.UTFMax; at-- {
		if utf8.RuneStart(text[at]) {
			return text[:at]
		}
	}
	return text[:n] // it is not UTF-8
}

// elements prints as many of n elements as a container may have.
func (p *textPrinter) elements(open string, n int, end string, element func(i int)) {
	p.print(open)
	for i := range min(n, limits.TextElements) {
		if p.full() {
			return
		}
		if i > 0 {
			p.print(", ")
		}
		element(i)
	}
	if more := n - limits.TextElements; more > 0 {
		p.print(", ... " + strconv.Itoa(more) + " more")
	}
	p.print(end)
}

// entries prints a map: of a long one the first entries that came, and how many others
// did, even if some have the same key.
func (p *textPrinter) entries(v *planValue, b []byte) {
	type entry struct {
		text  string
		value []byte
	}
	list, _, others := p.distinct(v, b, limits.TextElements)
	entries := make([]entry, 0, len(list))
	for _, e := range list {
		key := textPrinter{depth: p.depth}
		key.value(v.key, e.key)
		p.failed = p.failed || key.failed
		entries = append(entries, entry{string(key.b), e.value})
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.text, b.text) })
	p.elements("{", len(list)+others, "}", func(i int) {
		p.print(entries[i].text + ": ")
		p.value(v.element, entries[i].value)
	})
}
