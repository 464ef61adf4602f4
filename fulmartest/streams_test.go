package fulmartest_test

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/fulmartest"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// counter is a service that sends as many messages as it is asked for.
type counter struct{ testservice.FeedServer }

func (counter) List(item *testservice.Item, stream fulmar.ServerStreamingServer[testservice.Item]) error {
	for i := range item.Count {
		if stream.Send(&testservice.Item{Count: i}) != nil {
			return nil // a handler that makes nothing of it
		}
	}
	return nil
}

// list returns how many messages come, and how the stream ends.
func list(t *testing.T, api testservice.FeedClient, count int32) (came int, err error) {
	t.Helper()
	stream, err := api.List(t.Context(), &testservice.Item{Count: count})
	if err != nil {
		return 0, err
	}
	for {
		if _, err := stream.Recv(); errors.Is(err, io.EOF) {
			return came, nil
		} else if err != nil {
			return came, err
		}
		came++
	}
}

// TestServer_ObeysRulesForStreams: over both protocols that have them.
func TestServer_ObeysRulesForStreams(t *testing.T) {
	for _, protocol := range []fulmar.Protocol{fulmar.GRPC, fulmar.TTHeader} {
		synctest.Test(t, func(t *testing.T) {
			network := fulmartest.NewNetworkWith(t, fulmartest.Config{Client: fulmar.ClientConfig{Protocol: protocol}})
			server := network.Server(t, func(s *fulmar.Server) { testservice.RegisterFeedServer(s, counter{}) })
			api := testservice.NewFeedClient(network.Client(t, server))
			busy := fulmar.NewError(fulmar.ResourceExhausted, "busy")
			for _, want := range []struct {
				rule     fulmartest.Rule
				came     int
				code     fulmar.Code
				executed fulmar.Executed
				took     time.Duration
			}{
				{rule: fulmartest.Rule{Err: busy}, code: fulmar.ResourceExhausted, executed: fulmar.ExecutedNo},
				{rule: fulmartest.Rule{Err: busy, After: true}, came: 3, code: fulmar.ResourceExhausted, executed: fulmar.ExecutedYes},
				{rule: fulmartest.Rule{Err: busy, Messages: 2, Delay: time.Second}, came: 2, code: fulmar.ResourceExhausted, executed: fulmar.ExecutedYes, took: time.Second},
				{rule: fulmartest.Rule{Err: busy, Messages: 3}, came: 3},
				{rule: fulmartest.Rule{Delay: time.Minute}, came: 3, took: time.Minute},
			} {
				want.rule.Calls, want.rule.Method = 1, testservice.FeedListFullMethodName
				rule := server.Inject(want.rule)
				start := time.Now()
				came, err := list(t, api, 3)
				if came != want.came || fulmar.CodeOf(err) != want.code || rule.Hits() != 1 || time.Since(start) != want.took {
					t.Errorf("%v, %+v: %d messages came in %v, %v", protocol, want.rule, came, time.Since(start), err)
				}
				var failed *fulmar.Error
				if errors.As(err, &failed) && failed.Executed() != want.executed {
					t.Errorf("%v, %+v: %v", protocol, want.rule, err)
				}
				rule.Remove()
			}
			if came, err := list(t, api, 3); came != 3 || err != nil {
				t.Errorf("%v: without rules %d messages, %v", protocol, came, err)
			}
		})
	}
}
