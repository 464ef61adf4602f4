package idl

import (
	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/idl/ast"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// resolveTypes fills everything but values and services.
func (r *resolver) resolveTypes() {
	for s := range r.symbols {
		switch node := s.node.(type) {
		case *ast.Enum:
			r.resolveEnum(s, node)
		case *ast.Typedef:
			r.resolveTypedef(s, 0)
		case *ast.Struct:
			r.resolveStruct(s, node)
		case *ast.Constant:
			s.constant.Type, _ = r.typeOf(s.unit, node.Type, 0)
		}
	}
}

func baseKind(name string) schema.Kind {
	switch name {
	case "bool":
		return schema.KindBool
	case "byte", "i8":
		return schema.KindI8
	case "i16":
		return schema.KindI16
	case "i32":
		return schema.KindI32
	case "i64":
		return schema.KindI64
	case "double":
		return schema.KindDouble
	case "string":
		return schema.KindString
	case "binary":
		return schema.KindBinary
	case "uuid":
		return schema.KindUUID
	case "list":
		return schema.KindList
	case "set":
		return schema.KindSet
	case "map":
		return schema.KindMap
	default:
		return schema.KindInvalid
	}
}

// typeOf resolves a use of a type. The result is never nil; if it could not be
// resolved, that was reported and its kind is invalid. depth counts the
// containers and typedefs around it.
func (r *resolver) typeOf(u *unit, node *ast.Type, depth int) (*schema.Type, extent) {
	t := &schema.Type{Annotations: r.annotations(u, node.Annotations), Position: u.at(node.Place)}
	size := extent{height: 1, size: 1}
	r.spend(1, t.Position)
	t.Kind = baseKind(node.Name)
	if node.Key != nil {
		key, inner := r.typeOf(u, node.Key, depth+1)
		t.Key, size = key, size.around(inner)
	}
	if node.Element != nil {
		element, inner := r.typeOf(u, node.Element, depth+1)
		t.Element, size = element, size.around(inner)
	}
	if t.Kind == schema.KindInvalid {
		size = r.reference(u, node, t, depth)
	}
	if isInvalid(t.Key) || isInvalid(t.Element) {
		t.Kind = schema.KindInvalid
	}
	return t, size
}

func isInvalid(t *schema.Type) bool { return t != nil && t.Kind == schema.KindInvalid }

// reference resolves a type that has a name.
func (r *resolver) reference(u *unit, node *ast.Type, t *schema.Type, depth int) extent {
	switch s := r.find(u, ast.Name{Text: node.Name, Place: node.Place}); {
	case s == nil && r.lost(u, node.Name):
	case s == nil:
		r.found.errorf(t.Position, "type %s: not declared%s", node.Name, r.typeHint(u, node.Name))
	case s.enum != nil:
		t.Kind, t.Enum = schema.KindEnum, s.enum
	case s.structure != nil:
		t.Kind, t.Struct = schema.KindStruct, s.structure
	case s.typedef != nil:
		r.resolveTypedef(s, depth+1)
		r.expand(t, s, depth)
		return s.extent
	default:
		r.found.errorf(t.Position, "type %s: expected a type, found %s %s", node.Name, s.what, s.name)
	}
	return extent{height: 1, size: 1}
}

// expand makes t what a typedef stands for.
func (r *resolver) expand(t *schema.Type, s *symbol, depth int) {
	t.Typedef = s.typedef
	if s.state == stateResolving {
		r.found.errorf(t.Position, "typedef %s: stands for itself (%s)", s.name, r.path(s))
		return
	}
	if isInvalid(s.typedef.Type) {
		return
	}
	if depth+s.extent.height > limits.IDLTypeDepth {
		r.found.errorf(t.Position, "type %s: nested too deeply once typedefs are written out (limit %d)", s.name, limits.IDLTypeDepth)
		return
	}
	r.spend(s.extent.size, t.Position)
	if r.exhausted() {
		return
	}
	meaning := s.typedef.Type
	t.Kind, t.Key, t.Element = meaning.Kind, meaning.Key, meaning.Element
	t.Enum, t.Struct = meaning.Enum, meaning.Struct
}

// resolveTypedef finds out what a typedef stands for, once. depth counts the
// containers and typedefs around the use that asks.
func (r *resolver) resolveTypedef(s *symbol, depth int) {
	if s.state != stateNew {
		return
	}
	if depth > limits.IDLTypeDepth {
		r.found.errorf(s.position, "typedef %s: nested too deeply (limit %d)", s.name, limits.IDLTypeDepth)
		s.typedef.Type, s.state = &schema.Type{}, stateDone
		return
	}
	s.state = stateResolving
	r.resolving = append(r.resolving, s)
	var inner extent
	s.typedef.Type, inner = r.typeOf(s.unit, s.node.(*ast.Typedef).Type, depth)
	s.extent = extent{height: inner.height + 1, size: inner.size}
	r.resolving = r.resolving[:len(r.resolving)-1]
	s.state = stateDone
}

// path shows how a symbol that is being resolved leads to itself.
func (r *resolver) path(again *symbol) string {
	var names []string
	for _, s := range r.resolving {
		if s == again {
			names = names[:0]
		}
		names = append(names, s.name)
	}
	return arrows(append(names, again.name))
}

// enumIndex finds the values of an enum.
type enumIndex struct {
	byName   map[string]*schema.EnumValue
	byNumber map[int32]*schema.EnumValue
	// partial says that not all names are known, and so not all numbers either.
	partial bool
}
