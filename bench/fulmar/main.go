// Command fulmar is this project's contestant.
package main

import (
	"context"
	"net"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/bench/gen/echo"
	"github.com/fulmar-rpc/fulmar/bench/rpc"
	"github.com/fulmar-rpc/fulmar/thrift"
)

//go:generate fulmar gen -o ../gen ../idl/echo.thrift

func main() {
	rpc.Main(
		contestant("fulmar", fulmar.Framed),
		contestant("fulmar-mux", fulmar.TTHeader), // multiplexed by default
		inForm("fulmar-view", registerViews),
		inForm("fulmar-struct", registerStructs),
	)
}

// connectTimeout is longer than the default, and costs the same: a hundred connections
// are opened at once, and their handshakes are not what is measured.
const connectTimeout = 10 * time.Second

// contestant has everything that a server and a client do by default: deadlines,
// limits, admission.
func contestant(name string, protocol fulmar.Protocol) rpc.Contestant {
	return rpc.Contestant{Name: name, Serve: serve, Connect: func(address string, p rpc.Played) (rpc.Client, error) {
		if p.Local {
			return local(p)
		}
		if p.Overload > 0 {
			// What may wait, and for how long, is for a server to say only if it is told until
			// when its callers do: a frame has no room for that.
			protocol = fulmar.TTHeader
		}
		if p.Unix {
			address = "unix:" + address
		}
		config := fulmar.ClientConfig{Target: address, Protocol: protocol, TLS: fulmar.ClientTLS{Config: p.ClientTLS}, ConnectTimeout: connectTimeout}
		inner, err := fulmar.NewClient(config)
		return client{inner}, err
	}}
}

func serve(ctx context.Context, listener net.Listener, p rpc.Played) error {
	server, err := fulmar.NewServer(fulmar.ServerConfig{Listener: listener, TLS: fulmar.ServerTLS{Config: p.ServerTLS}})
	if err != nil {
		return err
	}
	echo.RegisterEchoServer(server, handler{p})
	return server.Serve(ctx)
}

type handler struct{ played rpc.Played }

func (h handler) Notify(_ context.Context, message *echo.Message) error {
	h.played.Notified(message.Action, message.Msg)
	return nil
}

func (h handler) Echo(_ context.Context, message *echo.Message) (*echo.Message, error) {
	h.played.Work()
	return &echo.Message{Action: message.Action, Msg: message.Msg}, nil
}

func (handler) Complex(_ context.Context, message *echo.Complex) (*echo.Complex, error) {
	return &echo.Complex{
		Action: message.Action, Msg: message.Msg, ByName: message.ByName,
		Parts: message.Parts, Groups: message.Groups, Flag: message.Flag,
	}, nil
}

// client keeps a pool, so all callers share one.
type client struct{ inner *fulmar.Client }

func (c client) Close() error { return c.inner.Close() }

func (c client) Caller() (rpc.Caller, error) { return caller{echo.NewEchoClient(c.inner)}, nil }

type caller struct{ api echo.EchoClient }

func (c caller) Echo(ctx context.Context, action, msg string) (string, string, error) {
	reply, err := c.api.Echo(ctx, &echo.Message{Action: action, Msg: msg})
	if err != nil {
		return "", "", err
	}
	return reply.Action, reply.Msg, nil
}

func (c caller) Notify(ctx context.Context, action, msg string) error {
	return c.api.Notify(ctx, &echo.Message{Action: action, Msg: msg})
}

func (c caller) Complex(data *rpc.Complex) func(context.Context) (bool, error) {
	request := newComplex(data)
	return func(ctx context.Context) (bool, error) {
		reply, err := c.api.Complex(ctx, request)
		return err == nil && equal(reply, data), err
	}
}

func newPart(p rpc.Part) echo.Part {
	return echo.Part{Number: thrift.Some(p.Number), Value: thrift.Some(p.Value)}
}

func newParts(parts []rpc.Part) []echo.Part {
	made := make([]echo.Part, len(parts))
	for i, p := range parts {
		made[i] = newPart(p)
	}
	return made
}

func newGroup(g rpc.Group) echo.Group {
	return echo.Group{Number: thrift.Some(g.Number), Value: thrift.Some(g.Value), Parts: newParts(g.Parts)}
}

func newComplex(data *rpc.Complex) *echo.Complex {
	made := &echo.Complex{
		Action: data.Action, Msg: data.Msg, ByName: map[string]*echo.Part{},
		Parts: newParts(data.Parts), Flag: newGroup(data.Flag),
	}
	for name, p := range data.ByName {
		part := newPart(p)
		made.ByName[name] = &part
	}
	for _, g := range data.Groups {
		made.Groups = append(made.Groups, newGroup(g))
	}
	return made
}

func equal(got *echo.Complex, want *rpc.Complex) bool {
	if got.Action != want.Action || got.Msg != want.Msg ||
		len(got.ByName) != len(want.ByName) || len(got.Groups) != len(want.Groups) {
		return false
	}
	for name, p := range want.ByName {
		if found := got.ByName[name]; found == nil || !equalPart(found, p) {
			return false
		}
	}
	for i := range want.Groups {
		if !equalGroup(&got.Groups[i], &want.Groups[i]) {
			return false
		}
	}
	return equalParts(got.Parts, want.Parts) && equalGroup(&got.Flag, &want.Flag)
}

func equalPart(got *echo.Part, want rpc.Part) bool {
	return got.GetNumber() == want.Number && got.GetValue() == want.Value
}

func equalParts(got []echo.Part, want []rpc.Part) bool {
	if len(got) != len(want) {
		return false
	}
	for i := range want {
		if !equalPart(&got[i], want[i]) {
			return false
		}
	}
	return true
}

func equalGroup(got *echo.Group, want *rpc.Group) bool {
	return got.GetNumber() == want.Number && got.GetValue() == want.Value && equalParts(got.Parts, want.Parts)
}
