package emit

import (
	"regexp"
	"slices"

	"github.com/fulmar-rpc/fulmar/gen/schema"
)

// names holds the identifiers that belong to something in the model but are not
// its GoName.
type names struct {
	// scopes has the package-level identifiers of each package.
	scopes map[*schema.Package]*namespace
	// constructors and parsers are the functions NewX and ParseX.
	constructors map[*schema.Struct]string
	parsers      map[*schema.Enum]string
	// getters are the methods GetX of fields that have one.
	getters map[*schema.Field]string
	// unknown are the fields for what the definition does not have, of structs that
	// keep that.
	unknown map[*schema.Struct]string
	// views are those of structs that have views.
	views map[*schema.Struct]*viewNames
	// descriptors are the variables with what package descriptor reads.
	descriptors map[*schema.File]string
	// services are the names of the methods of services that were named.
	services map[*schema.Service]*namespace
	// kitex are those that only the shape of Kitex has.
	kitex kitexNames
}

// structMethods are the methods that generated structs have. Some have not all of
// them, but all keep the names free: a definition that grows renames nothing.
var structMethods = []string{
	"WriteThrift", "ReadThrift", "SizeThrift", "String", "Equal", "Clone", "Detach", "MarshalJSON", "UnmarshalJSON", "DescribeThrift",
}

// nameProgram gives everything in the program its Go name.
func (g *generator) nameProgram() *names {
	n := &names{
		scopes:       map[*schema.Package]*namespace{},
		constructors: map[*schema.Struct]string{},
		parsers:      map[*schema.Enum]string{},
		getters:      map[*schema.Field]string{},
		unknown:      map[*schema.Struct]string{},
		views:        map[*schema.Struct]*viewNames{},
		descriptors:  map[*schema.File]string{},
		services:     map[*schema.Service]*namespace{},
		kitex:        newKitexNames(),
	}
	for _, pkg := range g.program.Packages {
		n.scopes[pkg] = newNamespace(pkg.Declared...)
		if g.options.Kitex {
			g.nameKitexPackage(n, pkg)
		} else {
			g.nameTypes(n, pkg)
			g.nameFunctions(n, pkg)
		}
		for _, file := range pkg.Files {
			for _, service := range file.Services {
				g.nameService(n, service)
			}
		}
		g.nameViews(n, pkg)
		for _, file := range pkg.Files {
			if g.describes(file) {
				name := g.spelling.exportedName(file.Base)
				if name == "" || isDigit(name[0]) { // names of the definition never do, those of files may
					name = "X" + name
				}
				n.descriptors[file] = n.scopes[pkg].claim(name + "Descriptor")
			}
		}
	}
	return n
}

// nameTypes names what the definitions of a package declare, except services.
// These are the names that users write most, so they have the first choice.
func (g *generator) nameTypes(n *names, pkg *schema.Package) {
	scope := n.scopes[pkg]
	for _, file := range pkg.Files {
		for _, s := range file.Structs {
			s.GoName = scope.claim(g.goName(s.Name, s.Annotations))
		}
		for _, typedef := range file.Typedefs {
			typedef.GoName = scope.claim(g.goName(typedef.Name, typedef.Annotations))
		}
		for _, enum := range file.Enums {
			enum.GoName = scope.claim(g.goName(enum.Name, enum.Annotations))
		}
		for _, constant := range file.Constants {
			constant.GoName = scope.claim(g.constantName(constant))
		}
	}
	for _, file := range pkg.Files { // behind types, after which some fields are called
		for _, s := range file.Structs {
			g.nameFields(n, s)
		}
	}
}

// constantName keeps names in capitals, which is how most files write them, as
// the values of enums are kept: FREE_SHIPPING and SHIPPING should look alike.
func (g *generator) constantName(constant *schema.Constant) string {
	if findAnnotation(constant.Annotations, annotationName) == nil && allCapitals.MatchString(constant.Name) {
		return constant.Name
	}
	return g.goName(constant.Name, constant.Annotations)
}

var allCapitals = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)

// nameFunctions names what is generated beside the declarations of a package.
func (g *generator) nameFunctions(n *names, pkg *schema.Package) {
	scope := n.scopes[pkg]
	for _, file := range pkg.Files {
		for _, enum := range file.Enums {
			for _, value := range enum.Values {
				value.GoName = scope.claim(g.valueName(value, enum))
			}
			n.parsers[enum] = scope.claim("Parse" + enum.GoName)
		}
		for _, s := range file.Structs {
			n.constructors[s] = scope.claim("New" + s.GoName)
		}
	}
}

// valueName is a value's name with that of its enum in front, because all values
// of a package share one scope, or else exactly what the definition asks for.
func (g *generator) valueName(value *schema.EnumValue, enum *schema.Enum) string {
	if findAnnotation(value.Annotations, annotationName) != nil {
		return g.goName(value.Name, value.Annotations)
	}
	return enum.GoName + "_" + identifierText(value.Name)
}

