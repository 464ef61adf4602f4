package protofile

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"

	"github.com/fulmar-rpc/fulmar/gen"
	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// generate makes the messages, and the model of the services.
func (l *loading) generate(units []*unit) gen.Loaded {
	for _, u := range units {
		l.refuseMessageSets(u, u.proto.GetMessageType(), pathMessage)
	}
	if l.errors > 0 {
		return gen.Loaded{}
	}
	var files []gen.File
	var program *schema.Program
	var printing *unit
	err := guard(func() error {
		plugin, err := protogen.Options{}.New(requestOf(units))
		if err != nil {
			return err
		}
		program = l.model(units, plugin)
		for _, u := range units {
			if !l.prints(u) {
				continue
			}
			printing = u
			file := plugin.FilesByPath[u.proto.GetName()]
			file.GeneratedFilenamePrefix = u.folder + "/" + u.base
			internal_gengo.GenerateFile(plugin, file)
		}
		printing = nil
		files, err = l.messages(units, plugin)
		return err
	})
	if err != nil {
		at := schema.Position{File: "fulmar gen"}
		for _, u := range units {
			// The generator quotes the name of the file that it cannot read.
			if name := u.proto.GetName(); u == printing || printing == nil && strings.Contains(err.Error(), "FileDescriptorProto "+strconv.Quote(name)) {
				at.File = l.shownName(name)
				break
			}
		}
		l.errorf(at, "the generator of messages: %s", err)
		return gen.Loaded{}
	}
	if l.existing {
		files = nil
	}
	return gen.Loaded{Program: program, Files: files}
}

// Numbers of fields that lead to messages and those within them.
const (
	pathMessage = 4
	pathNested  = 3
)

// refuseMessageSets says where the messages are that Go's library does not know.
func (l *loading) refuseMessageSets(u *unit, messages []*descriptorpb.DescriptorProto, path ...int32) {
	for i, message := range messages {
		here := append(slices.Clip(path), int32(i))
		if message.GetOptions().GetMessageSetWireFormat() {
			l.errorf(u.position(append(slices.Clip(here), pathName)...), "message %s has the option message_set_wire_format, which Go's Protobuf does not have: encode it as a usual message", clip(message.GetName()))
		}
		l.refuseMessageSets(u, message.GetNestedType(), append(here, pathNested)...)
	}
}

// requestOf asks for the Go types of all files. Their packages are parameters, so that the
// description of a file in its code is the file's.
func requestOf(units []*unit) *pluginpb.CodeGeneratorRequest {
	request := &pluginpb.CodeGeneratorRequest{}
	var parameters []string
	for _, u := range units {
		request.ProtoFile = append(request.ProtoFile, u.proto)
		parameters = append(parameters, "M"+u.proto.GetName()+"="+u.importPath+";"+u.name)
		if u.services != nil || u.named {
			request.FileToGenerate = append(request.FileToGenerate, u.proto.GetName())
		}
	}
	request.Parameter = proto.String(strings.Join(parameters, ","))
	return request
}

// messages returns what the generator has printed, with the header that all files of ours
// have, and notes what it declares.
func (l *loading) messages(units []*unit, plugin *protogen.Plugin) ([]gen.File, error) {
	response := plugin.Response()
	if response.Error != nil {
		return nil, errorText(response.GetError())
	}
	byFile := map[string]*unit{}
	for _, u := range units {
		if u.services != nil {
			byFile[u.folder+"/"+u.base] = u
		}
	}
	var files []gen.File
	declared := map[*schema.Package][]string{}
	declarations := declarations{first: map[*schema.Package]map[string]*unit{}}
	bytes := 0
	for _, file := range response.GetFile() {
		folder, name := path.Split(file.GetName())
		base, _, _ := strings.Cut(name, ".")
		u := byFile[folder+base]
		alternative := u == nil
		if alternative {
			u = byFile[folder+strings.TrimSuffix(base, "_protoopaque")]
		}
		if u == nil {
			return nil, errorText("file " + file.GetName() + " belongs to no definition")
		}
		if bytes += len(file.GetContent()); bytes > limits.GoBytes {
			return nil, errorText("too much code is generated in one run")
		}
		content := gen.FileHeader(fileOf(u)) + "\n\n" + file.GetContent()
		names, err := topLevel(content)
		if err != nil {
			return nil, errorText(file.GetName() + ": " + err.Error())
		}
		declared[u.services] = append(declared[u.services], names...)
		if !alternative { // It is compiled in place of the other file, and has its names.
			declarations.add(u, names)
		}
		files = append(files, gen.File{Path: file.GetName(), Content: []byte(content)})
	}
	for pkg, names := range declared {
		slices.Sort(names)
		pkg.Declared = slices.Compact(names)
	}
	l.reportTwice(declarations.twice, plugin)
	return files, nil
}

