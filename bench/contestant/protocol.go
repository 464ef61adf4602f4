// Package contestant is the contract between the benchmark's runner and the
// programs that it measures.
//
// A program understands
//
//	info                                       what it can do
//	serve  -contestant N -case N [-network N]  a server, until standard input ends
//	load   -contestant N -case N -address A    calls, for as long as it was told
//	repeat -contestant N -case N               the same operation again and again, for as long
//
// and answers with lines of JSON on standard output, one Event each. With the flag
// -control a client also asks the server's process about itself; see Question. It
// may be written in any language; Main does all of it for programs in Go.
package contestant

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// Event is one line that a program prints. Exactly one field is set.
type Event struct {
	// Info answers the command info.
	Info []Info `json:"info,omitempty"`
	// Ready is printed by a server that accepts connections.
	Ready *Ready `json:"ready,omitempty"`
	// Report ends a run.
	Report *Report `json:"report,omitempty"`
}

// Info is what a program says about one of its contestants.
type Info struct {
	Name string `json:"name"`
	// Unavailable says why it cannot take part, or is empty.
	Unavailable string `json:"unavailable,omitempty"`
	// Versions by module path.
	Versions map[string]string `json:"versions,omitempty"`
}

// Ready tells where a server listens.
type Ready struct {
	Address string `json:"address"`
}

// Report is what a run of load came to. Counts and processor times are those of
// the window.
type Report struct {
	Calls   uint64  `json:"calls"`
	Seconds float64 `json:"seconds"`
	// Rate is the offered load in calls a second, 0 in the closed loop.
	Rate float64 `json:"rate"`
	// Due is how many calls of an open loop fell due, and Missed how many of
	// them were not made.
	Due    uint64 `json:"due,omitempty"`
	Missed uint64 `json:"missed,omitempty"`
	// Failed counts errors and wrong replies of the whole run, warm-up included;
	// Failure is the first.
	Failed  uint64 `json:"failed,omitempty"`
	Failure string `json:"failure,omitempty"`
	// Refused counts the calls that the server or its client refused or gave up, in
	// cases that offer more than can be done.
	Refused        uint64   `json:"refused,omitempty"`
	RefusedLatency *Latency `json:"refused_latency_ns,omitempty"`
	// ServerCPU and ClientCPU are what the kernel accounted to the processes, in
	// nanoseconds.
	ServerCPU int64 `json:"server_cpu_ns"`
	ClientCPU int64 `json:"client_cpu_ns"`
	// ServerPeak and ClientPeak are the most memory that was resident at once
	// since the processes were started, in bytes.
	ServerPeak int64   `json:"server_peak_bytes"`
	ClientPeak int64   `json:"client_peak_bytes"`
	Latency    Latency `json:"latency_ns"`
	// CallBytes is the payload of a call or of an operation, where bytes a second
	// say more than calls, or something beside the time.
	CallBytes int64 `json:"call_bytes,omitempty"`
	// CallMessages is how many messages a call carries, where those are what is counted.
	CallMessages int64 `json:"call_messages,omitempty"`
	// ServerAllocations and ClientAllocations are how many objects a call makes each
	// process allocate; nil where nobody could ask.
	ServerAllocations *float64 `json:"server_allocations,omitempty"`
	ClientAllocations *float64 `json:"client_allocations,omitempty"`
	// ConnectionBytes is what an idle connection costs the server, and HeapBytes
	// its heap at the end, both after a garbage collection; nil where the case
	// does not ask.
	ConnectionBytes *float64 `json:"connection_bytes,omitempty"`
	HeapBytes       *float64 `json:"heap_bytes,omitempty"`
	// Operation stands in place of calls where the command was repeat.
	Operation *Operation `json:"operation,omitempty"`
}

// Operation sums up how often something was repeated, and what it took each time.
type Operation struct {
	// Count is how often it was done within the window.
	Count uint64 `json:"count"`
	// Nanoseconds, Allocations and Bytes (that were allocated) are means.
	Nanoseconds float64 `json:"nanoseconds"`
	Allocations float64 `json:"allocations"`
	Bytes       float64 `json:"bytes"`
	// Without is what the same took without what was measured, in nanoseconds, where the
	// other figures are the difference to that; else 0.
	Without float64 `json:"without_nanoseconds,omitempty"`
}

// Latency sums up latencies, in nanoseconds.
type Latency struct {
	Count uint64  `json:"count"`
	Mean  float64 `json:"mean"`
	P50   int64   `json:"p50"`
	P90   int64   `json:"p90"`
	P99   int64   `json:"p99"`
	P999  int64   `json:"p999"`
	Max   int64   `json:"max"`
}

// LineMax bounds a line of a program in bytes.
const LineMax = 64 << 10

// textMax bounds what a program may put into a text field, in bytes.
const textMax = 4 << 10

// ErrNotEvent is returned for lines that do not try to be an event: libraries
// print to standard output as well.
var ErrNotEvent = errors.New("not an event")

