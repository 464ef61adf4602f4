// Package http2 is HTTP/2 as bytes in and bytes out: frames, header
// compression, streams and flow control, for both sides of a connection.
//
// It has no sockets, clocks, goroutines or locks. Bytes that arrived go into
// Conn.Next, which returns one event at a time; what is to be sent is appended
// to one buffer, so the frames of all streams leave in one write. Where time
// counts, it is an argument.
//
// Source: RFC 9113 (HTTP/2) and RFC 7541 (HPACK), whose sections comments name;
// ADR-0056. What gRPC adds is not here.
package http2
