package idl_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/idl"
)

func TestLoad_FillsTheSchema(t *testing.T) {
	golden(t, "schema", func(t *testing.T, options idl.Options) string {
		program, diagnostics := idl.Load(options)
		if program == nil {
			t.Fatalf("does not load:\n%s", diagnostics)
		}
		d := &dumper{}
		d.program(program)
		return diagnostics.String() + d.String()
	})
}

// dumper prints everything that a schema.Program holds.
type dumper struct {
	strings.Builder
	indent string
}

func (d *dumper) line(format string, arguments ...any) {
	fmt.Fprintf(d, d.indent+format+"\n", arguments...)
}

// inside calls print with more indentation.
func (d *dumper) inside(print func()) {
	outer := d.indent
	d.indent += "  "
	print()
	d.indent = outer
}

func (d *dumper) program(p *schema.Program) {
	for _, pkg := range p.Packages {
		var files, imports []string
		for _, file := range pkg.Files {
			files = append(files, file.Path)
		}
		for _, imported := range pkg.Imports {
			imports = append(imports, imported.Path)
		}
		d.line("package %s name=%s root=%t files=%v imports=%v", pkg.Path, pkg.Name, pkg.Root, files, imports)
	}
	for _, file := range p.Files {
		d.file(file)
	}
}

func (d *dumper) file(file *schema.File) {
	d.line("file %s base=%s package=%s", file.Path, file.Base, file.Package.Path)
	d.inside(func() {
		d.doc(file.Doc)
		for _, language := range slices.Sorted(maps.Keys(file.Namespaces)) {
			d.line("namespace %s %s", language, file.Namespaces[language])
		}
		for _, include := range file.Includes {
			d.line("include %s", include.Path)
		}
		for _, c := range file.Constants {
			d.line("const %s: %s = %s %s", c.Name, d.typeText(c.Type), d.valueText(c.Value), c.Position)
			d.notes(c.Doc, c.Annotations)
		}
		for _, t := range file.Typedefs {
			d.line("typedef %s: %s %s", t.Name, d.typeText(t.Type), t.Position)
			d.notes(t.Doc, t.Annotations)
		}
		for _, e := range file.Enums {
			d.line("enum %s %s", e.Name, e.Position)
			d.notes(e.Doc, e.Annotations)
			d.inside(func() {
				for _, v := range e.Values {
					d.line("%s = %d %s", v.Name, v.Number, v.Position)
					d.notes(v.Doc, v.Annotations)
				}
			})
		}
		for _, s := range file.Structs {
			d.line("%s %s %s", s.Category, s.Name, s.Position)
			d.notes(s.Doc, s.Annotations)
			d.inside(func() { d.fields(s.Fields) })
		}
		for _, s := range file.Services {
			d.service(s)
		}
	})
}

func (d *dumper) service(s *schema.Service) {
	extends := ""
	if s.Extends != nil {
		extends = " extends " + s.Extends.File.Base + "." + s.Extends.Name
	}
	d.line("service %s%s %s", s.Name, extends, s.Position)
	d.notes(s.Doc, s.Annotations)
	d.inside(func() {
		for _, m := range s.Methods {
			d.line("method %s.%s: %s oneway=%t %s", m.Service.Name, m.Name, d.typeText(m.Result), m.Oneway, m.Position)
			d.notes(m.Doc, m.Annotations)
			d.inside(func() { d.fields(m.Arguments) })
			if len(m.Throws) > 0 {
				d.line("throws")
				d.inside(func() { d.fields(m.Throws) })
			}
		}
	})
}

func (d *dumper) fields(fields []*schema.Field) {
	for _, f := range fields {
		value := ""
		if f.Default != nil {
			value = " = " + d.valueText(f.Default)
		}
		d.line("%d: %s %s: %s%s %s", f.ID, f.Requiredness, f.Name, d.typeText(f.Type), value, f.Position)
		d.notes(f.Doc, f.Annotations)
	}
}

func (d *dumper) doc(doc string) {
	if doc != "" {
		d.line("doc %q", doc)
	}
}

func (d *dumper) notes(doc string, annotations schema.Annotations) {
	d.inside(func() {
		d.doc(doc)
		if len(annotations) > 0 {
			d.line("annotations%s", d.annotationText(annotations))
		}
	})
}

func (d *dumper) annotationText(annotations schema.Annotations) string {
	text := ""
	for _, a := range annotations {
		text += fmt.Sprintf(" %s=%q", a.Key, a.Value)
	}
	return text
}

func (d *dumper) typeText(t *schema.Type) string {
	text := t.Kind.String()
	switch t.Kind {
	case schema.KindEnum:
		text += " " + t.Enum.File.Base + "." + t.Enum.Name
	case schema.KindStruct:
		text += " " + t.Struct.File.Base + "." + t.Struct.Name
	case schema.KindMap:
		text += "<" + d.typeText(t.Key) + ", " + d.typeText(t.Element) + ">"
	case schema.KindList, schema.KindSet:
		text += "<" + d.typeText(t.Element) + ">"
	}
	if t.Typedef != nil {
		text += "[" + t.Typedef.Name + "]"
	}
	if len(t.Annotations) > 0 {
		text += "(" + d.annotationText(t.Annotations)[1:] + ")"
	}
	return text
}

func (d *dumper) valueText(v *schema.Value) string {
	text := ""
	switch v.Kind {
	case schema.ValueBool:
		text = fmt.Sprint(v.Bool)
	case schema.ValueInt:
		text = fmt.Sprint(v.Int)
	case schema.ValueDouble:
		text = fmt.Sprintf("%g (double)", v.Double)
	case schema.ValueString:
		text = fmt.Sprintf("%q", v.String)
	case schema.ValueEnum:
		text = fmt.Sprintf("enum %d", v.Int)
		if v.Enum != nil {
			text += " " + v.Enum.Enum.Name + "." + v.Enum.Name
		}
	case schema.ValueList:
		for _, item := range v.List {
			text += " " + d.valueText(item)
		}
		text = "[" + text + " ]"
	case schema.ValueMap:
		for _, entry := range v.Entries {
			text += " " + d.valueText(entry.Key) + ": " + d.valueText(entry.Value)
		}
		text = "{" + text + " }"
	case schema.ValueStruct:
		for _, member := range v.Fields {
			text += " " + member.Field.Name + "=" + d.valueText(member.Value)
		}
		text = v.Type.Struct.Name + "{" + text + " }"
	}
	if v.Constant != nil {
		text += "<" + v.Constant.Name + ">"
	}
	return text
}
