package linkbuf

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// The large classes begin with 128 KiB: one read of a socket brings 64.
const largeClass = 8

// large keeps slices of the large classes. A sync.Pool gives away what is in it at the
// second collection, and messages of 1 MiB bring some 300 collections a second if little
// else is in memory (GODEBUG=gctrace=1): then each of them takes new memory, which is cleared, and which the
// system has to find. With that an echo of 1 MiB took 443 us of a server's processor, and
// with this 370 (suite paper-view, AMD Zen 5).
type large struct {
	mu sync.Mutex
	// free holds those that nobody uses, as pointers to their first byte; the last ones are
	// taken first. unused is how many at the beginning nobody has taken since aged.
	free   [classCount][]*byte
	unused [classCount]int
	bytes  int
	aged   time.Time
	// watched: age will be called by the next collection.
	watched bool
}

// get returns a slice of a class, nil if there is none. It may be called on a nil large.
func (l *large) get(class int) *byte {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	last := len(l.free[class]) - 1
	if last < 0 {
		return nil
	}
	first := l.free[class][last]
	l.free[class][last] = nil
	l.free[class] = l.free[class][:last]
	l.unused[class] = min(l.unused[class], last)
	l.bytes -= classBytesMin << class
	return first
}

// put takes a slice of a class, and reports false if there are enough.
func (l *large) put(class int, first *byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	size := classBytesMin << class
	if l.bytes+size > limits.SpareBytes {
		return false
	}
	l.bytes += size
	l.free[class] = append(l.free[class], first)
	if !l.watched {
		l.aged = time.Now()
		l.watch()
	}
	return true
}

// drop gives away all at once. It may be called on a nil large.
func (l *large) drop() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free, l.unused, l.bytes = [classCount][]*byte{}, [classCount]int{}, 0
}

// watch has the next collection call age. It is the last thing that keeps a large from
// being collected, so that must end: see age.
func (l *large) watch() {
	l.watched = true
	sentinel := new(*byte) // with a pointer, or it would share its memory with others
	runtime.AddCleanup(sentinel, (*large).age, l)
}

// age gives away what has not been used for SpareAge.
func (l *large) age() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.aged) >= limits.SpareAge {
		l.aged = now
		for class, n := range l.unused {
			l.free[class] = slices.Delete(l.free[class], 0, n)
			l.unused[class] = len(l.free[class])
			l.bytes -= n * (classBytesMin << class)
		}
	}
	if l.watched = l.bytes > 0; l.watched {
		l.watch()
	}
}
