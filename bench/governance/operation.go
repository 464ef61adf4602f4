// Package governance is the suite governance: what retries, breakers, budgets and
// balancing add to a call, what a new list of instances costs, and what is left of a
// server that gets more than it can do.
//
// A contestant supplies clients over connections in memory; the loops around their calls
// are the same for all. Overload is played by the contestants of package rpc.
package governance

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/fulmar-rpc/fulmar/bench/contestant"
	"github.com/fulmar-rpc/fulmar/bench/machine"
)

// The cases in which contestants repeat an operation.
const (
	FullStack      = "full-stack"
	ResolverUpdate = "resolver-update-10k"
)

// What the cases are about.
const (
	// Instances are those of FullStack.
	Instances = 100
	// LimitPerSecond and LimitRunning are the limits of a server, which no call exceeds.
	LimitPerSecond = 10_000_000
	LimitRunning   = 1000
	// UpdateInstances are those of ResolverUpdate, of which UpdateChanged are others in
	// each list than in the one before.
	UpdateInstances = 10_000
	UpdateChanged   = UpdateInstances / 100
	// updatePause is longer than a client of Fulmar stays with a list, and updateRate is
	// how many calls a second are made meanwhile: a few in a hundred of a processor.
	// updateFirst is how many calls an instance gets before, on average.
	updatePause = 1100 * time.Millisecond
	updateRate  = 5_000
	updateFirst = 5
)

// Echo makes a call of the method echo.
type Echo func(action, msg string) (replyAction, replyMsg string, err error)

// Client is what a contestant calls with. Close may be nil.
type Client struct {
	Echo  Echo
	Close func() error
}

// Contestant is a framework in this suite.
type Contestant struct {
	Name string
	// Modules are those whose versions belong to a result.
	Modules []string
	// Plain returns a client of one address that has nothing switched on that can be
	// switched off.
	Plain func(n *Network, address string) (Client, error)
	// Full returns one that tries failed calls of idempotent methods again, within a
	// budget, has breakers of methods and of what is called, and shares its calls out
	// among the addresses.
	Full func(n *Network, addresses []string) (Client, error)
	// Updated returns a Full client of a list that changes: update delivers another one
	// and returns when it holds.
	Updated func(n *Network, addresses []string) (client Client, update func(addresses []string) error, err error)
	// Refused reports whether an error is that of a call which a breaker has refused.
	Refused func(error) bool
}

// Contestant is what Main takes.
func (c Contestant) Contestant() contestant.Contestant {
	return contestant.Contestant{Name: c.Name, Modules: c.Modules, Repeat: c.Repeat}
}

// Repeat prepares what a case repeats.
func (c Contestant) Repeat(name string) (contestant.Repeat, error) {
	switch name {
	case FullStack:
		return c.fullStack()
	case ResolverUpdate:
		return c.resolverUpdate()
	case StackCheck:
		return c.stackCheck()
	}
	return contestant.Repeat{}, fmt.Errorf("suite governance: no case %.40q with an operation", name)
}

// Addresses returns n addresses, which begin with number first.
func Addresses(first, n int) []string {
	addresses := make([]string, n)
	for i := range addresses {
		number := first + i
		addresses[i] = fmt.Sprintf("10.%d.%d.%d:8888", number>>16&0xff, number>>8&0xff, number&0xff)
	}
	return addresses
}

// The message of a call: short, so that a call is little beside what is added to it. Two
// of them take turns, so that no reply is that of the call before.
const messageBytes = 64

type message struct{ action, msg string }

func messages() [2]message {
	var all [2]message
	for i := range all {
		text := make([]byte, messageBytes)
		for at := range text {
			text[at] = byte('a' + (at+i)%26)
		}
		all[i] = message{"echo-" + strconv.Itoa(i), string(text)}
	}
	return all
}

// errWrongReply is what ends a run.
var errWrongReply = errors.New("the reply differs from the request")

func (m *message) call(echo Echo) error {
	action, msg, err := echo(m.action, m.msg)
	if err == nil && (action != m.action || msg != m.msg) {
		err = errWrongReply
	}
	return err
}

