package thrift

import (
	"fmt"
	"math"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// Codec is the Binary protocol as method descriptors name it: it turns
// generated structs into message bodies and back.
type Codec struct {
	// Strings is where the strings and binaries of decoded messages keep their bytes.
	// Default: StringsAuto.
	Strings Strings
}

// Binary is the codec of generated Thrift methods.
var Binary Codec

// AppendBody appends body, which must be a Struct, to out. On an error out is
// as it was before. Strings of 32 KiB (LinkedStringBytes) and more become pieces of
// out, everything else is copied.
func (Codec) AppendBody(out *linkbuf.Buffer, body any, m limits.Message) error {
	s, ok := body.(Struct)
	if !ok {
		return fmt.Errorf("thrift: %T is not a generated Thrift struct", body)
	}
	w := newWriter(m)
	return w.writeTo(out, s)
}

// ReadBody reads all of in into body, which must be a Struct. If it may, strings with
// StringsScoped refer to in afterwards, and it reports whether there are some;
// otherwise it keeps no reference to in.
func (c Codec) ReadBody(in []byte, body any, m limits.Message, may bool) (refers bool, err error) {
	s, ok := body.(Struct)
	if !ok {
		return false, fmt.Errorf("thrift: %T is not a generated Thrift struct", body)
	}
	lease := copied
	if may {
		lease = lent
	}
	return read(in, s, m, c.Strings, lease)
}

// read reads all of b into s. It reports whether s refers to b.
func read(b []byte, s Struct, m limits.Message, policy Strings, lease lease) (refers bool, err error) {
	if len(b) > math.MaxInt32 {
		// Counts have 32 bits and a sign: checks against what is left rely on less.
		return false, &Error{Kind: thriftwire.LimitExceeded, Offset: -1, Detail: fmt.Sprintf("message of %d bytes (limit %d)", len(b), math.MaxInt32)}
	}
	r := newReader(b, m, policy, lease)
	p := s.ReadThrift(&r, 0)
	if r.err != nil {
		return false, r.err
	}
	if p != len(b) {
		return false, &Error{Kind: thriftwire.Malformed, Offset: p, Detail: fmt.Sprintf(
			"%d bytes follow the end of the struct", len(b)-p)}
	}
	return r.strings.refers, nil
}

// Append returns dst with s in the Binary protocol behind it, under the default
// limits. It writes to dst as far as that has room. On an error it returns dst.
func Append(dst []byte, s Struct) ([]byte, error) {
	w := newWriter(limits.DefaultMessage())
	return w.appendTo(dst, s)
}

// Marshal returns s in the Binary protocol, under the default limits.
func Marshal(s Struct) ([]byte, error) {
	b, err := Append(nil, s)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// Unmarshal reads b, all of it, into s, under the default limits. Fields that
// are not in b keep their values. It keeps no reference to b: strings have memory
// of their own, as StringsAuto describes it.
func Unmarshal(b []byte, s Struct) error {
	_, err := read(b, s, limits.DefaultMessage(), StringsAuto, copied)
	return err
}

// UnmarshalConfig says how UnmarshalOwned decodes. The zero value is usable.
type UnmarshalConfig struct {
	// Strings is where strings and binaries keep their bytes. Default: StringsAuto.
	Strings Strings
}

// UnmarshalOwned is Unmarshal for bytes that nobody will change as long as s, or a
// string from it, is in use: these may refer to b.
func UnmarshalOwned(b []byte, s Struct, config UnmarshalConfig) error {
	_, err := read(b, s, limits.DefaultMessage(), config.Strings, owned)
	return err
}
