package rpc

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/fulmar-rpc/fulmar/bench/harness"
	"github.com/fulmar-rpc/fulmar/internal/loadgen"
)

const (
	// burnSteps are about 1 ms of multiplications that wait for each other: 1.24 ns
	// each where this was written. A number of steps and not a time, so that all
	// contestants do the same work.
	burnSteps = 800_000
	// BurnsPerSecond is what one processor can do of that at most, with something
	// left for the framework: what a careful operator would let in.
	BurnsPerSecond = 900
	// overloadPeak is how many callers find out what a server can do: enough to keep
	// it busy, and so few that none waits until Timeout.
	overloadPeak = 8
)

// OverloadCases returns the cases of suite governance: as many callers as calls can be in
// flight until they are given up, up to some that would only wait.
func OverloadCases() []Case {
	const timeout = 250 * time.Millisecond
	return []Case{
		{Name: "overload-2x", Callers: 800, Shared: true, MessageBytes: 128, Overload: 2, Timeout: timeout},
		{Name: "overload-10x", Callers: 3000, Shared: true, MessageBytes: 128, Overload: 10, Timeout: timeout},
	}
}

// OverloadCalls describes them to the runner. A floor names how much of its peak ours does.
func OverloadCalls(ours, peer string) []harness.Case {
	var cases []harness.Case
	for _, c := range OverloadCases() {
		played := c.harness()
		played.Pairs = harness.Against(ours, peer)
		played.Quick = played.Pairs
		cases = append(cases, played)
	}
	return cases
}

// Work is what handlers of the method echo do first: nothing, or in cases with
// overload burn processor time.
func (c Case) Work() {
	if c.Overload > 0 {
		runtime.KeepAlive(burn())
	}
}

// burn computes. Its result is of no interest, but the compiler must not know.
func burn() uint64 {
	x := uint64(1)
	for range burnSteps {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

// boundedCall makes calls that may be refused, or end with the case's timeout. A
// wrong reply is a failure all the same.
func boundedCall(caller Caller, c Case, messages []Message) loadgen.Call {
	n := 0
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), c.Timeout)
		defer cancel()
		err := checkedEcho(ctx, caller, &messages[n%len(messages)])
		n++
		if err == nil || errors.Is(err, errWrongReply) {
			return err
		}
		return fmt.Errorf("%w: %w", loadgen.ErrRefused, err)
	}
}
