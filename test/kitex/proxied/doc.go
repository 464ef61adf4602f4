// Package proxied has tests of proxies between real clients and real servers of
// Kitex: for services in Protobuf that are no gRPC, and for its generic calls, whose
// bodies are bytes. Whatever a client is told by a server it must be told through a
// proxy too.
//
// Kitex leaves goroutines behind, so each side of it is a process: the test program
// itself, started again with a role.
package proxied

//go:generate fulmar gen -o ../gen --namespace test=stock pantry.proto
