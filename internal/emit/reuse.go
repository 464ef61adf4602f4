package emit

import "github.com/fulmar-rpc/fulmar/gen/schema"

// In code that can reuse memory (Options.Reuse) ReadThrift begins with a struct that is
// as a new one, and takes memory from old, which is what it was before. In a struct
// that does not reuse memory old is empty.

// beginReuse prints what makes a struct new, and old.
func (p *printer) beginReuse(r *record, s *schema.Struct) {
	if !r.reuse {
		return
	}
	if r.takesOld() {
		p.P("var old ", r.goName)
	}
	p.P("if r.Reuses() {")
	if r.takesOld() {
		p.P("old = *s")
	}
	if !p.hasDefaults(s) || p.defaultBytes(s) > 0 {
		p.P("*s = ", r.goName, "{}")
	}
	if p.hasDefaults(s) {
		p.chargeDefaults(s, func() { p.P("*s = *", p.constructor(s), "()") })
	}
	p.P("}")
}

// takesOld reports whether reading a record can take memory from what it was before.
func (r *record) takesOld() bool {
	for _, m := range r.members {
		if r.hasOld(m) && (isContainer(m.Type) || m.Type.Kind == schema.KindStruct) {
			return true
		}
	}
	return false
}

// hasOld reports whether the memory of a field is reused. Unions hold one of several
// things, so what they held is seldom of use.
func (r *record) hasOld(m member) bool { return r.reuse && !r.union }

// old is where a container of a record finds memory.
func (r *record) old(m member) string {
	if r.hasOld(m) {
		return "old." + m.GoName
	}
	return "nil"
}

// makePointer prints what makes value, a struct for the field m.
func (p *printer) makePointer(r *record, m member) {
	allocate := p.imports.thrift("Allocate") + "[" + p.heldStruct(m) + "](r, p)"
	if r.hasOld(m) {
		p.P("value := old.", m.GoName)
		p.P("if value == nil {")
		p.P("value = ", allocate)
		p.P("}")
	} else {
		p.P("value := ", allocate)
	}
	if !m.viewed {
		p.unlessReused(m.Type, p.hasDefaults(m.Type.Struct), "*value")
	}
}

// makeStruct prints what makes the field m ready to be read into.
func (p *printer) makeStruct(r *record, m member, field string) {
	if r.hasOld(m) {
		p.P(field, " = old.", m.GoName) // which is nothing yet unless memory is reused
	}
	if m.viewed {
		return // reading makes it anew
	}
	p.unlessReused(m.Type, !r.hasOld(m) || p.hasDefaults(m.Type.Struct), field)
}

// extendStructs prints what adds a new struct to list.
func (p *printer) extendStructs(t *schema.Type, list string) {
	if p.hasDefaults(t.Struct) && p.defaultBytes(t.Struct) == 0 && !p.options.Reuse {
		p.P(list, " = append(", list, ", ", p.newStruct(t), ")")
		return
	}
	p.P(list, " = ", p.imports.thrift("Extend"), "(", list, ")")
	p.unlessReused(t, p.hasDefaults(t.Struct), list+"[i]")
}

// unlessReused prints what sets a struct to a new one, if that is needed and where
// ReadThrift does not do it.
func (p *printer) unlessReused(t *schema.Type, needed bool, target string) {
	if !needed {
		return
	}
	if p.options.Reuse {
		p.P("if !r.Reuses() {")
	}
	p.chargeDefaults(t.Struct, func() { p.P(target, " = ", p.newStruct(t)) })
	if p.options.Reuse {
		p.P("}")
	}
}

// reuseMethod prints the method that tells others that a struct can be read into where
// it is, which structs of packages that include this one ask for.
func (p *printer) reuseMethod(r *record) {
	if !r.reuse {
		p.hideReuse(r)
		return
	}
	p.P()
	p.doc("ReusesThrift tells that ReadThrift can reuse memory.")
	p.P("func (s *", r.goName, ") ReusesThrift() {")
	p.P("}")
}

// reuseAssertions prints what does not compile if a struct of another package cannot be
// read into where it is: what it held before would stay.
func (p *printer) reuseAssertions(source *schema.File) {
	if !p.options.Reuse {
		return
	}
	foreign := map[*schema.Struct]bool{}
	var all []*schema.Struct
	var visit func(t *schema.Type)
	visit = func(t *schema.Type) {
		switch {
		case t.Kind == schema.KindStruct:
			if t.Struct.File.Package != source.Package && !foreign[t.Struct] {
				foreign[t.Struct] = true
				all = append(all, t.Struct)
			}
		case isContainer(t):
			if t.Key != nil {
				visit(t.Key)
			}
			visit(t.Element)
		}
	}
	for _, s := range source.Structs {
		for _, field := range s.Fields {
			visit(field.Type)
		}
	}
	if len(all) == 0 {
		return
	}
	p.P()
	p.P("var (")
	for _, s := range all {
		p.P("_ interface{ ReusesThrift() } = (*", p.imports.generated(s.File.Package, s.GoName), ")(nil)")
	}
	p.P(")")
}
