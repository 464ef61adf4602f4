package protofile

import (
	"bytes"
	"fmt"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/idl"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// goPackage is where the Go code of a file is.
type goPackage struct {
	// importPath and name are those of the package with the messages.
	importPath string
	name       string
	// folder is the one below the output folder that is generated into, empty if nothing is
	// generated for the file.
	folder string
	// services is the package that is generated, nil if there is none, base the name of its
	// files for this definition without their suffixes.
	services *schema.Package
	base     string
}

// Numbers of fields in a FileDescriptorProto, of which positions are asked for.
const (
	pathPackage = 2
	pathImport  = 3
	pathService = 6
	pathOptions = 8
	// pathGoPackage is in the options.
	pathGoPackage = 11
)

// assignPackages says for each file where its Go code is, and which files share a package.
func (l *loading) assignPackages(units []*unit) {
	if l.request.ImportPrefix == "" {
		l.errorf(schema.Position{File: l.shownName(units[len(units)-1].proto.GetName())},
			"the import path of the output folder is not known: there is no go.mod above it, and no --package-prefix")
		return
	}
	renamed := map[string]bool{}
	for _, u := range units {
		renamed[u.namespace()] = true
		if l.existing {
			l.placeServices(u)
		} else {
			l.place(u)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.request.Namespaces)) {
		at := schema.Position{File: fmt.Sprintf("--namespace %s=%s", clip(name), clip(l.request.Namespaces[name]))}
		if problem := idl.CheckNamespace(l.request.Namespaces[name]); problem != "" {
			l.errorf(at, "%s", problem)
		} else if !renamed[name] {
			l.errorf(at, "no file has the package %s", clip(name))
		}
	}
	if l.errors == 0 {
		l.group(units)
	}
	if l.errors == 0 {
		l.checkTime(units)
	}
	if l.errors == 0 && !l.existing {
		l.checkCycles(units)
	}
}

// namespace is what --namespace calls the file: its package, or else its name.
func (u *unit) namespace() string {
	if name := u.proto.GetPackage(); name != "" {
		return name
	}
	return idl.PackageName(baseOf(u.proto.GetName()))
}

func baseOf(name string) string { return strings.TrimSuffix(path.Base(name), path.Ext(name)) }

// declared returns the import path and the name that go_package gives. The path begins at
// the output folder if it is written so, or as Kitex has it: its first element has no dot, and
// is not that of the output folder's own path. Go fetches none such, but may have it in a
// workspace, so that a path which is to be of messages that exist is left as it is.
func (l *loading) declared(u *unit) (importPath, name string) {
	importPath, name, _ = strings.Cut(u.proto.GetOptions().GetGoPackage(), ";")
	first, _, _ := strings.Cut(importPath, "/")
	own, _, _ := strings.Cut(l.request.ImportPrefix, "/")
	switch {
	case first == ".":
		importPath = path.Join(l.request.ImportPrefix, importPath)
	case importPath != "" && first != own && !l.existing && !strings.Contains(first, "."):
		importPath = l.request.ImportPrefix + "/" + importPath // What is not clean is refused.
	}
	importPath = strings.TrimSuffix(importPath, "/")
	if importPath != "" && name == "" {
		name = identifier(path.Base(importPath))
	}
	return importPath, name
}

// identifier makes a package name of the last element of an import path, as Go's official
// generator does.
func identifier(text string) string {
	name := strings.Map(func(r rune) rune {
		if r == '_' || r < 0x80 && (token.IsIdentifier("x"+string(r))) {
			return r
		}
		return '_'
	}, text)
	if token.IsKeyword(name) || name == "" || '0' <= name[0] && name[0] <= '9' {
		return "_" + name
	}
	return name
}

// fromNamespace is the package of a file without go_package: "shop.v1" is in the folder
// shop/v1 and called shopv1, because v1 alone says nothing.
func fromNamespace(namespace string) (folder, name string) {
	parts := strings.Split(namespace, ".")
	name = parts[len(parts)-1]
	if len(parts) > 1 && len(name) > 1 && name[0] == 'v' && '0' <= name[1] && name[1] <= '9' {
		name = parts[len(parts)-2] + name
	}
	return strings.Join(parts, "/"), name
}

// place says where the messages and services of a file are generated.
func (l *loading) place(u *unit) {
	at := u.position(pathOptions, pathGoPackage)
	importPath, name := l.declared(u)
	prefix := l.request.ImportPrefix
	below, isBelow := strings.CutPrefix(importPath, prefix+"/")
	switch other, isRenamed := l.request.Namespaces[u.namespace()]; {
	case isRenamed:
		u.folder, u.name = fromNamespace(other)
	case importPath == "":
		at = u.position(pathPackage)
		u.folder, u.name = fromNamespace(u.namespace())
	case isBelow:
		u.folder, u.name = below, name
	case !u.named:
		// Somebody else's: there is code for it where it says.
		u.importPath, u.name = importPath, name
		return
	case importPath == prefix:
		l.errorf(at, "go_package %q is the output folder itself, expected a folder below it; name the folder above as the output (-o), or choose a folder with --namespace %s=<folder>", clip(u.proto.GetOptions().GetGoPackage()), u.namespace())
		return
	default:
		l.errorf(at, "go_package %q is not below the import path of the output folder, %q; change one of them, or choose a folder with --namespace %s=<folder>, or make services only with --messages=existing",
			clip(importPath), clip(prefix), u.namespace())
		return
	}
	u.importPath = prefix + "/" + u.folder
	l.checkPlace(u, at)
}

func (l *loading) checkPlace(u *unit, at schema.Position) {
	switch problem := idl.CheckNamespace(strings.ReplaceAll(u.folder, "/", ".")); {
	case problem != "":
		l.errorf(at, "Go package %q: %s; choose another with go_package or --namespace %s=<folder>", clip(u.folder), problem, u.namespace())
	case !token.IsIdentifier(u.name) || u.name == "_" || u.name == "main":
		l.errorf(at, "Go package %q: %q cannot be its name; give another one in go_package, behind a semicolon", clip(u.folder), clip(u.name))
	}
}

// placeServices says where the services of a file are generated, whose messages are where
// go_package says.
func (l *loading) placeServices(u *unit) {
	u.importPath, u.name = l.declared(u)
	if u.importPath == "" {
		l.errorf(u.position(pathPackage), "has no option go_package, which says where the messages are that exist already")
		return
	}
	if !u.named || len(u.proto.GetService()) == 0 {
		return
	}
	other, isRenamed := l.request.Namespaces[u.namespace()]
	below, isBelow := strings.CutPrefix(u.importPath, l.request.ImportPrefix+"/")
	place := *u
	switch {
	case isRenamed:
		place.folder, place.goPackage.name = fromNamespace(other)
	case isBelow:
		place.folder = below
	default:
		place.folder, place.goPackage.name = fromNamespace(u.namespace())
	}
	l.checkPlace(&place, u.position(pathOptions, pathGoPackage))
	u.folder = place.folder
	u.services = &schema.Package{Path: u.folder, Name: place.goPackage.name}
}

// group makes one package of the files that share a folder.
func (l *loading) group(units []*unit) {
	packages := map[string]*schema.Package{}
	files := map[string]*unit{}
	for _, u := range units {
		if u.folder == "" {
			continue
		}
		name := u.name
		if u.services != nil {
			name = u.services.Name
		}
		at := u.position(pathOptions, pathGoPackage)
		folded := strings.ToLower(u.folder)
		known := packages[folded]
		switch {
		case known == nil:
			known = &schema.Package{Path: u.folder, Name: name}
			packages[folded] = known
		case known.Path != u.folder:
			l.errorf(at, "Go package %s: differs from Go package %s only in upper and lower case", u.folder, known.Path)
		case known.Name != name:
			l.errorf(at, "Go package %s: is called %s here and %s in another file; give it one name in go_package, behind a semicolon", u.folder, name, known.Name)
		}
		u.base = fileName(baseOf(u.proto.GetName()))
		file := folded + "/" + u.base
		if other := files[file]; other != nil {
			l.errorf(at, "Go package %s: its files %s and %s have the same name; rename one or give it another package", u.folder,
				l.shownName(other.proto.GetName()), l.shownName(u.proto.GetName()))
		}
		files[file] = u
		known.Root = known.Root || u.named
		u.services = known
	}
}

// checkTime refuses what would be printed for minutes: the description of a file is one
// expression with a line for most names, and takes the square of its lines.
func (l *loading) checkTime(units []*unit) {
	const most = limits.ProtoDescriptionFiles * limits.ProtoDescriptionLines * limits.ProtoDescriptionLines
	byName := map[string]*unit{}
	costs := map[*unit]int64{}
	total := int64(0)
	for _, u := range units { // imported ones first
		byName[u.proto.GetName()] = u
		at := schema.Position{File: l.shownName(u.proto.GetName())}
		lines := linesOf(u.proto)
		if l.prints(u) && lines > limits.ProtoDescriptionLines {
			l.errorf(at, "its description takes too many lines of code (limit %d, got %d), which are a line for each name of a message, field, value or service, and for some numbers: move some to another file of the package",
				limits.ProtoDescriptionLines, lines)
		}
		counted := int64(max(lines, limits.ProtoDescriptionLinesLeast))
		cost := min(counted*counted, most+1)
		for _, index := range u.proto.GetPublicDependency() {
			if imported := byName[u.proto.GetDependency()[index]]; imported != nil && imported.importPath != u.importPath {
				cost = min(cost+costs[imported], most+1)
			}
		}
		costs[u] = cost
		if !l.prints(u) {
			continue
		}
		if total += cost; total > most {
			l.errorf(at, "the descriptions of all files together take too long to print (limit %d files of %d lines, or more that are shorter; each public import counts as the imported file): generate fewer files in one run",
				limits.ProtoDescriptionFiles, limits.ProtoDescriptionLines)
			return
		}
	}
}

// prints says whether messages of the file are printed.
func (l *loading) prints(u *unit) bool {
	return u.services != nil && (!l.existing || u.importPath == l.request.ImportPrefix+"/"+u.folder)
}

// linesOf is how many lines the description of a file takes in its code: one ends where
// something begins whose first field is a name.
func linesOf(file *descriptorpb.FileDescriptorProto) int {
	plain := proto.CloneOf(file)
	plain.SourceCodeInfo = nil
	b, err := proto.Marshal(plain)
	if err != nil {
		return 0 // the generator says so
	}
	return bytes.Count(b, []byte{'\n'})
}

// fileName is the name of the Go files of a definition, without what follows a dot: small
// letters, and nothing that Go takes for a platform.
func fileName(base string) string {
	name := strings.TrimLeft(strings.Map(func(r rune) rune {
		switch {
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			return r
		}
		return '_'
	}, base), "_")
	name = name[:min(len(name), limits.GoFileNameBytes)]
	if name == "" {
		name = "idl"
	}
	// A file x_linux.pb.go is for Linux only. What the platforms are grows with Go, so any
	// word could be one.
	if strings.Contains(name, "_") {
		last := name[strings.LastIndexByte(name, '_')+1:]
		if isPlatform(last) {
			name += "_"
		}
	}
	return name
}

// isPlatform knows the operating systems and processors that Go has, or had, a name for.
func isPlatform(word string) bool {
	for platform := range strings.FieldsSeq(`aix android darwin dragonfly freebsd hurd illumos ios js linux nacl netbsd openbsd plan9
		solaris wasip1 wasip2 windows zos 386 amd64 amd64p32 arm armbe arm64 arm64be loong64 mips mipsle mips64 mips64le mips64p32
		mips64p32le ppc ppc64 ppc64le riscv riscv64 s390 s390x sparc sparc64 wasm test`) {
		if word == platform {
			return true
		}
	}
	return false
}

// checkCycles refuses Go packages that import each other. Files cannot, but packages are
// made of several.
func (l *loading) checkCycles(units []*unit) {
	type use struct {
		to string
		at schema.Position
	}
	byName := map[string]*unit{}
	uses := map[string][]use{}
	for _, u := range units {
		byName[u.proto.GetName()] = u
		for i, name := range u.proto.GetDependency() {
			if to := byName[name]; to != nil && u.folder != "" && to.folder != "" && to.folder != u.folder {
				uses[u.folder] = append(uses[u.folder], use{to.folder, u.position(pathImport, int32(i))})
			}
		}
	}
	const open, done = 1, 2
	state := map[string]int{}
	var visit func(folder string, way []string)
	visit = func(folder string, way []string) {
		state[folder] = open
		way = append(way, folder)
		for _, one := range uses[folder] {
			switch state[one.to] {
			case open:
				cycle := append(slices.Clone(way[slices.Index(way, one.to):]), one.to)
				l.errorf(one.at, "Go packages import each other, which Go refuses (%s); give the files one package with go_package or --namespace, or move what they share to another file",
					clip(strings.Join(cycle, " -> ")))
			case 0:
				visit(one.to, way)
			}
		}
		state[folder] = done
	}
	for _, folder := range slices.Sorted(maps.Keys(uses)) {
		if state[folder] == 0 {
			visit(folder, nil)
		}
	}
}
