package thrift

import (
	"math"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// The methods below are for package view, which reads and writes parts of messages that
// nobody decodes.

// Levels returns how many more levels may nest.
func (w *Writer) Levels() int { return w.depth }

// Fail records an error.
func (w *Writer) Fail(err *Error) { w.fail(err) }

// CheckLevels fails if a value of type t nests deeper than levels, which are left where it
// is written. It came from where there may have been more. What cannot be that deep is not
// walked through.
func (w *Writer) CheckLevels(value []byte, t Type, levels int) {
	if len(value) <= levelBytes*levels || w.err != nil {
		return
	}
	if _, err := thriftwire.Skip(value, t, levels, levels); err != nil {
		w.tooDeep()
	}
}

// Part writes bytes that nobody will change: those of 8 KiB (LinkedPartBytes) and more
// become pieces of the message and are not copied.
func (w *Writer) Part(b, part []byte) []byte {
	if cap(b)-len(b) >= len(part) && (len(part) < limits.LinkedPartBytes || w.out == nil) {
		return append(b, part...)
	}
	if w.err == nil {
		w.checkNext(b, len(part))
	}
	if w.err != nil {
		return b
	}
	if w.out == nil || len(part) <= firstChunk {
		return append(w.Room(b, len(part)), part...)
	}
	w.flush(b)
	if len(part) < limits.LinkedPartBytes {
		w.out.Append(part)
	} else {
		w.out.InsertString(textOf(part))
	}
	return w.out.Room(firstChunk)
}

// PastStop is EndStruct where the end mark was in a part.
func (w *Writer) PastStop() { w.depth++ }

// AppendPart returns dst with what write writes, which will be within levels of others. It
// is as long as it has to be: the message that it becomes part of has a limit.
func (Codec) AppendPart(dst []byte, levels int, write func(w *Writer, b []byte) []byte) ([]byte, *Error) {
	m := limits.DefaultMessage()
	m.Bytes = math.MaxInt32
	w := newWriter(m)
	w.start = len(dst)
	w.depth -= levels
	b := write(&w, dst)
	return b, w.err
}

// Bytes returns all that is read.
func (r *Reader) Bytes() []byte { return r.buf }

// Levels returns how many more levels may nest.
func (r *Reader) Levels() int { return r.depth }

// Fail records an error, and returns the end.
func (r *Reader) Fail(err *Error) int { return r.fail(err) }

// PassString passes over a string.
func (r *Reader) PassString(p int) int {
	if n := len(r.buf) - p; n >= 4 {
		if size := int(I32At(r.buf, p)); uint(size) <= uint(n-4) {
			return p + 4 + size
		}
	}
	return r.failBytes(p, "string")
}

// Keep returns the n bytes at p where they stay as they are, as those of a string, but
// never in memory that is only lent without a Lease; nil after an error.
func (r *Reader) Keep(p, n int) []byte {
	switch {
	case r.strings.lease != lent:
		kept, _ := r.bytesElsewhere(p, n)
		return kept
	case r.views != nil:
		r.strings.refers = true
		return r.buf[p : p+n : p+n]
	case !r.charge(p, int64(n)):
		return nil
	}
	return append([]byte(nil), r.buf[p:p+n]...)
}

// Lease returns how long views of what is read may be used, nil if for ever.
func (r *Reader) Lease() *Lease { return r.views }

// Copied is Part for bytes that will change.
func (w *Writer) Copied(b, part []byte) []byte {
	if b = w.Room(b, len(part)); w.err != nil {
		return b
	}
	return append(b, part...)
}
