package emit

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fulmar-rpc/fulmar/gen/schema"
)

// rpc prints the file with the services of a definition.
func (p *printer) rpc(source *schema.File) {
	if len(source.Services) == 0 {
		return
	}
	p.handshake(p.imports.runtime)
	for _, service := range source.Services {
		for _, declare := range []func(*schema.Service){p.serviceNames, p.serverInterface, p.registration, p.clientInterface, p.client, p.serviceDesc} {
			declare(service)
			p.endDeclaration()
		}
		for _, method := range service.Methods {
			if !hasRecords(method) {
				continue
			}
			p.declareArguments(method)
			if !method.Oneway {
				p.declareResult(method)
				p.replyError(method)
			}
			p.endDeclaration()
		}
		p.insert(AfterService, service)
	}
}

// fullName is how messages and comments call a method.
func fullName(method *schema.Method) string { return method.Service.Name + "." + method.Name }

// serviceMethods returns what a service can do, inherited methods first.
func serviceMethods(service *schema.Service) []*schema.Method {
	return append(inheritedMethods(service), service.Methods...)
}

// serviceNames prints the names by which interceptors know the service and its
// methods. They are constants so that a name that the definition no longer has
// does not compile. Descriptors use them too, so the two cannot differ.
func (p *printer) serviceNames(service *schema.Service) {
	p.P()
	p.doc(sentence("The names of the service ", service.Name, " and of what it can do, as fulmar.OnlyFor takes them."))
	p.P("const (")
	name := serviceConstant(service.GoName)
	p.doc(sentence(name, " is the name of the service ", service.Name, "."))
	p.P(name, " = ", strconv.Quote(service.Name))
	for _, method := range serviceMethods(service) {
		name := methodConstant(service.GoName, method.GoName)
		origin := ""
		if method.Service != service {
			origin = ", inherited from " + method.Service.Name
		}
		p.doc(sentence(name, " is the full name of its method ", method.Name, origin, "."))
		p.P(name, " = ", strconv.Quote(service.Name+separator(service)+method.Name))
	}
	p.P(")")
}

func (p *printer) serverInterface(service *schema.Service) {
	name := serverName(service.GoName)
	p.P()
	p.doc(withDeprecation(paragraphs(sentence(name, " is what a server of the service ", service.Name, " does."), service.Doc), service.Annotations))
	p.P("type ", name, " interface {")
	if parent := service.Extends; parent != nil {
		p.P(p.imports.generated(parent.File.Package, serverName(parent.GoName)))
	}
	for _, method := range service.Methods {
		p.doc(withDeprecation(method.Doc, method.Annotations))
		p.P(p.serverSignature(method))
	}
	p.P("}")
	if p.options.Kitex {
		p.kitexHandler(service)
	}
}

func (p *printer) registration(service *schema.Service) {
	name := registerName(service.GoName)
	p.P()
	p.doc(sentence(name, " makes implementation answer the calls of the service ", service.Name, "."))
	p.P("func ", name, "(registrar ", p.imports.runtime("Registrar"), ", implementation ", serverName(service.GoName), ") {")
	p.P("registrar.RegisterService(", descName(service.GoName), ", implementation)")
	p.P("}")
}

func (p *printer) clientInterface(service *schema.Service) {
	name := clientName(service.GoName)
	p.P()
	p.doc(withDeprecation(paragraphs(sentence(name, " calls the service ", service.Name, "."), service.Doc), service.Annotations))
	p.P("type ", name, " interface {")
	if parent := service.Extends; parent != nil {
		p.P(p.imports.generated(parent.File.Package, clientName(parent.GoName)))
	}
	for _, method := range service.Methods {
		p.doc(withDeprecation(method.Doc, method.Annotations))
		p.P(p.clientSignature(method))
	}
	p.P("}")
}

