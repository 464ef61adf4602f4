package syntax

import (
	"strings"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/idl/ast"
)

const declarationKeywords = "const, typedef, enum, struct, union, exception or service"

func isDeclarationKeyword(word string) bool {
	switch word {
	case "const", "typedef", "enum", "senum", "struct", "union", "exception", "service":
		return true
	}
	return isHeaderKeyword(word)
}

func isHeaderKeyword(word string) bool {
	switch word {
	case "namespace", "include", "cpp_include", "xsd_namespace":
		return true
	}
	return false
}

// isKeyword says that a type, a constant or a service cannot have this name.
// Fields, arguments, methods and enum values can: nothing refers to them where
// a keyword may stand.
func isKeyword(word string) bool {
	switch word {
	case "extends", "throws", "oneway", "async", "required", "optional", "void", "cpp_type",
		"xsd_all", "xsd_optional", "xsd_nillable", "xsd_attrs", "true", "false",
		"map", "list", "set", "slist":
		return true
	}
	return isDeclarationKeyword(word) || isBaseType(word)
}

func isBaseType(word string) bool {
	switch word {
	case "bool", "byte", "i8", "i16", "i32", "i64", "double", "string", "binary", "uuid":
		return true
	}
	return false
}

func (p *parser) document() {
	if first := p.token.trivia; first.detached.kind != commentNone {
		p.file.Doc = first.detached.text(p.lexer.source)
	} else if p.token.kind == tokenName && isHeaderKeyword(p.token.text) {
		p.file.Doc = first.doc.text(p.lexer.source)
	}
	for p.token.kind != tokenEnd {
		p.within = ""
		p.brackets.truncate(0)
		p.skipped, p.named = 0, false
		first := p.token
		if p.declaration() {
			p.separator()
			continue
		}
		if p.token.start == first.start {
			p.next()
		}
		p.skipDeclaration()
		p.loseDeclaration(first)
	}
}

// declaration reads one header or declaration.
func (p *parser) declaration() bool {
	p.node()
	keyword := p.token
	if keyword.kind != tokenName || !isDeclarationKeyword(keyword.text) {
		return p.expected("a declaration (%s)", declarationKeywords)
	}
	if isHeaderKeyword(keyword.text) && len(p.file.Declarations) > 0 {
		p.refuse("%s: stands below a declaration, expected all headers above the first one", keyword.text)
	}
	switch keyword.text {
	case "cpp_include":
		p.ignore(keyword.text, onlyCPP)
	case "xsd_namespace":
		p.ignore(keyword.text, onlyXSD)
	}
	p.within = keyword.text
	p.next()
	head := ast.Head{Doc: keyword.trivia.doc.text(p.lexer.source)}
	switch keyword.text {
	case "namespace":
		return p.namespace()
	case "include", "cpp_include", "xsd_namespace":
		return p.include(keyword.text)
	case "const":
		return p.constant(head)
	case "typedef":
		return p.typedef(head)
	case "enum":
		return p.enum(head)
	case "senum":
		p.problems.warningf(keyword.place, "senum: deprecated, read as a typedef of string")
		return p.senum(head)
	case "struct":
		return p.structure(schema.CategoryStruct, head)
	case "union":
		return p.structure(schema.CategoryUnion, head)
	case "exception":
		return p.structure(schema.CategoryException, head)
	default:
		return p.service(head)
	}
}

// finish reads the annotations of a declaration and adds it to the file.
func (p *parser) finish(declaration ast.Declaration) (ok bool) {
	head := declaration.Declared()
	head.Partial = p.skipped > 0
	if head.Annotations, ok = p.annotations(); ok {
		p.file.Declarations = append(p.file.Declarations, declaration)
	}
	return ok
}

// include reads what names a file. Only that of another definition is kept.
func (p *parser) include(keyword string) bool {
	if p.token.kind != tokenText {
		return p.expected("a string")
	}
	if keyword == "include" {
		p.file.Includes = append(p.file.Includes, ast.Include{Path: p.token.text, Place: p.token.place})
	}
	p.next()
	return true
}

