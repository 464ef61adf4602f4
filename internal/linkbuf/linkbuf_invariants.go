//go:build invariants || race

package linkbuf

import (
	"bytes"
	"hash/crc32"
	"sync"
	"sync/atomic"
	"unsafe"
)

// outstanding is the one variable of this package: leak checks after a test
// must see every pool, also those whose owner the test never knew.
var outstanding atomic.Int64

// Outstanding returns how many pooled slices of the whole process are in use.
// Only builds with the invariants tag or the race detector count; in all others
// it is 0.
func Outstanding() int64 { return outstanding.Load() }

// poison fills released slices: not a letter, not a small number, and an
// invalid Thrift type, so that whoever reads it fails early.
const poison = 0xDB

// poolChecks finds slices that are put back twice, that no Get returned, and
// those that are written to after they were put back.
type poolChecks struct {
	mu   sync.Mutex
	live map[*byte]struct{}
}

func (c *poolChecks) got(b []byte) {
	outstanding.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live == nil {
		c.live = make(map[*byte]struct{})
	}
	c.live[unsafe.SliceData(b)] = struct{}{}
}

func (c *poolChecks) put(b []byte) {
	c.forgotten(b)
	spoil(b)
}

func (c *poolChecks) forgotten(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := unsafe.SliceData(b)
	if _, ok := c.live[first]; !ok {
		panic("linkbuf: Put of a slice that was put back before or that no Get returned")
	}
	delete(c.live, first)
	outstanding.Add(-1)
}

func (*poolChecks) reused(b []byte) {
	if bytes.Count(b[:cap(b)], []byte{poison}) != cap(b) {
		panic("linkbuf: a slice was written to after Put")
	}
}

// spoil overwrites memory that nobody may read any more.
func spoil(b []byte) {
	if len(b) == 0 {
		return
	}
	b[0] = poison
	for filled := 1; filled < len(b); filled *= 2 {
		copy(b[filled:], b[:filled])
	}
}

// contentCheck finds bytes that changed though they were lent.
type contentCheck struct{ sum uint32 }

func newContentCheck(p []byte) contentCheck { return contentCheck{crc32.ChecksumIEEE(p)} }

func (c contentCheck) verify(p []byte) {
	if crc32.ChecksumIEEE(p) != c.sum {
		panic("linkbuf: inserted or sliced bytes were changed before Release")
	}
}
