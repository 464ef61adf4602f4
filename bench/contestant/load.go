package contestant

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/fulmar-rpc/fulmar/bench/machine"
	"github.com/fulmar-rpc/fulmar/internal/loadgen"
)

// rampShare is the part of the warm-up in which closed loops begin.
const rampShare = 5

// startDelay lets everything be in place when the first call falls due.
const startDelay = 10 * time.Millisecond

// load makes the calls of a case and reports what was measured.
func load(ctx context.Context, c Contestant, address string, played Played, o loadOptions, server *control, out io.Writer) error {
	if c.Load == nil {
		return fmt.Errorf("%s has no client", c.Name)
	}
	if o.server == 0 { // One process is client and server.
		o.server, o.alone = os.Getpid(), true
	}
	client, err := c.Load(address, played)
	if err != nil {
		return err
	}
	// Closing is not measured: by then the report is out.
	defer func() { _ = client.Close() }()
	var report Report
	if client.Idle > 0 {
		report, err = idle(client, o, server)
	} else {
		report, err = calls(ctx, client, o, server)
	}
	if err != nil {
		return err
	}
	var serverErr, ownErr error
	report.ServerPeak, serverErr = machine.PeakMemory(o.server)
	report.ClientPeak, ownErr = machine.PeakMemory(os.Getpid())
	return errors.Join(serverErr, ownErr, printEvent(out, Event{Report: &report}))
}

// calls makes calls in a closed loop or in an open one.
func calls(ctx context.Context, client Load, o loadOptions, server *control) (Report, error) {
	oneway := client.Sent != nil
	if oneway && server == nil {
		return Report{}, errNoControl
	}
	if o.rate == 0 && client.Peak > 0 {
		client.Calls = client.Calls[:client.Peak]
	}
	latencies, refused := newRecorder(), newRecorder()
	measured := window{process: o.server, alone: o.alone, control: server, oneway: oneway}
	config := loadgen.Config{
		Callers: measured.counted(client.Calls), Rate: o.rate, Start: time.Now().Add(startDelay), Ramp: o.warmUp / rampShare, WarmUp: o.warmUp, Duration: o.duration,
		Latency: latencies.add, Refused: refused.add, OnWindow: measured.read, Turns: o.turns,
	}
	if o.rate > 0 {
		stop, err := machine.KeepAwake(config.Start, time.Duration(float64(time.Second)/o.rate))
		if err != nil {
			return Report{}, err
		}
		defer stop()
	}
	result, err := loadgen.Run(ctx, config)
	if err != nil && !errors.Is(err, loadgen.ErrFailing) {
		return Report{}, err
	}
	report := Report{
		Calls: result.Calls, Seconds: result.Elapsed.Seconds(), Rate: o.rate,
		Due: result.Due, Missed: result.Missed, Failed: result.Failed, Refused: result.Refused,
		CallMessages: client.Messages,
	}
	measured.fill(&report)
	report.Seconds /= float64(max(o.turns.Of, 1)) // The others had the rest.
	if result.First == nil && oneway {
		result.First = arrived(server, client.Sent())
		if result.First != nil {
			report.Failed++
		}
	}
	if result.First != nil {
		report.Failure = printable(result.First.Error())
	}
	report.Latency, err = latencies.summary()
	all, refusedErr := refused.summary()
	if all.Count > 0 {
		report.RefusedLatency = &all
	}
	return report, errors.Join(err, refusedErr, measured.problems())
}

// Calls without replies wait in the buffers of both systems; the server is asked
// again until it has executed all, or none more for a second.
const (
	arrivalPoll     = 50 * time.Millisecond
	arrivalPatience = 20
)

// arrived returns what is wrong with the number of calls that the server's handlers
// have executed.
func arrived(server *control, sent uint64) error {
	var executed uint64
	for quiet := 0; quiet < arrivalPatience; {
		answer, err := server.ask(Question{})
		switch {
		case err != nil:
			return err
		case answer.Executed == sent:
			return nil
		case answer.Executed > executed:
			quiet = 0
		default:
			quiet++
		}
		executed = answer.Executed
		time.Sleep(arrivalPoll)
	}
	return fmt.Errorf("handlers have executed %d calls as they were sent, of %d", executed, sent)
}
