package emit

import "github.com/fulmar-rpc/fulmar/gen/schema"

// equalMethod prints Equal.
func (p *printer) equalMethod(s *schema.Struct, r *record) {
	p.P()
	p.doc("Equal reports whether both hold the same.")
	head := "func (s *" + s.GoName + ") Equal(other *" + s.GoName + ") bool {"
	stop := "s == other || s == nil || other == nil"
	switch {
	case p.plainness(s).comparable:
		p.P(head)
		p.P("return s == other || s != nil && other != nil && *s == *other")
		p.P("}")
		return
	case p.cycles[s] == 0:
		p.P(head)
	default:
		p.P(head)
		p.P("return s.equal(other, ", p.imports.methods("ValueDepth"), ")")
		p.P("}")
		p.P()
		p.P("func (s *", s.GoName, ") equal(other *", s.GoName, ", depth int) bool {")
		stop += " || depth == 0"
	}
	p.P("if ", stop, " {")
	p.P("return s == other")
	p.P("}")
	var conditions []condition
	var rest []member
	for _, m := range r.members {
		mine, theirs := "s."+m.GoName, "other."+m.GoName
		if m.form == formNil {
			conditions = append(conditions, condition{left: "(" + mine + " == nil)", right: "(" + theirs + " == nil)"})
		}
		if c, ok := p.memberCondition(s, m, mine, theirs); ok {
			conditions = append(conditions, c)
		} else {
			rest = append(rest, m)
		}
	}
	conditions = append(conditions, unknownConditions(r)...)
	if len(rest) == 0 {
		p.P("return ", joined(conditions, "&&", condition.holds))
		p.P("}")
		return
	}
	p.returnUnless(conditions)
	for _, m := range rest {
		p.equalLoop(s, m.Type, "s."+m.GoName, "other."+m.GoName, 1)
	}
	p.P("return true")
	p.P("}")
}

// memberCondition returns what compares two fields, if that takes no loop.
func (p *printer) memberCondition(s *schema.Struct, m member, mine, theirs string) (c condition, ok bool) {
	switch {
	case m.asMap:
		return condition{call: p.imports.std("maps", "Equal") + "(" + mine + ", " + theirs + ")"}, true
	case m.form == formPointer:
		return p.pointerCondition(s, m.Type, mine, theirs), true
	case m.form == formOpt && m.Type.Kind == schema.KindDouble && m.custom != nil:
		return condition{call: p.imports.methods("EqualOptDoubleType") + "(" + mine + ", " + theirs + ")"}, true
	case m.form == formOpt && m.Type.Kind == schema.KindDouble:
		return condition{call: p.imports.methods("EqualOptDouble") + "(" + mine + ", " + theirs + ")"}, true
	case m.form == formOpt:
		return condition{left: mine, right: theirs}, true
	case m.Type.Kind == schema.KindDouble:
		return p.equalCondition(s, m.Type, p.fromField(m, mine), p.fromField(m, theirs))
	case m.isBytes():
		return condition{left: "string(" + mine + ")", right: "string(" + theirs + ")"}, true
	default:
		return p.equalCondition(s, m.Type, mine, theirs)
	}
}

// equalCondition returns what compares two values within struct s, which can be
// addressed, if that takes no loop.
func (p *printer) equalCondition(s *schema.Struct, t *schema.Type, mine, theirs string) (c condition, ok bool) {
	call := func(function string) (condition, bool) {
		return condition{call: function + "(" + mine + ", " + theirs + ")"}, true
	}
	switch t.Kind {
	case schema.KindDouble:
		return call(p.imports.methods("EqualDouble"))
	case schema.KindBinary:
		return condition{left: "string(" + mine + ")", right: "string(" + theirs + ")"}, true
	case schema.KindStruct:
		return p.pointerCondition(s, t, mine, "&"+theirs), true
	case schema.KindList, schema.KindSet:
		switch {
		case t.Element.Kind == schema.KindDouble:
			return call(p.imports.methods("EqualDoubles"))
		case t.Element.Kind == schema.KindBinary:
			return call(p.imports.methods("EqualBinaries"))
		case t.Element.Kind == schema.KindStruct && !p.sameCycle(s, t.Element.Struct):
			return call(p.imports.methods("EqualStructs"))
		case t.Element.Kind == schema.KindStruct, isContainer(t.Element):
			return condition{}, false
		}
		return call(p.imports.methods("EqualList"))
	case schema.KindMap:
		switch {
		case p.isPairs(t), t.Element.Kind == schema.KindStruct && p.sameCycle(s, t.Element.Struct):
			return condition{}, false
		case t.Element.Kind == schema.KindStruct:
			return call(p.imports.methods("EqualStructMap"))
		case p.typePlainness(t.Element).comparable:
			return call(p.imports.std("maps", "Equal"))
		}
		return condition{}, false
	default:
		return condition{left: mine, right: theirs}, true
	}
}

