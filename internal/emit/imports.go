package emit

import (
	"bytes"
	"cmp"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/fulmar-rpc/fulmar/gen/schema"
)

// imports are the imports of one file. They are added by being used.
type imports struct {
	generator *generator
	source    *schema.File
	// standard and modules map import paths to the names that the file uses.
	standard map[string]string
	modules  map[string]string
	// renamed are the import paths of packages that are not called what they end in.
	renamed map[string]bool
	// added maps names to the import paths that plugins want under them.
	added map[string]string
	// aliases are the same in all files of a package.
	*aliases
}

// aliases are the names for other generated packages.
type aliases struct {
	names map[*schema.Package]string
	taken map[string]bool
	// paths are the names for packages that the definition asks for, by import path.
	paths map[string]string
}

// localNames are the identifiers that generated functions use inside. The name
// of an imported package must not be hidden by one.
var localNames = []string{
	"args", "b", "before", "both", "c", "caller", "ctx", "depth", "e", "element", "entries", "err", "exception", "field", "fixed", "i",
	"implementation", "key", "list", "missing", "n", "name", "next", "ok", "options", "p", "pair", "r", "registrar",
	"request", "result", "s", "seen", "set", "success", "unknown", "v", "value", "w",
}

// importNames are the names of the packages that generated code may import
// apart from other generated ones.
var importNames = []string{"context", "descriptor", "errors", "fmt", "fulmar", "maps", "math", "methods", "protobuf", "strconv", "thrift", "view"}

func (g *generator) newImports(source *schema.File) *imports {
	return &imports{
		generator: g,
		source:    source,
		standard:  map[string]string{},
		modules:   map[string]string{},
		renamed:   map[string]bool{},
		added:     map[string]string{},
		aliases:   g.importAliases(source.Package),
	}
}

// importAliases names the packages that the files of pkg may import: those that
// it uses, and those that they use, because a value may need what is inside a
// type that is used.
func (g *generator) importAliases(pkg *schema.Package) *aliases {
	if found, known := g.aliases[pkg]; known {
		return found
	}
	taken := newNamespace(slices.Concat(localNames, importNames)...)
	taken.reserveAll(g.names.scopes[pkg])
	if g.options.Kitex {
		taken.reserve(kitexImports()...)
	}
	found := &aliases{names: map[*schema.Package]string{}, taken: map[string]bool{}, paths: map[string]string{}}
	for queue := []*schema.Package{pkg}; len(queue) > 0; queue = queue[1:] {
		for _, imported := range queue[0].Imports {
			if found.names[imported] == "" {
				alias := taken.claimAlias(imported)
				found.names[imported], found.taken[alias] = alias, true
				queue = append(queue, imported)
			}
		}
	}
	for _, wanted := range fieldTypePaths(pkg) {
		alias := taken.claimName(pathName(wanted))
		found.paths[wanted], found.taken[alias] = alias, true
	}
	for _, wanted := range g.messageImports(pkg) {
		alias := taken.claimName(wanted.Name)
		found.paths[wanted.Path], found.taken[alias] = alias, true
	}
	g.aliases[pkg] = found
	return found
}

// claimAlias names an imported package: by its own name, or if that is taken by
// that of the folder around it as well.
func (n *namespace) claimAlias(pkg *schema.Package) string {
	alias := pkg.Name
	if elements := strings.Split(pkg.Path, "/"); !n.usableAlias(alias) && len(elements) > 1 {
		alias = elements[len(elements)-2] + pkg.Name
	}
	return n.claimName(alias)
}

func (n *namespace) usableAlias(alias string) bool {
	// Functions number their variables where loops nest. Aliases are numbered too, so
	// those that there are do not count: x_2, x_3 and so on would all be x_, and taken.
	variable := strings.TrimRight(alias, "0123456789")
	return n.free(alias) && !slices.Contains(localNames, variable) && !reservedWord(alias) && alias != "init"
}

// claimName names an imported package like alias.
func (n *namespace) claimName(alias string) string {
	alias = n.choose("alias", alias, n.usableAlias)
	n.reserve(alias)
	return alias
}

// std returns a name of a package of the standard library as the file writes
// it.
func (i *imports) std(pkg, name string) string {
	i.standard[pkg] = pkg
	return pkg + "." + name
}