// Calls returns what makes n calls. The time is processor time of this process, which is
// all that such calls take, and which others on the same processor do not add to.
func Calls(echo Echo) func(n int) (time.Duration, error) {
	all, process := messages(), os.Getpid()
	return func(n int) (time.Duration, error) {
		begun, err := machine.ProcessTime(process)
		if err != nil {
			return 0, err
		}
		for i := range n {
			if err := all[i%len(all)].call(echo); err != nil {
				return 0, err
			}
		}
		ended, err := machine.ProcessTime(process)
		return ended - begun, err
	}
}

// fullStack compares calls of both kinds.
func (c Contestant) fullStack() (contestant.Repeat, error) {
	network := NewNetwork()
	plain, err := c.Plain(network, Addresses(0, 1)[0])
	if err != nil {
		return contestant.Repeat{}, err
	}
	addresses := Addresses(1, Instances)
	full, err := c.Full(network, addresses)
	if err != nil {
		return contestant.Repeat{}, errors.Join(err, plain.close())
	}
	// Connections are opened, breakers and counters of instances made.
	const each = 50
	if _, err := Calls(full.Echo)(each * Instances); err != nil {
		return contestant.Repeat{}, errors.Join(err, plain.close(), full.close())
	}
	if err := network.checkSpread(addresses); err != nil {
		return contestant.Repeat{}, errors.Join(err, plain.close(), full.close())
	}
	return contestant.Repeat{
		Times: Calls(full.Echo), Without: Calls(plain.Echo),
		Close: func() error {
			return errors.Join(plain.close(), full.close())
		},
	}, nil
}

func (c Client) close() error {
	if c.Close == nil {
		return nil
	}
	return c.Close()
}

// checkSpread wants that all addresses have got calls, and that they are spread as among
// half of them at least: a client that keeps to a few finds those in its caches. Choosing
// by latency is not even, and less so on a machine on which others compute.
func (n *Network) checkSpread(addresses []string) error {
	calls := n.Calls()
	var sum, squares float64
	for _, address := range addresses {
		count := float64(calls[address])
		if count == 0 {
			return fmt.Errorf("one of %d instances has got none of the calls", len(addresses))
		}
		sum += count
		squares += count * count
	}
	if even := sum * sum / squares; even < float64(len(addresses))/2 {
		return fmt.Errorf("calls are spread as if there were %.0f instances (there are %d, limit half of them)", even, len(addresses))
	}
	return nil
}

// resolverUpdate delivers lists.
func (c Contestant) resolverUpdate() (contestant.Repeat, error) {
	network := NewNetwork()
	addresses := Addresses(0, UpdateInstances)
	client, update, err := c.Updated(network, addresses)
	if err != nil {
		return contestant.Repeat{}, err
	}
	// Nearly all instances have got calls before, as in a client that runs for a while: else
	// what is measured is connecting.
	if _, err := Calls(client.Echo)(updateFirst * UpdateInstances); err != nil {
		return contestant.Repeat{}, errors.Join(err, client.close())
	}
	all, calls := messages(), 0
	next := UpdateInstances
	return contestant.Repeat{
		Rare: &contestant.Rare{
			Next: func() (func() error, error) {
				changed := Replaced(addresses, next)
				addresses, next = changed, next+UpdateChanged
				return func() error { return update(changed) }, nil
			},
			Pause: updatePause, Rate: updateRate,
			Call: func() error {
				calls++
				return all[calls%len(all)].call(client.Echo)
			},
		},
		Close: client.close,
	}, nil
}

// Replaced returns another list in which UpdateChanged of the addresses are new ones, which
// begin with number next. They are spread over the list.
func Replaced(addresses []string, next int) []string {
	changed := append([]string(nil), addresses...)
	step := len(changed) / UpdateChanged
	for i, address := range Addresses(next, UpdateChanged) {
		// Another place in each list, so that it is not the same ones that go.
		changed[(i*step+next/UpdateChanged)%len(changed)] = address
	}
	return changed
}
