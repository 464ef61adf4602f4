package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// Rules about constructs. Generated code keeps them as well, except where a
// function says otherwise.

// checkInit refuses func init: what it does happens before anybody asked for
// it and in an order that nobody chose.
func checkInit(t *tree) []finding {
	var findings []finding
	for _, file := range t.goFiles {
		if file.official {
			continue
		}
		for _, declaration := range file.syntax.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if ok && function.Recv == nil && function.Name.Name == "init" {
				findings = append(findings, finding{
					file: file.path, line: file.position(function.Pos()), what: "init",
					message: "func init is banned: do it in a constructor",
				})
			}
		}
	}
	return findings
}

// checkVariables refuses package variables that could change, because they are
// state that two users of one process share. Error sentinels, compiled patterns,
// embedded files and blank assertions cannot change and pass; tables need an
// exception. What is called _ holds nothing, so all it could do is run a function.
func checkVariables(t *tree) []finding {
	var findings []finding
	for _, file := range t.goFiles {
		if file.test || file.generated {
			continue
		}
		for _, declaration := range file.syntax.Decls {
			group, ok := declaration.(*ast.GenDecl)
			if !ok || group.Tok != token.VAR {
				continue
			}
			for _, spec := range group.Specs {
				value := spec.(*ast.ValueSpec)
				if embedded(group.Doc) || embedded(value.Doc) {
					continue
				}
				for i, name := range value.Names {
					if i < len(value.Values) && file.isConstant(name.Name, value.Values[i]) {
						continue
					}
					if name.Name == "_" {
						if call := firstCall(value.Values); call != nil {
							findings = append(findings, finding{
								file: file.path, line: file.position(call.Pos()), what: name.Name,
								message: "a variable called _ is for assertions of interfaces, but this one calls a function: that is a func init in disguise",
							})
						}
						continue
					}
					findings = append(findings, finding{
						file: file.path, line: file.position(name.Pos()), what: name.Name,
						message: fmt.Sprintf("package variable %s is state that everybody shares: move it into an instance, or list it in exceptions.go if it is a table that never changes", name.Name),
					})
				}
			}
		}
	}
	return findings
}

// firstCall returns the first call of a function in what variables called _ are
// set to, nil if there is none: a conversion, new and a function literal that
// nobody calls run nothing. Types are not known here, so a conversion is told by
// how assertions are written: (*T)(nil), or with a type that has no name.
func firstCall(values []ast.Expr) (found *ast.CallExpr) {
	for _, value := range values {
		ast.Inspect(value, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.FuncLit:
				return false
			case *ast.UnaryExpr:
				if n.Op == token.ARROW && found == nil {
					found = &ast.CallExpr{Fun: n.X, Lparen: n.Pos()}
				}
			case *ast.CallExpr:
				if found == nil && !isConversion(n) {
					found = n
				}
			}
			return found == nil
		})
	}
	return found
}

// isConversion tells a conversion, or the builtin new, from a call of a function.
func isConversion(call *ast.CallExpr) bool {
	if len(call.Args) != 1 || call.Ellipsis.IsValid() {
		return false
	}
	switch target := call.Fun.(type) {
	case *ast.ParenExpr:
		_, pointer := target.X.(*ast.StarExpr)
		return pointer
	case *ast.ArrayType, *ast.MapType, *ast.ChanType, *ast.FuncType, *ast.InterfaceType, *ast.StructType:
		return true
	case *ast.Ident:
		return target.Name == "new"
	}
	return false
}

func embedded(doc *ast.CommentGroup) bool {
	if doc == nil {
		return false
	}
	return slices.ContainsFunc(doc.List, func(comment *ast.Comment) bool {
		return strings.HasPrefix(comment.Text, "//go:embed ")
	})
}

// isConstant recognises `var ErrMore = errors.New(...)` and
// `var pattern = regexp.MustCompile(...)`: nobody can change what they hold.
func (f *goFile) isConstant(name string, value ast.Expr) bool {
	call, ok := value.(*ast.CallExpr)
	switch {
	case !ok:
		return false
	case f.selects(call.Fun, "regexp", "MustCompile"):
		return true
	case f.selects(call.Fun, "errors", "New"), f.selects(call.Fun, "fmt", "Errorf"):
		return strings.HasPrefix(name, "Err") || strings.HasPrefix(name, "err")
	}
	return false
}