// ParseEvent reads one line. A line that begins with "{" must be an event with
// values that make sense.
func ParseEvent(line []byte) (Event, error) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] != '{' {
		return Event{}, ErrNotEvent
	}
	if len(line) > LineMax {
		return Event{}, fmt.Errorf("event of %d bytes (limit %d)", len(line), LineMax)
	}
	if !utf8.Valid(line) {
		return Event{}, errors.New("event is not UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	var event Event
	if err := decoder.Decode(&event); err != nil {
		return Event{}, fmt.Errorf("event: %w", err)
	}
	if decoder.InputOffset() != int64(len(line)) {
		return Event{}, fmt.Errorf("event: %d bytes behind it", int64(len(line))-decoder.InputOffset())
	}
	if err := event.validate(); err != nil {
		return Event{}, fmt.Errorf("event: %w", err)
	}
	return event, nil
}

func (e Event) validate() error {
	kinds := 0
	for _, set := range []bool{len(e.Info) > 0, e.Ready != nil, e.Report != nil} {
		if set {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		return fmt.Errorf("has %d of info, ready and report, want one", kinds)
	case e.Report != nil:
		return e.Report.Validate()
	case e.Ready != nil:
		return CheckText("address", e.Ready.Address, 1)
	}
	for _, info := range e.Info {
		if err := errors.Join(CheckText("name", info.Name, 1), CheckText("unavailable", info.Unavailable, 0)); err != nil {
			return err
		}
		for path, version := range info.Versions {
			if err := errors.Join(CheckText("module", path, 1), CheckText("version", version, 0)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Validate returns what cannot be true in a report.
func (r Report) Validate() error {
	var problems []error
	refuse := func(wrong bool, format string, arguments ...any) {
		if wrong {
			problems = append(problems, fmt.Errorf(format, arguments...))
		}
	}
	refuse(!finite(r.Seconds, 0, secondsMax), "seconds %v (limit %v)", r.Seconds, float64(secondsMax))
	refuse(!finite(r.Rate, 0, rateMax), "rate %v (limit %v)", r.Rate, float64(rateMax))
	refuse(r.Calls > callsMax || r.Due > callsMax || r.Failed > callsMax || r.Refused > callsMax, "%d calls, %d due, %d failed (limit %d)", r.Calls, r.Due, r.Failed, uint64(callsMax))
	refuse(r.Calls > 0 && r.Seconds <= 0, "%d calls in no time", r.Calls)
	refuse(r.Missed > r.Due, "%d missed of %d due", r.Missed, r.Due)
	refuse(r.Rate == 0 && r.Due > 0, "%d calls due in a closed loop", r.Due)
	refuse(r.ServerCPU < 0 || r.ClientCPU < 0, "processor time of %d and %d ns is negative", r.ServerCPU, r.ClientCPU)
	refuse(r.ServerPeak < 0 || r.ClientPeak < 0, "memory of %d and %d bytes is negative", r.ServerPeak, r.ClientPeak)
	refuse(r.CallMessages < 0 || r.CallMessages > bytesMax, "calls of %d messages (limit %d)", r.CallMessages, int64(bytesMax))
	refuse(r.CallBytes < 0 || r.CallBytes > bytesMax, "calls of %d bytes (limit %d)", r.CallBytes, int64(bytesMax))
	for _, bytes := range []*float64{r.ConnectionBytes, r.HeapBytes} {
		refuse(bytes != nil && !finite(*bytes, 0, bytesMax), "memory of the server (limit %d bytes)", int64(bytesMax))
	}
	for _, allocations := range []*float64{r.ServerAllocations, r.ClientAllocations} {
		refuse(allocations != nil && !finite(*allocations, 0, bytesMax), "allocations of a call (limit %v)", float64(bytesMax))
	}
	if o := r.Operation; o != nil {
		refuse(o.Count == 0 || o.Count > callsMax || r.Calls > 0, "%d operations (limits 1 and %d) beside %d calls", o.Count, uint64(callsMax), r.Calls)
		refuse(!(o.Nanoseconds > 0 && o.Nanoseconds <= secondsMax*1e9), "operations of %v ns", o.Nanoseconds)
		refuse(!finite(o.Without, 0, secondsMax*1e9), "operations that take %v ns without what was measured", o.Without)
		refuse(!finite(o.Allocations, 0, bytesMax) || !finite(o.Bytes, 0, bytesMax), "operations with %v allocations and %v bytes (limit %v)", o.Allocations, o.Bytes, float64(bytesMax))
	}
	problems = append(problems, r.Latency.validate())
	if r.RefusedLatency != nil {
		problems = append(problems, r.RefusedLatency.validate())
	}
	problems = append(problems, CheckText("failure", r.Failure, 0))
	return errors.Join(problems...)
}

func (l Latency) validate() error {
	switch {
	case l.Count > callsMax:
		return fmt.Errorf("%d latencies (limit %d)", l.Count, uint64(callsMax))
	case !finite(l.Mean, 0, math.MaxInt64):
		return fmt.Errorf("mean latency %v", l.Mean)
	case l.P50 < 0 || l.P90 < l.P50 || l.P99 < l.P90 || l.P999 < l.P99 || l.Max < l.P999:
		return fmt.Errorf("percentiles %d, %d, %d, %d, %d do not ascend from 0", l.P50, l.P90, l.P99, l.P999, l.Max)
	}
	return nil
}

// More than these cannot be true, and would spoil arithmetic: a day, a call
// every nanosecond, a day of those, and a petabyte.
const (
	secondsMax = 86400
	rateMax    = 1e9
	callsMax   = 86400 * 1_000_000_000
	bytesMax   = 1e15
)

func finite(value, low, high float64) bool { return value >= low && value <= high }

// CheckText refuses texts that would break a table or a terminal, and those
// shorter than least bytes.
func CheckText(what, text string, least int) error {
	if len(text) < least || len(text) > textMax {
		return fmt.Errorf("%s of %d bytes (limits %d and %d)", what, len(text), least, textMax)
	}
	for _, r := range text {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return fmt.Errorf("%s holds the control character %U", what, r)
		}
	}
	return nil
}
