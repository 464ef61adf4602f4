// Package syntax reads Thrift interface definitions: text in, ast.File and a
// list of problems out. It knows the grammar only; what names mean is decided
// by package idl.
//
// The parser is a recursive descent with two tokens of look-ahead. After a
// mistake it continues at the next member or declaration, so that one run
// reports many mistakes. Its work is linear in the length of the source, and
// everything that nests has a limit.
package syntax

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fulmar-rpc/fulmar/internal/idl/ast"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// Parse reads one file. The file is fit for use if no problem is an error.
// Each node takes one from nodes, which the files of a run share; when nothing
// is left, that is an error.
func Parse(source string, nodes *int) (*ast.File, []Problem) {
	p := &parser{nodes: nodes, file: &ast.File{}, failedAt: -1}
	p.lexer = lexer{source: source, line: 1, problems: &p.problems}
	if !p.checkEncoding() {
		p.file.Gaps = ast.Gaps{Anything: true, Headers: true}
		return p.file, p.problems.list
	}
	p.lexer.offset = len(source) - len(strings.TrimPrefix(source, byteOrderMark))
	p.lexer.lineStart = p.lexer.offset
	p.ahead = p.lexer.scan()
	p.next()
	p.document()
	return p.file, p.problems.list
}

const byteOrderMark = "\ufeff"

type parser struct {
	lexer    lexer
	problems problems
	file     *ast.File
	// token is looked at now, ahead is the one behind it.
	token, ahead token
	// within names the declaration for messages, as in "struct Order".
	within string
	// failedAt is the offset of the token that the last error was about. A
	// second error about it would be a consequence of the first.
	failedAt int
	// brackets are open at the moment.
	brackets brackets
	// fieldStack holds the fields of the lists that are being read.
	fieldStack []ast.Field
	// skipped is how many members of the declaration could not be read, and
	// searched where the search for names in such text has ended.
	skipped, searched int
	// named says that the declaration has a name, and separated where the text
	// behind the last comma or semicolon begins.
	named     bool
	separated int
	nodes     *int
	// ignored are the words that the file was told about: see ignore.
	ignored map[string]bool
}

// checkEncoding reports the first byte that is not text. Nothing else is worth
// saying about such a file.
func (p *parser) checkEncoding() bool {
	source := p.lexer.source
	bad, what := strings.IndexByte(source, 0), "a NUL byte"
	if !utf8.ValidString(source) {
		for offset, r := range source {
			if r == utf8.RuneError && !strings.HasPrefix(source[offset:], string(utf8.RuneError)) {
				if bad < 0 || offset < bad {
					bad, what = offset, "invalid UTF-8"
				}
				break
			}
		}
	}
	if bad < 0 {
		return true
	}
	before := source[:bad]
	place := ast.Place{
		Line:   int32(strings.Count(before, "\n")) + 1,
		Column: int32(bad - strings.LastIndexByte(before, '\n')),
	}
	p.problems.errorf(place, "file: holds %s, expected UTF-8 text", what)
	return false
}

func (p *parser) next() {
	if p.token.kind == tokenMark {
		p.brackets.pass(p.token.mark)
	}
	p.token, p.ahead = p.ahead, p.lexer.scan()
	if p.problems.full() {
		p.stop()
	}
}

// stop makes everything look like the end of the file, which ends every loop.
func (p *parser) stop() {
	p.file.Gaps.Anything, p.file.Gaps.Headers = true, true
	p.lexer.offset = len(p.lexer.source)
	end := token{kind: tokenEnd, place: p.token.place, start: p.token.start}
	p.token, p.ahead, p.failedAt = end, end, end.start
}

// node pays for one node of the tree.
func (p *parser) node() {
	*p.nodes--
	if *p.nodes == -1 {
		p.problems.errorf(p.token.place, "too much in one run (limit %d declarations, fields, types and values)", limits.IDLNodes)
	}
	if *p.nodes < 0 {
		p.stop()
	}
}

func (p *parser) isMark(mark byte) bool { return p.token.kind == tokenMark && p.token.mark == mark }

func (p *parser) isWord(word string) bool { return p.token.kind == tokenName && p.token.text == word }

// takeMark consumes mark if it is next.
func (p *parser) takeMark(mark byte) bool {
	if !p.isMark(mark) {
		return false
	}
	p.next()
	return true
}

// takeWord consumes a keyword if it is next.
func (p *parser) takeWord(word string) bool {
	if !p.isWord(word) {
		return false
	}
	p.next()
	return true
}

// ignore warns, once in a file, that a word which is next has no effect.
func (p *parser) ignore(word, why string) {
	p.warnOnce(p.token.place, word, "%s: ignored, %s", word, why)
}

func (p *parser) warnOnce(place ast.Place, about, format string, arguments ...any) {
	if p.ignored[about] {
		return
	}
	if p.ignored == nil {
		p.ignored = map[string]bool{}
	}
	p.ignored[about] = true
	p.problems.warningf(place, format, arguments...)
}

const (
	onlyCPP = "only C++ has a use for it"
	onlyXSD = "nothing is generated for XML schemas"
)

// skipWord consumes a keyword that has no effect if it is next.
func (p *parser) skipWord(word, why string) bool {
	if p.isWord(word) {
		p.ignore(word, why)
	}
	return p.takeWord(word)
}

func (p *parser) expectMark(mark byte) bool {
	return p.takeMark(mark) || p.expected("'%c'", mark)
}

// expected reports that something else than the next token should be there,
// and returns false for the convenience of its callers.
func (p *parser) expected(format string, arguments ...any) bool {
	what := fmt.Sprintf(format, arguments...)
	return p.refuse("expected %s, found %s", what, p.token.describe())
}

// refuse reports an error about the next token unless one was already.
func (p *parser) refuse(format string, arguments ...any) bool {
	if p.failedAt == p.token.start || p.token.kind == tokenBad && p.token.reported {
		return false
	}
	p.failedAt = p.token.start
	prefix := ""
	if p.within != "" {
		prefix = p.within + ": "
	}
	p.problems.errorf(p.token.place, "%s%s", prefix, fmt.Sprintf(format, arguments...))
	return false
}

func (t *token) describe() string {
	switch t.kind {
	case tokenEnd:
		return "the end of the file"
	case tokenName:
		return "'" + clip(t.text) + "'"
	case tokenInt:
		return fmt.Sprintf("the number %d", t.int)
	case tokenDouble:
		return "a floating point number"
	case tokenText:
		return "the string " + quote(t.text)
	case tokenBad:
		return describeWord(t.text)
	default:
		return fmt.Sprintf("'%c'", t.mark)
	}
}

// describeWord tells what is not ASCII in a word, because it may look as if it
// were.
func describeWord(word string) string {
	for _, r := range word {
		switch {
		case unicode.IsLetter(r) && r >= utf8.RuneSelf:
			return fmt.Sprintf("%s (%U, and names have ASCII letters only)", quote(word), r)
		case r >= utf8.RuneSelf:
			return fmt.Sprintf("%s (%U)", quote(word), r)
		}
	}
	return quote(word)
}

// separator consumes an optional comma or semicolon.
func (p *parser) separator() {
	if p.takeMark(',') || p.takeMark(';') {
		p.separated = p.token.start
	}
}
