package fulmar_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/policy"
)

// TestServerPolicy_BoundsAsTheConfigurationDoes: what a policy says of connections and of
// calls that wait has the effect of the field of the configuration, in whose place it is.
func TestServerPolicy_BoundsAsTheConfigurationDoes(t *testing.T) {
	waits := func(t *testing.T, config fulmar.ServerConfig) any { return fulmar.WaitsInOverload(t, config) }
	queue := func(queue policy.Queue) policy.Server { return policy.Server{Queue: queue} }
	tenth := fulmar.OverloadTime / 10
	for name, test := range map[string]struct {
		observe func(*testing.T, fulmar.ServerConfig) any
		config  fulmar.ServerConfig
		policy  policy.Server
		want    any
	}{
		"connections":                      {observeConnections, fulmar.ServerConfig{}, policy.Server{Connections: 3}, "3 of 8"},
		"connections, switched off":        {observeConnections, fulmar.ServerConfig{}, policy.Server{Connections: -1}, "8 of 8"},
		"fewer connections":                {observeConnections, fulmar.ServerConfig{MaxConnections: 5}, policy.Server{Connections: 3}, "3 of 8"},
		"more connections":                 {observeConnections, fulmar.ServerConfig{MaxConnections: 3}, policy.Server{Connections: 5}, "3 of 8"},
		"calls that wait":                  {observeQueued, fulmar.ServerConfig{}, queue(policy.Queue{Calls: 3}), "4 of 8 refused"},
		"more calls that wait":             {observeQueued, fulmar.ServerConfig{MaxQueuedCalls: 3}, queue(policy.Queue{Calls: 5}), "2 of 8 refused"},
		"calls that wait, switched off":    {observeQueued, fulmar.ServerConfig{MaxQueuedCalls: 3}, queue(policy.Queue{Calls: -1}), "0 of 8 refused"},
		"calls that wait, nothing said":    {observeQueued, fulmar.ServerConfig{MaxQueuedCalls: 3}, queue(policy.Queue{Time: time.Hour}), "4 of 8 refused"},
		"time of waiting":                  {observeQueueTime, fulmar.ServerConfig{}, queue(policy.Queue{Time: time.Second}), span{time.Second, time.Second}},
		"time of waiting, switched off":    {observeQueueTime, fulmar.ServerConfig{}, queue(policy.Queue{Time: -1}), span{10 * time.Second, 10 * time.Second}},
		"share of waiting":                 {waits, fulmar.ServerConfig{}, queue(policy.Queue{WaitPercent: 10}), span{tenth, tenth}},
		"share of waiting, switched off":   {waits, fulmar.ServerConfig{MaxWaitPercent: 20}, queue(policy.Queue{WaitPercent: -1}), span{2*tenth + 1, fulmar.OverloadTime}},
		"share of waiting, none is":        {waits, fulmar.ServerConfig{MaxWaitPercent: -1}, queue(policy.Queue{WaitPercent: 10}), span{0, 0}},
		"share of waiting, nothing said":   {waits, fulmar.ServerConfig{MaxWaitPercent: 20}, queue(policy.Queue{Calls: 1}), span{2 * tenth, 2 * tenth}},
		"share of waiting, as by default":  {waits, fulmar.ServerConfig{}, policy.Server{}, span{fulmar.OverloadTime * limits.WaitPercent / 100, fulmar.OverloadTime * limits.WaitPercent / 100}},
		"share of waiting, before the one": {waits, fulmar.ServerConfig{MaxWaitPercent: 20}, queue(policy.Queue{WaitPercent: 10}), span{tenth, tenth}},
	} {
		t.Run(name, func(t *testing.T) {
			config := test.config
			config.Policy = test.policy
			if got := test.observe(t, config); !(setting{want: test.want}).matches(got) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// TestServer_SetPolicyOfConnections: those that are open stay, others come as far as the
// policy goes that holds then.
func TestServer_SetPolicyOfConnections(t *testing.T) {
	simulate(t, simnet.Config{}, fulmar.ServerConfig{MaxConnections: 6}, fulmar.ClientConfig{}, adder(), func(s *simulation) {
		open := func() (answered int) {
			for range 8 {
				conn := s.connect()
				t.Cleanup(func() { conn.Close() })
				if answers(t, conn, frame(addCall(t, 1, 1, 2))) {
					answered++
				}
			}
			return answered
		}
		for _, step := range []struct{ limit, want int }{{2, 2}, {1, 0}, {4, 2}, {1000, 2}, {0, 0}} {
			if err := s.server.SetPolicy(policy.Server{Connections: step.limit}); err != nil {
				t.Fatal(err)
			}
			if got := open(); got != step.want {
				t.Errorf("with %d connections %d more are answered, want %d", step.limit, got, step.want)
			}
		}
	})
}

// TestServer_SetPolicyOfTheQueue changes how many calls wait while one runs.
func TestServer_SetPolicyOfTheQueue(t *testing.T) {
	var held holder
	config := fulmar.ServerConfig{MaxRunningCalls: 1, MaxQueueTime: -1}
	simulate(t, simnet.Config{}, config, fulmar.ClientConfig{Timeout: -1}, held.stub(), func(s *simulation) {
		refused := make(chan bool, 20)
		call := func() {
			go func() { refused <- isRefusal(s.api.Nothing(context.Background())) }()
			synctest.Wait()
		}
		release := held.begin()
		s.share()
		for _, step := range []struct{ most, calls, refused int }{{1, 4, 2}, {3, 4, 2}, {2, 2, 2}, {0, 3, 0}} {
			if err := s.server.SetPolicy(policy.Server{Queue: policy.Queue{Calls: step.most}}); err != nil {
				t.Fatal(err)
			}
			for range step.calls {
				call()
			}
			if got := len(refused); got != step.refused {
				t.Errorf("with %d calls that may wait %d of %d are refused, want %d", step.most, got, step.calls, step.refused)
			}
			for range step.refused {
				if !<-refused {
					t.Error("a call has ended that should wait")
				}
			}
		}
		release()
	})
}
