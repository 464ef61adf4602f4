package syntax_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/idl/ast"
)

// printer writes a tree as text: the same text for equal trees, or, with a
// source of randomness, one of the many ways to write the same.
type printer struct {
	strings.Builder
	random *rand.Rand
}

func canonical(file *ast.File) string {
	p := &printer{}
	p.file(file)
	return p.String()
}

func noisy(file *ast.File, random *rand.Rand) string {
	p := &printer{random: random}
	p.file(file)
	return p.String()
}

var plainName = regexp.MustCompile(`^[A-Za-z_](\.?[A-Za-z_0-9]+)*$`)

// chance is true once in n times, and never for canonical text.
func (p *printer) chance(n int) bool { return p.random != nil && p.random.IntN(n) == 0 }

// words writes tokens, with blanks or comments in between.
func (p *printer) words(words ...string) {
	for _, word := range words {
		p.WriteString(word)
		switch {
		case p.chance(12):
			p.WriteString(" /* plain */\t")
		case p.chance(12):
			p.WriteString("\n// detached\r\n\n")
		case p.chance(12):
			p.WriteString("\n# detached\n\n")
		case p.chance(12):
			p.WriteString("\n\n")
		default:
			p.WriteString(" ")
		}
	}
}

func (p *printer) file(file *ast.File) {
	for _, namespace := range file.Namespaces {
		value := namespace.Value.Text
		if !plainName.MatchString(value) {
			value = p.quote(value)
		}
		p.words("namespace", namespace.Language.Text, value)
		p.annotations(namespace.Annotations)
		p.line()
	}
	for _, include := range file.Includes {
		p.words("include", p.quote(include.Path))
		p.line()
	}
	for _, declaration := range file.Declarations {
		p.declaration(declaration)
		p.line()
	}
}

// line ends a declaration such that nothing is taken for documentation of the
// next one.
func (p *printer) line() {
	p.WriteString([]string{"\n\n", ";\n\n", ",\n\n"}[p.pick(3)])
}

func (p *printer) pick(n int) int {
	if p.random == nil {
		return 0
	}
	return p.random.IntN(n)
}

func (p *printer) doc(doc string) {
	if doc == "" {
		return
	}
	switch p.pick(3) {
	case 1:
		p.WriteString("\n/** " + strings.ReplaceAll(doc, "\n", "\n * ") + " */\n")
	case 0: // fits every text, even one with */
		p.WriteString("\n// " + strings.ReplaceAll(doc, "\n", "\n\t// ") + "\n")
	default:
		p.WriteString("\n# " + strings.ReplaceAll(doc, "\n", "\n# ") + "\r\n")
	}
}

func (p *printer) declaration(declaration ast.Declaration) {
	head := declaration.Declared()
	p.doc(head.Doc)
	switch d := declaration.(type) {
	case *ast.Constant:
		p.words("const")
		p.typeUse(d.Type)
		p.words(head.Name.Text, "=")
		p.value(d.Value)
	case *ast.Typedef:
		p.words("typedef")
		p.typeUse(d.Type)
		p.words(head.Name.Text)
	case *ast.Enum:
		p.words("enum", head.Name.Text, "{")
		for i := range d.Values {
			value := &d.Values[i]
			p.doc(value.Doc)
			p.words(value.Name.Text)
			if value.HasNumber {
				p.words("=", p.integer(value.Number))
			}
			p.endMember(value.Annotations)
		}
		p.words("}")
	case *ast.Struct:
		p.words(d.Category.String(), head.Name.Text, "{")
		p.fields(d.Fields)
		p.words("}")
	case *ast.Service:
		p.words("service", head.Name.Text)
		if d.Extends.Text != "" {
			p.words("extends", d.Extends.Text)
		}
		p.words("{")
		for i := range d.Methods {
			p.method(&d.Methods[i])
		}
		p.words("}")
	}
	p.annotations(head.Annotations)
}

func (p *printer) method(m *ast.Method) {
	p.doc(m.Doc)
	if m.Oneway {
		p.words("oneway")
	}
	if m.Result == nil {
		p.words("void")
	} else {
		p.typeUse(m.Result)
	}
	p.words(m.Name.Text, "(")
	p.fields(m.Arguments)
	p.words(")")
	if len(m.Throws) > 0 {
		p.words("throws", "(")
		p.fields(m.Throws)
		p.words(")")
	}
	p.endMember(m.Annotations)
}

func (p *printer) fields(fields []ast.Field) {
	for i := range fields {
		f := &fields[i]
		p.doc(f.Doc)
		if f.HasID {
			p.words(p.integer(f.ID), ":")
		}
		if f.Requiredness != schema.RequirednessDefault {
			p.words(f.Requiredness.String())
		}
		p.typeUse(f.Type)
		p.words(f.Name.Text)
		if f.Default != nil {
			p.words("=")
			p.value(f.Default)
		}
		p.endMember(f.Annotations)
	}
}

func (p *printer) endMember(annotations []ast.Annotation) {
	p.annotations(annotations)
	p.WriteString([]string{"\n", ",\n", ";\n", ", "}[p.pick(4)])
}

func (p *printer) annotations(list []ast.Annotation) {
	if len(list) == 0 {
		return
	}
	p.words("(")
	for _, a := range list {
		p.words(a.Key.Text)
		if a.Value != "1" || p.pick(2) == 0 {
			p.words("=", p.quote(a.Value))
		}
		p.WriteString([]string{",", ";", " "}[p.pick(3)])
	}
	p.words(")")
}

func (p *printer) typeUse(t *ast.Type) {
	switch {
	case t.Key != nil:
		p.words("map", "<")
		p.typeUse(t.Key)
		p.words(",")
		p.typeUse(t.Element)
		p.words(">")
	case t.Element != nil:
		p.words(t.Name, "<")
		p.typeUse(t.Element)
		p.words(">")
	default:
		p.words(t.Name)
	}
	p.annotations(t.Annotations)
}

func (p *printer) value(v *ast.Value) {
	separator := []string{",", ";", " "}[p.pick(3)]
	switch v.Kind {
	case ast.ValueInt:
		p.words(p.integer(v.Int))
	case ast.ValueDouble:
		p.words(strconv.FormatFloat(v.Double, 'e', -1, 64))
	case ast.ValueText:
		p.words(p.quote(v.Text))
	case ast.ValueName:
		p.words(v.Text)
	case ast.ValueList:
		p.words("[")
		for i := range v.Items {
			p.value(&v.Items[i])
			p.words(separator)
		}
		p.words("]")
	case ast.ValueMap:
		p.words("{")
		for i := 0; i < len(v.Items); i += 2 {
			p.value(&v.Items[i])
			p.words(":")
			p.value(&v.Items[i+1])
			p.words(separator)
		}
		p.words("}")
	}
}

func (p *printer) integer(n int64) string {
	switch {
	case p.pick(3) == 1 && n >= 0:
		return fmt.Sprintf("0x%X", n)
	case p.pick(3) == 1 && n >= 0:
		return fmt.Sprintf("+0o%o", n)
	default:
		return strconv.FormatInt(n, 10)
	}
}

// quote writes a string such that every escape is used.
func (p *printer) quote(s string) string {
	mark := []string{`"`, `'`}[p.pick(2)]
	var b strings.Builder
	b.WriteString(mark)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\\' || c == mark[0]:
			b.WriteString(`\` + string(c))
		case c < ' ' || c >= 0x7f || p.chance(10):
			fmt.Fprintf(&b, `\x%02x`, c)
		case p.chance(10):
			fmt.Fprintf(&b, `\u%04X`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteString(mark)
	return b.String()
}