func (p *parser) namespace() bool {
	language := ast.Name{Text: p.token.text, Place: p.token.place}
	switch {
	case p.isMark('*'):
		language.Text = "*"
	case p.token.kind != tokenName || p.atLineKeyword():
		return p.expected("a language or '*'")
	}
	p.next()
	p.within += " " + language.Text
	value := ast.Name{Text: p.token.text, Place: p.token.place}
	if !p.namespaceValue() {
		return false
	}
	p.file.Namespaces = append(p.file.Namespaces, ast.Namespace{Language: language, Value: value})
	annotations, ok := p.annotations()
	p.file.Namespaces[len(p.file.Namespaces)-1].Annotations = annotations
	if !ok {
		return false
	}
	fits := p.token.kind == tokenEnd || p.token.firstOnLine || p.isMark(',') || p.isMark(';') || isDeclarationKeyword(p.token.text)
	return fits || p.expected("nothing behind %s", clip(value.Text))
}

// namespaceValue passes the name of a namespace. What was meant as one, such as
// acme/orders, is taken as a whole.
func (p *parser) namespaceValue() bool {
	const expected = "a name such as acme.orders (letters, digits and underscores, with dots between)"
	end := p.token.start
	if p.token.kind == tokenName || p.token.kind == tokenBad {
		end = p.lexer.wordEnd(p.token.start)
	}
	word := p.lexer.source[p.token.start:end]
	switch {
	case p.token.kind == tokenText, p.token.kind == tokenName && word == p.token.text && !p.atLineKeyword():
		p.next()
		return true
	case word == "" || p.atLineKeyword():
		return p.expected(expected)
	}
	p.refuse("expected %s, found %s", expected, describeWord(word))
	for p.token.kind != tokenEnd && p.token.start < end {
		p.next()
	}
	return false
}

// newName reads the name of a type, constant or service.
func (p *parser) newName(head *ast.Head) bool {
	if p.token.kind == tokenName && isKeyword(p.token.text) {
		return p.refuse("expected a name, found the keyword '%s'", p.token.text)
	}
	if !p.memberName(head, "a name") {
		return false
	}
	p.within += " " + head.Name.Text
	p.named = true
	return true
}

// memberName reads the name of a field, argument, method or enum value.
func (p *parser) memberName(head *ast.Head, what string) bool {
	if p.token.kind != tokenName {
		return p.expected("%s", what)
	}
	if strings.Contains(p.token.text, ".") {
		return p.expected("%s without dots", what)
	}
	head.Name = ast.Name{Text: p.token.text, Place: p.token.place}
	p.next()
	return true
}

// endMember reads what may stand behind every member: annotations, a separator
// and, if there is no documentation above it, a comment on the same line.
func (p *parser) endMember(head *ast.Head) (ok bool) {
	if head.Annotations, ok = p.annotations(); !ok {
		return false
	}
	p.separator()
	if head.Doc == "" {
		head.Doc = p.token.trivia.trailing.text(p.lexer.source)
	}
	return true
}

func (p *parser) annotations() (list []ast.Annotation, ok bool) {
	if !p.takeMark('(') {
		return nil, true
	}
	ok = p.items(')', "an annotation", func() bool {
		list = append(list, ast.Annotation{})
		return p.annotation(&list[len(list)-1])
	})
	return list, ok
}

func (p *parser) annotation(annotation *ast.Annotation) bool {
	p.node()
	if p.token.kind != tokenName {
		return p.expected("the name of an annotation")
	}
	annotation.Key, annotation.Value = ast.Name{Text: p.token.text, Place: p.token.place}, "1"
	p.next()
	if p.takeMark('=') {
		if p.token.kind != tokenText {
			return p.expected("a string as value of annotation %s", annotation.Key.Text)
		}
		annotation.Value = p.token.text
		p.next()
	}
	p.separator()
	return true
}

func (p *parser) constant(head ast.Head) bool {
	constant := &ast.Constant{Head: head}
	var ok bool
	if constant.Type, ok = p.typeUse(0); !ok {
		return false
	}
	p.warnOfByteLists(constant.Type)
	if !p.newName(&constant.Head) || !p.expectMark('=') {
		return false
	}
	constant.Value = new(ast.Value)
	return p.value(constant.Value, 0) && p.finish(constant)
}