// checkVariableWrites holds package variables to their promise: after its
// declaration nothing assigns to one. It knows no exceptions worth having.
func checkVariableWrites(t *tree) []finding {
	variables := map[string]map[string]bool{} // folder -> name
	for _, file := range t.goFiles {
		if file.test {
			continue
		}
		for _, declaration := range file.syntax.Decls {
			group, ok := declaration.(*ast.GenDecl)
			if !ok || group.Tok != token.VAR {
				continue
			}
			for _, spec := range group.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					if variables[file.folder] == nil {
						variables[file.folder] = map[string]bool{}
					}
					variables[file.folder][name.Name] = true
				}
			}
		}
	}
	var findings []finding
	for _, file := range t.goFiles {
		if file.test || file.official || len(variables[file.folder]) == 0 {
			continue
		}
		eachFunction(file, func(_ string, body ast.Node) {
			for _, target := range writeTargets(body) {
				if target.Name != "_" && variables[file.folder][target.Name] && !declaredInside(body, target.Name) {
					findings = append(findings, finding{
						file: file.path, line: file.position(target.Pos()), what: target.Name,
						message: fmt.Sprintf("package variable %s is written after its declaration", target.Name),
					})
				}
			}
		})
	}
	return findings
}

// writeTargets returns the variables at the left end of what node assigns to.
func writeTargets(node ast.Node) []*ast.Ident {
	var targets []*ast.Ident
	add := func(expression ast.Expr) {
		if identifier := leftmost(expression); identifier != nil {
			targets = append(targets, identifier)
		}
	}
	ast.Inspect(node, func(node ast.Node) bool {
		switch statement := node.(type) {
		case *ast.AssignStmt:
			if statement.Tok != token.DEFINE {
				for _, target := range statement.Lhs {
					add(target)
				}
			}
		case *ast.IncDecStmt:
			add(statement.X)
		case *ast.RangeStmt:
			if statement.Tok == token.ASSIGN {
				add(statement.Key)
				add(statement.Value)
			}
		case *ast.CallExpr:
			if name, ok := statement.Fun.(*ast.Ident); ok && len(statement.Args) > 0 && (name.Name == "delete" || name.Name == "clear") {
				add(statement.Args[0])
			}
		}
		return true
	})
	return targets
}

func leftmost(expression ast.Expr) *ast.Ident {
	for {
		switch e := expression.(type) {
		case *ast.Ident:
			return e
		case *ast.IndexExpr:
			expression = e.X
		case *ast.SelectorExpr:
			expression = e.X
		case *ast.StarExpr:
			expression = e.X
		case *ast.ParenExpr:
			expression = e.X
		default:
			return nil
		}
	}
}

// declaredInside tells whether a parameter or a local variable called name
// exists anywhere in node; then an assignment is taken to mean that one.
func declaredInside(node ast.Node, name string) bool {
	found := false
	ast.Inspect(node, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, target := range n.Lhs {
					found = found || isIdentifier(target, name)
				}
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				found = found || isIdentifier(n.Key, name) || isIdentifier(n.Value, name)
			}
		case *ast.ValueSpec:
			for _, declared := range n.Names {
				found = found || declared.Name == name
			}
		case *ast.Field:
			for _, declared := range n.Names {
				found = found || declared.Name == name
			}
		}
		return !found
	})
	return found
}

func isIdentifier(expression ast.Expr, name string) bool {
	identifier, ok := expression.(*ast.Ident)
	return ok && identifier.Name == name
}

// checkPrint refuses writing to the terminal and to the process-wide loggers
// from libraries: their users own both.
func checkPrint(t *tree) []finding {
	var findings []finding
	for _, file := range t.goFiles {
		if !isLibrary(file) {
			continue
		}
		eachFunction(file, func(function string, body ast.Node) {
			ast.Inspect(body, func(node ast.Node) bool {
				if file.prints(node) {
					findings = append(findings, finding{
						file: file.path, line: file.position(node.Pos()), what: function,
						message: fmt.Sprintf("%s prints: a library reports through errors and its configured slog.Logger", function),
					})
				}
				return true
			})
		})
	}
	return findings
}

// prints tells whether node is a way to the terminal or to a logger that the
// whole process shares. slog.Default is none: it is what a configuration
// without a logger means.
func (f *goFile) prints(node ast.Node) bool {
	return calls(node, "print", "println") ||
		f.selects(node, "fmt", "Print", "Printf", "Println") ||
		f.selects(node, "os", "Stdout", "Stderr") ||
		f.selects(node, "log", "Print", "Printf", "Println", "Output", "Writer", "Default") ||
		f.selects(node, "log/slog", "Debug", "DebugContext", "Info", "InfoContext", "Warn", "WarnContext", "Error", "ErrorContext", "Log", "LogAttrs")
}

