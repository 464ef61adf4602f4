// The client of suite net: one thread with epoll makes the calls of all
// contestants, checks every byte of every reply, and reports as
// bench/contestant/protocol.go says.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "frame.h"
#include "histogram.h"
#include "options.h"

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif
#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24
#endif

#define SECOND UINT64_C(1000000000)

enum {
	EVENTS = 512,
	READ_BYTES = 256 << 10,
	// Frames up to COPIED_MAX are copied next to each other and written at once.
	COPIED_MAX = 16 << 10,
	WRITE_BYTES = 256 << 10,
	// Payloads begin at one of OFFSETS places of the pattern.
	OFFSETS_BITS = 14,
	OFFSETS = 1 << OFFSETS_BITS,
	// An open loop is woken for its calls at most every WAKE_NANOSECONDS, as in
	// the other suites (machine.KeepAwake).
	WAKE_NANOSECONDS = 20000,
	// ONCE_CONCURRENT calls are in flight before the measurement, few large ones.
	ONCE_CONCURRENT = 64,
	ONCE_LARGE_CONCURRENT = 8,
};

// caller makes one call at a time.
struct caller {
	uint64_t id; // of the call: the number of the caller and one that counts its calls
	uint64_t since;
	uint32_t connection, bytes;
	uint8_t flags;
	bool busy;
};

struct connection {
	int fd;
	bool connecting, writing; // writing: waits until the socket takes more
	uint32_t source;
	// Callers whose requests have not been written, in a ring, and how much of
	// the first request has been.
	uint32_t *queue, queue_mask, head, tail;
	size_t written;
	// What has come of a reply.
	uint8_t header[HEADER_BYTES];
	size_t have; // header included
	struct caller *answered;
};

enum mode { ONCE, CLOSED_LOOP, OPEN_LOOP, DRAIN };

static struct options options;
static struct connection *connections;
static struct caller *callers;
static size_t active_callers; // the callers of idle connections come behind them
static int epoll;
static uint8_t *pattern, read_buffer[READ_BYTES], write_buffer[WRITE_BYTES];
static struct sockaddr_storage address;
static socklen_t address_size;

static enum mode mode;
static uint64_t outstanding, opened; // calls in flight, connections ever opened
static uint32_t *free_callers;       // of an open loop, in a ring
static size_t free_head, free_count;
static size_t once_next, once_end; // callers that still have to make their one call
static uint64_t random_state = UINT64_C(0x9e3779b97f4a7c15);

static uint64_t start, window_opens, window_closes;
static bool inside; // the window is open
static uint64_t calls, failed;
static char failure[200];
static struct histogram latencies;

// fail ends the run: figures of a server that loses or mixes up calls are worth
// nothing. Texts go into JSON as they are.
__attribute__((format(printf, 1, 2))) static void fail(const char *format, ...) {
	if (failed++ > 0)
		return;
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(failure, sizeof failure, format, arguments);
	va_end(arguments);
}

