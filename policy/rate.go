package policy

import (
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// rate bounds how many calls begin in a second: PerSecond and Burst of a Limit. In any time
// it allows Burst calls and PerSecond for each second of it. What it knows is one number,
// the time at which all calls so far would have begun if they had come evenly: a call may
// be ahead of that by as much as Burst calls take (a token bucket that is never filled,
// known as GCRA). Safe for concurrent use, without a lock.
type rate struct {
	base   time.Time
	config atomic.Pointer[rateConfig]
	// even is when the next call would begin if they came evenly, in ticks since base.
	even atomic.Int64
}

// ticksPerNanosecond: with nanoseconds a million calls in a second could not be told from
// 1,000,999. With these it is 18 years until 63 bits are too few.
const ticksPerNanosecond = 16

// rateConfig is the rate of a Limit that has one.
type rateConfig struct {
	// each is what one call takes of the time, and ahead how far calls may be.
	each, ahead int64
}

func (l Limit) rate() *rateConfig {
	if l.PerSecond <= 0 {
		return nil
	}
	perSecond := int64(min(l.PerSecond, limits.PolicyCountMax))
	burst := int64(min(limits.Or(l.Burst, max(l.PerSecond*limits.BurstPercent/100, 1), 1), limits.PolicyCountMax))
	// Rounded up, so that there are never more than PerSecond.
	each := (int64(time.Second)*ticksPerNanosecond + perSecond - 1) / perSecond
	return &rateConfig{each: each, ahead: each * burst}
}

// begin makes it one with a whole burst at now.
func (r *rate) begin(limit Limit, now time.Time) {
	r.base = now
	r.config.Store(limit.rate())
}

// configure changes the limit from now on. Calls that have begun count as before, as far as
// the new burst reaches.
func (r *rate) configure(limit Limit, now time.Time) {
	config := limit.rate()
	r.config.Store(config)
	if config == nil {
		return
	}
	most := r.ticks(now) + config.ahead
	for even := r.even.Load(); even > most && !r.even.CompareAndSwap(even, most); even = r.even.Load() {
	}
}

// allow reports whether a call may begin at now, and counts it. If it may not, wait is how
// long until one may, if none comes before.
func (r *rate) allow(now time.Time) (allowed bool, wait time.Duration) {
	config := r.config.Load()
	if config == nil {
		return true, 0
	}
	at := r.ticks(now)
	for {
		even := r.even.Load()
		if config.setBack(even, at) {
			// Waiting until the clock is where it was could take hours; so it goes on from
			// now, without a burst.
			r.even.CompareAndSwap(even, at+config.ahead)
			continue
		}
		next, over := config.next(even, at)
		if over > 0 {
			return false, time.Duration(over+ticksPerNanosecond-1) / ticksPerNanosecond
		}
		if r.even.CompareAndSwap(even, next) {
			return true, 0
		}
	}
}

// setBack reports whether even is later than calls can have brought it.
func (c *rateConfig) setBack(even, at int64) bool {
	return even > at+c.ahead+int64(limits.ClockSlack)*ticksPerNanosecond
}

// next returns what a call at a time makes of even, and how far it would be ahead of what
// it may.
func (c *rateConfig) next(even, at int64) (next, over int64) {
	next = max(even, at) + c.each
	return next, next - (at + c.ahead)
}

// left returns how many calls could begin at once at now; -1 if any number could.
func (r *rate) left(now time.Time) int { return r.config.Load().left(r.even.Load(), r.ticks(now)) }

func (c *rateConfig) left(even, at int64) int {
	if c == nil {
		return -1
	}
	return int(max(at+c.ahead-max(even, at), 0) / c.each)
}

func (r *rate) ticks(now time.Time) int64 { return int64(now.Sub(r.base)) * ticksPerNanosecond }
