package emit

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// declaration is a name that an addition declares: "Order", "Order.Validate"
// for a method or a field.
type declaration struct {
	origin string
	point  Point
	pkg    *schema.Package
	name   string
	// position is that of what the addition is of.
	position schema.Position
}

// check parses an addition as what its point takes, and finds what it imports
// and declares.
func (p *Prepared) check(addition Addition, file *schema.File) (*checkedAddition, []declaration, error) {
	if len(addition.Text) > limits.PluginTextBytes {
		return nil, nil, fmt.Errorf("the text is too long (limit %d bytes, got %d)", limits.PluginTextBytes, len(addition.Text))
	}
	if p.additions.bytes += len(addition.Text); p.additions.bytes > limits.PluginBytes {
		return nil, nil, fmt.Errorf("too much text is added in one run (limit %d bytes)", limits.PluginBytes)
	}
	if field, ok := addition.Of.(*schema.Field); ok {
		tags, err := p.tagText(field, addition.Text)
		return &checkedAddition{tags: tags}, nil, err
	}
	text := trimText(addition.Text)
	tree, err := parseAddition(addition, text)
	if err != nil {
		return nil, nil, err
	}
	imports, err := p.checkImports(file.Package, addition.Imports, qualifiers(tree))
	if err != nil {
		return nil, nil, err
	}
	var declared []declaration
	names := declaredNames(tree)
	if addition.Point == StructFields {
		names = fieldNames(addition.Of.(*schema.Struct).GoName, tree)
	}
	for _, name := range names {
		declared = append(declared, declaration{
			origin: addition.Origin, point: addition.Point, pkg: file.Package, name: name, position: PositionOf(addition.Of),
		})
	}
	return &checkedAddition{text: text, imports: imports}, declared, nil
}

// fieldsHead is what fields are put behind so that they can be parsed.
const fieldsHead = "package p\ntype _ struct {\n"

// parseAddition returns the declarations in a text, or the struct type around
// its fields.
func parseAddition(addition Addition, text string) (*ast.File, error) {
	head, tail := "package p\n", "\n"
	if addition.Point == StructFields {
		head, tail = fieldsHead, "\n}\n"
	}
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, "", head+text+tail, parser.ParseComments)
	if err != nil {
		return nil, textError(err, strings.Count(head, "\n"))
	}
	for _, group := range tree.Comments {
		for _, comment := range group.List {
			if isInstruction(comment.Text) {
				return nil, fmt.Errorf("line %d: the comment %.80q is an instruction to a tool", files.PositionFor(comment.Pos(), false).Line-strings.Count(head, "\n"), comment.Text)
			}
		}
	}
	for _, declared := range tree.Decls {
		if group, ok := declared.(*ast.GenDecl); ok && group.Tok == token.IMPORT {
			return nil, errors.New("an import stands in the text, expected in the list of imports")
		}
	}
	if addition.Point == StructFields && (len(tree.Decls) != 1 || !isWholeStruct(tree, len(head+text)+len("\n"))) {
		return nil, errors.New("the text is more than fields of a struct")
	}
	return tree, nil
}

// isWholeStruct says that the first declaration of a file is one struct type
// whose last bracket is at the offset.
func isWholeStruct(tree *ast.File, offset int) bool {
	group, ok := tree.Decls[0].(*ast.GenDecl)
	if !ok || len(group.Specs) != 1 {
		return false
	}
	spec, ok := group.Specs[0].(*ast.TypeSpec)
	if !ok {
		return false
	}
	structType, ok := spec.Type.(*ast.StructType)
	return ok && int(structType.Fields.Closing-tree.FileStart) == offset
}

// textError is the first error of the parser, with the line in the text.
func textError(err error, skipped int) error {
	var list scanner.ErrorList
	if !errors.As(err, &list) || len(list) == 0 {
		return fmt.Errorf("is not Go: %w", err)
	}
	return fmt.Errorf("is not Go: line %d:%d: %s", max(list[0].Pos.Line-skipped, 1), list[0].Pos.Column, list[0].Msg)
}

// isInstruction says that a comment is more than text to some tool: to the
// compiler, to the parser, which would take other lines for the ones it has, or
// to cgo.
func isInstruction(comment string) bool {
	for _, prefix := range []string{"//go:", "//line ", "/*line ", "//export ", "//extern "} {
		if strings.HasPrefix(comment, prefix) {
			return true
		}
	}
	text, isLine := strings.CutPrefix(comment, "//")
	return isLine && strings.HasPrefix(strings.TrimSpace(text), "+build")
}

