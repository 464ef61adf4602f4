// The protocol of suite net, for its client and its server in C. In Go it is
// bench/netsuite/frame.go.
//
//	length  4 bytes, big-endian: how many bytes follow it
//	id      8 bytes, which the server only returns
//	flags   1 byte: what the server's handler does before it replies
//	payload
//
// A reply is a copy of its request. Replies may come in any order.
#ifndef FULMAR_BENCH_NET_FRAME_H
#define FULMAR_BENCH_NET_FRAME_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum {
	LENGTH_BYTES = 4,
	HEADER_BYTES = 13,
	// FLAG_SLEEP: wait for SLEEP_NANOSECONDS. FLAG_BURN: compute, BURN_STEPS
	// steps. FLAG_MEMORY: collect garbage and answer with what memory is in
	// use: the payload of the reply begins with the bytes of the heap and the
	// bytes of everything, two numbers of 8 bytes.
	FLAG_SLEEP = 1,
	FLAG_BURN = 2,
	FLAG_MEMORY = 128,
	SLEEP_NANOSECONDS = 2000000,
	// A step is a multiplication and an addition that wait for the step before:
	// about 1.24 ns, so about 200 us. It is a number and not a time, so that all
	// contestants do the same work.
	BURN_STEPS = 160000,
	// PAYLOAD_MAX is what servers accept. The largest case has 4 MiB.
	PAYLOAD_MAX = 8 << 20,
};

static inline void put32(uint8_t *to, uint32_t value) {
	to[0] = (uint8_t)(value >> 24);
	to[1] = (uint8_t)(value >> 16);
	to[2] = (uint8_t)(value >> 8);
	to[3] = (uint8_t)value;
}

static inline void put64(uint8_t *to, uint64_t value) {
	put32(to, (uint32_t)(value >> 32));
	put32(to + 4, (uint32_t)value);
}

static inline uint32_t get32(const uint8_t *from) {
	return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

static inline uint64_t get64(const uint8_t *from) {
	return (uint64_t)get32(from) << 32 | get32(from + 4);
}

// now_ns is the monotonic clock.
static inline uint64_t now_ns(void) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