func (g *generator) nameFields(n *names, s *schema.Struct) {
	methods := structMethods
	if s.Category == schema.CategoryException {
		methods = append(slices.Clone(methods), "Error")
	}
	members := newNamespace(methods...)
	for _, field := range s.Fields {
		if !g.embeds(field) {
			field.GoName = members.claim(g.goName(field.Name, field.Annotations))
		}
	}
	members.reserve(g.nameEmbedded(s, methods)...)
	for _, field := range s.Fields {
		if hasGetter(s, field) {
			n.getters[field] = members.claim("Get" + field.GoName)
		}
	}
	if g.keepsUnknown(s) {
		n.unknown[s] = members.claim(unknownField)
	}
}

// nameService names a service and its methods, parents first: a method must not
// have the name of an inherited one. It returns the names of all its methods.
func (g *generator) nameService(n *names, service *schema.Service) *namespace {
	if methods, done := n.services[service]; done {
		return methods
	}
	methods := newNamespace()
	n.services[service] = methods
	if service.Extends != nil {
		methods.reserveAll(g.nameService(n, service.Extends))
	}
	scope := n.scopes[service.File.Package]
	service.GoName = scope.choose("service", exported(g.goName(service.Name, service.Annotations)), func(variant string) bool {
		return scope.free(serviceIdentifiers(service, variant)...)
	})
	scope.reserve(serviceIdentifiers(service, service.GoName)...)
	for _, method := range service.Methods {
		method.GoName = methods.choose("method", exported(g.goName(method.Name, method.Annotations)), func(variant string) bool {
			return methods.free(variant) && scope.free(methodIdentifiers(service, variant)...)
		})
		methods.reserve(method.GoName)
		scope.reserve(methodIdentifiers(service, method.GoName)...)
		g.nameMembers(method)
	}
	return methods
}

// serviceIdentifiers are the package-level identifiers that belong to a service
// with the Go name name, apart from those of its own methods.
func serviceIdentifiers(service *schema.Service, name string) []string {
	identifiers := []string{
		serverName(name), clientName(name), clientTypeName(name),
		newClientName(name), registerName(name), descName(name), serviceConstant(name),
	}
	for _, method := range inheritedMethods(service) {
		identifiers = append(identifiers, methodVariable(name, method.GoName), methodConstant(name, method.GoName))
	}
	return identifiers
}

// methodIdentifiers are the package-level identifiers that belong to a method
// with the Go name name of the service that declares it.
func methodIdentifiers(service *schema.Service, name string) []string {
	if service.File.Payload == schema.PayloadProtobuf {
		return []string{methodVariable(service.GoName, name), methodConstant(service.GoName, name)}
	}
	return []string{
		argsName(service.GoName, name),
		resultName(service.GoName, name),
		methodVariable(service.GoName, name),
		methodConstant(service.GoName, name),
	}
}

// nameMembers names the fields of the arguments and the result of a method.
func (g *generator) nameMembers(method *schema.Method) {
	arguments := newNamespace(structMethods...)
	arguments.reserve("KeepsThrift")
	for _, argument := range method.Arguments {
		argument.GoName = arguments.claim(exported(g.goName(argument.Name, argument.Annotations)))
	}
	result := newNamespace(structMethods...)
	result.reserve("Success", "ReplyError", "KeepsThrift")
	for _, exception := range method.Throws {
		exception.GoName = result.claim(exported(g.goName(exception.Name, exception.Annotations)))
	}
}

// The identifiers that belong to a service with the Go name name.
func serverName(name string) string      { return name + "Server" }
func clientName(name string) string      { return name + "Client" }
func clientTypeName(name string) string  { return unexported(name) + "Client" }
func newClientName(name string) string   { return "New" + name + "Client" }
func registerName(name string) string    { return "Register" + name + "Server" }
func descName(name string) string        { return name + "ServiceDesc" }
func serviceConstant(name string) string { return name + "ServiceName" }

// The identifiers that belong to a method of it. An inherited method has the
// last two once more for each service that inherits it.
func argsName(service, method string) string       { return service + method + "Args" }
func resultName(service, method string) string     { return service + method + "Result" }
func methodVariable(service, method string) string { return unexported(service) + method + "Method" }
func methodConstant(service, method string) string { return service + method + "FullMethodName" }

// inheritedMethods returns the methods of the services that service extends,
// the most distant ancestor's first.
func inheritedMethods(service *schema.Service) []*schema.Method {
	if service.Extends == nil {
		return nil
	}
	return append(inheritedMethods(service.Extends), service.Extends.Methods...)
}

// identifierText keeps the letters, digits and underscores of a name.
func identifierText(name string) string {
	kept := make([]byte, 0, len(name))
	for i := 0; i < len(name); i++ {
		if c := name[i]; isLetter(c) || isDigit(c) || c == '_' {
			kept = append(kept, c)
		}
	}
	return string(kept)
}
