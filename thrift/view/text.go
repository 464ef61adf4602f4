package view

import (
	"fmt"
	"reflect"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/logtext"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// textPrinter prints the bytes of structs, as that of package methods prints structs.
type textPrinter struct {
	walk
	logtext.Printer
}

// whole returns the text of the struct that b begins with.
func (p *textPrinter) whole(s *plan, b []byte) string {
	if s.unfit {
		p.failed = true
		return ""
	}
	p.Named(s.goType.String(), func() { p.fields(s, b) })
	return p.String()
}

func (p *textPrinter) fields(s *plan, b []byte) {
	if p.work < 0 {
		p.Print("(...)")
		return
	}
	if !p.Begin() {
		return
	}
	slots, _ := p.start(s, b)
	defer p.finish(slots)
	first := true
	for i := range s.fields {
		f := &s.fields[i]
		if p.Full() || p.failed {
			break
		}
		value := p.of(f, b, slots)
		if value == nil {
			continue
		}
		p.Label(f.label, first)
		first = false
		p.value(&f.value, value)
	}
	p.End()
}

func (p *textPrinter) value(v *planValue, b []byte) {
	if p.failed {
		p.Stop()
		return
	}
	switch v.form {
	case formStruct:
		p.fields(v.shape.plan(), b)
	case formText, formBinary:
		text, _ := Text(b)
		p.Quote(text, len(text))
	case formBytes:
		binary := Bytes(b)
		p.Quote(textOf(binary), len(binary))
	case formList:
		n, b, _ := v.list(b)
		p.Elements("[", n, "]", func(int) {
			var element []byte
			element, b = p.cut(b, v.element.wire)
			p.value(v.element, element)
		})
	case formPairs:
		n, b, _ := v.entries(b)
		p.Elements("{", n, "}", func(int) {
			var key, value []byte
			key, b = p.cut(b, v.key.wire)
			value, b = p.cut(b, v.element.wire)
			p.value(v.key, key)
			p.Print(": ")
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
		p.Float(thrift.DoubleAt(b, 0))
	case v.named || v.goType.Kind() == reflect.Array:
		p.Print(fmt.Sprint(v.leaf(b).Interface()))
	case v.wire == thrift.Bool:
		p.Bool(b[0] == 1)
	default:
		p.Int(v.integer(b))
	}
}

// entries prints a map: of a long one the first entries that came, and how many others
// did, even if some have the same key.
func (p *textPrinter) entries(v *planValue, b []byte) {
	list, _, others := p.distinct(v, b, limits.TextElements)
	entries := make([]logtext.Entry[[]byte], 0, len(list))
	for _, e := range list {
		key := textPrinter{walk{work: p.work}, p.Inner()}
		key.value(v.key, e.key)
		p.work, p.failed = key.work, p.failed || key.failed
		entries = append(entries, logtext.Entry[[]byte]{Key: key.Whole(), Value: e.value})
	}
	logtext.Entries(&p.Printer, entries, len(list)+others, func(value []byte) { p.value(v.element, value) })
}
