package archtest

import (
	"fmt"
	"go/ast"
	"go/types"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Limits in words. A comment or a document that gives the value of a limit
// names the limit behind it, "16 MiB (MessageBytes)" in comments and
// "16 MiB (`MessageBytes`)" in Markdown: then a changed limit is one edit, and
// `go test ./internal/archtest -update` writes the rest.

// limitValues returns every limit by its name, as printLimit writes it, and all
// the ways to write one of them.
func limitValues(t *tree) (values map[string]string, forms map[string]bool, err error) {
	_, info, err := checkLimitsFile(string(t.texts[limitsFile]))
	if err != nil {
		return nil, nil, err
	}
	values, forms = map[string]string{}, map[string]bool{}
	for name, object := range info.Defs {
		c, ok := object.(*types.Const)
		if !ok || !name.IsExported() {
			continue
		}
		value, err := printLimit(name.Name, object)
		if err != nil {
			return nil, nil, err
		}
		values[name.Name], forms[value] = value, true
		if strings.HasSuffix(value, "B") { // Error texts count bytes one by one.
			forms[groupDigits(c.Val().ExactString())] = true
		}
	}
	return values, forms, nil
}

// quantity is a number with or without a unit. What comes between its parts may
// be the end of a line and the mark of a comment.
const (
	quoteGap = `(?:[ \t]+|[ \t]*\n[ \t]*(?://[ \t]*)?)`
	quantity = `\d[\d,]*(?:` + quoteGap + `(?:B|KiB|MiB|GiB|µs|ms|s|min|h|seconds|minutes)\b)?(?:/s)?`
)

// rewriteQuotes returns text in which every quoted limit has its value, and how
// many it quotes.
func rewriteQuotes(text string, values map[string]string) (rewritten string, quotes int) {
	quote := regexp.MustCompile(`(` + quantity + `)(` + quoteGap + `\(` + "`?" + `([A-Z]\w*)` + "`?" + `\))`)
	rewritten = quote.ReplaceAllStringFunc(text, func(found string) string {
		parts := quote.FindStringSubmatch(found)
		value, known := values[parts[3]]
		if known {
			quotes++
		}
		if !known || canonicalQuantity(parts[1]) == value {
			return found
		}
		return value + parts[2]
	})
	return rewritten, quotes
}

// checkQuotes wants the value of a limit to be followed by the limit's name, in
// what go doc shows of public packages and in documents for users. A number with a
// unit counts wherever it equals a limit, one without where the words before it
// say so.
func checkQuotes(t *tree) []finding {
	if t.texts[limitsFile] == nil {
		return nil // A tree without limits quotes none.
	}
	_, known, err := limitValues(t)
	if err != nil {
		return []finding{{file: limitsFile, line: 1, what: "values", message: err.Error()}}
	}
	policy := packagePolicy()
	var findings []finding
	check := func(file string, line int, text string) {
		for _, found := range unnamedLimits(text, known) {
			findings = append(findings, finding{
				file: file, line: line + strings.Count(text[:found.at], "\n"), what: found.value,
				message: fmt.Sprintf("%s is the value of a limit: name it behind the number, as in %q, so that it stays right", found.value, "16 MiB (MessageBytes)"),
			})
		}
	}
	for _, file := range t.goFiles {
		if p, ok := placeOf(policy, file.folder); !ok || !p.public || file.test || file.module != "." {
			continue
		}
		eachDocumentation(file, func(group *ast.CommentGroup) {
			start := int(group.Pos() - file.syntax.FileStart)
			check(file.path, file.position(group.Pos()), string(file.source[start:start+int(group.End()-group.Pos())]))
		})
	}
	for _, name := range t.names() {
		if isForUsers(name) {
			text := string(t.texts[name])
			if before, rest, ok := strings.Cut(text, limitsBegin); ok {
				table, after, _ := strings.Cut(rest, limitsEnd)
				text = before + strings.Repeat("\n", strings.Count(limitsBegin+table+limitsEnd, "\n")) + after
			}
			check(name, 1, text)
		}
	}
	return findings
}

// isForUsers tells whether a document says how Fulmar behaves, and not why it
// was built so.
func isForUsers(name string) bool {
	return name == "README.md" || name == "SECURITY.md" ||
		path.Ext(name) == ".md" && slices.Contains([]string{"docs/guide", "docs/protocol"}, path.Dir(name))
}

type unnamedLimit struct {
	at    int
	value string
}

func unnamedLimits(text string, known map[string]bool) []unnamedLimit {
	number := regexp.MustCompile(quantity)
	named := regexp.MustCompile(`^` + quoteGap + `\(` + "`?" + `[A-Z]\w*` + "`?" + `\)`)
	announced := regexp.MustCompile(`(?i)\b(default|limit|at most|up to)[^\d.]{0,20}$`)
	var found []unnamedLimit
	for _, place := range number.FindAllStringIndex(text, -1) {
		start, end := place[0], place[1]
		if start > 0 && strings.ContainsAny(text[start-1:start], "0123456789.,_-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
			continue // The end of a longer number, or part of a name.
		}
		if end < len(text) && unicode.IsLetter(rune(text[end])) {
			continue // Hexadecimal, or part of a name.
		}
		value := canonicalQuantity(text[start:end])
		hasUnit := strings.ContainsAny(value, " /")
		switch {
		case !known[value], named.MatchString(text[end:]), !hasUnit && !announced.MatchString(text[:start]):
		default:
			found = append(found, unnamedLimit{start, value})
		}
	}
	return found
}

// canonicalQuantity writes a quantity as printLimit would.
func canonicalQuantity(written string) string {
	words := strings.Fields(strings.ReplaceAll(strings.TrimRight(written, ","), "//", " "))
	digits, rate, _ := strings.Cut(words[0], "/")
	digits = groupDigits(strings.ReplaceAll(digits, ",", ""))
	if rate != "" {
		digits += "/" + rate
	}
	if len(words) == 1 {
		return digits
	}
	return digits + " " + strings.NewReplacer("seconds", "s", "minutes", "min").Replace(words[1])
}

// eachDocumentation visits the comments that go doc shows.
func eachDocumentation(file *goFile, visit func(*ast.CommentGroup)) {
	exported := func(group *ast.CommentGroup, names ...*ast.Ident) {
		if group != nil && slices.ContainsFunc(names, (*ast.Ident).IsExported) {
			visit(group)
		}
	}
	if file.syntax.Doc != nil {
		visit(file.syntax.Doc)
	}
	ast.Inspect(file.syntax, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.FuncDecl:
			exported(n.Doc, n.Name)
			return false
		case *ast.GenDecl:
			exported(n.Doc, declaredNames(n)...)
		case *ast.TypeSpec:
			exported(n.Doc, n.Name)
		case *ast.ValueSpec:
			exported(n.Doc, n.Names...)
		case *ast.Field:
			exported(n.Doc, n.Names...)
		}
		return true
	})
}

func declaredNames(group *ast.GenDecl) []*ast.Ident {
	var names []*ast.Ident
	for _, spec := range group.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			names = append(names, s.Name)
		case *ast.ValueSpec:
			names = append(names, s.Names...)
		}
	}
	return names
}
