// Package proxied has tests of proxies between real clients and real servers of
// Kitex: for services in Protobuf that are no gRPC, and for its generic calls, whose
// bodies are bytes. Whatever a client is told by a server it must be told through a
// proxy too.
//
// The program of examples/gateway is a proxy that reads a field and changes another.
//
// Kitex's streams over TTHeader are tested between Kitex and our state machine, whose own tests
// read what is recorded here, and between Kitex and our clients and servers.
//
// Kitex leaves goroutines behind, so each side of it is a process: the test program
// itself, started again with a role.
package proxied

//go:generate fulmar gen -o ../gen --namespace test=stock pantry.proto
//go:generate fulmar gen -o ../gen streams.thrift
//go:generate fulmar gen -o ../gen --namespace test=streamedpb streams.proto
//go:generate go -C .. tool kitex -module github.com/fulmar-rpc/fulmar/test/kitex -gen-path gen/gateway -no-dependency-check ../../examples/gateway/orders.thrift
