package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// Decode makes a document of what a parser of JSON or YAML returns: maps with text as
// keys, lists, text, numbers and booleans. What is wrong, Validate's findings among it, is
// reported at once, each with its place; then the document is not to be used.
func Decode(tree any) (Document, error) {
	var d decoder
	document := d.document(tree)
	return document, d.problems.err()
}

// decoder follows the Go types, so that a field which is added there is known here.
type decoder struct {
	problems problems
	// scope is the entry of Client.Methods that is being read, "" outside, and scopePath
	// its path.
	scope, scopePath string
	// denied are booleans there that say false.
	denied []denial
}

// denial is a boolean of a method that is false in so many words.
type denial struct{ scope, path, field string }

func (d *decoder) document(tree any) Document {
	var document Document
	d.object("", tree, reflect.ValueOf(&document).Elem())
	d.checkDenied(document.Client)
	document.validate(&d.problems)
	return document
}

// checkDenied finds booleans that a method says are false, and that hold for it all the
// same, because its service or all methods have them: the zero value says nothing.
func (d *decoder) checkDenied(client Client) {
	for _, denied := range d.denied {
		merged := reflect.ValueOf(client.scope(denied.scope))
		for name := range strings.SplitSeq(denied.field, ".") {
			merged = fieldsOf(merged).values[name]
		}
		if merged.Bool() {
			d.problems.add(denied.path, "false does not take back what is set for more methods (set it for those that want it)")
		}
	}
}

// object reads the fields of a struct.
func (d *decoder) object(path string, tree any, into reflect.Value) {
	object, ok := tree.(map[string]any)
	if !ok {
		d.problems.add(path, "%s (want an object)", describe(tree))
		return
	}
	fields := fieldsOf(into)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		field, known := fields.values[name]
		if !known {
			d.problems.unknown(path, "unknown field", name, fields.names)
			continue
		}
		d.value(below(path, name), object[name], field)
	}
}

// value reads one field.
func (d *decoder) value(path string, tree any, into reflect.Value) {
	switch pointer := into.Addr().Interface().(type) {
	case *time.Duration:
		d.duration(path, tree, pointer)
	case *Codes:
		d.codes(path, tree, pointer)
	default:
		d.kind(path, tree, into)
	}
}

func (d *decoder) kind(path string, tree any, into reflect.Value) {
	switch into.Kind() {
	case reflect.Struct:
		d.object(path, tree, into)
	case reflect.Map:
		d.methods(path, tree, into)
	case reflect.Int:
		number, err := integer(tree)
		if err != nil {
			d.problems.add(path, "%w", err)
			return
		}
		into.SetInt(number)
	case reflect.Bool:
		value, ok := tree.(bool)
		if !ok {
			d.problems.add(path, "%s (want true or false)", describe(tree))
			return
		}
		into.SetBool(value)
		if !value && d.scope != "" {
			d.denied = append(d.denied, denial{d.scope, path, strings.TrimPrefix(path, d.scopePath+".")})
		}
	case reflect.String:
		text, ok := tree.(string)
		if !ok {
			d.problems.add(path, "%s (want text)", describe(tree))
			return
		}
		into.SetString(text)
	default:
		d.problems.add(path, "fields of type %v cannot be read", into.Type())
	}
}

// methods reads what is set for services and methods.
func (d *decoder) methods(path string, tree any, into reflect.Value) {
	object, ok := tree.(map[string]any)
	switch {
	case !ok:
		d.problems.add(path, "%s (want an object with the names of services or methods)", describe(tree))
		return
	case len(object) > limits.PolicyMethods:
		d.problems.add(path, "%d names (limit %d)", len(object), limits.PolicyMethods)
		return
	case len(object) == 0:
		return
	}
	into.Set(reflect.MakeMapWithSize(into.Type(), len(object)))
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if into.Type().Elem() == reflect.TypeFor[Method]() {
			d.scope, d.scopePath = name, entry(path, name)
		}
		value := reflect.New(into.Type().Elem()).Elem()
		d.value(entry(path, name), object[name], value)
		into.SetMapIndex(reflect.ValueOf(name), value)
		d.scope = ""
	}
}

func (d *decoder) duration(path string, tree any, into *time.Duration) {
	text, ok := tree.(string)
	if !ok {
		if number, err := integer(tree); err == nil {
			d.problems.add(path, "%d has no unit (want text such as \"300ms\")", number)
			return
		}
		d.problems.add(path, "%s (want text such as \"300ms\")", describe(tree))
		return
	}
	duration, err := time.ParseDuration(text)
	if err != nil {
		what := "is no duration"
		if _, err := strconv.ParseFloat(text, 64); err == nil {
			what = "has no unit"
		}
		d.problems.add(path, "%s %s (want text such as \"300ms\")", quoted(text), what)
		return
	}
	*into = duration
}

func (d *decoder) codes(path string, tree any, into *Codes) {
	list, ok := tree.([]any)
	switch {
	case !ok:
		d.problems.add(path, "%s (want a list of codes such as [\"unavailable\"])", describe(tree))
		return
	case len(list) == 0:
		d.problems.add(path, "the list is empty (leave it out for the default)")
		return
	case len(list) > codeBits:
		d.problems.add(path, "%d codes (limit %d)", len(list), codeBits)
		return
	}
	for i, element := range list {
		place := fmt.Sprintf("%s[%d]", path, i)
		name, ok := element.(string)
		if !ok {
			d.problems.add(place, "%s (want the name of a code such as \"unavailable\")", describe(element))
			continue
		}
		code, err := parseCode(name)
		if err != nil {
			d.problems.add(place, "%w", err)
			continue
		}
		*into |= CodesOf(code)
	}
}

// fields are those of a struct as documents name them, with those of embedded structs.
type fields struct {
	names  []string
	values map[string]reflect.Value
}

func fieldsOf(structure reflect.Value) fields {
	all := fields{values: map[string]reflect.Value{}}
	all.add(structure)
	return all
}

func (f *fields) add(structure reflect.Value) {
	for i := range structure.NumField() {
		field := structure.Type().Field(i)
		if field.Anonymous {
			f.add(structure.Field(i))
			continue
		}
		name := snake(field.Name)
		f.names = append(f.names, name)
		f.values[name] = structure.Field(i)
	}
}

// integer returns the number that a parser has read, if it is a whole one.
func integer(tree any) (int64, error) {
	switch number := tree.(type) {
	case int:
		return int64(number), nil
	case int64:
		return number, nil
	case uint64:
		if number <= math.MaxInt64 {
			return int64(number), nil
		}
	case float64:
		// 2^53 and more are not exact, and no number in a document is near it.
		if number == math.Trunc(number) && math.Abs(number) < 1<<53 {
			return int64(number), nil
		}
	case json.Number:
		if whole, err := number.Int64(); err == nil {
			return whole, nil
		}
		if fraction, err := number.Float64(); err == nil {
			if whole, err := integer(fraction); err == nil {
				return whole, nil
			}
		}
	}
	return 0, fmt.Errorf("%s (want a whole number)", describe(tree))
}

// describe says what a parser has read, for errors.
func describe(tree any) string {
	switch value := tree.(type) {
	case nil:
		return "nothing"
	case string:
		return "text " + quoted(value)
	case bool, int, int64, uint64, float64:
		return fmt.Sprint(value)
	case json.Number:
		return cut(value.String())
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return fmt.Sprintf("a %T", tree)
}

// cut returns text, and not all of a long one.
func cut(text string) string {
	if len(text) > quotedBytesMax {
		return text[:quotedBytesMax] + "..."
	}
	return text
}
