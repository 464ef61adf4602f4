// Command fulmar is this project's contestant of suite governance.
package main

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/bench/contestant"
	"github.com/fulmar-rpc/fulmar/bench/gen/echo"
	"github.com/fulmar-rpc/fulmar/bench/governance"
	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/policy"
)

func main() { contestant.Main(entry().Contestant()) }

func entry() governance.Contestant {
	return governance.Contestant{Name: "fulmar", Plain: plain, Full: full, Updated: updated, Refused: refused}
}

// failurePercent opens a breaker. It is what Kitex has by default.
const failurePercent = 50

// stack is everything that a client can have for its unary calls.
func stack() policy.Client {
	breaker := policy.Breaker{FailurePercent: failurePercent}
	return policy.Client{
		Method: policy.Method{
			Retry:   policy.Retry{Idempotent: true, Attempts: 3},
			Breaker: breaker,
		},
		TargetBreaker: breaker,
		Balancing:     cluster.Balancing{Method: cluster.LeastLoaded},
		// RetryBudget and Ejection are on by default.
	}
}

// bare is the least that a client can have.
func bare() policy.Client {
	return policy.Client{
		Method:      policy.Method{Retry: policy.Retry{Attempts: -1}},
		RetryBudget: policy.RetryBudget{Percent: -1, PerSecond: -1},
	}
}

func refused(err error) bool {
	return err != nil && strings.Contains(err.Error(), "the breaker of")
}

func plain(n *governance.Network, address string) (governance.Client, error) {
	return connect(n, fulmar.ClientConfig{Target: address, Policy: bare()})
}

func full(n *governance.Network, addresses []string) (governance.Client, error) {
	client, err := connect(n, fulmar.ClientConfig{Target: "static:///" + strings.Join(addresses, ","), Policy: stack()})
	client.Echo = limited(client.Echo)
	return client, err
}

// limited asks for a call what a server asks that has a limit of each kind. The connections
// are answered without a server.
func limited(echo func(action, msg string) (string, string, error)) func(action, msg string) (string, string, error) {
	limiter := policy.NewLimiter(policy.Limit{PerSecond: governance.LimitPerSecond, Running: governance.LimitRunning}, time.Now())
	return func(action, msg string) (string, string, error) {
		if refusal, _ := limiter.Allow(time.Now()); refusal != policy.NotRefused {
			return "", "", errors.New(refusal.String())
		}
		defer limiter.Done()
		return echo(action, msg)
	}
}

func connect(n *governance.Network, config fulmar.ClientConfig) (governance.Client, error) {
	config.Protocol = fulmar.Framed
	config.Dial = func(_ context.Context, _, address string) (net.Conn, error) { return n.Dial(address), nil }
	client, err := fulmar.NewClient(config)
	if err != nil {
		return governance.Client{}, err
	}
	api := echo.NewEchoClient(client)
	return governance.Client{Close: client.Close, Echo: func(action, msg string) (string, string, error) {
		reply, err := api.Echo(context.Background(), &echo.Message{Action: action, Msg: msg})
		if err != nil {
			return "", "", err
		}
		return reply.Action, reply.Msg, nil
	}}, nil
}
