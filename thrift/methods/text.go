package methods

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/logtext"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// Text returns a generated struct as a text of one line for logs, such as
//
//	orders.Order(id: 7, status: PAID, items: [(sku: "a", quantity: 1)], totals: {"x": 3})
//
// Fields are called as in JSON, and those that hold nothing are left out. Entries of
// maps are in the order of their texts, unless there are more than 32 (TextElements).
// Containers with more elements, strings and binaries beyond 1 KiB (TextStringBytes),
// and what is deeper than 10 structs (TextDepth) are cut, and so is a text that becomes
// longer than 4 KiB (TextBytes). It never panics.
func Text(s any) string {
	v := reflect.ValueOf(s)
	switch {
	case s == nil:
		return "nil"
	case v.Kind() != reflect.Pointer || v.Type().Elem().Kind() != reflect.Struct:
		return v.Type().String()
	}
	p := textPrinter{}
	name := v.Type().Elem().String()
	if v.IsNil() {
		return name + "(nil)"
	}
	p.Named(name, func() { p.fields(v.Elem()) })
	return p.String()
}

// textPrinter prints what reflection shows. It stops when the text is long enough.
type textPrinter struct{ logtext.Printer }

// isOpt says that t is thrift.Opt of some type.
func isOpt(t reflect.Type) bool { return isOfThrift(t, "Opt[") }

// isPair says that t is thrift.Pair of some types.
func isPair(t reflect.Type) bool { return isOfThrift(t, "Pair[") }

// isSet says that t is thrift.SetOf of some type.
func isSet(t reflect.Type) bool { return isOfThrift(t, "SetOf[") }

func isUnknown(t reflect.Type) bool { return t == reflect.TypeFor[thrift.Unknown]() }

func isOfThrift(t reflect.Type, prefix string) bool {
	return t.PkgPath() == reflect.TypeFor[thrift.UUID]().PkgPath() && strings.HasPrefix(t.Name(), prefix)
}

func (p *textPrinter) fields(s reflect.Value) {
	if !p.Begin() {
		return
	}
	first := true
	for i := range s.NumField() {
		v, field := s.Field(i), s.Type().Field(i)
		if p.Full() {
			break
		}
		if !field.IsExported() {
			continue // a Struct that somebody wrote
		}
		switch v.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			if v.IsNil() {
				continue
			}
		case reflect.Struct:
			if (isOpt(v.Type()) || isUnknown(v.Type())) && v.IsZero() {
				continue
			}
		}
		p.Label(fieldName(field), first)
		first = false
		p.value(v)
	}
	p.End()
}

// fieldName is how JSON calls a field.
func fieldName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	if name == "" || name == "-" {
		return field.Name
	}
	return name
}

func (p *textPrinter) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			p.Print("nil")
			return
		}
		p.value(v.Elem())
	case reflect.Struct:
		if isOpt(v.Type()) {
			p.opt(v)
		} else if isUnknown(v.Type()) {
			p.Print(v.Interface().(thrift.Unknown).String())
		} else if text, ok := viewText(v); ok {
			p.Print(text)
		} else {
			p.fields(v)
		}
	case reflect.Slice:
		switch element := v.Type().Elem(); {
		case element.Kind() == reflect.Uint8:
			p.Quote(string(v.Bytes()[:min(v.Len(), limits.TextStringBytes+utf8.UTFMax)]), v.Len())
		case isPair(element):
			p.Elements("{", v.Len(), "}", func(i int) { p.entry(v.Index(i).Field(0), v.Index(i).Field(1)) })
		default:
			p.Elements("[", v.Len(), "]", func(i int) { p.value(v.Index(i)) })
		}
	case reflect.Map:
		if isSet(v.Type()) {
			p.set(v)
		} else {
			p.entries(v)
		}
	case reflect.String:
		p.Quote(v.String(), v.Len())
	case reflect.Float64:
		p.Float(v.Float())
	default: // bool, numbers, enums, uuids
		p.Print(fmt.Sprint(v.Interface()))
	}
}

// viewText returns what a view says of itself, which holds nothing that reflection shows.
func viewText(v reflect.Value) (text string, ok bool) {
	if !v.CanAddr() {
		return "", false
	}
	view, ok := v.Addr().Interface().(interface {
		thrift.Struct
		fmt.Stringer
		BindThrift(b []byte) int
	})
	if !ok {
		return "", false
	}
	return view.String(), true
}

// opt prints the value of an Opt that is set.
func (p *textPrinter) opt(o reflect.Value) {
	if value := o.Field(0); value.Kind() == reflect.String {
		p.Quote(value.String(), value.Len())
		return
	}
	p.Print(o.Interface().(fmt.Stringer).String())
}

func (p *textPrinter) entry(key, value reflect.Value) {
	p.value(key)
	p.Print(": ")
	p.value(value)
}

// set prints a set that is a map, as the list that it would be otherwise.
func (p *textPrinter) set(s reflect.Value) {
	texts := make([]string, 0, min(s.Len(), limits.TextElements))
	for iterator := s.MapRange(); len(texts) < cap(texts) && iterator.Next(); {
		element := textPrinter{p.Inner()}
		element.value(iterator.Key())
		texts = append(texts, element.Whole())
	}
	slices.Sort(texts)
	p.Elements("[", s.Len(), "]", func(i int) { p.Print(texts[i]) })
}

// entries prints a map. The order of a long one is Go's, which is none: to sort all of
// its keys would take more time than a line of a log should.
func (p *textPrinter) entries(m reflect.Value) {
	entries := make([]logtext.Entry[reflect.Value], 0, min(m.Len(), limits.TextElements))
	for iterator := m.MapRange(); len(entries) < cap(entries) && iterator.Next(); {
		key := textPrinter{p.Inner()}
		key.value(iterator.Key())
		entries = append(entries, logtext.Entry[reflect.Value]{Key: key.Whole(), Value: iterator.Value()})
	}
	logtext.Entries(&p.Printer, entries, m.Len(), p.value)
}
