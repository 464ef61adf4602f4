package emit

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fulmar-rpc/fulmar/gen/schema"
)

// methods prints the file with what values of generated types can do apart from being
// written and read. Loops that the runtime has a function for are left to it: this
// file is the price of a struct that nobody compares.
func (p *printer) methods(source *schema.File) {
	if source.Payload == schema.PayloadProtobuf {
		return
	}
	if p.options.Kitex {
		p.kitexMethods(source)
		return
	}
	if p.options.EnumText {
		for _, enum := range source.Enums {
			p.enumTextMethods(enum)
			p.endDeclaration()
		}
	}
	for _, s := range source.Structs {
		r := p.declaredRecord(s)
		p.textMethods(r)
		p.endDeclaration()
		if p.options.NoMethods {
			continue
		}
		for _, declare := range []func(*schema.Struct, *record){p.equalMethod, p.cloneMethods, p.sizeMethod} {
			declare(s, r)
			p.endDeclaration()
		}
	}
	for _, service := range source.Services {
		for _, method := range service.Methods {
			if !hasRecords(method) {
				continue
			}
			p.textMethods(p.argumentRecord(method))
			if !method.Oneway {
				p.textMethods(p.resultRecord(method))
			}
			p.endDeclaration()
		}
	}
}

// textMethods prints the text form of a record, and its JSON form where
// encoding/json needs help.
func (p *printer) textMethods(r *record) {
	if !p.options.NoMethods {
		p.P()
		p.doc("String returns a text for logs.")
		p.P("func (s *", r.goName, ") String() string {")
		p.P("return ", p.imports.methods("Text"), "(s)")
		p.P("}")
	}
	own := r.isEmbedding() // or it would have those of what it embeds
	var binaryKeys strings.Builder
	for _, m := range r.members {
		switch p.unknownKeys(m.Type) {
		case keysBinary:
			binaryKeys.WriteString(", " + strconv.Quote(m.GoName))
			fallthrough
		case keysUnknown:
			own = true
		}
	}
	if own {
		p.P()
		p.doc("MarshalJSON returns the fields as an object.")
		p.P("func (s ", r.goName, ") MarshalJSON() ([]byte, error) {")
		p.P("return ", p.imports.methods("MarshalJSON"), "(s", binaryKeys.String(), ")")
		p.P("}")
	}
	if !own && !r.union && !slices.ContainsFunc(r.members, member.holdsPresetContainer) {
		return
	}
	doc, function := "UnmarshalJSON sets the fields that the object has.", "UnmarshalJSON"
	if r.union {
		doc, function = "UnmarshalJSON sets the field that the object has, and no other.", "UnmarshalUnionJSON"
	}
	p.P()
	p.doc(doc)
	p.P("func (s *", r.goName, ") UnmarshalJSON(text []byte) error {")
	p.P("return ", p.imports.methods(function), "(text, s", binaryKeys.String(), ")")
	p.P("}")
}

// holdsPresetContainer says that a new struct has a list, set or map with something in it
// in this field, or in a struct in it, because of its default: encoding/json would add to
// that. What the structs in it have as defaults of their own they see to.
func (m member) holdsPresetContainer() bool {
	return !m.optional && m.Default != nil && !m.isBytes() && holdsFilledContainer(m.Default)
}

func holdsFilledContainer(v *schema.Value) bool {
	return len(v.List) > 0 || len(v.Entries) > 0 ||
		slices.ContainsFunc(v.Fields, func(f schema.ValueField) bool { return holdsFilledContainer(f.Value) })
}

// keys says what encoding/json makes of the keys of maps.
type keys uint8

const (
	keysKnown   keys = iota // what it should
	keysUnknown             // an error
	keysBinary              // texts, in which bytes that are no text are lost
)

