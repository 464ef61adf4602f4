package fulmar_test

import (
	"testing"
	"testing/synctest"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// TestStreams_LeaveRoomForCalls: streams on which nothing happens are no calls that run.
func TestStreams_LeaveRoomForCalls(t *testing.T) {
	service := &feed{swap: func(stream fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error {
		_, err := stream.Recv()
		return err
	}}
	eachStreamingWay(t, service, fulmar.ServerConfig{MaxRunningCalls: 1, MaxQueuedCalls: -1}, fulmar.ClientConfig{}, func(t *testing.T, s *streaming) {
		for range 10 {
			if _, err := s.api.Swap(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		sum, err := testservice.NewCalculatorClient(s.client).Add(t.Context(), 1, 2)
		if err != nil || sum != 3 {
			t.Errorf("beside streams that wait: %d, %v", sum, err)
		}
	})
}