type errorText string

func (e errorText) Error() string { return string(e) }

// topLevel returns the identifiers that a file declares for its package.
func topLevel(content string) ([]string, error) {
	tree, err := parser.ParseFile(token.NewFileSet(), "", content, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, declaration := range tree.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				names = append(names, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name.Name)
				case *ast.ValueSpec:
					for _, name := range s.Names {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	return names, nil
}

func fileOf(u *unit) *schema.File {
	return &schema.File{Path: u.proto.GetName(), Base: u.base, Package: u.services, Payload: schema.PayloadProtobuf}
}

// model makes the program of the services that are generated.
func (l *loading) model(units []*unit, plugin *protogen.Plugin) *schema.Program {
	program := &schema.Program{}
	packages := map[string]*schema.Package{}
	for _, u := range units {
		if u.services == nil {
			continue
		}
		file := fileOf(u)
		for i, service := range plugin.FilesByPath[u.proto.GetName()].Services {
			file.Services = append(file.Services, l.service(plugin, u, file, service, int32(i)))
		}
		program.Files = append(program.Files, file)
		u.services.Files = append(u.services.Files, file)
		packages[u.folder] = u.services
	}
	program.Packages = slices.SortedFunc(maps.Values(packages), func(a, b *schema.Package) int { return cmp.Compare(a.Path, b.Path) })
	return program
}

// Numbers of fields in descriptions of services and methods.
const (
	pathMethod = 2
	pathName   = 1
)

func (l *loading) service(plugin *protogen.Plugin, u *unit, file *schema.File, service *protogen.Service, index int32) *schema.Service {
	at := u.position(pathService, index, pathName)
	made := &schema.Service{
		Name: string(service.Desc.FullName()), Doc: docOf(service.Comments), File: file, Position: at,
		Annotations: schema.Annotations{{Key: "go.name", Value: service.GoName, Position: at}},
	}
	if service.Desc.Options().(*descriptorpb.ServiceOptions).GetDeprecated() {
		made.Annotations = append(made.Annotations, schema.Annotation{Key: "deprecated", Value: "1", Position: at})
	}
	for j, method := range service.Methods {
		at := u.position(pathService, index, pathMethod, int32(j), pathName)
		name := made.Name + "/" + string(method.Desc.Name())
		if len(name) > limits.IDLNameBytes {
			l.errorf(at, "method %s: the names of service and method have %d bytes together (limit %d)", clip(name), len(name), limits.IDLNameBytes)
			continue
		}
		one := &schema.Method{
			Name: string(method.Desc.Name()), Doc: docOf(method.Comments), Service: made, Position: at,
			Annotations: schema.Annotations{{Key: "go.name", Value: method.GoName, Position: at}},
			Result:      messageType(plugin, method.Output, at),
			Arguments:   []*schema.Field{{ID: 1, Name: "request", Type: messageType(plugin, method.Input, at), Position: at}},
		}
		if method.Desc.Options().(*descriptorpb.MethodOptions).GetDeprecated() {
			one.Annotations = append(one.Annotations, schema.Annotation{Key: "deprecated", Value: "1", Position: at})
		}
		if mode := streamMode(method); mode != "" {
			one.Annotations = append(one.Annotations, schema.Annotation{Key: "streaming.mode", Value: mode, Position: at})
		}
		made.Methods = append(made.Methods, one)
	}
	return made
}

// streamMode returns what Thrift's annotation streaming.mode calls the kind of a method, ""
// for unary ones.
func streamMode(method *protogen.Method) string {
	switch client, server := method.Desc.IsStreamingClient(), method.Desc.IsStreamingServer(); {
	case client && server:
		return "bidirectional"
	case client:
		return "client"
	case server:
		return "server"
	}
	return ""
}

func messageType(plugin *protogen.Plugin, message *protogen.Message, at schema.Position) *schema.Type {
	file := plugin.FilesByPath[message.Desc.ParentFile().Path()]
	return &schema.Type{Kind: schema.KindMessage, Position: at, Message: &schema.Message{
		Name: string(message.Desc.FullName()), GoName: message.GoIdent.GoName, GoImport: string(message.GoIdent.GoImportPath), GoPackage: string(file.GoPackageName),
	}}
}

// docOf is the comment in front of a declaration, without the space behind its marks.
func docOf(comments protogen.CommentSet) string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSpace(string(comments.Leading)), "\n") {
		lines = append(lines, strings.TrimPrefix(line, " "))
	}
	return strings.Join(lines, "\n")
}