// give_up is for what is not the contestant's fault.
__attribute__((noreturn)) static void give_up(const char *what) {
	fprintf(stderr, "net client: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void *allocate(size_t count, size_t size) {
	void *memory = calloc(count > 0 ? count : 1, size);
	if (memory == NULL)
		give_up("memory");
	return memory;
}

static uint64_t random_number(void) {
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * UINT64_C(0x2545f4914f6cdd1d);
}

// payload returns what a call sends: a piece of the pattern that depends on the
// connection and on the number of the call. The id tells calls apart that begin
// at the same place.
static const uint8_t *payload(uint64_t id) {
	return pattern + (id * UINT64_C(0x9e3779b97f4a7c15) >> (64 - OFFSETS_BITS));
}

static size_t frame_bytes(const struct caller *c) { return HEADER_BYTES + c->bytes; }

static void put_header(uint8_t *to, const struct caller *c) {
	put32(to, HEADER_BYTES - LENGTH_BYTES + c->bytes);
	put64(to + LENGTH_BYTES, c->id);
	to[HEADER_BYTES - 1] = c->flags;
}

// --- connections ---

static void watch(struct connection *c, int operation, uint32_t events) {
	struct epoll_event event = {.events = events, .data.ptr = c};
	if (epoll_ctl(epoll, operation, c->fd, &event) < 0)
		give_up("epoll_ctl");
}

static void parse_address(const char *text) {
	struct sockaddr_in *port = (struct sockaddr_in *)&address;
	struct sockaddr_un *path = (struct sockaddr_un *)&address;
	if (text[0] == '/' || text[0] == '@') {
		size_t length = strlen(text);
		if (length >= sizeof path->sun_path)
			usage("-address", "is too long for a Unix socket");
		path->sun_family = AF_UNIX;
		memcpy(path->sun_path, text, length);
		if (text[0] == '@')
			path->sun_path[0] = 0; // An abstract name.
		address_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (text[0] == '/'));
		return;
	}
	char host[64];
	const char *colon = strrchr(text, ':');
	if (colon == NULL || (size_t)(colon - text) >= sizeof host)
		usage("-address", "wants host:port, /path or @name");
	memcpy(host, text, (size_t)(colon - text));
	host[colon - text] = 0;
	port->sin_family = AF_INET;
	port->sin_port = htons((uint16_t)parse_number("-address", colon + 1, 1, 65535));
	if (inet_pton(AF_INET, host, &port->sin_addr) != 1)
		usage("-address", "wants an IPv4 address");
	address_size = sizeof *port;
}

