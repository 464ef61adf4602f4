package archtest

import (
	"fmt"
	"go/ast"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Rules about documents: what they point at exists.

// checkLinks follows every relative link of every Markdown file, anchors
// included, also where its target stands in a definition of its own
// ("[name]: target"). Links to other sites are not followed.
func checkLinks(t *tree) []finding {
	inline := regexp.MustCompile(`\]\(([^)\s]+)[^)]*\)`)
	definition := regexp.MustCompile(`^ {0,3}\[([^\]]+)\]:\s*(\S+)`)
	reference := regexp.MustCompile(`\[([^\[\]]+)\]\[([^\[\]]*)\]`)
	var findings []finding
	for _, name := range t.names() {
		if path.Ext(name) != ".md" {
			continue
		}
		content := string(t.texts[name])
		add := func(number int, target, reason string) {
			if reason != "" {
				findings = append(findings, finding{
					file: name, line: number, what: target,
					message: fmt.Sprintf("link to %s: %s", target, reason),
				})
			}
		}
		defined := map[string]bool{}
		eachProseLine(content, func(number int, line string) {
			if match := definition.FindStringSubmatch(line); match != nil {
				defined[strings.ToLower(match[1])] = true
				add(number, match[2], t.refuseLink(name, match[2]))
			}
		})
		eachProseLine(content, func(number int, line string) {
			line = withoutCode(line)
			for _, match := range inline.FindAllStringSubmatch(line, -1) {
				add(number, match[1], t.refuseLink(name, match[1]))
			}
			for _, match := range reference.FindAllStringSubmatch(line, -1) {
				label := match[2]
				if label == "" {
					label = match[1]
				}
				if !defined[strings.ToLower(label)] {
					add(number, "["+label+"]", "nothing in this document defines it")
				}
			}
		})
	}
	return findings
}

func (t *tree) refuseLink(document, target string) string {
	parsed, err := url.Parse(target)
	switch {
	case err != nil:
		return "not a URL: " + err.Error()
	case parsed.Scheme != "":
		return ""
	}
	destination := document
	if parsed.Path != "" {
		destination = path.Join(path.Dir(document), parsed.Path)
		if !t.exists(destination) {
			return "no such file"
		}
	}
	if parsed.Fragment == "" {
		return ""
	}
	if path.Ext(destination) != ".md" {
		return "anchors are checked in Markdown files only: name the function in the text instead"
	}
	if !slices.Contains(anchors(string(t.texts[destination])), parsed.Fragment) {
		return "no such heading"
	}
	return ""
}

// eachProseLine visits the lines outside fenced code.
func eachProseLine(content string, visit func(number int, line string)) {
	number, fenced := 0, false
	for line := range strings.Lines(content) {
		number++
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			continue
		}
		if !fenced {
			visit(number, strings.TrimRight(line, "\n"))
		}
	}
}

// withoutCode blanks `inline code`, in which brackets are not links.
func withoutCode(line string) string {
	parts := strings.Split(line, "`")
	for i := 1; i < len(parts)-1; i += 2 {
		parts[i] = ""
	}
	return strings.Join(parts, "`")
}

// anchors returns the fragments that Markdown renderers give to headings:
// lower case, punctuation dropped, spaces to hyphens, repeats numbered.
func anchors(content string) []string {
	var found []string
	count := map[string]int{}
	eachProseLine(content, func(_ int, line string) {
		title := strings.TrimLeft(line, "#")
		if level := len(line) - len(title); level == 0 || level > 6 || !strings.HasPrefix(title, " ") {
			return
		}
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(title))
		count[anchor]++
		if n := count[anchor]; n > 1 {
			anchor = fmt.Sprintf("%s-%d", anchor, n-1)
		}
		found = append(found, anchor)
	})
	return found
}

// checkMentions wants every Go file that a document names to exist, below the
// root or beside the document. "*" stands for several files. Indented or
// fenced code is checked too: diagrams rot like prose.
func checkMentions(t *tree) []finding {
	mention := regexp.MustCompile(`[\w./*-]*[\w*]\.go\b`)
	link := regexp.MustCompile(`\[[^\]]*\]\(([^)]*)\)`)
	var findings []finding
	for _, name := range t.names() {
		if path.Ext(name) != ".md" {
			continue
		}
		number := 0
		for line := range strings.Lines(string(t.texts[name])) {
			number++
			// A link's text may be short, its target is what counts.
			for _, file := range mention.FindAllString(link.ReplaceAllString(line, " $1 "), -1) {
				if t.exists(path.Clean(file)) || t.exists(path.Join(path.Dir(name), file)) {
					continue
				}
				findings = append(findings, finding{
					file: name, line: number, what: file,
					message: fmt.Sprintf("mentions %s, which does not exist", file),
				})
			}
		}
	}
	return findings
}

