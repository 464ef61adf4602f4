// Package workers runs jobs on goroutines that wait for the next job when they
// are done with one.
package workers

import (
	"sync"
	"time"
)

const (
	// kept bounds the goroutines that wait for jobs. One takes 16 KiB once it has
	// done a job, the rest of a stack that grew.
	kept = 1024

	// deepBytes of its stack every goroutine uses, also while it waits. The garbage
	// collector halves stacks of which less than a quarter is used, and the next job
	// would have to grow that again, by copying: a call of complex-c100 (suite rpc)
	// takes 25.8 us of the server's processor with it and 30.0 without (three
	// interleaved runs of 4 s each). It keeps stacks of 16 KiB.
	deepBytes = 4 << 10

	// trimInterval is how long a goroutine waits that nobody needs, at most twice
	// of it.
	trimInterval = 500 * time.Millisecond
)

// Pool starts a goroutine for a job when none waits. A new one would have to
// grow its stack first, which took a tenth of a server's time for a short call.
// The zero Pool is not usable; see New. Safe for concurrent use.
type Pool[T any] struct {
	run func(T)

	mu sync.Mutex
	// idle has those that wait, the one that waited longest first; the last one,
	// whose stack is most likely still in a cache, is taken.
	idle []chan job[T]
	// unused is how many of idle nobody has needed since the last trim.
	unused int
	// trimmer runs while somebody waits.
	trimmer *time.Timer
	closed  bool
}

type job[T any] struct {
	value T
	end   bool
}

// New returns a Pool that calls run for each job. If run ends its goroutine, so
// does that one, and nothing else.
func New[T any](run func(T)) *Pool[T] { return &Pool[T]{run: run} }

// Do runs a job on a goroutine of its own. It does not wait.
func (p *Pool[T]) Do(value T) {
	p.mu.Lock()
	last := len(p.idle) - 1
	if last < 0 {
		p.mu.Unlock()
		go p.work(value)
		return
	}
	chosen := p.idle[last]
	p.idle[last] = nil
	p.idle = p.idle[:last]
	p.unused = min(p.unused, last)
	p.mu.Unlock()
	chosen <- job[T]{value: value}
}

// work runs a job, and others after it.
func (p *Pool[T]) work(value T) {
	var frame [deepBytes]byte
	p.workDeep(value, &frame)
}

// workDeep is work behind the frame of its caller, which it must not lose.
//
//go:noinline
func (p *Pool[T]) workDeep(value T, _ *[deepBytes]byte) {
	p.run(value)
	jobs := make(chan job[T], 1)
	for p.wait(jobs) {
		next := <-jobs
		if next.end {
			return
		}
		p.run(next.value)
	}
}

// wait adds a goroutine to those that wait, and reports whether it may.
func (p *Pool[T]) wait(jobs chan job[T]) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) >= kept {
		return false
	}
	p.idle = append(p.idle, jobs)
	if p.trimmer == nil {
		p.trimmer = time.AfterFunc(trimInterval, p.trim)
	}
	return true
}

// trim ends the goroutines that were not needed since the last trim.
func (p *Pool[T]) trim() {
	p.mu.Lock()
	ended := append([]chan job[T](nil), p.idle[:p.unused]...)
	left := copy(p.idle, p.idle[p.unused:])
	clear(p.idle[left:])
	p.idle = p.idle[:left]
	p.unused = left
	p.trimmer = nil
	if left > 0 && !p.closed {
		p.trimmer = time.AfterFunc(trimInterval, p.trim)
	}
	p.mu.Unlock()
	end(ended)
}

// Close ends the goroutines that wait, and the others when they are done.
func (p *Pool[T]) Close() {
	p.mu.Lock()
	p.closed = true
	ended := p.idle
	p.idle, p.unused = nil, 0
	if p.trimmer != nil {
		p.trimmer.Stop()
	}
	p.mu.Unlock()
	end(ended)
}

// Idle returns how many goroutines wait.
func (p *Pool[T]) Idle() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}

func end[T any](waiting []chan job[T]) {
	for _, jobs := range waiting {
		jobs <- job[T]{end: true}
	}
}
