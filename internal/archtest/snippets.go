package archtest

import (
	"fmt"
	"path"
	"strings"
)

// checkSnippets wants every Go block of the README and the guide to be part of
// a Go file of this repository, so that the compiler has seen it. Indentation
// and empty lines do not count; a line "// ..." stands for what was left out. A
// block with a package clause is a whole file, and so is every block in Thrift.
func checkSnippets(t *tree) []finding {
	var compiled []string
	whole := map[string]bool{}
	for _, file := range t.goFiles {
		compiled = append(compiled, dense(string(file.source)))
		whole[dense(string(file.source))] = true
	}
	for name, content := range t.texts {
		if path.Ext(name) == ".thrift" {
			whole[dense(string(content))] = true
		}
	}
	var findings []finding
	for _, name := range t.names() {
		if name != "README.md" && !(path.Dir(name) == "docs/guide" && path.Ext(name) == ".md") {
			continue
		}
		eachBlock(string(t.texts[name]), "thrift", func(line int, block string) {
			if !whole[dense(block)] {
				findings = append(findings, finding{
					file: name, line: line, what: "thrift",
					message: "the Thrift code is not a whole file of this repository: quote one",
				})
			}
		})
		eachBlock(string(t.texts[name]), "go", func(line int, block string) {
			isFile := strings.Contains(dense(block), "\npackage ")
			if part := uncompiled(block, compiled); part == "" && isFile && !whole[dense(block)] {
				findings = append(findings, finding{
					file: name, line: line, what: "package",
					message: "the Go code has a package clause and is not a whole file of this repository",
				})
			} else if part != "" {
				first, _, _ := strings.Cut(strings.TrimPrefix(part, "\n"), "\n")
				findings = append(findings, finding{
					file: name, line: line, what: first,
					message: fmt.Sprintf("the Go code that begins with %q is not part of a Go file of this repository: quote compiled code", first),
				})
			}
		})
	}
	return findings
}

// eachBlock visits the fenced blocks that are marked as being in a language.
func eachBlock(content, language string, visit func(line int, block string)) {
	var block strings.Builder
	number, start := 0, 0
	for line := range strings.Lines(content) {
		number++
		mark := strings.TrimSpace(line)
		switch {
		case start == 0 && mark == "```"+language:
			start = number
		case start > 0 && mark == "```":
			visit(start, block.String())
			block.Reset()
			start = 0
		case start > 0:
			block.WriteString(line)
		}
	}
}

// uncompiled returns the first part of block that no single file contains.
// All parts have to come from one file, in order.
func uncompiled(block string, compiled []string) string {
	parts := strings.Split(dense(block), "\n// ...\n")
	best := 0
	for _, source := range compiled {
		found := 0
		for _, part := range parts {
			part = "\n" + strings.Trim(part, "\n") + "\n"
			at := strings.Index(source, part)
			if at < 0 {
				break
			}
			source = source[at+len(part)-1:]
			found++
		}
		if found == len(parts) {
			return ""
		}
		best = max(best, found)
	}
	return parts[best]
}

// dense removes indentation, alignment and empty lines, and puts a newline
// around all.
func dense(source string) string {
	var out strings.Builder
	out.WriteByte('\n')
	for line := range strings.Lines(source) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			out.WriteString(line)
			out.WriteByte('\n')
		}
	}
	return out.String()
}
