package emit

import (
	"strconv"

	"github.com/fulmar-rpc/fulmar/gen/schema"
)

// cloneMethods prints Clone, and Detach, which does the work: a struct within another
// one is copied in place.
func (p *printer) cloneMethods(s *schema.Struct, r *record) {
	p.P()
	p.doc("Clone returns a copy that shares no memory with s.")
	p.P("func (s *", s.GoName, ") Clone() *", s.GoName, " {")
	p.P("if s == nil {")
	p.P("return nil")
	p.P("}")
	p.P("c := *s")
	p.P("c.Detach()")
	p.P("return &c")
	p.P("}")
	p.P()
	p.doc("Detach gives s memory of its own.")
	switch {
	case p.plainness(s).detached:
		p.P("func (s *", s.GoName, ") Detach() {")
		p.P("}")
		return
	case p.cycles[s] == 0:
		p.P("func (s *", s.GoName, ") Detach() {")
	default:
		p.P("func (s *", s.GoName, ") Detach() {")
		p.P("s.detach(", p.imports.methods("ValueDepth"), ")")
		p.P("}")
		p.P()
		p.P("func (s *", s.GoName, ") detach(depth int) {")
		p.P("if depth == 0 {")
		p.P(p.imports.methods("FailDepth"), "(", strconv.Quote(r.wireName), ")")
		p.P("}")
	}
	for _, m := range r.members {
		p.detachMember(s, m)
	}
	p.detachUnknown(r)
	p.P("}")
}

func (p *printer) detachMember(s *schema.Struct, m member) {
	field := "s." + m.GoName
	switch {
	case m.asMap:
		p.detachMapSet(m.Type, field)
	case m.form == formPointer:
		p.detachPointer(s, m.Type, field)
	case m.custom != nil && m.form == formOpt && m.Type.Kind == schema.KindString:
		p.P(p.imports.methods("DetachOptStringType"), "(&", field, ")")
	case m.custom != nil && isText(m.Type):
		function, _ := p.detacher(s, m.Type)
		p.P(function, "((*", p.plainType(m.Type, nil), ")(&", field, "))")
	case m.form == formOpt && m.Type.Kind == schema.KindString:
		p.P(p.imports.methods("DetachOptString"), "(&", field, ")")
	case m.form == formOpt:
	case m.isBytes():
		p.P(p.imports.methods("DetachBinary"), "(&", field, ")")
	default:
		p.detachValue(s, m.Type, field, 1)
	}
}

// detachPointer prints what has a place within struct s point to a struct of its own.
func (p *printer) detachPointer(s *schema.Struct, t *schema.Type, place string) {
	if !p.sameCycle(s, t.Struct) {
		p.P(place, " = ", place, ".Clone()")
		return
	}
	p.P("if ", place, " != nil {")
	p.P("c := *", place)
	p.P("c.detach(depth - 1)")
	p.P(place, " = &c")
	p.P("}")
}

// detacher returns a function that gives what its argument points to, within struct s,
// memory of its own, if there is one. It is "nil" if that needs none, and "" for
// methods of structs.
func (p *printer) detacher(s *schema.Struct, t *schema.Type) (function string, ok bool) {
	switch {
	case p.typePlainness(t).detached:
		return "nil", true
	case t.Kind == schema.KindString:
		return p.imports.methods("DetachString"), true
	case t.Kind == schema.KindBinary:
		return p.imports.methods("DetachBinary"), true
	case t.Kind == schema.KindStruct:
		return "", !p.sameCycle(s, t.Struct)
	case t.Kind == schema.KindMap && p.isPairs(t) && p.typePlainness(t.Key).detached && t.Element.Kind != schema.KindStruct && p.typePlainness(t.Element).detached:
		return p.imports.methods("DetachList"), true
	case t.Kind == schema.KindMap:
		return "", false
	}
	switch element := t.Element; {
	case element.Kind == schema.KindString:
		return p.imports.methods("DetachStrings"), true
	case element.Kind == schema.KindBinary:
		return p.imports.methods("DetachBinaries"), true
	case p.typePlainness(element).detached:
		return p.imports.methods("DetachList"), true
	case element.Kind == schema.KindStruct:
		return p.imports.methods("DetachStructs"), !p.sameCycle(s, element.Struct)
	default:
		return "", false
	}
}

// detachValue prints what gives a place within struct s memory of its own.
func (p *printer) detachValue(s *schema.Struct, t *schema.Type, place string, depth int) {
	function, ok := p.detacher(s, t)
	switch {
	case function == "nil":
	case t.Kind == schema.KindStruct && ok:
		p.P(place, ".Detach()")
	case t.Kind == schema.KindStruct:
		p.P(place, ".detach(depth - 1)")
	case ok:
		p.P(function, "(&", place, ")")
	case t.Kind == schema.KindMap && !p.isPairs(t):
		p.detachMap(s, t, place, depth)
	default:
		i := numbered("i", depth)
		p.P(p.imports.methods("DetachList"), "(&", place, ")")
		p.P("for ", i, " := range ", place, " {")
		element := place + "[" + i + "]"
		if t.Kind == schema.KindMap {
			p.detachValue(s, t.Key, element+".Key", depth+1)
			p.detachMapValue(s, t.Element, element+".Value", depth+1)
		} else {
			p.detachValue(s, t.Element, element, depth+1)
		}
		p.P("}")
	}
}

// detachMapValue is detachValue for the value of a map.
func (p *printer) detachMapValue(s *schema.Struct, t *schema.Type, place string, depth int) {
	if t.Kind == schema.KindStruct {
		p.detachPointer(s, t, place)
		return
	}
	p.detachValue(s, t, place, depth)
}

func (p *printer) detachMap(s *schema.Struct, t *schema.Type, place string, depth int) {
	key := *t.Key
	if key.Kind == schema.KindBinary {
		key.Kind = schema.KindString // in Go
	}
	keyFunction, keyOK := p.detacher(s, &key)
	valueFunction, valueOK := p.detacher(s, t.Element)
	if t.Element.Kind == schema.KindStruct {
		valueFunction, valueOK = p.imports.methods("DetachPointer"), !p.sameCycle(s, t.Element.Struct)
	}
	if keyOK && valueOK {
		if keyFunction == "" {
			keyFunction = "(*" + p.goType(&key) + ").Detach"
		}
		p.P(p.imports.methods("DetachMap"), "(&", place, ", ", keyFunction, ", ", valueFunction, ")")
		return
	}
	entries, k, v := numbered("entries", depth), numbered("key", depth), numbered("value", depth)
	p.P("if ", place, " != nil {")
	p.P(entries, " := make(", p.goType(t), ", len(", place, "))")
	p.P("for ", k, ", ", v, " := range ", place, " {")
	p.detachValue(s, &key, k, depth+1)
	p.detachMapValue(s, t.Element, v, depth+1)
	p.P(entries, "[", k, "] = ", v)
	p.P("}")
	p.P(place, " = ", entries)
	p.P("}")
}
