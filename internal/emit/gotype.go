package emit

import (
	"fmt"

	"github.com/fulmar-rpc/fulmar/gen/schema"
)

// goType returns the Go type of a value that is there.
func (p *printer) goType(t *schema.Type) string {
	if t.Typedef != nil {
		return p.imports.generated(t.Typedef.File.Package, t.Typedef.GoName)
	}
	return p.plainType(t, p.goType)
}

// expandedType is goType without the names that the definition gave to types.
func (p *printer) expandedType(t *schema.Type) string { return p.plainType(t, p.expandedType) }

// plainType returns the Go type that t stands for, with types within t as inner
// returns them.
func (p *printer) plainType(t *schema.Type, inner func(*schema.Type) string) string {
	switch t.Kind {
	case schema.KindBool:
		return "bool"
	case schema.KindI8:
		return "int8"
	case schema.KindI16:
		return "int16"
	case schema.KindI32:
		return "int32"
	case schema.KindI64:
		return "int64"
	case schema.KindDouble:
		return "float64"
	case schema.KindString:
		return "string"
	case schema.KindBinary:
		return "[]byte"
	case schema.KindUUID:
		return p.imports.thrift("UUID")
	case schema.KindEnum:
		return p.imports.generated(t.Enum.File.Package, t.Enum.GoName)
	case schema.KindStruct:
		return p.imports.generated(t.Struct.File.Package, t.Struct.GoName)
	case schema.KindMessage:
		return "*" + p.imports.message(t.Message)
	case schema.KindList, schema.KindSet:
		return "[]" + p.elementType(t.Element, inner)
	case schema.KindMap:
		if p.isPairs(t) {
			return "[]" + p.pairType(t)
		}
		return "map[" + p.keyType(t.Key, inner) + "]" + mapValueType(t.Element, inner)
	}
	panic("emit: no Go type for " + t.Kind.String())
}

// keyType is the type of the key of a Go map. Bytes cannot be one, so binary
// keys are strings, whatever the definition calls them.
func (p *printer) keyType(t *schema.Type, inner func(*schema.Type) string) string {
	if t.Kind == schema.KindBinary {
		return "string"
	}
	return p.elementType(t, inner)
}

// mapValueType is the type of the value of a map, whatever its key is. Structs are
// pointers in every shape: Go allocates each value of more than 128 bytes by itself and
// copies it, and could not change it in place.
func mapValueType(t *schema.Type, inner func(*schema.Type) string) string {
	if t.Kind == schema.KindStruct {
		return "*" + inner(t)
	}
	return inner(t)
}

// pairType never uses the names of typedefs: Go 1.26 crashes when a type has an
// alias as an argument whose meaning depends on that type.
func (p *printer) pairType(t *schema.Type) string {
	return p.imports.thrift("Pair") + "[" + p.elementType(t.Key, p.expandedType) + ", " + mapValueType(t.Element, p.expandedType) + "]"
}

func (p *printer) memberType(m member) string {
	switch m.form {
	case formOpt:
		return p.imports.thrift("Opt") + "[" + p.valueType(m) + "]"
	case formPointer:
		return "*" + p.heldStruct(m)
	default:
		return p.valueType(m)
	}
}

// passedType is the type of an argument or result of a Go method.
func (p *printer) passedType(t *schema.Type) string {
	if t.Kind == schema.KindStruct {
		return "*" + p.goType(t)
	}
	return p.goType(t)
}

// zeroValue is what a Go method returns beside an error.
func (p *printer) zeroValue(t *schema.Type) string {
	switch t.Kind {
	case schema.KindBool:
		return "false"
	case schema.KindString:
		return `""`
	case schema.KindUUID:
		return p.goType(t) + "{}"
	case schema.KindI8, schema.KindI16, schema.KindI32, schema.KindI64, schema.KindDouble, schema.KindEnum:
		return "0"
	default:
		return "nil"
	}
}

// wireType is the type code of t, as the file writes it.
func (p *printer) wireType(t *schema.Type) string {
	return p.imports.thrift(wireTypes[t.Kind].name)
}

// fieldKey is what thrift.Key returns for the field: its type code and id
// together.
func fieldKey(field *schema.Field) uint32 {
	return wireTypes[field.Type.Kind].code<<16 | uint32(uint16(field.ID))
}

// wireTypes maps kinds to the type codes of the Binary protocol, their names in
// package thrift, how many bytes their values take in a Go struct, and how many on
// the wire, 0 if that varies.
var wireTypes = [...]struct {
	name      string
	code      uint32
	goBytes   int
	wireBytes int
}{
	schema.KindBool:   {"Bool", 2, 1, 1},
	schema.KindI8:     {"I8", 3, 1, 1},
	schema.KindI16:    {"I16", 6, 2, 2},
	schema.KindI32:    {"I32", 8, 4, 4},
	schema.KindI64:    {"I64", 10, 8, 8},
	schema.KindDouble: {"Double", 4, 8, 8},
	schema.KindString: {"String", 11, 16, 0},
	schema.KindBinary: {"String", 11, 24, 0},
	schema.KindUUID:   {"UUIDType", 16, 16, 16},
	schema.KindEnum:   {"I32", 8, 4, 4},
	schema.KindStruct: {"StructType", 12, 0, 0},
	schema.KindList:   {"List", 15, 24, 0},
	schema.KindSet:    {"Set", 14, 24, 0},
	schema.KindMap:    {"Map", 13, 24, 0},
}

// idlType is the type as the definition writes it, for comments.
func idlType(t *schema.Type) string {
	switch {
	case t.Typedef != nil:
		return identifierText(t.Typedef.Name)
	case t.Kind == schema.KindEnum:
		return identifierText(t.Enum.Name)
	case t.Kind == schema.KindStruct:
		return identifierText(t.Struct.Name)
	case t.Kind == schema.KindList, t.Kind == schema.KindSet:
		return t.Kind.String() + "<" + idlType(t.Element) + ">"
	case t.Kind == schema.KindMap:
		return "map<" + idlType(t.Key) + ", " + idlType(t.Element) + ">"
	default:
		return t.Kind.String()
	}
}

// keyText is fieldKey as generated code has it.
func keyText(field *schema.Field) string { return fmt.Sprintf("%#08x", fieldKey(field)) }
