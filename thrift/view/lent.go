package view

import (
	"slices"

	"github.com/fulmar-rpc/fulmar/thrift"
)

// The functions below read bytes that may be lent until a call ends. What they return is a
// copy then, and stays as it is: only the view itself can be used too late, and that panics.
// They look whether the call has ended when they have read.

// inTime panics if v is lent and its call has ended: methods that read no bytes ask it.
func (v *View) inTime() {
	if v.lease != nil {
		v.lease.Check()
	}
}

// lent returns a part of the bytes of a view.
func (v *View) lent(from, to uint32) []byte {
	b := v.buf[from:to:to]
	if v.lease == nil {
		return b
	}
	if v.lease.Recycles() {
		b = slices.Clip(append([]byte{}, b...))
	}
	v.lease.Check()
	return b
}

// lentNumber returns a value of fixed size.
func (v *View) lentNumber(s Slot) (number uint64) {
	for _, b := range v.buf[s.start:s.end] {
		number = number<<8 | uint64(b)
	}
	v.lease.Check()
	return number
}

// part writes a part of the bytes of a view. What is lent may be something else before the
// message has left.
func (v *View) part(w *thrift.Writer, b []byte, from, to int) []byte {
	if v.lease.Recycles() {
		b = w.Copied(b, v.buf[from:to])
		v.lease.Check()
		return b
	}
	return w.Part(b, v.buf[from:to])
}
