package contestant

import (
	"errors"
	"os"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/loadgen"
)

const (
	// idleWarmUp is how many calls each active caller makes before the server's
	// memory is measured for the first time.
	idleWarmUp = 100
	// idleConnecting is how many idle connections are made at once.
	idleConnecting = 64
	// idlePause is the silence before everybody calls again.
	idlePause = 100 * time.Millisecond
)

// idle measures what connections cost that are silent, and what it is like when all
// of them call at the same time.
func idle(client Load, o loadOptions, server *control) (Report, error) {
	if server == nil {
		return Report{}, errNoControl
	}
	var report Report
	fail := func(failed uint64, err error) {
		if report.Failed += failed; report.Failure == "" && err != nil {
			report.Failure = printable(err.Error())
		}
	}
	for _, call := range client.Calls {
		for range idleWarmUp {
			if err := call(); err != nil {
				fail(1, err)
			}
		}
	}
	before, err := server.ask(Question{Collect: true})
	if err != nil {
		return report, err
	}
	calls, err := connectIdle(client)
	if err != nil {
		return report, err
	}
	time.Sleep(o.warmUp) // what is behind a reply ends, too
	after, err := server.ask(Question{Collect: true})
	if err != nil {
		return report, err
	}
	each, heap := max(float64(after.MemoryBytes)-float64(before.MemoryBytes), 0)/float64(len(calls)), float64(after.HeapBytes)
	report.ConnectionBytes, report.HeapBytes = &each, &heap

	latencies := newRecorder()
	var serverClock, own clock
	for begun, more := time.Now(), true; more; more = report.Failed == 0 && time.Since(begun) < o.duration {
		time.Sleep(idlePause)
		serverClock.read(o.server, true)
		own.read(os.Getpid(), true)
		took, failed, err := wake(calls, latencies)
		serverClock.read(o.server, false)
		own.read(os.Getpid(), false)
		report.Calls += uint64(len(calls)) - failed
		report.Seconds += took.Seconds()
		report.ServerCPU += serverClock.used.Nanoseconds()
		report.ClientCPU += own.used.Nanoseconds()
		fail(failed, err)
	}
	report.Latency, err = latencies.summary()
	return report, errors.Join(err, serverClock.err, own.err)
}

// connectIdle makes the idle connections, with one call on each.
func connectIdle(client Load) ([]loadgen.Call, error) {
	calls := make([]loadgen.Call, client.Idle)
	problems := make([]error, idleConnecting)
	var group sync.WaitGroup
	for worker := range problems {
		group.Go(func() {
			for i := worker; i < len(calls) && problems[worker] == nil; i += idleConnecting {
				if calls[i], problems[worker] = client.Connect(i); problems[worker] == nil {
					problems[worker] = calls[i]()
				}
			}
		})
	}
	group.Wait()
	return calls, errors.Join(problems...)
}

// wake makes one call on every connection at the same time, and returns how long it
// took until the last one ended. Latencies count from when they were let go.
func wake(calls []loadgen.Call, latencies *recorder) (took time.Duration, failed uint64, first error) {
	var ready, ended sync.WaitGroup
	var begun time.Time
	released := make(chan struct{})
	problems := make([]error, len(calls))
	ready.Add(len(calls))
	for i, call := range calls {
		ended.Go(func() {
			ready.Done()
			<-released
			problems[i] = call()
			latencies.add(i, time.Since(begun))
		})
	}
	ready.Wait()
	begun = time.Now()
	close(released)
	ended.Wait()
	took = time.Since(begun)
	for _, err := range problems {
		if err != nil {
			failed++
			first = err
		}
	}
	return took, failed, first
}
