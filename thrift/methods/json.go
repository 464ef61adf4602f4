package methods

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// MarshalJSON returns s, a generated struct, as encoding/json would if that knew
// every key that a map of Thrift can have. Bools and doubles as keys become their
// texts, and binaries base64; a map with structs as keys becomes a list of objects
// with a key and a value, as maps are that are Pairs in Go. binaryKeys are the Go
// names of fields in which string keys are binaries. A value that contains itself, or
// that would nest deeper than 256 (JSONDepth), is an error.
func MarshalJSON(s any, binaryKeys ...string) ([]byte, error) {
	v := reflect.ValueOf(s)
	if nestsDeeper(v, limits.JSONDepth) {
		// encoding/json finds no cycle that leads through this function: it starts to
		// count anew, until the stack is at its end.
		return nil, fmt.Errorf("thrift: %v contains itself, or would nest deeper than %d in JSON", v.Type(), limits.JSONDepth)
	}
	fields := jsonFields(v.Type(), binaryKeys)
	shadow := reflect.New(reflect.StructOf(fields)).Elem()
	for i := range fields {
		shadow.Field(i).Set(toJSON(v.FieldByIndex(fields[i].Index), fields[i].Type))
	}
	return json.Marshal(shadow.Interface())
}

// nestsDeeper reports whether objects and lists that v becomes nest more than limit
// levels deep.
func nestsDeeper(v reflect.Value, limit int) bool {
	switch v.Kind() {
	case reflect.Pointer:
		return !v.IsNil() && nestsDeeper(v.Elem(), limit)
	case reflect.Struct:
		if isOpt(v.Type()) {
			return false
		}
		for i := range v.NumField() {
			if limit == 0 || nestsDeeper(v.Field(i), limit-1) {
				return true
			}
		}
	case reflect.Slice:
		if !holdsValues(v.Type().Elem()) {
			return limit == 0
		}
		for i := range v.Len() {
			if limit == 0 || nestsDeeper(v.Index(i), limit-1) {
				return true
			}
		}
	case reflect.Map:
		if !holdsValues(v.Type().Elem()) {
			return limit == 0
		}
		for iterator := v.MapRange(); iterator.Next(); {
			if limit == 0 || nestsDeeper(iterator.Value(), limit-1) {
				return true
			}
		}
	}
	return false
}

// holdsValues reports whether a value of type t can hold others.
func holdsValues(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Struct, reflect.Slice, reflect.Map:
		return true
	}
	return false
}

// jsonFields returns the fields of a struct with types that encoding/json knows, and the
// Index that they have in t. Those that are not exported, which plugins may add, it cannot
// see.
func jsonFields(t reflect.Type, binaryKeys []string) []reflect.StructField {
	fields := make([]reflect.StructField, 0, t.NumField())
	for i := range t.NumField() {
		field := t.Field(i)
		if !field.IsExported() {
			continue
		}
		field.Type = jsonType(field.Type, slices.Contains(binaryKeys, field.Name))
		field.Anonymous = false // what is embedded is a field in JSON
		fields = append(fields, field)
	}
	return fields
}

// jsonType returns the type that stands for t: t itself, unless it has a map that
// encoding/json does not know.
func jsonType(t reflect.Type, binaryKeys bool) reflect.Type {
	switch {
	case isSet(t):
		return t
	case t.Kind() == reflect.Map:
		element := jsonType(t.Elem(), binaryKeys)
		switch key := t.Key(); {
		case key.Kind() == reflect.Bool:
			return reflect.MapOf(reflect.TypeFor[boolKey](), element)
		case key.Kind() == reflect.Float64:
			return reflect.MapOf(reflect.TypeFor[doubleKey](), element)
		case key.Kind() == reflect.String && binaryKeys:
			return reflect.MapOf(reflect.TypeFor[binaryKey](), element)
		case key.Kind() == reflect.Struct:
			return reflect.SliceOf(jsonPair(key, element))
		case element != t.Elem():
			return reflect.MapOf(key, element)
		}
	case t.Kind() == reflect.Slice:
		if element := jsonType(t.Elem(), binaryKeys); element != t.Elem() {
			return reflect.SliceOf(element)
		}
	case isPair(t):
		key, value := t.Field(0).Type, t.Field(1).Type
		jsonKey, jsonValue := jsonType(key, binaryKeys), jsonType(value, binaryKeys)
		if jsonKey != key || jsonValue != value {
			return jsonPair(jsonKey, jsonValue)
		}
	}
	return t
}

// jsonPair returns a struct like Pair.
func jsonPair(key, value reflect.Type) reflect.Type {
	like := reflect.TypeFor[thrift.Pair[bool, bool]]()
	return reflect.StructOf([]reflect.StructField{
		{Name: "Key", Type: key, Tag: like.Field(0).Tag},
		{Name: "Value", Type: value, Tag: like.Field(1).Tag},
	})
}

// toJSON returns v as a value of the type that jsonType has returned for its own.
func toJSON(v reflect.Value, to reflect.Type) reflect.Value {
	if v.Type() == to {
		return v
	}
	if v.Kind() == reflect.Map && to.Kind() == reflect.Slice {
		return entriesToJSON(v, to)
	}
	return convert(v, to, toJSON)
}

