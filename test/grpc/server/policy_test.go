package server_test

import (
	"testing"

	"google.golang.org/grpc"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/policy"
)

// TestPolicy_RateSaysWhenToComeBack: grpc-go waits for as long as a rate asks for, and not
// for the millisecond of its own policy, with which all of its attempts would be refused.
func TestPolicy_RateSaysWhenToComeBack(t *testing.T) {
	limit := policy.Server{Limit: policy.Limit{PerSecond: 2, Burst: 1}}
	address, _ := serve(t, fulmar.ServerConfig{Policy: limit}, map[string]handler{"Say": echo})
	conn := dial(t, address, grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}], "retryPolicy": {
		"maxAttempts": 3, "initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1,
		"retryableStatusCodes": ["RESOURCE_EXHAUSTED"]}}]}`))
	for range 3 {
		if _, err := call(within(t), conn, "Say", []byte("x")); err != nil {
			t.Error(err)
		}
	}
}