// dial begins to connect, and waits for the end of it unless calls come and go
// with their connections.
static void dial(struct connection *c, bool waits) {
	c->fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		give_up("socket");
	int on = 1;
	if (address.ss_family == AF_INET) {
		setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
		if (options.sources > 1) {
			// The port is chosen by connect, which knows which are free for this
			// destination.
			setsockopt(c->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
			struct sockaddr_in source = {.sin_family = AF_INET};
			source.sin_addr.s_addr = htonl(INADDR_LOOPBACK + (uint32_t)(opened % options.sources));
			if (bind(c->fd, (struct sockaddr *)&source, sizeof source) < 0)
				give_up("binding to a loopback address");
		}
	}
	opened++;
	c->head = c->tail = 0;
	c->written = c->have = 0;
	c->writing = false;
	c->connecting = connect(c->fd, (struct sockaddr *)&address, address_size) < 0;
	if (c->connecting && errno != EINPROGRESS) {
		fail("connection %" PRIu64 " from %" PRIu64 " addresses: %s", opened, options.sources, strerror(errno));
		close(c->fd);
		c->fd = -1;
		return;
	}
	if (waits && c->connecting) {
		struct pollfd ready = {.fd = c->fd, .events = POLLOUT};
		int result = 0;
		socklen_t size = sizeof result;
		if (poll(&ready, 1, (int)(options.patience / 1000000)) != 1)
			fail("connection %" PRIu64 ": not accepted", opened);
		else if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &result, &size) < 0 || result != 0)
			fail("connection %" PRIu64 ": %s", opened, strerror(result));
		c->connecting = false;
	}
	watch(c, EPOLL_CTL_ADD, c->connecting ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

// --- requests ---

// flush writes what the socket takes.
static void flush(struct connection *c) {
	while (c->head != c->tail && !c->connecting && !c->writing) {
		struct caller *first = &callers[c->queue[c->head & c->queue_mask]];
		size_t skipped = c->written;
		struct iovec parts[2];
		struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
		uint8_t header[HEADER_BYTES];
		if (frame_bytes(first) > COPIED_MAX) {
			put_header(header, first);
			size_t of_header = skipped < HEADER_BYTES ? skipped : HEADER_BYTES;
			parts[0] = (struct iovec){header + of_header, HEADER_BYTES - of_header};
			parts[1] = (struct iovec){(void *)(payload(first->id) + skipped - of_header), first->bytes - (skipped - of_header)};
		} else {
			size_t filled = 0;
			for (uint32_t at = c->head; at != c->tail; at++) {
				struct caller *next = &callers[c->queue[at & c->queue_mask]];
				if (frame_bytes(next) > COPIED_MAX || filled + frame_bytes(next) > sizeof write_buffer)
					break;
				put_header(write_buffer + filled, next);
				memcpy(write_buffer + filled + HEADER_BYTES, payload(next->id), next->bytes);
				filled += frame_bytes(next);
			}
			parts[0] = (struct iovec){write_buffer + skipped, filled - skipped};
			message.msg_iovlen = 1;
		}
		ssize_t n = sendmsg(c->fd, &message, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN) {
			fail("writing a request: %s", strerror(errno));
			return;
		}
		if (n < 0) {
			c->writing = true;
			watch(c, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
			return;
		}
		c->written += (size_t)n;
		while (c->head != c->tail) {
			size_t size = frame_bytes(&callers[c->queue[c->head & c->queue_mask]]);
			if (c->written < size)
				break;
			c->written -= size;
			c->head++;
		}
	}
}

// begin makes a call of a caller that has none in flight. It is written by flush.
static void begin(struct caller *caller, uint32_t bytes, uint64_t since) {
	struct connection *c = &connections[caller->connection];
	uint64_t number = (uint32_t)caller->id + 1;
	caller->id = (uint64_t)(caller - callers) << 32 | (uint32_t)number;
	caller->since = since;
	caller->bytes = bytes;
	caller->busy = true;
	caller->flags = 0;
	if (mode != ONCE && options.sleep_share + options.burn_share > 0) {
		uint64_t drawn = (random_number() >> 33) % 10000;
		if (drawn < options.sleep_share)
			caller->flags = FLAG_SLEEP;
		else if (drawn < options.sleep_share + options.burn_share)
			caller->flags = FLAG_BURN;
	}
	outstanding++;
	if (options.churn)
		dial(c, false);
	c->queue[c->tail++ & c->queue_mask] = (uint32_t)(caller - callers);
}

// --- replies ---

// finish is called when a reply was right.
static void finish(struct caller *caller, uint64_t now) {
	struct connection *c = &connections[caller->connection];
	caller->busy = false;
	outstanding--;
	if (options.churn) {
		close(c->fd);
		c->fd = -1;
	}
	if (inside) {
		calls++;
		if (options.rate == 0)
			histogram_add(&latencies, now - caller->since);
	}
	switch (mode) {
	case ONCE:
		if (once_next < once_end) {
			struct caller *next = &callers[once_next++];
			begin(next, caller->bytes, now);
			flush(&connections[next->connection]);
		}
		return;
	case CLOSED_LOOP:
		begin(caller, (uint32_t)options.bytes, now);
		return; // The connection is flushed when all that was read has been looked at.
	case OPEN_LOOP:
	case DRAIN:
		if (options.rate > 0) {
			free_callers[(free_head + free_count++) % active_callers] = (uint32_t)(caller - callers);
			if (caller->since >= window_opens && caller->since < window_closes)
				histogram_add(&latencies, now - caller->since);
		}
	}
}

// check_header finds the call that a reply belongs to.
static struct caller *check_header(struct connection *c) {
	uint64_t id = get64(c->header + LENGTH_BYTES);
	uint64_t number = id >> 32, count = active_callers + options.idle;
	struct caller *caller = number < count ? &callers[number] : NULL;
	if (caller == NULL || !caller->busy || caller->id != id || &connections[caller->connection] != c) {
		fail("wrong reply: no call with the id %#" PRIx64 " waits on this connection", id);
		return NULL;
	}
	if (get32(c->header) != HEADER_BYTES - LENGTH_BYTES + caller->bytes || c->header[HEADER_BYTES - 1] != caller->flags) {
		fail("wrong reply: length %" PRIu32 " and flags %d, want %" PRIu32 " and %d", get32(c->header), c->header[HEADER_BYTES - 1],
			HEADER_BYTES - LENGTH_BYTES + caller->bytes, caller->flags);
		return NULL;
	}
	return caller;
}

// take looks at bytes that have arrived. It keeps none of them.
static void take(struct connection *c, const uint8_t *from, size_t size, uint64_t now) {
	while (size > 0 && failed == 0) {
		if (c->have < HEADER_BYTES) {
			size_t part = HEADER_BYTES - c->have < size ? HEADER_BYTES - c->have : size;
			memcpy(c->header + c->have, from, part);
			c->have += part;
			from += part;
			size -= part;
			if (c->have == HEADER_BYTES && (c->answered = check_header(c)) == NULL)
				return;
			continue;
		}
		size_t checked = c->have - HEADER_BYTES, left = c->answered->bytes - checked;
		size_t part = left < size ? left : size;
		if (memcmp(from, payload(c->answered->id) + checked, part) != 0) {
			fail("wrong reply: bytes %zu to %zu of %" PRIu32 " differ from the request", checked, checked + part, c->answered->bytes);
			return;
		}
		c->have += part;
		from += part;
		size -= part;
		if (c->have < frame_bytes(c->answered))
			continue;
		c->have = 0;
		if (options.churn && size > 0) {
			fail("wrong reply: %zu bytes behind it", size);
			return;
		}
		finish(c->answered, now);
		if (options.churn)
			return; // The connection is another one now.
	}
}

static void ready(struct connection *c, uint32_t events) {
	if (c->fd < 0)
		return;
	if (c->connecting) {
		int result = 0;
		socklen_t size = sizeof result;
		if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &result, &size) < 0 || result != 0) {
			fail("connection %" PRIu64 " from %" PRIu64 " addresses: %s", opened, options.sources, strerror(result));
			return;
		}
		c->connecting = false;
		watch(c, EPOLL_CTL_MOD, EPOLLIN);
		flush(c);
		return;
	}
	if (events & EPOLLOUT && c->writing) {
		c->writing = false;
		watch(c, EPOLL_CTL_MOD, EPOLLIN);
		flush(c);
	}
	if (!(events & ~(uint32_t)EPOLLOUT))
		return;
	ssize_t n = recv(c->fd, read_buffer, sizeof read_buffer, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		fail("reading a reply: %s", n == 0 ? "the server closed the connection" : strerror(errno));
		return;
	}
	take(c, read_buffer, (size_t)n, now_ns());
	if (c->fd >= 0)
		flush(c);
}

