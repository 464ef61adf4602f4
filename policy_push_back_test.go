package fulmar_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/policy"
)

// twoInASecond lets one call begin every half second.
var twoInASecond = policy.Limit{PerSecond: 2, Burst: 1}

// rates are servers of which each has one limit by rate, of every kind.
var rates = map[string]policy.Server{
	"server":  {Limit: twoInASecond},
	"caller":  {CallerLimit: twoInASecond},
	"service": {Methods: map[string]policy.Limit{"Echo": twoInASecond}},
	"method":  {Methods: map[string]policy.Limit{"Echo.add": twoInASecond}},
}

// TestServerPolicy_RateSaysWhenToComeBack: a further attempt waits for as long as the rate
// asks for, and is served then.
func TestServerPolicy_RateSaysWhenToComeBack(t *testing.T) {
	for name, document := range rates {
		for _, protocol := range []fulmar.Protocol{fulmar.TTHeader, fulmar.TTHeaderFramed, fulmar.GRPC} {
			t.Run(name+" "+protocol.String(), func(t *testing.T) {
				client := retries(policy.Retry{Attempts: 2, BackoffMin: -1})
				client.Protocol = protocol
				simulate(t, simnet.Config{}, fulmar.ServerConfig{Policy: document}, client, adder(), func(s *simulation) {
					for call := range 5 {
						var e policy.Explanation
						_, err := s.api.Add(context.Background(), 1, 2, fulmar.Explain(&e))
						if err != nil || e.Len() != min(call, 1)+1 {
							t.Fatalf("%v: %v", err, &e)
						}
						// The way to the server and back takes some of the half second.
						if waited := e.At(0).Decision.Delay; call > 0 && (waited < 490*time.Millisecond || waited > 500*time.Millisecond) {
							t.Errorf("call %d waited for %v: %v", call, waited, &e)
						}
					}
				})
			})
		}
	}
}

// TestServerPolicy_RateBehindTheDeadline: a call that may not take as long as the rate asks
// for ends at once.
func TestServerPolicy_RateBehindTheDeadline(t *testing.T) {
	for _, protocol := range []fulmar.Protocol{fulmar.TTHeader, fulmar.GRPC} {
		client := retries(policy.Retry{Attempts: 5, BackoffMin: -1})
		client.Protocol, client.Timeout = protocol, 400*time.Millisecond
		simulate(t, simnet.Config{}, fulmar.ServerConfig{Policy: policy.Server{Limit: twoInASecond}}, client, adder(), func(s *simulation) {
			if _, err := s.api.Add(context.Background(), 1, 2); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			var e policy.Explanation
			_, err := s.api.Add(context.Background(), 1, 2, fulmar.Explain(&e))
			if took := time.Since(began); fulmar.CodeOf(err) != fulmar.ResourceExhausted || e.Len() != 1 || e.At(0).Decision.Reason != policy.RetryNoTime || took > 10*time.Millisecond {
				t.Errorf("%v: %v after %v: %v", protocol, err, took, &e)
			}
		})
	}
}

// TestServerPolicy_RunningDoesNotSayWhen: nobody knows when a call that runs will end.
func TestServerPolicy_RunningDoesNotSayWhen(t *testing.T) {
	r, api, release := limited(t, policy.Server{Limit: policy.Limit{Running: 1}}, fulmar.TTHeader)
	ended := make(chan error, 1)
	go func() {
		_, err := api.Echo(context.Background(), &testservice.Message{})
		ended <- err
	}()
	eventually(t, func() bool { return r.server.Stats().Calls == 1 })
	var metadata map[string]string
	_, err := api.Add(context.Background(), 1, 2, fulmar.ReceiveMetadata(&metadata))
	wantOverLimit(t, err, "too many at once")
	if value, ok := metadata["grpc-retry-pushback-ms"]; ok {
		t.Errorf("it says %q", value)
	}
	release <- struct{}{}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestServerPolicy_RateOfStreams: the answer to a stream says it as well.
func TestServerPolicy_RateOfStreams(t *testing.T) {
	eachStreamingWay(t, &feed{}, fulmar.ServerConfig{Policy: policy.Server{Limit: twoInASecond}}, fulmar.ClientConfig{}, func(t *testing.T, s *streaming) {
		for range 2 {
			list, err := s.api.List(t.Context(), &testservice.Item{Count: 1})
			for err == nil {
				_, err = list.Recv()
			}
			if err == io.EOF {
				continue
			}
			wantOverLimit(t, err, "limit of the server: 2 calls in a second")
			if wait := list.Trailer()["grpc-retry-pushback-ms"]; wait < "490" || wait > "500" || len(wait) != 3 {
				t.Errorf("it says %q", wait)
			}
			return
		}
		t.Error("nothing was refused")
	})
}
