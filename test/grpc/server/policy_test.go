package server_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

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

// TestUnary_HeaderOfFailedCalls: clients of grpc-go find what a handler has set where they look for
// it, also when the call fails, and follow its wish when to try again. Of a call with a header they
// make no second attempt, as with servers of grpc-go.
func TestUnary_HeaderOfFailedCalls(t *testing.T) {
	var calls atomic.Int32
	set := func(key, value string) handler {
		return func(ctx context.Context, in []byte) ([]byte, error) {
			if calls.Add(1) > 1 {
				return in, nil
			}
			return nil, errors.Join(fulmar.NewError(fulmar.Unavailable, "later"), fulmar.SetReplyMetadata(ctx, key, value))
		}
	}
	address, _ := serve(t, fulmar.ServerConfig{}, map[string]handler{
		"Told": set("request-id", "42"), "Now": set("grpc-retry-pushback-ms", "1"), "Never": set("grpc-retry-pushback-ms", "-1"), "Silent": set("request-id", ""),
	})
	conn := dial(t, address, grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}],
		"retryPolicy": {"maxAttempts": 2, "initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`))
	for method, want := range map[string]struct {
		calls  int32
		header string
	}{"Told": {1, "42"}, "Now": {2, ""}, "Never": {1, ""}, "Silent": {2, ""}} {
		calls.Store(0)
		var header, trailer metadata.MD
		_, err := call(within(t), conn, method, nil, grpc.Header(&header), grpc.Trailer(&trailer))
		failed := want.calls == 1
		if got := calls.Load(); got != want.calls || failed != (status.Code(err) == codes.Unavailable) || !failed && err != nil {
			t.Errorf("%s: %d calls, want %d: %v", method, got, want.calls, err)
		}
		if got := strings.Join(header.Get("request-id"), ","); got != want.header || trailer.Get("request-id") != nil {
			t.Errorf("%s: header %q and trailer %q, want %q in the header", method, header, trailer, want.header)
		}
	}
}
