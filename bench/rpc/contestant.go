package rpc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/fulmar-rpc/fulmar/bench/contestant"
	"github.com/fulmar-rpc/fulmar/internal/loadgen"
)

// Contestant is a framework in this suite.
type Contestant struct {
	Name string
	// Unavailable says why the contestant cannot take part, or is empty.
	Unavailable string
	// Modules are those whose versions belong to a result.
	Modules []string
	// Serve serves all methods on the listener until ctx ends.
	Serve func(ctx context.Context, listener net.Listener, p Played) error
	// Connect returns a client that is as fit for the case as the framework's users
	// would make it.
	Connect func(address string, p Played) (Client, error)
}

// Played is a case with what belongs to this run of it.
type Played struct {
	Case
	// Notified is to be called by the server's handler of the method notify.
	Notified func(action, msg string)
	// ServerTLS and ClientTLS are set in cases with TLS, and may be changed.
	ServerTLS, ClientTLS *tls.Config
}

// newPlayed returns what is known on both sides.
func newPlayed(played contestant.Played) (p Played, err error) {
	p.Case, err = FindCase(played.Case)
	if p.Idle > 0 && played.Idle > 0 {
		p.Idle = played.Idle
	}
	if err == nil && p.TLS {
		p.ServerTLS, p.ClientTLS, err = secure(played.Certificate)
	}
	return p, err
}

// Client gives out callers.
type Client interface {
	// Caller is asked once for each caller of the case.
	Caller() (Caller, error)
	Close() error
}

// Caller makes calls, one at a time.
type Caller interface {
	Echo(ctx context.Context, action, msg string) (replyAction, replyMsg string, err error)
}

// ComplexCaller is what callers are in cases with complex messages.
type ComplexCaller interface {
	// Complex turns data into the contestant's own struct, and returns what
	// sends it and compares the reply with it.
	Complex(data *Complex) func(ctx context.Context) (equal bool, err error)
}

// Notifier is what callers are in cases without replies.
type Notifier interface {
	Notify(ctx context.Context, action, msg string) error
}

// errWrongReply is what a run reports when a reply does not have the content
// of its request.
var errWrongReply = errors.New("the reply differs from the request")

// Main is the main function of a contestant's program.
func Main(contestants ...Contestant) {
	var all []contestant.Contestant
	for _, c := range contestants {
		received := &receipts{}
		all = append(all, contestant.Contestant{
			Name:        c.Name,
			Unavailable: c.Unavailable,
			Modules:     c.Modules,
			Executed:    received.executed.Load,
			Serve: func(ctx context.Context, listener net.Listener, played contestant.Played) error {
				p, err := newPlayed(played)
				if err != nil {
					return err
				}
				received.expect(p.Case)
				p.Notified = received.add
				return c.Serve(ctx, listener, p)
			},
			Load: c.load,
		})
	}
	contestant.Main(all...)
}

// load connects and returns the calls of all callers.
func (c Contestant) load(address string, played contestant.Played) (contestant.Load, error) {
	p, err := newPlayed(played)
	if err != nil {
		return contestant.Load{}, err
	}
	client, err := c.Connect(address, p)
	if err != nil {
		return contestant.Load{}, err
	}
	load := contestant.Load{Close: client.Close, Messages: p.callMessages()}
	sent := make([]uint64, p.Callers)
	if p.Oneway {
		load.Sent = func() uint64 { return sum(sent) }
	}
	if p.Idle > 0 {
		load.Idle, load.Connect = p.Idle, func(number int) (loadgen.Call, error) { return c.connectIdle(address, p, number) }
	}
	for i := range p.Callers {
		caller, err := client.Caller()
		if err != nil {
			return contestant.Load{}, errors.Join(fmt.Errorf("caller %d: %w", i, err), client.Close())
		}
		switch notifier, ok := caller.(Notifier); {
		case p.Oneway && !ok:
			return contestant.Load{}, errors.Join(fmt.Errorf("%s has no calls without replies", c.Name), client.Close())
		case p.Oneway:
			load.Calls = append(load.Calls, onewayCall(notifier, newMessages(i, p.MessageBytes), &sent[i]))
		case p.Overload > 0:
			load.Peak = overloadPeak
			load.Calls = append(load.Calls, boundedCall(caller, p.Case, newMessages(i, p.MessageBytes)))
		case p.Stream != "":
			call, err := streamCall(caller, p.Case, newMessages(i, p.MessageBytes))
			if err != nil {
				return contestant.Load{}, errors.Join(fmt.Errorf("%s, caller %d: %w", c.Name, i, err), client.Close())
			}
			load.Calls = append(load.Calls, call)
		case p.MessageBytes > 0:
			load.Calls = append(load.Calls, echoCall(caller, newMessages(i, p.MessageBytes)))
		default:
			call, err := complexCall(caller, p.complexes(i))
			if err != nil {
				return contestant.Load{}, errors.Join(fmt.Errorf("%s, caller %d: %w", c.Name, i, err), client.Close())
			}
			load.Calls = append(load.Calls, call)
		}
	}
	return load, nil
}

// connectIdle makes a client of its own for one connection: a pool would let several
// callers take turns on one. Clients end with their process.
func (c Contestant) connectIdle(address string, p Played, number int) (loadgen.Call, error) {
	client, err := c.Connect(address, p)
	if err != nil {
		return nil, err
	}
	caller, err := client.Caller()
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return echoCall(caller, newMessages(p.Callers+number, p.MessageBytes)), nil
}

func echoCall(caller Caller, messages []Message) loadgen.Call {
	n := 0
	return func() error {
		err := checkedEcho(context.Background(), caller, &messages[n%len(messages)])
		n++
		return err
	}
}

// checkedEcho makes a call and compares the reply with the request.
func checkedEcho(ctx context.Context, caller Caller, message *Message) error {
	action, msg, err := caller.Echo(ctx, message.Action, message.Msg)
	if err == nil && (action != message.Action || msg != message.Msg) {
		err = errWrongReply
	}
	return err
}

func complexCall(caller Caller, complexes []*Complex) (loadgen.Call, error) {
	complexCaller, ok := caller.(ComplexCaller)
	if !ok {
		return nil, errors.New("it has no complex messages")
	}
	calls := make([]func(context.Context) (bool, error), len(complexes))
	for i, data := range complexes {
		calls[i] = complexCaller.Complex(data)
	}
	n := 0
	return func() error {
		call := calls[n%len(calls)]
		n++
		equal, err := call(context.Background())
		if err == nil && !equal {
			err = errWrongReply
		}
		return err
	}, nil
}
