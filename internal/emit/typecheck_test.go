package emit_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit"
)

// exportData returns, by import path, the files in which the compiler
// describes what generated code may import.
var exportData = sync.OnceValues(func() (map[string]string, error) {
	command := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}",
		"github.com/fulmar-rpc/fulmar", "github.com/fulmar-rpc/fulmar/thrift/methods", "github.com/fulmar-rpc/fulmar/thrift/descriptor", "github.com/fulmar-rpc/fulmar/thrift/view",
		"database/sql", goldenPrefix+"fieldtypes/kinds")
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	found := map[string]string{}
	for line := range strings.Lines(string(output)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		found[name] = file
	}
	return found, nil
})

// checker type-checks generated packages against the real runtime. It is an
// importer that also knows the packages that it has checked.
type checker struct {
	fileSet *token.FileSet
	runtime types.Importer
	checked map[string]*types.Package
}

func newChecker(t testing.TB) *checker {
	t.Helper()
	files, err := exportData()
	if err != nil {
		t.Fatal(err)
	}
	fileSet := token.NewFileSet()
	lookup := func(name string) (io.ReadCloser, error) {
		if files[name] == "" {
			return nil, fmt.Errorf("%s may not be imported", name)
		}
		return os.Open(files[name])
	}
	return &checker{
		fileSet: fileSet,
		runtime: importer.ForCompiler(fileSet, "gc", lookup),
		checked: map[string]*types.Package{},
	}
}

func (c *checker) Import(name string) (*types.Package, error) {
	if pkg := c.checked[name]; pkg != nil {
		return pkg, nil
	}
	return c.runtime.Import(name)
}

// check returns the type errors of the files, which must have been generated
// with the prefix.
func (c *checker) check(files []emit.File, prefix string) error {
	var order []string
	packages := map[string][]*ast.File{}
	for _, file := range files {
		tree, err := parser.ParseFile(c.fileSet, file.Path, file.Content(), parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder := path.Dir(file.Path)
		if packages[folder] == nil {
			order = append(order, folder)
		}
		packages[folder] = append(packages[folder], tree)
	}
	for _, folder := range order {
		name := prefix + "/" + folder
		config := types.Config{Importer: c}
		pkg, err := config.Check(name, c.fileSet, packages[folder], nil)
		if err != nil {
			return err
		}
		c.checked[name] = pkg
	}
	return nil
}

func mustCheck(t testing.TB, c *checker, files []emit.File, prefix string) {
	t.Helper()
	if err := c.check(files, prefix); err != nil {
		var all bytes.Buffer
		for _, file := range files {
			fmt.Fprintf(&all, "--- %s\n%s\n", file.Path, file.Content())
		}
		t.Errorf("generated code does not compile: %v\n%s", err, all.Bytes())
	}
}
