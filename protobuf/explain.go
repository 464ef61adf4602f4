package protobuf

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// explain returns the error for bytes that the library refused. It goes through them once
// more, because the library does not say where they are wrong.
func explain(in []byte, message proto.Message, depth int, refused error) error {
	descriptor := message.ProtoReflect().Descriptor()
	found := search(in, 0, descriptor, depth)
	if found == nil {
		// A required field that is absent, or what only the library knows of.
		found = &thriftwire.Error{Kind: thriftwire.Malformed, Offset: -1, Detail: textOf(refused)}
		switch {
		case strings.Contains(found.Detail, "recursion depth"):
			found.Kind = thriftwire.LimitExceeded
		case proto.CheckInitialized(message) != nil:
			found.Kind = thriftwire.MissingField
		}
	}
	found.Encoding = encoding
	found.Inside(string(descriptor.FullName()))
	return found
}

// search returns what is wrong with the fields of a message that begins at offset of its
// body, nil if nothing is. Depth is how deep messages may nest, this one included.
func search(in []byte, offset int, descriptor protoreflect.MessageDescriptor, depth int) *thriftwire.Error {
	if depth <= 0 {
		return &thriftwire.Error{Kind: thriftwire.LimitExceeded, Offset: offset, Detail: "messages nest too deep"}
	}
	for len(in) > 0 {
		number, kind, tag := protowire.ConsumeTag(in)
		if tag < 0 {
			return broken(tag, offset)
		}
		field := descriptor.Fields().ByNumber(number)
		value := protowire.ConsumeFieldValue(number, kind, in[tag:])
		found := (*thriftwire.Error)(nil)
		switch {
		case value < 0:
			found = broken(value, offset+tag)
		case kind == protowire.BytesType && field != nil:
			content, length := protowire.ConsumeBytes(in[tag:])
			found = searchBytes(content, offset+tag+length-len(content), field, depth)
		}
		if found != nil {
			if field != nil {
				found.Inside(string(field.Name()))
			}
			return found
		}
		in, offset = in[tag+value:], offset+tag+value
	}
	return nil
}

// searchBytes looks into the value of a field that has a length.
func searchBytes(content []byte, offset int, field protoreflect.FieldDescriptor, depth int) *thriftwire.Error {
	switch {
	case field.Message() != nil && field.Kind() == protoreflect.MessageKind:
		return search(content, offset, field.Message(), depth-1)
	case field.Kind() == protoreflect.StringKind && mustBeUTF8(field) && !utf8.Valid(content):
		return &thriftwire.Error{Kind: thriftwire.Malformed, Offset: offset, Detail: "string is not UTF-8"}
	case field.IsList() && packable(field.Kind()):
		return searchPacked(content, offset, field.Kind())
	}
	return nil
}

// mustBeUTF8: strings may be anything where proto2 or a feature says so.
func mustBeUTF8(field protoreflect.FieldDescriptor) bool {
	one, known := field.(interface{ EnforceUTF8() bool })
	return known && one.EnforceUTF8()
}

func packable(kind protoreflect.Kind) bool {
	return kind != protoreflect.StringKind && kind != protoreflect.BytesKind && kind != protoreflect.MessageKind && kind != protoreflect.GroupKind
}

// searchPacked looks through numbers without tags.
func searchPacked(content []byte, offset int, kind protoreflect.Kind) *thriftwire.Error {
	width := protowire.VarintType
	switch kind {
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		width = protowire.Fixed32Type
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		width = protowire.Fixed64Type
	}
	for len(content) > 0 {
		n := protowire.ConsumeFieldValue(1, width, content)
		if n < 0 {
			return broken(n, offset)
		}
		content, offset = content[n:], offset+n
	}
	return nil
}

// broken says what a negative length of package protowire means.
func broken(code, offset int) *thriftwire.Error {
	err := protowire.ParseError(code)
	found := &thriftwire.Error{Kind: thriftwire.Malformed, Offset: offset, Detail: fmt.Sprint("broken field: ", textOf(err))}
	switch textOf(err) {
	case "unexpected EOF":
		found.Kind, found.Detail = thriftwire.Truncated, "the bytes end inside a field"
	case "parse error": // what the library has no other text for
		found.Kind, found.Detail = thriftwire.LimitExceeded, "groups nest too deep"
	}
	return found
}
