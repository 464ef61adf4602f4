package transport

import (
	"io"
	"sync"
)

// streamHeader is what a server says in front of its messages. The lock of the stream guards
// it, but came.
type streamHeader struct {
	// came is closed when pairs is what it said, or it said nothing.
	came  chan struct{}
	there bool
	pairs []Pair
}

func newStreamHeader() streamHeader { return streamHeader{came: make(chan struct{})} }

// headLocked is how the header comes; nil says that none will. The first one counts.
func (h *streamHeader) headLocked(pairs []Pair) {
	if !h.there {
		h.there, h.pairs = true, pairs
		close(h.came)
	}
}

// awaitHeader waits for the header, and returns it, also if the stream has failed: broken and ended
// are why, with the lock of the stream.
func (h *streamHeader) awaitHeader(lock sync.Locker, broken, ended *error) ([]Pair, error) {
	<-h.came
	lock.Lock()
	defer lock.Unlock()
	switch {
	case *broken != nil:
		return h.pairs, *broken
	case *ended != nil && *ended != io.EOF:
		return h.pairs, *ended
	}
	return h.pairs, nil
}
