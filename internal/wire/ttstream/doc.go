// Package ttstream is TTHeader streaming, the streams of Kitex, as bytes in and bytes
// out: frames, the states of streams, and what our own peers agree on besides, for both
// sides of a connection.
//
// It has no sockets, clocks, goroutines or locks. Bytes that arrived go into Conn.Next,
// which returns one event at a time; what is to be sent is appended to one buffer, so
// the frames of all streams leave in one write. Where time counts, it is an argument.
//
// Source: docs/protocol/ttheader-streaming.md and ADR-0061.
package ttstream