// unknownKeys says what encoding/json makes of the keys of maps within t.
func (p *printer) unknownKeys(t *schema.Type) keys {
	switch {
	case t.Kind == schema.KindList, t.Kind == schema.KindSet:
		return p.unknownKeys(t.Element)
	case t.Kind != schema.KindMap:
		return keysKnown
	case p.isPairs(t):
		return max(p.unknownKeys(t.Key), p.unknownKeys(t.Element))
	}
	here := keysKnown
	switch t.Key.Kind {
	case schema.KindBinary:
		here = keysBinary
	case schema.KindBool, schema.KindDouble, schema.KindStruct:
		here = keysUnknown
	}
	return max(here, p.unknownKeys(t.Element))
}

// enumTextMethods prints what makes enums names in JSON.
func (p *printer) enumTextMethods(enum *schema.Enum) {
	parser := p.names.parsers[enum]
	p.P()
	p.doc("MarshalText returns what String does.")
	p.P("func (e ", enum.GoName, ") MarshalText() ([]byte, error) {")
	p.P("return []byte(e.String()), nil")
	p.P("}")
	p.P()
	p.doc("UnmarshalText takes what String returns.")
	p.P("func (e *", enum.GoName, ") UnmarshalText(text []byte) error {")
	p.P("return ", p.imports.methods("UnmarshalEnumText"), "(text, e, ", parser, ")")
	p.P("}")
	p.P()
	p.doc("UnmarshalJSON takes what String returns, and numbers.")
	p.P("func (e *", enum.GoName, ") UnmarshalJSON(text []byte) error {")
	p.P("return ", p.imports.methods("UnmarshalEnumJSON"), "(text, e, ", parser, ")")
	p.P("}")
}

// plainness is what is known of a struct as a Go value.
type plainness struct {
	// comparable: == says what Equal should.
	comparable bool
	// detached: it refers to no memory.
	detached bool
}

// plainness says what is known of a struct. Of one of another package nothing is:
// that could be generated anew and this one not.
func (p *printer) plainness(s *schema.Struct) plainness {
	if s.File.Package != p.pkg || p.cycles[s] != 0 {
		return plainness{}
	}
	if known, found := p.plain[s]; found {
		return known
	}
	all := plainness{comparable: true, detached: true}
	for _, m := range p.declaredRecord(s).members {
		one := p.typePlainness(m.Type)
		if m.form == formPointer {
			one = plainness{}
		}
		all.comparable = all.comparable && one.comparable
		all.detached = all.detached && one.detached
	}
	all.detached = all.detached && p.declaredRecord(s).unknown == ""
	p.plain[s] = all
	return all
}

func (p *printer) typePlainness(t *schema.Type) plainness {
	switch t.Kind {
	case schema.KindStruct:
		return p.plainness(t.Struct)
	case schema.KindString:
		return plainness{comparable: true}
	case schema.KindDouble:
		return plainness{detached: true} // == is false for NaN
	case schema.KindBinary, schema.KindList, schema.KindSet, schema.KindMap:
		return plainness{}
	default:
		return plainness{comparable: true, detached: true}
	}
}

// sameCycle says that values of s and inner can contain each other.
func (p *printer) sameCycle(s, inner *schema.Struct) bool {
	return p.cycles[s] != 0 && p.cycles[s] == p.cycles[inner]
}

// condition is what holds if two values are equal: left == right, or a call that
// returns true.
type condition struct{ left, right, call string }

func (c condition) holds() string {
	if c.call != "" {
		return c.call
	}
	return c.left + " == " + c.right
}

func (c condition) fails() string {
	if c.call != "" {
		return "!" + c.call
	}
	return c.left + " != " + c.right
}

// joined puts conditions together, one a line.
func joined(list []condition, operator string, text func(condition) string) string {
	texts := make([]string, len(list))
	for i, c := range list {
		texts[i] = text(c)
	}
	return strings.Join(texts, " "+operator+"\n")
}

// returnUnless prints what returns false unless all conditions hold.
func (p *printer) returnUnless(list []condition) {
	if len(list) == 0 {
		return
	}
	p.P("if ", joined(list, "||", condition.fails), " {")
	p.P("return false")
	p.P("}")
}
