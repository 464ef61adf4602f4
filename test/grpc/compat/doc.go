// Package compat has grpc-go's own test service and its interoperability cases, unchanged, on
// contrib/grpccompat: service, client, and each of them with the other's counterpart.
package compat
