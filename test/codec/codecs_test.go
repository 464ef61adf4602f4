package codec_test

import (
	"context"
	"fmt"
	"reflect"

	apachethrift "github.com/apache/thrift/lib/go/thrift"
	kitexthrift "github.com/cloudwego/gopkg/protocol/thrift"

	apachebase "github.com/fulmar-rpc/fulmar/test/apache/gen/base"
	apache "github.com/fulmar-rpc/fulmar/test/apache/gen/everything"
	"github.com/fulmar-rpc/fulmar/test/interop/gen/base"
	"github.com/fulmar-rpc/fulmar/test/interop/gen/everything"
	kitexbase "github.com/fulmar-rpc/fulmar/test/kitex/gen/base"
	kitex "github.com/fulmar-rpc/fulmar/test/kitex/gen/everything"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// subject is a struct of the definitions as each codec has it, new every time.
type subject struct {
	name   string
	ours   func() thrift.Struct
	kitex  func() kitexthrift.FastCodec
	apache func() apachethrift.TStruct
	// record is what the definitions say about it.
	record *record
}

func newSubject[O thrift.Struct, K kitexthrift.FastCodec, A apachethrift.TStruct](known map[reflect.Type]*record, ours func() O, kitex func() K, apache func() A) *subject {
	return &subject{
		name:   reflect.TypeFor[O]().Elem().Name(),
		ours:   func() thrift.Struct { return ours() },
		kitex:  func() kitexthrift.FastCodec { return kitex() },
		apache: func() apachethrift.TStruct { return apache() },
		record: recordOf(reflect.TypeFor[K]().Elem(), known),
	}
}

// subjects returns all of them; a fuzzer names one by its index.
func subjects() []*subject {
	known := map[reflect.Type]*record{}
	all := []*subject{
		newSubject(known, everything.NewScalars, kitex.NewScalars, apache.NewScalars),
		newSubject(known, everything.NewDefaults, kitex.NewDefaults, apache.NewDefaults),
		newSubject(known, everything.NewStrict, kitex.NewStrict, apache.NewStrict),
		newSubject(known, everything.NewContainers, kitex.NewContainers, apache.NewContainers),
		newSubject(known, everything.NewShape, kitex.NewShape, apache.NewShape),
		newSubject(known, everything.NewDrawing, kitex.NewDrawing, apache.NewDrawing),
		newSubject(known, everything.NewTree, kitex.NewTree, apache.NewTree),
		newSubject(known, everything.NewNothing, kitex.NewNothing, apache.NewNothing),
		newSubject(known, everything.NewRejected, kitex.NewRejected, apache.NewRejected),
		newSubject(known, base.NewNotFound, kitexbase.NewNotFound, apachebase.NewNotFound),
	}
	for t, r := range known {
		r.learnDefaults(t)
	}
	return all
}

// result is what a codec made of a message.
type result struct {
	// refused is why the message was not read.
	refused error
	// used is how many of its bytes were.
	used int
	// written is what was read, written again, and unwritten why that failed.
	written   []byte
	unwritten error
}

// ours never accepts a message without having used all of it.
func (s *subject) byOurs(message []byte, config thrift.UnmarshalConfig) (r result) {
	value := s.ours()
	// A copy: strings may refer to it, and the fuzzer writes over what it gave.
	if r.refused = thrift.UnmarshalOwned(append([]byte(nil), message...), value, config); r.refused != nil {
		return r
	}
	r.used = len(message)
	r.written, r.unwritten = thrift.Marshal(value)
	return r
}

// caught calls f and returns its error, or its panic as one: Kitex and Apache panic
// over some bytes and some values.
func caught(f func() error) (err error) {
	defer func() {
		if recovered := recover(); recovered != nil {
			err = fmt.Errorf("panic: %v", recovered)
		}
	}()
	return f()
}

func (s *subject) byKitex(message []byte) (r result) {
	value := s.kitex()
	r.refused = caught(func() (err error) {
		r.used, err = value.FastRead(message)
		return err
	})
	if r.refused == nil {
		r.unwritten = caught(func() error {
			r.written = kitexthrift.FastMarshal(value)
			return nil
		})
	}
	return r
}

// apacheConfig has the limits that its library has by default.
func apacheConfig() *apachethrift.TConfiguration { return &apachethrift.TConfiguration{} }

func (s *subject) byApache(message []byte) (r result) {
	ctx := context.Background()
	value, memory := s.apache(), apachethrift.NewTMemoryBufferLen(len(message))
	memory.Write(message)
	protocol := apachethrift.NewTBinaryProtocolConf(memory, apacheConfig())
	r.refused = caught(func() error { return value.Read(ctx, protocol) })
	r.used = len(message) - memory.Len()
	if r.refused == nil {
		r.unwritten = caught(func() error {
			memory.Reset()
			err := value.Write(ctx, protocol)
			r.written = append([]byte(nil), memory.Bytes()...)
			return err
		})
	}
	return r
}
