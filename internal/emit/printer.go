package emit

import (
	"bytes"
	"cmp"
	"fmt"
	"go/format"
	"slices"
	"strings"
	"unicode"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/limits"
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
	// layout is that of the declarations.
	layout layout
	// piece is what was printed and not laid out yet, body what was, in parts of
	// up to partBytes: a buffer that grows takes twice the memory and more, and so
	// does what go/format returns.
	piece bytes.Buffer
	body  [][]byte
	// foreign: somebody else has written a part of piece.
	foreign bool
	// unique: sets in the field that is printed are checked. octets: it is bytes in Go.
	unique, octets bool
	err            error
}

func (g *generator) newPrinter(source *schema.File, layout layout) *printer {
	return &printer{
		layout:    layout,
		generator: g,
		pkg:       source.Package,
		imports:   g.newImports(source),
		header:    HeaderOf(source),
	}
}

// P prints a line made of the parts.
func (p *printer) P(parts ...any) {
	if p.err != nil {
		return
	}
	for _, part := range parts {
		if text, ok := part.(string); ok {
			p.piece.WriteString(text)
		} else {
			fmt.Fprint(&p.piece, part)
		}
	}
	p.piece.WriteByte('\n')
	if p.piece.Len() > limits.GoDeclarationBytes {
		p.failTooLong()
	}
}

func (p *printer) failTooLong() {
	p.fail(fmt.Errorf("one declaration, or one group of constants, is too long (limit %d bytes)", limits.GoDeclarationBytes))
}

// fail makes the file fail and gives back memory. What is printed later is
// dropped.
func (p *printer) fail(err error) {
	p.err = cmp.Or(p.err, err)
	p.piece, p.body = bytes.Buffer{}, nil
}

// handshake prints what keeps the file from compiling with a runtime that is
// too old, whose package qualifies names.
func (p *printer) handshake(qualify func(name string) string) {
	p.P()
	p.doc("If this does not compile, the Fulmar in go.mod is older than the generator of\nthis file: update the former.")
	p.P("const _ = ", qualify("IsAtLeastVersion"+strings.ReplaceAll(RuntimeVersion, ".", "_")))
}

func (p *printer) doc(text string) {
	if p.err == nil {
		writeComment(&p.piece, text)
	}
}

// pieceBytes is how long pieces are at least, the last one apart. Formatting
// takes memory of 20 times the length; pieces of single declarations would take
// more time, because it has a fixed price as well.
const pieceBytes = 16 << 10

// endDeclaration says that a piece can end here.
func (p *printer) endDeclaration() {
	if p.piece.Len() >= pieceBytes {
		p.endPiece()
	}
}

func (p *printer) endPiece() {
	if p.piece.Len() == 0 {
		return
	}
	piece, err := p.layout(p.piece.Bytes())
	if p.foreign && err == nil {
		piece, err = settle(piece)
	}
	p.foreign = false
	p.piece.Reset()
	p.keep(piece)
	p.bytes += len(piece)
	switch {
	case err != nil:
		p.fail(fmt.Errorf("generated code is not valid Go: %w", err))
	case p.bytes > limits.GoBytes:
		p.fail(fmt.Errorf("too much code is generated in one run (limit %d bytes)", limits.GoBytes))
	}
}

// partBytes is how long the parts of a file are, but for the last one and those of longer
// declarations.
const partBytes = 256 << 10

// keep adds a copy of piece to the body.
func (p *printer) keep(piece []byte) {
	last := len(p.body) - 1
	if last < 0 || cap(p.body[last])-len(p.body[last]) < len(piece) {
		size := len(piece)
		if last >= 0 { // the first one may be all that there is
			size = max(size, partBytes)
		}
		p.body = append(p.body, make([]byte, 0, size))
		last++
	}
	p.body[last] = append(p.body[last], piece...)
}

// finish returns the parts of the file, nil if it has no declarations. It fails if that
// is not Go.
func (p *printer) finish() ([][]byte, error) {
	p.endPiece()
	if p.err != nil || len(p.body) == 0 {
		return nil, p.err
	}
	var head bytes.Buffer
	head.WriteString(p.header + "\n\n")
	writeComment(&head, p.documentation)
	head.WriteString("package " + p.pkg.Name + "\n\n")
	p.imports.write(&head)
	formatted, err := format.Source(head.Bytes())
	if err != nil {
		return nil, err
	}
	return slices.Insert(p.body, 0, formatted), nil
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

// commentText removes what is not text from a line: control characters, line
// breaks that Go does not see but editors may, marks that change the reading
// direction so that the code looks like something else, and what is not UTF-8.
func commentText(line string) string {
	return strings.TrimRight(strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return r
		case r == unicode.ReplacementChar, r == '\ufeff', r == '\u2028', r == '\u2029', unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return -1
		default:
			return r
		}
	}, line), " \t")
}

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
