package emit

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// Point is a place in generated code where a plugin can insert text. The names
// are part of the plugin protocol (docs/protocol/plugin.md).
type Point string

// The points, each with what it belongs to and takes.
const (
	// StructFields of a struct: fields, behind those of the definition.
	StructFields Point = "struct.fields"
	// AfterStruct of a struct: declarations.
	AfterStruct Point = "struct.after"
	// FieldTag of a member of a struct: parts of the struct tag.
	FieldTag Point = "field.tag"
	// AfterEnum of an enum: declarations.
	AfterEnum Point = "enum.after"
	// AfterService of a service: declarations.
	AfterService Point = "service.after"
	// EndOfFile of a definition: declarations.
	EndOfFile Point = "file.end"
	// addedFile is a file of its own.
	addedFile Point = "file"
)

// Addition is what a plugin adds to the generated code.
type Addition struct {
	// Origin is who adds it, for messages.
	Origin string
	// Point is where, and Of what that belongs to: a *schema.File, Struct,
	// Field, Enum or Service of the program.
	Point Point
	Of    any
	Text  string
	// Imports are packages that the text may name besides those of GoImports.
	Imports []schema.Import
}

// additions are those of one run.
type additions struct {
	texts map[place][]*checkedAddition
	files map[*schema.File][]*checkedFile
	// declared has what additions declare, in order.
	declared []declaration
	// imported has what plugins import, by name; one name has one meaning in a
	// package.
	imported map[*schema.Package]map[string]string
	// owners knows everything that an addition can be of.
	owners map[any]*schema.File
	bytes  int
}

type place struct {
	point Point
	of    any
}

type checkedAddition struct {
	text    string
	tags    []tagPart
	imports []schema.Import
}

type checkedFile struct {
	suffix string
	*checkedAddition
}

// Add inserts text. It fails, and changes nothing, if the text is not what the
// point takes.
func (p *Prepared) Add(addition Addition) error {
	file, err := p.owner(addition.Of)
	if err != nil {
		return err
	}
	if err := p.checkOwner(addition); err != nil {
		return err
	}
	checked, declared, err := p.check(addition, file)
	if err != nil {
		return err
	}
	if checked.text == "" && len(checked.tags) == 0 {
		return nil
	}
	at := place{addition.Point, addition.Of}
	if p.additions.texts == nil {
		p.additions.texts = map[place][]*checkedAddition{}
	}
	p.additions.texts[at] = append(p.additions.texts[at], checked)
	p.additions.declared = append(p.additions.declared, declared...)
	return nil
}

// fileSuffix is what may stand between the name of the definition and ".go".
var fileSuffix = regexp.MustCompile(`^[a-z][a-z0-9]*$`)

// AddFile adds the file <definition>_<suffix>.go to the package of a definition.
// The text is declarations only: package clause and imports are printed.
func (p *Prepared) AddFile(origin string, source *schema.File, suffix, text string, imports []schema.Import) error {
	file, err := p.owner(source)
	if err != nil {
		return err
	}
	switch {
	case len(suffix) > limits.PluginNameBytes || !fileSuffix.MatchString(suffix):
		return fmt.Errorf("suffix %.80q: expected small letters and digits after a letter, at most %d bytes", suffix, limits.PluginNameBytes)
	case slices.Contains(reservedSuffixes, suffix):
		return fmt.Errorf("suffix %q: is taken, or has a meaning of its own to Go", suffix)
	}
	for _, other := range p.additions.files[file] {
		if other.suffix == suffix {
			return fmt.Errorf("suffix %q: another file of this definition has it", suffix)
		}
	}
	checked, declared, err := p.check(Addition{Origin: origin, Point: addedFile, Of: file, Text: text, Imports: imports}, file)
	if err != nil {
		return err
	}
	if len(checked.text) == 0 {
		return errors.New("the file declares nothing")
	}
	if p.additions.files == nil {
		p.additions.files = map[*schema.File][]*checkedFile{}
	}
	p.additions.files[file] = append(p.additions.files[file], &checkedFile{suffix, checked})
	p.additions.declared = append(p.additions.declared, declared...)
	return nil
}

