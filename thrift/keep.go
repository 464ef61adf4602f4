package thrift

// keeper is implemented by generated messages that hold views, which refer to the bytes
// that they were read from for as long as anybody has them.
type keeper interface{ KeepsThrift() }

// Refers reports whether strings and views of a request are to refer to its bytes, all of
// them: annotations of fields, which have some do so, do not count.
func (c Codec) Refers() bool { return c.Strings == StringsScoped }

// Keeps reports whether body, a message, keeps bytes that it is given for good. Of what
// ReadBody may refer to, such a message refers to all, and for ever.
func (Codec) Keeps(body any) bool {
	_, keeps := body.(keeper)
	return keeps
}
