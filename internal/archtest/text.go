package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
)

// Rules about text: comments, sizes, words.

const (
	// fileLinesMax and functionLinesMax are what a reader keeps in mind.
	fileLinesMax     = 600
	functionLinesMax = 70
)

// checkSizes bounds files and functions. Generated code is exempt.
func checkSizes(t *tree) []finding {
	var findings []finding
	for _, file := range t.goFiles {
		if file.generated {
			continue
		}
		if lines := strings.Count(string(file.source), "\n"); lines > fileLinesMax {
			findings = append(findings, finding{
				file: file.path, line: 1, what: "file", size: lines,
				message: fmt.Sprintf("%d lines, at most %d: split it by concept", lines, fileLinesMax),
			})
		}
		for _, declaration := range file.syntax.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok {
				continue
			}
			first, last := file.position(function.Pos()), file.position(function.End())
			if lines := last - first + 1; lines > functionLinesMax {
				name := functionName(function)
				findings = append(findings, finding{
					file: file.path, line: first, what: name, size: lines,
					message: fmt.Sprintf("%s has %d lines, at most %d", name, lines, functionLinesMax),
				})
			}
		}
	}
	return findings
}

// checkComments refuses notes to oneself that nobody will find again, and code
// that was switched off instead of removed.
func checkComments(t *tree) []finding {
	marker := regexp.MustCompile(`\b(` + `FIX` + `ME|X` + `XX|HA` + `CK)\b`)
	todo := regexp.MustCompile(`\bTODO\b`)
	todoWithIssue := regexp.MustCompile(`\bTODO\(#\d+\)`)
	var findings []finding
	for _, file := range t.goFiles {
		if file.generated {
			continue
		}
		add := func(comment *ast.Comment, what, message string) {
			findings = append(findings, finding{file: file.path, line: file.position(comment.Pos()), what: what, message: message})
		}
		for _, group := range file.syntax.Comments {
			for _, comment := range group.List {
				if word := marker.FindString(comment.Text); word != "" {
					add(comment, word, word+" must not reach the main branch")
				}
				if todo.MatchString(comment.Text) && !todoWithIssue.MatchString(comment.Text) {
					add(comment, "TODO", "a TODO names its issue: TODO(#12)")
				}
			}
			if line := deadCode(file, group); line != "" {
				add(group.List[0], "dead code", fmt.Sprintf("commented-out code (%q): remove it, history keeps it", line))
			}
		}
	}
	return findings
}

// deadCode returns the first line of a comment group that reads as code from
// beginning to end. A group that begins indented is an example, and prose does
// not parse.
func deadCode(file *goFile, group *ast.CommentGroup) string {
	var lines []string
	for _, comment := range group.List {
		text, ok := strings.CutPrefix(comment.Text, "//")
		if !ok {
			return ""
		}
		lines = append(lines, strings.TrimPrefix(text, " "))
	}
	if strings.TrimLeft(lines[0], " \t") != lines[0] {
		return ""
	}
	start := file.syntax.FileStart
	offset := int(group.Pos() - start)
	before := string(file.source[:offset])
	if last := before[strings.LastIndexByte(before, '\n')+1:]; strings.TrimSpace(last) != "" {
		return "" // Behind code on the same line: an explanation such as "// len(b)".
	}
	text := strings.Join(lines, "\n")
	if !strings.ContainsAny(text, "({=") || !parses(text) {
		return ""
	}
	return lines[0]
}

func parses(text string) bool {
	fileSet := token.NewFileSet()
	if _, err := parser.ParseFile(fileSet, "", "package p\nfunc f() {\n"+text+"\n}", parser.SkipObjectResolution); err == nil {
		return true
	}
	_, err := parser.ParseFile(fileSet, "", "package p\n"+text, parser.SkipObjectResolution)
	return err == nil
}

// checkWords keeps what is true on one machine only out of the repository:
// absolute paths of somebody's home or scratch folder, and the hosts of the
// package registries, which users replace by mirrors.
func checkWords(t *tree) []finding {
	// Written in pieces, because this file is checked as well.
	paths := regexp.MustCompile(`(^|[^\w.)\]}*-])/(wo` + `rk|ro` + `ot|ho` + `me/\w+|t` + `mp|Us` + `ers/\w+)(/|\b)`)
	hosts := regexp.MustCompile(`\b(pro` + `xy\.golang\.org|su` + `m\.golang\.org|py` + `pi\.org|files\.py` + `thonhosted\.org|regis` + `try\.npmjs\.org|repo1?\.ma` + `ven\.(org|apache\.org)|(static\.)?cra` + `tes\.io|deb\.deb` + `ian\.org)`)
	var findings []finding
	for _, name := range t.names() {
		number := 0
		for line := range strings.Lines(string(t.texts[name])) {
			number++
			for _, pattern := range []*regexp.Regexp{paths, hosts} {
				if found := pattern.FindString(line); found != "" {
					findings = append(findings, finding{
						file: name, line: number, what: found,
						message: fmt.Sprintf("%q is true on one machine only", strings.TrimSpace(found)),
					})
				}
			}
		}
	}
	return findings
}
