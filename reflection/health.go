package reflection

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// described are files that no generated code registers: that of package health, whose messages
// are written by hand. It must not register its own either, because a program can also have
// that of grpc-go, and two of a name end it at the start.
func described() (*protoregistry.Files, error) {
	file, err := protodesc.NewFile(healthFile(), nil)
	if err != nil {
		return nil, err
	}
	files := new(protoregistry.Files)
	return files, files.RegisterFile(file)
}

// healthFile is how gRPC defines the service (doc/health-checking.md).
func healthFile() *descriptorpb.FileDescriptorProto {
	const request, response, list, listed, entry = "HealthCheckRequest", "HealthCheckResponse", "HealthListRequest", "HealthListResponse", "StatusesEntry"
	status := &descriptorpb.EnumDescriptorProto{Name: proto.String("ServingStatus")}
	for number, name := range []string{"UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"} {
		status.Value = append(status.Value, &descriptorpb.EnumValueDescriptorProto{Name: proto.String(name), Number: proto.Int32(int32(number))})
	}
	const prefix = "." + healthPackage + "."
	method := func(name, input, output string, streams bool) *descriptorpb.MethodDescriptorProto {
		return &descriptorpb.MethodDescriptorProto{
			Name: proto.String(name), InputType: proto.String(prefix + input), OutputType: proto.String(prefix + output), ServerStreaming: proto.Bool(streams),
		}
	}
	return &descriptorpb.FileDescriptorProto{
		Name: proto.String("grpc/health/v1/health.proto"), Package: proto.String(healthPackage), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{
			message(request, field("service", 1, descriptorpb.FieldDescriptorProto_TYPE_STRING, "")),
			{
				Name: proto.String(response), EnumType: []*descriptorpb.EnumDescriptorProto{status},
				Field: []*descriptorpb.FieldDescriptorProto{field("status", 1, descriptorpb.FieldDescriptorProto_TYPE_ENUM, prefix+response+".ServingStatus")},
			},
			message(list),
			{
				Name: proto.String(listed), NestedType: []*descriptorpb.DescriptorProto{{
					Name: proto.String(entry), Options: &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)},
					Field: []*descriptorpb.FieldDescriptorProto{
						field("key", 1, descriptorpb.FieldDescriptorProto_TYPE_STRING, ""), field("value", 2, descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, prefix+response),
					},
				}},
				Field: []*descriptorpb.FieldDescriptorProto{repeated(field("statuses", 1, descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, prefix+listed+"."+entry))},
			},
		},
		Service: []*descriptorpb.ServiceDescriptorProto{{
			Name:   proto.String("Health"),
			Method: []*descriptorpb.MethodDescriptorProto{method("Check", request, response, false), method("List", list, listed, false), method("Watch", request, response, true)},
		}},
	}
}

// healthPackage is the package of health.ServiceName.
const healthPackage = "grpc.health.v1"

func message(name string, fields ...*descriptorpb.FieldDescriptorProto) *descriptorpb.DescriptorProto {
	return &descriptorpb.DescriptorProto{Name: proto.String(name), Field: fields}
}

func field(name string, number int32, kind descriptorpb.FieldDescriptorProto_Type, of string) *descriptorpb.FieldDescriptorProto {
	f := &descriptorpb.FieldDescriptorProto{
		Name: proto.String(name), JsonName: proto.String(name), Number: proto.Int32(number), Type: kind.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
	}
	if of != "" {
		f.TypeName = proto.String(of)
	}
	return f
}

func repeated(f *descriptorpb.FieldDescriptorProto) *descriptorpb.FieldDescriptorProto {
	f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
	return f
}
