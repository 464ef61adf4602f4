package view

import (
	"encoding"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"strconv"

	"github.com/fulmar-rpc/fulmar/internal/logtext"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// String returns a text for logs, which is cut as that of a struct is.
func (l Numbers[T]) String() string { return listText(l.Len(), l.All()) }

// String returns a text for logs, which is cut as that of a struct is.
func (l List[E]) String() string { return listText(l.Len(), l.All()) }

// String returns a text for logs, which is cut as that of a struct is. Entries have the
// order of the message.
func (m Map[K, V]) String() string {
	next, stop := iter.Pull2(m.All())
	defer stop()
	var p logtext.Printer
	p.Elements("{", m.Len(), "}", func(int) {
		key, value, _ := next()
		printValue(&p, key)
		p.Print(": ")
		printValue(&p, value)
	})
	return p.String()
}

func listText[E any](n int, all iter.Seq2[int, E]) string {
	next, stop := iter.Pull2(all)
	defer stop()
	var p logtext.Printer
	p.Elements("[", n, "]", func(int) {
		_, element, _ := next()
		printValue(&p, element)
	})
	return p.String()
}

func printValue(p *logtext.Printer, value any) {
	switch value := value.(type) {
	case string:
		p.Quote(value, len(value))
	case []byte:
		p.Quote(textOf(value), len(value))
	default:
		p.Print(fmt.Sprint(value))
	}
}

// MarshalJSON returns the elements as encoding/json has those of a Go slice.
func (l Numbers[T]) MarshalJSON() ([]byte, error) { return listJSON(l.All()) }

// MarshalJSON returns the elements as encoding/json has those of a Go slice.
func (l List[E]) MarshalJSON() ([]byte, error) { return listJSON(l.All()) }

func listJSON[E any](all iter.Seq2[int, E]) ([]byte, error) {
	b := []byte("[")
	for i, element := range all {
		encoded, err := json.Marshal(element)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, encoded...)
	}
	return append(b, ']'), nil
}

// MarshalJSON returns an object if keys can be names in one, as strings, integers and what
// has MarshalText can, and otherwise a list of [thrift.Pair]. In an object there is the
// last entry of each key. Keys that are binaries are strings here, in which encoding/json
// replaces what is not UTF-8; the JSON of the view has them in base64.
func (m Map[K, V]) MarshalJSON() ([]byte, error) {
	if !isName(reflect.TypeFor[K]()) {
		return listJSON(func(yield func(int, thrift.Pair[K, V]) bool) {
			i := 0
			for key, value := range m.All() {
				if !yield(i, thrift.Pair[K, V]{Key: key, Value: value}) {
					return
				}
				i++
			}
		})
	}
	last, i := map[any]int{}, 0
	for key := range m.All() {
		last[key] = i
		i++
	}
	b := []byte("{")
	i = -1
	for key, value := range m.All() {
		if i++; last[key] != i {
			continue
		}
		name, err := nameOf(key)
		if err != nil {
			return nil, err
		}
		encoded, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(append(b, name...), ':'), encoded...)
	}
	return append(b, '}'), nil
}

// isName says that keys of a type can be names in a JSON object.
func isName(t reflect.Type) bool {
	return t.Comparable() && (t.Kind() == reflect.String || reflect.Int <= t.Kind() && t.Kind() <= reflect.Int64 || t.Implements(reflect.TypeFor[encoding.TextMarshaler]()))
}

// nameOf returns a key as a name in a JSON object, with quotes.
func nameOf(key any) ([]byte, error) {
	held := reflect.ValueOf(key)
	if held.Kind() == reflect.String {
		return json.Marshal(held.String())
	}
	if marshaler, ok := key.(encoding.TextMarshaler); ok {
		text, err := marshaler.MarshalText()
		if err != nil {
			return nil, err
		}
		return json.Marshal(string(text))
	}
	return strconv.AppendQuote(nil, strconv.FormatInt(held.Int(), 10)), nil
}