// runtime returns a name of the package fulmar as the file writes it.
func (i *imports) runtime(name string) string {
	i.modules[i.generator.options.RuntimeImport] = "fulmar"
	return "fulmar." + name
}

// thrift returns a name of the package thrift as the file writes it.
func (i *imports) thrift(name string) string {
	i.modules[i.generator.options.ThriftImport] = "thrift"
	return "thrift." + name
}

// methods returns a name of the package methods, which is within the package thrift,
// as the file writes it.
func (i *imports) methods(name string) string {
	i.modules[i.generator.options.ThriftImport+"/methods"] = "methods"
	return "methods." + name
}

// view returns a name of the package view, which is within the package thrift, as the
// file writes it.
func (i *imports) view(name string) string {
	i.modules[i.generator.options.ThriftImport+"/view"] = "view"
	return "view." + name
}

// descriptor returns a name of the package descriptor, which is within the package thrift,
// as the file writes it.
func (i *imports) descriptor(name string) string {
	i.modules[i.generator.options.ThriftImport+"/descriptor"] = "descriptor"
	return "descriptor." + name
}

// generated returns a name of a generated package as the file writes it.
func (i *imports) generated(pkg *schema.Package, name string) string {
	if pkg == i.source.Package {
		return name
	}
	alias, known := i.names[pkg]
	if !known {
		panic("emit: package " + pkg.Path + " is not among the imports of package " + i.source.Package.Path)
	}
	i.generator.checkPrefix(i.source, pkg)
	importPath := i.generator.options.ImportPrefix + "/" + pkg.Path
	i.modules[importPath] = alias
	i.renamed[importPath] = pkg.Name != path.Base(pkg.Path)
	return alias + "." + name
}

// write prints the import declaration: standard library, then the rest.
func (i *imports) write(out *bytes.Buffer) {
	standard, modules := i.groups()
	if len(standard)+len(modules) == 0 {
		return
	}
	out.WriteString("import (\n")
	for _, group := range [][]schema.Import{standard, modules} {
		for _, imported := range group {
			if imported.Name != path.Base(imported.Path) || i.renamed[imported.Path] {
				out.WriteString(imported.Name + " ")
			}
			out.WriteString(strconv.Quote(imported.Path) + "\n")
		}
		out.WriteString("\n")
	}
	out.WriteString(")\n\n")
}

// groups returns the imports of the standard library and the rest, sorted. A
// path comes twice if a plugin gives it another name.
func (i *imports) groups() (standard, modules []schema.Import) {
	all := map[schema.Import]bool{}
	for _, group := range []map[string]string{i.standard, i.modules} {
		for importPath, name := range group {
			all[schema.Import{Name: name, Path: importPath}] = true
		}
	}
	for name, importPath := range i.added {
		all[schema.Import{Name: name, Path: importPath}] = true
	}
	sorted := slices.SortedFunc(maps.Keys(all), func(a, b schema.Import) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Name, b.Name))
	})
	for _, imported := range sorted {
		if first, _, _ := strings.Cut(imported.Path, "/"); strings.Contains(first, ".") || i.modules[imported.Path] != "" && !i.isStandard(imported) {
			modules = append(modules, imported)
		} else {
			standard = append(standard, imported)
		}
	}
	return standard, modules
}

// isStandard says that a package that the definition asks for is probably one of Go's:
// its path has no dot and is not that of what is generated.
func (i *imports) isStandard(imported schema.Import) bool {
	prefix, _, _ := strings.Cut(i.generator.options.ImportPrefix, "/")
	first, _, _ := strings.Cut(imported.Path, "/")
	return i.paths[imported.Path] != "" && first != prefix
}

// checkPrefix reports, once for each package, that it cannot be imported.
func (g *generator) checkPrefix(source *schema.File, pkg *schema.Package) {
	prefix := g.options.ImportPrefix
	if importPath.MatchString(prefix) || g.reported[pkg] {
		return
	}
	g.reported[pkg] = true
	problem := "the import path of the output folder is not known: there is no go.mod above it, and no --package-prefix"
	if prefix != "" {
		problem = strconv.Quote(prefix) + " is not a valid import path"
	}
	g.errorf(schema.Position{File: source.Path}, "package %s imports package %s, but %s", source.Package.Path, pkg.Path, problem)
}