// client prints the type behind the client interface.
func (p *printer) client(service *schema.Service) {
	typeName := clientTypeName(service.GoName)
	p.P()
	p.doc(sentence(newClientName(service.GoName), " returns a client that calls through caller, which usually is a *fulmar.Client."))
	p.P("func ", newClientName(service.GoName), "(caller ", p.imports.runtime("Caller"), ") ", clientName(service.GoName), " {")
	p.P("return &", typeName, "{caller: caller}")
	p.P("}")
	p.P()
	p.P("type ", typeName, " struct{ caller ", p.imports.runtime("Caller"), " }")
	for _, method := range serviceMethods(service) {
		p.clientMethod(service, method)
		p.endDeclaration()
	}
}

func (p *printer) clientMethod(service *schema.Service, method *schema.Method) {
	if isStream(method) {
		p.streamClientMethod(service, method)
		return
	}
	if inProtobuf(service) {
		p.messageClientMethod(service, method)
		return
	}
	var fields []string
	names := p.parameterNames(method)
	for i, argument := range method.Arguments {
		fields = append(fields, argument.GoName+": "+names[i])
	}
	request := "args"
	call := func(result string) string {
		return "c.caller.Call(ctx, " + methodVariable(service.GoName, method.GoName) + ", &" + request + ", " + result + ", options...)"
	}
	p.P()
	p.P("func (c *", clientTypeName(service.GoName), ") ", p.clientSignature(method), " {")
	if method.Oneway {
		p.P("args := ", p.argumentsType(method), literal(fields))
		p.P("return ", call("nil"))
		p.P("}")
		return
	}
	// Both are handed on, so they are allocated: together that takes half as long.
	p.P("var both struct {")
	p.P("args ", p.argumentsType(method))
	p.P("result ", p.resultType(method))
	p.P("}")
	if len(fields) > 0 {
		p.P("both.args = ", p.argumentsType(method), literal(fields))
	}
	request = "both.args"
	if method.Result.Kind == schema.KindVoid {
		p.P("return ", call("&both.result"))
		p.P("}")
		return
	}
	success := "both.result.Success"
	if optionalForm(method.Result) == formOpt {
		success += ".Or(" + p.zeroValue(method.Result) + ")"
	}
	if p.returnsView(method) {
		success = "*" + success
	}
	// A Caller has asked ReplyError already.
	p.P("if err := ", call("&both.result"), "; err != nil {")
	p.P("return ", p.zeroResult(method), ", err")
	p.P("}")
	p.P("return ", success, ", nil")
	p.P("}")
}

func (p *printer) serviceDesc(service *schema.Service) {
	methods := serviceMethods(service)
	p.P()
	p.doc(sentence(descName(service.GoName), " describes the service ", service.Name, " to the runtime."))
	p.P("var ", descName(service.GoName), " = &", p.imports.runtime("ServiceDesc"), "{")
	p.P("Name: ", serviceConstant(service.GoName), ",")
	if len(methods) > 0 {
		p.P("Methods: []*", p.imports.runtime("MethodDesc"), "{")
		for _, method := range methods {
			p.P(methodVariable(service.GoName, method.GoName), ",")
		}
		p.P("},")
	}
	p.P("}")
	for _, method := range methods {
		p.methodDesc(service, method)
		p.endDeclaration()
	}
}

func (p *printer) methodDesc(service *schema.Service, method *schema.Method) {
	p.P()
	p.P("var ", methodVariable(service.GoName, method.GoName), " = &", p.imports.runtime("MethodDesc"), "{")
	p.P("Service: ", serviceConstant(service.GoName), ",")
	p.P("Name: ", strconv.Quote(method.Name), ",")
	if method.Oneway {
		p.P("Oneway: true,")
	}
	if isStream(method) {
		p.streamMethodDesc(service, method)
		return
	}
	if inProtobuf(service) {
		p.messageMethodDesc(service, method)
		return
	}
	p.P("Codec: ", p.codecOf(method), ",")
	p.P("NewRequest: func() any { return &", p.argumentsType(method), literal(p.fieldValues(p.argumentRecord(method), nil)), " },")
	if p.returnsView(method) && p.argumentRecord(method).lends == "" {
		p.invokeInto(service, method)
	} else {
		p.invoke(service, method)
	}
	if len(method.Throws) > 0 {
		p.exception(method)
	}
	p.P("}")
}

