package thrift

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// Strings says where decoded strings and binaries keep their bytes. Whatever it
// is, nobody changes the bytes of a string later.
type Strings uint8

const (
	// StringsAuto lets them share memory where that keeps little alive: a string
	// that is kept keeps at most 16 KiB, or 8 times its own length. In a message of
	// up to 16 KiB all share one copy of it; in a longer one those of at least an
	// eighth of it have memory of their own, and shorter ones share pieces of up to
	// 16 KiB. It is the default. Detach of a generated struct gives all of its strings
	// memory of their own.
	StringsAuto Strings = iota
	// StringsMessage lets all of them share the message, or one copy of it: the
	// fastest, if they live about as long as the struct. Each one that is kept keeps
	// the message in memory.
	StringsMessage
	// StringsOwn gives each of them memory of its own.
	StringsOwn
)

// What a string keeps in memory under StringsAuto: a message of up to
// sharedMessageBytes, a piece of sharedPieceBytes, or sharedPart times its own length.
const (
	sharedMessageBytes = 16 << 10
	sharedPieceBytes   = 16 << 10
	sharedPart         = 8
)

// stringMemory is where a Reader finds room for strings.
type stringMemory struct {
	policy Strings
	// owned: nobody changes the message any more.
	owned bool
	// shared holds the bytes from offset from on that strings may refer to now; nil
	// if there are none.
	shared []byte
	from   int
	// copied is the part of the message from copiedFrom on that has been copied.
	copied     []byte
	copiedFrom int
	// message is what long strings may refer to; nil if none may.
	message []byte
	// copies: the next string makes shared, from what is unread then.
	copies bool
	// Strings shorter than ownFrom go to arena, which is charged for when it is made.
	ownFrom int
	arena   []byte
}

// UseStrings says where the strings and binaries that are read from now on are kept,
// and returns what was said before.
func (r *Reader) UseStrings(policy Strings) (before Strings) {
	m, b := &r.strings, r.buf
	before, m.policy = m.policy, policy
	m.shared, m.from, m.message, m.copies, m.ownFrom = nil, 0, nil, false, 0
	switch {
	case policy == StringsOwn:
	case policy == StringsAuto && len(b) > sharedMessageBytes:
		// A piece that is kept has at most sharedPart times the length of its string.
		m.ownFrom = min(len(b), sharedPieceBytes) / sharedPart
		if m.owned {
			m.message = b
		}
	case m.owned:
		m.shared = b
	case m.copied != nil:
		m.shared, m.from = m.copied, m.copiedFrom // reading only goes forward
	default:
		m.copies = true
	}
	return before
}

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
			if used := len(m.arena); n > 0 && n < m.ownFrom && n <= cap(m.arena)-used {
				m.arena = m.arena[:used+n]
				copy(m.arena[used:], b[start:start+n])
				return unsafe.String(&m.arena[used], n), start + n
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
	if m.shared == nil && !m.copies && m.ownFrom == 0 {
		if !r.charge(p, int64(n)) {
			return "", len(r.buf)
		}
		return string(r.buf[p : p+n]), p + n // without memory for one byte
	}
	kept, p := r.bytesElsewhere(p, n)
	return unsafe.String(unsafe.SliceData(kept), len(kept)), p
}

// bytesElsewhere returns the n bytes at p where they are kept, and the end of them.
func (r *Reader) bytesElsewhere(p, n int) ([]byte, int) {
	m := &r.strings
	switch end := p + n; {
	case n == 0:
		return []byte{}, p
	case m.copies:
		// What stands before the first string is not needed.
		if !r.charge(p, int64(len(r.buf)-p)) {
			return nil, len(r.buf)
		}
		m.copied, m.copiedFrom, m.copies = append([]byte(nil), r.buf[p:]...), p, false
		m.shared, m.from = m.copied, p
		return m.shared[:n:n], end
	case m.shared != nil:
		p -= m.from
		return m.shared[p : p+n : p+n], end
	case m.message != nil && n >= len(m.message)/sharedPart:
		return m.message[p:end:end], end
	}
	if n >= m.ownFrom {
		if !r.charge(p, int64(n)) {
			return nil, len(r.buf)
		}
		return append(make([]byte, 0, n), r.buf[p:p+n]...), p + n
	}
	start := len(m.arena)
	if n > cap(m.arena)-start {
		size := min(sharedPieceBytes, len(r.buf)-p)
		if !r.charge(p, int64(size)) {
			return nil, len(r.buf)
		}
		m.arena, start = make([]byte, 0, size), 0
	}
	m.arena = append(m.arena, r.buf[p:p+n]...)
	return m.arena[start : start+n : start+n], p + n
}
