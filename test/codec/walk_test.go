package codec_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	kitexthrift "github.com/cloudwego/gopkg/protocol/thrift"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// What follows reads messages in a third way, which shares nothing with any codec: by
// a table of the definitions, into a text that is the same for messages of the same
// meaning. It is slow, allocates by no declared size, and notes what in a message the
// codecs take differently.

// The codes of types on the wire.
const (
	codeBool   = 2
	codeI8     = 3
	codeDouble = 4
	codeI16    = 6
	codeI32    = 8
	codeI64    = 10
	codeString = 11
	codeStruct = 12
	codeMap    = 13
	codeSet    = 14
	codeList   = 15
	codeUUID   = 16
)

// fixedSizes is how long values are that all have one length, leastSizes how long
// others are at least.
var (
	fixedSizes = map[byte]int{codeBool: 1, codeI8: 1, codeDouble: 8, codeI16: 2, codeI32: 4, codeI64: 8, codeUUID: 16}
	leastSizes = map[byte]int{codeString: 4, codeStruct: 1, codeMap: 6, codeSet: 5, codeList: 5}
)

// leastSize returns 0 for codes that are none.
func leastSize(code byte) int { return max(fixedSizes[code], leastSizes[code]) }

// definition is a type of an interface definition.
type definition struct {
	code         byte
	key, element *definition
	record       *record
}

// record is a struct of an interface definition.
type record struct {
	name   string
	union  bool
	fields map[int16]*field
}

type field struct {
	name     string
	required bool
	optional bool
	definition
	// absent is the meaning of a message without the field, if it has a default.
	absent string
}

// recordOf finds out what was defined from the code that Kitex generates, whose tags
// have all of it but the defaults. known holds the records that were found before.
func recordOf(t reflect.Type, known map[reflect.Type]*record) *record {
	if r := known[t]; r != nil {
		return r
	}
	r := &record{name: t.Name(), fields: map[int16]*field{}}
	known[t] = r
	_, r.union = reflect.PointerTo(t).MethodByName("CountSetFields" + t.Name())
	for i := range t.NumField() {
		goField := t.Field(i)
		parts := strings.SplitN(goField.Tag.Get("frugal"), ",", 3)
		id, err := strconv.ParseInt(parts[0], 10, 16)
		if err != nil || len(parts) != 3 {
			panic(fmt.Sprintf("%v.%s has another tag than expected: %s", t, goField.Name, goField.Tag))
		}
		r.fields[int16(id)] = &field{
			name: goField.Name, required: parts[1] == "required", optional: parts[1] == "optional",
			definition: *definitionOf(parts[2], goField.Type, known),
		}
	}
	return r
}

// optionalDefaults are the defaults of optional fields, which Kitex does not write.
var optionalDefaults = map[string]map[int16]string{
	"Defaults": {14: "0000004d", 15: strconv.Quote("perhaps"), 16: "00000001"},
}

// learnDefaults finds out from a new struct of Kitex what absent fields mean.
func (r *record) learnDefaults(t reflect.Type) {
	for id, meaning := range optionalDefaults[r.name] {
		r.fields[id].absent = meaning
	}
	fresh := reflect.New(t)
	if r.union {
		return // nothing is set
	}
	fresh.MethodByName("InitDefault").Call(nil)
	w := &walker{depth: limits.Depth, message: kitexthrift.FastMarshal(fresh.Interface().(kitexthrift.FastCodec))}
	if _, _, err := w.record(r, 0, 1); err != nil {
		panic(fmt.Sprintf("a new %s: %v", r.name, err))
	}
	for id, meaning := range w.arrived {
		if f := r.fields[id]; !f.required && !f.optional {
			f.absent = meaning
		}
	}
}

// definitionOf is told a type as a tag has it and as Go has it: the tag tells sets from
// lists, and Go has the structs.
func definitionOf(text string, t reflect.Type, known map[reflect.Type]*record) *definition {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	kind, inner, _ := strings.Cut(strings.TrimSuffix(text, ">"), "<")
	switch {
	case kind == "list" && inner != "":
		return &definition{code: codeList, element: definitionOf(inner, t.Elem(), known)}
	case kind == "set" && inner != "":
		return &definition{code: codeSet, element: definitionOf(inner, t.Elem(), known)}
	case kind == "map" && inner != "":
		key, element, _ := strings.Cut(inner, ":") // no key is a container
		return &definition{code: codeMap, key: definitionOf(key, t.Key(), known), element: definitionOf(element, t.Elem(), known)}
	case t.Kind() == reflect.Struct:
		return &definition{code: codeStruct, record: recordOf(t, known)}
	case t.Kind() == reflect.Int64 && t.Name() != "int64":
		return &definition{code: codeI32} // an enum
	}
	codes := map[reflect.Kind]byte{
		reflect.Bool: codeBool, reflect.Int8: codeI8, reflect.Int16: codeI16, reflect.Int32: codeI32, reflect.Int64: codeI64,
		reflect.Float64: codeDouble, reflect.String: codeString, reflect.Slice: codeString,
	}
	return &definition{code: codes[t.Kind()]}
}

