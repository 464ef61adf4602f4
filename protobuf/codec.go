package protobuf

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// Codec is Protobuf's binary form as method descriptors name it: it turns messages of the
// official generator into bodies and back. The zero value is usable. Safe for concurrent
// use.
type Codec struct{}

// Binary is the codec of generated Protobuf methods.
var Binary Codec

// EncodesProtobuf is how package fulmar knows that bodies are in Protobuf.
func (Codec) EncodesProtobuf() {}

// encoding is how errors begin.
const encoding = "protobuf"

// AppendBody appends body, which must be a proto.Message that is not nil, to out. On an
// error out is as it was before. The message is measured once, and written where it is
// sent from. It must not change meanwhile, and must not contain itself: the library does
// not look for that, and runs out of stack.
func (Codec) AppendBody(out *linkbuf.Buffer, body any, m limits.Message) error {
	message, err := messageOf(body)
	if err != nil {
		return err
	}
	options := proto.MarshalOptions{}
	size := options.Size(message)
	if size > m.Bytes-m.HeadBytes {
		return &thriftwire.Error{Kind: thriftwire.LimitExceeded, Encoding: encoding, Offset: -1, Detail: fmt.Sprintf(
			"%s: message of %d bytes (limit %d)", nameOf(message), m.HeadBytes+size, m.Bytes)}
	}
	// Sizes of nested messages are those that Size has just noted.
	options.UseCachedSize = true
	room := out.Room(size)
	written, err := options.MarshalAppend(room, message)
	switch {
	case err != nil:
		return &thriftwire.Error{Kind: thriftwire.BadValue, Encoding: encoding, Offset: -1, Detail: nameOf(message) + ": " + textOf(err)}
	case len(written) != size:
		return &thriftwire.Error{Kind: thriftwire.BadValue, Encoding: encoding, Offset: -1, Detail: fmt.Sprintf(
			"%s: %d bytes were written of a message of %d: it has changed meanwhile", nameOf(message), len(written), size)}
	}
	out.Commit(written)
	return nil
}

// ReadBody reads all of in into body, which must be a proto.Message that is not nil, and
// of which nothing is kept. It keeps no reference to in.
func (Codec) ReadBody(in []byte, body any, m limits.Message, _ bool) (refers bool, err error) {
	message, err := messageOf(body)
	if err != nil {
		return false, err
	}
	// The library has a limit of its own, for its stack.
	depth := min(m.Depth, protowire.DefaultRecursionLimit)
	if err := (proto.UnmarshalOptions{RecursionLimit: depth}).Unmarshal(in, message); err != nil {
		return false, explain(in, message, depth, err)
	}
	return false, nil
}

// messageOf refuses what the library would take for an empty message, or not take.
func messageOf(body any) (proto.Message, error) {
	message, ok := body.(proto.Message)
	switch {
	case !ok:
		return nil, fmt.Errorf("protobuf: %T is not a message of Go's official generator", body)
	case !message.ProtoReflect().IsValid():
		return nil, &thriftwire.Error{Kind: thriftwire.BadValue, Encoding: encoding, Offset: -1, Detail: fmt.Sprintf("%s: the message is nil", nameOf(message))}
	}
	return message, nil
}

func nameOf(message proto.Message) string {
	return string(message.ProtoReflect().Descriptor().FullName())
}

// textOf is the text of an error of the library, which begins with its name and one of two
// kinds of space, so that nobody relies on it.
func textOf(err error) string {
	text := strings.ReplaceAll(err.Error(), "\u00a0", " ")
	return strings.TrimPrefix(text, "proto: ")
}
