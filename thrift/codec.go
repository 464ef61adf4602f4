package thrift

import (
	"fmt"
	"math"
	"reflect"
	"sync"

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
	// Canonical makes the bytes of equal messages equal, as AppendCanonical does and at its
	// price. Default: false, maps are written in the order in which Go has them.
	Canonical bool
}

// Binary is the codec of generated Thrift methods.
var Binary Codec

// AppendBody appends body, which must be a Struct, to out. On an error out is
// as it was before. Strings of 32 KiB (LinkedStringBytes) and more become pieces of
// out, everything else is copied.
func (c Codec) AppendBody(out *linkbuf.Buffer, body any, m limits.Message) error {
	s, ok := body.(Struct)
	if !ok {
		return fmt.Errorf("thrift: %T is not a generated Thrift struct", body)
	}
	if c.Canonical {
		return appendCanonicalBody(out, s, m)
	}
	t := takeTools(m)
	t.writer.begin(m)
	err := t.writer.writeTo(out, s)
	t.writer = Writer{}
	t.giveBack(m)
	return err
}

// ReadBody reads all of in into body, which must be a Struct. If mayRefer, strings with
// StringsScoped refer to in afterwards, and it reports whether there are some;
// otherwise it keeps no reference to in. A body that holds views refers to in for ever if
// it may refer to it, or until EndLease if it Lends.
func (c Codec) ReadBody(in []byte, body any, m limits.Message, mayRefer bool) (refers bool, err error) {
	s, ok := body.(Struct)
	if !ok {
		return false, fmt.Errorf("thrift: %T is not a generated Thrift struct", body)
	}
	lease := copied
	var views *Lease
	switch {
	case !mayRefer:
	case c.Lends(body):
		lease, views = c.lend(body.(lender), len(in))
	case c.Keeps(body):
		lease = owned
	default:
		lease = lent
	}
	t := takeTools(m)
	t.reader.begin(in, m, c.Strings, lease)
	t.reader.views = views
	err = t.reader.read(s)
	refers = err == nil && (t.reader.strings.refers || lease == owned)
	t.reader = Reader{}
	t.giveBack(m)
	return refers, err
}

// tools are what the codec needs while it works on a message. The methods of structs
// are called through an interface, so each would be allocated for each message. Both are zero
// between messages, and who has used one makes that one zero again.
type tools struct {
	writer Writer
	reader Reader
}

func takeTools(m limits.Message) *tools {
	if m.Scratch != nil {
		if t, ok := m.Scratch.Get().(*tools); ok {
			return t
		}
	}
	return new(tools)
}

func (t *tools) giveBack(m limits.Message) {
	if m.Scratch != nil {
		m.Scratch.Put(t)
	}
}

// read reads all there is into s.
func (r *Reader) read(s Struct) error {
	b := r.buf
	if len(b) > math.MaxInt32 {
		// Counts have 32 bits and a sign: checks against what is left rely on less.
		return &Error{Kind: thriftwire.LimitExceeded, Offset: -1, Detail: fmt.Sprintf("message of %d bytes (limit %d)", len(b), math.MaxInt32)}
	}
	p := s.ReadThrift(r, 0)
	if r.err != nil {
		return r.err
	}
	if p != len(b) {
		return &Error{Kind: thriftwire.Malformed, Offset: p, Detail: fmt.Sprintf(
			"%d bytes follow the end of the struct", len(b)-p)}
	}
	return nil
}

// Append returns dst with s in the Binary protocol behind it, under the default
// limits. It writes to dst as far as that has room. On an error it returns dst. A nil
// pointer is an error; structs in the shape of Kitex are written as empty ones then.
func Append(dst []byte, s Struct) ([]byte, error) {
	if v := reflect.ValueOf(s); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		if _, kitex := s.(interface{ InitDefault() }); !kitex {
			return dst, &Error{Kind: thriftwire.BadValue, Offset: -1, Detail: fmt.Sprintf("%T: nil where a struct is required", s)}
		}
	}
	t := appendings.Get().(*appending)
	t.writer = newWriter(limits.DefaultMessage())
	t.writer.tools = t
	b, err := t.writer.appendTo(dst, s)
	*t = appending{} // it would keep s, and the counter its memory
	appendings.Put(t)
	return b, err
}

// appendings and readers are what Append and Unmarshal need for a message, as tools are for
// one of a call.
var (
	appendings = sync.Pool{New: func() any { return new(appending) }}
	readers    = sync.Pool{New: func() any { return new(Reader) }}
)

// unmarshal reads what a Reader was made for.
func unmarshal(with Reader, s Struct) error {
	r := readers.Get().(*Reader)
	*r = with
	err := r.read(s)
	*r = Reader{} // it would keep what it has not given away
	readers.Put(r)
	return err
}

// Marshal returns s in the Binary protocol, under the default limits, as Append does.
func Marshal(s Struct) ([]byte, error) {
	b, err := Append(nil, s)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// Unmarshal reads b, all of it, into s, under the default limits. Fields that
// are not in b keep their values: there is no Reset, what the constructor of s returns
// is assigned to it, or UnmarshalConfig.Reuse takes its memory as well. It keeps no
// reference to b: strings have memory of their own, as StringsAuto describes it.
func Unmarshal(b []byte, s Struct) error {
	return unmarshal(newReader(b, limits.DefaultMessage(), StringsAuto, copied), s)
}

// UnmarshalConfig says how UnmarshalOwned decodes. The zero value is usable.
type UnmarshalConfig struct {
	// Strings is where strings and binaries keep their bytes. Default: StringsAuto.
	Strings Strings
	// Reuse makes s what its constructor returns, with the fields that are in b, and
	// takes the memory of its lists, maps and pointers for them: nobody else may use
	// anything that s holds, nor may s hold itself, or the same memory twice. A list that
	// was shortened with append has its last elements behind its end once more, one that
	// slices.Delete has shortened does not. Lists keep their memory, and behind their end
	// strings of longer messages. It is for structs that were generated with
	// `fulmar gen --reuse`, and an error for others. Default: false.
	Reuse bool
}

// UnmarshalOwned is Unmarshal for bytes that nobody will change as long as s, or a
// string from it, is in use: these may refer to b. A call that was given such a string
// of 32 KiB (LinkedStringBytes) or more may use it after it has returned.
func UnmarshalOwned(b []byte, s Struct, config UnmarshalConfig) error {
	r := newReader(b, limits.DefaultMessage(), config.Strings, owned)
	if r.reuse = config.Reuse; r.reuse {
		if _, ok := s.(reusable); !ok {
			return fmt.Errorf("thrift: %T cannot reuse memory: it was generated without --reuse", s)
		}
	}
	return unmarshal(r, s)
}
