package transport

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/fulmar-rpc/fulmar/eventloop"
)

// budget counts the bytes of messages that one Server or Pool holds for its
// peers: those that are arriving, wait to be decoded, or wait to be read by the
// peer, and the headers of calls that run. Small shares are not counted while they arrive, see budgetBytesMin.
// Safe for concurrent use.
type budget struct {
	limit int64
	used  atomic.Int64
}

// budgetBytesMin is the part of a message in arrival that is not counted, so
// that short messages, which arrive at once, cost no shared counter: 10,000
// connections with less than this hold 160 MB at most.
const budgetBytesMin = 16 << 10

// reserveShare of the budget is kept from messages in arrival, for those that
// are complete: otherwise a few peers that stop in the middle of a long message
// could keep all others from being served.
const reserveShare = 8

// ErrOverloaded is wrapped by the errors of messages for which there is no room.
var ErrOverloaded = errors.New("overloaded")

// take counts n more bytes, unless the sum exceeds the limit.
func (b *budget) take(n int) error { return b.takeUnder(n, b.limit) }

// takePart is take for a message that is still arriving.
func (b *budget) takePart(n int) error { return b.takeUnder(n, b.limit-b.limit/reserveShare) }

func (b *budget) takeUnder(n int, limit int64) error {
	if n == 0 {
		return nil
	}
	if used := b.used.Add(int64(n)); n > 0 && used > limit {
		b.used.Add(int64(-n))
		return fmt.Errorf("%w: %d bytes of messages are held already (limit %d)", ErrOverloaded, used-int64(n), b.limit)
	}
	return nil
}

// add counts n more bytes, whatever the limit: what has to be done anyway.
func (b *budget) add(n int) { b.used.Add(int64(n)) }

// give takes back what was counted. Often that is nothing, and adding it takes as long as
// anything else: twice for each call, DropBody was 4 % of a server's time (pingpong-1k-c100).
func (b *budget) give(n int) {
	if n != 0 {
		b.used.Add(int64(-n))
	}
}

// held returns what the budget counts for bytes that wait in reader: as many as
// there are, or a quarter of the room that was made for them, since more of it
// is announced only.
func held(reader *eventloop.Reader) int { return max(reader.Len(), reader.Memory()/4) }

// charge makes the budget count what has arrived of messages that are not
// complete, or wait for their turn.
func (c *serverConn) charge(held int) error {
	if held < budgetBytesMin || held <= c.charged {
		return nil
	}
	if err := c.server.budget.takePart(held - c.charged); err != nil {
		return err
	}
	c.charged = held
	return nil
}

func (c *serverConn) uncharge() {
	if c.charged == 0 {
		return
	}
	c.server.budget.give(c.charged)
	c.charged = 0
}
