// Package wire tests the framings of internal/wire against the implementations
// that peers use: the TTHeader codec of cloudwego/gopkg, which Kitex v0.16
// has, and the framed transport of Apache Thrift for Go. Both sides read the
// same frames, good and hostile ones, and each reads what the other writes. It
// also generates code from the definitions that Apache Thrift tests itself with.
//
// It is a module of its own, so that nobody who uses Fulmar gets these
// requirements. It imports internal packages, which only its tests do: below
// the level of calls there is nothing public to compare.
package wire