// wait_until handles what happens until the time given, at most one batch.
static void wait_until(uint64_t time) {
	static struct epoll_event events[EVENTS];
	uint64_t now = now_ns(), left = time > now ? time - now : 0;
	struct timespec timeout = {.tv_sec = (time_t)(left / SECOND), .tv_nsec = (long)(left % SECOND)};
	int n = (int)syscall(SYS_epoll_pwait2, epoll, events, EVENTS, &timeout, NULL, 0);
	if (n < 0 && errno != EINTR)
		give_up("epoll_pwait2 (Linux 5.11 or newer is needed)");
	for (int i = 0; i < n && failed == 0; i++)
		ready(events[i].data.ptr, events[i].events);
}

// --- phases ---

// once lets callers make one call each.
static void once(size_t from, size_t end, uint32_t bytes, size_t concurrent) {
	mode = ONCE;
	once_next = from;
	once_end = end;
	uint64_t limit = now_ns() + options.patience;
	while (once_next < once_end && outstanding < concurrent && failed == 0) {
		struct caller *caller = &callers[once_next++];
		begin(caller, bytes, now_ns());
		flush(&connections[caller->connection]);
	}
	while (outstanding > 0 && failed == 0) {
		wait_until(limit);
		if (now_ns() >= limit)
			fail("%" PRIu64 " replies are missing before the warm-up", outstanding);
	}
}

struct usage {
	uint64_t time, server, own;
};

static uint64_t processor_time(clockid_t clock) {
	struct timespec used;
	if (clock_gettime(clock, &used) < 0)
		give_up("processor time of the server");
	return (uint64_t)used.tv_sec * SECOND + (uint64_t)used.tv_nsec;
}

