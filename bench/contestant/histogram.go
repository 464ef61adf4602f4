package contestant

import (
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// latencyMax is the longest latency that is told apart from longer ones, and
// latencyDigits how many digits of a latency count: 0.1 %.
const (
	latencyMax    = 100 * time.Second
	latencyDigits = 3
)

// recorder collects latencies of many goroutines. It has as many histograms as
// goroutines can run at once, not one for each caller: a histogram takes 200 KB,
// and 500 of them would make the garbage collector of the measured process lazy.
type recorder struct{ shards []*shard }

type shard struct {
	mu        sync.Mutex
	histogram *hdrhistogram.Histogram
	_         [64]byte
}

func newRecorder() *recorder {
	r := &recorder{shards: make([]*shard, runtime.GOMAXPROCS(0))}
	for i := range r.shards {
		r.shards[i] = &shard{histogram: newHistogram()}
	}
	return r
}

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(latencyMax), latencyDigits)
}

// add records the latency of a call. Latencies beyond latencyMax count as that.
func (r *recorder) add(caller int, latency time.Duration) {
	s := r.shards[caller%len(r.shards)]
	s.mu.Lock()
	defer s.mu.Unlock()
	// The value is within the histogram's range, so this cannot fail.
	_ = s.histogram.RecordValue(int64(min(max(latency, 1), latencyMax)))
}

// summary merges what was recorded.
func (r *recorder) summary() (Latency, error) {
	all := newHistogram()
	for _, s := range r.shards {
		s.mu.Lock()
		dropped := all.Merge(s.histogram)
		s.mu.Unlock()
		if dropped > 0 {
			return Latency{}, errors.New("histograms of different ranges")
		}
	}
	return Latency{
		Count: uint64(all.TotalCount()),
		Mean:  all.Mean(),
		P50:   all.ValueAtQuantile(50),
		P90:   all.ValueAtQuantile(90),
		P99:   all.ValueAtQuantile(99),
		P999:  all.ValueAtQuantile(99.9),
		Max:   all.Max(),
	}, nil
}
