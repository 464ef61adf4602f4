package idl

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/idl/ast"
	"github.com/fulmar-rpc/fulmar/internal/idl/syntax"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// unit is one file on its way from text to schema.
type unit struct {
	tree *ast.File
	file *schema.File
	// shown is the name that the user can open; it is in every position.
	shown string
	// root is the folder that file.Path is relative to.
	root string
	// main says that the file was named by the user and not only included.
	main bool
	// loading says that the file's includes are being loaded: meeting it again
	// now means a cycle.
	loading bool
	// includes by the base name that qualifies their names. Two files from
	// different folders may share one.
	includes map[string][]*unit
	// lost has the base names of includes that could not be loaded.
	lost map[string]bool
	// symbols are the declarations in order, names the same by name.
	symbols []*symbol
	names   map[string]*symbol
}

func (u *unit) at(place ast.Place) schema.Position {
	return schema.Position{File: u.shown, Line: int(place.Line), Column: int(place.Column)}
}

// loader reads files, each once.
type loader struct {
	files       FileSystem
	includeDirs []string
	found       *collector
	// roots are the real names of the folders that may be read.
	roots []string
	// byRealPath holds what was loaded.
	byRealPath map[string]*unit
	// finished lists units in the order of Program.Files.
	finished []*unit
	// bytes and nodes are what the files to come may still hold.
	bytes, nodes int
}

// location is where a file was found.
type location struct{ shown, real, root string }

func loadUnits(options Options, found *collector) []*unit {
	l := &loader{
		files:      options.FileSystem,
		found:      found,
		byRealPath: make(map[string]*unit),
		bytes:      limits.IDLBytes,
		nodes:      limits.IDLNodes,
	}
	if l.files == nil {
		l.files = operatingSystem{}
	}
	if len(options.Files) == 0 {
		l.fail("fulmar gen", "no file given, expected at least one interface definition")
	}
	l.root(".", ".")
	for _, dir := range options.IncludeDirs {
		dir = path.Clean(filepath.ToSlash(dir))
		l.includeDirs = append(l.includeDirs, dir)
		l.root(dir, "-I "+dir)
	}
	var mains []location
	for _, name := range options.Files {
		if at, ok := l.mainFile(name); ok {
			mains = append(mains, at)
		}
	}
	for _, at := range mains {
		u, err := l.load(at, nil)
		if err != nil {
			l.fail(at.shown, "cannot be read: "+reason(err))
			continue
		}
		u.main = true
	}
	return l.finished
}

func (l *loader) fail(name, message string) {
	l.found.errorf(schema.Position{File: name}, "%s", message)
}

// root allows reading below a folder.
func (l *loader) root(dir, shown string) {
	real, err := l.files.RealPath(dir)
	if err != nil {
		l.fail(shown, "folder cannot be used: "+reason(err))
		return
	}
	l.roots = append(l.roots, real)
}

func (l *loader) mainFile(name string) (location, bool) {
	shown := path.Clean(filepath.ToSlash(name))
	if strings.ContainsFunc(shown, unicode.IsControl) {
		l.fail(strconv.Quote(name), "file name holds a control character")
		return location{}, false
	}
	real, err := l.files.RealPath(shown)
	if err != nil {
		l.fail(shown, "cannot be read: "+reason(err))
		return location{}, false
	}
	l.root(path.Dir(shown), path.Dir(shown))
	return location{shown: shown, real: real, root: rootOf(shown, "")}, true
}

// rootOf returns the folder that a file's path in generated code is relative
// to: preferred if the file lies below it, else the working directory, which is
// "". Absolute names and names above the working directory would put folders of
// this machine into generated code, so their own folder is taken.
func rootOf(shown, preferred string) string {
	switch {
	case preferred != "" && within(preferred, shown):
		return preferred
	case isAbsolute(shown) || strings.HasPrefix(shown, "../"):
		return path.Dir(shown)
	default:
		return ""
	}
}

func isAbsolute(name string) bool {
	return path.IsAbs(name) || filepath.IsAbs(filepath.FromSlash(name))
}

// reason leaves out the path that errors of package os repeat.
func reason(err error) string {
	if pathError := (*fs.PathError)(nil); errors.As(err, &pathError) {
		return pathError.Err.Error()
	}
	return err.Error()
}