// qualifiers returns the names before dots that nothing in the file declares,
// sorted: packages, if they are called so.
func qualifiers(tree *ast.File) []string {
	unresolved := map[*ast.Ident]bool{}
	for _, name := range tree.Unresolved {
		unresolved[name] = true
	}
	found := map[string]bool{}
	ast.Inspect(tree, func(node ast.Node) bool {
		if selector, ok := node.(*ast.SelectorExpr); ok {
			if name, ok := selector.X.(*ast.Ident); ok && unresolved[name] {
				found[name.Name] = true
			}
		}
		return true
	})
	return slices.Sorted(maps.Keys(found))
}

// declaredNames returns what a file declares: "Order", and "Order.Get" for
// methods and fields of structs. Blank names and init may come any number of
// times.
func declaredNames(tree *ast.File) (names []string) {
	for _, declared := range tree.Decls {
		switch d := declared.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil && len(d.Recv.List) == 1 {
				names = append(names, receiverName(d.Recv.List[0].Type)+"."+d.Name.Name)
			} else if d.Name.Name != "init" {
				names = append(names, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name.Name)
					if structType, ok := s.Type.(*ast.StructType); ok {
						names = append(names, memberNames(s.Name.Name, structType)...)
					}
				case *ast.ValueSpec:
					for _, name := range s.Names {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "_" || strings.HasSuffix(name, "._") })
}

// fieldNames returns the fields in the struct type that stands for that of
// goName.
func fieldNames(goName string, tree *ast.File) []string {
	spec := tree.Decls[0].(*ast.GenDecl).Specs[0].(*ast.TypeSpec)
	return memberNames(goName, spec.Type.(*ast.StructType))
}

func memberNames(typeName string, structType *ast.StructType) (names []string) {
	for _, field := range structType.Fields.List {
		for _, name := range field.Names {
			names = append(names, typeName+"."+name.Name)
		}
		if len(field.Names) == 0 {
			names = append(names, typeName+"."+receiverName(field.Type))
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "._") })
}

// receiverName is the name of a type without pointer, package and arguments.
func receiverName(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return receiverName(e.X)
	case *ast.ParenExpr:
		return receiverName(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.IndexExpr:
		return receiverName(e.X)
	case *ast.IndexListExpr:
		return receiverName(e.X)
	default:
		return ""
	}
}

// checkDeclared reports names that a plugin declares and that something else in
// the package has: the compiler would, but without saying who is to blame.
func (g *generator) checkDeclared(files []File) {
	packages := map[string]map[string]int{}
	for _, declared := range g.additions.declared {
		packages[declared.pkg.Path] = map[string]int{}
	}
	imported := map[string]map[string]bool{}
	for _, file := range files {
		folder := path.Dir(file.Path)
		counts := packages[folder]
		if counts == nil {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), "", bytes.NewReader(file.Content()), parser.SkipObjectResolution)
		if err != nil {
			g.errorf(schema.Position{File: file.Path}, "generated code is not valid Go: %v", err)
			continue
		}
		for _, name := range declaredNames(tree) {
			counts[name]++
		}
		if imported[folder] == nil {
			imported[folder] = map[string]bool{}
		}
		for _, spec := range tree.Imports {
			imported[folder][importName(spec)] = true
		}
	}
	for _, declared := range g.additions.declared {
		switch name := declared.name; {
		case packages[declared.pkg.Path][name] > 1:
			g.errorf(declared.position, "%s: %s: declares %s, which package %s has already", declared.origin, declared.point, name, declared.pkg.Path)
		case imported[declared.pkg.Path][name]:
			g.errorf(declared.position, "%s: %s: declares %s, which is the name of an import in package %s", declared.origin, declared.point, name, declared.pkg.Path)
		}
	}
}

func importName(spec *ast.ImportSpec) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	return path.Base(strings.Trim(spec.Path.Value, `"`))
}

// PositionOf is where messages about something point to that an addition can be
// of. It may be nil.
func PositionOf(of any) (position schema.Position) {
	switch node := of.(type) {
	case *schema.Struct:
		if node != nil {
			position = node.Position
		}
	case *schema.Field:
		if node != nil {
			position = node.Position
		}
	case *schema.Enum:
		if node != nil {
			position = node.Position
		}
	case *schema.Service:
		if node != nil {
			position = node.Position
		}
	case *schema.File:
		if node != nil {
			position = filePosition(node)
		}
	}
	return position
}
