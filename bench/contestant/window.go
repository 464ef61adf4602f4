package contestant

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/bench/machine"
	"github.com/fulmar-rpc/fulmar/internal/loadgen"
)

// window is what is read at both ends of a window, beside the calls.
type window struct {
	process     int      // of the server
	control     *control // nil if there is nobody to be asked
	oneway      bool     // the server counts the calls
	alone       bool     // this process is the server too
	server, own clock
	// before and after are what the server said, when that many calls had ended,
	// and allocations what this process had allocated.
	before, after Answer
	calls         [2]float64
	allocations   [2]uint64
	callers       []counter
	answered      chan struct{} // closed when before is there
	err           error
}

// counter counts the calls of one caller, on cache lines of its own.
type counter struct {
	atomic.Uint64
	_ [120]byte
}

// counted returns calls that the window can count at any time.
func (w *window) counted(calls []loadgen.Call) []loadgen.Call {
	if w.control == nil {
		return calls
	}
	w.callers = make([]counter, len(calls))
	counted := make([]loadgen.Call, len(calls))
	for i, call := range calls {
		counter := &w.callers[i]
		counted[i] = func() error {
			err := call()
			counter.Add(1)
			return err
		}
	}
	return counted
}

func (w *window) count() (calls float64) {
	for i := range w.callers {
		calls += float64(w.callers[i].Load())
	}
	return calls
}

// read reads everything. The clocks come last when the window opens and first
// when it closes, so that the rest does not count. Nobody waits for the server's
// first answer: a goroutine of its process may take longer than the window to get
// its turn, behind a hundred others that always have something to read.
func (w *window) read(opens bool) {
	if opens {
		w.answered = make(chan struct{})
		go func() {
			defer close(w.answered)
			w.before, w.calls[0] = w.ask()
		}()
		w.allocations[0] = allocations()
	}
	w.server.read(w.process, opens)
	w.own.read(os.Getpid(), opens)
	if !opens {
		w.allocations[1] = allocations()
		<-w.answered
		w.after, w.calls[1] = w.ask()
	}
}

// ask asks the server, which answers some time between question and answer while
// it works: as many calls had ended as in the middle of the two.
func (w *window) ask() (answer Answer, calls float64) {
	if w.control == nil {
		return Answer{}, 0
	}
	asked := w.count()
	answer, err := w.control.ask(Question{})
	w.err = errors.Join(w.err, err)
	if w.oneway {
		return answer, float64(answer.Executed)
	}
	return answer, (asked + w.count()) / 2
}

// problems are what could not be read.
func (w *window) problems() error { return errors.Join(w.server.err, w.own.err, w.err) }

// fill writes what was read into a report that has its calls.
func (w *window) fill(report *Report) {
	if w.answered != nil {
		<-w.answered // A window that was cut short has not waited for it.
	}
	report.ServerCPU, report.ClientCPU = w.server.used.Nanoseconds(), w.own.used.Nanoseconds()
	if w.alone && w.control == nil {
		report.ClientCPU = 0 // It cannot be told apart.
		report.ServerAllocations = perCall(w.allocations[1]-w.allocations[0], float64(report.Calls))
		return
	}
	if w.control == nil || report.Calls == 0 {
		return
	}
	report.ServerAllocations = perCall(w.after.Allocations-w.before.Allocations, w.calls[1]-w.calls[0])
	report.ClientAllocations = perCall(w.allocations[1]-w.allocations[0], float64(report.Calls))
	if w.oneway {
		// Callers are ahead of the server by what fits into buffers. It need not have
		// answered at the ends of the window, but tells when it did.
		took := time.Duration(w.after.Nanoseconds - w.before.Nanoseconds).Seconds()
		report.Calls = uint64(float64(w.after.Executed-w.before.Executed) / took * report.Seconds)
	}
}

// perCall returns how many objects a call allocates.
func perCall(allocations uint64, calls float64) *float64 {
	if !(calls > 0) {
		return nil
	}
	each := float64(allocations) / calls
	if each < allocationsMin {
		each = 0
	}
	return &each
}

// allocations counts the objects that this process has allocated.
func allocations() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.Mallocs
}

// clock is the processor time of a process over the window.
type clock struct {
	opened, used time.Duration
	err          error
}

func (c *clock) read(process int, opens bool) {
	now, err := machine.ProcessTime(process)
	if err != nil {
		c.err = fmt.Errorf("processor time of process %d: %w", process, err)
	}
	if opens {
		c.opened = now
	} else {
		c.used = now - c.opened
	}
}