static struct usage read_usage(void) {
	struct usage u = {.time = now_ns(), .own = processor_time(CLOCK_PROCESS_CPUTIME_ID)};
	if (options.server > 0) // The kernel's clock of another process, as clock_getcpuclockid(3) names it.
		u.server = processor_time((clockid_t)(~(uint32_t)options.server << 3 | 2));
	return u;
}

static struct usage window_begin, window_end;

// watch_window opens and closes the window when it is time. A window in which no
// call finished would tell nothing, so it waits for one.
static void watch_window(uint64_t now) {
	if (!inside && window_begin.time == 0 && now >= window_opens) {
		window_begin = read_usage();
		inside = true;
		// Who was kept from opening it in time does not close it the sooner. The
		// calls of an open loop belong to it by when they fall due.
		if (options.rate == 0)
			window_closes = window_begin.time + options.duration;
	} else if (inside && now >= window_closes && (calls > 0 || outstanding == 0)) {
		inside = false;
		window_end = read_usage();
	}
}

// drain waits for what is in flight.
static void drain(void) {
	mode = DRAIN;
	uint64_t limit = now_ns() + options.patience;
	while (outstanding > 0 && failed == 0) {
		wait_until(limit);
		watch_window(now_ns());
		if (now_ns() >= limit)
			fail("%" PRIu64 " replies are missing %.1f s after the last call", outstanding, (double)options.patience / 1e9);
	}
}

static void closed_loop(void) {
	mode = CLOSED_LOOP;
	for (size_t i = 0; i < active_callers; i++)
		begin(&callers[i], (uint32_t)options.bytes, now_ns());
	for (uint64_t i = 0; i < options.connections; i++)
		flush(&connections[i]);
	for (;;) {
		uint64_t now = now_ns();
		watch_window(now);
		if (failed > 0 || now >= window_closes)
			return;
		wait_until(now < window_opens ? window_opens : window_closes);
	}
}

static uint64_t due(uint64_t number) { return start + (uint64_t)((double)number / options.rate * 1e9); }

struct missed {
	uint64_t due, missed;
};

// open_loop starts calls when they fall due, or as soon as a caller is free. The
// calls of the window are those that fall due within it; they have once more its
// length to begin.
static struct missed open_loop(void) {
	mode = OPEN_LOOP;
	uint64_t next = 0, limit = window_closes + options.duration, now;
	struct missed counted = {0, 0};
	for (;;) {
		now = now_ns();
		watch_window(now);
		if (failed > 0 || now >= limit || (due(next) >= window_closes && now >= window_closes))
			break;
		struct connection *touched = NULL;
		while (free_count > 0 && due(next) <= now && due(next) < window_closes) {
			struct caller *caller = &callers[free_callers[free_head]];
			free_head = (free_head + 1) % active_callers;
			free_count--;
			begin(caller, (uint32_t)options.bytes, due(next));
			counted.due += due(next++) >= window_opens;
			if (touched != NULL && touched != &connections[caller->connection])
				flush(touched);
			touched = &connections[caller->connection];
		}
		if (touched != NULL)
			flush(touched);
		uint64_t wake = free_count > 0 ? due(next) : limit;
		if (wake < now + WAKE_NANOSECONDS)
			wake = now + WAKE_NANOSECONDS;
		uint64_t edge = now < window_opens ? window_opens : now < window_closes ? window_closes : limit;
		wait_until(wake < edge ? wake : edge);
	}
	for (now = now_ns(); due(next) < window_closes; next++)
		if (due(next) >= window_opens) {
			counted.due++;
			counted.missed++;
			histogram_add(&latencies, now > due(next) ? now - due(next) : 0);
		}
	return counted;
}

// --- memory of the server ---

struct memory {
	double heap, all;
};

// ask_memory lets the server collect garbage and tell what is in use. It is done
// on a connection of its own, which blocks.
static struct memory ask_memory(int fd) {
	uint8_t frame[HEADER_BYTES + 16] = {0};
	struct memory m = {0, 0};
	usleep((useconds_t)(options.settle / 1000));
	put32(frame, sizeof frame - LENGTH_BYTES);
	frame[HEADER_BYTES - 1] = FLAG_MEMORY;
	if (send(fd, frame, sizeof frame, MSG_NOSIGNAL) != sizeof frame || recv(fd, frame, sizeof frame, MSG_WAITALL) != sizeof frame) {
		fail("asking for memory: no reply");
		return m;
	}
	m.heap = (double)get64(frame + HEADER_BYTES);
	m.all = (double)get64(frame + HEADER_BYTES + 8);
	return m;
}

