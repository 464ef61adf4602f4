// Package reflection tells clients what a server serves and how its messages look, as grpcurl,
// grpcui, Postman and others ask it: the service ServerReflection of gRPC, v1 and v1alpha.
//
// Services in Protobuf are found by the descriptions that generated code registers, and that of
// package health by its own. Services in Thrift have none: they are in the list, and nothing
// more is known of them.
//
// Source: https://github.com/grpc/grpc/blob/master/doc/server-reflection.md.
package reflection

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/fulmar-rpc/fulmar"
)

// serviceNames are those of the service on the wire.
func serviceNames() []string {
	return []string{"grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"}
}

// Register makes a server answer. It tells everybody who may call the server what there is:
// whoever should not know that must not reach it.
func Register(server *fulmar.Server) {
	r := &reflector{server: server}
	// What is described here is sound, as a test sees; a mistake costs a description.
	r.described, _ = described()
	for _, name := range serviceNames() {
		server.RegisterService(describe(name), r)
	}
}

// describe returns what both versions have in common, which is everything but the name.
func describe(name string) *fulmar.ServiceDesc {
	return &fulmar.ServiceDesc{Name: name, Methods: []*fulmar.MethodDesc{{
		Service: name, Name: "ServerReflectionInfo", Codec: codec{}, ClientStreams: true, ServerStreams: true,
		InvokeStream: fulmar.ServeBidiStream(func(implementation any, stream fulmar.BidiStreamingServer[request, response]) error {
			return implementation.(*reflector).serve(stream)
		}),
	}}}
}

type reflector struct {
	server *fulmar.Server
	// described has files that are not among those that generated code registers.
	described *protoregistry.Files
}

// ServesTools is how package fulmar knows that it should not wait when it stops: tools keep
// their streams for as long as they run.
func (*reflector) ServesTools() {}

// serve answers questions until the client has no more.
func (r *reflector) serve(stream fulmar.BidiStreamingServer[request, response]) error {
	told := map[string]bool{}
	for asked, err := range stream.All() {
		if err != nil {
			return err
		}
		if err := stream.Send(r.answer(asked, told)); err != nil {
			return err
		}
	}
	return nil
}

// answer answers one question. told has the files that the client has already.
func (r *reflector) answer(asked *request, told map[string]bool) *response {
	answer := &response{asked: asked}
	var err error
	switch asked.kind {
	case askServices:
		answer.services = r.server.Services()
	case askFile:
		var file protoreflect.FileDescriptor
		if file, err = protoregistry.GlobalFiles.FindFileByPath(asked.text); err != nil {
			file, err = r.described.FindFileByPath(asked.text)
		}
		if err == nil {
			answer.files, err = withImports(file, told)
		}
	case askSymbol:
		var found protoreflect.Descriptor
		name := protoreflect.FullName(asked.text)
		if found, err = protoregistry.GlobalFiles.FindDescriptorByName(name); err != nil {
			found, err = r.described.FindDescriptorByName(name)
		}
		if err == nil {
			answer.files, err = withImports(found.ParentFile(), told)
		}
	case askExtension:
		var found protoreflect.ExtensionType
		if found, err = protoregistry.GlobalTypes.FindExtensionByNumber(protoreflect.FullName(asked.text), protoreflect.FieldNumber(asked.number)); err == nil {
			answer.files, err = withImports(found.TypeDescriptor().ParentFile(), told)
		}
	case askExtensionNumbers:
		answer.numbers, err = extensionNumbers(protoreflect.FullName(asked.text))
	default:
		answer.code, answer.message = fulmar.InvalidArgument, "the request asks nothing that is known"
		return answer
	}
	if err != nil {
		answer.code, answer.message = fulmar.NotFound, fmt.Sprintf("%.300q: %v", asked.text, err)
	}
	return answer
}

// withImports returns a file and those that it imports which were not told, encoded. Files
// that are told have their imports told, too.
func withImports(file protoreflect.FileDescriptor, told map[string]bool) (files [][]byte, err error) {
	// The question is about the file itself, so it is told again if it was.
	for todo, first := []protoreflect.FileDescriptor{file}, true; len(todo) > 0; first = false {
		next := todo[0]
		todo = todo[1:]
		if next.IsPlaceholder() || told[next.Path()] && !first {
			continue
		}
		told[next.Path()] = true
		encoded, err := proto.Marshal(protodesc.ToFileDescriptorProto(next))
		if err != nil {
			return nil, fmt.Errorf("file %s: %w", next.Path(), err)
		}
		files = append(files, encoded)
		imports := next.Imports()
		for i := range imports.Len() {
			todo = append(todo, imports.Get(i).FileDescriptor)
		}
	}
	return files, nil
}

// extensionNumbers returns the numbers of the extensions that a message is known to have.
func extensionNumbers(message protoreflect.FullName) (numbers []int32, err error) {
	if _, err := protoregistry.GlobalTypes.FindMessageByName(message); err != nil {
		return nil, err
	}
	protoregistry.GlobalTypes.RangeExtensionsByMessage(message, func(extension protoreflect.ExtensionType) bool {
		numbers = append(numbers, int32(extension.TypeDescriptor().Number()))
		return true
	})
	slices.Sort(numbers)
	return numbers, nil
}
