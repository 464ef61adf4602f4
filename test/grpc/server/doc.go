// Package server has no code: its tests call servers of Fulmar with clients of grpc-go.
package server
