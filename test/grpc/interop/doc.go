// Package interop runs the interoperability cases of gRPC (interop/client of grpc-go) against
// a server of Fulmar, and with a client of Fulmar against the server of grpc-go.
package interop
