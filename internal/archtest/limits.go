package archtest

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"regexp"
	"strings"
	"time"
)

const (
	limitsFile  = "internal/limits/limits.go"
	limitsBegin = "<!-- limits: begin -->\n"
	limitsEnd   = "<!-- limits: end -->\n"
)

// withLimits returns document with the tables of all limits between its marks.
func withLimits(t *tree, document string) (string, error) {
	tables, err := printLimits(string(t.texts[limitsFile]))
	if err != nil {
		return "", err
	}
	return between(document, limitsBegin, tables, limitsEnd)
}

// printLimits returns a table for every group of constants.
func printLimits(source string) (string, error) {
	syntax, info, err := checkLimitsFile(source)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, declaration := range syntax.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		fmt.Fprintf(&out, "\n### %s\n\n| limit | default | reason |\n|---|---|---|\n", strings.TrimSuffix(oneLine(group.Doc.Text()), "."))
		reason := ""
		for _, spec := range group.Specs {
			value := spec.(*ast.ValueSpec)
			if text := oneLine(value.Doc.Text()); text != "" {
				reason = text
			} else if len(value.Names) > 0 {
				reason = "See above."
			}
			for _, name := range value.Names {
				text, err := printLimit(name.Name, info.Defs[name])
				if err != nil {
					return "", err
				}
				fmt.Fprintf(&out, "| `%s` | %s | %s |\n", name.Name, text, reason)
			}
		}
	}
	return out.String() + "\n", nil
}

// checkLimitsFile parses the limits and computes their values.
func checkLimitsFile(source string) (*ast.File, *types.Info, error) {
	fileSet := token.NewFileSet()
	syntax, err := parser.ParseFile(fileSet, limitsFile, source, parser.ParseComments)
	if err != nil {
		return nil, nil, err
	}
	// The bodies need the rest of the packages below, so they are skipped, and
	// with them errors about imports that only bodies use.
	checker := types.Config{IgnoreFuncBodies: true, Importer: fewConstants{}, Error: func(error) {}}
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}}
	_, _ = checker.Check("limits", fileSet, []*ast.File{syntax}, info)
	return syntax, info, nil
}

// checkLimitsUsed wants every limit to limit something: a constant that no code
// refers to is a promise in a document and nothing else.
func checkLimitsUsed(t *tree) []finding {
	used := map[string]bool{}
	var declared []*goFile
	for _, file := range t.goFiles {
		if file.test {
			continue
		}
		own := file.folder == "internal/limits"
		if own {
			declared = append(declared, file)
		}
		ast.Inspect(file.syntax, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.SelectorExpr:
				if file.selects(n, importPath("internal/limits"), n.Sel.Name) {
					used[n.Sel.Name] = true
				}
			case *ast.ValueSpec:
				for _, value := range n.Values {
					ast.Inspect(value, markUsed(used, own))
				}
			case *ast.BlockStmt:
				ast.Inspect(n, markUsed(used, own))
			}
			return true
		})
	}
	var findings []finding
	for _, file := range declared {
		for _, declaration := range file.syntax.Decls {
			group, ok := declaration.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, spec := range group.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					if !used[name.Name] {
						findings = append(findings, finding{
							file: file.path, line: file.position(name.Pos()), what: name.Name,
							message: fmt.Sprintf("nothing uses the limit %s", name.Name),
						})
					}
				}
			}
		}
	}
	return findings
}

// markUsed records the identifiers below a node, inside package limits only.
func markUsed(used map[string]bool, own bool) func(ast.Node) bool {
	return func(node ast.Node) bool {
		if identifier, ok := node.(*ast.Ident); ok && own {
			used[identifier.Name] = true
		}
		return own
	}
}

// limitField is a number or a duration in a configuration struct of the root
// package.
type limitField struct{ config, name, doc string }

func (f limitField) String() string { return f.config + "." + f.name }

