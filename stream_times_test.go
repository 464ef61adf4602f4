package fulmar_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// TestStreams_AnswerOutlivesAReceiveTimeout: who gives up waiting for how a call ends has not
// lost its answer.
func TestStreams_AnswerOutlivesAReceiveTimeout(t *testing.T) {
	for _, way := range directWays {
		synctest.Test(t, func(t *testing.T) {
			service := &feed{fill: func(stream fulmar.ClientStreamingServer[testservice.Item, testservice.Item]) error {
				for {
					if _, err := stream.Recv(); err != nil {
						break
					}
				}
				err := stream.SendAndClose(&testservice.Item{Count: 7})
				time.Sleep(time.Minute)
				return err
			}}
			s := newStreaming(t, way, service, fulmar.ServerConfig{}, fulmar.ClientConfig{})
			fill, err := s.api.Fill(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			fill.SetRecvTimeout(25 * time.Second)
			for range 2 {
				if _, err := fill.CloseAndRecv(); fulmar.CodeOf(err) != fulmar.DeadlineExceeded {
					t.Errorf("%s: %v", way, err)
				}
			}
			if sum, err := fill.CloseAndRecv(); err != nil || sum.Count != 7 {
				t.Errorf("%s: %v, %v", way, sum, err)
			}
		})
	}
}

// TestStreams_LongDeadline: a stream may last for longer than a call.
func TestStreams_LongDeadline(t *testing.T) {
	for _, way := range directWays {
		synctest.Test(t, func(t *testing.T) {
			service := &feed{swap: func(stream fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error {
				if deadline, ok := stream.Context().Deadline(); !ok || time.Until(deadline).Round(time.Hour) != 48*time.Hour {
					t.Errorf("%s: a deadline in %v, %v", way, time.Until(deadline), ok)
				}
				_, err := stream.Recv()
				return err
			}}
			s := newStreaming(t, way, service, fulmar.ServerConfig{}, fulmar.ClientConfig{})
			ctx, cancel := context.WithTimeout(t.Context(), 48*time.Hour)
			defer cancel()
			swap, err := s.api.Swap(ctx)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Hour)
			swap.Cancel()
		})
	}
}
