package fulmar_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
)

// TestClient_WaitsForReady has calls begin while no server can be reached.
func TestClient_WaitsForReady(t *testing.T) {
	wait, fail := fulmar.WaitForReady(true), fulmar.WaitForReady(false)
	const back, timeout = 3 * time.Second, 10 * time.Second
	for _, protocol := range append([]fulmar.Protocol{fulmar.GRPC}, allProtocols...) {
		for name, c := range map[string]struct {
			config  bool
			options []fulmar.CallOption
			waits   bool
		}{
			"nobody asked":         {false, nil, false},
			"the configuration":    {true, nil, true},
			"an option":            {false, []fulmar.CallOption{wait}, true},
			"an option against it": {true, []fulmar.CallOption{fail}, false},
			"the last option":      {false, []fulmar.CallOption{fail, wait}, true},
		} {
			t.Run(protocol.String()+"/"+name, func(t *testing.T) {
				config := fulmar.ClientConfig{Protocol: protocol, Timeout: timeout, WaitForReady: c.config}
				simulate(t, simnet.Config{}, fulmar.ServerConfig{}, config, adder(), func(s *simulation) {
					s.network.Refuse(simAddress, true)
					time.AfterFunc(back, func() { s.network.Refuse(simAddress, false) })
					start := time.Now()
					sum, err := s.api.Add(context.Background(), 1, 2, c.options...)
					took := time.Since(start)
					switch {
					case !c.waits && (fulmar.CodeOf(err) != fulmar.Unavailable || took >= back):
						t.Errorf("%v after %v, want that it fails", err, took)
					case c.waits && (err != nil || sum != 3 || took < back || took > back+2*time.Second):
						t.Errorf("%d, %v after %v, want an answer soon after %v", sum, err, took, back)
					}
					time.Sleep(back)
				})
			})
		}
	}
}

// TestClient_WaitsForReadyUntilItsTimeIsOver: the error says what kept it waiting, and that
// nothing was executed.
func TestClient_WaitsForReadyUntilItsTimeIsOver(t *testing.T) {
	config := fulmar.ClientConfig{Timeout: 2 * time.Second, WaitForReady: true}
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, config, adder(), func(s *simulation) {
		s.network.Refuse(simAddress, true)
		start := time.Now()
		_, err := s.api.Add(context.Background(), 1, 2)
		if took := time.Since(start); fulmar.CodeOf(err) != fulmar.DeadlineExceeded || took != 2*time.Second {
			t.Errorf("%v after %v", err, took)
		}
		if e, ok := err.(*fulmar.Error); !ok || e.Executed() != fulmar.ExecutedNo || !strings.Contains(err.Error(), "refused") {
			t.Errorf("the error says %v", err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Second, cancel)
		start = time.Now()
		if _, err := s.api.Add(ctx, 1, 2); fulmar.CodeOf(err) != fulmar.Canceled || time.Since(start) != time.Second {
			t.Errorf("canceled: %v after %v", err, time.Since(start))
		}
		go func() {
			time.Sleep(time.Second)
			_ = s.client.Close()
		}()
		start = time.Now()
		if _, err := s.api.Add(context.Background(), 1, 2, fulmar.Timeout(time.Hour)); fulmar.CodeOf(err) != fulmar.Canceled || time.Since(start) > 3*time.Second {
			t.Errorf("closed: %v after %v", err, time.Since(start))
		}
	})
}
