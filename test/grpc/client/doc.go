// Package client has no code: its tests call servers of grpc-go with clients of Fulmar.
package client
