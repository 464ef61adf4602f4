// Package validate is a plugin of fulmar gen that writes methods Validate for
// structs, and servers that validate arguments, from annotations of fields and
// arguments:
//
//	validate.required = "true"  optional fields are there, others are not empty
//	validate.min, validate.max  numbers
//	validate.min_length, validate.max_length
//	                            characters of a string, bytes of a binary, elements
//	validate.pattern            a regular expression that a string matches somewhere
//
// A struct gets a method if it has such fields, or holds structs that have. Maps
// with keys that are structs or containers are not looked into.
package validate

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/fulmar-rpc/fulmar/gen"
	"github.com/fulmar-rpc/fulmar/gen/schema"
)

type plugin struct{}

var _ gen.Plugin = plugin{}

// New returns the plugin, which has no options.
func New(options map[string]string) (gen.Plugin, error) {
	if len(options) > 0 {
		return nil, fmt.Errorf("there are no options, got %d", len(options))
	}
	return plugin{}, nil
}

func (plugin) Name() string { return "validate" }

func (plugin) Transform(*gen.Model) error { return nil }

func (plugin) Generate(output *gen.Output) error {
	v := &validator{reader: reader{output}, rules: map[*schema.Field]rules{}, validated: map[*schema.Struct]bool{}, taken: map[string]bool{}}
	program := output.Program()
	for _, file := range program.Files {
		v.readFile(file)
	}
	v.spread(program)
	for _, file := range program.Files {
		for _, s := range file.Structs {
			if v.validated[s] {
				v.structure(s)
			}
		}
		for _, service := range file.Services {
			v.service(service)
		}
	}
	return nil
}

// validator is one run.
type validator struct {
	reader
	// rules are those of fields and arguments that have some.
	rules map[*schema.Field]rules
	// validated are the structs that get a method.
	validated map[*schema.Struct]bool
	// taken are the names of patterns, behind the paths of their packages.
	taken map[string]bool
}

// readFile reads the annotations of everything in a definition.
func (v *validator) readFile(file *schema.File) {
	for _, typedef := range file.Typedefs {
		v.misplaced(typedef.Annotations, "a typedef")
	}
	for _, enum := range file.Enums {
		v.misplaced(enum.Annotations, "an enum")
	}
	for _, s := range file.Structs {
		v.misplaced(s.Annotations, "a "+s.Category.String())
		for _, field := range s.Fields {
			optional := s.Category == schema.CategoryUnion || field.Requiredness == schema.RequirednessOptional
			if found := v.field(field, optional); !found.empty() {
				v.rules[field] = found
				v.validated[s] = true
			}
		}
	}
	for _, service := range file.Services {
		v.misplaced(service.Annotations, "a service")
		for _, method := range service.Methods {
			v.misplaced(method.Annotations, "a method")
			for _, argument := range method.Arguments {
				if found := v.field(argument, false); !found.empty() {
					v.rules[argument] = found
				}
			}
		}
	}
}

// spread validates structs that hold validated ones, until nothing more follows.
// A struct is looked at again only when one of those that it holds has changed.
func (v *validator) spread(program *schema.Program) {
	holders := map[*schema.Struct][]*schema.Struct{}
	var changed []*schema.Struct
	for _, file := range program.Files {
		for _, s := range file.Structs {
			for _, field := range s.Fields {
				if held := structIn(field.Type); held != nil {
					holders[held] = append(holders[held], s)
				}
			}
			if v.validated[s] {
				changed = append(changed, s)
			}
		}
	}
	for len(changed) > 0 {
		last := changed[len(changed)-1]
		changed = changed[:len(changed)-1]
		for _, holder := range holders[last] {
			if !v.validated[holder] {
				v.validated[holder] = true
				changed = append(changed, holder)
			}
		}
	}
}

// structIn returns the struct that a value of the type is or holds and that can
// be looked at, or nil.
func structIn(t *schema.Type) *schema.Struct {
	switch t.Kind {
	case schema.KindStruct:
		return t.Struct
	case schema.KindList, schema.KindSet:
		return structIn(t.Element)
	case schema.KindMap:
		if simpleKey(t.Key) {
			return structIn(t.Element)
		}
	}
	return nil
}

// simpleKey says that a map with such keys is one in Go too.
func simpleKey(t *schema.Type) bool {
	return t.Kind != schema.KindStruct && t.Kind != schema.KindList && t.Kind != schema.KindSet && t.Kind != schema.KindMap
}

// code is what is printed for a struct or a service.
type code struct {
	*validator
	text strings.Builder
	// patterns are declarations in front of the text.
	patterns strings.Builder
	// owner begins the names of patterns, which are declared in pkg.
	owner string
	pkg   *schema.Package
	// fail prints the return of an error whose text is the rest of a call of
	// fmt.Errorf.
	fail func(call string) string
	// loops numbers the variables of loops.
	loops int
}

func (c *code) p(format string, arguments ...any) { fmt.Fprintf(&c.text, format+"\n", arguments...) }