// fromJSON is the reverse of toJSON.
func fromJSON(v reflect.Value, to reflect.Type) reflect.Value {
	if v.Type() == to {
		return v
	}
	if v.Kind() == reflect.Slice && to.Kind() == reflect.Map {
		if v.IsNil() {
			return reflect.Zero(to)
		}
		m := reflect.MakeMapWithSize(to, v.Len())
		for i := range v.Len() {
			m.SetMapIndex(v.Index(i).Field(0), fromJSON(v.Index(i).Field(1), to.Elem()))
		}
		return m
	}
	return convert(v, to, fromJSON)
}

// convert returns v, a container or a pair, as a container or a pair of another type.
// What is in it inner converts.
func convert(v reflect.Value, to reflect.Type, inner func(v reflect.Value, to reflect.Type) reflect.Value) reflect.Value {
	converted := reflect.New(to).Elem()
	switch v.Kind() {
	case reflect.Map:
		if v.IsNil() {
			break
		}
		converted.Set(reflect.MakeMapWithSize(to, v.Len()))
		for iterator := v.MapRange(); iterator.Next(); {
			converted.SetMapIndex(convertKey(iterator.Key(), to.Key()), inner(iterator.Value(), to.Elem()))
		}
	case reflect.Slice:
		if v.IsNil() {
			break
		}
		converted.Set(reflect.MakeSlice(to, v.Len(), v.Len()))
		for i := range v.Len() {
			converted.Index(i).Set(inner(v.Index(i), to.Elem()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			converted.Field(i).Set(inner(v.Field(i), to.Field(i).Type))
		}
	}
	return converted
}

func convertKey(key reflect.Value, to reflect.Type) reflect.Value {
	switch {
	case to == reflect.TypeFor[binaryKey]():
		return reflect.ValueOf(binaryKey{key.String()})
	case key.Type() == reflect.TypeFor[binaryKey]():
		return reflect.ValueOf(key.Interface().(binaryKey).bytes)
	default:
		return key.Convert(to)
	}
}

// entriesToJSON returns a map with structs as keys as a list of pairs, in the order of
// the keys' texts: equal values have equal texts.
func entriesToJSON(m reflect.Value, to reflect.Type) reflect.Value {
	if m.IsNil() {
		return reflect.Zero(to)
	}
	type entry struct {
		text []byte
		pair reflect.Value
	}
	entries := make([]entry, 0, m.Len())
	for iterator := m.MapRange(); iterator.Next(); {
		p := reflect.New(to.Elem()).Elem()
		p.Field(0).Set(iterator.Key())
		p.Field(1).Set(toJSON(iterator.Value(), to.Elem().Field(1).Type))
		text, _ := json.Marshal(iterator.Key().Interface()) // what fails here fails later as well
		entries = append(entries, entry{text, p})
	}
	slices.SortFunc(entries, func(a, b entry) int { return bytes.Compare(a.text, b.text) })
	list := reflect.MakeSlice(to, 0, len(entries))
	for _, e := range entries {
		list = reflect.Append(list, e.pair)
	}
	return list
}

// The keys that encoding/json does not know, with the texts that they have.
type (
	boolKey   bool
	doubleKey float64
	// binaryKey is a struct because encoding/json takes every string as it is.
	binaryKey struct{ bytes string }
)

func (k boolKey) MarshalText() ([]byte, error) { return strconv.AppendBool(nil, bool(k)), nil }

func (k *boolKey) UnmarshalText(text []byte) error {
	switch string(text) {
	case "true", "false":
		*k = len(text) == len("true")
		return nil
	default:
		return fmt.Errorf("key %.40q is not true or false", text)
	}
}

func (k doubleKey) MarshalText() ([]byte, error) {
	if f := float64(k); math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("the key %v has no form in JSON", f)
	}
	return strconv.AppendFloat(nil, float64(k), 'g', -1, 64), nil
}

func (k *doubleKey) UnmarshalText(text []byte) error {
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return fmt.Errorf("key %.40q is not a number", text)
	}
	*k = doubleKey(f)
	return nil
}

func (k binaryKey) MarshalText() ([]byte, error) {
	return base64.StdEncoding.AppendEncode(nil, []byte(k.bytes)), nil
}

func (k *binaryKey) UnmarshalText(text []byte) error {
	decoded, err := base64.StdEncoding.AppendDecode(nil, text)
	if err != nil {
		return fmt.Errorf("key %.40q is not base64", text)
	}
	k.bytes = string(decoded)
	return nil
}

// UnmarshalEnumText sets *e to the enum that a text of its String method is for, where
// unknown numbers are decimal. parse is the function ParseE.
func UnmarshalEnumText[E ~int32](text []byte, e *E, parse func(name string) (E, error)) error {
	if number, err := strconv.ParseInt(string(text), 10, 32); err == nil {
		*e = E(number)
		return nil
	}
	parsed, err := parse(string(text))
	if err == nil {
		*e = parsed
	}
	return err
}

// UnmarshalEnumJSON is UnmarshalEnumText for JSON, in which an enum may also be a
// number.
func UnmarshalEnumJSON[E ~int32](text []byte, e *E, parse func(name string) (E, error)) error {
	if len(text) == 0 || text[0] != '"' {
		number := int32(*e)
		err := json.Unmarshal(text, &number)
		*e = E(number)
		return err
	}
	var name string
	if err := json.Unmarshal(text, &name); err != nil {
		return err
	}
	return UnmarshalEnumText([]byte(name), e, parse)
}
