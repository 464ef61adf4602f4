package etcd

import (
	"errors"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster/registries"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// checks says when a follower compares what it knows with etcd. One goroutine uses it.
type checks struct {
	interval time.Duration
	pauses   registries.Pauses
	timer    *time.Timer
	done     int
}

func newChecks(config Config) *checks {
	c := &checks{interval: config.CheckInterval, pauses: registries.Pauses{Min: config.BackoffMin, Max: config.BackoffMax}}
	if c.interval > 0 {
		c.timer = time.NewTimer(registries.Jitter(c.interval))
	}
	return c
}

// due gets something when a check is due; nothing, ever, if there are none.
func (c *checks) due() <-chan time.Time {
	if c.timer == nil {
		return nil
	}
	return c.timer.C
}

func (c *checks) stop() {
	if c.timer != nil {
		c.timer.Stop()
	}
}

// need makes sure that some time there is a check, even if there are to be none.
func (c *checks) need() {
	if c.timer == nil {
		c.interval = limits.RegistryCheck
		c.timer = time.NewTimer(registries.Jitter(c.interval))
	}
}

// did is told how a check ended, and whether a list is wanted, and returns an error if
// everything has to be listed again. After a check that failed the next one comes soon,
// because what follows an outage is when data is missing.
func (c *checks) did(err error, wanted bool) error {
	switch {
	case errors.Is(err, errStale):
		return err
	case err != nil:
		c.timer.Reset(min(c.pauses.Next(), c.interval))
		return nil
	}
	c.pauses.Reset()
	c.timer.Reset(registries.Jitter(c.interval))
	if c.done++; wanted || c.done >= relistChecks {
		return errDue
	}
	return nil
}

// errDue is no failure: it is time for a list.
var errDue = errors.New("etcd: a list is due")
