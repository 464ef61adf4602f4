// Command adapt makes the code that the peer on Apache Thrift needs out of what
// others have.
//
//	adapt context folder...
//
// turns what thriftgo generated, which fits the Go library of Apache Thrift up to
// 0.13, into code for the library of today: since 0.14 every method that may
// wait takes a context, Call of a client returns what arrived beside the result,
// and a processor returns exceptions of the library. These are the changes that
// Apache's own compiler made between the two. It also lists the arguments of each
// method, which generated code has no way to find.
//
//	adapt copy from to old new
//
// copies a Go file and replaces an import path in it.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "adapt:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	switch {
	case len(arguments) > 1 && arguments[0] == "context":
		var failures []error
		for _, folder := range arguments[1:] {
			failures = append(failures, rewriteFolder(folder))
		}
		return errors.Join(failures...)
	case len(arguments) == 5 && arguments[0] == "copy":
		return copyFile(arguments[1], arguments[2], arguments[3], arguments[4])
	}
	return errors.New("want context folder..., or copy from to old new")
}

func copyFile(from, to, old, replacement string) error {
	source, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if !bytes.Contains(source, []byte(`"`+old)) {
		return fmt.Errorf("%s imports nothing from %s", from, old)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	content := append([]byte("// Code generated from the rules of another peer. DO NOT EDIT.\n\n"), bytes.ReplaceAll(source, []byte(`"`+old), []byte(`"`+replacement))...)
	return os.WriteFile(to, content, 0o644)
}

func rewriteFolder(folder string) error {
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(names) == 0 {
		return errors.Join(err, fmt.Errorf("no Go files in %s", folder))
	}
	for _, name := range names {
		source, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rewritten, err := rewrite(source)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(name, rewritten, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// rewriter collects what is added behind the code of a file.
type rewriter struct {
	added bytes.Buffer
	// arguments are the Go types of the arguments by method.
	arguments map[string]string
}

func rewrite(source []byte) ([]byte, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	r := &rewriter{arguments: map[string]string{}}
	for _, declaration := range file.Decls {
		if function, ok := declaration.(*ast.FuncDecl); ok {
			r.function(function)
		}
	}
	var text bytes.Buffer
	if err := format.Node(&text, files, file); err != nil {
		return nil, err
	}
	text.Write(r.added.Bytes())
	if len(r.arguments) > 0 {
		r.writeArguments(&text)
	}
	return format.Source(text.Bytes())
}

func (r *rewriter) function(function *ast.FuncDecl) {
	parameters := function.Type.Params
	if len(parameters.List) > 0 && isSelector(parameters.List[0].Type, "thrift", "TProtocol") {
		parameters.List = slices.Insert(parameters.List, 0, contextParameter())
	}
	if function.Name.Name == "Process" {
		r.process(function)
	}
	ast.Inspect(function, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.CallExpr:
			addContext(node)
		case *ast.AssignStmt:
			r.clientCall(function, node)
		}
		return true
	})
}

func contextParameter() *ast.Field {
	return &ast.Field{Names: []*ast.Ident{ast.NewIdent("ctx")}, Type: selector("context", "Context")}
}

// addContext adds the context to a call of a protocol, or with one.
func addContext(call *ast.CallExpr) {
	if len(call.Args) > 0 && isIdent(call.Args[0], "ctx") {
		return
	}
	method, isMethod := call.Fun.(*ast.SelectorExpr)
	isMethod = isMethod && !isIdent(method.X, "thrift")
	ofProtocol := isMethod && (isIdent(method.X, "iprot") || isIdent(method.X, "oprot"))
	withProtocol := len(call.Args) > 0 && (isIdent(call.Args[0], "iprot") || isIdent(call.Args[0], "oprot"))
	if ofProtocol || isMethod && withProtocol {
		call.Args = slices.Insert(call.Args, 0, ast.Expr(ast.NewIdent("ctx")))
	}
}

// clientCall ignores what Call returns beside the error, and remembers the type
// of the arguments.
func (r *rewriter) clientCall(function *ast.FuncDecl, assign *ast.AssignStmt) {
	if len(assign.Lhs) != 1 || len(assign.Rhs) != 1 {
		return
	}
	call, ok := assign.Rhs[0].(*ast.CallExpr)
	if !ok || len(call.Args) != 4 {
		return
	}
	if method, ok := call.Fun.(*ast.SelectorExpr); !ok || method.Sel.Name != "Call" {
		return
	}
	assign.Lhs = slices.Insert(assign.Lhs, 0, ast.Expr(ast.NewIdent("_")))
	name, _ := call.Args[1].(*ast.BasicLit)
	declaration, _ := function.Body.List[0].(*ast.DeclStmt)
	if name == nil || declaration == nil {
		return
	}
	variable := declaration.Decl.(*ast.GenDecl).Specs[0].(*ast.ValueSpec)
	r.arguments[name.Value] = variable.Type.(*ast.Ident).Name
}

// process renames a method that returns any error as an exception, and adds one
// that makes it an exception of the library.
func (r *rewriter) process(function *ast.FuncDecl) {
	results := function.Type.Results.List
	last := results[len(results)-1]
	if !isSelector(last.Type, "thrift", "TException") {
		return
	}
	last.Type = ast.NewIdent("error")
	function.Name.Name = "process"
	receiver := function.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name
	parameter, argument := "", ""
	if len(function.Type.Params.List) > 2 {
		parameter, argument = "seqId int32, ", "seqId, "
	}
	fmt.Fprintf(&r.added, `
func (p *%s) Process(ctx context.Context, %siprot, oprot thrift.TProtocol) (bool, thrift.TException) {
	success, err := p.process(ctx, %siprot, oprot)
	return success, thrift.WrapTException(err)
}
`, receiver, parameter, argument)
}

func (r *rewriter) writeArguments(text *bytes.Buffer) {
	fmt.Fprint(text, "\n// Arguments returns the struct for the arguments of each method.\nfunc Arguments() map[string]any {\n\treturn map[string]any{\n")
	for _, name := range slices.Sorted(maps.Keys(r.arguments)) {
		fmt.Fprintf(text, "%s: %s{},\n", name, r.arguments[name])
	}
	fmt.Fprint(text, "}\n}\n")
}

func isIdent(expression ast.Expr, name string) bool {
	ident, ok := expression.(*ast.Ident)
	return ok && ident.Name == name
}

func isSelector(expression ast.Expr, of, name string) bool {
	selector, ok := expression.(*ast.SelectorExpr)
	return ok && isIdent(selector.X, of) && selector.Sel.Name == name
}

func selector(of, name string) ast.Expr {
	return &ast.SelectorExpr{X: ast.NewIdent(of), Sel: ast.NewIdent(name)}
}
