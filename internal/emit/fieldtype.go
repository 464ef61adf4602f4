package emit

import (
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// fieldType is a Go type that a definition asks for with go.type, for a field of a
// scalar, string or binary. Its underlying type is that of the Thrift type, which the
// compiler checks: values are converted, and nothing of the user's runs. For a list or
// set of i8 it is bytesType, and nothing is converted either: package thrift reads and
// writes both.
type fieldType struct {
	// path is the import path, "" for the package of the field.
	path, name string
}

// bytesType is the one type that a list or set of i8 can have.
const bytesType = "[]byte"

// canBeBytes says that a value of type t may be bytes in Go.
func canBeBytes(t *schema.Type) bool {
	return (t.Kind == schema.KindList || t.Kind == schema.KindSet) && t.Element.Kind == schema.KindI8
}

// isBytes says that a member is bytes in Go, and a list or set of i8 otherwise.
func (m member) isBytes() bool { return m.custom != nil && isContainer(m.Type) }

// canHaveType says that a field of type t may have another type in Go: not within
// containers, which would have to be copied, and not what the definition declares,
// which has a type already.
func canHaveType(t *schema.Type) bool {
	switch t.Kind {
	case schema.KindBool, schema.KindI8, schema.KindI16, schema.KindI32, schema.KindI64, schema.KindDouble, schema.KindString, schema.KindBinary:
		return true
	default:
		return canBeBytes(t)
	}
}

// fieldTypeOf returns what a field of a struct asks for, nil if it does not, or not for
// something that can be had.
func fieldTypeOf(field *schema.Field) *fieldType {
	annotation := findAnnotation(field.Annotations, annotationType)
	if annotation == nil || !canHaveType(field.Type) {
		return nil
	}
	if canBeBytes(field.Type) {
		if annotation.Value != bytesType {
			return nil
		}
		return &fieldType{name: bytesType}
	}
	parsed, ok := parseFieldType(annotation.Value)
	if !ok {
		return nil
	}
	return &parsed
}

// parseFieldType reads "example.com/shop/ids.OrderID" or "OrderID". The packages that
// are no packages are refused: one would start a C compiler.
func parseFieldType(text string) (parsed fieldType, ok bool) {
	parsed.name = text
	if dot := strings.LastIndexByte(text, '.'); dot >= 0 {
		parsed.path, parsed.name = text[:dot], text[dot+1:]
		if !importPath.MatchString(parsed.path) || parsed.path == "C" || parsed.path == "unsafe" {
			return fieldType{}, false
		}
	}
	return parsed, len(text) <= limits.IDLNameBytes && identifier.MatchString(parsed.name) && token.IsExported(parsed.name)
}

func (g *generator) checkFieldType(field *schema.Field) {
	annotation := findAnnotation(field.Annotations, annotationType)
	if annotation == nil {
		return
	}
	if canBeBytes(field.Type) {
		if annotation.Value != bytesType {
			g.errorf(annotation.Position, "annotation %s: a %s can be %s and nothing else, found %.80q", annotationType, idlType(field.Type), bytesType, annotation.Value)
		}
		return
	}
	if _, ok := parseFieldType(annotation.Value); !ok {
		g.errorf(annotation.Position, "annotation %s: %.80q is not an exported type, expected for example time.Duration or example.com/shop/ids.OrderID, at most %d bytes",
			annotationType, annotation.Value, limits.IDLNameBytes)
	}
}

// fieldTypePaths are the packages that the structs of a package ask for, sorted.
func fieldTypePaths(pkg *schema.Package) []string {
	var paths []string
	for _, file := range pkg.Files {
		for _, s := range file.Structs {
			for _, field := range s.Fields {
				if custom := fieldTypeOf(field); custom != nil && custom.path != "" {
					paths = append(paths, custom.path)
				}
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// pathName is the name that a package with an import path probably has.
func pathName(importPath string) string {
	name := path.Base(importPath)
	if len(name) > 1 && name[0] == 'v' && strings.Trim(name[1:], "0123456789") == "" && path.Dir(importPath) != "." {
		name = path.Base(path.Dir(importPath))
	}
	name = identifierText(name)
	if name == "" || isDigit(name[0]) {
		return "custom" + name
	}
	return name
}

// custom returns a type that a definition asks for as the file writes it.
func (i *imports) custom(custom *fieldType) string {
	if custom.path == "" {
		return custom.name
	}
	alias := i.paths[custom.path]
	i.modules[custom.path] = alias
	return alias + "." + custom.name
}

// valueType is the Go type of the value of a field.
func (p *printer) valueType(m member) string {
	if m.custom != nil {
		return p.imports.custom(m.custom)
	}
	if m.asMap {
		return p.setType(m.Type)
	}
	if m.viewed {
		return p.viewOf(m.Type.Struct)
	}
	return p.goType(m.Type)
}

// toField converts a value of the Go type that the Thrift type has otherwise, unless Go
// assigns it.
func (p *printer) toField(m member, value string) string {
	if m.custom == nil || m.Type.Kind == schema.KindBinary || m.isBytes() {
		return value
	}
	return p.imports.custom(m.custom) + "(" + value + ")"
}

// fromField is the reverse of toField.
func (p *printer) fromField(m member, value string) string {
	if m.custom == nil || m.Type.Kind == schema.KindBinary || m.isBytes() {
		return value
	}
	return p.plainType(m.Type, nil) + "(" + value + ")"
}

// fieldValue is value for what a member holds.
func (p *printer) fieldValue(m member, v *schema.Value) string {
	switch {
	case m.isBytes():
		return p.byteList(v)
	case m.asMap:
		return p.setValue(m.Type, v)
	}
	return p.toField(m, p.value(v))
}

// byteList returns the expression for a list of i8 as bytes. All are written as numbers:
// a constant may be negative, which Go does not make a byte of.
func (p *printer) byteList(v *schema.Value) string {
	if p.err != nil {
		return ""
	}
	var parts expressions
	for _, element := range v.List {
		if !p.collect(&parts, strconv.Itoa(int(uint8(element.Int)))) {
			return ""
		}
	}
	return bytesType + literal(parts.list)
}

// checkTypes prints what keeps a struct from compiling if a type that it asks for is
// another one underneath: a conversion alone would lose digits.
func (p *printer) checkTypes(r *record) {
	var checks []string
	for _, m := range r.members {
		if m.custom != nil && !m.isBytes() {
			checks = append(checks, "_ = (*"+p.plainType(m.Type, nil)+")((*"+p.imports.custom(m.custom)+")(nil))")
		}
	}
	if len(checks) == 0 {
		return
	}
	slices.Sort(checks)
	p.P()
	p.doc(sentence("If this does not compile, a type that go.type names in ", r.goName, " is not what the definition says."))
	p.P("var (")
	p.P(strings.Join(slices.Compact(checks), "\n"))
	p.P(")")
}
