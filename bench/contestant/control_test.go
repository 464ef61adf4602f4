//go:build linux

package contestant

import (
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// pair starts to answer questions, and returns the client's end and what ends it.
func pair(t *testing.T, executed func() uint64) (client *control, end func() error) {
	t.Helper()
	near, far := net.Pipe()
	answered := make(chan error, 1)
	go func() { answered <- answerQuestions(far, executed) }()
	return newControl(near), func() error { return errors.Join(near.Close(), <-answered, far.Close()) }
}

func TestControl_TellsAboutTheServersProcess(t *testing.T) {
	client, end := pair(t, func() uint64 { return 7 })
	before, err := client.ask(Question{Collect: true})
	if err != nil {
		t.Fatal(err)
	}
	// 32 MiB, because the heap may lose something meanwhile: what pools kept.
	const count, size = 1000, 32 << 10
	var kept [][]byte
	for range count {
		kept = append(kept, make([]byte, size))
	}
	after, err := client.ask(Question{Collect: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(slices.Concat(kept...)) != count*size {
		t.Error("what was allocated is gone")
	}
	if before.Executed != 7 || after.Nanoseconds < before.Nanoseconds || before.MemoryBytes < before.HeapBytes {
		t.Errorf("%+v, then %+v", before, after)
	}
	if after.Allocations-before.Allocations < count || after.HeapBytes < before.HeapBytes+count*size*9/10 {
		t.Errorf("%d allocations and %d bytes more, want those of %d slices of %d bytes",
			after.Allocations-before.Allocations, int64(after.HeapBytes-before.HeapBytes), count, size)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}

func TestControl_SaysWhatIsMissing(t *testing.T) {
	var nobody *control
	if _, err := nobody.ask(Question{}); !errors.Is(err, errNoControl) {
		t.Errorf("%v, want that nobody is there", err)
	}
	near, far := net.Pipe()
	answered := make(chan error, 1)
	go func() { answered <- answerQuestions(far, nil) }()
	if _, err := near.Write([]byte("what?\n")); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err == nil || !strings.Contains(err.Error(), "question") {
		t.Errorf("%v, want that it was no question", err)
	}
	if err := far.Close(); err != nil {
		t.Error(err)
	}
	if _, err := newControl(near).ask(Question{}); err == nil {
		t.Error("no error although nobody answers")
	}
	if err := near.Close(); err != nil {
		t.Error(err)
	}
}

// Both processes are this one here, so both allocate what the call does.
func TestLoad_ReportsAllocationsOfACall(t *testing.T) {
	const each = 20
	c := mirror("mirror", true)
	plain := c.Load
	c.Load = func(address string, played Played) (Load, error) {
		made, err := plain(address, played)
		if err != nil {
			return made, err
		}
		call := made.Calls[0]
		made.Calls[0] = func() error {
			kept := make([]*[64]byte, 0, each)
			for range each {
				kept = append(kept, new([64]byte))
			}
			if kept[each-1] == kept[0] {
				return errors.New("nothing was allocated")
			}
			return call()
		}
		return made, nil
	}
	report := loadAsking(t, c)
	for range 20 { // On a busy machine a window may pass without a call.
		if report.Calls == 0 {
			report = loadAsking(t, c)
		}
	}
	for side, allocations := range map[string]*float64{"server": report.ServerAllocations, "client": report.ClientAllocations} {
		if allocations == nil || *allocations < each {
			t.Errorf("%s: %v allocations for a call, want at least %d", side, allocations, each)
		}
	}
}

// loadAsking plays a contestant's client and server with a control.
func loadAsking(t *testing.T, c Contestant) *Report {
	t.Helper()
	address, stop := start(t, c)
	client, end := pair(t, nil)
	options := loadOptions{warmUp: 10 * time.Millisecond, duration: 100 * time.Millisecond, server: os.Getpid()}
	var out strings.Builder
	if err := load(t.Context(), c, address, Played{Case: "any"}, options, client, &out); err != nil {
		t.Fatal(err)
	}
	event, err := ParseEvent([]byte(out.String()))
	if err != nil || event.Report == nil {
		t.Fatalf("%s: %v, want a report", out.String(), err)
	}
	if err := errors.Join(end(), stop()); err != nil {
		t.Error(err)
	}
	return event.Report
}
