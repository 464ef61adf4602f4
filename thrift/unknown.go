package thrift

import (
	"strconv"
	"strings"

	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// Unknown holds the fields of a received struct that its definition does not have, as
// they came, in their order. Generated structs that keep such fields have one, and
// write it behind their own fields. The zero Unknown holds none.
//
// It is a value that nobody can change: copies are independent, and == compares the
// bytes.
type Unknown struct {
	// raw is a string so that structs that are keys of maps stay comparable. It is the
	// fields one behind the other: only a Reader makes it, which has seen their ends.
	raw string
}

// IsZero reports whether there are no fields.
func (u Unknown) IsZero() bool { return u.raw == "" }

// SizeThrift returns how many bytes the fields take on the wire.
func (u Unknown) SizeThrift() int { return len(u.raw) }

// Detach gives the fields memory of their own.
func (u *Unknown) Detach() { u.raw = strings.Clone(u.raw) }

// String returns how many bytes there are: what is in them is not known.
func (u Unknown) String() string { return strconv.Itoa(len(u.raw)) + " bytes" }

// Unknown writes the fields of u. They may nest no deeper here than fields that are known,
// although they did where they came from.
func (w *Writer) Unknown(b []byte, u Unknown) []byte {
	if len(u.raw) > levelBytes*w.depth && !u.nestsWithin(w.depth) {
		w.tooDeep()
		return b
	}
	if cap(b)-len(b) >= len(u.raw) {
		return append(b, u.raw...)
	}
	if w.err == nil {
		w.checkNext(b, len(u.raw))
	}
	return w.textElsewhere(b, u.raw)
}

// levelBytes is the least that a level of nesting takes: the header of a struct in a
// struct, and its end. Fields that cannot nest too deeply are not walked through.
const levelBytes = 4

// nestsWithin reports whether no field nests more than depth levels.
func (u Unknown) nestsWithin(depth int) bool {
	b := bytesOf(u.raw)
	for p := 0; p < len(b); {
		size, err := thriftwire.Skip(b[p+3:], KeyAt(b, p).Type(), depth, depth)
		if err != nil {
			return false
		}
		p += 3 + size
	}
	return true
}

// KeepUnknown starts to collect the fields of a struct that ReadThrift does not know.
func (r *Reader) KeepUnknown() unknownRun { return unknownRun{} }

// unknownRun is what was collected. It is only seen by generated code, as a variable.
type unknownRun struct {
	// start and end are where the last of them stand that follow each other, kept are
	// those before.
	start, end int
	kept       []byte
}

// Add passes over the field whose header is at p, as Reader.Skip does, and keeps it.
func (u *unknownRun) Add(r *Reader, p int, key FieldKey) int {
	next := r.Skip(p, key)
	if r.err != nil {
		return next
	}
	if u.end == u.start || u.end != p { // not behind the last one
		if u.end > u.start && !u.keep(r) {
			return len(r.buf)
		}
		// Strings between here and the end of the struct share a copy of the message that
		// begins with the first of them, which would be too late for this field.
		if r.strings.copies && !r.copyRest(p) {
			return len(r.buf)
		}
		u.start = p
	}
	u.end = next
	return next
}

// keep copies the run. What is made at once doubles, so that a message of known and
// unknown fields by turns is not copied again for each of them.
func (u *unknownRun) keep(r *Reader) bool {
	run := r.buf[u.start:u.end]
	if need := len(u.kept) + len(run); need > cap(u.kept) {
		size := min(max(2*cap(u.kept), need), len(r.buf))
		if !r.charge(u.start, int64(size)) {
			return false
		}
		u.kept = append(make([]byte, 0, size), u.kept...)
	}
	u.kept = append(u.kept, run...)
	return true
}

// Store replaces what *to holds, if there were any fields, and returns p, or the end
// after an error. Fields that followed each other are kept as strings are.
func (u *unknownRun) Store(r *Reader, p int, to *Unknown) int {
	switch {
	case u.end == u.start || r.err != nil:
		return p
	case u.kept == nil:
		to.raw, _ = r.stringElsewhere(u.start, u.end-u.start)
	case u.keep(r):
		to.raw = textOf(u.kept)
	}
	if r.err != nil {
		return len(r.buf)
	}
	return p
}

// KeepUnknownArm keeps the field whose header is at p as the only one, which is what
// unions have.
func (r *Reader) KeepUnknownArm(p int, key FieldKey, to *Unknown) int {
	u := r.KeepUnknown()
	return u.Store(r, u.Add(r, p, key), to)
}
