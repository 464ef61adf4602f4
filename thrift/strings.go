package thrift

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// Strings says where decoded strings and binaries keep their bytes. Nobody changes
// the bytes of a string later, but with StringsScoped.
type Strings uint8

const (
	// StringsAuto lets them share memory where that keeps little alive: a string
	// that is kept keeps at most 16 KiB, or 8 times its own length. In a message of
	// up to 16 KiB all share one copy of it; in a longer one those of 2 KiB and more
	// have memory of their own, and shorter ones share pieces of up to 16 KiB. In bytes
	// that UnmarshalOwned was given, strings of at least an eighth of a longer message
	// refer to it. It is the default. Detach of a generated struct gives all of its
	// strings memory of their own.
	StringsAuto Strings = iota
	// StringsMessage lets all of them share the message, or one copy of it: the
	// fastest, if they live about as long as the struct. Each one that is kept keeps
	// the message in memory.
	StringsMessage
	// StringsOwn gives each of them memory of its own.
	StringsOwn
	// StringsScoped lets those of a request refer to the memory that it was received
	// in, until its handler returns; then they become something else, so what is to
	// live longer must be cloned, see Clone and Detach of generated structs. It saves
	// the copy of the message. Elsewhere it is StringsMessage: in replies, and in
	// requests of 32 KiB (LinkedStringBytes) and more, whose strings may still be on
	// their way when the handler has returned. Views that a method takes are lent as well:
	// what they return is a copy, and they panic when they are used later.
	StringsScoped
)

// What a string keeps in memory under StringsAuto: a message of up to
// sharedMessageBytes, a piece of sharedPieceBytes, or sharedPart times its own length.
const (
	sharedMessageBytes = 16 << 10
	sharedPieceBytes   = 16 << 10
	sharedPart         = 8
)

// lease is how long the bytes of a message stay as they are.
type lease uint8

const (
	copied lease = iota // until it has been read
	lent                // as long as the message of StringsScoped is in use
	owned               // for ever
)

// stringPlaces says where a Reader finds the bytes of strings.
type stringPlaces struct {
	// shared holds the bytes from offset from on that strings may refer to now; nil
	// if there are none.
	shared []byte
	from   int
	// Strings shorter than ownFrom go to the arena.
	ownFrom int
	policy  Strings
	lease   lease
	// long: long strings refer to the message.
	long bool
	// copies: the next string makes shared, from what is unread then. copied: it is that.
	copies, copied bool
	// refers: strings may refer to a message that is only lent.
	refers bool
}

// UseStrings says where the strings and binaries that are read from now on are kept,
// and returns what was said before.
func (r *Reader) UseStrings(policy Strings) (before Strings) {
	m := &r.strings
	before = m.policy
	if m.copied {
		memory := r.more()
		memory.copied, memory.copiedFrom = m.shared, m.from
	}
	*m = stringPlaces{policy: policy, lease: m.lease, refers: m.refers}
	r.placeStrings()
	return before
}

// placeStrings finds the places for the policy that there is now; there are none yet.
func (r *Reader) placeStrings() {
	m := &r.strings
	switch policy := m.policy; {
	case policy == StringsOwn:
	case policy == StringsAuto && len(r.buf) > sharedMessageBytes:
		// A piece that is kept has at most sharedPart times the length of its string.
		m.ownFrom = min(len(r.buf), sharedPieceBytes) / sharedPart
		m.long = m.lease == owned
		r.more() // has the arena
	case m.lease == owned:
		m.shared = r.buf
	case m.lease == lent && policy == StringsScoped:
		m.shared, m.refers = r.buf, true
	case r.memory != nil && r.memory.copied != nil:
		m.shared, m.from = r.memory.copied, r.memory.copiedFrom // reading only goes forward
	default:
		m.copies = true
	}
}

// wideCopy is how many bytes are copied of a short string, whatever its length, if there
// are as many on both sides: what is too much is written over by the next string.
const wideCopy = 16

// String reads a string. The bytes are not checked to be UTF-8: Thrift peers send
// binary data as strings.
func (r *Reader) String(p int) (string, int) {
	b := r.buf
	if len(b)-p >= 4 {
		n := int(int32(binary.BigEndian.Uint32(b[p:])))
		if start := p + 4; uint(n) <= uint(len(b)-start) {
			m := &r.strings
			if shared := m.shared; n > 0 && shared != nil {
				return unsafe.String(&shared[start-m.from], n), start + n
			}
			if n > 0 && n < m.ownFrom && n <= cap(r.memory.arena)-len(r.memory.arena) {
				memory := r.memory
				used := len(memory.arena)
				to := unsafe.Add(unsafe.Pointer(unsafe.SliceData(memory.arena)), used)
				if n <= wideCopy && len(b)-start >= wideCopy && cap(memory.arena)-used >= wideCopy {
					*(*[wideCopy]byte)(to) = *(*[wideCopy]byte)(b[start : start+wideCopy : start+wideCopy])
				} else {
					copy(memory.arena[used:used+n], b[start:])
				}
				memory.arena = memory.arena[:used+n]
				return unsafe.String((*byte)(to), n), start + n
			}
			return r.stringElsewhere(start, n)
		}
	}
	return "", r.failBytes(p, "string")
}

