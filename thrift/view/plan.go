package view

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/fulmar-rpc/fulmar/thrift"
)

// plan is how the Go struct of a shape holds its fields: what its text, its JSON and
// Equal depend on, which are made of the bytes, without a struct. It is worked out when
// somebody first asks, and never changed.
type plan struct {
	shape  *Shape
	goType reflect.Type
	// fields are in the order of the Go struct.
	fields []planField
	// unfit: the struct has something that is not in the definition, and only the struct
	// itself can say what it is. unfitJSON: that is so for its JSON.
	unfit, unfitJSON bool
}

type planField struct {
	// number is that of the field in the shape.
	number int
	value  planValue
	// label is how texts call it, name how JSON does, with quotes and a colon.
	label, name                         string
	hidden, omitEmpty, omitZero, keys64 bool
	// distinct: nothing is not the same as an empty container or binary.
	distinct bool
	// preset is what is there if nothing came, nil if that is nothing.
	preset []byte
	// unsaid: bytes cannot say what is there if nothing came, only a struct can.
	unsaid bool
}

type planForm uint8

const (
	formNumber planForm = iota // of a fixed size; bools, enums and uuids too
	formText
	formBinary
	formStruct
	formList
	formBytes // a list of i8 that is bytes in Go
	formMap
	formPairs
)

// planValue is how Go holds a value.
type planValue struct {
	form planForm
	wire thrift.Type
	// goType is the type without Opt and pointer.
	goType reflect.Type
	// opt: it is in a thrift.Opt. pointer: it is behind a pointer.
	opt, pointer bool
	// named: the type may have methods that say what its text is. marshals: it has one that
	// says what its JSON is.
	named, marshals bool
	key, element    *planValue
	shape           *Shape
}

// plan returns the plan of a shape.
func (s *Shape) plan() *plan {
	if known := s.known.Load(); known != nil {
		return known
	}
	made := s.newPlan()
	s.known.Store(made)
	return made
}

func (s *Shape) newPlan() *plan {
	made := &plan{shape: s}
	if s.New == nil {
		made.unfit = true // generated before there were plans
		return made
	}
	fresh := s.New()
	held := reflect.ValueOf(fresh).Elem()
	made.goType = held.Type()
	made.unfitJSON = !s.OwnJSON && isMarshaler(made.goType)
	for i := range held.NumField() {
		made.field(held.Type().Field(i))
	}
	made.unfit = made.unfit || len(made.fields) != len(s.Fields)
	if !made.unfit {
		made.presets(fresh, held)
	}
	return made
}

// field adds a field of the Go struct.
func (made *plan) field(field reflect.StructField) {
	number := -1
	for i := range made.shape.Fields {
		if made.shape.Fields[i].Name == field.Name {
			number = i
		}
	}
	if number < 0 {
		made.unfit = true
		return
	}
	declared := &made.shape.Fields[number]
	f := planField{number: number, label: field.Name, distinct: declared.Optional, keys64: declared.BinaryKeys}
	var ok, okJSON bool
	if f.value, ok, okJSON = planOf(field.Type, declared.Key.Type(), declared.Value); !ok {
		made.unfit = true
		return
	}
	tag := field.Tag.Get("json")
	name, options, _ := strings.Cut(tag, ",")
	f.hidden = tag == "-"
	if name != "" && name != "-" {
		f.label = name
	}
	f.name = strconv.Quote(f.label) + ":"
	for option := range strings.SplitSeq(options, ",") {
		f.omitEmpty = f.omitEmpty || option == "omitempty"
		f.omitZero = f.omitZero || option == "omitzero"
		okJSON = okJSON && (option == "" || option == "omitempty" || option == "omitzero")
	}
	omits := f.omitEmpty || f.omitZero
	okJSON = okJSON && isPlainName(f.label) && !(tag != "-" && name == "-")
	if omits && !f.value.opt && !f.value.pointer && (f.value.form == formNumber || f.value.form == formStruct || f.value.form == formText || f.value.marshals) {
		okJSON = false
	}
	for i := range made.fields {
		okJSON = okJSON && (f.hidden || made.fields[i].name != f.name)
	}
	made.unfitJSON = made.unfitJSON || !okJSON
	made.fields = append(made.fields, f)
}

// isPlainName says that a name in JSON is what the tag says, and nothing of it escaped.
func isPlainName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

func isMarshaler(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Marshaler]()) || p.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}

