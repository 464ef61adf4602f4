package emit

import (
	"github.com/fulmar-rpc/fulmar/gen/schema"
)

// Describe fills what the model says about the generated code besides GoName:
// types, constructors, interfaces, imports. Only plugins need it.
func (p *Prepared) Describe() {
	for _, pkg := range p.program.Packages {
		if importPath.MatchString(p.options.ImportPrefix) {
			pkg.ImportPath = p.options.ImportPrefix + "/" + pkg.Path
		}
		pkg.GoImports = p.goImports(pkg)
		for _, file := range pkg.Files {
			p.describeFile(p.newPrinter(file, gofmt), file)
		}
	}
}

// describeFile uses a printer for the names of imports only; nothing is printed.
func (p *Prepared) describeFile(types *printer, file *schema.File) {
	for _, enum := range file.Enums {
		enum.GoParser = p.names.parsers[enum]
	}
	for _, s := range file.Structs {
		s.GoConstructor = p.names.constructors[s]
		for _, m := range p.declaredRecord(s).members {
			m.GoType = types.memberType(m)
			m.GoPresence = presenceOf(m.form)
		}
	}
	for _, service := range file.Services {
		service.GoServer = serverName(service.GoName)
		service.GoClient = clientName(service.GoName)
		service.GoNewClient = newClientName(service.GoName)
		service.GoMethods = nil
		for _, method := range serviceMethods(service) {
			described := schema.GoMethod{Method: method, Name: method.GoName}
			for i, name := range types.parameterNames(method) {
				described.Parameters = append(described.Parameters, schema.GoParameter{
					Name: name, Type: types.argumentType(method, method.Arguments[i]), View: p.isViewedArgument(method, method.Arguments[i]),
				})
			}
			if method.Result.Kind != schema.KindVoid {
				described.Result, described.ResultView = types.returnedType(method), p.returnsView(method)
			}
			service.GoMethods = append(service.GoMethods, described)
		}
	}
}

func presenceOf(f form) schema.Presence {
	switch f {
	case formOpt:
		return schema.PresenceOpt
	case formNil:
		return schema.PresenceNil
	case formPointer:
		return schema.PresencePointer
	default:
		return schema.PresenceAlways
	}
}
