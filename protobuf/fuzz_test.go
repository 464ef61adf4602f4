package protobuf_test

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/protobuf"
)

// FuzzReadBody reads any bytes as messages of several kinds: what the library takes within
// the depth is taken, errors point into the bytes, and what was read is written and read
// again alike.
func FuzzReadBody(f *testing.F) {
	f.Add([]byte{}, uint8(0))
	f.Add([]byte{0x32, 4, 0x0a, 2, 0x32, 0}, uint8(0))
	f.Add([]byte{0x22, 4, 0x0a, 2, 'M', 'N'}, uint8(1))
	f.Add([]byte{0x0a, 5, 'h', 'i'}, uint8(2))
	f.Fuzz(func(t *testing.T, in []byte, which uint8) {
		kinds := []proto.Message{&structpb.Value{}, &descriptorpb.FileDescriptorProto{}, &wrapperspb.StringValue{}, &structpb.Struct{}}
		message := kinds[int(which)%len(kinds)]
		official := message.ProtoReflect().New().Interface()
		before := bytes.Clone(in)
		m := limits.DefaultMessage()
		_, err := protobuf.Binary.ReadBody(in, message, m, true)
		if !bytes.Equal(in, before) {
			t.Fatal("the bytes have changed")
		}
		officialErr := (proto.UnmarshalOptions{RecursionLimit: m.Depth}).Unmarshal(in, official)
		if (err == nil) != (officialErr == nil) {
			t.Fatalf("%v, but the library says %v", err, officialErr)
		}
		if err != nil {
			if failed := asWire(t, err); failed.Offset < -1 || failed.Offset > len(in) || failed.Kind == 0 {
				t.Fatalf("kind %d, offset %d of %d: %v", failed.Kind, failed.Offset, len(in), err)
			}
			return
		}
		b, err := encode(t, message, m)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		again := message.ProtoReflect().New().Interface()
		if _, err := protobuf.Binary.ReadBody(b, again, m, false); err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		// Bytes, not proto.Equal: a NaN is not equal to itself.
		twice, err := (proto.MarshalOptions{Deterministic: true}).Marshal(again)
		once, other := (proto.MarshalOptions{Deterministic: true}).Marshal(message)
		if err != nil || other != nil || !bytes.Equal(once, twice) {
			t.Fatalf("% x became % x, %v, %v", once, twice, err, other)
		}
	})
}
