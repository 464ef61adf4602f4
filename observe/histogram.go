package observe

import (
	"iter"
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// Histogram counts durations in buckets whose width is a sixteenth of a power of
// two: what a quantile says is at most 1/32 (3.2 %) off, and exact below 16 ns.
// It has 5 KiB, however much it counts, and never allocates. Times of more than
// 73 minutes count as that long, negative ones as 0. The zero value is ready to
// use. Safe for concurrent use.
type Histogram struct {
	counts [bucketCount]atomic.Uint64
	sum    atomic.Int64
	max    atomic.Int64
}

const (
	// fineBits: each power of two has 1<<fineBits buckets. 5 would halve the error
	// and double the memory.
	fineBits = 4
	fine     = 1 << fineBits
	// highestBit is that of the longest time that has a bucket of its own.
	highestBit  = 41
	bucketCount = fine + (highestBit-fineBits+1)*fine
	longest     = 1<<(highestBit+1) - 1
)

// bucketOf returns the bucket of a value from 0 to longest.
func bucketOf(n uint64) int {
	if n < fine {
		return int(n)
	}
	shift := bits.Len64(n) - 1 - fineBits
	return fine*shift + int(n>>shift)
}

// bucketRange returns the least value of a bucket, and how many it has.
func bucketRange(i int) (least, width int64) {
	if i < fine {
		return int64(i), 1
	}
	shift := i/fine - 1
	return int64(fine+i%fine) << shift, 1 << shift
}

// Record counts one duration.
func (h *Histogram) Record(d time.Duration) {
	n := min(max(int64(d), 0), longest)
	// Before the counts, because Snapshot looks at it behind them.
	for most := h.max.Load(); n > most && !h.max.CompareAndSwap(most, n); {
		most = h.max.Load()
	}
	h.counts[bucketOf(uint64(n))].Add(1)
	h.sum.Add(n)
}

// Snapshot returns what was counted. What is counted meanwhile may be in some of
// it only.
func (h *Histogram) Snapshot() Snapshot {
	s := Snapshot{counts: make([]uint64, bucketCount)}
	for i := range h.counts {
		s.counts[i] = h.counts[i].Load()
		s.count += s.counts[i]
	}
	// Behind the counts: whatever they have is not longer than that.
	s.sum, s.max = h.sum.Load(), h.max.Load()
	return s
}

// Snapshot is what a Histogram had counted at some time. The zero value is empty.
type Snapshot struct {
	counts []uint64
	count  uint64
	sum    int64
	max    int64
}

// Count returns how many durations were counted.
func (s Snapshot) Count() uint64 { return s.count }

// Sum returns their sum, and Max the longest, both exact.
func (s Snapshot) Sum() time.Duration { return time.Duration(s.sum) }

// Max returns the longest.
func (s Snapshot) Max() time.Duration { return time.Duration(s.max) }

// Mean returns the mean, 0 if there are none.
func (s Snapshot) Mean() time.Duration {
	if s.count == 0 {
		return 0
	}
	return time.Duration(float64(s.sum) / float64(s.count))
}

// Quantile returns the duration that a part q of all is not longer than, at most
// 1/32 off: 0.5 for the median, 0.99 for p99. 1 or more is Max, exactly; 0 or less,
// and NaN, the shortest. It is 0 if there are none.
func (s Snapshot) Quantile(q float64) time.Duration {
	if s.count == 0 {
		return 0
	}
	if q >= 1 {
		return s.Max()
	}
	// The rank of the one that is asked for, from 1.
	rank := uint64(1)
	if q > 0 {
		rank = max(rank, uint64(math.Ceil(q*float64(s.count))))
	}
	var seen uint64
	for i, n := range s.counts {
		if seen += n; seen >= rank {
			least, width := bucketRange(i)
			return time.Duration(min(least+(width-1)/2, s.max))
		}
	}
	return s.Max()
}

// Merge adds what another snapshot has.
func (s *Snapshot) Merge(other Snapshot) {
	if other.count == 0 {
		return
	}
	merged := make([]uint64, bucketCount)
	copy(merged, s.counts)
	for i, n := range other.counts {
		merged[i] += n
	}
	s.counts = merged
	s.count += other.count
	s.sum += other.sum
	s.max = max(s.max, other.max)
}

// Buckets yields the buckets that are not empty, shortest first: below is longer
// than all that count has counted, and not longer than anything behind.
func (s Snapshot) Buckets() iter.Seq2[time.Duration, uint64] {
	return func(yield func(below time.Duration, count uint64) bool) {
		for i, n := range s.counts {
			if n == 0 {
				continue
			}
			least, width := bucketRange(i)
			if !yield(time.Duration(least+width), n) {
				return
			}
		}
	}
}
