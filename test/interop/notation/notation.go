// Package notation turns the values in cases.json into Go values and compares
// them with what a peer sent. python/peers/values.py describes the notation and
// does the same for Python.
//
// It works on generated types by reflection, because what the cases test is
// that the types fit together, not the code that fills them.
package notation

import (
	"encoding"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// Types tells the package what reflection cannot find out.
type Types struct {
	// Defaults are the structs for which the IDL gives default values, with
	// their generated constructors. For these, an optional field that is not
	// set stands for its default.
	Defaults map[reflect.Type]func() any
}

// Expand returns value with $range, $repeat and $unique worked out.
func Expand(value any, unique string) any {
	switch value := value.(type) {
	case string:
		if value == "$unique" {
			return unique
		}
	case []any:
		expanded := make([]any, len(value))
		for i, element := range value {
			expanded[i] = Expand(element, unique)
		}
		return expanded
	case map[string]any:
		if formula, ok := value["$range"].([]any); ok {
			return expandRange(integer(formula[0]), integer(formula[1]), integer(formula[2]))
		}
		if formula, ok := value["$repeat"].([]any); ok {
			return expandRepeat(Expand(formula[0], unique), int(integer(formula[1])))
		}
		expanded := make(map[string]any, len(value))
		for name, member := range value {
			expanded[name] = Expand(member, unique)
		}
		return expanded
	}
	return value
}

func expandRange(first, count, step int64) any {
	expanded := make([]any, count)
	for i := range expanded {
		expanded[i] = json.Number(strconv.FormatInt(first+int64(i)*step, 10))
	}
	return expanded
}

func expandRepeat(value any, count int) any {
	if text, ok := value.(string); ok {
		return strings.Repeat(text, count)
	}
	expanded := make([]any, count)
	for i := range expanded {
		expanded[i] = value
	}
	return expanded
}

// Fill sets target, which must be settable, to value.
func (t Types) Fill(target reflect.Value, value any) (err error) {
	// A value that does not have the form that the type asks for fails an
	// assertion somewhere below.
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%v does not fit %v: %v", value, target.Type(), cause)
		}
	}()
	t.fill(target, value)
	return nil
}

func (t Types) fill(target reflect.Value, value any) {
	if text, ok := target.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if err := text.UnmarshalText([]byte(value.(string))); err != nil {
			panic(err)
		}
		return
	}
	switch target.Kind() {
	case reflect.Bool:
		target.SetBool(value.(bool))
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		target.SetInt(integer(value))
	case reflect.Float64:
		target.SetFloat(double(value))
	case reflect.String:
		target.SetString(text(value))
	case reflect.Slice:
		t.fillSlice(target, value)
	case reflect.Map:
		target.Set(reflect.MakeMap(target.Type()))
		for _, entry := range value.([]any) {
			key, element := reflect.New(target.Type().Key()).Elem(), reflect.New(target.Type().Elem()).Elem()
			t.fill(key, entry.([]any)[0])
			t.fill(element, entry.([]any)[1])
			target.SetMapIndex(key, element)
		}
	case reflect.Pointer:
		target.Set(reflect.New(target.Type().Elem()))
		t.fill(target.Elem(), value)
	case reflect.Struct:
		t.fillStruct(target, value)
	default:
		panic("no Thrift type has this form in Go")
	}
}

func (t Types) fillSlice(target reflect.Value, value any) {
	if target.Type().Elem().Kind() == reflect.Uint8 {
		target.SetBytes([]byte(text(value)))
		return
	}
	list := elements(value)
	target.Set(reflect.MakeSlice(target.Type(), len(list), len(list)))
	for i, element := range list {
		t.fill(target.Index(i), element)
	}
}

func (t Types) fillStruct(target reflect.Value, value any) {
	switch {
	case isGeneric(target.Type(), "Opt"):
		set := target.Addr().MethodByName("Set")
		content := reflect.New(set.Type().In(0)).Elem()
		t.fill(content, value)
		set.Call([]reflect.Value{content})
		return
	case isGeneric(target.Type(), "Pair"):
		t.fill(target.Field(0), value.([]any)[0])
		t.fill(target.Field(1), value.([]any)[1])
		return
	}
	if constructor, ok := t.Defaults[target.Type()]; ok {
		target.Set(reflect.ValueOf(constructor()).Elem())
	}
	for name, member := range value.(map[string]any) {
		index := fieldIndex(target.Type(), name)
		if index < 0 {
			panic("no field " + name)
		}
		t.fill(target.Field(index), member)
	}
}

func fieldIndex(structType reflect.Type, name string) int {
	for i := range structType.NumField() {
		if FieldName(structType.Field(i)) == name {
			return i
		}
	}
	return -1
}

// FieldName returns the name that the IDL has for a generated field.
func FieldName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}

// isGeneric reports whether t is an instance of the generic type with that name.
func isGeneric(t reflect.Type, name string) bool {
	return strings.HasPrefix(t.Name(), name+"[")
}

func integer(value any) int64 {
	number, err := value.(json.Number).Int64()
	if err != nil {
		panic(err)
	}
	return number
}

func double(value any) float64 {
	var digits string
	switch value := value.(type) {
	case json.Number:
		digits = value.String()
	case map[string]any:
		digits = value["$double"].(string)
	}
	number, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		panic(err)
	}
	return number
}

// text returns a string, or the content of a binary as one.
func text(value any) string {
	object, ok := value.(map[string]any)
	if !ok {
		return value.(string)
	}
	content, err := hex.DecodeString(strings.ReplaceAll(object["$hex"].(string), " ", ""))
	if err != nil {
		panic(err)
	}
	return string(content)
}

// elements returns the elements of a list or set.
func elements(value any) []any {
	if set, ok := value.(map[string]any); ok {
		return set["$set"].([]any)
	}
	return value.([]any)
}

// sameDouble is equality of bits, except that one NaN is as good as another.
func sameDouble(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || math.IsNaN(a) && math.IsNaN(b)
}
