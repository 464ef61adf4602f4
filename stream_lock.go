package fulmar

import (
	"sync"
	"sync/atomic"
)

// streamLock is a sync.Mutex for what is held while something waits for the network. In a bubble
// of testing/synctest time stands still while somebody waits for a sync.Mutex, because who has
// it may be about to give it back; waiting for a sync.Cond lets time pass. A lock that is free
// costs what it does of a sync.Mutex: one atomic step to take it, and one to give it back.
//
// Who finds the lock held sets lockWanted with mu held, and waits. From then on only who has the
// lock and mu may free it, and he hands it over instead if somebody waits: wanted is that many,
// Signal wakes one of them, and Wait returns for no other reason. So nobody is forgotten, and who
// takes the lock again and again keeps nobody out.
type streamLock struct {
	state atomic.Int32
	mu    sync.Mutex
	// freed is nil until somebody waits.
	freed  *sync.Cond
	wanted int
}

// The states of a streamLock.
const (
	lockFree int32 = iota
	lockHeld
	lockWanted
)

// Lock takes the lock.
func (l *streamLock) Lock() {
	if !l.state.CompareAndSwap(lockFree, lockHeld) {
		l.wait()
	}
}

func (l *streamLock) wait() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.Swap(lockWanted) == lockFree {
		return
	}
	if l.freed == nil {
		l.freed = sync.NewCond(&l.mu)
	}
	l.wanted++
	l.freed.Wait()
}

// Unlock gives it back.
func (l *streamLock) Unlock() {
	if !l.state.CompareAndSwap(lockHeld, lockFree) {
		l.handOver()
	}
}

func (l *streamLock) handOver() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wanted == 0 {
		l.state.Store(lockFree)
		return
	}
	l.wanted--
	l.freed.Signal()
}
