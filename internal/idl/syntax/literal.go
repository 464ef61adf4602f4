package syntax

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// number reads everything that could belong to a number and looks at it as a
// whole, so that 12abc is one mistake and not two tokens.
func (l *lexer) number(t *token) {
	if c := l.peek(0); c == '+' || c == '-' {
		l.offset++
	}
	hex := l.peek(0) == '0' && l.peek(1)|0x20 == 'x'
	for {
		c := l.peek(0)
		sign := (c == '+' || c == '-') && l.source[l.offset-1]|0x20 == 'e' && !hex
		if !isNamePart(c) && c != '.' && !sign {
			break
		}
		l.offset++
	}
	word := l.source[t.start:l.offset]
	var err error
	if !hex && strings.ContainsAny(word, ".eE") {
		t.kind = tokenDouble
		t.double, err = strconv.ParseFloat(word, 64)
	} else {
		t.kind = tokenInt
		t.int, err = l.integer(t, word)
	}
	switch {
	case errors.Is(err, strconv.ErrRange):
		l.refuse(t, "number %s: does not fit 64 bits", clip(word))
	case err != nil:
		l.refuse(t, "number %s: malformed, expected a decimal, 0x, 0o or floating point number", clip(word))
	}
}

func (l *lexer) integer(t *token, word string) (int64, error) {
	sign, digits := "", word
	if word[0] == '+' || word[0] == '-' {
		sign, digits = word[:1], word[1:]
	}
	switch {
	case hasPrefixFold(digits, "0x"):
		return strconv.ParseInt(sign+digits[2:], 16, 64)
	case hasPrefixFold(digits, "0o"):
		return strconv.ParseInt(sign+digits[2:], 8, 64)
	}
	if digits[0] == '0' && len(strings.TrimLeft(digits, "0")) > 1 {
		l.problems.warningf(t.place, "number %s: read as decimal, as Apache Thrift does; write 0o for octal", clip(word))
	}
	return strconv.ParseInt(word, 10, 64)
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) > len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// text reads a string literal. A line break ends it, whatever it was meant to
// be: a forgotten quote must not swallow the rest of the file.
func (l *lexer) text(t *token) {
	t.kind = tokenText
	quoteMark := l.source[l.offset]
	l.offset++
	start := l.offset
	var unescaped strings.Builder
	copied := start // what lies between here and the offset is not in unescaped
	for {
		switch c := l.peek(0); {
		case c == quoteMark:
			t.text = l.source[start:l.offset]
			if copied > start {
				unescaped.WriteString(l.source[copied:l.offset])
				t.text = unescaped.String()
			}
			l.offset++
			return
		case c == '\n' || l.offset == len(l.source):
			l.refuse(t, "string: not closed, expected %c before the end of the line", quoteMark)
			return
		case c == '\\':
			unescaped.WriteString(l.source[copied:l.offset])
			l.escape(t, &unescaped)
			copied = l.offset
		default:
			l.offset++
		}
	}
}

const escapes = `r n t " ' \ xHH uHHHH`

// escape reads one escape sequence. It stops in front of a line break or the
// end, which text then reports.
func (l *lexer) escape(t *token, unescaped *strings.Builder) {
	start := l.offset
	l.offset++
	c := l.peek(0)
	if c == '\n' || c == 0 {
		return
	}
	_, size := utf8.DecodeRuneInString(l.source[l.offset:])
	l.offset += size
	switch c {
	case 'r':
		unescaped.WriteByte('\r')
	case 'n':
		unescaped.WriteByte('\n')
	case 't':
		unescaped.WriteByte('\t')
	case '"', '\'', '\\':
		unescaped.WriteByte(c)
	case 'x':
		if code, ok := l.hexDigits(t, start, 2); ok {
			unescaped.WriteByte(byte(code))
		}
	case 'u':
		if code, ok := l.hexDigits(t, start, 4); ok {
			l.codePoint(t, start, rune(code), unescaped)
		}
	default:
		l.refuseEscape(t, start, "escape %s: unknown, expected \\ and one of %s", quote(l.source[start:l.offset]), escapes)
	}
}

// refuseEscape reports an escape sequence that began at start.
func (l *lexer) refuseEscape(t *token, start int, format string, arguments ...any) {
	t.kind, t.reported = tokenBad, true
	l.problems.errorf(l.place(start), format, arguments...)
}

// codePoint writes the character of a \u escape, two of which may make up one
// character as in JSON.
func (l *lexer) codePoint(t *token, start int, code rune, unescaped *strings.Builder) {
	if utf16.IsSurrogate(code) {
		low := rune(0)
		if l.peek(0) == '\\' && l.peek(1) == 'u' {
			l.offset += len(`\u`)
			digits, _ := l.hexDigits(t, start, 4)
			low = rune(digits)
		}
		if code = utf16.DecodeRune(code, low); code == utf8.RuneError {
			l.refuseEscape(t, start, `escape: half of a surrogate pair, expected \uD800-\uDBFF and \uDC00-\uDFFF together`)
			return
		}
	}
	unescaped.WriteRune(code)
}

func (l *lexer) hexDigits(t *token, start, count int) (uint64, bool) {
	end := min(l.offset+count, len(l.source))
	code, err := strconv.ParseUint(l.source[l.offset:end], 16, 32)
	if err != nil || end-l.offset < count {
		l.refuseEscape(t, start, "escape: expected %d hexadecimal digits", count)
		return 0, false
	}
	l.offset = end
	return code, true
}