func imports() []schema.Import {
	return []schema.Import{{Name: "regexp", Path: "regexp"}, {Name: "utf8", Path: "unicode/utf8"}}
}

// structure prints the method of a struct.
func (v *validator) structure(s *schema.Struct) {
	c := &code{validator: v, owner: s.GoName, pkg: s.File.Package, fail: func(call string) string { return "return fmt.Errorf(" + call + ")" }}
	c.p("// Validate returns an error that says what the definition does not allow of s,\n// the first thing of it. A nil %s is valid.", s.GoName)
	c.p("func (s *%s) Validate() error {\nif s == nil {\nreturn nil\n}", s.GoName)
	for _, field := range s.Fields {
		c.member(field)
	}
	c.p("return nil\n}")
	v.output.AfterStruct(s, c.patterns.String()+c.text.String(), imports()...)
}

// member checks a field of the struct s.
func (c *code) member(field *schema.Field) {
	rules := c.rules[field]
	if rules.empty() && !c.descends(field.Type) {
		return
	}
	expression := "s." + field.GoName
	missing := c.fail(strconv.Quote(path(field.Name) + ": is missing (validate.required)"))
	switch field.GoPresence {
	case schema.PresenceOpt:
		c.p("if value, set := %s.Get(); set {", expression)
		c.value(field, rules, "value")
		c.absent(rules, missing)
		return
	case schema.PresenceNil:
		c.p("if %s != nil {", expression)
		c.value(field, rules, expression)
		c.absent(rules, missing)
		return
	case schema.PresencePointer:
		c.p("if %s != nil {", expression)
		if field.Type.Kind != schema.KindStruct {
			expression = "*" + expression
		}
		c.value(field, rules, expression)
		c.absent(rules, missing)
		return
	}
	c.always(field, rules, expression)
}

// absent ends the block for a field that is there.
func (c *code) absent(rules rules, missing string) {
	if rules.required {
		c.p("} else {\n%s", missing)
	}
	c.p("}")
}

// always checks something that cannot be absent: it is required not to be empty.
func (c *code) always(field *schema.Field, rules rules, expression string) {
	if rules.required {
		c.p("if len(%s) == 0 {\n%s\n}", expression, c.fail(strconv.Quote(path(field.Name)+": is empty (validate.required)")))
	}
	c.value(field, rules, expression)
}

// path is the name of a field in a format.
func path(name string) string { return strings.ReplaceAll(name, "%", "%%") }

// descends says that a value of the type holds something that has a method.
func (c *code) descends(t *schema.Type) bool {
	held := structIn(t)
	return held != nil && c.validated[held]
}

// value checks a value that is there.
func (c *code) value(field *schema.Field, rules rules, expression string) {
	refuse := func(condition, shown, verb, problem, key, bound string) {
		c.p("if %s {\n%s\n}", condition, c.fail(strconv.Quote(path(field.Name)+": "+verb+" "+problem+" "+bound+" ("+key+")")+", "+shown))
	}
	below, above := expression+" < "+rules.min, expression+" > "+rules.max
	if field.Type.Kind == schema.KindDouble {
		// NaN is neither.
		below, above = "!("+expression+" >= "+rules.min+")", "!("+expression+" <= "+rules.max+")"
	}
	if rules.min != "" {
		refuse(below, expression, "%v", "is not at least", keyMin, rules.min)
	}
	if rules.max != "" {
		refuse(above, expression, "%v", "is not at most", keyMax, rules.max)
	}
	length, unit := "len("+expression+")", "elements are"
	switch field.Type.Kind {
	case schema.KindString:
		if _, own := field.Annotations.Get("go.type"); own {
			expression = "string(" + expression + ")"
		}
		length, unit = "utf8.RuneCountInString("+expression+")", "characters are"
	case schema.KindBinary:
		unit = "bytes are"
	case schema.KindList, schema.KindSet:
		if field.GoType == "[]byte" { // which go.type makes of lists of i8
			unit = "bytes are"
		}
	}
	if rules.minLength != "" && rules.minLength != "0" {
		refuse(length+" < "+rules.minLength, length, "%d", unit+" not at least", keyMinLength, rules.minLength)
	}
	if rules.maxLength != "" {
		refuse(length+" > "+rules.maxLength, length, "%d", unit+" not at most", keyMaxLength, rules.maxLength)
	}
	if rules.pattern != "" {
		variable := c.claim("pattern" + c.owner + field.GoName)
		fmt.Fprintf(&c.patterns, "// %s is what the definition says that %s looks like.\nvar %s = regexp.MustCompile(%s)\n\n", variable, path(field.Name), variable, strconv.Quote(rules.pattern))
		c.p("if !%s.MatchString(%s) {\n%s\n}", variable, expression, c.fail(strconv.Quote(path(field.Name)+": %.80q does not match %s (validate.pattern)")+", "+expression+", "+variable))
	}
	if c.descends(field.Type) {
		c.descend(field.Type, expression, path(field.Name), "")
	}
}

