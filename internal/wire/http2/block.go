package http2

import (
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
)

// block is a header block that goes on in another frame (RFC 9113, 4.3).
type block struct {
	// head is the HEADERS frame that it began with.
	head          Frame
	open          bool
	bytes         []byte
	continuations int
}

// add keeps a fragment, in a chunk of the pool.
func (b *block) add(pool *linkbuf.Pool, fragment []byte) {
	if len(b.bytes)+len(fragment) > cap(b.bytes) {
		longer := pool.Get(len(b.bytes) + len(fragment))
		longer = append(longer, b.bytes...)
		if b.bytes != nil {
			pool.Put(b.bytes)
		}
		b.bytes = longer
	}
	b.bytes = append(b.bytes, fragment...)
}

func (b *block) release(pool *linkbuf.Pool) {
	if b.bytes != nil {
		pool.Put(b.bytes)
	}
	*b = block{}
}

// headers takes a HEADERS frame, and with it the block if that is complete.
func (c *Conn) headers(f *Frame, now Nanoseconds) (Event, error) {
	if err := c.blockFits(0, len(f.Payload)); err != nil {
		return Event{}, err
	}
	if !f.Flags.Has(FlagEndHeaders) {
		c.block.head, c.block.open = *f, true
		c.block.add(c.pool, f.Payload)
		c.block.head.Payload = nil
		return Event{}, nil
	}
	return c.headerBlock(f, f.Payload, now)
}

// continuation takes a CONTINUATION frame.
func (c *Conn) continuation(f *Frame, now Nanoseconds) (Event, error) {
	if !c.block.open || f.Stream != c.block.head.Stream {
		return Event{}, connectionError(ProtocolError, "CONTINUATION of stream %d that has no HEADERS before it", f.Stream)
	}
	c.block.continuations++
	if c.block.continuations > limits.HTTP2Continuations {
		return Event{}, c.calm("CONTINUATION frames", c.block.continuations, limits.HTTP2Continuations)
	}
	if err := c.blockFits(len(c.block.bytes), len(f.Payload)); err != nil {
		return Event{}, err
	}
	c.block.add(c.pool, f.Payload)
	if !f.Flags.Has(FlagEndHeaders) {
		return Event{}, nil
	}
	defer c.block.release(c.pool)
	return c.headerBlock(&c.block.head, c.block.bytes, now)
}

// blocksPerList is how many times as long as its list may be a block may be. One that is too
// long for its stream is read to its end all the same, because the streams behind it need the
// table.
const blocksPerList = 4

// blockFits bounds a block on the wire before it is kept.
func (c *Conn) blockFits(there, more int) error {
	if limit := blocksPerList * c.config.headerListBytes; there+more > limit {
		return connectionError(EnhanceYourCalm, "header block of %d bytes (limit %d)", there+more, limit)
	}
	return nil
}