static int dial_control(void) {
	int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct timeval timeout = {.tv_sec = (time_t)(options.patience / SECOND + 1)};
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout) < 0)
		give_up("socket");
	if (connect(fd, (struct sockaddr *)&address, address_size) < 0)
		fail("connecting: %s", strerror(errno));
	return fd;
}

// halves lets half of a small request be in flight on every connection, and asks
// what memory the server has in use meanwhile. Then the other half follows.
static struct memory halves(int control) {
	mode = ONCE;
	once_next = once_end = 0;
	for (size_t i = 0; i < options.connections && failed == 0; i++) {
		struct connection *c = &connections[callers[i].connection];
		uint8_t frame[COPIED_MAX];
		begin(&callers[i], (uint32_t)options.bytes, now_ns());
		put_header(frame, &callers[i]);
		memcpy(frame + HEADER_BYTES, payload(callers[i].id), options.bytes);
		ssize_t half = (ssize_t)(frame_bytes(&callers[i]) / 2);
		if (send(c->fd, frame, (size_t)half, MSG_NOSIGNAL) != half)
			fail("writing half a request: %s", strerror(errno));
		c->written = (size_t)half;
	}
	struct memory m = failed == 0 ? ask_memory(control) : (struct memory){0, 0};
	for (uint64_t i = 0; i < options.connections && failed == 0; i++)
		flush(&connections[i]);
	if (failed == 0)
		drain();
	return m;
}

// --- report ---

// peak_bytes returns the most memory that a process has had resident.
static uint64_t peak_bytes(uint64_t process) {
	char name[64], line[256];
	uint64_t kilobytes = 0;
	snprintf(name, sizeof name, "/proc/%" PRIu64 "/status", process);
	FILE *file = process > 0 ? fopen(name, "r") : NULL;
	if (file == NULL)
		return 0;
	while (fgets(line, sizeof line, file) != NULL)
		if (sscanf(line, "VmHWM: %" SCNu64, &kilobytes) == 1)
			break;
	fclose(file);
	return kilobytes << 10;
}

static void print_report(struct missed missed, const double *connection_bytes, const double *heap_bytes) {
	struct histogram *h = &latencies;
	if (window_end.time == 0) { // It failed before.
		window_begin = window_end;
		calls = 0;
	}
	printf("{\"report\":{\"calls\":%" PRIu64 ",\"seconds\":%.9f,\"rate\":%.3f,\"due\":%" PRIu64 ",\"missed\":%" PRIu64, calls,
		(double)(window_end.time - window_begin.time) / 1e9, options.rate, missed.due, missed.missed);
	printf(",\"failed\":%" PRIu64 ",\"failure\":\"%s\"", failed, failure);
	printf(",\"server_cpu_ns\":%" PRIu64 ",\"client_cpu_ns\":%" PRIu64, window_end.server - window_begin.server, window_end.own - window_begin.own);
	printf(",\"server_peak_bytes\":%" PRIu64 ",\"client_peak_bytes\":%" PRIu64, peak_bytes(options.server), peak_bytes((uint64_t)getpid()));
	printf(",\"latency_ns\":{\"count\":%" PRIu64 ",\"mean\":%.1f,\"p50\":%" PRIu64 ",\"p90\":%" PRIu64 ",\"p99\":%" PRIu64 ",\"p999\":%" PRIu64 ",\"max\":%" PRIu64 "}",
		h->count, h->count > 0 ? h->sum / (double)h->count : 0, histogram_at(h, 0.5), histogram_at(h, 0.9), histogram_at(h, 0.99), histogram_at(h, 0.999), h->max);
	if (options.megabytes)
		printf(",\"call_bytes\":%" PRIu64, options.bytes);
	if (connection_bytes != NULL)
		printf(",\"connection_bytes\":%.1f", *connection_bytes);
	if (heap_bytes != NULL)
		printf(",\"heap_bytes\":%.0f", *heap_bytes);
	puts("}}");
	fflush(stdout);
}

