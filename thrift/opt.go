package thrift

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Opt is the value of an optional scalar or string field, or its absence. The
// zero Opt is absent; an absent field is not written. Setting a field to the
// default of the IDL is not the same as leaving it absent.
//
// ADR-0018 has the measurements behind this shape.
type Opt[T any] struct {
	value T
	set   bool
}

// Some returns an Opt that holds value.
func Some[T any](value T) Opt[T] { return Opt[T]{value: value, set: true} }

// Get returns the value and whether there is one.
func (o Opt[T]) Get() (value T, set bool) { return o.value, o.set }

// IsSet reports whether there is a value.
func (o Opt[T]) IsSet() bool { return o.set }

// Or returns the value, or fallback if there is none.
func (o Opt[T]) Or(fallback T) T {
	if o.set {
		return o.value
	}
	return fallback
}

// Set makes value the value.
func (o *Opt[T]) Set(value T) { *o = Opt[T]{value: value, set: true} }

// Clear removes the value.
func (o *Opt[T]) Clear() { *o = Opt[T]{} }

// IsZero reports whether there is no value; encoding/json asks it for
// `omitzero`.
func (o Opt[T]) IsZero() bool { return !o.set }

// String returns the value as fmt prints it, or "<unset>".
func (o Opt[T]) String() string {
	if !o.set {
		return "<unset>"
	}
	return fmt.Sprint(o.value)
}

// MarshalJSON returns the value's JSON, or null if there is none.
func (o Opt[T]) MarshalJSON() ([]byte, error) {
	if !o.set {
		return []byte("null"), nil
	}
	return json.Marshal(o.value)
}

// UnmarshalJSON sets the value from JSON; null removes it.
func (o *Opt[T]) UnmarshalJSON(text []byte) error {
	if bytes.Equal(text, []byte("null")) {
		o.Clear()
		return nil
	}
	var value T
	if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	o.Set(value)
	return nil
}
