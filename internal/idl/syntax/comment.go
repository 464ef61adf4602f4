package syntax

import "strings"

// commentKind tells the forms of comments apart; a block of documentation is
// made of one form only.
type commentKind uint8

const (
	commentNone  commentKind = iota
	commentPlain             // /* */, never documentation: it is where code is switched off
	commentDoc               // /** */
	commentSlash             // //
	commentHash              // #
)

// comments is a run of comments that belongs together: one /** */, or lines
// directly below each other.
type comments struct {
	kind       commentKind
	start, end int // offsets in the source
	firstLine  int32
	lastLine   int32
}

// trivia is what the lexer found between two tokens.
type trivia struct {
	// doc stands directly above the following token.
	doc comments
	// trailing stands behind the previous token, on its line.
	trailing comments
	// detached is the first /** */ that belongs to no token.
	detached comments
}

// add sorts one more comment in. previousLine is the line of the token before
// it.
func (t *trivia) add(c comments, previousLine int32) {
	if c.firstLine == previousLine {
		if c.kind != commentPlain {
			t.trailing = c
		}
		return
	}
	below := t.doc.lastLine+1 == c.firstLine
	if c.kind == commentPlain && t.doc.kind == commentDoc && below {
		t.doc.lastLine = c.lastLine // does not part the documentation from what it is about
		return
	}
	lines := c.kind == commentSlash || c.kind == commentHash
	if lines && t.doc.kind == c.kind && below {
		t.doc.end, t.doc.lastLine = c.end, c.lastLine
		return
	}
	t.detach()
	if c.kind != commentPlain {
		t.doc = c
	}
}

// finish decides, now that the line of the following token is known, what the
// comments belong to.
func (t *trivia) finish(tokenLine int32) {
	if t.trailing.kind != commentNone && t.trailing.lastLine == tokenLine {
		t.doc, t.trailing = t.trailing, comments{}
	}
	if t.doc.lastLine+1 < tokenLine {
		t.detach()
	}
}

func (t *trivia) detach() {
	if t.detached.kind == commentNone && t.doc.kind == commentDoc {
		t.detached = t.doc
	}
	t.doc = comments{}
}

// text returns what the comments say, without their marks.
func (c comments) text(source string) string {
	if c.kind == commentNone {
		return ""
	}
	text := source[c.start:c.end]
	if c.kind == commentDoc {
		text = strings.TrimSuffix(strings.TrimPrefix(text, "/**"), "*/")
	}
	mark := "*"
	switch c.kind {
	case commentSlash:
		mark = "/"
	case commentHash:
		mark = "#"
	}
	var clean strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimLeft(line, " \t\r")
		line = strings.TrimPrefix(strings.TrimLeft(line, mark), " ")
		clean.WriteString(strings.TrimRight(line, " \t\r"))
		clean.WriteByte('\n')
	}
	return strings.Trim(clean.String(), "\n")
}