// walker reads one message.
type walker struct {
	message []byte
	// depth is how deep it may nest.
	depth int
	noted notes
	// nans makes keys differ that are not a number.
	nans int
	// arrived are the meanings of the fields of the struct that was read last.
	arrived map[int16]string
}

// notes are what the codecs take differently.
type notes struct {
	// mixedUp: a container has elements of other types than defined.
	mixedUp bool
	// deep: it nests deeper than we allow. deepest: just as deep, and if we write it
	// again empty containers that were absent are a level more.
	deep, deepest bool
	// highCode and uuid: a value that is passed over has a type code of 128 or more,
	// or 16.
	highCode, uuid bool
	// arms: a union has no arm, or several.
	arms bool
	// repeated: the same element is in a set twice, or a struct twice among the keys
	// of a map.
	repeated, repeatedKey bool
	// declared: a container declares more elements than can follow.
	declared bool
}

var (
	errMalformed = errors.New("malformed")
	errDeep      = errors.New("too deep")
	errMixedUp   = errors.New("elements of other types")
)

// walk returns the meaning of a message as a text, and how long it is.
func walk(r *record, message []byte) (meaning string, end int, noted notes, err error) {
	w := &walker{message: message, depth: limits.Depth}
	meaning, end, err = w.record(r, 0, 1)
	return meaning, end, w.noted, err
}

// take returns the n bytes at p.
func (w *walker) take(p, n int) ([]byte, int, error) {
	if n < 0 || n > len(w.message)-p {
		return nil, p, errMalformed
	}
	return w.message[p : p+n], p + n, nil
}

func (w *walker) number(p int) (n, next int, err error) {
	b, p, err := w.take(p, 4)
	if err != nil {
		return 0, p, err
	}
	return int(int32(binary.BigEndian.Uint32(b))), p, nil
}

// enter counts levels of structs and containers from 1.
func (w *walker) enter(depth int) error {
	w.noted.deepest = w.noted.deepest || depth == w.depth
	if depth > w.depth {
		w.noted.deep = true
		return errDeep
	}
	return nil
}

// record reads a struct.
func (w *walker) record(r *record, p, depth int) (string, int, error) {
	if err := w.enter(depth); err != nil {
		return "", p, err
	}
	arrived := map[int16]string{}
	for {
		code, next, err := w.take(p, 1)
		if err != nil {
			return "", p, err
		}
		if code[0] == 0 {
			meaning, err := w.complete(r, arrived)
			return meaning, next, err
		}
		id, next, err := w.take(next, 2)
		if err != nil {
			return "", p, err
		}
		f := r.fields[int16(binary.BigEndian.Uint16(id))]
		if f == nil || f.code != code[0] {
			p, err = w.skip(code[0], next, depth)
		} else {
			var meaning string
			meaning, p, err = w.value(&f.definition, next, depth)
			arrived[int16(binary.BigEndian.Uint16(id))] = meaning
		}
		if err != nil {
			return "", p, err
		}
	}
}

// complete adds what absent fields mean.
func (w *walker) complete(r *record, arrived map[int16]string) (string, error) {
	w.arrived = arrived
	if r.union && len(arrived) != 1 {
		w.noted.arms = true
	}
	var text strings.Builder
	for _, id := range slices.Sorted(maps.Keys(r.fields)) {
		f := r.fields[id]
		meaning, found := arrived[id]
		switch {
		case found:
		case f.required:
			return "", fmt.Errorf("%s of %s is missing: %w", f.name, r.name, errMalformed)
		case f.absent != "":
			meaning = f.absent
		case f.optional || r.union:
			continue
		default:
			meaning = zero(&f.definition)
		}
		if !found && !f.optional && f.record != nil && f.record.union {
			w.noted.arms = true
		}
		fmt.Fprintf(&text, "%d=%s;", id, meaning)
	}
	return "(" + text.String() + ")", nil
}

// zero is the meaning of a value that nobody has set.
func zero(d *definition) string {
	switch d.code {
	case codeStruct:
		meaning, err := (&walker{}).complete(d.record, nil)
		if err != nil {
			panic("a field with required ones in it is not required") // no definition has one
		}
		return meaning
	case codeString:
		return `""`
	case codeList, codeSet:
		return "[]"
	case codeMap:
		return "{}"
	case codeBool:
		return "0"
	}
	return strings.Repeat("00", fixedSizes[d.code])
}

func (w *walker) value(d *definition, p, depth int) (string, int, error) {
	switch d.code {
	case codeStruct:
		return w.record(d.record, p, depth+1)
	case codeList, codeSet:
		return w.list(d, p, depth+1)
	case codeMap:
		return w.entries(d, p, depth+1)
	case codeString:
		n, p, err := w.number(p)
		if err != nil {
			return "", p, err
		}
		b, p, err := w.take(p, n)
		return strconv.Quote(string(b)), p, err
	case codeBool:
		b, p, err := w.take(p, 1)
		if err == nil && b[0] == 1 {
			return "1", p, nil
		}
		return "0", p, err
	}
	b, p, err := w.take(p, fixedSizes[d.code])
	return fmt.Sprintf("%x", b), p, err
}

