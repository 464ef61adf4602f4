package eventloop

import (
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
)

const (
	// combinedMost is the longest piece that is copied for somebody else to
	// write. Copying 16 KiB takes as long as a system call.
	combinedMost = 16 << 10

	// crowdedHolds is from how many holds on, calls in flight, others are likely
	// to write at once.
	crowdedHolds = 16

	// combinedRounds is how often a writer writes what came meanwhile before it
	// leaves the rest to a goroutine: it has something else to do.
	combinedRounds = 4
)

// combined are the bytes that goroutines leave to the one that writes, so that
// they need not wait, and many replies leave with one system call. As bytes that
// the kernel has taken, they count as written. Safe for concurrent use.
//
//	idle -- write --> writing -- nothing was left to write --> idle
//	writing -- too many rounds --> writing, on a goroutine
//	writing -- close --> closing -- everything is written, or LingerTimeout --> closed
type combined struct {
	conn *Conn

	mu sync.Mutex
	// writing: somebody holds the token of outbound, and will look here again.
	writing bool
	left    *linkbuf.Buffer
	// spare is the other buffer, while nobody writes it.
	spare *linkbuf.Buffer
	// closing is called when everything is written, closed ended then.
	closing func()
	ended   chan struct{}

	// pieces lists what is being written, for the goroutine that does.
	pieces [][]byte
}

func newCombined(conn *Conn) *combined {
	pool := &conn.listener.pool
	return &combined{conn: conn, left: linkbuf.New(pool), spare: linkbuf.New(pool)}
}

// crowded reports whether others are likely to write at once: then the writer
// lets them run first. Measured in the design: 3 times as many calls at 64
// callers, and up to 20 % fewer at 8 without a reason to wait. The goroutine that
// polls has others to look after.
func (c *Conn) crowded() bool {
	return (c.inFlight.Load() >= crowdedHolds || c.backlog.Load()) && !c.isPolling()
}

// leave copies buffers for the goroutine that writes now. It returns false if
// there is none, or if they are too long.
func (c *combined) leave(buffers [][]byte) (int64, bool) {
	length := 0
	for _, b := range buffers {
		if length += len(b); length > combinedMost || length < 0 {
			return 0, false
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// Here, so that close sees what was left before.
	if !c.writing || c.conn.outbound.ending.Load() || c.left.Len()+length > limits.CombinedBytes {
		return 0, false
	}
	for _, b := range buffers {
		c.left.Append(b)
	}
	return int64(length), true
}

// begin says that somebody writes.
func (c *combined) begin() {
	c.mu.Lock()
	c.writing = true
	c.mu.Unlock()
	if c.conn.crowded() {
		runtime.Gosched()
	}
}

// take returns what was left, nil if that is nothing. The taker gives it back
// with written.
func (c *combined) take() *linkbuf.Buffer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left.Len() == 0 {
		return nil
	}
	taken := c.left
	c.left, c.spare = c.spare, nil
	return taken
}

func (c *combined) written(taken *linkbuf.Buffer) {
	taken.Release()
	clear(c.pieces)
	if cap(c.pieces) > scratchKept {
		c.pieces = nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spare = taken
}

// end says that nobody writes any more, unless something is left to write. It
// reports whether it did.
func (c *combined) end() bool {
	c.mu.Lock()
	if c.left.Len() > 0 {
		c.mu.Unlock()
		return false
	}
	c.endAndUnlock()
	return true
}

// fail says that nobody writes any more, because that has failed. It reports
// whether bytes that were left are lost.
func (c *combined) fail() (lost bool) {
	c.mu.Lock()
	lost = c.left.Len() > 0
	c.left.Release()
	c.endAndUnlock()
	return lost
}

func (c *combined) endAndUnlock() {
	c.writing = false
	closing, ended := c.closing, c.ended
	c.ended = nil // who waited to write since then ends it as well
	c.mu.Unlock()
	if ended != nil {
		closing()
		close(ended)
	}
}

// closeAfter calls closing when what was left is written. It returns false if
// nothing was, so that there is nothing to wait for, else what is closed behind
// it.
func (c *combined) closeAfter(closing func()) (ended <-chan struct{}, ok bool) {
	if c == nil {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.writing || c.left.Len() == 0 && c.spare != nil {
		return nil, false
	}
	if c.closing == nil {
		c.closing, c.ended = closing, make(chan struct{})
	}
	return c.ended, true
}

// writeCombined writes buffers, and what others leave meanwhile. Its caller
// holds the token, which it gives back.
func (o *outbound) writeCombined(buffers [][]byte, whole bool, before int64) (int64, error) {
	c := o.combined.Load()
	c.begin()
	own := lengthOf(buffers)
	taken := c.take()
	if taken != nil {
		c.pieces = taken.Slices(append(c.pieces[:0], buffers...))
		buffers = c.pieces
	}
	n, err := o.writeAll(buffers)
	if taken != nil {
		c.written(taken)
	}
	others := err
	if n >= own {
		n = own
		if !o.unflushed() {
			err = nil
		}
	}
	if err != nil && whole && gap(before+n, err) {
		o.broken = err
	}
	if others != nil {
		o.endCombined(others, taken != nil) // it stands behind buffers
		return n, err
	}
	for range combinedRounds {
		if c.end() {
			o.unlock()
			return n, nil
		}
		if err := o.writeLeft(); err != nil {
			o.endCombined(err, true)
			return n, nil
		}
	}
	go o.writeRest()
	return n, nil
}

// writeLeft writes what others have left.
func (o *outbound) writeLeft() error {
	c := o.combined.Load()
	taken := c.take()
	c.pieces = taken.Slices(c.pieces[:0])
	_, err := o.writeAll(c.pieces)
	c.written(taken)
	return err
}

// writeRest writes until nothing is left, and gives the token back.
func (o *outbound) writeRest() {
	for !o.combined.Load().end() {
		if err := o.writeLeft(); err != nil {
			o.endCombined(err, true)
			return
		}
	}
	o.unlock()
}

// endCombined gives the token back after a failure. lost tells that bytes of
// others were in that write.
func (o *outbound) endCombined(err error, lost bool) {
	c := o.combined.Load()
	if c.fail() {
		lost = true
	}
	if lost && o.broken == nil {
		o.broken = err
	}
	o.unlock()
	switch {
	case lost && errors.Is(err, ErrWriteStalled):
		c.conn.closeStalled(err) // the writer may have succeeded: nobody else tells
	case lost:
		c.conn.CloseWithError(err)
	}
}

// closeSocket closes the socket for who holds the token.
func (o *outbound) closeSocket() error {
	if o.secure {
		return o.conn.tlsOf().farewell()
	}
	return o.conn.socket.Close()
}

// close closes the socket, if others have left bytes to write when that is done
// or LingerTimeout has passed. It returns what is closed then, nil if the socket
// is closed. ending is set.
func (o *outbound) close() (ended <-chan struct{}, err error) {
	ended, ok := o.combined.Load().closeAfter(func() { _ = o.closeSocket() })
	switch {
	case ok:
	case o.secure:
		if ended, err = o.closeSecure(); ended == nil {
			return nil, err
		}
	default:
		return nil, o.conn.socket.Close()
	}
	// An error means that everything is written, and the socket is closed.
	_ = o.setDeadline(time.Now().Add(limits.LingerTimeout), true)
	return ended, nil
}
