package archtest

import (
	"errors"
	"fmt"
	"go/ast"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	exceptionsBegin = "<!-- exceptions: begin -->\n"
	exceptionsEnd   = "<!-- exceptions: end -->\n"
	codesBegin      = "<!-- codes: begin -->\n"
	codesEnd        = "<!-- codes: end -->\n"
)

// withExceptionCodes returns document with the tables of Thrift's exception
// types and our codes, in both directions, as the code has them.
func withExceptionCodes(t *tree, document string) (string, error) {
	types, err := exceptionTypes(string(t.texts["internal/thriftwire/exception.go"]))
	if err != nil {
		return "", err
	}
	arriving, err := printExceptionCodes(types, t.goFiles)
	if err != nil {
		return "", err
	}
	leaving, err := printCodeExceptions(types, t.goFiles)
	if err != nil {
		return "", err
	}
	if document, err = between(document, exceptionsBegin, arriving, exceptionsEnd); err != nil {
		return "", err
	}
	return between(document, codesBegin, leaving, codesEnd)
}

// between returns document with text between two marks.
func between(document, begin, text, end string) (string, error) {
	before, rest, found := strings.Cut(document, begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return "", fmt.Errorf("the document lacks the marks of the table, %q and %q", begin, end)
	}
	return before + begin + text + end + after, nil
}

// exceptionType is a type of application exception as thriftwire declares it.
type exceptionType struct {
	name   string // "ExceptionBadSequenceID"
	number int
}

func (e exceptionType) words() string { return words(strings.TrimPrefix(e.name, "Exception")) }

// exceptionTypes returns the constants in the order of their numbers.
func exceptionTypes(source string) ([]exceptionType, error) {
	declaration := regexp.MustCompile(`(?m)^\t(Exception\w+) +ExceptionType = (\d+)$`)
	var types []exceptionType
	for _, match := range declaration.FindAllStringSubmatch(source, -1) {
		number, err := strconv.Atoi(match[2])
		if err != nil {
			return nil, err
		}
		types = append(types, exceptionType{match[1], number})
	}
	if len(types) == 0 {
		return nil, errors.New("thriftwire has no exception types")
	}
	slices.SortFunc(types, func(a, b exceptionType) int { return a.number - b.number })
	return types, nil
}

// printExceptionCodes joins the types with the map exceptionCodes of the root
// package.
func printExceptionCodes(types []exceptionType, files []*goFile) (string, error) {
	codes := map[string]string{}
	eachRootNode(files, func(node ast.Node) {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || len(spec.Names) != 1 || spec.Names[0].Name != "exceptionCodes" || len(spec.Values) != 1 {
			return
		}
		literal, ok := spec.Values[0].(*ast.CompositeLit)
		if !ok {
			return
		}
		for _, element := range literal.Elts {
			pair, ok := element.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			key, isSelector := pair.Key.(*ast.SelectorExpr)
			code, isName := pair.Value.(*ast.Ident)
			if isSelector && isName {
				codes[key.Sel.Name] = code.Name
			}
		}
	})
	if len(codes) == 0 {
		return "", errors.New("the root package has no map exceptionCodes")
	}
	var out strings.Builder
	out.WriteString("\n| type | name | code |\n|---|---|---|\n")
	for _, e := range types {
		code := codes[e.name]
		if code == "" {
			code = "Unknown"
		}
		delete(codes, e.name)
		fmt.Fprintf(&out, "| %d | %s | %s |\n", e.number, e.words(), code)
	}
	out.WriteString("| any other | | Unknown |\n\n")
	if len(codes) > 0 {
		return "", fmt.Errorf("exceptionCodes has %v, which thriftwire has not", codes)
	}
	return out.String(), nil
}

// printCodeExceptions prints the switch of the root package's function
// exceptionOfCode, whose cases return a constant each.
func printCodeExceptions(types []exceptionType, files []*goFile) (string, error) {
	var out strings.Builder
	var problem error
	rows := 0
	eachRootNode(files, func(node ast.Node) {
		function, ok := node.(*ast.FuncDecl)
		if !ok || function.Name.Name != "exceptionOfCode" {
			return
		}
		ast.Inspect(function, func(node ast.Node) bool {
			clause, ok := node.(*ast.CaseClause)
			if !ok {
				return true
			}
			e, err := returnedType(types, clause)
			if err != nil {
				problem = err
				return false
			}
			code := "every other"
			for i, expression := range clause.List {
				if name, ok := expression.(*ast.Ident); ok && i == 0 {
					code = name.Name
				} else if ok {
					code += ", " + name.Name
				}
			}
			fmt.Fprintf(&out, "| %s | %d %s |\n", code, e.number, e.words())
			rows++
			return false
		})
	})
	if problem == nil && rows < 2 {
		problem = errors.New("the root package has no switch in exceptionOfCode")
	}
	return "\n| code | type |\n|---|---|\n" + out.String() + "\n", problem
}

func returnedType(types []exceptionType, clause *ast.CaseClause) (exceptionType, error) {
	if len(clause.Body) == 1 {
		if result, ok := clause.Body[0].(*ast.ReturnStmt); ok && len(result.Results) == 1 {
			if selector, ok := result.Results[0].(*ast.SelectorExpr); ok {
				for _, e := range types {
					if e.name == selector.Sel.Name {
						return e, nil
					}
				}
			}
		}
	}
	return exceptionType{}, errors.New("a case of exceptionOfCode does not return one of thriftwire's exception types")
}

// eachRootNode visits the code of the root package.
func eachRootNode(files []*goFile, visit func(ast.Node)) {
	for _, file := range files {
		if file.folder != "." || file.test {
			continue
		}
		ast.Inspect(file.syntax, func(node ast.Node) bool {
			visit(node)
			return true
		})
	}
}

// words turns "BadSequenceID" into "bad sequence id".
func words(name string) string {
	boundary := regexp.MustCompile(`([a-z])([A-Z])`)
	return strings.ToLower(boundary.ReplaceAllString(name, "$1 $2"))
}
