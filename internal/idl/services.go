package idl

import (
	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/idl/ast"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

func (r *resolver) resolveServices() {
	var services []*symbol
	for s := range r.symbols {
		if s.service != nil {
			services = append(services, s)
			r.resolveService(s, s.node.(*ast.Service))
		}
	}
	r.cutCycles(services)
	for _, s := range services {
		r.checkInherited(s)
	}
}

func (r *resolver) resolveService(s *symbol, node *ast.Service) {
	r.methods[s.service] = make(map[string]*schema.Method, len(node.Methods))
	for i := range node.Methods {
		if r.exhausted() {
			return
		}
		r.resolveMethod(s, &node.Methods[i])
	}
	if node.Extends.Text != "" {
		s.service.Extends = r.parent(s, node)
	}
}

// parent returns the service that another one extends, nil if there is none.
func (r *resolver) parent(s *symbol, node *ast.Service) *schema.Service {
	position := s.unit.at(node.Extends.Place)
	switch parent := r.find(s.unit, node.Extends); {
	case parent == nil && r.lost(s.unit, node.Extends.Text):
		return nil
	case parent == nil:
		r.found.errorf(position, "service %s: extends %s, which is not declared%s", s.name, node.Extends.Text, r.hint(s.unit, node.Extends.Text))
		return nil
	case parent.service == nil:
		r.found.errorf(position, "service %s: extends %s %s, expected a service", s.name, parent.what, node.Extends.Text)
		return nil
	default:
		return parent.service
	}
}

// cutCycles reports services that extend themselves, and lets one of each cycle
// extend nothing.
func (r *resolver) cutCycles(services []*symbol) {
	walkOf := make(map[*schema.Service]int)
	for i, s := range services {
		for at := s.service; at != nil && walkOf[at] == 0; at = at.Extends {
			walkOf[at] = i + 1
			if parent := at.Extends; parent != nil && walkOf[parent] == i+1 {
				r.found.errorf(at.Position, "service %s: extends itself (%s)", at.Name, extendsPath(at))
				at.Extends = nil
			}
		}
	}
}

func extendsPath(start *schema.Service) string {
	names := []string{start.Name}
	for at := start.Extends; at != start; at = at.Extends {
		names = append(names, at.Name)
	}
	return arrows(append(names, start.Name))
}

// checkInherited refuses methods that a service inherits already.
func (r *resolver) checkInherited(s *symbol) {
	depth := 0
	for ancestor := s.service.Extends; ancestor != nil; ancestor = ancestor.Extends {
		if depth++; depth > limits.IDLTypeDepth {
			if ancestor.Extends != nil {
				return // it is said of the one that this extends
			}
			r.found.errorf(s.position, "service %s: extends a chain of services that is too long (limit %d)", s.name, limits.IDLTypeDepth)
			return
		}
		for _, method := range ancestor.Methods {
			r.spend(1+len(method.Arguments)+len(method.Throws), s.position)
		}
		if r.exhausted() {
			return
		}
		for _, method := range s.service.Methods {
			if inherited := r.methods[ancestor][method.Name]; inherited != nil {
				r.found.errorf(method.Position, "service %s: method %s is inherited from %s, declared at %s", s.name, method.Name, ancestor.Name, inherited.Position)
			}
		}
	}
}

func (r *resolver) resolveMethod(s *symbol, node *ast.Method) {
	u, what := s.unit, "method "+s.name+"."+node.Name.Text
	method := &schema.Method{
		Name: node.Name.Text, Doc: node.Doc, Oneway: node.Oneway, Service: s.service,
		Annotations: r.annotations(u, node.Annotations), Position: u.at(node.Name.Place),
	}
	method.Result = &schema.Type{Kind: schema.KindVoid, Position: u.at(node.ResultPlace)}
	if node.Result != nil {
		method.Result, _ = r.typeOf(u, node.Result, 0)
	}
	if node.Oneway && node.Result != nil {
		r.found.errorf(method.Result.Position, "%s: is oneway and returns a value, expected void", what)
	}
	if node.Oneway && len(node.Throws) > 0 {
		r.found.errorf(u.at(node.Throws[0].Name.Place), "%s: is oneway and throws, but nobody would hear of it", what)
	}
	method.Arguments = r.resolveFields(&fieldList{unit: u, what: "arguments of " + what, partial: node.Partial}, node.Arguments)
	for i, argument := range method.Arguments {
		if argument.Requiredness == schema.RequirednessOptional {
			r.found.warningf(u.at(node.Arguments[i].RequirednessPlace), "%s: argument %s is optional, which means nothing for arguments", what, argument.Name)
			argument.Requiredness = schema.RequirednessDefault
		}
	}
	method.Throws = r.resolveFields(&fieldList{unit: u, what: "exceptions of " + what, result: true, partial: node.Partial}, node.Throws)
	for _, thrown := range method.Throws {
		thrown.Requiredness = schema.RequirednessDefault
		if t := thrown.Type; t.Kind != schema.KindInvalid && (t.Struct == nil || t.Struct.Category != schema.CategoryException) {
			r.found.errorf(t.Position, "%s: throws %s, which is not an exception", what, thrown.Name)
		}
	}
	if first := r.methods[s.service][method.Name]; first != nil {
		r.found.errorf(method.Position, "service %s: method %s is declared at %s", s.name, method.Name, first.Position)
		return
	}
	r.methods[s.service][method.Name] = method
	s.service.Methods = append(s.service.Methods, method)
}
