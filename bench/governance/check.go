package governance

import (
	"errors"
	"fmt"
	"time"

	"github.com/fulmar-rpc/fulmar/bench/contestant"
)

// StackCheck is no case of the suite. Whoever is asked to repeat it shows that what Full
// returns has all that is measured; smoke tests ask, in a process of its own, because not
// every framework ends what it has started.
const StackCheck = "full-stack-check"

// How many calls StackCheck makes: good ones, few enough that as many bad ones open a
// breaker, and bad ones at most.
const (
	checkGood   = 5 * Instances
	checkBadMax = 10 * checkGood
)

// stackCheck calls all instances, lets all connections break until the breaker refuses a
// call, and counts the attempts until then.
func (c Contestant) stackCheck() (contestant.Repeat, error) {
	network, addresses := NewNetwork(), Addresses(1, Instances)
	client, err := c.Full(network, addresses)
	if err != nil {
		return contestant.Repeat{}, err
	}
	problem := c.check(network, addresses, client.Echo)
	return contestant.Repeat{Close: client.close, Times: func(n int) (time.Duration, error) {
		return time.Duration(n) * time.Millisecond, problem
	}}, nil
}

func (c Contestant) check(network *Network, addresses []string, echo Echo) error {
	if _, err := Calls(echo)(checkGood); err != nil {
		return err
	}
	before := network.total()
	if before != checkGood {
		return fmt.Errorf("%d calls became %d attempts", checkGood, before)
	}
	network.Broken = true
	bad := uint64(0)
	var err error
	all := messages()
	for ; !c.Refused(err); bad++ {
		if bad == checkBadMax {
			return fmt.Errorf("no breaker has opened within %d calls that failed: %w", bad, err)
		}
		if err = all[0].call(echo); err == nil || errors.Is(err, errWrongReply) {
			return fmt.Errorf("a call over a broken connection ends with %v", err)
		}
	}
	bad-- // The last one was refused.
	attempts := network.total() - before
	// What budgets have saved, and a tenth of the calls.
	if most := bad + (bad+checkGood)/10 + 100; attempts < bad || attempts > most {
		return fmt.Errorf("%d calls that failed became %d attempts (limits %d and %d)", bad, attempts, bad, most)
	}
	if err := all[0].call(echo); !c.Refused(err) {
		return fmt.Errorf("behind an open breaker a call ends with %v", err)
	}
	if now := network.total() - before; now != attempts {
		return fmt.Errorf("a call that the breaker refused became %d attempts", now-attempts)
	}
	return nil
}

// total is how many calls all addresses have got together.
func (n *Network) total() (all uint64) {
	for _, count := range n.Calls() {
		all += count
	}
	return all
}