// Binary reads a binary; never nil unless Failed. Its capacity is its length, so
// that what is appended does not reach other values.
func (r *Reader) Binary(p int) ([]byte, int) {
	b := r.buf
	if len(b)-p >= 4 {
		n := int(int32(binary.BigEndian.Uint32(b[p:])))
		if start := p + 4; uint(n) <= uint(len(b)-start) {
			return r.bytesElsewhere(start, n)
		}
	}
	return nil, r.failBytes(p, "binary")
}

// failBytes fails because the length at p is none, or the bytes are not there.
func (r *Reader) failBytes(p int, what string) int {
	if len(r.buf)-p < 4 {
		return r.short(p, 4, what+" length")
	}
	n := int(int32(binary.BigEndian.Uint32(r.buf[p:])))
	if n < 0 {
		return r.fail(&Error{Kind: thriftwire.Malformed, Offset: p, Detail: fmt.Sprintf("%s of %d bytes", what, n)})
	}
	return r.short(p+4, n, what)
}

// stringElsewhere returns the n bytes at p as a string, and the end of them.
func (r *Reader) stringElsewhere(p, n int) (string, int) {
	m := &r.strings
	if n == 0 {
		return "", p
	}
	if m.policy == StringsOwn {
		if !r.charge(p, int64(n)) {
			return "", len(r.buf)
		}
		return string(r.buf[p : p+n]), p + n // without memory for one byte
	}
	kept, p := r.bytesElsewhere(p, n)
	return textOf(kept), p
}

// arenaSize guesses how many bytes of strings there are from p to the end of a message:
// an eighth more than the last piece would need at the rate at which it was used up, and
// a quarter before there is one. With half, and nothing learned, the piece of a message
// of 20 KB with 5 KB of text was twice too long, a tenth of all that it takes.
func (m *memory) arenaSize(p, end int) int {
	unread := int64(end - p)
	passed, used := int64(p-m.arenaFrom), int64(len(m.arena))
	if used == 0 || passed <= 0 {
		return int(unread / 4)
	}
	return int(unread * used / passed * 9 / 8)
}

// textOf returns bytes that nobody will change as a string.
func textOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// bytesOf returns a string as bytes, which nobody may change.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// bytesElsewhere returns the n bytes at p where they are kept, and the end of them.
func (r *Reader) bytesElsewhere(p, n int) ([]byte, int) {
	m := &r.strings
	switch end := p + n; {
	case n == 0:
		return []byte{}, p
	case m.copies:
		if !r.copyRest(p) {
			return nil, len(r.buf)
		}
		return m.shared[:n:n], end
	case m.shared != nil:
		p -= m.from
		return m.shared[p : p+n : p+n], end
	case m.long && n >= len(r.buf)/sharedPart:
		return r.buf[p:end:end], end
	}
	if n >= m.ownFrom {
		if !r.charge(p, int64(n)) {
			return nil, len(r.buf)
		}
		return append(make([]byte, 0, n), r.buf[p:p+n]...), p + n
	}
	memory := r.more()
	start := len(memory.arena)
	if n > cap(memory.arena)-start {
		size := min(sharedPieceBytes, max(n, memory.arenaSize(p, len(r.buf))))
		if !r.charge(p, int64(size)) {
			return nil, len(r.buf)
		}
		memory.arena, memory.arenaFrom, start = make([]byte, 0, size), p, 0
	}
	memory.arena = append(memory.arena, r.buf[p:p+n]...)
	return memory.arena[start : start+n : start+n], p + n
}

// copyRest makes what strings from p on share. What stands before the first of them is
// not needed.
func (r *Reader) copyRest(p int) bool {
	m := &r.strings
	if !r.charge(p, int64(len(r.buf)-p)) {
		return false
	}
	rest := r.buf[p:] // named, so that the compiler makes memory that need not be cleared
	shared := make([]byte, len(rest))
	copy(shared, rest)
	m.shared, m.from = shared, p
	m.copies, m.copied = false, true
	return true
}
