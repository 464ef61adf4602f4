package protobuf_test

import (
	"bytes"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/protobuf"
)

// encode returns a message as it is sent, behind something that was sent before.
func encode(t *testing.T, message any, m limits.Message) ([]byte, error) {
	t.Helper()
	const before = "before"
	out := linkbuf.New(linkbuf.NewPool())
	defer out.Release()
	out.AppendString(before)
	err := protobuf.Binary.AppendBody(out, message, m)
	b := slices.Concat(out.Slices(nil)...)
	if !bytes.HasPrefix(b, []byte(before)) {
		t.Fatalf("what was there is %.20q now", b)
	}
	return b[len(before):], err
}

func asWire(t *testing.T, err error) *thriftwire.Error {
	t.Helper()
	var failed *thriftwire.Error
	if !errors.As(err, &failed) {
		t.Fatalf("%T: %v, want an error about a message", err, err)
	}
	return failed
}

func nested(t *testing.T, depth int) *structpb.Value {
	t.Helper()
	value := structpb.NewNullValue()
	for range depth {
		value = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{value}})
	}
	return value
}

func TestCodec_WritesWhatTheLibraryReads(t *testing.T) {
	for name, message := range map[string]proto.Message{
		"empty":   &descriptorpb.FileDescriptorProto{},
		"short":   wrapperspb.String("hi"),
		"long":    wrapperspb.String(strings.Repeat("x", 3*limits.LinkedStringBytes)),
		"nested":  nested(t, 20),
		"a proto": &descriptorpb.FileDescriptorProto{Name: proto.String("a.proto"), MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("M")}}},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := encode(t, message, limits.DefaultMessage())
			if err != nil {
				t.Fatal(err)
			}
			official := message.ProtoReflect().New().Interface()
			if err := proto.Unmarshal(b, official); err != nil || !proto.Equal(official, message) {
				t.Errorf("the library reads %v, %v", official, err)
			}
			// What the message held is gone.
			read := proto.Clone(message)
			refers, err := protobuf.Binary.ReadBody(bytes.Clone(b), read, limits.DefaultMessage(), true)
			if err != nil || refers || !proto.Equal(read, message) {
				t.Errorf("read as %v, refers %v, %v", read, refers, err)
			}
		})
	}
}

// TestCodec_KeepsNoBytes: what was read does not change with the bytes.
func TestCodec_KeepsNoBytes(t *testing.T) {
	b, err := encode(t, wrapperspb.Bytes([]byte("some bytes")), limits.DefaultMessage())
	if err != nil {
		t.Fatal(err)
	}
	read := &wrapperspb.BytesValue{}
	if _, err := protobuf.Binary.ReadBody(b, read, limits.DefaultMessage(), true); err != nil {
		t.Fatal(err)
	}
	clear(b)
	if string(read.Value) != "some bytes" {
		t.Errorf("the message holds %q", read.Value)
	}
}

func TestCodec_RefusesToWrite(t *testing.T) {
	short := limits.DefaultMessage()
	short.Bytes, short.HeadBytes = 100, 20
	for name, test := range map[string]struct {
		message any
		limit   limits.Message
		kind    thriftwire.Kind
		text    string
	}{
		"too long":     {wrapperspb.String(strings.Repeat("x", 79)), short, thriftwire.LimitExceeded, "protobuf: google.protobuf.StringValue: message of 101 bytes (limit 100)"},
		"nil":          {(*wrapperspb.StringValue)(nil), short, thriftwire.BadValue, "protobuf: google.protobuf.StringValue: the message is nil"},
		"not UTF-8":    {wrapperspb.String("\xff"), short, thriftwire.BadValue, "protobuf: google.protobuf.StringValue: string field contains invalid UTF-8"},
		"not complete": {&descriptorpb.UninterpretedOption_NamePart{}, short, thriftwire.BadValue, "required field google.protobuf.UninterpretedOption.NamePart.name_part not set"},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := encode(t, test.message, test.limit)
			if failed := asWire(t, err); failed.Kind != test.kind || !strings.Contains(failed.Error(), test.text) || len(b) > 0 {
				t.Errorf("%q was written, kind %d: %v; want kind %d with %q", b, failed.Kind, failed, test.kind, test.text)
			}
		})
	}
	if _, err := encode(t, wrapperspb.String(strings.Repeat("x", 78)), short); err != nil {
		t.Errorf("as long as may be: %v", err)
	}
	for _, body := range []any{nil, "text", wrapperspb.StringValue{}} {
		if _, err := encode(t, body, short); err == nil || !strings.Contains(err.Error(), "is not a message of Go's official generator") {
			t.Errorf("%T: %v", body, err)
		}
		if _, err := protobuf.Binary.ReadBody(nil, body, short, false); err == nil {
			t.Errorf("read into %T", body)
		}
	}
}

