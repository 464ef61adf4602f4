package wire_test

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire/kitexprotobuf"
)

// errorProto describes the body of an exception in Kitex-Protobuf, as Kitex defines it.
func errorProto(t testing.TB) protoreflect.MessageDescriptor {
	t.Helper()
	field := func(name string, number int32, kind descriptorpb.FieldDescriptorProto_Type) *descriptorpb.FieldDescriptorProto {
		return &descriptorpb.FieldDescriptorProto{
			Name: &name, Number: &number, Type: &kind, Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		}
	}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("error.proto"), Syntax: proto.String("proto3"), Package: proto.String("protobuf"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("ErrorProto"), Field: []*descriptorpb.FieldDescriptorProto{
			field("TypeID", 1, descriptorpb.FieldDescriptorProto_TYPE_INT32), field("Message", 2, descriptorpb.FieldDescriptorProto_TYPE_STRING),
		}}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file.Messages().Get(0)
}

// TestKitexProtobuf_ExceptionsAreThoseOfProtobuf gives exceptions, whole and damaged, to us
// and to Google's library: both write the same bytes, and read the same. We refuse
// groups, and take texts that are not UTF-8.
func TestKitexProtobuf_ExceptionsAreThoseOfProtobuf(t *testing.T) {
	description := errorProto(t)
	typeField, messageField := description.Fields().ByName("TypeID"), description.Fields().ByName("Message")
	random := rand.New(rand.NewPCG(9, 1))
	types := []int32{0, 1, 6, 20, 127, 128, -1, math.MinInt32, math.MaxInt32}
	accepted, refused := 0, 0
	for range rounds {
		want := thriftwire.ApplicationException{Type: thriftwire.ExceptionType(types[random.IntN(len(types))]), Message: strings.Repeat("ü", random.IntN(100))}
		message := dynamicpb.NewMessage(description)
		if want.Type != 0 {
			message.Set(typeField, protoreflect.ValueOfInt32(int32(want.Type)))
		}
		if want.Message != "" {
			message.Set(messageField, protoreflect.ValueOfString(want.Message))
		}
		theirs, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		ours := make([]byte, kitexprotobuf.ExceptionSize(want))
		kitexprotobuf.PutException(ours, want)
		if !bytes.Equal(ours, theirs) {
			t.Fatalf("%+v: we write % x, they % x", want, ours, theirs)
		}
		for range random.IntN(3) {
			ours = slices.Insert(ours, random.IntN(min(8, len(ours))+1), byte(random.IntN(64)))
		}
		read := dynamicpb.NewMessage(description)
		theirErr := proto.Unmarshal(ours, read)
		got, ourErr := kitexprotobuf.ParseException(ours)
		text := read.Get(messageField).String()
		switch {
		case theirErr == nil && ourErr == nil:
			accepted++
			if int32(got.Type) != int32(read.Get(typeField).Int()) || got.Message != thriftwire.CleanMessage(text) {
				t.Fatalf("% x: they read %v, we %+v", ours, read, got)
			}
		case theirErr == nil && !strings.Contains(ourErr.Error(), "wire type"):
			t.Fatalf("% x: they read %v, we say %v", ours, read, ourErr)
		case ourErr == nil && utf8.Valid(ours):
			t.Fatalf("% x: we read %+v, they say %v", ours, got, theirErr)
		default:
			refused++
		}
		var broken *thriftwire.Error
		if ourErr != nil && !errors.As(ourErr, &broken) {
			t.Fatalf("%v is not a *thriftwire.Error", ourErr)
		}
	}
	if accepted < rounds/10 || refused < rounds/10 {
		t.Errorf("%d accepted by both, %d refused: the comparison says little", accepted, refused)
	}
}
