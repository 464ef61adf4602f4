// Package interop tests Fulmar against Thrift implementations that it shares no
// code with. README.md says how it is built and how to run it.
//
//	golden/    frames captured from the peers, and the code that reads them
//	cases/     the cases, and what runs them through a generated client
//	notation/  the values of cases, to and from Go
//	gopeer/    the command line of peers that are written in Go
//	peer/      builds and starts the peers
//	calls/     the tests, in both directions
package interop

//go:generate fulmar gen -o gen everything.thrift everything_apache.thrift courier.thrift
//go:generate fulmar gen --view-methods both -o gen/views everything.thrift
//go:generate fulmar gen -o gen notes.proto
