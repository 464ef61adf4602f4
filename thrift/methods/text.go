package methods

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
	p := textPrinter{b: []byte(v.Type().Elem().String())}
	name := len(p.b)
	if v.IsNil() {
		return string(p.b) + "(nil)"
	}
	p.fields(v.Elem())
	if string(p.b[name:]) == "()" {
		p.b = p.b[:name]
	}
	if len(p.b) > limits.TextBytes {
		return wholeRunes(string(p.b), limits.TextBytes) + "..."
	}
	return string(p.b)
}

// textPrinter appends values to a text. It stops when that is long enough.
type textPrinter struct {
	b []byte
	// depth is how many structs deep it is.
	depth int
}

func (p *textPrinter) full() bool { return len(p.b) > limits.TextBytes }

func (p *textPrinter) print(text string) { p.b = append(p.b, text...) }

// isOpt says that t is thrift.Opt of some type.
func isOpt(t reflect.Type) bool { return isOfThrift(t, "Opt[") }

// isPair says that t is thrift.Pair of some types.
func isPair(t reflect.Type) bool { return isOfThrift(t, "Pair[") }

func isUnknown(t reflect.Type) bool { return t == reflect.TypeFor[thrift.Unknown]() }

func isOfThrift(t reflect.Type, prefix string) bool {
	return t.PkgPath() == reflect.TypeFor[thrift.UUID]().PkgPath() && strings.HasPrefix(t.Name(), prefix)
}

func (p *textPrinter) fields(s reflect.Value) {
	if p.depth == limits.TextDepth {
		p.print("(...)")
		return
	}
	p.depth++
	p.print("(")
	separator := ""
	for i := range s.NumField() {
		v, field := s.Field(i), s.Type().Field(i)
		if p.full() {
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
		p.print(separator + fieldName(field) + ": ")
		separator = ", "
		p.value(v)
	}
	p.print(")")
	p.depth--
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
			p.print("nil")
			return
		}
		p.value(v.Elem())
	case reflect.Struct:
		if isOpt(v.Type()) {
			p.opt(v)
		} else if isUnknown(v.Type()) {
			p.print(v.Interface().(thrift.Unknown).String())
		} else if text, ok := viewText(v); ok {
			p.print(text)
		} else {
			p.fields(v)
		}
	case reflect.Slice:
		switch element := v.Type().Elem(); {
		case element.Kind() == reflect.Uint8:
			p.quote(string(v.Bytes()[:min(v.Len(), limits.TextStringBytes+utf8.UTFMax)]), v.Len())
		case isPair(element):
			p.elements("{", v.Len(), "}", func(i int) { p.entry(v.Index(i).Field(0), v.Index(i).Field(1)) })
		default:
			p.elements("[", v.Len(), "]", func(i int) { p.value(v.Index(i)) })
		}
	case reflect.Map:
		p.entries(v)
	case reflect.String:
		p.quote(v.String(), v.Len())
	case reflect.Float64:
		p.b = strconv.AppendFloat(p.b, v.Float(), 'g', -1, 64)
	default: // bool, numbers, enums, uuids
		p.print(fmt.Sprint(v.Interface()))
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
		p.quote(value.String(), value.Len())
		return
	}
	p.print(o.Interface().(fmt.Stringer).String())
}

// quote prints the beginning of a text that has size bytes in all.
func (p *textPrinter) quote(text string, size int) {
	if size <= limits.TextStringBytes {
		p.b = strconv.AppendQuote(p.b, text)
		return
	}
	p.b = strconv.AppendQuote(p.b, wholeRunes(text, limits.TextStringBytes))
	p.print("... (" + strconv.Itoa(size) + " bytes)")
}

// wholeRunes returns the first n bytes of a text, less those of a character that does
// not end there.
func wholeRunes(text string, n int) string {
	for cut := n; cut > n-utf8.UTFMax; cut-- {
		if utf8.RuneStart(text[cut]) {
			return text[:cut]
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

func (p *textPrinter) entry(key, value reflect.Value) {
	p.value(key)
	p.print(": ")
	p.value(value)
}

// entries prints a map. The order of a long one is Go's, which is none: to sort all of
// its keys would take more time than a line of a log should.
func (p *textPrinter) entries(m reflect.Value) {
	type entry struct {
		text  string
		value reflect.Value
	}
	entries := make([]entry, 0, min(m.Len(), limits.TextElements))
	for iterator := m.MapRange(); len(entries) < cap(entries) && iterator.Next(); {
		key := textPrinter{depth: p.depth}
		key.value(iterator.Key())
		entries = append(entries, entry{string(key.b), iterator.Value()})
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.text, b.text) })
	p.elements("{", m.Len(), "}", func(i int) {
		p.print(entries[i].text + ": ")
		p.value(entries[i].value)
	})
}
