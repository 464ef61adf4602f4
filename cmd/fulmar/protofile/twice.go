package protofile

import (
	"slices"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// declarations are the names that the files of packages declare.
type declarations struct {
	// first maps a name to the file that declared it first.
	first map[*schema.Package]map[string]*unit
	twice []twice
}

// twice is a name that two files of a package declare, or one file twice.
type twice struct {
	name          string
	first, second *unit
}

// add notes what the code of a file declares.
func (d *declarations) add(u *unit, names []string) {
	known := d.first[u.services]
	if known == nil {
		known = map[string]*unit{}
		d.first[u.services] = known
	}
	for _, name := range names {
		switch first := known[name]; {
		case name == "_" || name == "init":
		case first == nil:
			known[name] = u
		default:
			d.twice = append(d.twice, twice{name, first, u})
		}
	}
}

// origin is what a name in Go comes from.
type origin struct {
	what string
	at   schema.Position
}

// reportTwice refuses names that Go's compiler would find twice. Those of what is within,
// or is made for, a message that clashes are not told besides: they go with its name.
func (l *loading) reportTwice(list []twice, plugin *protogen.Plugin) {
	origins := map[*unit]map[string][]origin{}
	of := func(u *unit) map[string][]origin {
		if origins[u] == nil {
			origins[u] = l.origins(plugin, u)
		}
		return origins[u]
	}
	before := l.errors
	told := map[[2]schema.Position]bool{} // An enum has three names, which all clash.
	for _, one := range list {
		if l.errors > limits.IDLErrors {
			return
		}
		places := of(one.first)[one.name]
		if one.second != one.first {
			places = append(slices.Clip(places), of(one.second)[one.name]...)
		}
		for i := 1; i < len(places); i++ {
			pair := [2]schema.Position{places[0].at, places[i].at}
			if told[pair] && pair[0] != pair[1] {
				continue
			}
			told[pair] = true
			advice := "rename one"
			if pair[0].File != pair[1].File {
				advice = "rename one, or give the files different Go packages"
			}
			l.errorf(pair[1], "%s is called %s in Go, as is %s (%s): %s", places[i].what, clip(one.name), places[0].what, pair[0], advice)
		}
	}
	if l.errors > before {
		return
	}
	for _, one := range list {
		at, what := schema.Position{File: l.shownName(one.second.proto.GetName())}, "something"
		if places := slices.Concat(of(one.first)[one.name], of(one.second)[one.name]); len(places) > 0 {
			at, what = places[0].at, places[0].what
		}
		l.errorf(at, "%s is called %s in Go, as is something else that is generated: rename it", what, clip(one.name))
	}
}

// origins returns what the names in the code of a file come from, public imports included.
func (l *loading) origins(plugin *protogen.Plugin, u *unit) map[string][]origin {
	list := ownOrigins(plugin, u)
	file := plugin.FilesByPath[u.proto.GetName()]
	for i := range file.Desc.Imports().Len() {
		imported := file.Desc.Imports().Get(i)
		from := plugin.FilesByPath[imported.Path()]
		if !imported.IsPublic || from == nil || from.GoImportPath == file.GoImportPath {
			continue
		}
		at := u.position(pathImport, int32(i))
		for name, origins := range ownOrigins(plugin, &unit{proto: from.Proto, position: func(...int32) schema.Position { return at }}) {
			for _, one := range origins {
				list[name] = append(list[name], origin{one.what + ", imported publicly,", at})
			}
		}
	}
	return list
}

// ownOrigins returns what the names in the code of a file come from that the file declares.
func ownOrigins(plugin *protogen.Plugin, u *unit) map[string][]origin {
	list := map[string][]origin{}
	add := func(kind string, described protoreflect.Descriptor, path protoreflect.SourcePath, names ...string) {
		at := u.position(append(slices.Clip(path), pathName)...)
		for _, name := range names {
			list[name] = append(list[name], origin{kind + " " + clip(string(described.FullName())), at})
		}
	}
	addEnum := func(enum *protogen.Enum) {
		name := enum.GoIdent.GoName
		add("enum", enum.Desc, enum.Location.Path, name, name+"_name", name+"_value")
		for _, value := range enum.Values {
			add("enum value", value.Desc, value.Location.Path, value.GoIdent.GoName)
		}
	}
	addExtension := func(extension *protogen.Extension) {
		add("extension", extension.Desc, extension.Location.Path, extension.GoIdent.GoName)
	}
	var addMessage func(message *protogen.Message)
	addMessage = func(message *protogen.Message) {
		if message.Desc.IsMapEntry() {
			return
		}
		add("message", message.Desc, message.Location.Path, message.GoIdent.GoName)
		for _, field := range message.Fields {
			if field.Oneof != nil && !field.Oneof.Desc.IsSynthetic() {
				add("oneof field", field.Desc, field.Location.Path, field.GoIdent.GoName)
			}
			if field.Desc.HasDefault() {
				add("the default of field", field.Desc, field.Location.Path, "Default_"+message.GoIdent.GoName+"_"+field.GoName)
			}
		}
		each(message.Enums, addEnum)
		each(message.Messages, addMessage)
		each(message.Extensions, addExtension)
	}
	file := plugin.FilesByPath[u.proto.GetName()]
	each(file.Enums, addEnum)
	each(file.Messages, addMessage)
	each(file.Extensions, addExtension)
	return list
}

func each[T any](list []T, call func(T)) {
	for _, one := range list {
		call(one)
	}
}
