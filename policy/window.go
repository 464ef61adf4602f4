package policy

import (
	"sync/atomic"
	"time"
)

// window counts calls and failures of the last while, in buckets that each are a tenth of
// it. Time is what has passed since some moment. Safe for concurrent use, without a lock.
type window struct {
	// length of a bucket.
	length  time.Duration
	buckets [windowBuckets]bucket
}

const windowBuckets = 10

// bucket has in one word the number of its stretch of time, and the calls and failures in
// it, so that one addition counts a call. Both have 22 bits: where a bucket gets more than
// four million calls, older ones are halved, which leaves the share of failures as it is.
//
// Of the number 20 bits are kept: counts of a stretch would be taken for those of a million
// buckets later, and then only if there was not one call in between. With the default
// window those are twelve days.
type bucket struct{ word atomic.Uint64 }

const (
	countBits  = 22
	countMask  = 1<<countBits - 1
	numberMask = 1<<(64-2*countBits) - 1

	oneCall    = 1 << countBits
	oneFailure = 1

	// countMost leaves room for what goroutines add that have all seen that there is room.
	countMost = countMask - 1<<16
)

func (w *window) number(passed time.Duration) uint64 { return uint64(passed / w.length) }

// add counts a call that ended at a time.
func (w *window) add(passed time.Duration, failed bool) {
	number := w.number(passed)
	one := uint64(oneCall)
	if failed {
		one += oneFailure
	}
	b := &w.buckets[number%windowBuckets]
	for {
		word := b.word.Load()
		if word>>(2*countBits) != number&numberMask {
			// What is there is of another time: an earlier one, or a later one if the clock
			// was set back.
			if b.word.CompareAndSwap(word, (number&numberMask)<<(2*countBits)+one) {
				return
			}
			continue
		}
		if calls := word >> countBits & countMask; calls < countMost {
			// Between the look and the addition the bucket can have become that of another
			// time only if the goroutine was away for a whole window. Then one call counts
			// in the wrong place.
			b.word.Add(one)
			return
		}
		b.word.CompareAndSwap(word, halved(word))
	}
}

func halved(word uint64) uint64 {
	calls, failures := word>>countBits&countMask, word&countMask
	return word>>(2*countBits)<<(2*countBits) + calls/2<<countBits + failures/2
}

// sum returns what counts at a time.
func (w *window) sum(passed time.Duration) (calls, failures int) {
	w.each(passed, func(_ uint64, c, f uint64) {
		calls += int(c)
		failures += int(f)
	})
	return calls, failures
}

// each visits the buckets that count at a time.
func (w *window) each(passed time.Duration, visit func(number, calls, failures uint64)) {
	last := w.number(passed)
	for i := range uint64(windowBuckets) {
		number := last - i
		word := w.buckets[number%windowBuckets].word.Load()
		if word>>(2*countBits) == number&numberMask {
			visit(number, word>>countBits&countMask, word&countMask)
		}
	}
}

// withLength returns a window whose buckets have another length, with what counts at a
// time: as if its calls had ended when their buckets began, and not before the window.
func (w *window) withLength(length, passed time.Duration) *window {
	other := &window{length: length}
	last := other.number(passed)
	w.each(passed, func(number, calls, failures uint64) {
		at := other.number(time.Duration(number) * w.length)
		if last-at >= windowBuckets {
			return
		}
		b := &other.buckets[at%windowBuckets]
		word := b.word.Load()
		calls = min(calls+word>>countBits&countMask, countMost)
		failures = min(failures+word&countMask, calls)
		b.word.Store((at&numberMask)<<(2*countBits) + calls<<countBits + failures)
	})
	return other
}
