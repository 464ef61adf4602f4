package transport

import (
	"io"
	"sync"
)

// streamHeader is what a server says in front of its messages. The lock of the stream guards
// it, but came.
type streamHeader struct {
	// came is closed when pairs is what it said, or it said nothing. said: it did. pairs is nil
	// then only if that was how the call ended.
	came        chan struct{}
	there, said bool
	pairs       []Pair
}

func newStreamHeader() streamHeader { return streamHeader{came: make(chan struct{})} }

// sayLocked takes what the server says. The first time counts.
func (h *streamHeader) sayLocked(pairs []Pair) {
	if !h.there {
		if h.said, h.pairs = true, pairs; pairs == nil {
			h.pairs = []Pair{}
		}
	}
	h.headLocked()
}

// headLocked says that nothing comes that has not.
func (h *streamHeader) headLocked() {
	if !h.there {
		h.there = true
		close(h.came)
	}
}

// awaitHeader waits for the header, and returns it whatever happened behind it. Of a stream
// that has failed without one, broken and ended are why, with the lock of the stream.
func (h *streamHeader) awaitHeader(lock sync.Locker, broken, ended *error) ([]Pair, error) {
	<-h.came
	lock.Lock()
	defer lock.Unlock()
	switch {
	case h.said || *ended == io.EOF:
		return h.pairs, nil
	case *broken != nil:
		return nil, *broken
	}
	return nil, *ended
}
