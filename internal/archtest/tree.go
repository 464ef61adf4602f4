package archtest

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// modulePath is the import path of the root module. The nested modules are named
// after their folders, except those that show what a user writes.
const modulePath = "github.com/fulmar-rpc/fulmar"

// tree is the source tree as the rules see it.
type tree struct {
	fsys    fs.FS
	fileSet *token.FileSet
	goFiles []*goFile
	// texts holds every other file that is text, and every Go file as well.
	texts map[string][]byte
	// modules holds the folders that have a go.mod; "." is the root module.
	modules []string
}

// goFile is one parsed Go file.
type goFile struct {
	path      string // "internal/linkbuf/pool.go"
	folder    string // "internal/linkbuf"; "." for the root package
	module    string // the folder of its module
	test      bool
	generated bool
	// official: Go's generator for Protobuf has made it, whose code has an init that fills
	// package variables, and uses unsafe.
	official bool
	source   []byte
	syntax   *ast.File
	position func(token.Pos) int // line
}

// imports returns the import paths of the file with their lines.
func (f *goFile) imports() map[string]int {
	found := make(map[string]int, len(f.syntax.Imports))
	for _, spec := range f.syntax.Imports {
		if name, err := strconv.Unquote(spec.Path.Value); err == nil {
			found[name] = f.position(spec.Pos())
		}
	}
	return found
}

// finding is one place where a rule does not hold.
type finding struct {
	rule string
	file string
	line int
	// what names the thing inside the file, without line numbers, so that an
	// exception keeps matching when the file changes elsewhere.
	what    string
	size    int // for the rules that bound a size
	message string
}

func (f finding) String() string {
	return fmt.Sprintf("%s:%d: [%s] %s", f.file, f.line, f.rule, f.message)
}

func sortFindings(findings []finding) {
	slices.SortStableFunc(findings, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line), cmp.Compare(a.what, b.what))
	})
}

// loadTree reads fsys. Files that do not parse become findings of the rule
// "parse"; the rest of the tree is still judged.
func loadTree(fsys fs.FS) (*tree, []finding, error) {
	t := &tree{fsys: fsys, fileSet: token.NewFileSet(), texts: map[string][]byte{}}
	ignored, err := readIgnored(fsys)
	if err != nil {
		return nil, nil, err
	}
	var problems []finding
	err = fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name == ".git" || name != "." && ignored.match(name) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		source, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		problems = append(problems, t.add(name, source)...)
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	slices.Sort(t.modules)
	for _, file := range t.goFiles {
		file.module = t.moduleOf(file.folder)
	}
	return t, problems, nil
}

func (t *tree) add(name string, source []byte) []finding {
	if bytes.IndexByte(source, 0) >= 0 {
		return nil
	}
	t.texts[name] = source
	folder := path.Dir(name)
	if path.Base(name) == "go.mod" && !inTestdata(name) {
		t.modules = append(t.modules, folder)
	}
	if !strings.HasSuffix(name, ".go") || inTestdata(name) {
		return nil
	}
	syntax, err := parser.ParseFile(t.fileSet, name, source, parser.ParseComments)
	if err != nil {
		return []finding{{rule: "parse", file: name, line: 1, what: "syntax", message: "does not parse: " + err.Error()}}
	}
	t.goFiles = append(t.goFiles, &goFile{
		path:      name,
		folder:    folder,
		test:      strings.HasSuffix(name, "_test.go"),
		generated: ast.IsGenerated(syntax),
		official:  ast.IsGenerated(syntax) && strings.HasSuffix(name, ".pb.go"),
		source:    source,
		syntax:    syntax,
		position:  func(pos token.Pos) int { return t.fileSet.Position(pos).Line },
	})
	return nil
}

// moduleOf returns the folder of the innermost module that holds folder.
func (t *tree) moduleOf(folder string) string {
	best := "."
	for _, module := range t.modules {
		if within(folder, module) && len(module) > len(best) {
			best = module
		}
	}
	return best
}

// exists tells whether name is a file or a folder of the tree. A pattern with
// "*" or "?" must match at least one.
func (t *tree) exists(name string) bool {
	if !fs.ValidPath(name) {
		return false
	}
	if strings.ContainsAny(name, "*?") {
		matches, err := fs.Glob(t.fsys, name)
		return err == nil && len(matches) > 0
	}
	_, err := fs.Stat(t.fsys, name)
	return err == nil
}

// names returns the text files in order.
func (t *tree) names() []string {
	names := make([]string, 0, len(t.texts))
	for name := range t.texts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// within tells whether name is folder or lies below it. Everything lies
// within ".".
func within(name, folder string) bool {
	return folder == "." || name == folder || strings.HasPrefix(name, folder+"/")
}

func inTestdata(name string) bool {
	return strings.HasPrefix(name, "testdata/") || strings.Contains(name, "/testdata/")
}

// ignoredNames is the part of the .gitignore format that this project uses: a
// pattern with a leading slash matches a path from the root, one without
// matches a base name anywhere.
type ignoredNames []string

func readIgnored(fsys fs.FS) (ignoredNames, error) {
	content, err := fs.ReadFile(fsys, ".gitignore")
	if err != nil {
		return nil, nil // A tree without the file ignores nothing.
	}
	var patterns ignoredNames
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		pattern := strings.TrimSuffix(line, "/")
		if _, err := path.Match(strings.TrimPrefix(pattern, "/"), ""); err != nil || strings.HasPrefix(pattern, "!") {
			return nil, fmt.Errorf(".gitignore: archtest does not understand the pattern %q", line)
		}
		patterns = append(patterns, pattern)
	}
	return patterns, nil
}

func (n ignoredNames) match(name string) bool {
	for _, pattern := range n {
		subject := path.Base(name)
		if rooted, ok := strings.CutPrefix(pattern, "/"); ok {
			pattern, subject = rooted, name
		}
		if ok, _ := path.Match(pattern, subject); ok {
			return true
		}
	}
	return false
}
