// What the client of suite net is told on its command line.
#ifndef FULMAR_BENCH_NET_OPTIONS_H
#define FULMAR_BENCH_NET_OPTIONS_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frame.h"

struct options {
	const char *address;
	uint64_t server; // process id, 0 if nobody asks for its processor time
	double rate;     // calls a second of an open loop, 0 for the closed loop
	uint64_t warm_up, duration; // ns
	uint64_t settle;   // ns, before memory is measured: what a server may still do when it has replied
	uint64_t patience; // ns, for replies before the warm-up and after the last call

	uint64_t connections; // that carry calls
	uint64_t callers;     // for each connection: calls in flight on it
	uint64_t bytes;       // of the payload
	uint64_t idle;        // further connections, silent after one call each
	uint64_t first_bytes; // one call with such a payload on each connection, before all others
	uint64_t sleep_share; // of 10,000 calls, how many have FLAG_SLEEP
	uint64_t burn_share;  // the same for FLAG_BURN
	uint64_t sources;     // loopback addresses to connect from, in turn
	bool churn;           // a connection for every call
	bool megabytes;       // the report has the bytes of a call, for MB/s
};

static inline void usage(const char *complaint, const char *about) {
	fprintf(stderr, "net client: %s %s\n", complaint, about);
	exit(1);
}

static inline uint64_t parse_number(const char *name, const char *text, uint64_t low, uint64_t high) {
	char *end;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	if (errno != 0 || end == text || *end != 0 || *text == '-' || value < low || value > high) {
		fprintf(stderr, "net client: %s: want a number from %llu to %llu, got %s\n", name, (unsigned long long)low, (unsigned long long)high, text);
		exit(1);
	}
	return value;
}

// parse_duration reads what Go prints, such as "500ms" and "1m30s".
static inline uint64_t parse_duration(const char *name, const char *text) {
	static const struct {
		const char *unit;
		double nanoseconds;
	} units[] = {{"ns", 1}, {"us", 1e3}, {"\xc2\xb5s", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}};
	double total = 0;
	const char *at = text;
	do {
		char *end;
		double value = strtod(at, &end);
		size_t letters = strcspn(end, "0123456789.");
		bool known = false;
		for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
			if (strlen(units[i].unit) == letters && strncmp(units[i].unit, end, letters) == 0) {
				known = true;
				total += value * units[i].nanoseconds;
			}
		// Zero is printed as "0s".
		if (end == at || !known || !(value >= 0) || !(total <= 3600e9))
			usage(name, "wants a duration of at most an hour, such as 500ms");
		at = end + letters;
	} while (*at != 0);
	return (uint64_t)total;
}

static inline double parse_rate(const char *text) {
	char *end;
	double value = strtod(text, &end);
	if (end == text || *end != 0 || !(value >= 0) || value > 1e9)
		usage("-rate", "wants calls a second, at most 1e9");
	return value;
}

static inline struct options parse_options(int argc, char **argv) {
	struct options o = {.warm_up = 500000000, .duration = 1000000000, .settle = 200000000, .patience = 10000000000, .connections = 1, .callers = 1, .bytes = 128, .sources = 1};
	for (int i = 2; i < argc; i += 2) {
		const char *name = argv[i];
		if (i + 1 == argc)
			usage(name, "wants a value");
		const char *value = argv[i + 1];
		if (strcmp(name, "-address") == 0)
			o.address = value;
		else if (strcmp(name, "-server") == 0)
			o.server = parse_number(name, value, 0, INT32_MAX);
		else if (strcmp(name, "-rate") == 0)
			o.rate = parse_rate(value);
		else if (strcmp(name, "-warm-up") == 0)
			o.warm_up = parse_duration(name, value);
		else if (strcmp(name, "-duration") == 0)
			o.duration = parse_duration(name, value);
		else if (strcmp(name, "-patience") == 0)
			o.patience = parse_duration(name, value);
		else if (strcmp(name, "-settle") == 0)
			o.settle = parse_duration(name, value);
		else if (strcmp(name, "-connections") == 0)
			o.connections = parse_number(name, value, 1, 100000);
		else if (strcmp(name, "-callers") == 0)
			o.callers = parse_number(name, value, 1, 10000);
		else if (strcmp(name, "-bytes") == 0)
			o.bytes = parse_number(name, value, 1, PAYLOAD_MAX);
		else if (strcmp(name, "-idle") == 0)
			o.idle = parse_number(name, value, 0, 100000);
		else if (strcmp(name, "-first-bytes") == 0)
			o.first_bytes = parse_number(name, value, 0, PAYLOAD_MAX);
		else if (strcmp(name, "-sleep-share") == 0)
			o.sleep_share = parse_number(name, value, 0, 10000);
		else if (strcmp(name, "-burn-share") == 0)
			o.burn_share = parse_number(name, value, 0, 10000);
		else if (strcmp(name, "-sources") == 0)
			o.sources = parse_number(name, value, 1, 250);
		else if (strcmp(name, "-churn") == 0)
			o.churn = parse_number(name, value, 0, 1) == 1;
		else if (strcmp(name, "-megabytes") == 0)
			o.megabytes = parse_number(name, value, 0, 1) == 1;
		else if (strcmp(name, "-contestant") != 0 && strcmp(name, "-case") != 0)
			usage("unknown option", name); // Those two are for contestants that bring a client of their own.
	}
	if (o.address == NULL)
		usage("-address", "is required");
	if (o.duration == 0)
		usage("-duration", "must be positive");
	if (o.churn && o.callers != 1)
		usage("-churn", "makes one call on a connection");
	if (o.first_bytes > 0 && o.bytes > 8 << 10)
		usage("-first-bytes", "is for small messages that follow");
	return o;
}

#endif
