// Package thrift is the runtime of generated Thrift code: it writes and reads
// the Binary protocol, and provides the few types that appear in generated
// structs.
//
// Generated code is the usual caller. By hand it is useful for Marshal, Append
// and Unmarshal, for the types Opt, Pair and UUID, and through Binary, the codec
// that generated method descriptors name.
//
// Reader and Writer keep the first error and make everything after it a cheap
// no-op, so generated code does not check each step. Both are bounded by
// default: size, nesting, the memory that decoding may take, and counts that
// the bytes cannot back are refused before anything is allocated for them (see
// docs/guide/limits.md).
//
// Wire format: the Thrift Binary protocol specification of Apache Thrift;
// docs/protocol/thrift.md has the bytes.
package thrift