// load returns the unit of a file. chain holds the files that led here.
func (l *loader) load(at location, chain []*unit) (*unit, error) {
	if known := l.byRealPath[at.real]; known != nil {
		return known, nil
	}
	content, err := l.files.ReadFile(at.real, l.bytes)
	if err != nil {
		return nil, err
	}
	l.bytes -= len(content)
	tree, problems := syntax.Parse(string(content), &l.nodes)
	u := &unit{
		tree:     tree,
		shown:    at.shown,
		root:     at.root,
		includes: make(map[string][]*unit),
		lost:     make(map[string]bool),
		names:    make(map[string]*symbol),
		loading:  true,
		file: &schema.File{
			Path:       below(at.root, at.shown),
			Base:       baseName(at.shown),
			Doc:        tree.Doc,
			Namespaces: make(map[string]string),
		},
	}
	l.byRealPath[at.real] = u
	for _, problem := range problems {
		if problem.Warning {
			l.found.warningf(u.at(problem.Place), "%s", problem.Message)
		} else {
			l.found.errorf(u.at(problem.Place), "%s", problem.Message)
		}
	}
	for _, include := range tree.Includes {
		l.include(u, include, append(chain, u))
	}
	u.loading = false
	l.finished = append(l.finished, u)
	return u, nil
}

// below returns the part of name below a folder; "" stands for the working
// directory.
func below(folder, name string) string {
	if folder == "" {
		return name
	}
	return strings.TrimPrefix(name, strings.TrimSuffix(folder, "/")+"/")
}

// baseName returns the name of a file without folder and extension.
func baseName(name string) string {
	base := path.Base(name)
	return strings.TrimSuffix(base, path.Ext(base))
}

func (l *loader) include(u *unit, include ast.Include, chain []*unit) {
	if l.found.full() {
		return
	}
	included := l.included(u, include, chain)
	if included == nil {
		u.lost[baseName(filepath.ToSlash(include.Path))] = true
		return
	}
	base := included.file.Base
	if slices.Contains(u.includes[base], included) {
		return
	}
	u.file.Includes = append(u.file.Includes, included.file)
	u.includes[base] = append(u.includes[base], included)
}

// included loads an included file. It returns nil if that fails, which is
// reported.
func (l *loader) included(u *unit, include ast.Include, chain []*unit) *unit {
	at, ok := l.find(u, include)
	if !ok {
		return nil
	}
	if len(chain) > limits.IDLIncludeDepth {
		l.found.errorf(u.at(include.Place), "include %q: nested too deeply (limit %d includes)", clip(include.Path), limits.IDLIncludeDepth)
		return nil
	}
	included, err := l.load(at, chain)
	if err != nil {
		l.found.errorf(u.at(include.Place), "include %q: cannot be read: %s", clip(include.Path), reason(err))
		return nil
	}
	if included.loading {
		l.found.errorf(u.at(include.Place), "include %q: files include each other (%s)", clip(include.Path), cycle(chain, included))
		return nil
	}
	return included
}

// cycle names the files from the one that is included again to itself.
func cycle(chain []*unit, again *unit) string {
	var names []string
	for _, u := range chain[slices.Index(chain, again):] {
		names = append(names, u.shown)
	}
	return arrows(append(names, again.shown))
}

// find looks for an included file next to the including one, then in the
// include folders, and refuses what lies outside all roots.
func (l *loader) find(u *unit, include ast.Include) (at location, ok bool) {
	name := filepath.ToSlash(include.Path)
	if name == "" || strings.ContainsFunc(name, unicode.IsControl) {
		l.found.errorf(u.at(include.Place), "include %q: expected the name of a file", clip(name))
		return at, false
	}
	for _, candidate := range l.candidates(u, name) {
		real, err := l.files.RealPath(candidate.shown)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			l.found.errorf(u.at(include.Place), "include %q: %s", clip(name), reason(err))
			return at, false
		}
		if !slices.ContainsFunc(l.roots, func(root string) bool { return within(root, real) }) {
			l.found.errorf(u.at(include.Place), "include %q: lies outside the folders of the named files, the include folders and the working directory; allow its folder with -I", clip(name))
			return at, false
		}
		candidate.real = real
		return candidate, true
	}
	l.found.errorf(u.at(include.Place), "include %q: not found next to %s nor in an include folder (-I)", clip(name), u.shown)
	return at, false
}

func (l *loader) candidates(u *unit, name string) []location {
	if isAbsolute(name) {
		name = path.Clean(name)
		return []location{{shown: name, root: rootOf(name, u.root)}}
	}
	beside := path.Join(path.Dir(u.shown), name)
	list := []location{{shown: beside, root: rootOf(beside, u.root)}}
	for _, dir := range l.includeDirs {
		list = append(list, location{shown: path.Join(dir, name), root: dir})
	}
	return list
}
