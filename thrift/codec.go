package thrift

import (
	"fmt"
	"slices"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// Codec is the Binary protocol as method descriptors name it: it turns
// generated structs into message bodies and back.
type Codec struct{}

// Binary is the codec of generated Thrift methods.
var Binary Codec

// AppendBody appends body, which must be a Struct, to out. On an error out is
// as it was before.
func (Codec) AppendBody(out *linkbuf.Buffer, body any, m limits.Message) error {
	s, ok := body.(Struct)
	if !ok {
		return fmt.Errorf("thrift: %T is not a generated Thrift struct", body)
	}
	w := newWriter(out, m)
	s.WriteThrift(&w)
	return w.finish()
}

// ReadBody reads all of in into body, which must be a Struct. It keeps no
// reference to in.
func (Codec) ReadBody(in []byte, body any, m limits.Message) error {
	s, ok := body.(Struct)
	if !ok {
		return fmt.Errorf("thrift: %T is not a generated Thrift struct", body)
	}
	r := newReader(in, m)
	s.ReadThrift(&r)
	if r.err != nil {
		return r.err
	}
	if r.pos != len(in) {
		return &Error{Kind: thriftwire.Malformed, Offset: r.pos, Detail: fmt.Sprintf(
			"%d bytes follow the end of the struct", len(in)-r.pos)}
	}
	return nil
}

// Marshal returns s in the Binary protocol, under the default limits.
func Marshal(s Struct) ([]byte, error) { return Append(nil, s) }

// Append appends s in the Binary protocol to dst, as Marshal writes it, and
// returns the extended slice. Where dst has room nothing else is allocated for
// the result, so a caller that keeps it for the next message reuses its memory.
// On an error it returns dst as it was.
func Append(dst []byte, s Struct) ([]byte, error) {
	out := linkbuf.New(linkbuf.NewPool())
	defer out.Release()
	if err := Binary.AppendBody(out, s, limits.DefaultMessage()); err != nil {
		return dst, err
	}
	dst = slices.Grow(dst, out.Len())
	for _, part := range out.Slices(nil) {
		dst = append(dst, part...)
	}
	return dst, nil
}

// Unmarshal reads b, all of it, into s, under the default limits. Fields that
// are not in b keep their values. It keeps no reference to b.
func Unmarshal(b []byte, s Struct) error {
	return Binary.ReadBody(b, s, limits.DefaultMessage())
}
