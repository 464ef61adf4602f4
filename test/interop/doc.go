// Package interop tests Fulmar against Thrift implementations that it shares no
// code with. README.md says how it is built and how to run it.
//
//	golden/    frames captured from the peers, and the code that reads them
//	notation/  the values of cases.json, to and from Go
//	peer/      starts the peers in Python
//	calls/     the tests, in both directions
package interop

//go:generate fulmar gen -o gen everything.thrift everything_apache.thrift