// pointerCondition returns what compares a struct within struct s with the one that
// theirs points to. Mine may be a pointer as well; nil equals nil.
func (p *printer) pointerCondition(s *schema.Struct, t *schema.Type, mine, theirs string) condition {
	if p.sameCycle(s, t.Struct) {
		return condition{call: mine + ".equal(" + theirs + ", depth-1)"}
	}
	return condition{call: mine + ".Equal(" + theirs + ")"}
}

// mapValueCondition is equalCondition for the values of maps.
func (p *printer) mapValueCondition(s *schema.Struct, t *schema.Type, mine, theirs string) (c condition, ok bool) {
	if t.Kind == schema.KindStruct {
		return p.pointerCondition(s, t, mine, theirs), true
	}
	return p.equalCondition(s, t, mine, theirs)
}

// equalValue prints what returns false if two values within struct s differ.
func (p *printer) equalValue(s *schema.Struct, t *schema.Type, mine, theirs string, depth int) {
	if c, ok := p.equalCondition(s, t, mine, theirs); ok {
		p.returnUnless([]condition{c})
		return
	}
	p.equalLoop(s, t, mine, theirs, depth)
}

// equalLoop is equalValue for containers that take a loop.
func (p *printer) equalLoop(s *schema.Struct, t *schema.Type, mine, theirs string, depth int) {
	p.returnUnless([]condition{{left: "len(" + mine + ")", right: "len(" + theirs + ")"}})
	if t.Kind == schema.KindMap && !p.isPairs(t) {
		key, value, other := numbered("key", depth), numbered("value", depth), numbered("theirs", depth)
		p.P("for ", key, ", ", value, " := range ", mine, " {")
		p.P(other, ", ok := ", theirs, "[", key, "]")
		if c, ok := p.mapValueCondition(s, t.Element, value, other); ok {
			p.P("if !ok || ", c.fails(), " {")
			p.P("return false")
			p.P("}")
		} else {
			p.P("if !ok {")
			p.P("return false")
			p.P("}")
			p.equalLoop(s, t.Element, value, other, depth+1)
		}
		p.P("}")
		return
	}
	i := numbered("i", depth)
	mine, theirs = mine+"["+i+"]", theirs+"["+i+"]"
	p.P("for ", i, " := range ", mine[:len(mine)-len(i)-2], " {")
	if t.Kind == schema.KindMap {
		p.equalPair(s, t, mine, theirs, depth+1)
	} else {
		p.equalValue(s, t.Element, mine, theirs, depth+1)
	}
	p.P("}")
}

// equalPair is equalValue for entries of a map that is a slice of pairs.
func (p *printer) equalPair(s *schema.Struct, t *schema.Type, mine, theirs string, depth int) {
	key, keyOK := p.equalCondition(s, t.Key, mine+".Key", theirs+".Key")
	value, valueOK := p.mapValueCondition(s, t.Element, mine+".Value", theirs+".Value")
	if keyOK && valueOK {
		p.returnUnless([]condition{key, value})
		return
	}
	p.equalValue(s, t.Key, mine+".Key", theirs+".Key", depth)
	if valueOK {
		p.returnUnless([]condition{value})
		return
	}
	p.equalLoop(s, t.Element, mine+".Value", theirs+".Value", depth)
}
