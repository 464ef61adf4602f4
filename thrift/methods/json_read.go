package methods

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// UnmarshalJSON sets the fields of *s, a generated struct, that are in a text of
// MarshalJSON, and keeps the others. Lists, sets and maps are replaced, while encoding/json
// would add to those that are there: a default is not a part of every value. In structs that
// are fields it is the same. A text that nests deeper than 256 (JSONDepth) is an error: each
// struct that reads itself goes through all of its text again.
func UnmarshalJSON(text []byte, s any, binaryKeys ...string) error {
	v := reflect.ValueOf(s).Elem()
	if textNestsDeeper(text, limits.JSONDepth) {
		return fmt.Errorf("thrift: JSON for %v nests deeper than %d", v.Type(), limits.JSONDepth)
	}
	return readFields(text, v, binaryKeys)
}

// UnmarshalUnionJSON replaces *s, a generated union, by the one in a text of MarshalJSON,
// as UnmarshalJSON reads it: of two fields neither could be sent. On errors, and where the
// text is null, s is as it was.
func UnmarshalUnionJSON[U any](text []byte, s *U, binaryKeys ...string) error {
	if string(text) == "null" {
		return nil
	}
	var read U
	err := UnmarshalJSON(text, &read, binaryKeys...)
	if err == nil {
		*s = read
	}
	return err
}

// readFields is UnmarshalJSON for a text that does not nest too deep. What must not be
// added to what is there is read apart.
func readFields(text []byte, v reflect.Value, binaryKeys []string) error {
	fields := jsonFields(v.Type(), binaryKeys)
	raw := slices.Clone(fields)
	for i := range raw {
		if own := v.FieldByIndex(fields[i].Index).Type(); fields[i].Type != own || isContainer(own) || holdsContainers(own, nil) {
			raw[i].Type = reflect.TypeFor[part]()
		}
	}
	shadow := reflect.New(reflect.StructOf(raw)).Elem()
	for i := range raw {
		if raw[i].Type != reflect.TypeFor[part]() {
			shadow.Field(i).Set(v.FieldByIndex(fields[i].Index))
		}
	}
	if err := json.Unmarshal(text, shadow.Addr().Interface()); err != nil {
		return err
	}
	for i, field := range fields {
		to := v.FieldByIndex(field.Index)
		if raw[i].Type != reflect.TypeFor[part]() {
			to.Set(shadow.Field(i))
			continue
		}
		received := shadow.Field(i).Interface().(part).text
		if len(received) == 0 {
			continue
		}
		if err := readField(received, to, field.Type); err != nil {
			return fmt.Errorf("thrift: field %s of %s: %w", field.Name, v.Type(), err)
		}
	}
	return nil
}

// readField reads a field that is in the text, which has the type form there.
func readField(text []byte, to reflect.Value, form reflect.Type) error {
	switch {
	case !isContainer(to.Type()) && string(text) == "null":
		if to.Kind() == reflect.Pointer {
			to.SetZero()
		}
		return nil
	case to.Kind() == reflect.Pointer:
		if to.IsNil() {
			to.Set(reflect.New(to.Type().Elem()))
		}
		return readFields(text, to.Elem(), nil)
	case to.Kind() == reflect.Struct:
		return readFields(text, to, nil) // with other keys of maps it would read itself
	}
	held := reflect.New(form)
	if err := json.Unmarshal(text, held.Interface()); err != nil {
		return err
	}
	to.Set(fromJSON(held.Elem(), to.Type()))
	return nil
}

// isContainer says that a type is that of a list, set or map.
func isContainer(t reflect.Type) bool {
	return t.Kind() == reflect.Map || t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8
}

// holdsContainers says that a type is that of a struct, or of a pointer to one, which
// encoding/json reads, and that there is a container in it. Seen are those around it.
func holdsContainers(t reflect.Type, seen []reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || slices.Contains(seen, t) || readsItself(reflect.PointerTo(t)) {
		return false
	}
	seen = append(seen, t)
	for i := range t.NumField() {
		if field := t.Field(i); field.IsExported() && (isContainer(field.Type) || holdsContainers(field.Type, seen)) {
			return true
		}
	}
	return false
}

func readsItself(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[json.Unmarshaler]()) || t.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// part is a part of the text that is read. It is json.RawMessage without the copy, of
// which there would be one for each struct around another.
type part struct{ text []byte }

func (p *part) UnmarshalJSON(text []byte) error {
	p.text = text
	return nil
}

// textNestsDeeper reports whether objects and lists in a text nest more than limit
// levels deep.
func textNestsDeeper(text []byte, limit int) bool {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > limit {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}
