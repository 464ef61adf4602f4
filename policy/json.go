package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

var (
	_ json.Marshaler   = (*Document)(nil)
	_ json.Unmarshaler = (*Document)(nil)
)

// ParseJSON reads a document. Data is 1 MiB (PolicyBytes) at most. What is wrong is
// reported as by Decode, and a field that stands twice as well; in text that is no JSON
// that is the only problem, with its line.
func ParseJSON(data []byte) (Document, error) {
	if len(data) > limits.PolicyBytes {
		return Document{}, fmt.Errorf("document: %d bytes (limit %d)", len(data), limits.PolicyBytes)
	}
	if !utf8.Valid(data) {
		return Document{}, errors.New("document: text is not valid UTF-8")
	}
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		return Document{}, fmt.Errorf("document: %s%w", place(data, err), err)
	}
	var d decoder
	reader := treeReader{tokens: json.NewDecoder(bytes.NewReader(data)), problems: &d.problems}
	reader.tokens.UseNumber()
	tree, err := reader.read("", 0)
	if err != nil {
		return Document{}, fmt.Errorf("document: %w", err)
	}
	document := d.document(tree)
	return document, d.problems.err()
}

// place returns where a text stops being JSON.
func place(data []byte, err error) string {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) || syntax.Offset > int64(len(data)) {
		return ""
	}
	before := data[:syntax.Offset]
	line := bytes.Count(before, []byte("\n")) + 1
	return fmt.Sprintf("line %d, byte %d: ", line, len(before)-(bytes.LastIndexByte(before, '\n')+1))
}

// treeReader makes maps, lists and values of JSON that is known to be right. Package json
// does that too, but takes the last of two fields with one name, and in silence.
type treeReader struct {
	tokens   *json.Decoder
	problems *problems
}

func (r *treeReader) read(path string, depth int) (any, error) {
	token, err := r.tokens.Token()
	if err != nil {
		return nil, err
	}
	delimiter, ok := token.(json.Delim)
	if !ok {
		return token, nil
	}
	if depth >= limits.PolicyDepth {
		return nil, fmt.Errorf("objects and lists nest too deep at byte %d (limit %d)", r.tokens.InputOffset(), limits.PolicyDepth)
	}
	if delimiter == '[' {
		return r.list(path, depth)
	}
	return r.object(path, depth)
}

func (r *treeReader) list(path string, depth int) (any, error) {
	list := []any{}
	for r.tokens.More() {
		element, err := r.read(path, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, element)
	}
	_, err := r.tokens.Token()
	return list, err
}

func (r *treeReader) object(path string, depth int) (any, error) {
	object := map[string]any{}
	for r.tokens.More() {
		key, err := r.tokens.Token()
		if err != nil {
			return nil, err
		}
		name, _ := key.(string)
		inner := below(path, cut(name))
		if strings.HasSuffix(path, ".methods") {
			inner = entry(path, name)
		}
		value, err := r.read(inner, depth+1)
		if err != nil {
			return nil, err
		}
		if _, twice := object[name]; twice {
			r.problems.add(path, "the field %s is there twice", quoted(name))
			continue
		}
		object[name] = value
	}
	_, err := r.tokens.Token()
	return object, err
}

// UnmarshalJSON is ParseJSON.
func (d *Document) UnmarshalJSON(data []byte) error {
	document, err := ParseJSON(data)
	if err == nil {
		*d = document
	}
	return err
}

// MarshalJSON prints what is set, and nothing else.
func (d Document) MarshalJSON() ([]byte, error) {
	return appendObject(nil, reflect.ValueOf(d)), nil
}

func appendObject(out []byte, structure reflect.Value) []byte {
	out = append(out, '{')
	for i, field := range setFields(structure) {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendText(out, field.name), ':')
		out = appendValue(out, field.value)
	}
	return append(out, '}')
}

type namedValue struct {
	name  string
	value reflect.Value
}

// setFields returns the fields of a struct that are not zero, with those of embedded
// structs.
func setFields(structure reflect.Value) []namedValue {
	var set []namedValue
	fields := fieldsOf(structure)
	for _, name := range fields.names {
		value := fields.values[name]
		if value.IsZero() || value.Kind() == reflect.Map && value.Len() == 0 {
			continue
		}
		set = append(set, namedValue{name, value})
	}
	return set
}

func appendValue(out []byte, value reflect.Value) []byte {
	switch v := value.Interface().(type) {
	case time.Duration:
		return appendText(out, v.String())
	case Codes:
		return appendJSON(out, v.Names())
	}
	switch value.Kind() {
	case reflect.Struct:
		return appendObject(out, value)
	case reflect.Map:
		out = append(out, '{')
		names := slices.Sorted(maps.Keys(mapOf(value)))
		for i, name := range names {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(appendText(out, name), ':')
			out = appendObject(out, value.MapIndex(reflect.ValueOf(name)))
		}
		return append(out, '}')
	}
	return appendJSON(out, value.Interface())
}

// mapOf returns the keys of a map of whatever type.
func mapOf(value reflect.Value) map[string]struct{} {
	keys := make(map[string]struct{}, value.Len())
	for _, key := range value.MapKeys() {
		keys[key.String()] = struct{}{}
	}
	return keys
}

func appendText(out []byte, text string) []byte { return appendJSON(out, text) }

// appendJSON prints text, numbers, booleans and lists of text, which never fails.
func appendJSON(out []byte, value any) []byte {
	printed, err := json.Marshal(value)
	if err != nil {
		return append(out, "null"...)
	}
	return append(out, printed...)
}
