package syntax

import "bytes"

// brackets are the brackets that the parser has passed and that are still open,
// as the marks that close them.
type brackets struct {
	closers []byte
	// count of each closer, so that one that closes nothing is found without a
	// search: hostile input has millions of both.
	count [256]int
}

// bracketState tells how many brackets are open, and how many of them are
// braces.
type bracketState struct{ level, braces int }

func (b *brackets) state() bracketState {
	return bracketState{level: len(b.closers), braces: b.count['}']}
}

// pass takes note of a mark that the parser leaves behind. A closer also closes
// what was forgotten inside of it; one that closes nothing is no bracket.
func (b *brackets) pass(mark byte) {
	switch mark {
	case '{':
		b.open('}')
	case '(':
		b.open(')')
	case '[':
		b.open(']')
	default:
		if level := b.closes(mark); level >= 0 {
			b.truncate(level)
		}
	}
}

func (b *brackets) open(closer byte) {
	b.closers = append(b.closers, closer)
	b.count[closer]++
}

// closes returns how many brackets remain open behind a mark, -1 if the mark
// closes none.
func (b *brackets) closes(mark byte) int {
	if b.count[mark] == 0 {
		return -1
	}
	return bytes.LastIndexByte(b.closers, mark)
}

func (b *brackets) truncate(level int) {
	for len(b.closers) > level {
		b.count[b.closers[len(b.closers)-1]]--
		b.closers = b.closers[:len(b.closers)-1]
	}
}

// members reads members until the closing mark, which it consumes. A member
// that fails costs only itself. what describes a member in messages.
func (p *parser) members(closing byte, what string, member func() bool) bool {
	around := p.brackets.state()
	for !p.takeMark(closing) {
		if p.atEndOfList() || closing == ')' && p.atMethod() {
			p.expected("%s or '%c'", what, closing)
			p.brackets.truncate(around.level - 1)
			return false
		}
		start := p.token.start
		if member() {
			continue
		}
		if closing == ')' && p.atArguments() {
			p.brackets.truncate(around.level - 1)
			return false
		}
		p.skipMember(start, around)
	}
	return true
}

// items reads the parts of a member until the closing mark, which it consumes.
// One that fails makes the member fail: what looked like its parts may be
// something else.
func (p *parser) items(closing byte, what string, item func() bool) bool {
	for !p.takeMark(closing) {
		if p.atEndOfList() {
			return p.expected("%s or '%c'", what, closing)
		}
		if !item() {
			return false
		}
	}
	return true
}

// atEndOfList says that a list that is still open was not closed: what is next
// cannot be a member of any list.
func (p *parser) atEndOfList() bool {
	return p.token.kind == tokenEnd || p.isClosing() && p.brackets.closes(p.token.mark) >= 0 || p.atDeclaration()
}

func (p *parser) isClosing() bool { return p.isMark('}') || p.isMark(')') || p.isMark(']') }

// atMethod says that the next line is a method, which cannot be inside of
// arguments, so those were not closed.
func (p *parser) atMethod() bool {
	word := p.isWord("void") || p.isWord("oneway") || p.isWord("async")
	return word && p.token.firstOnLine && p.ahead.kind == tokenName && !p.ahead.firstOnLine
}

// atArguments says the same of a method whose result looked like the type of an
// argument.
func (p *parser) atArguments() bool {
	return p.isMark('(') && (p.ahead.kind == tokenInt || p.ahead.kind == tokenMark && p.ahead.mark == ')')
}

// skipMember moves to where the next member of a list may begin, behind the one
// that started at start. around are the brackets around the members.
func (p *parser) skipMember(start int, around bracketState) {
	for p.token.kind != tokenEnd && !p.atDeclaration() {
		if closed := p.brackets.closes(p.token.mark); p.isClosing() && closed >= 0 && closed < around.level {
			break
		}
		if p.token.start != start && p.startsMember(around) {
			break
		}
		p.next()
	}
	p.brackets.truncate(around.level)
}

// startsMember guesses whether a member begins here: where a line or a field id
// does. A comma is no sign of it, because it may be one between the parts of a
// member whose opening bracket is missing. Inside of brackets that were opened
// by the member before it, only a line with a field id counts, and not inside of
// braces, where it is more likely to be a key.
func (p *parser) startsMember(around bracketState) bool {
	now := p.brackets.state()
	fieldID := p.token.kind == tokenInt && p.ahead.kind == tokenMark && p.ahead.mark == ':'
	if now.level <= around.level {
		return p.token.firstOnLine || fieldID
	}
	return p.token.firstOnLine && fieldID && now.braces <= around.braces
}

// atDeclaration says that a declaration begins here, even if a bracket is still
// open: a keyword of declarations begins a line and a name follows it there.
// Members may have such names too, but never in this place.
func (p *parser) atDeclaration() bool {
	return p.atLineKeyword() && !p.ahead.firstOnLine &&
		(p.ahead.kind == tokenName || p.ahead.kind == tokenText || p.isWord("namespace") && p.ahead.mark == '*')
}

// atLineKeyword says that a keyword of declarations begins a line.
func (p *parser) atLineKeyword() bool {
	return p.token.kind == tokenName && p.token.firstOnLine && isDeclarationKeyword(p.token.text)
}

// skipDeclaration moves to where the next declaration may begin.
func (p *parser) skipDeclaration() {
	for p.token.kind != tokenEnd && !p.atLineKeyword() {
		p.next()
	}
}
