package emit

import (
	"cmp"
	"slices"

	"github.com/fulmar-rpc/fulmar/gen/schema"
)

// inProtobuf says that methods take and return messages in Protobuf, for which there is
// Go code elsewhere.
func inProtobuf(service *schema.Service) bool { return service.File.Payload == schema.PayloadProtobuf }

// separator stands between the names of a service and its method: with Protobuf a slash, as
// gRPC has it, because the name of the service has dots itself.
func separator(service *schema.Service) string {
	if inProtobuf(service) {
		return "/"
	}
	return "."
}

// messageImports are the packages of the messages that services of a package use, apart
// from its own.
func (g *generator) messageImports(pkg *schema.Package) []schema.Import {
	var imports []schema.Import
	for _, file := range pkg.Files {
		for _, service := range file.Services {
			for _, method := range service.Methods {
				for _, message := range messagesOf(method) {
					if message.GoImport != g.importPathOf(pkg) {
						imports = append(imports, schema.Import{Name: message.GoPackage, Path: message.GoImport})
					}
				}
			}
		}
	}
	slices.SortFunc(imports, func(a, b schema.Import) int { return cmp.Compare(a.Path, b.Path) })
	return slices.CompactFunc(imports, func(a, b schema.Import) bool { return a.Path == b.Path })
}

func (g *generator) importPathOf(pkg *schema.Package) string {
	return g.options.ImportPrefix + "/" + pkg.Path
}

// messagesOf returns what a method takes and returns, if these are messages.
func messagesOf(method *schema.Method) []*schema.Message {
	if method.Result.Kind != schema.KindMessage || len(method.Arguments) != 1 {
		return nil
	}
	return []*schema.Message{method.Arguments[0].Type.Message, method.Result.Message}
}

// message returns the type of a message as the file writes it.
func (i *imports) message(message *schema.Message) string {
	if message.GoImport == i.generator.importPathOf(i.source.Package) {
		return message.GoName
	}
	alias := i.paths[message.GoImport]
	i.modules[message.GoImport] = alias
	return alias + "." + message.GoName
}

// protobuf returns a name of the package protobuf as the file writes it.
func (i *imports) protobuf(name string) string {
	i.modules[protobufImport] = "protobuf"
	return "protobuf." + name
}

// messageClientMethod prints a method of a client that sends one message and gets one.
func (p *printer) messageClientMethod(service *schema.Service, method *schema.Method) {
	messages := messagesOf(method)
	p.P()
	p.P("func (c *", clientTypeName(service.GoName), ") ", p.clientSignature(method), " {")
	p.P("result := new(", p.imports.message(messages[1]), ")")
	p.P("if err := c.caller.Call(ctx, ", methodVariable(service.GoName, method.GoName), ", ", p.parameterNames(method)[0], ", result, options...); err != nil {")
	p.P("return nil, err")
	p.P("}")
	p.P("return result, nil")
	p.P("}")
}

// messageMethodDesc prints the rest of a method's description.
func (p *printer) messageMethodDesc(service *schema.Service, method *schema.Method) {
	request := p.imports.message(messagesOf(method)[0])
	p.P("Codec: ", p.imports.protobuf("Binary"), ",")
	p.P("NewRequest: func() any { return new(", request, ") },")
	p.P("Invoke: func(ctx ", p.imports.std("context", "Context"), ", implementation, request any) (any, error) {")
	p.P("result, err := implementation.(", serverName(service.GoName), ").", method.GoName, "(ctx, request.(*", request, "))")
	p.P("if err != nil {")
	p.P("return nil, err")
	p.P("}")
	p.P("if result == nil {")
	p.P("return nil, ", p.missingReply(service, method))
	p.P("}")
	p.P("return result, nil")
	p.P("},")
	p.P("}")
}