// reservedSuffixes are those of the files that are always generated, and what
// Go takes for a test, a system or a processor at the end of a file name: all
// that `go tool dist list` of Go 1.26 has, and those that go/build knows besides.
var reservedSuffixes = []string{
	"types", "codec", "rpc", "test",
	"aix", "android", "darwin", "dragonfly", "freebsd", "hurd", "illumos", "ios", "js", "linux", "nacl", "netbsd",
	"openbsd", "plan9", "solaris", "wasip1", "windows", "zos",
	"386", "amd64", "amd64p32", "arm", "armbe", "arm64", "arm64be", "loong64", "mips", "mipsle", "mips64", "mips64le",
	"mips64p32", "mips64p32le", "ppc", "ppc64", "ppc64le", "riscv", "riscv64", "s390", "s390x", "sparc", "sparc64", "wasm",
}

// owner returns the file of what an addition is of.
func (p *Prepared) owner(of any) (*schema.File, error) {
	if p.additions.owners == nil {
		p.additions.owners = map[any]*schema.File{}
		for _, file := range p.program.Files {
			p.additions.owners[file] = file
			for _, s := range file.Structs {
				p.additions.owners[s] = file
				for _, field := range s.Fields {
					p.additions.owners[field] = file
				}
			}
			for _, enum := range file.Enums {
				p.additions.owners[enum] = file
			}
			for _, service := range file.Services {
				p.additions.owners[service] = file
			}
		}
	}
	switch of.(type) {
	case *schema.File, *schema.Struct, *schema.Field, *schema.Enum, *schema.Service:
		if file := p.additions.owners[of]; file != nil {
			return file, nil
		}
	}
	return nil, fmt.Errorf("the %T is not part of the model", of)
}

// checkOwner says that a point belongs to something else.
func (p *Prepared) checkOwner(addition Addition) error {
	fits := false
	switch addition.Point {
	case StructFields, AfterStruct:
		_, fits = addition.Of.(*schema.Struct)
	case FieldTag:
		_, fits = addition.Of.(*schema.Field)
	case AfterEnum:
		_, fits = addition.Of.(*schema.Enum)
	case AfterService:
		_, fits = addition.Of.(*schema.Service)
	case EndOfFile:
		_, fits = addition.Of.(*schema.File)
	default:
		return fmt.Errorf("there is no point %.80q", addition.Point)
	}
	if !fits {
		return fmt.Errorf("a %T has no point %s", addition.Of, addition.Point)
	}
	return nil
}

// insert prints what plugins add at a point.
func (p *printer) insert(point Point, of any) {
	for _, addition := range p.additions.texts[place{point, of}] {
		if point != StructFields {
			p.P()
		}
		p.foreign = true
		p.P(addition.text)
		p.imports.add(addition.imports)
		if point != StructFields {
			p.endDeclaration()
		}
	}
}

func (p *printer) hasAdditions(point Point, of any) bool {
	return len(p.additions.texts[place{point, of}]) > 0
}

// addedTags returns what plugins add to the tag of a field.
func (p *printer) addedTags(field *schema.Field) (parts []tagPart) {
	for _, addition := range p.additions.texts[place{FieldTag, field}] {
		parts = append(parts, addition.tags...)
	}
	return parts
}

// addedFiles prints the files that plugins add to a definition.
func (g *generator) addedFiles(source *schema.File, base string) (files []File) {
	for _, addition := range g.additions.files[source] {
		p := g.newPrinter(source, gofmt)
		p.P()
		p.foreign = true
		p.P(addition.text)
		p.imports.add(addition.imports)
		name := base + "_" + addition.suffix + ".go"
		parts, err := p.finish()
		if err != nil {
			g.errorf(filePosition(source), "%s: %v", name, err)
			continue
		}
		files = append(files, File{Path: path.Join(source.Package.Path, name), Parts: parts})
	}
	return files
}

