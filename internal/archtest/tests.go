package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"strings"
)

// Rules about tests: they exist where documents say so, and they check what
// every test has to.

// checkFuzzing wants every fuzz target to have a committed corpus and a line
// in the ledger.
func checkFuzzing(t *tree) []finding {
	const ledger = "docs/fuzzing.md"
	var findings []finding
	eachTest(t, func(file *goFile, function *ast.FuncDecl) {
		name := function.Name.Name
		if !strings.HasPrefix(name, "Fuzz") {
			return
		}
		add := func(message string) {
			findings = append(findings, finding{file: file.path, line: file.position(function.Pos()), what: name, message: message})
		}
		if corpus := path.Join(file.folder, "testdata/fuzz", name); !t.exists(corpus + "/*") {
			add(fmt.Sprintf("%s has no committed corpus in %s", name, corpus))
		}
		if line := fmt.Sprintf("| `%s` | %s |", name, file.folder); !strings.Contains(string(t.texts[ledger]), line) {
			add(fmt.Sprintf("the ledger %s has no line %q", ledger, line))
		}
	})
	return findings
}

// eachTest visits the functions of test files that are not methods.
func eachTest(t *tree, visit func(file *goFile, function *ast.FuncDecl)) {
	for _, file := range t.goFiles {
		if !file.test {
			continue
		}
		for _, declaration := range file.syntax.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && function.Recv == nil {
				visit(file, function)
			}
		}
	}
}

// checkTestNames wants every test that a document names to exist.
func checkTestNames(t *tree) []finding {
	known := map[string]bool{}
	eachTest(t, func(_ *goFile, function *ast.FuncDecl) { known[function.Name.Name] = true })
	mention := regexp.MustCompile("`((?:Test|Fuzz|Benchmark|Example)[A-Z]\\w*)`")
	var findings []finding
	for _, name := range t.names() {
		if path.Ext(name) != ".md" {
			continue
		}
		number := 0
		for line := range strings.Lines(string(t.texts[name])) {
			number++
			for _, match := range mention.FindAllStringSubmatch(line, -1) {
				if !known[match[1]] {
					findings = append(findings, finding{
						file: name, line: number, what: match[1], message: fmt.Sprintf("names %s, which does not exist", match[1]),
					})
				}
			}
		}
	}
	return findings
}

// checkLeakChecks wants the tests of every package to look for what they left
// behind (P12): a TestMain that calls testkit.Main, somewhere in it, because some
// test programs play a second part. A module that is called as a user's is
// refused internal packages by the compiler; its tests look for goroutines only,
// with what testkit itself uses.
func checkLeakChecks(t *tree) []finding {
	first := map[string]*goFile{}
	checked := map[string]bool{}
	var folders []string
	for _, file := range t.goFiles {
		if file.test && first[file.folder] == nil {
			first[file.folder] = file
			folders = append(folders, file.folder)
		}
	}
	eachTest(t, func(file *goFile, function *ast.FuncDecl) {
		if function.Name.Name != "TestMain" {
			return
		}
		importPath, name := t.leakCheck(file.module)
		ast.Inspect(function, func(node ast.Node) bool {
			if call, ok := node.(*ast.CallExpr); ok && file.selects(call.Fun, importPath, name) {
				checked[file.folder] = true
			}
			return true
		})
	})
	var findings []finding
	for _, folder := range folders {
		if !checked[folder] {
			importPath, name := t.leakCheck(first[folder].module)
			findings = append(findings, finding{
				file: first[folder].path, line: 1, what: folder,
				message: fmt.Sprintf("the tests of %s lack func TestMain(m *testing.M) { %s.%s(m) }, which finds what they leave behind", folder, path.Base(importPath), name),
			})
		}
	}
	return findings
}

// leakCheck returns what TestMain calls in a module: the package and the
// function. Packages below internal are for modules whose names begin with the
// root's.
func (t *tree) leakCheck(module string) (importPath, name string) {
	declared := regexp.MustCompile(`(?m)^module\s+(\S+)`).FindSubmatch(t.texts[path.Join(module, "go.mod")])
	if declared != nil && !within(string(declared[1]), modulePath) {
		return moduleGoleak, "VerifyTestMain"
	}
	return modulePath + "/internal/testkit", "Main"
}