func (p *parser) typedef(head ast.Head) bool {
	typedef := &ast.Typedef{Head: head}
	var ok bool
	if typedef.Type, ok = p.typeUse(0); !ok {
		return false
	}
	p.warnOfByteLists(typedef.Type)
	return p.newName(&typedef.Head) && p.finish(typedef)
}

func (p *parser) enum(head ast.Head) bool {
	enum := &ast.Enum{Head: head}
	if !p.newName(&enum.Head) || !p.expectMark('{') {
		return false
	}
	ok := p.members('}', "an enum value", func() bool {
		p.node()
		value := ast.EnumValue{Head: ast.Head{Doc: p.token.trivia.doc.text(p.lexer.source)}}
		if !p.memberName(&value.Head, "the name of an enum value") {
			return false
		}
		if p.takeMark('=') {
			if p.token.kind != tokenInt {
				return p.expected("an integer as value of %s", value.Name.Text)
			}
			value.Number, value.HasNumber, value.NumberPlace = p.token.int, true, p.token.place
			p.next()
		}
		if !p.endMember(&value.Head) {
			return false
		}
		enum.Values = append(enum.Values, value)
		return true
	}, func() { enum.Values = enum.Values[:len(enum.Values)-1] })
	return ok && p.finish(enum)
}

// senum reads the predecessor of enums: a string that is meant to be one of a
// list.
func (p *parser) senum(head ast.Head) bool {
	typedef := &ast.Typedef{Head: head}
	if !p.newName(&typedef.Head) || !p.expectMark('{') {
		return false
	}
	typedef.Type = &ast.Type{Name: "string", Place: typedef.Name.Place}
	ok := p.members('}', "a string", func() bool {
		if p.token.kind != tokenText {
			return p.expected("a string")
		}
		p.next()
		p.separator()
		return true
	}, func() {})
	return ok && p.finish(typedef)
}

func (p *parser) structure(category schema.Category, head ast.Head) bool {
	structure := &ast.Struct{Head: head, Category: category}
	if !p.newName(&structure.Head) {
		return false
	}
	p.skipWord("xsd_all", onlyXSD)
	if !p.expectMark('{') {
		return false
	}
	var ok bool
	structure.Fields, ok = p.fields('}', 0)
	return ok && p.finish(structure)
}

func (p *parser) service(head ast.Head) bool {
	service := &ast.Service{Head: head}
	if !p.newName(&service.Head) {
		return false
	}
	if p.takeWord("extends") {
		if p.token.kind != tokenName || isKeyword(p.token.text) {
			return p.expected("the name of a service")
		}
		service.Extends = ast.Name{Text: p.token.text, Place: p.token.place}
		p.next()
	}
	if !p.expectMark('{') {
		return false
	}
	ok := p.members('}', "a method", func() bool {
		method := ast.Method{}
		if !p.method(&method) {
			return false
		}
		service.Methods = append(service.Methods, method)
		return true
	}, func() { service.Methods = service.Methods[:len(service.Methods)-1] })
	return ok && p.finish(service)
}

func (p *parser) method(method *ast.Method) (ok bool) {
	p.node()
	skipped := p.skipped
	method.Doc = p.token.trivia.doc.text(p.lexer.source)
	if p.isWord("async") {
		p.problems.warningf(p.token.place, "async: deprecated, read as oneway")
	}
	method.Oneway = p.takeWord("oneway") || p.takeWord("async")
	method.ResultPlace = p.token.place
	if !p.takeWord("void") {
		if method.Result, ok = p.typeUse(0); !ok {
			return false
		}
		p.warnOfByteLists(method.Result)
	}
	if !p.memberName(&method.Head, "the name of a method") || !p.expectMark('(') {
		return false
	}
	if method.Arguments, ok = p.fields(')', 0); !ok {
		return false
	}
	if p.takeWord("throws") {
		if !p.expectMark('(') {
			return false
		}
		if method.Throws, ok = p.fields(')', 0); !ok {
			return false
		}
	}
	method.Partial = p.skipped > skipped
	return p.endMember(&method.Head)
}
