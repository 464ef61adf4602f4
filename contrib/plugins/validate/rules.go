package validate

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"github.com/fulmar-rpc/fulmar/gen"
	"github.com/fulmar-rpc/fulmar/gen/schema"
)

// The annotations of a field or an argument.
const (
	prefix       = "validate."
	keyRequired  = prefix + "required"
	keyMin       = prefix + "min"
	keyMax       = prefix + "max"
	keyMinLength = prefix + "min_length"
	keyMaxLength = prefix + "max_length"
	keyPattern   = prefix + "pattern"
)

const known = "required, min, max, min_length, max_length and pattern"

// patternBytes is how long a pattern may be: it is compiled when a program starts.
const patternBytes = 1000

// rules are what the annotations of a field ask for. Numbers are texts that Go
// reads as constants of the type, empty if there is none.
type rules struct {
	required             bool
	min, max             string
	minLength, maxLength string
	pattern              string
}

func (r rules) empty() bool { return r == rules{} }

// reader reads annotations and reports wrong ones where they stand.
type reader struct{ output *gen.Output }

// field returns the rules of a field. optional says that it may be absent.
func (r reader) field(field *schema.Field, optional bool) rules {
	var found rules
	seen := map[string]bool{}
	for _, annotation := range field.Annotations {
		if !strings.HasPrefix(annotation.Key, prefix) {
			continue
		}
		if seen[annotation.Key] {
			r.fail(annotation, "is there twice")
			continue
		}
		seen[annotation.Key] = true
		r.annotation(&found, annotation, field.Type, optional)
	}
	r.compare(field, keyMin, keyMax, found.min, found.max)
	r.compare(field, keyMinLength, keyMaxLength, found.minLength, found.maxLength)
	return found
}

func (r reader) fail(annotation schema.Annotation, format string, arguments ...any) {
	r.output.Errorf(annotation.Position, "annotation "+annotation.Key+": "+format, arguments...)
}

func (r reader) annotation(found *rules, annotation schema.Annotation, t *schema.Type, optional bool) {
	sized := t.Kind == schema.KindString || t.Kind == schema.KindBinary || t.Kind == schema.KindList || t.Kind == schema.KindSet || t.Kind == schema.KindMap
	switch annotation.Key {
	case keyRequired:
		switch {
		case annotation.Value == "1" || annotation.Value == "true":
			if found.required = true; !sized && !optional {
				r.fail(annotation, "a %s that is not optional is always there", t.Kind)
			}
		case annotation.Value != "0" && annotation.Value != "false":
			r.fail(annotation, "%.80q is no truth value, expected true or false", annotation.Value)
		}
	case keyMin:
		found.min = r.number(annotation, t)
	case keyMax:
		found.max = r.number(annotation, t)
	case keyMinLength:
		found.minLength = r.length(annotation, t, sized)
	case keyMaxLength:
		found.maxLength = r.length(annotation, t, sized)
	case keyPattern:
		found.pattern = r.pattern(annotation, t)
	default:
		r.fail(annotation, "is not known, expected one of %s", known)
	}
}

// number reads a bound for a number of the type.
func (r reader) number(annotation schema.Annotation, t *schema.Type) string {
	bits := map[schema.Kind]int{schema.KindI8: 8, schema.KindI16: 16, schema.KindI32: 32, schema.KindI64: 64}[t.Kind]
	switch {
	case bits > 0:
		number, err := strconv.ParseInt(annotation.Value, 10, bits)
		if err != nil {
			r.fail(annotation, "%.80q is no %s", annotation.Value, t.Kind)
			return ""
		}
		return strconv.FormatInt(number, 10)
	case t.Kind == schema.KindDouble:
		number, err := strconv.ParseFloat(annotation.Value, 64)
		if err != nil || number-number != 0 { // neither infinite nor NaN
			r.fail(annotation, "%.80q is no finite double", annotation.Value)
			return ""
		}
		return strconv.FormatFloat(number, 'g', -1, 64)
	}
	r.fail(annotation, "is for numbers, and not for a %s", t.Kind)
	return ""
}

// length reads a bound for how many characters, bytes or elements there are.
func (r reader) length(annotation schema.Annotation, t *schema.Type, sized bool) string {
	if !sized {
		r.fail(annotation, "is for strings, binaries and containers, and not for a %s", t.Kind)
		return ""
	}
	number, err := strconv.ParseUint(annotation.Value, 10, 31)
	if err != nil {
		r.fail(annotation, "%.80q is no length, expected 0 to 2147483647", annotation.Value)
		return ""
	}
	return strconv.FormatUint(number, 10)
}

func (r reader) pattern(annotation schema.Annotation, t *schema.Type) string {
	switch {
	case t.Kind != schema.KindString:
		r.fail(annotation, "is for strings, and not for a %s", t.Kind)
	case annotation.Value == "":
		r.fail(annotation, "is empty, and would match everything")
	case len(annotation.Value) > patternBytes:
		r.fail(annotation, "is too long (limit %d bytes, got %d)", patternBytes, len(annotation.Value))
	default:
		if _, err := regexp.Compile(annotation.Value); err != nil {
			r.fail(annotation, "%v", err)
			return ""
		}
		return annotation.Value
	}
	return ""
}

// compare reports bounds that nothing is between.
func (r reader) compare(field *schema.Field, minKey, maxKey, lower, upper string) {
	if lower == "" || upper == "" {
		return
	}
	least, _ := new(big.Rat).SetString(lower)
	most, _ := new(big.Rat).SetString(upper)
	if least != nil && most != nil && least.Cmp(most) > 0 {
		r.output.Errorf(field.Position, "field %.80s: %s %s is more than %s %s, so nothing is valid", field.Name, minKey, lower, maxKey, upper)
	}
}

// misplaced reports annotations of ours where they mean nothing.
func (r reader) misplaced(annotations schema.Annotations, what string) {
	for _, annotation := range annotations {
		if strings.HasPrefix(annotation.Key, prefix) {
			r.fail(annotation, "stands at %s, expected at a field or an argument", what)
		}
	}
}
