package thrift

// reusable is implemented by generated structs that can be read into where they are,
// which `fulmar gen --reuse` makes.
type reusable interface{ ReusesThrift() }

// Reuses reports whether what is read takes the memory of what the struct was before.
// The struct is then as a new one, with the fields that arrive.
func (r *Reader) Reuses() bool { return r.reuse }

// unread is what a list is that could not be read: old, but for memory to be reused.
func unread[T any](r *Reader, old []T) []T {
	if r.reuse {
		return nil
	}
	return old
}

// listFor returns the memory of old for n elements, nil if that is not enough or must
// not be taken.
func listFor[T any](r *Reader, n int, old []T) []T {
	if r.reuse && n <= cap(old) {
		return old[:n]
	}
	return nil
}
