package view

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/fulmar-rpc/fulmar/thrift"
)

// jsonPrinter appends the JSON of values to a text: what encoding/json makes of the
// struct, or package methods.
type jsonPrinter struct {
	walk
	b []byte
	// keys64: keys of maps that are strings are binaries.
	keys64 bool
}

func (p *jsonPrinter) print(text string) { p.b = append(p.b, text...) }

// fields prints the struct that b begins with.
func (p *jsonPrinter) fields(s *plan, b []byte) {
	slots, _ := p.start(s, b)
	defer p.finish(slots)
	p.failed = p.failed || s.unfitJSON
	outer := p.keys64
	p.print("{")
	separator := ""
	for i := range s.fields {
		if p.failed {
			break
		}
		f := &s.fields[i]
		value := p.of(f, b, slots)
		if f.hidden || f.omitZero && value == nil || f.omitEmpty && f.isEmpty(value) {
			continue
		}
		p.print(separator + f.name)
		separator = ","
		p.keys64 = f.keys64
		p.value(&f.value, value)
	}
	p.print("}")
	p.keys64 = outer
}

// isEmpty says that omitempty leaves out a field.
func (f *planField) isEmpty(b []byte) bool {
	if f.value.opt || f.value.pointer {
		return b == nil && !f.value.opt
	}
	return f.value.isEmpty(b)
}

// value prints a value, which is nothing if b is nil.
func (p *jsonPrinter) value(v *planValue, b []byte) {
	if !v.marshals && v.isNil(b) || b == nil && (v.opt || v.pointer) {
		p.print("null")
		return
	}
	switch v.form {
	case formStruct:
		p.fields(v.shape.plan(), b)
	case formList:
		p.list(v, b)
	case formBytes:
		p.base64(Bytes(b))
	case formPairs:
		p.pairs(v, b)
	case formMap:
		p.goMap(v, b)
	default:
		p.leaf(v, b)
	}
}

// leaf prints a scalar, string or binary.
func (p *jsonPrinter) leaf(v *planValue, b []byte) {
	switch {
	case v.marshals:
		p.marshal(v.leaf(b).Interface())
	case v.form == formText:
		text, _ := Text(b)
		p.quote(text)
	case v.form == formBinary:
		binary, _ := Binary(b)
		p.base64(binary)
	case v.wire == thrift.Bool:
		p.b = strconv.AppendBool(p.b, b[0] == 1)
	case v.wire == thrift.Double:
		p.double(thrift.DoubleAt(b, 0))
	case v.wire == thrift.UUIDType:
		p.marshal(v.leaf(b).Interface())
	default:
		p.b = strconv.AppendInt(p.b, v.integer(b), 10)
	}
}

func (p *jsonPrinter) base64(binary []byte) {
	p.print(`"`)
	p.b = base64.StdEncoding.AppendEncode(p.b, binary)
	p.print(`"`)
}

func (p *jsonPrinter) marshal(v any) {
	text, err := json.Marshal(v)
	p.failed = p.failed || err != nil
	p.b = append(p.b, text...)
}

// quote prints a string. What has to be escaped encoding/json escapes.
func (p *jsonPrinter) quote(text string) {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			p.marshal(text)
			return
		}
	}
	p.b = append(append(append(p.b, '"'), text...), '"')
}

// double prints a number. Those that are long otherwise have an exponent.
func (p *jsonPrinter) double(number float64) {
	const small, large = 1e-6, 1e21
	if size := math.Abs(number); size != 0 && (size < small || size >= large) || math.IsNaN(number) || math.IsInf(number, 0) {
		p.marshal(number)
		return
	}
	p.b = strconv.AppendFloat(p.b, number, 'f', -1, 64)
}

func (p *jsonPrinter) list(v *planValue, b []byte) {
	n, b, _ := v.list(b)
	p.print("[")
	for i := range n {
		if p.failed {
			break
		}
		if i > 0 {
			p.print(",")
		}
		var element []byte
		element, b = p.cut(b, v.element.wire)
		p.value(v.element, element)
	}
	p.print("]")
}

// pairs prints a map as a list.
func (p *jsonPrinter) pairs(v *planValue, b []byte) {
	n, b, _ := v.entries(b)
	p.print("[")
	for i := range n {
		if p.failed {
			break
		}
		var entry walkEntry
		entry, b = p.entry(v, b)
		p.pair(v, i, entry)
	}
	p.print("]")
}

// pair prints an element of such a list.
func (p *jsonPrinter) pair(v *planValue, i int, entry walkEntry) {
	if i > 0 {
		p.print(",")
	}
	p.print(`{"key":`)
	p.value(v.key, entry.key)
	p.print(`,"value":`)
	p.value(v.element, entry.value)
	p.print("}")
}

// goMap prints a map that is one in Go, in the order of its keys' texts.
func (p *jsonPrinter) goMap(v *planValue, b []byte) {
	list, _, _ := p.distinct(v, b, math.MaxInt)
	texts := make([]string, len(list))
	order := make([]int, len(list))
	for i, entry := range list {
		order[i] = i
		if texts[i] = p.keyText(v.key, entry.key); p.failed {
			return
		}
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(texts[a], texts[b]) })
	if v.key.form == formStruct {
		p.print("[")
		for i, at := range order {
			p.pair(v, i, list[at])
		}
		p.print("]")
		return
	}
	p.print("{")
	for i, at := range order {
		if p.failed {
			break
		}
		if i > 0 {
			p.print(",")
		}
		p.quote(texts[at])
		p.print(":")
		p.value(v.element, list[at].value)
	}
	p.print("}")
}

// keyText is what JSON makes of the key of a map; of a struct what it is sorted by.
func (p *jsonPrinter) keyText(v *planValue, b []byte) string {
	switch {
	case v.form == formStruct:
		key := jsonPrinter{walk: walk{work: p.work}}
		key.fields(v.shape.plan(), b)
		p.work, p.failed = key.work, p.failed || key.failed
		return string(key.b)
	case v.form == formText && p.keys64:
		text, _ := Binary(b)
		return base64.StdEncoding.EncodeToString(text)
	case v.form == formText:
		text, _ := Text(b)
		return text
	case v.wire == thrift.Bool:
		return strconv.FormatBool(b[0] == 1)
	case v.wire == thrift.Double:
		number := thrift.DoubleAt(b, 0)
		p.failed = p.failed || math.IsInf(number, 0)
		return strconv.FormatFloat(number, 'g', -1, 64)
	case v.goType.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		text, err := v.leaf(b).Interface().(encoding.TextMarshaler).MarshalText()
		p.failed = p.failed || err != nil
		return string(text)
	}
	return strconv.FormatInt(v.integer(b), 10)
}
