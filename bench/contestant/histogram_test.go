package contestant

import (
	"sync"
	"testing"
	"time"
)

// Latencies of 1 to 10,000 us from many goroutines, over several histograms:
// the percentiles of the whole are known to within the histogram's 0.1 %.
func TestRecorder_MergesItsShards(t *testing.T) {
	r := &recorder{}
	for range 3 {
		r.shards = append(r.shards, &shard{histogram: newHistogram()})
	}
	var group sync.WaitGroup
	for caller := range 10 {
		group.Go(func() {
			for i := caller; i < 10_000; i += 10 {
				r.add(caller, time.Duration(i+1)*time.Microsecond)
			}
		})
	}
	group.Wait()
	got, err := r.summary()
	if err != nil || got.Count != 10_000 {
		t.Fatalf("%+v, %v, want 10000 values", got, err)
	}
	for _, c := range []struct {
		name string
		got  float64
		want time.Duration
	}{
		{"mean", got.Mean, 5000500 * time.Nanosecond},
		{"p50", float64(got.P50), 5000 * time.Microsecond},
		{"p90", float64(got.P90), 9000 * time.Microsecond},
		{"p99", float64(got.P99), 9900 * time.Microsecond},
		{"p999", float64(got.P999), 9990 * time.Microsecond},
		{"max", float64(got.Max), 10_000 * time.Microsecond},
	} {
		if error := c.got/float64(c.want) - 1; error < -0.001 || error > 0.001 {
			t.Errorf("%s is %v, want %v", c.name, time.Duration(c.got), c.want)
		}
	}
}

func TestRecorder_KeepsExtremes(t *testing.T) {
	r := newRecorder()
	for _, latency := range []time.Duration{-1, 0, latencyMax, 1000 * time.Hour} {
		r.add(0, latency)
	}
	got, err := r.summary()
	if err != nil || got.Count != 4 {
		t.Errorf("%+v, %v, want 4 values: none may be lost", got, err)
	}
	if got.Max < int64(latencyMax) {
		t.Errorf("the longest latency is %v, want at least %v", time.Duration(got.Max), latencyMax)
	}
	if err := (Report{Latency: got}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestRecorder_OfNothing(t *testing.T) {
	got, err := newRecorder().summary()
	if err != nil || got != (Latency{}) {
		t.Errorf("%+v, %v, want zeros", got, err)
	}
}
