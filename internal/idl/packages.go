package idl

import (
	"cmp"
	"fmt"
	"go/token"
	"maps"
	"slices"
	"strings"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/idl/ast"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// groupPackages gives every file its Go package and returns the packages in the
// order in which they were met.
func (r *resolver) groupPackages() []*schema.Package {
	var packages []*schema.Package
	byPath := make(map[string]*schema.Package)
	byFoldedPath := make(map[string]*schema.Package)
	byFoldedName := make(map[string]*unit)
	named := make(map[*schema.Package]schema.Position)
	for _, u := range r.units {
		namespace, called := r.goNamespace(u)
		path := strings.ReplaceAll(namespace.Text, ".", "/")
		if u.tree.Gaps.Headers {
			// Its namespace is not known, so it is compared with no other file.
			u.file.Package = &schema.Package{Path: path, Files: []*schema.File{u.file}}
			packages = append(packages, u.file.Package)
			continue
		}
		p := byPath[path]
		if p == nil {
			p = &schema.Package{Path: path, Name: path[strings.LastIndexByte(path, '/')+1:]}
			byPath[path] = p
			packages = append(packages, p)
			folded := strings.ToLower(path)
			if other := byFoldedPath[folded]; other != nil {
				r.found.errorf(u.at(namespace.Place), "Go package %s: differs from Go package %s only in upper and lower case", path, other.Path)
			}
			byFoldedPath[folded] = p
		}
		name := path + "/" + strings.ToLower(u.file.Base)
		if other := byFoldedName[name]; other != nil {
			r.found.errorf(u.at(namespace.Place), "Go package %s: its files %s and %s have the same name; rename one or give it another namespace", path, other.shown, u.shown)
		}
		byFoldedName[name] = u
		if called != nil {
			if at, known := named[p]; !known {
				p.Name, named[p] = called.Value, u.at(called.Key.Place)
			} else if p.Name != called.Value {
				r.found.errorf(u.at(called.Key.Place), "annotation %s: Go package %s is called %s at %s, and not %s", annotationPackage, path, p.Name, at, called.Value)
			}
		}
		u.file.Package = p
		p.Files = append(p.Files, u.file)
		p.Root = p.Root || u.main
	}
	return packages
}

// annotationPackage gives the Go package of a namespace another name than its folder has.
const annotationPackage = "go.pkg"

// packageCalled returns what a namespace says that its Go package is called, nil if
// nothing, or nothing that can be had.
func (r *resolver) packageCalled(u *unit, namespace *ast.Namespace) (called *ast.Annotation) {
	if called = findPackageName(namespace); called == nil {
		return nil
	}
	if problem := checkPackageName(called.Value); problem != "" {
		r.found.errorf(u.at(called.Key.Place), "annotation %s: %s", annotationPackage, problem)
		return nil
	}
	return called
}

func findPackageName(namespace *ast.Namespace) (called *ast.Annotation) {
	for i := range namespace.Annotations {
		if annotation := &namespace.Annotations[i]; annotation.Key.Text == annotationPackage {
			called = annotation
		}
	}
	return called
}

// checkPackageName says what keeps a name from being that of a Go package; "" if nothing
// does.
func checkPackageName(name string) string {
	switch {
	case len(name) > limits.IDLNameBytes:
		return fmt.Sprintf("is too long (limit %d bytes, got %d)", limits.IDLNameBytes, len(name))
	case name == "" || !isLower(rune(name[0])) && !isUpper(rune(name[0])) || strings.ContainsFunc(name, isOther):
		return fmt.Sprintf("%q is not a letter with letters, digits and underscores behind it", clip(name))
	case token.IsKeyword(name):
		return fmt.Sprintf("%q is a keyword of Go", name)
	}
	return checkLast(name)
}

// warnOfPackageNames warns where the Go package is given a name and the namespace is not
// the one with this index, which is that of the package, or gives it another one behind.
func (r *resolver) warnOfPackageNames(u *unit, index int) {
	for i := range u.tree.Namespaces {
		namespace := &u.tree.Namespaces[i]
		called := findPackageName(namespace)
		for j := range namespace.Annotations {
			switch annotation := &namespace.Annotations[j]; {
			case annotation.Key.Text != annotationPackage:
			case i != index:
				r.found.warningf(u.at(annotation.Key.Place), "annotation %s: has no effect here", annotationPackage)
			case annotation != called:
				r.found.warningf(u.at(annotation.Key.Place), "annotation %s: is given again, and the last one counts", annotationPackage)
			}
		}
	}
}

// goNamespace returns the dotted name of a file's Go package, and what else that is called
// by itself, if it is.
func (r *resolver) goNamespace(u *unit) (ast.Name, *ast.Annotation) {
	for _, namespace := range u.tree.Namespaces {
		language := namespace.Language.Text
		if _, declared := u.file.Namespaces[language]; declared {
			r.found.errorf(u.at(namespace.Language.Place), "namespace %s: is declared twice", language)
			continue
		}
		u.file.Namespaces[language] = namespace.Value.Text
	}
	for _, language := range []string{"go", "*"} {
		index := slices.IndexFunc(u.tree.Namespaces, func(n ast.Namespace) bool { return n.Language.Text == language })
		if index >= 0 || language == "*" {
			r.warnOfPackageNames(u, index)
		}
		if index < 0 || u.tree.Gaps.Headers && language == "*" {
			continue // a namespace go that could not be read would come before it
		}
		namespace := &u.tree.Namespaces[index]
		name := r.instead(namespace.Value)
		problem := checkNamespace(name.Text)
		switch {
		case problem == "" && name.Text != namespace.Value.Text:
			return name, nil // the user says what it is called
		case problem == "":
			return name, r.packageCalled(u, namespace)
		case language == "*":
			// It was not chosen with Go in mind.
			fallback := r.fileNamespace(u)
			r.found.warningf(u.at(name.Place), "namespace %s %q: %s; the Go package is called %s, which a namespace go can change", language, clip(name.Text), problem, fallback.Text)
			return fallback, nil
		}
		r.found.errorf(u.at(name.Place), "namespace %s %q: %s", language, clip(name.Text), problem)
		break
	}
	return r.fileNamespace(u), nil
}

// fileNamespace is the namespace of a file that declares none.
func (r *resolver) fileNamespace(u *unit) ast.Name {
	return r.instead(ast.Name{Text: packageName(u.file.Base), Place: ast.Place{Line: 1, Column: 1}})
}

// instead returns what the user wants a namespace to be called.
func (r *resolver) instead(name ast.Name) ast.Name {
	if other, found := r.options.Namespaces[name.Text]; found {
		r.renamed[name.Text] = true
		name.Text = other
	}
	return name
}

// checkRenaming reports namespaces that were to be called otherwise and cannot,
// or are not there.
func (r *resolver) checkRenaming() {
	for _, name := range slices.Sorted(maps.Keys(r.options.Namespaces)) {
		other := r.options.Namespaces[name]
		at := schema.Position{File: fmt.Sprintf("--namespace %s=%s", clip(name), clip(other))}
		if problem := checkNamespace(other); problem != "" {
			r.found.errorf(at, "%s", problem)
		} else if !r.renamed[name] && !slices.ContainsFunc(r.units, func(u *unit) bool { return u.tree.Gaps.Headers }) {
			r.found.errorf(at, "no file has the namespace %s for Go", clip(name))
		}
	}
}

// checkNamespace says what keeps a dotted name from being a Go package, which
// is a folder as well; "" if nothing does.
func checkNamespace(name string) string {
	if len(name) > limits.IDLNameBytes {
		return fmt.Sprintf("is too long (limit %d bytes, got %d)", limits.IDLNameBytes, len(name))
	}
	components := strings.Split(name, ".")
	for _, component := range components {
		if problem := checkFolder(component); problem != "" {
			return problem
		}
	}
	return checkLast(components[len(components)-1])
}

// checkLast is checkNamespace for what the package itself is called.
func checkLast(last string) string {
	switch {
	case last == "main":
		return `no other Go package can import a package "main"`
	case last == "init":
		return `no other Go package can import a package "init" by its name`
	case last == "documentation":
		return `Go ignores the files of a package "documentation"`
	case strings.HasSuffix(last, "_test"):
		return fmt.Sprintf("component %q ends in _test, which Go keeps for the tests of another package", last)
	}
	return ""
}

// checkFolder says what keeps a name from being a folder with a Go package in
// it.
func checkFolder(name string) string {
	switch {
	case name == "":
		return "has an empty component"
	case strings.ContainsFunc(name, isOther):
		return fmt.Sprintf("component %q is not an identifier of letters, digits and underscores", clip(name))
	case name[0] >= '0' && name[0] <= '9':
		return fmt.Sprintf("component %q begins with a digit", clip(name))
	case name[0] == '_':
		return fmt.Sprintf("component %q begins with an underscore, and Go ignores such folders", clip(name))
	case len(name) > limits.GoFileNameBytes:
		return fmt.Sprintf("component %q is too long for a folder (limit %d bytes, got %d)", clip(name), limits.GoFileNameBytes, len(name))
	case token.IsKeyword(name):
		return fmt.Sprintf("component %q is a keyword of Go", name)
	case name == "vendor" || name == "testdata":
		return fmt.Sprintf("component %q has a meaning of its own to Go", name)
	case name == "internal":
		return `component "internal" would hide the package from all but its neighbours; name the output folder so (-o) if that is wanted`
	case isDevice(name):
		return fmt.Sprintf("component %q is the name of a device on Windows, where no folder can have it", name)
	}
	return ""
}

// isDevice says that Windows takes a name, in capitals or not, for a device.
func isDevice(name string) bool {
	name = strings.ToLower(name)
	switch name {
	case "con", "prn", "aux", "nul":
		return true
	}
	return len(name) == len("com1") && isDigit(rune(name[3])) && (name[:3] == "com" || name[:3] == "lpt")
}

func isLower(c rune) bool { return 'a' <= c && c <= 'z' }
func isUpper(c rune) bool { return 'A' <= c && c <= 'Z' }
func isDigit(c rune) bool { return '0' <= c && c <= '9' }

// isOther says that identifiers do not have a character.
func isOther(c rune) bool { return c != '_' && !isLower(c) && !isUpper(c) && !isDigit(c) }

// packageName makes a Go package name of a file's name.
func packageName(base string) string {
	name := strings.Map(func(c rune) rune {
		if isLower(c) || isDigit(c) {
			return c
		}
		return '_'
	}, strings.ToLower(base))
	name = strings.TrimLeft(name, "_")
	name = name[:min(len(name), limits.GoFileNameBytes-2*len("idl"))]
	if name == "" || isDigit(rune(name[0])) {
		name = "idl" + name
	}
	if checkNamespace(name) != "" {
		name += "idl"
	}
	return name
}

// packageUses are the packages that something uses, and where first.
type packageUses map[*schema.Package]schema.Position

// packageGraph has the uses of every package.
type packageGraph map[*schema.Package]packageUses

// orderPackages fills Imports, refuses cycles and returns imported packages
// first.
func (r *resolver) orderPackages(packages []*schema.Package) []*schema.Package {
	uses := make(packageGraph)
	ofMethods := make(map[*schema.Service]packageUses)
	for _, p := range packages {
		uses[p] = make(packageUses)
		for _, file := range p.Files {
			uses.addFile(file, ofMethods)
		}
	}
	for _, p := range packages {
		delete(uses[p], p)
		p.Imports = slices.SortedFunc(maps.Keys(uses[p]), func(a, b *schema.Package) int { return cmp.Compare(a.Path, b.Path) })
	}
	var ordered []*schema.Package
	for _, group := range components(packages, func(p *schema.Package) []*schema.Package { return p.Imports }) {
		ordered = append(ordered, group...)
		if len(group) > 1 {
			r.reportImportCycle(group, uses)
		}
	}
	return ordered
}

// reportImportCycle shows one cycle through the group with the uses that make
// it up.
func (r *resolver) reportImportCycle(group []*schema.Package, uses packageGraph) {
	slices.SortFunc(group, func(a, b *schema.Package) int { return cmp.Compare(a.Path, b.Path) })
	at := make(map[*schema.Package]int)
	var path []*schema.Package
	p := group[0]
	for {
		if _, again := at[p]; again {
			break
		}
		at[p] = len(path)
		path = append(path, p)
		p = p.Imports[slices.IndexFunc(p.Imports, func(next *schema.Package) bool { return slices.Contains(group, next) })]
	}
	path = append(path[at[p]:], p)
	steps := []string{path[0].Path}
	for i, from := range path[:len(path)-1] {
		to := path[i+1]
		steps = append(steps, fmt.Sprintf("%s (%s)", to.Path, uses[from][to]))
	}
	r.found.errorf(uses[path[0]][path[1]], "Go packages import each other, which Go refuses (%s); give the files one namespace go (or --namespace %s=%s) or move what they share to another file",
		arrows(steps), dotted(path[1]), dotted(path[0]))
}

// dotted is the namespace of a package.
func dotted(p *schema.Package) string { return strings.ReplaceAll(p.Path, "/", ".") }

func (g packageGraph) addFile(file *schema.File, ofMethods map[*schema.Service]packageUses) {
	uses := g[file.Package]
	for _, typedef := range file.Typedefs {
		uses.addType(typedef.Type, typedef.Type.Position)
	}
	for _, constant := range file.Constants {
		uses.addType(constant.Type, constant.Type.Position)
		uses.addValue(constant.Value)
	}
	for _, s := range file.Structs {
		uses.addFields(s.Fields)
	}
	for _, service := range file.Services {
		for s := service; s != nil; s = s.Extends {
			uses.add(s.File.Package, service.Position)
			for p, position := range usesOfMethods(s, ofMethods) {
				if s != service {
					position = service.Position
				}
				uses.add(p, position)
			}
		}
	}
}

// usesOfMethods returns what the methods of a service use, without looking
// twice: any number of services may inherit them.
func usesOfMethods(s *schema.Service, known map[*schema.Service]packageUses) packageUses {
	if uses := known[s]; uses != nil {
		return uses
	}
	uses := make(packageUses)
	for _, method := range s.Methods {
		uses.addType(method.Result, method.Result.Position)
		uses.addFields(method.Arguments)
		uses.addFields(method.Throws)
	}
	known[s] = uses
	return uses
}

func (u packageUses) add(p *schema.Package, position schema.Position) {
	if _, known := u[p]; !known {
		u[p] = position
	}
}

func (u packageUses) addFields(fields []*schema.Field) {
	for _, field := range fields {
		u.addType(field.Type, field.Type.Position)
		u.addValue(field.Default)
	}
}

// addType adds what has to be named to write the type down in Go: also what is
// behind a typedef, because code that handles its elements names them.
func (u packageUses) addType(t *schema.Type, position schema.Position) {
	if t == nil {
		return
	}
	if t.Typedef != nil {
		u.add(t.Typedef.File.Package, position)
	}
	if t.Enum != nil {
		u.add(t.Enum.File.Package, position)
	}
	if t.Struct != nil {
		u.add(t.Struct.File.Package, position)
	}
	u.addType(t.Key, position)
	u.addType(t.Element, position)
}

// addValue adds the constants that a value names.
func (u packageUses) addValue(value *schema.Value) {
	if value == nil {
		return
	}
	if value.Constant != nil {
		u.add(value.Constant.File.Package, value.Position)
	}
	for _, item := range value.List {
		u.addValue(item)
	}
	for _, entry := range value.Entries {
		u.addValue(entry.Key)
		u.addValue(entry.Value)
	}
	for _, member := range value.Fields {
		u.addValue(member.Value)
	}
}
