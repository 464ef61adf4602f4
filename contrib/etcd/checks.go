package etcd

import (
	"errors"
	"time"
)

// checks says when a follower compares what it knows with etcd. One goroutine uses it.
type checks struct {
	interval time.Duration
	pauses   backoff
	timer    *time.Timer
	done     int
}

func newChecks(config Config) *checks {
	c := &checks{interval: config.CheckInterval, pauses: backoff{min: config.BackoffMin, max: config.BackoffMax}}
	if c.interval > 0 {
		c.timer = time.NewTimer(jitter(c.interval))
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

// did is told how a check ended, and returns an error if everything has to be listed
// again. After a check that failed the next one comes soon, because what follows an
// outage is when data is missing.
func (c *checks) did(err error) error {
	switch {
	case errors.Is(err, errStale):
		return err
	case err != nil:
		c.timer.Reset(min(c.pauses.pause(), c.interval))
		return nil
	}
	c.pauses.reset()
	c.timer.Reset(jitter(c.interval))
	if c.done++; c.done >= relistChecks {
		return errDue
	}
	return nil
}

// errDue is no failure: it is time for a list.
var errDue = errors.New("etcd: a list is due")