// claim takes a name of the package, with underscores behind it until it is free: BC of A is
// called as C of AB.
func (c *code) claim(name string) string {
	for c.taken[c.pkg.Path+"."+name] {
		name += "_"
	}
	c.taken[c.pkg.Path+"."+name] = true
	return name
}

// descend calls the methods of structs in a value. Where is a format for how the
// value is reached, and keys are its arguments.
func (c *code) descend(t *schema.Type, expression, where, keys string) {
	switch t.Kind {
	case schema.KindStruct:
		c.p("if err := %s.Validate(); err != nil {\n%s\n}", expression, c.fail(strconv.Quote(where+".%w")+keys+", err"))
	case schema.KindList, schema.KindSet:
		c.loops++
		index := fmt.Sprintf("i%d", c.loops)
		c.p("for %s := range %s {", index, expression)
		c.descend(t.Element, expression+"["+index+"]", where+"[%d]", keys+", "+index)
		c.p("}")
	case schema.KindMap:
		c.loops++
		key, element := fmt.Sprintf("key%d", c.loops), fmt.Sprintf("element%d", c.loops)
		verb := "[%v]"
		if t.Key.Kind == schema.KindString || t.Key.Kind == schema.KindBinary {
			verb = "[%.80q]"
		}
		c.p("for %s, %s := range %s {", key, element, expression)
		if t.Element.Kind == schema.KindStruct { // nil is for who writes it to refuse
			c.p("if %s == nil {\ncontinue\n}", element)
		}
		c.descend(t.Element, element, where+verb, keys+", "+key)
		c.p("}")
	}
}

// service prints a server that validates arguments and then calls another, if
// there is something to validate.
func (v *validator) service(service *schema.Service) {
	name := "validated" + service.GoServer
	c := &code{validator: v, owner: service.GoName, pkg: service.File.Package}
	c.p("// Validated%s returns a server that refuses arguments that the definition does\n// not allow, with the code InvalidArgument, and calls server with the others.", service.GoServer)
	c.p("func Validated%s(server %s) %s { return %s{server} }\n", service.GoServer, service.GoServer, service.GoServer, name)
	c.p("type %s struct{ %s }", name, service.GoServer)
	validated := 0
	for _, method := range service.GoMethods {
		if v.validates(method.Method) {
			c.method(name, service.GoServer, method)
			validated++
		}
	}
	// Servers without arguments to validate would only be in the way.
	if validated > 0 {
		v.output.AfterService(service, c.patterns.String()+c.text.String(), imports()...)
	}
}

// validates reports whether calls of a method are refused for their arguments. Messages of
// streams are the handler's to validate: it may want to go on behind one that is wrong.
func (v *validator) validates(method *schema.Method) bool {
	for _, annotation := range method.Annotations {
		if annotation.Key == "streaming.mode" && annotation.Value != "unary" {
			return false
		}
	}
	for _, argument := range method.Arguments {
		if held := structIn(argument.Type); !v.rules[argument].empty() || held != nil && v.validated[held] {
			return true
		}
	}
	return false
}

func (c *code) method(name, server string, method schema.GoMethod) {
	c.owner = name + method.Name
	parameters, arguments := "ctx context.Context", "ctx"
	for _, parameter := range method.Parameters {
		parameters += ", " + parameterName(parameter) + " " + parameter.Type
		arguments += ", " + parameterName(parameter)
	}
	results, before := "error", ""
	if method.Result != "" {
		results, before = "(result "+method.Result+", err error)", "result, "
	}
	c.fail = func(call string) string {
		return "return " + before + "fulmar.Errorf(fulmar.InvalidArgument, " + call + ")"
	}
	c.p("\nfunc (validated %s) %s(%s) %s {", name, method.Name, parameters, results)
	for i, argument := range method.Method.Arguments {
		parameter := method.Parameters[i]
		switch rules := c.rules[argument]; {
		case parameter.View && c.descends(argument.Type):
			c.viewed(argument, parameterName(parameter))
		case !rules.empty() || c.descends(argument.Type):
			c.always(argument, rules, parameterName(parameter))
		}
	}
	c.p("return validated.%s.%s(%s)\n}", server, method.Name, arguments)
}

// viewed checks an argument that is a view, by the method of the struct: views have none,
// because most of a message would have to be read for it anyway.
func (c *code) viewed(argument *schema.Field, expression string) {
	c.p("{\nheld, err := %s.Struct()\nif err != nil {\n%s\n}", expression, c.fail(strconv.Quote(path(argument.Name)+": %w")+", err"))
	c.descend(argument.Type, "held", path(argument.Name), "")
	c.p("}")
}

// parameterName keeps parameters apart from the receiver and what functions of
// the text are called.
func parameterName(parameter schema.GoParameter) string {
	if name := parameter.Name; name == "validated" || name == "result" || name == "regexp" || name == "utf8" || variable.MatchString(name) {
		return name + "_"
	}
	return parameter.Name
}

// variable is what loops call their variables.
var variable = regexp.MustCompile(`^(i|key|element)[0-9]+$`)
