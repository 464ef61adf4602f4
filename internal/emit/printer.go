package emit

import (
	"bytes"
	"cmp"
	"fmt"
	"go/format"
	"strings"
	"unicode"

	"github.com/fulmar-rpc/fulmar/gen/schema"
)

// printer prints one Go file. The declarations come first, because they decide
// what is imported.
type printer struct {
	*generator
	pkg     *schema.Package
	imports *imports
	// header is the line that says where the file comes from.
	header string
	// documentation is the package comment, if this file has it.
	documentation string
	// piece is what was printed and not formatted yet, body what was.
	piece bytes.Buffer
	body  bytes.Buffer
	err   error
}

func (g *generator) newPrinter(source *schema.File) *printer {
	return &printer{
		generator: g,
		pkg:       source.Package,
		imports:   g.newImports(source),
		header:    Header + commentText(source.Path) + ". DO NOT EDIT.",
	}
}

// P prints a line made of the parts.
func (p *printer) P(parts ...any) {
	for _, part := range parts {
		fmt.Fprint(&p.piece, part)
	}
	p.piece.WriteByte('\n')
}

// handshake prints what keeps the file from compiling with a runtime that is
// too old, whose package qualifies names.
func (p *printer) handshake(qualify func(name string) string) {
	p.doc("If this does not compile, the Fulmar in go.mod is older than the generator of\nthis file: update the former.")
	p.P("const _ = ", qualify("IsAtLeastVersion"+strings.ReplaceAll(RuntimeVersion, ".", "_")))
}

// doc prints a comment.
func (p *printer) doc(text string) { writeComment(&p.piece, text) }

// format parses and formats the declarations printed since it was last called.
// Doing that for a whole file at once would take 20 times its size in memory.
func (p *printer) format() {
	const clause = "package p\n"
	formatted, err := format.Source(append([]byte(clause), p.piece.Bytes()...))
	p.err = cmp.Or(p.err, err)
	p.piece.Reset()
	p.body.Write(bytes.TrimPrefix(formatted, []byte(clause)))
}

// empty says that no declaration was printed.
func (p *printer) empty() bool { return p.body.Len() == 0 && p.err == nil }

// finish returns the whole file. It fails if that is not Go.
func (p *printer) finish() ([]byte, error) {
	var head bytes.Buffer
	head.WriteString(p.header + "\n\n")
	writeComment(&head, p.documentation)
	head.WriteString("package " + p.pkg.Name + "\n\n")
	p.imports.write(&head)
	formatted, err := format.Source(head.Bytes())
	if err = cmp.Or(p.err, err); err != nil {
		return nil, err
	}
	return append(formatted, p.body.Bytes()...), nil
}

// writeComment prints text as a comment of whole lines. Nothing in the text can
// end the comment or be taken for an instruction to a tool: a line break always
// starts a new comment line, and a space always follows the slashes.
func writeComment(out *bytes.Buffer, text string) {
	text = strings.TrimSpace(text)
	if text == "" {
		return
	}
	for line := range strings.Lines(text) {
		line = commentText(line)
		if strings.HasPrefix(strings.TrimSpace(line), "+build") {
			// The one instruction that has a space.
			line = "(" + strings.TrimSpace(line) + ")"
		}
		out.WriteString(strings.TrimRight("// "+line, " ") + "\n")
	}
}

// commentText removes what is not text from a line: control characters, marks
// that change the reading direction so that the code looks like something else,
// and what is not UTF-8.
func commentText(line string) string {
	return strings.TrimRight(strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return r
		case r == unicode.ReplacementChar, r == '\ufeff', unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return -1
		default:
			return r
		}
	}, line), " \t")
}

// paragraphs joins texts by empty lines.
func paragraphs(texts ...string) string {
	return strings.TrimSpace(strings.Join(texts, "\n\n"))
}

// sentence breaks a text of ours into lines.
func sentence(words ...string) string {
	const longest = 77
	text, line := "", 0
	for word := range strings.FieldsSeq(strings.Join(words, "")) {
		switch {
		case line == 0:
		case line+1+len(word) > longest:
			text, line = text+"\n", 0
		default:
			text, line = text+" ", line+1
		}
		text, line = text+word, line+len(word)
	}
	return text
}
