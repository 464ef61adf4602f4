package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/chaos/gen/chaosapi"
	"github.com/fulmar-rpc/fulmar/test/chaos/ledger"
)

// suspendedEach is how many callers there are for each protocol.
const suspendedEach = 8

// suspendedProtocols are those that the callers speak.
func suspendedProtocols() []fulmar.Protocol {
	return []fulmar.Protocol{fulmar.TTHeader, fulmar.Framed, fulmar.Bare, fulmar.GRPC}
}

// suspended is S24: the process of some clients is stopped, as that of a virtual machine
// that is moved or a laptop that sleeps. What time it is then it learns all at once: calls
// that were in progress have expired, timers fire together, and servers may have closed
// idle connections. The clock of the machine is not set: it is everybody's, and nothing
// that decides in a process looks at it (package time has a monotonic one).
func suspended(ctx context.Context, size size) (seen figures, err error) {
	var closing closing
	defer closing.close()
	fleet, err := startFleet(&closing, 3, fulmar.ServerConfig{})
	if err != nil {
		return seen, err
	}
	folder, remove, err := scratch()
	if err != nil {
		return seen, err
	}
	closing.add(remove)
	calling := callingRole{Target: fleet.target(), Report: folder("report")}
	clients, err := start(role{Calling: &calling}, nil)
	if err != nil {
		return seen, err
	}
	closing.add(clients.kill)
	pause(ctx, time.Second)
	quiet := busyMachine()
	stopped := time.Now()
	clients.signal(syscall.SIGSTOP)
	pause(ctx, size.during(2*time.Second, time.Minute))
	seen.note("stopped for %.3g s", time.Since(stopped).Seconds())
	clients.signal(syscall.SIGCONT)
	back, err := fleet.trafficBack(ctx, 0, 1.0/6)
	if err != nil {
		return seen, err
	}
	pause(ctx, 2*time.Second)
	taken := quiet()
	if _, err := clients.stop(10 * time.Second); err != nil {
		return seen, err
	}
	text, err := os.ReadFile(calling.Report)
	if err != nil {
		return seen, err
	}
	var report callingReport
	if err := json.Unmarshal(text, &report); err != nil {
		return seen, err
	}
	executions, err := fleet.executions()
	if err != nil {
		return seen, err
	}
	// Each caller has one call in progress.
	inProgress := float64(suspendedEach * len(suspendedProtocols()))
	seen.least("calls", float64(report.Calls), 1000, "")
	seen.most("failed", float64(report.Failed), inProgress, "")
	seen.mostUnlessBusy("late", float64(report.Late), inProgress, "", taken)
	seen.most("executed without a call", float64(max(executions.Len()-report.Calls, 0)), 0, "")
	seen.mostUnlessBusy("calls again after", back.Seconds(), 2, " s", taken)
	if report.Example != "" {
		seen.note("%s", report.Example)
	}
	return seen, nil
}

// callingRole is clients that run as a process of their own.
type callingRole struct {
	Target string
	// Report is the file for what became of their calls.
	Report string
}

// callingReport says what became of calls. Late ones ended 250 ms or more after their
// deadline.
type callingReport struct {
	Calls, Failed, Late int
	// Example is an error of one that failed.
	Example string
}

// call makes calls until the process is told to stop, or loses who started it.
func (r callingRole) call() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	var closing closing
	defer closing.close()
	var ids callers
	var all []*caller
	for _, protocol := range suspendedProtocols() {
		api, err := client(&closing, fulmar.ClientConfig{Target: r.Target, Protocol: protocol})
		if err != nil {
			return err
		}
		for range suspendedEach {
			all = append(all, &caller{
				api: api, book: ids.book(), limit: time.Second,
				request: chaosapi.Request{Payload: make([]byte, 100), Nap: 500},
			})
		}
	}
	crowd := gather(ctx, all, 11*time.Millisecond)
	fmt.Println("calling")
	<-ctx.Done()
	text, err := json.Marshal(reportOf(crowd.end()))
	if err != nil {
		return err
	}
	return os.WriteFile(r.Report, text, 0o600)
}

func reportOf(books []*ledger.Book) (report callingReport) {
	for _, book := range books {
		for _, call := range book.Calls() {
			report.Calls++
			if call.Outcome != ledger.Success {
				report.Failed++
				if call.Err != nil {
					report.Example = call.Err.Error()
				}
			}
			if call.Took-call.Limit > 250*time.Millisecond {
				report.Late++
			}
		}
	}
	return report
}
