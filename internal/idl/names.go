package idl

import (
	"slices"
	"strings"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/idl/ast"
)

// state of looking up what a typedef or a constant stands for.
type state uint8

const (
	stateNew state = iota
	stateResolving
	stateDone
)

// symbol is a declared name. Exactly one of the schema members is set.
type symbol struct {
	what     string // for messages: "struct", "typedef"
	name     string
	position schema.Position
	unit     *unit
	node     ast.Declaration

	enum      *schema.Enum
	structure *schema.Struct
	typedef   *schema.Typedef
	constant  *schema.Constant
	service   *schema.Service

	// state and extent are used for typedefs and constants.
	state  state
	extent extent
}

// extent is how much a type or value is when written out.
type extent struct{ height, size int }

// around returns the extent of something that contains e.
func (e extent) around(inner extent) extent {
	return extent{height: max(e.height, inner.height+1), size: e.size + inner.size}
}

// declareNames fills the scope of every file and the lists of schema.File.
func (r *resolver) declareNames() {
	inPackage := make(map[*schema.Package]map[string]*symbol)
	for _, u := range r.units {
		scope := inPackage[u.file.Package]
		if scope == nil {
			scope = make(map[string]*symbol)
			inPackage[u.file.Package] = scope
		}
		for _, node := range u.tree.Declarations {
			s := newSymbol(u, node, r.annotations(u, node.Declared().Annotations))
			switch first := scope[s.name]; {
			case first == nil:
				scope[s.name] = s
				u.declare(s)
			case first.unit == u:
				r.found.errorf(s.position, "%s %s: name is taken by the %s at %s", s.what, s.name, first.what, first.position)
			default:
				u.declare(s)
				r.found.errorf(s.position, "%s %s: name is taken in Go package %s by the %s at %s", s.what, s.name, u.file.Package.Path, first.what, first.position)
			}
		}
	}
}

func (u *unit) declare(s *symbol) {
	u.names[s.name] = s
	u.symbols = append(u.symbols, s)
}

// symbols calls yield for every declaration, in the order of the files.
func (r *resolver) symbols(yield func(*symbol) bool) {
	for _, u := range r.units {
		for _, s := range u.symbols {
			if r.exhausted() || !yield(s) {
				return
			}
		}
	}
}

// newSymbol makes the symbol of a declaration and adds the declaration to the
// file.
func newSymbol(u *unit, node ast.Declaration, annotations schema.Annotations) *symbol {
	head, file := node.Declared(), u.file
	s := &symbol{name: head.Name.Text, position: u.at(head.Name.Place), unit: u, node: node}
	switch node := node.(type) {
	case *ast.Constant:
		s.what = "const"
		s.constant = &schema.Constant{Name: s.name, Doc: head.Doc, Annotations: annotations, File: file, Position: s.position}
		file.Constants = append(file.Constants, s.constant)
	case *ast.Typedef:
		s.what = "typedef"
		s.typedef = &schema.Typedef{Name: s.name, Doc: head.Doc, Annotations: annotations, File: file, Position: s.position}
		file.Typedefs = append(file.Typedefs, s.typedef)
	case *ast.Enum:
		s.what = "enum"
		s.enum = &schema.Enum{Name: s.name, Doc: head.Doc, Annotations: annotations, File: file, Position: s.position}
		file.Enums = append(file.Enums, s.enum)
	case *ast.Struct:
		s.what = node.Category.String()
		s.structure = &schema.Struct{Name: s.name, Doc: head.Doc, Category: node.Category, Annotations: annotations, File: file, Position: s.position}
		file.Structs = append(file.Structs, s.structure)
	case *ast.Service:
		s.what = "service"
		s.service = &schema.Service{Name: s.name, Doc: head.Doc, Annotations: annotations, File: file, Position: s.position}
		file.Services = append(file.Services, s.service)
	}
	return s
}

// find returns the declaration that a reference names, or nil. An ambiguous
// reference is reported.
func (r *resolver) find(u *unit, name ast.Name) *symbol {
	if s := u.names[name.Text]; s != nil {
		return s
	}
	base, member := splitLast(name.Text)
	if base == "" {
		return nil
	}
	var candidates []*symbol
	for _, included := range u.includes[base] {
		candidates = append(candidates, included.names[member])
	}
	candidates = slices.DeleteFunc(candidates, func(s *symbol) bool { return s == nil })
	if len(candidates) == 0 {
		if base == u.file.Base {
			return u.names[member]
		}
		return nil
	}
	if len(candidates) > 1 {
		r.found.errorf(u.at(name.Place), "%s: two files are called %s, and the name is declared at %s and at %s", name.Text, base, candidates[0].position, candidates[1].position)
	}
	return candidates[0]
}

// lost says that a reference that leads nowhere may mean something that could
// not be read, so that nothing has to be said about it.
func (r *resolver) lost(u *unit, name string) bool {
	if u.tree.Gaps.MayDeclare(name) {
		return true
	}
	base, member := splitLast(name)
	if base == "" {
		return false
	}
	if base == u.file.Base && u.tree.Gaps.MayDeclare(member) {
		return true
	}
	for _, included := range u.includes[base] {
		if included.tree.Gaps.MayDeclare(member) {
			return true
		}
	}
	return u.lost[base] || u.tree.Gaps.Headers && u.includes[base] == nil && base != u.file.Base
}

// splitLast cuts a reference at its last dot.
func splitLast(name string) (before, after string) {
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 {
		return "", name
	}
	return name[:dot], name[dot+1:]
}

// hint proposes how to write a name that was not found.
func (r *resolver) hint(u *unit, name string) string {
	for _, included := range u.file.Includes {
		for _, candidate := range u.includes[included.Base] {
			if candidate.names[name] != nil {
				return "; is " + included.Base + "." + name + " meant?"
			}
		}
	}
	base, _ := splitLast(name)
	if base != "" && u.includes[base] == nil {
		return "; no included file is called " + base
	}
	return ""
}

// typeHint is hint for a type, where a similar name of this file may help too.
func (r *resolver) typeHint(u *unit, name string) string {
	if hint := r.hint(u, name); hint != "" || r.exhausted() {
		return hint
	}
	candidates := u.symbols
	prefix, member := splitLast(name)
	if prefix != "" {
		candidates = nil
		for _, included := range u.includes[prefix] {
			candidates = append(candidates, included.symbols...)
		}
		prefix += "."
	}
	var names []string
	for _, s := range candidates {
		if s.constant == nil && s.service == nil {
			names = append(names, s.name)
		}
	}
	if close := nearest(member, names); close != "" {
		return "; is " + prefix + close + " meant?"
	}
	return ""
}

// enumHint proposes values of an enum instead of one that it does not have: a
// similar one, else the first ones.
func enumHint(enum *schema.Enum, name string) string {
	const shown = 5
	_, member := splitLast(name)
	var names []string
	for _, value := range enum.Values {
		names = append(names, value.Name)
	}
	if close := nearest(member, names); close != "" {
		return "; is " + enum.Name + "." + close + " meant?"
	}
	switch {
	case len(names) == 0:
		return ""
	case len(names) > shown:
		names = append(names[:shown:shown], "...")
	}
	return ", expected one of " + clip(strings.Join(names, ", "))
}
