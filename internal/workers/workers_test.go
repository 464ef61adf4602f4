package workers_test

import (
	"bytes"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/workers"
)

// kept and trimInterval are those of the package, which the tests are about.
const (
	kept         = 1024
	trimInterval = 500 * time.Millisecond
)

// goroutine names the goroutine that calls it.
func goroutine() string {
	stack := make([]byte, 64)
	name, _, _ := bytes.Cut(stack[:runtime.Stack(stack, false)], []byte(" ["))
	return string(name)
}

// pool is a Pool whose jobs say on which goroutine they run, and wait until they
// may go on.
type pool struct {
	*workers.Pool[chan struct{}]
	mu   sync.Mutex
	seen map[string]int
}

func newPool() *pool {
	p := &pool{seen: map[string]int{}}
	p.Pool = workers.New(func(until chan struct{}) {
		p.mu.Lock()
		p.seen[goroutine()]++
		p.mu.Unlock()
		<-until
	})
	return p
}

// do runs jobs at the same time.
func (p *pool) do(jobs int) {
	until := make(chan struct{})
	for range jobs {
		p.Do(until)
	}
	synctest.Wait()
	close(until)
	synctest.Wait()
}

// count returns how many goroutines ran how many jobs.
func (p *pool) count() (goroutines, jobs int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.seen {
		jobs += n
	}
	return len(p.seen), jobs
}

// inBubble runs a test whose time is virtual. Its end says that no goroutine of
// the pool is left.
func inBubble(t *testing.T, test func(t *testing.T, p *pool)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPool()
		test(t, p)
		p.Close()
	})
}

func (p *pool) expect(t *testing.T, goroutines, jobs, idle int) {
	t.Helper()
	if g, j := p.count(); g != goroutines || j != jobs || p.Idle() != idle {
		t.Errorf("%d goroutines ran %d jobs, %d wait; want %d, %d and %d", g, j, p.Idle(), goroutines, jobs, idle)
	}
}

func TestPool_GoroutinesAreUsedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool) {
		for range 10 {
			p.do(1)
		}
		p.expect(t, 1, 10, 1)
		p.do(5)
		p.expect(t, 5, 15, 5)
		p.do(5)
		p.expect(t, 5, 20, 5)
	})
}

func TestPool_JobsDoNotWaitForEachOther(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool) {
		until := make(chan struct{})
		p.Do(until)
		p.do(3)
		p.expect(t, 4, 4, 3)
		close(until)
		synctest.Wait()
		p.expect(t, 4, 4, 4)
	})
}

func TestPool_UnneededGoroutinesEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool) {
		p.do(10)
		for range 10 { // three are needed again and again
			time.Sleep(trimInterval / 2)
			p.do(3)
		}
		p.expect(t, 10, 40, 3)
		time.Sleep(2*trimInterval + 1)
		synctest.Wait()
		p.expect(t, 10, 40, 0)
		p.do(1)
		p.expect(t, 11, 41, 1)
	})
}

func TestPool_NeededGoroutinesStay(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool) {
		for range 100 {
			p.do(3)
			time.Sleep(trimInterval - 1)
			synctest.Wait()
		}
		p.expect(t, 3, 300, 3)
	})
}

func TestPool_KeepsABoundedNumber(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool) {
		p.do(kept + 100)
		p.expect(t, kept+100, kept+100, kept)
	})
}

func TestPool_CloseEndsThoseThatWaitAndLetsOthersFinish(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool) {
		p.do(3)
		until := make(chan struct{})
		p.Do(until)
		synctest.Wait()
		p.Close()
		p.expect(t, 3, 4, 0)
		close(until)
		synctest.Wait()
		p.expect(t, 3, 4, 0)
		p.Close()
		p.do(2) // late jobs run too
		p.expect(t, 5, 6, 0)
		time.Sleep(10 * trimInterval) // a timer that goes on would make somebody wait
		p.expect(t, 5, 6, 0)
	})
}

func TestPool_AJobMayEndItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran atomic.Int64
		p := workers.New(func(end bool) {
			ran.Add(1)
			if end {
				runtime.Goexit()
			}
		})
		for i := range 10 {
			p.Do(i%2 == 0)
			synctest.Wait()
		}
		if ran.Load() != 10 || p.Idle() != 1 {
			t.Errorf("%d jobs ran, %d goroutines wait, want 10 and the one of the last job", ran.Load(), p.Idle())
		}
		p.Close()
	})
}

// TestPool_JobsRunOnceWhateverTheOrder lets Do, the end of jobs, trims and Close
// meet.
func TestPool_JobsRunOnceWhateverTheOrder(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			const doers, jobs = 8, 100
			ran := make([]atomic.Int32, doers*jobs)
			p := workers.New(func(i int) { ran[i].Add(1) })
			var all sync.WaitGroup
			for doer := range doers {
				all.Go(func() {
					for i := range jobs {
						p.Do(doer*jobs + i)
						if i%10 == 0 {
							time.Sleep(trimInterval / 2)
						}
					}
				})
			}
			all.Go(func() {
				time.Sleep(2 * trimInterval)
				p.Close()
			})
			all.Wait()
			synctest.Wait()
			for i := range ran {
				if n := ran[i].Load(); n != 1 {
					t.Fatalf("job %d ran %d times", i, n)
				}
			}
			if p.Idle() != 0 {
				t.Errorf("%d goroutines wait after Close", p.Idle())
			}
		})
	}
}
