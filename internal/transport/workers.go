package transport

import "sync"

// workersKept bounds the goroutines that wait for calls. One takes 8 KiB once
// it has served a call, the rest of a stack that grew.
const workersKept = 1024

// workers are goroutines that have served a call and wait for the next. A new
// goroutine would have to grow its stack first, which took a tenth of the
// server's time for a short call. Safe for concurrent use.
type workers struct {
	mu sync.Mutex
	// idle has those that wait, the one that waited longest first; the last one,
	// whose stack is most likely still in a cache, is taken.
	idle []*worker
	// unused is how many of idle nobody has needed since the last trim.
	unused int
	closed bool
}

type worker struct{ calls chan *Inbound }

// take gives a call to a worker that waits. It reports whether there was one.
func (w *workers) take(call *Inbound) bool {
	w.mu.Lock()
	last := len(w.idle) - 1
	if last < 0 {
		w.mu.Unlock()
		return false
	}
	chosen := w.idle[last]
	w.idle[last] = nil
	w.idle = w.idle[:last]
	w.unused = min(w.unused, last)
	w.mu.Unlock()
	chosen.calls <- call
	return true
}

// wait returns the next call for a worker, nil if it has to end.
func (w *workers) wait(free *worker) *Inbound {
	w.mu.Lock()
	if w.closed || len(w.idle) >= workersKept {
		w.mu.Unlock()
		return nil
	}
	w.idle = append(w.idle, free)
	w.mu.Unlock()
	return <-free.calls
}

// trim ends the workers that were not needed since the last trim.
func (w *workers) trim() {
	w.mu.Lock()
	excess := w.unused
	ended := append([]*worker(nil), w.idle[:excess]...)
	kept := copy(w.idle, w.idle[excess:])
	clear(w.idle[kept:])
	w.idle = w.idle[:kept]
	w.unused = kept
	w.mu.Unlock()
	end(ended)
}

// close ends all workers, those that serve calls when they are done.
func (w *workers) close() {
	w.mu.Lock()
	w.closed = true
	ended := w.idle
	w.idle, w.unused = nil, 0
	w.mu.Unlock()
	end(ended)
}

func end(workers []*worker) {
	for _, w := range workers {
		w.calls <- nil
	}
}
