// A histogram of nanoseconds: exact below 2048, then 1024 buckets for each
// doubling, so that a value is known to 0.1 %, as in the histograms of the other
// suites.
#ifndef FULMAR_BENCH_NET_HISTOGRAM_H
#define FULMAR_BENCH_NET_HISTOGRAM_H

#include <stdint.h>

enum {
	HISTOGRAM_BITS = 10,
	// 2^37 ns are 137 s, more than any run takes. Longer ones count as that.
	HISTOGRAM_VALUE_BITS = 37,
	HISTOGRAM_BUCKETS = (HISTOGRAM_VALUE_BITS - HISTOGRAM_BITS + 1) << HISTOGRAM_BITS,
};

struct histogram {
	uint64_t buckets[HISTOGRAM_BUCKETS];
	uint64_t count, max;
	double sum;
};

static inline unsigned histogram_shift(uint64_t value) {
	unsigned bits = 64 - (unsigned)__builtin_clzll(value | 1);
	return bits <= HISTOGRAM_BITS + 1 ? 0 : bits - HISTOGRAM_BITS - 1;
}

static inline void histogram_add(struct histogram *h, uint64_t value) {
	const uint64_t most = ((uint64_t)1 << HISTOGRAM_VALUE_BITS) - 1;
	if (value > most)
		value = most;
	unsigned shift = histogram_shift(value);
	h->buckets[((uint64_t)shift << HISTOGRAM_BITS) + (value >> shift)]++;
	h->count++;
	h->sum += (double)value;
	if (value > h->max)
		h->max = value;
}

// histogram_at returns the value that this share of all values does not exceed:
// the upper end of its bucket, but no more than the largest value.
static inline uint64_t histogram_at(const struct histogram *h, double share) {
	uint64_t wanted = (uint64_t)(share * (double)h->count + 0.5), seen = 0;
	if (wanted < 1)
		wanted = 1;
	for (uint64_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += h->buckets[i];
		if (seen < wanted)
			continue;
		unsigned shift = i < 2u << HISTOGRAM_BITS ? 0 : (unsigned)(i >> HISTOGRAM_BITS) - 1;
		uint64_t top = ((i - ((uint64_t)shift << HISTOGRAM_BITS) + 1) << shift) - 1;
		return top < h->max ? top : h->max;
	}
	return h->max;
}

#endif