// planOf returns how a Go type holds values of a type of the definition.
func planOf(t reflect.Type, wire thrift.Type, declared *Type) (v planValue, ok, okJSON bool) {
	v = planValue{wire: wire, goType: t}
	if t.Kind() == reflect.Struct && t.PkgPath() == reflect.TypeFor[thrift.UUID]().PkgPath() && strings.HasPrefix(t.Name(), "Opt[") {
		v.opt, v.goType = true, t.Field(0).Type
	} else if t.Kind() == reflect.Pointer {
		v.pointer, v.goType = true, t.Elem()
	}
	t = v.goType
	switch kind := t.Kind(); {
	case wire == thrift.StructType && kind == reflect.Struct && declared != nil:
		v.form, v.shape = formStruct, declared.Struct()
		return v, v.shape.New != nil, true
	case wire == thrift.Map && kind == reflect.Map:
		v.form = formMap
		return v.inner(t.Key(), t.Elem(), declared)
	case wire == thrift.Map && kind == reflect.Slice && t.Elem().Kind() == reflect.Struct && t.Elem().NumField() == 2:
		v.form = formPairs
		return v.inner(t.Elem().Field(0).Type, t.Elem().Field(1).Type, declared)
	case (wire == thrift.List || wire == thrift.Set) && kind == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		v.form, v.element = formBytes, &planValue{wire: thrift.I8}
		return v, declared.Element.Type == thrift.I8, true
	case (wire == thrift.List || wire == thrift.Set) && kind == reflect.Slice:
		v.form = formList
		return v.inner(nil, t.Elem(), declared)
	case wire == thrift.String && kind == reflect.String:
		v.form = formText
	case wire == thrift.String && kind == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		v.form = formBinary
	case wire.FixedSize() == 0 || v.pointer:
		return v, false, false
	}
	v.named = t.PkgPath() != ""
	v.marshals = t.Implements(reflect.TypeFor[json.Marshaler]()) || t.Implements(reflect.TypeFor[encoding.TextMarshaler]())
	return v, true, v.marshals || !isMarshaler(t)
}

// inner plans what is in a container.
func (v planValue) inner(key, element reflect.Type, declared *Type) (planned planValue, ok, okJSON bool) {
	okJSON = !isMarshaler(v.goType)
	if key != nil {
		inner, fits, fitsJSON := planOf(key, declared.Key.Type, declared.Key)
		v.key, okJSON = &inner, okJSON && fitsJSON
		if !fits {
			return v, false, false
		}
	}
	inner, ok, fitsJSON := planOf(element, declared.Element.Type, declared.Element)
	v.element = &inner
	return v, ok, okJSON && fitsJSON
}

// zeroBytes is zero of each type: no number is longer.
const zeroBytes = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"

// presets finds out what fields hold if nothing came: what a new struct has.
func (made *plan) presets(fresh thrift.Struct, held reflect.Value) {
	slots := make([]Slot, len(made.shape.Fields))
	read := made.shape.New()
	b, err := thrift.Marshal(fresh) // fails if it holds a union
	if err == nil {
		if end, _ := made.shape.scan(b, 0, slots, mostLevels); end < 0 || thrift.Unmarshal(b, read) != nil {
			made.unfit = true
		}
	}
	for i := range made.fields {
		f := &made.fields[i]
		name := made.shape.Fields[f.number].Name
		now := held.FieldByName(name)
		isNil := (now.Kind() == reflect.Pointer || now.Kind() == reflect.Slice || now.Kind() == reflect.Map) && now.IsNil()
		switch slot := slots[f.number]; {
		case f.value.opt, isNil:
			made.unfit = made.unfit || !now.IsZero()
		case f.value.isNew(now):
			f.preset = []byte(zeroBytes[:1])
		case slot.end != 0:
			f.preset = b[slot.start:slot.end]
			// What is nil in it has become empty.
			f.unsaid = !reflect.DeepEqual(now.Interface(), reflect.ValueOf(read).Elem().FieldByName(name).Interface())
		case now.IsZero():
			f.preset = []byte(zeroBytes)
		default:
			f.unsaid = true
		}
	}
}

// isNew says that now is a struct as New makes it, and that its bytes may be those of a struct
// without fields.
func (v *planValue) isNew(now reflect.Value) bool {
	return v.form == formStruct && v.shape.checked([]byte(zeroBytes[:1]), 0, mostLevels) == 1 &&
		reflect.DeepEqual(now.Addr().Interface(), any(v.shape.New()))
}

// of returns the bytes of a field, nil if there is nothing.
func (w *walk) of(f *planField, b []byte, slots []Slot) []byte {
	if s := slots[f.number]; s.end != 0 {
		return b[s.start:s.end]
	}
	w.failed = w.failed || f.unsaid
	return f.preset
}

// leaf returns a scalar, string or binary as Go holds it.
func (v *planValue) leaf(b []byte) reflect.Value {
	held := reflect.New(v.goType).Elem()
	switch {
	case v.form == formText:
		text, _ := Text(b)
		held.SetString(text)
	case v.form == formBinary:
		binary, _ := Binary(b)
		held.SetBytes(binary)
	case v.wire == thrift.Bool:
		held.SetBool(b[0] == 1)
	case v.wire == thrift.Double:
		held.SetFloat(thrift.DoubleAt(b, 0))
	case v.wire == thrift.UUIDType:
		held.Set(reflect.ValueOf(thrift.UUID(b[:len(thrift.UUID{})])).Convert(v.goType))
	default:
		held.SetInt(v.integer(b))
	}
	return held
}

// integer returns a number that is not a double.
func (v *planValue) integer(b []byte) int64 {
	switch v.wire {
	case thrift.I8:
		return int64(int8(b[0]))
	case thrift.I16:
		return int64(thrift.I16At(b, 0))
	case thrift.I32:
		return int64(thrift.I32At(b, 0))
	default:
		return thrift.I64At(b, 0)
	}
}