// checkExit refuses to end the process, or a goroutine that belongs to somebody
// else, from libraries. In the command only main may.
func checkExit(t *tree) []finding {
	var findings []finding
	for _, file := range t.goFiles {
		command := file.module == "cmd/fulmar" && !file.test
		if !isLibrary(file) && !command {
			continue
		}
		eachFunction(file, func(function string, body ast.Node) {
			if command && function == "main" {
				return
			}
			ast.Inspect(body, func(node ast.Node) bool {
				if file.exits(node) {
					findings = append(findings, finding{
						file: file.path, line: file.position(node.Pos()), what: function,
						message: fmt.Sprintf("%s ends the process or its goroutine, and skips what others deferred: return an error", function),
					})
				}
				return true
			})
		})
	}
	return findings
}

func (f *goFile) exits(node ast.Node) bool {
	return f.selects(node, "os", "Exit") ||
		f.selects(node, "syscall", "Exit") ||
		f.selects(node, "runtime", "Goexit") ||
		f.selects(node, "log", "Fatal", "Fatalf", "Fatalln", "Panic", "Panicf", "Panicln")
}

// isLibrary tells whether other people's programs contain the file.
func isLibrary(file *goFile) bool {
	return file.module == "." && !file.test && !within(file.folder, "internal/archtest")
}

// checkPanic wants every panic justified: only a programmer's mistake may
// cause one (P1).
func checkPanic(t *tree) []finding {
	var findings []finding
	for _, file := range t.goFiles {
		if file.test || file.module != "." && file.module != "cmd/fulmar" {
			continue
		}
		eachFunction(file, func(name string, body ast.Node) {
			ast.Inspect(body, func(node ast.Node) bool {
				if calls(node, "panic") {
					findings = append(findings, finding{
						file: file.path, line: file.position(node.Pos()), what: name,
						message: fmt.Sprintf("%s panics: return an error, or list it in exceptions.go if only a programmer's mistake can cause it", name),
					})
				}
				return true
			})
		})
	}
	return findings
}

// checkGoroutines wants goroutines started only in files whose exception names
// their owner and what ends them (P12). WaitGroup.Go starts one as well, and so
// does AfterFunc, of package time and of package context.
func checkGoroutines(t *tree) []finding {
	var findings []finding
	for _, file := range t.goFiles {
		if !isLibrary(file) {
			continue
		}
		eachFunction(file, func(name string, body ast.Node) {
			ast.Inspect(body, func(node ast.Node) bool {
				if file.startsGoroutine(node) {
					findings = append(findings, finding{
						file: file.path, line: file.position(node.Pos()), what: "go",
						message: fmt.Sprintf("%s starts a goroutine: files that do are listed in exceptions.go with the goroutine's owner and its end", name),
					})
				}
				return true
			})
		})
	}
	return findings
}

func (f *goFile) startsGoroutine(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.GoStmt:
		return true
	case *ast.SelectorExpr:
		return f.selects(n, "time", "AfterFunc") || f.selects(n, "context", "AfterFunc")
	case *ast.CallExpr:
		method, ok := n.Fun.(*ast.SelectorExpr)
		return ok && method.Sel.Name == "Go" && len(n.Args) == 1
	}
	return false
}

// checkUnsafe refuses unsafe, cgo and linkname. The first needs an exception
// with its argument; the other two have none (D2).
func checkUnsafe(t *tree) []finding {
	var findings []finding
	for _, file := range t.goFiles {
		for name, line := range file.imports() {
			switch {
			case name == "unsafe" && !file.test && !file.official && isLibrary(file):
				findings = append(findings, finding{
					file: file.path, line: line, what: "unsafe",
					message: "imports unsafe: list it in exceptions.go with the reason why it is sound",
				})
			case name == "C":
				findings = append(findings, finding{
					file: file.path, line: line, what: "C", message: `import "C": the core builds without cgo on every platform (D2)`,
				})
			}
		}
		for _, group := range file.syntax.Comments {
			for _, comment := range group.List {
				if strings.HasPrefix(comment.Text, "//go:linkname") {
					findings = append(findings, finding{
						file: file.path, line: file.position(comment.Pos()), what: "linkname",
						message: "go:linkname breaks with the next Go release (D2)",
					})
				}
			}
		}
	}
	return findings
}

// eachFunction calls visit for every function declaration with a body, and for
// every other declaration that may hold function literals. The name is
// "Type.Method" for methods.
func eachFunction(file *goFile, visit func(name string, node ast.Node)) {
	for _, declaration := range file.syntax.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok {
			visit("package level", declaration)
			continue
		}
		if function.Body != nil {
			visit(functionName(function), function)
		}
	}
}

func functionName(function *ast.FuncDecl) string {
	if function.Recv == nil || len(function.Recv.List) == 0 {
		return function.Name.Name
	}
	receiver := function.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	switch r := receiver.(type) {
	case *ast.IndexExpr:
		receiver = r.X
	case *ast.IndexListExpr:
		receiver = r.X
	}
	if identifier := leftmost(receiver); identifier != nil {
		return identifier.Name + "." + function.Name.Name
	}
	return function.Name.Name
}
