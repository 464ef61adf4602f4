package observe_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/observe"
)

// tell plays one call to an observer.
func tell(o observe.Observer, call *observe.Call, done observe.Event) {
	var value any
	if o.Begin != nil {
		_, value = o.Begin(context.Background(), call)
	}
	done.Phase = observe.PhaseDone
	o.Event(call, value, done)
}

func find(t *testing.T, m *observe.Metrics, side observe.Side, service, method string) observe.Series {
	t.Helper()
	for _, s := range m.Snapshot() {
		if s.Side == side && s.Service == service && s.Method == method {
			return s
		}
	}
	t.Fatalf("no series %v %s.%s", side, service, method)
	return observe.Series{}
}

func TestMetrics_CountCalls(t *testing.T) {
	m := observe.NewMetrics(observe.MetricsConfig{})
	o := m.Observer()
	place := &observe.Call{Side: observe.Server, Service: "Orders", Method: "place"}
	tell(o, place, observe.Event{At: time.Millisecond, BytesIn: 10, BytesOut: 20})
	tell(o, place, observe.Event{At: 3 * time.Millisecond, BytesIn: 1, BytesOut: 2})
	tell(o, place, observe.Event{At: time.Millisecond, Code: 5, Err: errors.New("no")})
	tell(o, place, observe.Event{At: time.Millisecond, Code: 2, Declared: true, Err: errors.New("sold out")})
	tell(o, place, observe.Event{At: time.Millisecond, Code: 99, Err: errors.New("a code of tomorrow")})
	tell(o, &observe.Call{Side: observe.Client, Service: "Orders", Method: "place"}, observe.Event{})
	o.Begin(context.Background(), place)

	s := find(t, m, observe.Server, "Orders", "place")
	if s.InFlight != 1 || s.Calls[0] != 2 || s.Calls[5] != 1 || s.Calls[2] != 0 || s.Calls[observe.Codes-1] != 1 || s.Declared != 1 {
		t.Errorf("in flight %d, calls %v, declared %d", s.InFlight, s.Calls, s.Declared)
	}
	if s.BytesIn != 11 || s.BytesOut != 22 || s.Latency.Count() != 5 || s.Latency.Max() != 3*time.Millisecond {
		t.Errorf("bytes %d in, %d out, %d latencies to %v", s.BytesIn, s.BytesOut, s.Latency.Count(), s.Latency.Max())
	}
	if list := m.Snapshot(); len(list) != 2 || list[0].Side != observe.Client {
		t.Errorf("%d series, the first of the %v", len(list), list[0].Side)
	}
}

// TestMetrics_NamesOfPeersTakeNoRoom: a peer that makes up names fills neither the
// memory nor the room for methods of definitions.
func TestMetrics_NamesOfPeersTakeNoRoom(t *testing.T) {
	m := observe.NewMetrics(observe.MetricsConfig{MaxSeries: 3, MaxUndefined: 2})
	o := m.Observer()
	for i := range 1000 {
		tell(o, &observe.Call{Side: observe.Server, Service: "Evil", Method: fmt.Sprint("m", i), Undefined: true}, observe.Event{})
	}
	for i := range 5 {
		tell(o, &observe.Call{Side: observe.Server, Service: "Orders", Method: fmt.Sprint("m", i)}, observe.Event{})
	}
	var names []string
	for _, s := range m.Snapshot() {
		names = append(names, fmt.Sprintf("%s.%s %d", s.Service, s.Method, s.Calls[0]))
	}
	want := "(other).(other) 2, (other).(undefined) 998, Evil.m0 1, Evil.m1 1, Orders.m0 1, Orders.m1 1, Orders.m2 1"
	if got := strings.Join(names, ", "); got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
	off := observe.NewMetrics(observe.MetricsConfig{MaxUndefined: -1})
	tell(off.Observer(), &observe.Call{Service: "Evil", Method: "m", Undefined: true}, observe.Event{})
	if s := find(t, off, observe.Client, observe.Other, "(undefined)"); s.Calls[0] != 1 {
		t.Errorf("calls %v", s.Calls)
	}
}

func TestMetrics_CountForEverybody(t *testing.T) {
	m := observe.NewMetrics(observe.MetricsConfig{})
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for i := range 500 {
				tell(m.Observer(), &observe.Call{Service: "S", Method: fmt.Sprint(i % 50)}, observe.Event{At: 1})
				if i%100 == 0 {
					m.Snapshot()
				}
			}
		})
	}
	wait.Wait()
	calls := uint64(0)
	for _, s := range m.Snapshot() {
		calls += s.Calls[0]
		if s.InFlight != 0 {
			t.Errorf("%s: %d in flight", s.Method, s.InFlight)
		}
	}
	if calls != 4000 {
		t.Errorf("%d calls, want 4000", calls)
	}
	o, call := m.Observer(), &observe.Call{Service: "S", Method: "1"}
	if n := testing.AllocsPerRun(100, func() { tell(o, call, observe.Event{}) }); n > 0 {
		t.Errorf("counting a call allocates %v times", n)
	}
}

func TestPhases_HaveNamesAndSets(t *testing.T) {
	names := map[string]bool{}
	for p := observe.PhaseStarted; p <= observe.PhaseDone; p++ {
		names[p.String()] = true
		if !observe.All.Has(p) || observe.SetOf(observe.PhaseDone).Has(p) != (p == observe.PhaseDone) {
			t.Errorf("%v is in the wrong sets", p)
		}
	}
	if len(names) != int(observe.PhaseDone)+1 {
		t.Errorf("%d names for %d phases", len(names), observe.PhaseDone+1)
	}
	for use := observe.UseNone; use <= observe.UseShared; use++ {
		names[use.String()] = true
	}
	for kind := observe.ConnectionOpened; kind <= observe.ConnectionClosed; kind++ {
		names[kind.String()] = true
	}
	if code := observe.Code(0).String() + ", " + observe.Code(5).String() + ", " + observe.Code(77).String(); code != "ok, not found, code 77" {
		t.Errorf("codes: %s", code)
	}
}

// BenchmarkMetrics is what counting one call costs beside the call.
func BenchmarkMetrics(b *testing.B) {
	m := observe.NewMetrics(observe.MetricsConfig{})
	o, call := m.Observer(), &observe.Call{Service: "Orders", Method: "place"}
	b.Run("one", func(b *testing.B) {
		for b.Loop() {
			tell(o, call, observe.Event{At: 123456})
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				tell(o, call, observe.Event{At: 123456})
			}
		})
	})
}