func limitFields(files []*goFile) []limitField {
	var fields []limitField
	for _, file := range files {
		if file.folder != "." || file.test {
			continue
		}
		ast.Inspect(file.syntax, func(node ast.Node) bool {
			spec, ok := node.(*ast.TypeSpec)
			if !ok || !strings.HasSuffix(spec.Name.Name, "Config") {
				return true
			}
			structure, ok := spec.Type.(*ast.StructType)
			if !ok {
				return false
			}
			for _, field := range structure.Fields.List {
				number := isIdentifier(field.Type, "int") || isIdentifier(field.Type, "int64")
				for _, name := range field.Names {
					if number || file.selects(field.Type, "time", "Duration") {
						fields = append(fields, limitField{spec.Name.Name, name.Name, field.Doc.Text()})
					}
				}
			}
			return false
		})
	}
	return fields
}

// limitOfField returns the limit that document gives for a field: the last name
// in the third column of its row.
func limitOfField(document string, field limitField) string {
	side := strings.ToLower(strings.TrimSuffix(field.config, "Config"))
	name := regexp.MustCompile("`([A-Z]\\w*)`")
	for line := range strings.Lines(document) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.Contains(cells[1], "`"+field.name+"`") || !strings.Contains(cells[2], side) {
			continue
		}
		if found := name.FindAllStringSubmatch(cells[3], -1); len(found) > 0 {
			return found[len(found)-1][1]
		}
	}
	return ""
}

// oneLine makes a comment fit a cell of a table.
func oneLine(text string) string {
	return strings.NewReplacer("|", "\\|", "<", "\\<").Replace(strings.Join(strings.Fields(text), " "))
}

// printLimit writes a value with its unit: that of its type, or of its name.
func printLimit(name string, object types.Object) (string, error) {
	c, ok := object.(*types.Const)
	if !ok || c.Val().Kind() != constant.Int {
		return "", fmt.Errorf("%s: %s is not an integer constant", limitsFile, name)
	}
	value, exact := constant.Int64Val(c.Val())
	switch {
	case !exact:
		return "", fmt.Errorf("%s: %s does not fit into an int64", limitsFile, name)
	case strings.HasSuffix(c.Type().String(), "Duration"):
		return printDuration(time.Duration(value)), nil
	}
	rate := ""
	if strings.HasSuffix(name, "PerSecond") {
		rate = "/s"
	}
	if strings.Contains(name, "Bytes") && !strings.Contains(name, "PerWireByte") {
		return printBytes(value) + rate, nil
	}
	return groupDigits(fmt.Sprint(value)) + rate, nil
}

// groupDigits turns "100000" into "100,000".
func groupDigits(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func printDuration(d time.Duration) string {
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}} {
		if d >= unit.length && d%unit.length == 0 {
			return fmt.Sprintf("%d %s", d/unit.length, unit.name)
		}
	}
	if d < time.Millisecond {
		return fmt.Sprintf("%d µs", d.Microseconds())
	}
	return fmt.Sprintf("%d ms", d.Milliseconds())
}

func printBytes(n int64) string {
	for _, unit := range []struct {
		size int64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.size && n%unit.size == 0 {
			return fmt.Sprintf("%d %s", n/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%d B", n)
}

// fewConstants imports what constants of limits may refer to, so that no other
// package has to be type-checked.
type fewConstants struct{}

func (fewConstants) Import(path string) (*types.Package, error) {
	imported := types.NewPackage(path, path[strings.LastIndexByte(path, '/')+1:])
	if path == "time" {
		duration := types.NewTypeName(token.NoPos, imported, "Duration", nil)
		types.NewNamed(duration, types.Typ[types.Int64], nil)
		imported.Scope().Insert(duration)
		units := map[string]time.Duration{
			"Nanosecond": time.Nanosecond, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond,
			"Second": time.Second, "Minute": time.Minute, "Hour": time.Hour,
		}
		for name, length := range units {
			value := constant.MakeInt64(int64(length))
			imported.Scope().Insert(types.NewConst(token.NoPos, imported, name, duration.Type(), value))
		}
	}
	imported.MarkComplete()
	return imported, nil
}
