package eventloop

import "errors"

// ErrMore is what a Handler returns, as it is or wrapped, when it needs more
// bytes than have arrived, and what a served connection's Reader returns then.
var ErrMore = errors.New("eventloop: more bytes needed")

// ErrWriteStalled is the error of a connection whose peer took no bytes for
// Config.WriteStallTimeout while some waited to be written, or acknowledged none
// for Config.UserTimeout; then the error wraps that of the system too, ETIMEDOUT.
var ErrWriteStalled = errors.New("write stalled, the peer takes no bytes")

// ErrUnread is what CheckIdle returns for a connection with unread bytes.
var ErrUnread = errors.New("eventloop: connection has unread bytes")

// errTooLong ends a connection whose handler waits for more bytes at once than
// Config.ReadBufferBytes allows.
var errTooLong = errors.New("more bytes wanted than ReadBufferBytes allows")