// header reads the header of a container of these types. Where n is 0, any types will
// do.
func (w *walker) header(p, depth int, types ...byte) (n, next int, err error) {
	if err := w.enter(depth); err != nil {
		return 0, p, err
	}
	codes, p, err := w.take(p, len(types))
	if err != nil {
		return 0, p, err
	}
	if n, p, err = w.number(p); err != nil {
		return 0, p, err
	}
	if n < 0 {
		return 0, p, errMalformed
	}
	if n > 0 && !slices.Equal(codes, types) {
		w.noted.mixedUp = true
		return 0, p, errMixedUp
	}
	least := 0
	for _, code := range types {
		least += leastSize(code)
	}
	if n*least > len(w.message)-p {
		w.noted.declared = true
		return 0, p, errMalformed
	}
	return n, p, nil
}

func (w *walker) list(d *definition, p, depth int) (string, int, error) {
	n, p, err := w.header(p, depth, d.element.code)
	elements := []string{}
	for range n {
		var element string
		if element, p, err = w.value(d.element, p, depth); err != nil {
			break
		}
		elements = append(elements, element)
	}
	if err != nil {
		return "", p, err
	}
	if d.code == codeSet {
		sorted := slices.Sorted(slices.Values(elements))
		w.noted.repeated = w.noted.repeated || len(slices.Compact(sorted)) < len(elements)
	}
	return "[" + strings.Join(elements, ",") + "]", p, nil
}

// entries reads a map. The last of equal keys stays, and the order is none.
func (w *walker) entries(d *definition, p, depth int) (string, int, error) {
	n, p, err := w.header(p, depth, d.key.code, d.element.code)
	entries := map[string]string{}
	for range n {
		var key, element string
		if key, p, err = w.value(d.key, p, depth); err != nil {
			break
		}
		if element, p, err = w.value(d.element, p, depth); err != nil {
			break
		}
		identity := w.identity(d.key, key)
		if _, found := entries[identity]; found && d.key.code == codeStruct {
			w.noted.repeatedKey = true
		}
		entries[identity] = key + ":" + element
	}
	if err != nil {
		return "", p, err
	}
	return "{" + strings.Join(slices.Sorted(maps.Values(entries)), ",") + "}", p, nil
}

// identity returns the same text for keys that Go calls equal.
func (w *walker) identity(d *definition, key string) string {
	if d.code != codeDouble {
		return key
	}
	bits, err := strconv.ParseUint(key, 16, 64)
	switch number := math.Float64frombits(bits); {
	case err != nil:
		panic(err)
	case math.IsNaN(number):
		w.nans++
		return fmt.Sprint(key, w.nans)
	case number == 0:
		return "0"
	}
	return key
}

// skip passes over a value that no field is for.
func (w *walker) skip(code byte, p, depth int) (int, error) {
	w.noted.highCode = w.noted.highCode || code >= 0x80
	w.noted.uuid = w.noted.uuid || code == codeUUID
	if size := fixedSizes[code]; size > 0 {
		_, p, err := w.take(p, size)
		return p, err
	}
	switch code {
	case codeString:
		n, p, err := w.number(p)
		if err != nil {
			return p, err
		}
		_, p, err = w.take(p, n)
		return p, err
	case codeStruct:
		return w.skipStruct(p, depth+1)
	case codeList, codeSet:
		return w.skipElements(1, p, depth+1)
	case codeMap:
		return w.skipElements(2, p, depth+1)
	}
	return p, errMalformed
}

func (w *walker) skipStruct(p, depth int) (int, error) {
	if err := w.enter(depth); err != nil {
		return p, err
	}
	for {
		code, next, err := w.take(p, 1)
		if err != nil {
			return p, err
		}
		if code[0] == 0 {
			return next, nil
		}
		if _, next, err = w.take(next, 2); err != nil {
			return p, err
		}
		if p, err = w.skip(code[0], next, depth); err != nil {
			return p, err
		}
	}
}

// skipElements passes over a container with so many types.
func (w *walker) skipElements(types, p, depth int) (int, error) {
	if err := w.enter(depth); err != nil {
		return p, err
	}
	codes, p, err := w.take(p, types)
	if err != nil {
		return p, err
	}
	n, p, err := w.number(p)
	if err != nil || n < 0 {
		return p, errMalformed
	}
	least := 0
	for _, code := range codes {
		// Kitex asks for the size before it looks at the number of elements.
		w.noted.highCode = w.noted.highCode || code >= 0x80
		if n > 0 && leastSize(code) == 0 {
			return p, errMalformed
		}
		least += leastSize(code)
	}
	if n*least > len(w.message)-p {
		w.noted.declared = true
		return p, errMalformed
	}
	for range n {
		for _, code := range codes {
			if p, err = w.skip(code, p, depth); err != nil {
				return p, err
			}
		}
	}
	return p, nil
}