// TestCodec_SaysWhereBytesAreBroken: kind, place and text of errors.
func TestCodec_SaysWhereBytesAreBroken(t *testing.T) {
	flat := limits.DefaultMessage()
	flat.Depth = 2
	deep := limits.DefaultMessage()
	deep.Depth = math.MaxInt
	stacked := bytes.Repeat([]byte{0x0b}, 20_000) // groups that begin
	for name, test := range map[string]struct {
		in    []byte
		into  proto.Message
		limit limits.Message
		kind  thriftwire.Kind
		text  string
	}{
		"cut":            {[]byte{0x0a, 5, 'h', 'i'}, &wrapperspb.StringValue{}, deep, thriftwire.Truncated, "protobuf: google.protobuf.StringValue: value: the bytes end inside a field (at byte 1)"},
		"a huge length":  {[]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x07}, &wrapperspb.StringValue{}, deep, thriftwire.Truncated, "(at byte 1)"},
		"a long varint":  {append([]byte{0x08}, bytes.Repeat([]byte{0xff}, 11)...), &wrapperspb.Int64Value{}, deep, thriftwire.Malformed, "value: broken field: variable length integer overflow (at byte 1)"},
		"field 0":        {[]byte{0x02, 0}, &wrapperspb.StringValue{}, deep, thriftwire.Malformed, "invalid field number (at byte 0)"},
		"not UTF-8":      {[]byte{0x0a, 1, 0xff}, &wrapperspb.StringValue{}, deep, thriftwire.Malformed, "google.protobuf.StringValue: value: string is not UTF-8 (at byte 2)"},
		"inside":         {[]byte{0x22, 4, 0x0a, 2, 'M', 0xff, 0x22, 2, 0x0a, 9}, &descriptorpb.FileDescriptorProto{}, deep, thriftwire.Truncated, "google.protobuf.FileDescriptorProto: message_type: name: the bytes end inside a field (at byte 9)"},
		"packed":         {[]byte{0x0a, 2, 1, 0x80}, &descriptorpb.SourceCodeInfo_Location{}, deep, thriftwire.Truncated, "path: the bytes end inside a field (at byte 3)"},
		"deep":           {[]byte{0x32, 4, 0x0a, 2, 0x32, 0}, &structpb.Value{}, flat, thriftwire.LimitExceeded, "list_value: values: messages nest too deep (at byte 4)"},
		"deep groups":    {stacked, &wrapperspb.StringValue{}, deep, thriftwire.LimitExceeded, "groups nest too deep (at byte 1)"},
		"not complete":   {[]byte{0x12, 0}, &descriptorpb.UninterpretedOption{}, deep, thriftwire.MissingField, "required field google.protobuf.UninterpretedOption.NamePart.name_part not set"},
		"end of a group": {[]byte{0x0c}, &wrapperspb.StringValue{}, deep, thriftwire.Malformed, "mismatching end group marker (at byte 1)"},
	} {
		t.Run(name, func(t *testing.T) {
			before := bytes.Clone(test.in)
			_, err := protobuf.Binary.ReadBody(test.in, test.into, test.limit, false)
			if failed := asWire(t, err); failed.Kind != test.kind || !strings.Contains(failed.Error(), test.text) {
				t.Errorf("kind %d: %v; want kind %d with %q", failed.Kind, failed, test.kind, test.text)
			}
			if !bytes.Equal(before, test.in) {
				t.Errorf("the bytes have changed")
			}
		})
	}
	if _, err := protobuf.Binary.ReadBody([]byte{0x32, 0}, &structpb.Value{}, flat, false); err != nil {
		t.Errorf("as deep as may be: %v", err)
	}
}

// TestCodec_LengthsAllocateNothing: a length that the bytes do not back costs no memory.
func TestCodec_LengthsAllocateNothing(t *testing.T) {
	for _, in := range [][]byte{
		{0x0a, 0xff, 0xff, 0xff, 0xff, 0x07},       // a string of 2 GiB
		{0x0a, 0xff, 0xff, 0xff, 0xff, 0x07, 1, 1}, // the same as packed numbers
	} {
		for _, into := range []proto.Message{&wrapperspb.StringValue{}, &descriptorpb.SourceCodeInfo_Location{}} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range 100 {
				if _, err := protobuf.Binary.ReadBody(in, into, limits.DefaultMessage(), false); err == nil {
					t.Fatal("was accepted")
				}
			}
			runtime.ReadMemStats(&after)
			if got := (after.TotalAlloc - before.TotalAlloc) / 100; got > 4<<10 {
				t.Errorf("% x into %T takes %d bytes", in, into, got)
			}
		}
	}
}

func TestCodec_WritesWithoutAllocating(t *testing.T) {
	out := linkbuf.New(linkbuf.NewPool())
	message := wrapperspb.String("some text")
	m := limits.DefaultMessage()
	got := testing.AllocsPerRun(1000, func() {
		if err := protobuf.Binary.AppendBody(out, message, m); err != nil {
			t.Fatal(err)
		}
		out.Release()
	})
	if got > 0 {
		t.Errorf("%.1f allocations, want none", got)
	}
}