// prepare allocates everything, and connects what calls are made on.
static void prepare(void) {
	struct rlimit files;
	uint64_t needed = options.connections + options.idle + 16;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
		if (files.rlim_max < needed) {
			fprintf(stderr, "net client: %" PRIu64 " file descriptors are needed (limit %llu)\n", needed, (unsigned long long)files.rlim_max);
			exit(1);
		}
	}
	prctl(PR_SET_TIMERSLACK, 1UL); // Timers are late by 50 us otherwise.
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll < 0)
		give_up("epoll_create1");
	size_t longest = options.bytes > options.first_bytes ? options.bytes : options.first_bytes;
	pattern = allocate((OFFSETS + longest) / 8 + 1, 8);
	for (size_t i = 0; i < (OFFSETS + longest) / 8 + 1; i++)
		put64(pattern + 8 * i, random_number());
	active_callers = options.connections * options.callers;
	size_t all = options.connections + options.idle;
	connections = allocate(all, sizeof *connections);
	callers = allocate(active_callers + options.idle, sizeof *callers);
	free_callers = allocate(active_callers, sizeof *free_callers);
	for (size_t i = 0; i < all; i++) {
		uint32_t room = 1;
		while (i < options.connections && room < options.callers)
			room *= 2;
		connections[i].queue = allocate(room, sizeof *connections[i].queue);
		connections[i].queue_mask = room - 1;
		connections[i].fd = -1;
	}
	for (size_t i = 0; i < active_callers + options.idle; i++)
		// Neighbours have different connections, so that those share the load.
		callers[i].connection = (uint32_t)(i < active_callers ? i % options.connections : options.connections + i - active_callers);
	for (size_t i = 0; i < active_callers; i++)
		free_callers[free_count++] = (uint32_t)i;
	for (size_t i = 0; i < options.connections && !options.churn && failed == 0; i++)
		dial(&connections[i], true);
}

// go_idle opens connections that fall silent after one call, and returns what
// each costs the server.
static double go_idle(int control) {
	double before = ask_memory(control).all;
	for (size_t i = options.connections; i < options.connections + options.idle && failed == 0; i++)
		dial(&connections[i], true);
	if (failed == 0)
		once(active_callers, active_callers + options.idle, (uint32_t)options.bytes, ONCE_CONCURRENT);
	double more = failed == 0 ? ask_memory(control).all - before : 0;
	return more > 0 ? more / (double)options.idle : 0;
}

int main(int argc, char **argv) {
	signal(SIGPIPE, SIG_IGN);
	if (argc < 2 || strcmp(argv[1], "load") != 0)
		usage("want the command", "load");
	options = parse_options(argc, argv);
	parse_address(options.address);
	prepare();
	double connection_bytes = 0, heap_bytes = 0;
	int control = -1;
	if (failed == 0 && (options.idle > 0 || options.first_bytes > 0))
		control = dial_control();
	if (failed == 0 && options.first_bytes > 0)
		once(0, options.connections, (uint32_t)options.first_bytes, ONCE_LARGE_CONCURRENT);
	if (failed == 0 && options.idle > 0)
		connection_bytes = go_idle(control);
	struct missed missed = {0, 0};
	start = now_ns();
	window_opens = start + options.warm_up;
	window_closes = window_opens + options.duration;
	if (failed == 0 && options.rate > 0)
		missed = open_loop();
	else if (failed == 0)
		closed_loop();
	if (failed == 0)
		drain();
	if (failed == 0 && options.first_bytes > 0)
		heap_bytes = halves(control).heap;
	print_report(missed, options.idle > 0 ? &connection_bytes : NULL, options.first_bytes > 0 ? &heap_bytes : NULL);
	return 0;
}
