package emit

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fulmar-rpc/fulmar/gen/schema"
)

// kitexNames are the identifiers that only the shape of Kitex has.
type kitexNames struct {
	// handlers are the names that Kitex gives to the interfaces of services.
	handlers map[*schema.Service]string
	// aliases are the functions NewX of typedefs of structs, enums the functions XPtr.
	aliases map[*schema.Typedef]string
	enums   map[*schema.Enum]string
	fields  map[*schema.Field]kitexField
	// counts are the methods CountSetFieldsX of unions.
	counts map[*schema.Struct]string
}

// kitexField are the names that belong to a field.
type kitexField struct {
	getter, setter string
	// isSet and preset, the variable with the default, are empty for fields that
	// always hold something.
	isSet, preset string
}

func newKitexNames() kitexNames {
	return kitexNames{
		handlers: map[*schema.Service]string{},
		aliases:  map[*schema.Typedef]string{},
		enums:    map[*schema.Enum]string{},
		fields:   map[*schema.Field]kitexField{},
		counts:   map[*schema.Struct]string{},
	}
}

// kitexImports are the names of packages that only the shape of Kitex imports, and of
// variables that only its functions have.
func kitexImports() []string {
	return []string{"buf", "count", "driver", "keys", "sql", "structs", "val"}
}

// kitexStructMethods are the methods of structs: those that thriftgo keeps free, and
// those that there are besides.
func kitexStructMethods() []string {
	return []string{
		"Read", "Write", "String",
		"WriteThrift", "ReadThrift", "DescribeThrift", "InitDefault", "BLength", "FastRead", "FastWrite", "FastWriteNocopy", "bLength",
	}
}

// kitexName turns a name of a definition into the Go identifier that Kitex's tool
// makes of it with the options that it has by default: words between underscores
// begin with a capital letter, an underscore stays in front of those that have one
// or begin with a digit, and names that look like generated ones get one at the end.
func kitexName(name string) string {
	words := strings.Split(identifierText(name), "_")
	for i, word := range words {
		switch {
		case word == "":
			words[i] = "_"
		case i > 0 && (isUpper(word[0]) || isDigit(word[0])):
			words[i] = "_" + word
		default:
			words[i] = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	joined := strings.Join(words, "")
	if strings.HasPrefix(joined, "New") || strings.HasSuffix(joined, "Args") || strings.HasSuffix(joined, "Result") {
		joined += "_"
	}
	return joined
}

// exported makes a Go name that begins with an underscore, as Kitex leaves them, one
// that other packages can use: they implement and call services, and encoding/json looks
// at fields.
func exported(name string) string {
	if name[0] != '_' {
		return name
	}
	return "X" + name
}

// nameKitexPackage names what the definitions of a package declare, in the order in
// which thriftgo does: who comes first keeps its name.
func (g *generator) nameKitexPackage(n *names, pkg *schema.Package) {
	scope := n.scopes[pkg]
	scope.underscores = true
	for _, file := range pkg.Files {
		for _, service := range file.Services {
			n.kitex.handlers[service] = scope.claim(g.goName(service.Name, service.Annotations))
		}
		for _, category := range []schema.Category{schema.CategoryStruct, schema.CategoryUnion, schema.CategoryException} {
			for _, s := range file.Structs {
				if s.Category == category {
					s.GoName = scope.claim(g.goName(s.Name, s.Annotations))
					n.constructors[s] = scope.claim("New" + s.GoName)
				}
			}
		}
		for _, enum := range file.Enums {
			enum.GoName = scope.claim(g.goName(enum.Name, enum.Annotations))
		}
		for _, typedef := range file.Typedefs {
			typedef.GoName = scope.claim(g.goName(typedef.Name, typedef.Annotations))
			if typedef.Type.Kind == schema.KindStruct {
				n.kitex.aliases[typedef] = scope.claim("New" + typedef.GoName)
			}
		}
		for _, constant := range file.Constants {
			constant.GoName = scope.claim(g.constantName(constant))
		}
	}
	for _, file := range pkg.Files {
		for _, enum := range file.Enums {
			for _, value := range enum.Values {
				value.GoName = scope.claim(g.valueName(value, enum))
			}
			n.parsers[enum] = scope.claim(enum.GoName + "FromString")
			n.kitex.enums[enum] = scope.claim(enum.GoName + "Ptr")
		}
		for _, s := range file.Structs {
			g.nameKitexFields(n, s)
		}
	}
}

// nameKitexFields names fields, and before them what belongs to them.
func (g *generator) nameKitexFields(n *names, s *schema.Struct) {
	members := newNamespace(kitexStructMethods()...)
	members.underscores = true
	switch s.Category {
	case schema.CategoryUnion:
		n.kitex.counts[s] = "CountSetFields" + s.GoName
		members.reserve("CountSetFields", n.kitex.counts[s])
	case schema.CategoryException:
		members.reserve("Error")
	}
	for _, field := range s.Fields {
		name := g.goName(field.Name, field.Annotations)
		if g.embeds(field) {
			name = embeddedName(field.Type)
		}
		var names kitexField
		names.getter = members.claim("Get" + name)
		names.setter = members.claim("Set" + name)
		if hasIsSet(s, field) {
			names.isSet = members.claim("IsSet" + name)
		}
		id := strings.Replace(strconv.Itoa(int(field.ID)), "-", "_", 1)
		members.reserve("ReadField"+id, "writeField"+id)
		n.kitex.fields[field] = names
	}
	var methods []string
	if slices.ContainsFunc(s.Fields, g.embeds) {
		methods = slices.Collect(maps.Keys(members.taken))
	}
	claimed := map[*schema.Field]string{}
	for _, field := range s.Fields {
		// One that is embedded takes this name too, as it does with thriftgo.
		name := members.claim(g.goName(field.Name, field.Annotations))
		field.GoName, claimed[field] = name, name
		if name[0] == '_' && !g.embeds(field) {
			// Nobody outside the package can name such a field of Kitex's, and so nobody
			// misses it; but encoding/json loses what is in it, and go vet says so.
			field.GoName = members.claim(exported(name))
		}
	}
	members.reserve(g.nameEmbedded(s, methods)...)
	for _, field := range s.Fields {
		name := claimed[field]
		if g.embeds(field) {
			name = field.GoName
		}
		if names := n.kitex.fields[field]; names.isSet != "" {
			names.preset = n.scopes[s.File.Package].claim(s.GoName + "_" + name + "_DEFAULT")
			n.kitex.fields[field] = names
		}
	}
	if g.keepsUnknown(s) {
		n.unknown[s] = members.claim(unknownField)
	}
}

// hasIsSet says that a field can be absent.
func hasIsSet(s *schema.Struct, field *schema.Field) bool {
	return isOptional(s, field) || field.Type.Kind == schema.KindStruct
}
