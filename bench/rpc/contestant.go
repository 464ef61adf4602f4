package rpc

import (
	"context"
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
	// Serve serves both methods on the listener until ctx ends.
	Serve func(ctx context.Context, listener net.Listener, c Case) error
	// Connect returns a client that is as fit for c as the framework's users
	// would make it.
	Connect func(address string, c Case) (Client, error)
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
	// Complex turns data into the contestant's own struct, and returns what
	// sends it and compares the reply with it.
	Complex(data *Complex) func(ctx context.Context) (equal bool, err error)
}

// errWrongReply is what a run reports when a reply does not have the content
// of its request.
var errWrongReply = errors.New("the reply differs from the request")

// Main is the main function of a contestant's program.
func Main(contestants ...Contestant) {
	var all []contestant.Contestant
	for _, c := range contestants {
		all = append(all, contestant.Contestant{
			Name:        c.Name,
			Unavailable: c.Unavailable,
			Modules:     c.Modules,
			Serve: func(ctx context.Context, listener net.Listener, name string) error {
				found, err := FindCase(name)
				if err != nil {
					return err
				}
				return c.Serve(ctx, listener, found)
			},
			Load: func(address, name string) (contestant.Load, error) { return c.load(address, name) },
		})
	}
	contestant.Main(all...)
}

// load connects and returns the calls of all callers.
func (c Contestant) load(address, name string) (contestant.Load, error) {
	found, err := FindCase(name)
	if err != nil {
		return contestant.Load{}, err
	}
	client, err := c.Connect(address, found)
	if err != nil {
		return contestant.Load{}, err
	}
	load := contestant.Load{Close: client.Close}
	for i := range found.Callers {
		caller, err := client.Caller()
		if err != nil {
			return contestant.Load{}, errors.Join(fmt.Errorf("caller %d: %w", i, err), client.Close())
		}
		if found.MessageBytes > 0 {
			load.Calls = append(load.Calls, echoCall(caller, newMessages(i, found.MessageBytes)))
		} else {
			load.Calls = append(load.Calls, complexCall(caller, NewComplexes(i)))
		}
	}
	return load, nil
}

func echoCall(caller Caller, messages []Message) loadgen.Call {
	n := 0
	return func() error {
		message := &messages[n%len(messages)]
		n++
		action, msg, err := caller.Echo(context.Background(), message.Action, message.Msg)
		if err != nil {
			return err
		}
		if action != message.Action || msg != message.Msg {
			return errWrongReply
		}
		return nil
	}
}

func complexCall(caller Caller, complexes []*Complex) loadgen.Call {
	calls := make([]func(context.Context) (bool, error), len(complexes))
	for i, data := range complexes {
		calls[i] = caller.Complex(data)
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
	}
}
