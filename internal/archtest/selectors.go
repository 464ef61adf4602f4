package archtest

import (
	"go/ast"
	"path"
	"slices"
	"strconv"
)

// What a file calls a package is decided by its imports, so the rules about
// calls ask here and are not misled by an alias.

// packageOf returns the import path of the package that name stands for in the
// file, or "" if it is a variable. A name that no import binds counts as the
// package of standard that ends in it: nothing else would compile, and the
// trees of the tests stay short.
func (f *goFile) packageOf(name *ast.Ident, standard string) string {
	if name.Obj != nil {
		return "" // Declared in this file.
	}
	for _, spec := range f.syntax.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		bound := path.Base(imported)
		if spec.Name != nil {
			bound = spec.Name.Name
		}
		if bound == name.Name {
			return imported
		}
	}
	if path.Base(standard) == name.Name {
		return standard
	}
	return ""
}

// selects tells whether expression is one of names of the package. It need not
// be called: a function that is kept in a variable is called later.
func (f *goFile) selects(expression ast.Node, importPath string, names ...string) bool {
	selector, ok := expression.(*ast.SelectorExpr)
	if !ok || !slices.Contains(names, selector.Sel.Name) {
		return false
	}
	identifier, ok := selector.X.(*ast.Ident)
	return ok && f.packageOf(identifier, importPath) == importPath
}

// calls tells whether node calls one of these builtin functions.
func calls(node ast.Node, builtins ...string) bool {
	call, ok := node.(*ast.CallExpr)
	if !ok {
		return false
	}
	identifier, ok := ast.Unparen(call.Fun).(*ast.Ident)
	return ok && slices.Contains(builtins, identifier.Name)
}
