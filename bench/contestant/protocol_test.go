package contestant

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func goodReport() Report {
	perConnection, heap, server, client := 40.5, 4e6, 7.25, 0.0
	return Report{
		Calls: 1000, Seconds: 2, Rate: 500, Due: 1000, Missed: 3, Failed: 1, Failure: "refused",
		ServerCPU: 5e8, ClientCPU: 6e8, ServerPeak: 1 << 20, ClientPeak: 2 << 20,
		Latency: Latency{Count: 1000, Mean: 1.5e5, P50: 1e5, P90: 2e5, P99: 3e5, P999: 4e5, Max: 5e5},
		Refused: 7, RefusedLatency: &Latency{Count: 7, Mean: 2, P50: 1, P90: 2, P99: 3, P999: 4, Max: 5},
		CallBytes: 1 << 20, CallMessages: 100, ConnectionBytes: &perConnection, HeapBytes: &heap,
		ServerAllocations: &server, ClientAllocations: &client,
	}
}

func TestParseEvent_ReadsWhatIsPrinted(t *testing.T) {
	report := goodReport()
	for _, event := range []Event{
		{Info: []Info{{Name: "a", Versions: map[string]string{"m": "v1"}}, {Name: "b", Unavailable: "not built"}}},
		{Ready: &Ready{Address: "127.0.0.1:1"}},
		{Report: &report},
		{Report: &Report{}},
		{Report: &Report{Seconds: 1, Operation: &Operation{Count: 5, Nanoseconds: 270.5, Allocations: 0.5, Bytes: 16}}},
	} {
		var line strings.Builder
		if err := printEvent(&line, event); err != nil {
			t.Fatal(err)
		}
		again, err := ParseEvent([]byte(line.String()))
		if err != nil || !reflect.DeepEqual(again, event) {
			t.Errorf("%s: read %+v, %v", line.String(), again, err)
		}
	}
}

func TestParseEvent_LeavesOtherOutputAlone(t *testing.T) {
	for _, line := range []string{"", "  ", "listening on 1", "[info] {}", "\x00"} {
		if _, err := ParseEvent([]byte(line)); !errors.Is(err, ErrNotEvent) {
			t.Errorf("%q: %v, want ErrNotEvent", line, err)
		}
	}
}

func TestParseEvent_RefusesWhatCannotBeTrue(t *testing.T) {
	report := func(change func(*Report)) string {
		r := goodReport()
		change(&r)
		line, err := json.Marshal(Event{Report: &r})
		if err != nil {
			t.Fatal(err)
		}
		return string(line)
	}
	for name, line := range map[string]string{
		"no kind":            `{}`,
		"two kinds":          `{"ready":{"address":"a"},"info":[{"name":"a"}]}`,
		"nobody":             `{"info":[]}`,
		"unknown field":      `{"ready":{"address":"a","port":1}}`,
		"no JSON":            `{"ready":`,
		"two values":         `{"ready":{"address":"a"}} {}`,
		"no address":         `{"ready":{"address":""}}`,
		"control character":  `{"ready":{"address":"a\u001b[2J"}}`,
		"not UTF-8":          "{\"ready\":{\"address\":\"a\xff\"}}",
		"long text":          `{"ready":{"address":"` + strings.Repeat("a", textMax+1) + `"}}`,
		"long line":          `{"ready":{"address":"a"}` + strings.Repeat(" ", LineMax) + `}`,
		"name of nothing":    `{"info":[{"name":""}]}`,
		"negative calls":     `{"report":{"calls":-1}}`,
		"calls in no time":   report(func(r *Report) { r.Seconds = 0 }),
		"days":               report(func(r *Report) { r.Seconds = 1e6 }),
		"more than due":      report(func(r *Report) { r.Missed = r.Due + 1 }),
		"due without a rate": report(func(r *Report) { r.Rate = 0 }),
		"endless rate":       report(func(r *Report) { r.Rate = 1e300 }),
		"too many calls":     report(func(r *Report) { r.Calls = 1 << 63 }),
		"negative time":      report(func(r *Report) { r.ServerCPU = -1 }),
		"refused backwards":  report(func(r *Report) { r.RefusedLatency.P99 = 1 }),
		"less than nothing":  report(func(r *Report) { *r.ServerAllocations = -1 }),
		"negative memory":    report(func(r *Report) { r.ClientPeak = -1 }),
		"falling latencies":  report(func(r *Report) { r.Latency.P99 = r.Latency.P90 - 1 }),
		"negative latencies": report(func(r *Report) { r.Latency.P50 = -1 }),
		"negative mean":      report(func(r *Report) { r.Latency.Mean = -1 }),
		"calls too long":     report(func(r *Report) { r.CallBytes = 1 << 60 }),
		"negative bytes":     report(func(r *Report) { r.CallBytes = -1 }),
		"negative messages":  report(func(r *Report) { r.CallMessages = -1 }),
		"too many messages":  report(func(r *Report) { r.CallMessages = 1 << 60 }),
		"negative cost":      report(func(r *Report) { *r.ConnectionBytes = -1 }),
		"endless heap":       report(func(r *Report) { *r.HeapBytes = 1e300 }),
		"operations of none": report(func(r *Report) { r.Calls, r.Operation = 0, &Operation{Nanoseconds: 1} }),
		"operations in none": report(func(r *Report) { r.Calls, r.Operation = 0, &Operation{Count: 1} }),
		"and calls":          report(func(r *Report) { r.Operation = &Operation{Count: 1, Nanoseconds: 1} }),
		"endless operations": report(func(r *Report) { r.Calls, r.Operation = 0, &Operation{Count: 1, Nanoseconds: 1e300} }),
		"negative objects":   report(func(r *Report) { r.Calls, r.Operation = 0, &Operation{Count: 1, Nanoseconds: 1, Allocations: -1} }),
		"endless objects":    report(func(r *Report) { r.Calls, r.Operation = 0, &Operation{Count: 1, Nanoseconds: 1, Bytes: 1e300} }),
		"failure with lines": report(func(r *Report) { r.Failure = "a\nRATIO b" }),
	} {
		if event, err := ParseEvent([]byte(line)); err == nil || errors.Is(err, ErrNotEvent) {
			t.Errorf("%s: read as %+v, %v", name, event, err)
		}
	}
}

func FuzzParseEvent(f *testing.F) {
	f.Fuzz(func(t *testing.T, line []byte) {
		event, err := ParseEvent(line)
		if err != nil {
			return
		}
		// What was accepted is accepted again, as the same event.
		printed, err := json.Marshal(event)
		if err != nil {
			t.Fatalf("an accepted event cannot be printed: %v", err)
		}
		again, err := ParseEvent(printed)
		if err != nil && len(printed) <= LineMax {
			t.Fatalf("%s: %v", printed, err)
		}
		if err == nil && !reflect.DeepEqual(again, event) {
			t.Fatalf("%+v became %+v", event, again)
		}
	})
}
