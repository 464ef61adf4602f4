package wire

// Opt is an optional value: the shape that the presence flag shares with its
// field. An unset Opt always holds the zero value, so that == compares what is
// meant and a cleared string keeps nothing alive.
type Opt[T any] struct {
	value T
	set   bool
}

// Some returns a set Opt.
func Some[T any](value T) Opt[T] { return Opt[T]{value: value, set: true} }

// Get returns the value and whether it is set.
func (o Opt[T]) Get() (T, bool) { return o.value, o.set }

// IsSet says whether there is a value.
func (o Opt[T]) IsSet() bool { return o.set }

// Pointer returns a pointer to a copy of value: what users of the pointer shape
// write to fill a field.
func Pointer[T any](value T) *T { return &value }

// Pair is an entry of a map whose key Go cannot compare.
type Pair[K, V any] struct {
	Key   K
	Value V
}
