package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	"go/format"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"path"
	"strings"
)

// publicPackages returns the folders of the public packages that exist.
func publicPackages(t *tree) []string {
	policy := packagePolicy()
	seen := map[string]bool{}
	var folders []string
	for _, file := range t.goFiles {
		p, ok := placeOf(policy, file.folder)
		if ok && p.public && !file.test && !seen[file.folder] && !strings.Contains(file.folder, "internal/") {
			seen[file.folder] = true
			folders = append(folders, file.folder)
		}
	}
	return folders
}

// printAPI returns the exported declarations of one package, without comments
// and bodies, in the order of go doc. linux/amd64 stands for all platforms:
// the public surface is the same everywhere.
func printAPI(t *tree, folder string) (text string, exported int, err error) {
	context := build.Default
	context.GOOS, context.GOARCH, context.BuildTags, context.ToolTags = "linux", "amd64", nil, nil
	context.CgoEnabled = false
	context.OpenFile = func(name string) (io.ReadCloser, error) { return t.fsys.Open(name) }

	fileSet := token.NewFileSet()
	var files []*ast.File
	for _, file := range t.goFiles {
		if file.folder != folder || file.test {
			continue
		}
		if ok, err := context.MatchFile(folder, path.Base(file.path)); err != nil || !ok {
			if err != nil {
				return "", 0, err
			}
			continue
		}
		// go/doc takes the syntax over and changes it, so it gets its own.
		syntax, err := parser.ParseFile(fileSet, file.path, file.source, 0)
		if err != nil {
			return "", 0, err
		}
		files = append(files, syntax)
	}
	documented, err := doc.NewFromFiles(fileSet, files, importPath(folder))
	if err != nil {
		return "", 0, err
	}
	p := &apiPrinter{fileSet: fileSet}
	p.printf("package %s // import %q\n", documented.Name, documented.ImportPath)
	p.values(documented.Consts)
	p.values(documented.Vars)
	p.functions(documented.Funcs)
	exported = len(documented.Funcs) + len(documented.Types)
	for _, t := range documented.Types {
		p.node(t.Decl)
		p.values(t.Consts)
		p.values(t.Vars)
		p.functions(t.Funcs)
		p.functions(t.Methods)
		exported += len(t.Funcs)
	}
	return p.out.String(), exported, p.err
}

type apiPrinter struct {
	fileSet *token.FileSet
	out     bytes.Buffer
	err     error
}

func (p *apiPrinter) printf(pattern string, arguments ...any) {
	fmt.Fprintf(&p.out, pattern, arguments...)
}

func (p *apiPrinter) node(node ast.Node) {
	p.out.WriteByte('\n')
	if err := format.Node(&p.out, p.fileSet, node); err != nil && p.err == nil {
		p.err = err
	}
	p.out.WriteByte('\n')
}

func (p *apiPrinter) values(values []*doc.Value) {
	for _, value := range values {
		p.node(value.Decl)
	}
}

func (p *apiPrinter) functions(functions []*doc.Func) {
	for _, function := range functions {
		function.Decl.Body = nil
		p.node(function.Decl)
	}
}

// apiFile names the golden file of a package's API.
func apiFile(folder string) string {
	if folder == "." {
		folder = "fulmar"
	}
	return path.Join("testdata/api", strings.ReplaceAll(folder, "/", "_")+".txt")
}

// staleAPIFiles returns golden files of packages that no longer exist.
func staleAPIFiles(fsys fs.FS, folders []string) ([]string, error) {
	names, err := fs.Glob(fsys, "testdata/api/*.txt")
	if err != nil {
		return nil, err
	}
	var stale []string
	for _, name := range names {
		found := false
		for _, folder := range folders {
			found = found || apiFile(folder) == name
		}
		if !found {
			stale = append(stale, name)
		}
	}
	return stale, nil
}