// codecOf is the codec of a method in Thrift.
func (p *printer) codecOf(method *schema.Method) string {
	var fields []string
	if policy := stringPolicy(method.Annotations, method.Service.Annotations); policy != "" {
		fields = append(fields, "Strings: "+p.imports.thrift(policy))
	}
	if isCanonical(method) {
		fields = append(fields, "Canonical: true")
	}
	if len(fields) == 0 {
		return p.imports.thrift("Binary")
	}
	return p.imports.thrift("Codec") + literal(fields)
}

// userCall is the call of the user's method.
func (p *printer) userCall(service *schema.Service, method *schema.Method) string {
	arguments := []string{"ctx"}
	for _, argument := range method.Arguments {
		arguments = append(arguments, "args."+argument.GoName)
	}
	return "implementation.(" + serverName(service.GoName) + ")." + method.GoName + "(" + strings.Join(arguments, ", ") + ")"
}

// invokeInto prints what is in place of invoke for a method that returns a view.
func (p *printer) invokeInto(service *schema.Service, method *schema.Method) {
	result := p.resultType(method)
	p.P("NewReply: func() any { return &", result, "{Success: new(", p.viewOf(method.Result.Struct), ")} },")
	p.P("InvokeInto: func(ctx ", p.imports.std("context", "Context"), ", implementation, request, reply any) (err error) {")
	if len(method.Arguments) > 0 {
		p.P("args := request.(*", p.argumentsType(method), ")")
	}
	p.P("result := reply.(*", result, ")")
	p.P("*result.Success, err = ", p.userCall(service, method))
	p.P("return err")
	p.P("},")
	p.P("Forget: func(request, reply any) {")
	p.forgetArguments(method)
	p.P("reply.(*", result, ").Success.ForgetThrift()")
	p.P("},")
}

// forgetArguments prints what makes the arguments what NewRequest returns. A view is mostly
// zero already.
func (p *printer) forgetArguments(method *schema.Method) {
	arguments := p.argumentRecord(method)
	others := slices.ContainsFunc(arguments.members, func(m member) bool { return !m.viewed })
	switch {
	case others:
		p.P("*request.(*", p.argumentsType(method), ") = ", p.argumentsType(method), literal(p.fieldValues(arguments, nil)))
	case len(arguments.members) > 0:
		p.P("args := request.(*", p.argumentsType(method), ")")
		for _, m := range arguments.members {
			p.P("args.", m.GoName, ".ForgetThrift()")
		}
	}
}

// invoke prints the function that calls the user's method.
func (p *printer) invoke(service *schema.Service, method *schema.Method) {
	call := p.userCall(service, method)
	result := p.resultType(method)
	p.P("Invoke: func(ctx ", p.imports.std("context", "Context"), ", implementation, request any) (any, error) {")
	if len(method.Arguments) > 0 {
		p.P("args := request.(*", p.argumentsType(method), ")")
	}
	switch {
	case method.Oneway:
		p.P("return nil, ", call)
	case method.Result.Kind == schema.KindVoid:
		p.P("if err := ", call, "; err != nil {")
		p.P("return nil, err")
		p.P("}")
		p.P("return &", result, "{}, nil")
	default:
		p.P("success, err := ", call)
		p.P("if err != nil {")
		p.P("return nil, err")
		p.P("}")
		value := p.successValue(service, method)
		p.P("return &", result, "{Success: ", value, "}, nil")
	}
	p.P("},")
}

// argumentsType and resultType are those of the service that declares the
// method, also where it is inherited.
func (p *printer) argumentsType(method *schema.Method) string {
	return p.imports.generated(method.Service.File.Package, argsName(method.Service.GoName, method.GoName))
}

func (p *printer) resultType(method *schema.Method) string {
	return p.imports.generated(method.Service.File.Package, resultName(method.Service.GoName, method.GoName))
}

