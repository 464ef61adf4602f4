package etcd

import (
	"time"

	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"
)

// keepAliveTime is how long a connection may be silent until the client asks for a sign
// of life, and keepAliveTimeout how long it waits for that. etcd refuses clients that
// ask more often than every 5 s.
const (
	keepAliveTime    = 10 * time.Second
	keepAliveTimeout = 3 * time.Second
)

// connectParams bounds how long the client stays away from a member that did not answer:
// that of gRPC is 120 s, by which time a lease of a minute is gone although etcd is back.
func connectParams(config Config) grpc.ConnectParams {
	return grpc.ConnectParams{
		Backoff: grpcbackoff.Config{
			BaseDelay: config.BackoffMin, Multiplier: 2, Jitter: 0.5, MaxDelay: config.BackoffMax,
		},
		MinConnectTimeout: config.RequestTimeout,
	}
}