// add imports what an addition names.
func (i *imports) add(imports []schema.Import) {
	for _, imported := range imports {
		i.added[imported.Name] = imported.Path
	}
}

// goImports are the packages that code of pkg may name without saying so: the
// runtime and what the package imports.
func (g *generator) goImports(pkg *schema.Package) []schema.Import {
	table := map[string]string{"fulmar": g.options.RuntimeImport, "thrift": g.options.ThriftImport}
	if importPath.MatchString(g.options.ImportPrefix) {
		for other, alias := range g.importAliases(pkg).names {
			table[alias] = g.options.ImportPrefix + "/" + other.Path
		}
	}
	table["methods"], table["descriptor"] = g.options.ThriftImport+"/methods", g.options.ThriftImport+"/descriptor"
	for wanted, alias := range g.importAliases(pkg).paths {
		table[alias] = wanted
	}
	for _, name := range importNames {
		if table[name] == "" {
			table[name] = name // packages of the standard library
		}
	}
	list := make([]schema.Import, 0, len(table))
	for _, name := range slices.Sorted(maps.Keys(table)) {
		list = append(list, schema.Import{Name: name, Path: table[name]})
	}
	return list
}

// checkImports returns what the text imports under the names that it uses.
func (g *generator) checkImports(pkg *schema.Package, given []schema.Import, used []string) ([]schema.Import, error) {
	known := map[string]string{}
	for _, imported := range g.goImports(pkg) {
		known[imported.Name] = imported.Path
	}
	maps.Copy(known, g.additions.imported[pkg])
	for _, imported := range given {
		switch other := known[imported.Name]; {
		case len(imported.Path) > limits.IDLNameBytes || !importPath.MatchString(imported.Path):
			return nil, fmt.Errorf("import path %.80q is not valid", imported.Path)
		case len(imported.Name) > limits.IDLNameBytes || !identifier.MatchString(imported.Name) || reservedWord(imported.Name) || imported.Name == "init":
			return nil, fmt.Errorf("import %s: the name %.80q is not one", strconv.Quote(imported.Path), imported.Name)
		case other != "" && other != imported.Path:
			return nil, fmt.Errorf("import %s: the name %s stands for %s in this package", strconv.Quote(imported.Path), imported.Name, strconv.Quote(other))
		}
		known[imported.Name] = imported.Path
	}
	var imports []schema.Import
	for _, name := range used {
		if known[name] != "" {
			imports = append(imports, schema.Import{Name: name, Path: known[name]})
		}
	}
	if g.additions.imported == nil {
		g.additions.imported = map[*schema.Package]map[string]string{}
	}
	if g.additions.imported[pkg] == nil {
		g.additions.imported[pkg] = map[string]string{}
	}
	for _, imported := range imports {
		g.additions.imported[pkg][imported.Name] = imported.Path
	}
	return imports, nil
}

// tagText checks what is added to a struct tag.
func (p *Prepared) tagText(field *schema.Field, text string) ([]tagPart, error) {
	parts, ok := parseTag(text)
	if !ok || len(parts) == 0 {
		return nil, fmt.Errorf(`%.80q is not part of a struct tag, expected for example db:"name"`, text)
	}
	taken := map[string]bool{"json": true}
	if annotation := findAnnotation(field.Annotations, annotationTag); annotation != nil {
		given, _ := parseTag(annotation.Value)
		for _, part := range given {
			taken[part.key] = true
		}
	}
	for _, addition := range p.additions.texts[place{FieldTag, field}] {
		for _, part := range addition.tags {
			taken[part.key] = true
		}
	}
	for _, part := range parts {
		if taken[part.key] {
			return nil, fmt.Errorf("the tag has the key %.80q already", part.key)
		}
		taken[part.key] = true
	}
	return parts, nil
}

// trimText removes empty lines around a text, which gofmt would not.
func trimText(text string) string { return strings.Trim(text, " \t\r\n") }
