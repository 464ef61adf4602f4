// Package grpcio has tests against Python's grpcio, in both directions: all kinds of methods,
// metadata, details of errors, deadlines, cancelling and compression. The service is
// notes.proto, and python/notes.py is the other side of it.
package grpcio
