package syntax

import (
	"bytes"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

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
// that fails costs only itself, and the one before it, which dropLast removes,
// if it looks like the rest of that. what describes a member in messages.
func (p *parser) members(closing byte, what string, member func() bool, dropLast func()) bool {
	around := p.brackets.state()
	for last := false; !p.takeMark(closing); {
		if p.atEndOfList() || closing == ')' && p.atMethod() {
			p.expected("%s or '%c'", what, closing)
			p.brackets.truncate(around.level - 1)
			return false
		}
		first := p.token
		if member() {
			last = true
			continue
		}
		if last && isRest(first) && p.separated != first.start {
			dropLast()
		}
		last = false
		if closing == ')' && p.atArguments() {
			p.brackets.truncate(around.level - 1)
			return false
		}
		p.skipMember(first.start, around)
		p.loseMember(first.start)
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

// isRest says that what failed, which begins with first, seems to be the rest of
// what stands before it. That then is not what was meant.
func isRest(first token) bool {
	return !first.firstOnLine || first.kind != tokenName && first.kind != tokenInt
}

// loseDeclaration notes what the text from first to the next token may declare.
// It need not be what it looks like: where a keyword is misspelled, any of its
// names may be the one that is declared.
func (p *parser) loseDeclaration(first token) {
	gaps := &p.file.Gaps
	switch keyword := first.kind == tokenName && isDeclarationKeyword(first.text); {
	case !keyword:
		gaps.Headers = true
		p.doubtDeclaration(first)
	case isHeaderKeyword(first.text):
		gaps.Headers = true
	case !p.named:
		gaps.Anything = true
	}
	p.searchNames(first.start, func(name string) bool { return true })
}

// doubtDeclaration deals with the last declaration when what follows it begins
// with first and is none: there are members behind a bracket that closes too
// early, or the whole is not what was meant.
func (p *parser) doubtDeclaration(first token) {
	last := len(p.file.Declarations) - 1
	if last < 0 {
		return
	}
	head := p.file.Declarations[last].Declared()
	head.Partial = true
	if isRest(first) {
		p.loseName(head.Name.Text)
		p.file.Declarations = p.file.Declarations[:last]
	}
}

// loseMember notes that a member from start to the next token could not be
// read. A declaration may stand in what was taken for it.
func (p *parser) loseMember(start int) {
	p.skipped++
	declared := false
	// What is inside of members that could not be read either was searched.
	p.searchNames(max(start, p.searched), func(name string) bool {
		known := declared
		declared = declared || isDeclarationKeyword(name)
		return known
	})
	p.searched = p.token.start
}

// searchNames adds the names between an offset and the next token that may be
// declared there.
func (p *parser) searchNames(from int, mayBeDeclared func(name string) bool) {
	gaps := &p.file.Gaps
	text := lexer{source: p.lexer.source[:max(from, p.token.start)], offset: from, problems: &problems{}}
	for t := text.scan(); t.kind != tokenEnd && !gaps.Anything; t = text.scan() {
		if t.kind == tokenName && mayBeDeclared(t.text) {
			p.loseName(t.text)
		}
	}
}

func (p *parser) loseName(name string) {
	gaps := &p.file.Gaps
	switch {
	case gaps.Names == nil:
		gaps.Names = map[string]bool{name: true}
	case len(gaps.Names) < limits.IDLLostNames:
		gaps.Names[name] = true
	case !gaps.Names[name]:
		gaps.Anything = true
	}
}
