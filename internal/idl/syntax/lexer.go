package syntax

import (
	"strings"

	"github.com/fulmar-rpc/fulmar/internal/idl/ast"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

type tokenKind uint8

const (
	tokenEnd tokenKind = iota
	tokenName
	tokenInt
	tokenDouble
	tokenText
	tokenMark // one of marks, in token.mark
	tokenBad  // what cannot be read
)

// marks are the characters that are tokens by themselves.
const marks = "{}()[]<>,;:=*&"

type token struct {
	kind   tokenKind
	mark   byte
	place  ast.Place
	start  int    // offset in the source
	text   string // of names and texts, the latter without quotes and escapes; of what is bad
	int    int64
	double float64
	// reported says of something bad that the lexer has told what is wrong.
	reported bool
	// firstOnLine says that nothing but blanks and comments stands before it.
	firstOnLine bool
	trivia      trivia
}

// lexer cuts a source into tokens and reports what it cannot read.
type lexer struct {
	source    string
	offset    int
	line      int32
	lineStart int
	// previousLine is where the last token ended, 0 before the first one.
	previousLine int32
	problems     *problems
}

func (l *lexer) place(offset int) ast.Place {
	return ast.Place{Line: l.line, Column: int32(offset-l.lineStart) + 1}
}

// peek returns the byte n places on, 0 behind the end. A source holds no NUL.
func (l *lexer) peek(n int) byte {
	if l.offset+n < len(l.source) {
		return l.source[l.offset+n]
	}
	return 0
}

// scan returns the next token. At the end it returns tokenEnd for ever.
func (l *lexer) scan() token {
	var between trivia
	for {
		l.skipBlanks()
		comment := l.comment()
		if comment.kind == commentNone {
			break
		}
		between.add(comment, l.previousLine)
	}
	between.finish(l.line)
	t := token{
		place:       l.place(l.offset),
		start:       l.offset,
		firstOnLine: l.line != l.previousLine,
		trivia:      between,
	}
	l.token(&t)
	l.previousLine = l.line
	return t
}

func (l *lexer) skipBlanks() {
	for ; l.offset < len(l.source); l.offset++ {
		switch l.source[l.offset] {
		case '\n':
			l.line++
			l.lineStart = l.offset + 1
		case ' ', '\t', '\r', '\f', '\v':
		default:
			return
		}
	}
}

// comment reads one comment, if there is one here.
func (l *lexer) comment() comments {
	c := comments{start: l.offset, firstLine: l.line}
	switch {
	case l.peek(0) == '#':
		c.kind = commentHash
	case l.peek(0) == '/' && l.peek(1) == '/':
		c.kind = commentSlash
	case l.peek(0) == '/' && l.peek(1) == '*':
		l.blockComment(&c)
		return c
	default:
		return c
	}
	l.offset = len(l.source)
	if length := strings.IndexByte(l.source[c.start:], '\n'); length >= 0 {
		l.offset = c.start + length
	}
	c.end, c.lastLine = l.offset, l.line
	return c
}

func (l *lexer) blockComment(c *comments) {
	const opening = len("/*")
	length := strings.Index(l.source[c.start+opening:], "*/")
	c.end = c.start + opening + length + len("*/")
	if length < 0 {
		l.problems.errorf(l.place(c.start), "comment: not closed, expected */")
		c.end = len(l.source)
	}
	text := l.source[c.start:c.end]
	c.kind = commentPlain
	if strings.HasPrefix(text, "/**") && len(text) > len("/**/") {
		c.kind = commentDoc
	}
	if newline := strings.LastIndexByte(text, '\n'); newline >= 0 {
		l.line += int32(strings.Count(text, "\n"))
		l.lineStart = c.start + newline + 1
	}
	l.offset, c.lastLine = c.end, l.line
}

func (l *lexer) startsNumber() bool {
	n := 0
	if c := l.peek(0); c == '+' || c == '-' {
		n++
	}
	if l.peek(n) == '.' {
		n++
	}
	return isDigit(l.peek(n))
}

// unknown reads a word that begins with a character that means nothing: one
// mistake is one error, be it a word in another script or ../../x.
func (l *lexer) unknown(t *token) {
	t.kind = tokenBad
	l.offset = l.wordEnd(l.offset + 1)
	t.text = l.source[t.start:l.offset]
}

// wordEnd returns where the word ends that goes on at an offset: at a blank, a
// comment, a string, or a mark.
func (l *lexer) wordEnd(offset int) int {
	for ; offset < len(l.source); offset++ {
		c := l.source[offset]
		if isBlank(c) || c == '#' || c == '"' || c == '\'' || strings.IndexByte(marks, c) >= 0 ||
			c == '/' && offset+1 < len(l.source) && (l.source[offset+1] == '/' || l.source[offset+1] == '*') {
			break
		}
	}
	return offset
}

// refuse reports what is wrong with a token, which cannot be used then.
func (l *lexer) refuse(t *token, format string, arguments ...any) {
	t.kind, t.reported = tokenBad, true
	l.problems.errorf(t.place, format, arguments...)
}

func (l *lexer) token(t *token) {
	c := l.peek(0)
	switch {
	case l.offset == len(l.source):
	case isNameStart(c):
		l.name(t)
	case l.startsNumber():
		l.number(t)
	case c == '"' || c == '\'':
		l.text(t)
	case strings.IndexByte(marks, c) >= 0:
		t.kind, t.mark = tokenMark, c
		l.offset++
	default:
		l.unknown(t)
	}
}

// name reads an identifier; a dot belongs to it if more of it follows.
func (l *lexer) name(t *token) {
	for {
		c := l.peek(0)
		if !isNamePart(c) && !(c == '.' && isNamePart(l.peek(1))) {
			break
		}
		l.offset++
	}
	t.kind, t.text = tokenName, l.source[t.start:l.offset]
	if len(t.text) > limits.IDLNameBytes {
		l.refuse(t, "name: too long (limit %d bytes, got %d)", limits.IDLNameBytes, len(t.text))
	}
}

func isNameStart(c byte) bool { return c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z' }
func isNamePart(c byte) bool  { return isNameStart(c) || isDigit(c) }
func isDigit(c byte) bool     { return '0' <= c && c <= '9' }
func isBlank(c byte) bool     { return c == ' ' || '\t' <= c && c <= '\r' }
