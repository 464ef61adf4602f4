package emit

import (
	"cmp"
	"fmt"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/idl"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// Options says how the generated packages are found and what they are built
// on. The zero value fits everything but packages that import each other.
type Options struct {
	// ImportPrefix is the import path of the output folder: the package with
	// the path "acme/orders" is imported as ImportPrefix + "/acme/orders".
	ImportPrefix string
	// RuntimeImport and ThriftImport are the import paths of the packages that
	// generated code calls. Empty means Fulmar's own.
	RuntimeImport string
	ThriftImport  string
}

// File is one generated file.
type File struct {
	// Path is relative to the output folder, slash separated, and never leaves
	// it.
	Path    string
	Content []byte
}

// The import paths of the runtime.
const (
	runtimeImport = "github.com/fulmar-rpc/fulmar"
	thriftImport  = "github.com/fulmar-rpc/fulmar/thrift"
)

// Generate prints every package of the program, in the order of the program.
// It fills the GoName of everything in it, which is its only change to the
// model; equal programs give equal files. There are no files if the
// diagnostics hold an error.
func Generate(program *schema.Program, options Options) ([]File, idl.Diagnostics) {
	options.RuntimeImport = cmp.Or(options.RuntimeImport, runtimeImport)
	options.ThriftImport = cmp.Or(options.ThriftImport, thriftImport)
	g := &generator{
		options:  options,
		program:  program,
		pointers: closingFields(program),
		defaults: map[*schema.Struct]bool{},
		aliases:  map[*schema.Package]map[*schema.Package]string{},
		reported: map[*schema.Package]bool{},
	}
	g.checkOptions()
	g.checkPackages()
	if len(g.diagnostics) > 0 {
		return nil, g.sortedDiagnostics()
	}
	g.checkAnnotations()
	g.checkSizes()
	g.names = g.nameProgram()
	var files []File
	for _, pkg := range program.Packages {
		files = append(files, g.generatePackage(pkg)...)
	}
	if len(g.diagnostics) > 0 {
		return nil, g.sortedDiagnostics()
	}
	return files, nil
}

// generator is one run of Generate.
type generator struct {
	options Options
	program *schema.Program
	names   *names
	// pointers are the fields that would make their struct contain itself.
	pointers map[*schema.Field]bool
	// defaults remembers what hasDefaults found.
	defaults map[*schema.Struct]bool
	// aliases remembers what importAliases found.
	aliases map[*schema.Package]map[*schema.Package]string
	// reported are the packages whose import was already found to be
	// impossible.
	reported    map[*schema.Package]bool
	diagnostics idl.Diagnostics
}

func (g *generator) errorf(position schema.Position, format string, arguments ...any) {
	g.diagnostics = append(g.diagnostics, idl.Diagnostic{
		Position: position,
		Message:  fmt.Sprintf(format, arguments...),
	})
}

func (g *generator) sortedDiagnostics() idl.Diagnostics {
	slices.SortStableFunc(g.diagnostics, func(a, b idl.Diagnostic) int {
		return cmp.Or(
			cmp.Compare(a.Position.File, b.Position.File),
			cmp.Compare(a.Position.Line, b.Position.Line),
			cmp.Compare(a.Position.Column, b.Position.Column),
		)
	})
	list := slices.Compact(g.diagnostics)
	if len(list) > limits.IDLErrors {
		list = append(list[:limits.IDLErrors], idl.Diagnostic{
			Position: schema.Position{File: "fulmar gen"},
			Message:  fmt.Sprintf("too many errors (limit %d), the rest is not shown", limits.IDLErrors),
		})
	}
	return list
}

// importPath is what may stand between quotes in an import declaration and in
// a go.mod.
var importPath = regexp.MustCompile(`^[A-Za-z0-9_~-][A-Za-z0-9._~-]*(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*$`)

// packagePath is a path of identifiers. It cannot leave the output folder.
var packagePath = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*$`)

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (g *generator) checkOptions() {
	for _, path := range []string{g.options.RuntimeImport, g.options.ThriftImport} {
		if !importPath.MatchString(path) {
			g.errorf(schema.Position{}, "import path %s is not valid", strconv.Quote(path))
		}
	}
}

// checkPackages holds front ends to what schema.Package promises, because
// folders are made from it.
func (g *generator) checkPackages() {
	seen := map[string]bool{}
	for _, pkg := range g.program.Packages {
		place := packagePosition(pkg)
		switch folder := strings.ToLower(pkg.Path); {
		case !packagePath.MatchString(pkg.Path):
			g.errorf(place, "package path %s: only letters, digits and underscores can be folders", strconv.Quote(pkg.Path))
		case !identifier.MatchString(pkg.Name) || token.IsKeyword(pkg.Name) || pkg.Name == "_":
			g.errorf(place, "package name %s is not a Go identifier", strconv.Quote(pkg.Name))
		case seen[folder]:
			g.errorf(place, "package path %s: another package has the same folder where upper and lower case are not told apart", strconv.Quote(pkg.Path))
		default:
			seen[folder] = true
		}
	}
}

// packagePosition is where messages about a package as a whole point to.
func packagePosition(pkg *schema.Package) schema.Position {
	if len(pkg.Files) == 0 {
		return schema.Position{}
	}
	return filePosition(pkg.Files[0])
}

// filePosition is where messages about a file as a whole point to.
func filePosition(file *schema.File) schema.Position {
	return schema.Position{File: file.Path}
}

// generatePackage prints the files of one package.
func (g *generator) generatePackage(pkg *schema.Package) []File {
	var files []File
	taken := newNamespace()
	documented := false
	for _, source := range pkg.Files {
		base := taken.claimFile(source.Base)
		for _, part := range []struct {
			suffix string
			print  func(*printer, *schema.File)
		}{
			{"types", (*printer).types},
			{"codec", (*printer).codec},
			{"rpc", (*printer).rpc},
		} {
			p := g.newPrinter(source)
			part.print(p, source)
			p.format()
			if p.empty() {
				continue
			}
			if !documented {
				p.documentation = packageDoc(pkg)
				documented = true
			}
			content, err := p.finish()
			if err != nil {
				// What is left is a definition that no Go can be written for,
				// and a defect of this package.
				g.errorf(packagePosition(pkg), "%s_%s.go: generated code is not valid Go: %v", base, part.suffix, err)
				continue
			}
			files = append(files, File{
				Path:    pkg.Path + "/" + base + "_" + part.suffix + ".go",
				Content: content,
			})
		}
	}
	return files
}

// packageDoc is the package comment: what the definitions say about themselves
// behind a sentence that names the package, as godoc expects.
func packageDoc(pkg *schema.Package) string {
	doc := "Package " + pkg.Name + " holds the types and services of "
	for i, source := range pkg.Files {
		switch {
		case i == 0:
		case i == len(pkg.Files)-1:
			doc += " and "
		default:
			doc += ", "
		}
		doc += source.Path
	}
	doc += "."
	for _, source := range pkg.Files {
		if source.Doc != "" {
			doc += "\n\n" + source.Doc
		}
	}
	return doc
}