// checkAnswers wants the names in a row of a table of ARCHITECTURE.md to be
// declared in a Go file that the row links to: an answer to "where" that was
// true once.
func checkAnswers(t *tree) []finding {
	const document = "ARCHITECTURE.md"
	link := regexp.MustCompile(`\]\(([^)]+\.go)\)`)
	name := regexp.MustCompile("`(?:[A-Za-z_]\\w*\\.)?([A-Za-z_]\\w*)`")
	declared := map[string]map[string]bool{}
	for _, file := range t.goFiles {
		declared[file.path] = declarations(file)
	}
	var findings []finding
	eachProseLine(string(t.texts[document]), func(number int, line string) {
		links := link.FindAllStringSubmatch(line, -1)
		if !strings.HasPrefix(line, "|") || len(links) == 0 {
			return
		}
		for _, match := range name.FindAllStringSubmatch(line, -1) {
			if !slices.ContainsFunc(links, func(link []string) bool { return declared[link[1]][match[1]] }) {
				findings = append(findings, finding{
					file: document, line: number, what: match[1],
					message: fmt.Sprintf("no file that this row links to declares %s", match[1]),
				})
			}
		}
	})
	return findings
}

// declarations returns what a file declares outside of functions: types, fields,
// methods, functions, constants and variables.
func declarations(file *goFile) map[string]bool {
	names := map[string]bool{}
	for _, declaration := range file.syntax.Decls {
		ast.Inspect(declaration, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.FuncDecl:
				names[n.Name.Name] = true
				return false
			case *ast.TypeSpec:
				names[n.Name.Name] = true
			case *ast.ValueSpec:
				for _, name := range n.Names {
					names[name.Name] = true
				}
				return false
			case *ast.Field:
				for _, name := range n.Names {
					names[name.Name] = true
				}
			}
			return true
		})
	}
	return names
}

// recordSections are what a decision record answers, as words of its headings.
func recordSections() []string {
	return []string{"Context", "Decision", "Refused", "Consequences", "reverse"}
}

// checkRecords wants decision records to be complete and listed in their
// index, and every "ADR-0000" in a comment or document to exist.
func checkRecords(t *tree) []finding {
	fileName := regexp.MustCompile(`^docs/adr/(\d{4})-[a-z0-9-]+\.md$`)
	index := string(t.texts["docs/adr/README.md"])
	known := map[string]bool{}
	var findings []finding
	for _, name := range t.names() {
		if path.Dir(name) != "docs/adr" || name == "docs/adr/README.md" {
			continue
		}
		add := func(what, message string) {
			findings = append(findings, finding{file: name, line: 1, what: what, message: message})
		}
		match := fileName.FindStringSubmatch(name)
		if match == nil {
			add("name", "decision records are called docs/adr/0000-lower-case-title.md")
			continue
		}
		if known[match[1]] {
			add("number", "the number is taken by another record")
		}
		known[match[1]] = true
		if !strings.Contains(index, "("+path.Base(name)+")") {
			add("index", "docs/adr/README.md does not list it")
		}
		var headings strings.Builder
		eachProseLine(string(t.texts[name]), func(_ int, line string) {
			if title, ok := strings.CutPrefix(line, "## "); ok {
				headings.WriteString(title + "\n")
			}
		})
		for _, section := range recordSections() {
			if !strings.Contains(headings.String(), section) {
				add(section, fmt.Sprintf("the record lacks the section %q", section))
			}
		}
	}
	return append(findings, checkRecordReferences(t, known)...)
}

func checkRecordReferences(t *tree, known map[string]bool) []finding {
	reference := regexp.MustCompile(`\bADR-(\d{4})\b`)
	var findings []finding
	for _, name := range t.names() {
		if strings.HasPrefix(name, "internal/archtest/") {
			continue // Its fixtures cite records that do not exist.
		}
		number := 0
		for line := range strings.Lines(string(t.texts[name])) {
			number++
			for _, match := range reference.FindAllStringSubmatch(line, -1) {
				if !known[match[1]] {
					findings = append(findings, finding{
						file: name, line: number, what: match[0],
						message: fmt.Sprintf("cites %s, which does not exist in docs/adr", match[0]),
					})
				}
			}
		}
	}
	return findings
}
