package notation

import (
	"encoding"
	"fmt"
	"reflect"
)

// Match returns nil if actual is what value stands for, or says where it
// differs. Sets and maps match in any order. A struct matches if every field
// that value has matches and every other one is not set.
func (t Types) Match(value any, actual reflect.Value) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%v cannot be compared with %v: %v", actual.Type(), value, cause)
		}
	}()
	return t.match(value, actual)
}

func (t Types) match(value any, actual reflect.Value) error {
	if text, ok := actual.Interface().(encoding.TextMarshaler); ok {
		content, err := text.MarshalText()
		return different(err == nil && string(content) == value, value, actual)
	}
	switch actual.Kind() {
	case reflect.Bool:
		return different(actual.Bool() == value.(bool), value, actual)
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return different(actual.Int() == integer(value), value, actual)
	case reflect.Float64:
		return different(sameDouble(actual.Float(), double(value)), value, actual)
	case reflect.String:
		return different(actual.String() == text(value), value, actual)
	case reflect.Slice:
		return t.matchSlice(value, actual)
	case reflect.Map:
		return t.matchMap(value, actual)
	case reflect.Pointer:
		if actual.IsNil() {
			return different(false, value, actual)
		}
		return t.match(value, actual.Elem())
	case reflect.Struct:
		return t.matchStruct(value, actual)
	default:
		panic("no Thrift type has this form in Go")
	}
}

func different(same bool, value any, actual reflect.Value) error {
	if same {
		return nil
	}
	return fmt.Errorf("expected %.200v, got %.200v", value, actual)
}

func (t Types) matchSlice(value any, actual reflect.Value) error {
	if actual.Type().Elem().Kind() == reflect.Uint8 {
		return different(!actual.IsNil() && string(actual.Bytes()) == text(value), value, actual)
	}
	expected := elements(value)
	if actual.IsNil() || len(expected) != actual.Len() {
		return fmt.Errorf("expected %d elements, got %d (nil: %v)", len(expected), actual.Len(), actual.IsNil())
	}
	_, isSet := value.(map[string]any)
	if isSet || isGeneric(actual.Type().Elem(), "Pair") {
		return t.matchUnordered(expected, actual)
	}
	for i, element := range expected {
		if err := t.match(element, actual.Index(i)); err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return nil
}

// matchUnordered finds an element of its own for each that is expected. The
// elements of a set differ, so the first that fits is the right one.
func (t Types) matchUnordered(expected []any, actual reflect.Value) error {
	taken := make([]bool, actual.Len())
next:
	for _, element := range expected {
		for i := range taken {
			if !taken[i] && t.match(element, actual.Index(i)) == nil {
				taken[i] = true
				continue next
			}
		}
		return fmt.Errorf("expected %v among %v", element, actual)
	}
	return nil
}

func (t Types) matchMap(value any, actual reflect.Value) error {
	expected := value.([]any)
	if actual.IsNil() || len(expected) != actual.Len() {
		return fmt.Errorf("expected %d entries, got %d (nil: %v)", len(expected), actual.Len(), actual.IsNil())
	}
	if actual.Type().Key().Kind() == reflect.Pointer {
		return t.matchPointerKeys(expected, actual)
	}
	for _, entry := range expected {
		key := reflect.New(actual.Type().Key()).Elem()
		t.fill(key, entry.([]any)[0])
		element := actual.MapIndex(key)
		if !element.IsValid() {
			return fmt.Errorf("no entry for %v in %v", key, actual)
		}
		if err := t.match(entry.([]any)[1], element); err != nil {
			return fmt.Errorf("[%v]: %w", key, err)
		}
	}
	return nil
}

// matchPointerKeys is for libraries whose struct keys are pointers, which no
// lookup finds.
func (t Types) matchPointerKeys(expected []any, actual reflect.Value) error {
next:
	for _, entry := range expected {
		for entries := actual.MapRange(); entries.Next(); {
			if t.match(entry.([]any)[0], entries.Key()) != nil {
				continue
			}
			if err := t.match(entry.([]any)[1], entries.Value()); err != nil {
				return fmt.Errorf("[%v]: %w", entries.Key(), err)
			}
			continue next
		}
		return fmt.Errorf("no entry for %v in %v", entry.([]any)[0], actual)
	}
	return nil
}

func (t Types) matchStruct(value any, actual reflect.Value) error {
	if isGeneric(actual.Type(), "Pair") {
		for i, part := range value.([]any) {
			if err := t.match(part, actual.Field(i)); err != nil {
				return err
			}
		}
		return nil
	}
	if isGeneric(actual.Type(), "Opt") {
		content := actual.MethodByName("Get").Call(nil)
		if !content[1].Bool() {
			return different(false, value, actual)
		}
		return t.match(value, content[0])
	}
	expected := value.(map[string]any)
	for i := range actual.NumField() {
		name := FieldName(actual.Type().Field(i))
		if err := t.matchField(expected, actual, i); err != nil {
			return fmt.Errorf(".%s: %w", name, err)
		}
	}
	return nil
}

func (t Types) matchField(expected map[string]any, actual reflect.Value, index int) error {
	field := actual.Type().Field(index)
	content := actual.Field(index)
	value, ok := expected[FieldName(field)]
	if !ok {
		return different(content.IsZero(), "nothing", content)
	}
	if _, hasDefaults := t.Defaults[actual.Type()]; hasDefaults && isGeneric(field.Type, "Opt") {
		instance := reflect.New(actual.Type())
		instance.Elem().Set(actual)
		content = instance.MethodByName("Get" + field.Name).Call(nil)[0]
	}
	return t.match(value, content)
}
