package fulmar_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
)

// TestClient_CloseTellsHandlersInASimulation: as on a real network, where a connection
// that is given up is reset. Tests of users with fulmartest see the same.
func TestClient_CloseTellsHandlersInASimulation(t *testing.T) {
	var told chan time.Time
	stub := adder()
	stub.OnNothing = func(ctx context.Context) error {
		select {
		case <-ctx.Done():
		case <-time.After(time.Hour):
		}
		told <- time.Now()
		return ctx.Err()
	}
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{Timeout: -1}, stub, func(s *simulation) {
		told = make(chan time.Time, 1) // of the bubble
		fill(t, s.api, 1)
		failed := make(chan error, 1)
		go func() { failed <- s.api.Nothing(context.Background()) }()
		synctest.Wait()
		start := time.Now()
		if err := s.client.Close(); err != nil {
			t.Error(err)
		}
		if err := <-failed; fulmar.CodeOf(err) != fulmar.Unavailable && fulmar.CodeOf(err) != fulmar.Canceled {
			t.Errorf("the call of a closed client: %v", err)
		}
		if took := (<-told).Sub(start); took > time.Second {
			t.Errorf("the handler was told after %v", took)
		}
	})
}
