package emit

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// value returns the Go expression for a constant or default, as something that
// can be assigned to goType(v.Type). Lists, maps and structs are always written
// out: a name would share what its user may change.
func (p *printer) value(v *schema.Value) string {
	if p.err != nil {
		return "" // nothing that is printed now is kept
	}
	if name, usable := p.namedConstant(v); usable {
		return name
	}
	switch v.Kind {
	case schema.ValueBool:
		return strconv.FormatBool(v.Bool)
	case schema.ValueInt:
		return strconv.FormatInt(v.Int, 10)
	case schema.ValueDouble:
		return p.double(v.Double)
	case schema.ValueString:
		return p.text(v)
	case schema.ValueEnum:
		return p.enumValue(v)
	case schema.ValueList:
		return p.goType(v.Type) + p.listBody(v)
	case schema.ValueMap:
		return p.goType(v.Type) + p.mapBody(v)
	case schema.ValueStruct:
		return p.structValue(v, p.goType(v.Type))
	}
	panic(fmt.Sprintf("emit: value kind %d", v.Kind))
}

// namedConstant returns the name of the constant that the definition used, if
// it is a Go constant that fits without a conversion.
func (p *printer) namedConstant(v *schema.Value) (name string, usable bool) {
	constant := v.Constant
	if constant == nil || !isGoConstant(constant.Type, constant.Value) ||
		constant.Type.Kind != v.Type.Kind || constant.Type.Enum != v.Type.Enum {
		return "", false
	}
	pkg := constant.File.Package
	if _, importable := p.imports.names[pkg]; pkg != p.pkg && !importable {
		return "", false
	}
	return p.imports.generated(pkg, constant.GoName), true
}

// isGoConstant says that a value of type t can be declared by const.
func isGoConstant(t *schema.Type, v *schema.Value) bool {
	switch t.Kind {
	case schema.KindBool, schema.KindI8, schema.KindI16, schema.KindI32, schema.KindI64, schema.KindString, schema.KindEnum:
		return true
	case schema.KindDouble:
		return isConstantDouble(v.Double)
	default:
		return false
	}
}

// isConstantDouble says that a Go constant can have the value: there is no
// negative zero among them, no infinity and no NaN.
func isConstantDouble(f float64) bool {
	return !math.IsNaN(f) && !math.IsInf(f, 0) && (f != 0 || !math.Signbit(f))
}

