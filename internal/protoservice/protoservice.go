// Package protoservice is a service that is defined in Protobuf, and generated.
//
// Only tests import it.
package protoservice

//go:generate fulmar gen -o .. pantry.proto