// successValue prints what deals with a result that is nil and returns what
// goes into the result struct.
func (p *printer) successValue(service *schema.Service, method *schema.Method) string {
	switch optionalForm(method.Result) {
	case formOpt:
		return p.imports.thrift("Some") + "(success)"
	case formPointer:
		if p.options.Kitex {
			break
		}
		if p.returnsView(method) {
			return "&success"
		}
		p.P("if success == nil {")
		p.P("return nil, ", p.missingReply(service, method))
		p.P("}")
	case formNil:
		p.P("if success == nil {")
		p.P("success = ", p.goType(method.Result), "{}")
		p.P("}")
	}
	return "success"
}

func (p *printer) missingReply(service *schema.Service, method *schema.Method) string {
	return p.imports.runtime("MissingReply") + "(" + methodConstant(service.GoName, method.GoName) + ")"
}

// exception prints the function that turns a declared exception into a reply. A
// nil pointer to an exception is an error without anything to send.
func (p *printer) exception(method *schema.Method) {
	p.P("Exception: func(err error) any {")
	for _, thrown := range method.Throws {
		p.P("if exception, ok := ", p.imports.std("errors", "AsType"), "[*", p.goType(thrown.Type), "](err); ok && exception != nil {")
		p.P("return &", p.resultType(method), "{", thrown.GoName, ": exception}")
		p.P("}")
	}
	p.P("return nil")
	p.P("},")
}

func (p *printer) declareArguments(method *schema.Method) {
	p.P()
	p.doc(sentence(argsName(method.Service.GoName, method.GoName), " are the arguments of ", fullName(method), "."))
	p.fields(p.argumentRecord(method), nil)
}

func (p *printer) declareResult(method *schema.Method) {
	p.P()
	p.doc(sentence(resultName(method.Service.GoName, method.GoName), " is the reply of ", fullName(method), ". At most one of its fields is set."))
	p.fields(p.resultRecord(method), nil)
}

func (p *printer) replyError(method *schema.Method) {
	p.P()
	p.doc(sentence("ReplyError returns the exception that the reply holds, or an error if a result is missing."))
	p.P("func (s *", resultName(method.Service.GoName, method.GoName), ") ReplyError() error {")
	for _, thrown := range method.Throws {
		p.P("if s.", thrown.GoName, " != nil {")
		p.P("return s.", thrown.GoName)
		p.P("}")
	}
	if method.Result.Kind != schema.KindVoid && !(p.options.Kitex && optionalForm(method.Result) != formOpt) {
		absent := "s.Success == nil"
		if optionalForm(method.Result) == formOpt {
			absent = "!s.Success.IsSet()"
		}
		p.P("if ", absent, " {")
		p.P("return ", p.missingReply(method.Service, method))
		p.P("}")
	}
	p.P("return nil")
	p.P("}")
}

// parameters are the parameters of a Go method, ctx first.
func (p *printer) parameters(method *schema.Method) string {
	list := []string{"ctx " + p.imports.std("context", "Context")}
	for i, name := range p.parameterNames(method) {
		list = append(list, name+" "+p.argumentType(method, method.Arguments[i]))
	}
	return strings.Join(list, ", ")
}

// parameterNames keeps arguments apart from each other and from everything
// that the body of a client method refers to.
func (p *printer) parameterNames(method *schema.Method) []string {
	taken := newNamespace("args", "both", "c", "ctx", "err", "options")
	taken.reserve(importNames...)
	scope := p.names.scopes[p.pkg]
	names := make([]string, len(method.Arguments))
	for i, argument := range method.Arguments {
		names[i] = taken.choose("parameter", p.spelling.localName(argument.Name), func(variant string) bool {
			return taken.free(variant) && scope.free(variant) && !p.imports.taken[variant] && !reservedWord(variant)
		})
		taken.reserve(names[i])
	}
	return names
}

func (p *printer) results(method *schema.Method) string {
	if method.Result.Kind == schema.KindVoid {
		return "error"
	}
	return "(" + p.returnedType(method) + ", error)"
}
