// Package codec tests the code that Fulmar generates beside the codecs that peers
// use: FastCodec of Kitex, and Apache Thrift for Go. All three read the same bytes,
// good and hostile ones, and each reads what the others write. Where they differ
// docs/protocol/thrift.md says so, and a test shows it.
//
// The types are those of test/interop, and the code of the peers is generated in
// test/kitex and test/apache. It is a module of its own, so that those programs do
// not require each other.
package codec