func (p *printer) double(f float64) string {
	switch {
	case math.IsNaN(f):
		return p.imports.std("math", "NaN") + "()"
	case math.IsInf(f, 0):
		return fmt.Sprintf("%s(%d)", p.imports.std("math", "Inf"), int(math.Copysign(1, f)))
	case !isConstantDouble(f):
		return p.imports.std("math", "Copysign") + "(0, -1)"
	default:
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
}

// text is the expression for a string, binary or uuid.
func (p *printer) text(v *schema.Value) string {
	quoted := strconv.Quote(v.String)
	switch v.Type.Kind {
	case schema.KindBinary:
		return "[]byte(" + quoted + ")"
	case schema.KindUUID:
		return p.imports.thrift("MustParseUUID") + "(" + quoted + ")"
	default:
		return quoted
	}
}

func (p *printer) enumValue(v *schema.Value) string {
	if v.Enum == nil {
		return fmt.Sprintf("%s(%d)", p.goType(v.Type), v.Int)
	}
	return p.imports.generated(v.Enum.Enum.File.Package, v.Enum.GoName)
}

// element is value within a composite literal, where Go lets structs and
// containers leave out their types.
func (p *printer) element(v *schema.Value) string {
	switch v.Kind {
	case schema.ValueList:
		return p.listBody(v)
	case schema.ValueMap:
		return p.mapBody(v)
	case schema.ValueStruct:
		return p.structValue(v, "")
	default:
		return p.value(v)
	}
}

// literal puts the parts of a composite literal in braces, one a line if they
// are many.
func literal(parts []string) string {
	const longest = 80
	width := 0
	for _, part := range parts {
		width += len(part)
	}
	if width > longest {
		return "{\n" + strings.Join(parts, ",\n") + ",\n}"
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// expressions are parts of a composite literal.
type expressions struct {
	list  []string
	bytes int
}

// collect adds a part. It returns false if no more is wanted: what is too long
// for a declaration must not be put together first, because a few values can
// name much text.
func (p *printer) collect(parts *expressions, text string) bool {
	parts.list = append(parts.list, text)
	parts.bytes += len(text)
	if parts.bytes > limits.GoDeclarationBytes {
		p.failTooLong()
	}
	return p.err == nil
}

func (p *printer) listBody(v *schema.Value) string {
	var parts expressions
	for _, element := range v.List {
		if !p.collect(&parts, p.element(element)) {
			return ""
		}
	}
	return literal(parts.list)
}

func (p *printer) mapBody(v *schema.Value) string {
	var parts expressions
	for _, entry := range v.Entries {
		var part string
		if p.isPairs(v.Type) {
			// A field of a composite literal must name its type.
			part = "{Key: " + p.value(entry.Key) + ", Value: " + p.pairValue(entry.Value) + "}"
		} else {
			part = p.mapKey(entry.Key) + ": " + p.mapValue(entry.Value)
		}
		if !p.collect(&parts, part) {
			return ""
		}
	}
	return literal(parts.list)
}

// mapKey is element for a key; bytes are strings there.
func (p *printer) mapKey(v *schema.Value) string {
	if v.Type.Kind == schema.KindBinary {
		return strconv.Quote(v.String)
	}
	return p.element(v)
}

// mapValue is element for the value of a map. Go lets a literal of pointers leave out
// the types, and the ampersands with them.
func (p *printer) mapValue(v *schema.Value) string {
	if v.Kind == schema.ValueStruct && !p.options.Kitex {
		if constructed := p.constructed(v); constructed != "" {
			return constructed
		}
	}
	return p.element(v)
}

// pairValue is value for the value of a map that is a slice of pairs.
func (p *printer) pairValue(v *schema.Value) string {
	if v.Kind == schema.ValueStruct {
		return p.structPointer(v)
	}
	return p.value(v)
}

// structValue returns the expression for a struct. If it is a composite
// literal, that starts with typeName.
func (p *printer) structValue(v *schema.Value, typeName string) string {
	if p.options.Kitex {
		return p.kitexStructValue(v, typeName)
	}
	if constructed := p.constructed(v); constructed != "" {
		return "*" + constructed
	}
	return typeName + literal(p.fieldValues(p.declaredRecord(v.Type.Struct), v))
}

// structPointer is structValue for a pointer to the struct.
func (p *printer) structPointer(v *schema.Value) string {
	if p.options.Kitex {
		return p.kitexStructValue(v, p.goType(v.Type))
	}
	if constructed := p.constructed(v); constructed != "" {
		return constructed
	}
	return "&" + p.structValue(v, p.goType(v.Type))
}

// constructed returns an expression for a pointer to a struct that starts from
// NewX, or "" if a composite literal will do. Defaults that are structs or
// containers are left to NewX: written out, they could contain others that have
// to be written out, and a small definition would become any amount of code.
func (p *printer) constructed(v *schema.Value) string {
	r := p.declaredRecord(v.Type.Struct)
	given := givenFields(v)
	constructor := p.constructor(v.Type.Struct) + "()"
	switch {
	case !p.hasDefaults(v.Type.Struct):
		return ""
	case len(given) == 0:
		return constructor
	case !slices.ContainsFunc(r.largePresets, func(i int) bool { return given[r.members[i].Field] == nil }):
		return ""
	}
	var statements expressions
	p.collect(&statements, "s := "+constructor)
	for _, i := range r.given(v) {
		m := r.members[i]
		if !p.collect(&statements, "s."+m.GoName+" = "+p.memberValue(m, given[m.Field])) {
			return ""
		}
	}
	return "func() *" + p.goType(v.Type) + " {\n" + strings.Join(statements.list, "\n") + "\nreturn s\n}()"
}

func givenFields(v *schema.Value) map[*schema.Field]*schema.Value {
	given := make(map[*schema.Field]*schema.Value, len(v.Fields))
	for _, field := range v.Fields {
		given[field.Field] = field.Value
	}
	return given
}

// given returns the indexes of the members that a struct value gives, in order.
func (r *record) given(v *schema.Value) []int {
	indexes := make([]int, len(v.Fields))
	for i, field := range v.Fields {
		indexes[i] = r.index(field.Field)
	}
	slices.Sort(indexes)
	return indexes
}

// fieldValues returns "Field: value" for the fields that v gives, if it is not
// nil, and those that a new struct holds something in. Others are not looked at:
// there may be many values of a struct with many fields.
func (p *printer) fieldValues(r *record, v *schema.Value) []string {
	var given map[*schema.Field]*schema.Value
	holding := r.presets
	if v != nil {
		given = givenFields(v)
		holding = slices.Concat(r.presets, r.given(v))
		slices.Sort(holding)
		holding = slices.Compact(holding)
	}
	var parts expressions
	for _, i := range holding {
		m := r.members[i]
		value := given[m.Field]
		if value == nil && !m.optional {
			value = m.Default
		}
		text := ""
		if value != nil {
			text = m.GoName + ": " + p.memberValue(m, value)
		} else {
			text = m.GoName + ": *" + p.constructor(m.Type.Struct) + "()"
		}
		if !p.collect(&parts, text) {
			return nil
		}
	}
	return parts.list
}

// memberValue is the value as the Go field of the member holds it.
func (p *printer) memberValue(m member, v *schema.Value) string {
	switch m.form {
	case formPointer:
		if m.Type.Kind != schema.KindStruct {
			return "new(" + p.goType(m.Type) + "(" + p.value(v) + "))"
		}
		return p.structPointer(v)
	case formOpt:
		if m.custom != nil {
			return p.imports.thrift("Some") + "(" + p.fieldValue(m, v) + ")"
		}
		return p.imports.thrift("Some") + p.someArgument(m.Type) + "(" + p.value(v) + ")"
	default:
		return p.fieldValue(m, v)
	}
}

// someArgument is the type argument that thrift.Some needs for a number without
// a type.
func (p *printer) someArgument(t *schema.Type) string {
	switch t.Kind {
	case schema.KindI8, schema.KindI16, schema.KindI32, schema.KindI64, schema.KindDouble:
		return "[" + p.goType(t) + "]"
	default:
		return ""
	}
}
