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
)

// withExceptionCodes returns document with the table of Thrift's exception
// types and our codes between its marks, as the code has them.
func withExceptionCodes(t *tree, document string) (string, error) {
	before, rest, found := strings.Cut(document, exceptionsBegin)
	_, after, ended := strings.Cut(rest, exceptionsEnd)
	if !found || !ended {
		return "", errors.New("the document lacks the marks of the table")
	}
	table, err := printExceptionCodes(string(t.texts["internal/thriftwire/exception.go"]), t.goFiles)
	if err != nil {
		return "", err
	}
	return before + exceptionsBegin + table + exceptionsEnd + after, nil
}

// printExceptionCodes joins the constants of thriftwire with the map
// exceptionCodes of the root package.
func printExceptionCodes(constants string, files []*goFile) (string, error) {
	codes := map[string]string{}
	for _, file := range files {
		if file.folder != "." || file.test {
			continue
		}
		ast.Inspect(file.syntax, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok || len(spec.Names) != 1 || spec.Names[0].Name != "exceptionCodes" || len(spec.Values) != 1 {
				return true
			}
			literal, ok := spec.Values[0].(*ast.CompositeLit)
			if !ok {
				return false
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
			return false
		})
	}
	if len(codes) == 0 {
		return "", errors.New("the root package has no map exceptionCodes")
	}
	declaration := regexp.MustCompile(`(?m)^\tException(\w+) +ExceptionType = (\d+)$`)
	found := declaration.FindAllStringSubmatch(constants, -1)
	slices.SortFunc(found, func(a, b []string) int {
		first, _ := strconv.Atoi(a[2])
		second, _ := strconv.Atoi(b[2])
		return first - second
	})
	var out strings.Builder
	out.WriteString("\n| type | name | code |\n|---|---|---|\n")
	for _, match := range found {
		code := codes["Exception"+match[1]]
		if code == "" {
			code = "Unknown"
		}
		delete(codes, "Exception"+match[1])
		fmt.Fprintf(&out, "| %s | %s | %s |\n", match[2], words(match[1]), code)
	}
	out.WriteString("| any other | | Unknown |\n\n")
	if len(codes) > 0 {
		return "", fmt.Errorf("exceptionCodes has %v, which thriftwire has not", codes)
	}
	return out.String(), nil
}

// words turns "BadSequenceID" into "bad sequence id".
func words(name string) string {
	boundary := regexp.MustCompile(`([a-z])([A-Z])`)
	return strings.ToLower(boundary.ReplaceAllString(name, "$1 $2"))
}
