// The contestant c-epoll: what the kernel costs without a framework. One thread,
// level-triggered epoll, one read buffer for all connections; whole frames are
// written back from where they were read.
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <arpa/inet.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "frame.h"

enum { READ_BYTES = 256 << 10, EVENTS = 512, BACKLOG = 4096 };

// connection holds memory only while a frame is incomplete or a reply could not
// be written.
struct connection {
	int fd;
	uint32_t generation;
	bool paused; // waits until the socket can be written, and is not read
	uint8_t *in; // the beginning of a frame
	size_t in_have, in_size;
	uint8_t *out;
	size_t out_from, out_end, out_size;
};

// delayed is a reply that is written when its handler would have slept enough.
struct delayed {
	uint64_t due;
	int fd;
	uint32_t generation;
	size_t size;
	struct delayed *next;
	uint8_t frame[];
};

static int epoll, listener, timer;
static struct connection **connections; // by descriptor
static size_t connections_size;
static uint32_t generations;
static struct delayed *first_delayed, **last_delayed = &first_delayed;
static uint8_t read_buffer[READ_BYTES];
static size_t allocated; // bytes that take and resize have given out

static void fail(const char *what) {
	fprintf(stderr, "c-epoll: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void *resize(void *memory, size_t before, size_t after) {
	allocated = allocated - before + after;
	if (after == 0) {
		free(memory);
		return NULL;
	}
	memory = realloc(memory, after);
	if (memory == NULL)
		fail("memory");
	return memory;
}

static void watch(int fd, int operation, uint32_t events) {
	struct epoll_event event = {.events = events, .data.fd = fd};
	if (epoll_ctl(epoll, operation, fd, &event) < 0)
		fail("epoll_ctl");
}

static void drop(struct connection *c) {
	resize(c->in, c->in_size, 0);
	resize(c->out, c->out_size, 0);
	connections[c->fd] = NULL;
	close(c->fd);
	resize(c, sizeof *c, 0);
}

static void accept_all(void) {
	for (;;) {
		int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0) {
			if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR)
				return;
			fail("accept");
		}
		int on = 1;
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); // Fails for Unix sockets, which need none.
		if ((size_t)fd >= connections_size) {
			size_t size = (size_t)fd * 2 + 64;
			connections = resize(connections, connections_size * sizeof *connections, size * sizeof *connections);
			memset(connections + connections_size, 0, (size - connections_size) * sizeof *connections);
			connections_size = size;
		}
		struct connection *c = resize(NULL, 0, sizeof *c);
		*c = (struct connection){.fd = fd, .generation = ++generations};
		connections[fd] = c;
		watch(fd, EPOLL_CTL_ADD, EPOLLIN);
	}
}

static void pause_reading(struct connection *c, bool paused) {
	if (c->paused != paused)
		watch(c->fd, EPOLL_CTL_MOD, paused ? EPOLLOUT : EPOLLIN);
	c->paused = paused;
}

// keep stores what the socket did not take.
static void keep(struct connection *c, const uint8_t *from, size_t size) {
	if (c->out_end + size > c->out_size) {
		size_t larger = c->out_end + size;
		c->out = resize(c->out, c->out_size, larger);
		c->out_size = larger;
	}
	memcpy(c->out + c->out_end, from, size);
	c->out_end += size;
	pause_reading(c, true);
}

// send_bytes returns false if the connection is gone.
static bool send_bytes(struct connection *c, const uint8_t *from, size_t size) {
	while (size > 0 && !c->paused) {
		ssize_t n = send(c->fd, from, size, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			return false;
		if (n < 0)
			break;
		from += n;
		size -= (size_t)n;
	}
	if (size > 0)
		keep(c, from, size);
	return true;
}

// send_kept writes what is kept, as far as it goes.
static bool send_kept(struct connection *c) {
	while (c->out_from < c->out_end) {
		ssize_t n = send(c->fd, c->out + c->out_from, c->out_end - c->out_from, MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return false;
		if (n < 0) {
			pause_reading(c, true);
			return true;
		}
		c->out_from += (size_t)n;
	}
	c->out = resize(c->out, c->out_size, 0);
	c->out_from = c->out_end = c->out_size = 0;
	pause_reading(c, false);
	return true;
}

static void arm(void) {
	struct itimerspec spec = {0};
	if (first_delayed != NULL) {
		spec.it_value.tv_sec = (time_t)(first_delayed->due / 1000000000u);
		spec.it_value.tv_nsec = (long)(first_delayed->due % 1000000000u);
	}
	if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &spec, NULL) < 0)
		fail("timer");
}

// delay makes a reply wait as long as the handler would have slept. All wait
// equally long, so the list is in order.
static void delay(struct connection *c, const uint8_t *frame, size_t size) {
	struct delayed *d = resize(NULL, 0, sizeof *d + size);
	*d = (struct delayed){.due = now_ns() + SLEEP_NANOSECONDS, .fd = c->fd, .generation = c->generation, .size = size};
	memcpy(d->frame, frame, size);
	bool first = first_delayed == NULL;
	*last_delayed = d;
	last_delayed = &d->next;
	if (first)
		arm();
}

static void send_delayed(void) {
	uint64_t expirations;
	if (read(timer, &expirations, sizeof expirations) < 0 && errno != EAGAIN)
		fail("timer");
	uint64_t now = now_ns();
	while (first_delayed != NULL && first_delayed->due <= now) {
		struct delayed *d = first_delayed;
		first_delayed = d->next;
		if (first_delayed == NULL)
			last_delayed = &first_delayed;
		struct connection *c = connections[d->fd];
		if (c != NULL && c->generation == d->generation && !send_bytes(c, d->frame, d->size))
			drop(c);
		resize(d, sizeof *d + d->size, 0);
	}
	arm();
}

static void burn(void) {
	volatile uint64_t result;
	uint64_t x = 1;
	for (int i = 0; i < BURN_STEPS; i++)
		x = x * 6364136223846793005u + 1442695040888963407u;
	result = x;
	(void)result;
}

// handle does what a request asks for, and replies.
static bool handle(struct connection *c, uint8_t *frame, size_t size) {
	uint8_t flags = frame[HEADER_BYTES - 1];
	if (flags & FLAG_BURN)
		burn();
	if (flags & FLAG_MEMORY && size >= HEADER_BYTES + 16) {
		put64(frame + HEADER_BYTES, allocated);
		put64(frame + HEADER_BYTES + 8, allocated);
	}
	if (flags & FLAG_SLEEP) {
		delay(c, frame, size);
		return true;
	}
	return send_bytes(c, frame, size);
}

// frame_size returns how long the frame is that begins here, 0 if that is not
// known yet, or -1 if there is no such frame.
static ssize_t frame_size(const uint8_t *from, size_t have) {
	if (have < LENGTH_BYTES)
		return 0;
	uint32_t length = get32(from);
	if (length < HEADER_BYTES - LENGTH_BYTES || length > HEADER_BYTES - LENGTH_BYTES + PAYLOAD_MAX)
		return -1;
	return (ssize_t)(LENGTH_BYTES + length);
}

// take_frames replies to all whole frames, those without flags with one write,
// and returns how many bytes they had, or -1.
static ssize_t take_frames(struct connection *c, uint8_t *from, size_t have) {
	size_t plain = 0, at = 0;
	for (;;) {
		ssize_t size = frame_size(from + at, have - at);
		if (size < 0)
			return -1;
		bool whole = size > 0 && (size_t)size <= have - at;
		bool flagged = whole && from[at + HEADER_BYTES - 1] != 0;
		if ((!whole || flagged) && at > plain && !send_bytes(c, from + plain, at - plain))
			return -1;
		if (!whole)
			return (ssize_t)at;
		if (flagged && !handle(c, from + at, (size_t)size))
			return -1;
		at += (size_t)size;
		if (flagged)
			plain = at;
	}
}

// reply_large replies to the frame in c->in. What the socket does not take stays
// where it is.
static bool reply_large(struct connection *c) {
	if (c->in[HEADER_BYTES - 1] != 0 || c->out != NULL) {
		if (take_frames(c, c->in, c->in_size) < 0)
			return false;
		resize(c->in, c->in_size, 0);
	} else {
		c->out = c->in;
		c->out_size = c->out_end = c->in_size;
		if (!send_kept(c))
			return false;
	}
	c->in = NULL;
	c->in_have = c->in_size = 0;
	return true;
}

// receive reads once, and returns false if the connection is at its end.
static bool receive(struct connection *c) {
	uint8_t *to = read_buffer;
	size_t room = sizeof read_buffer;
	if (c->in_have >= LENGTH_BYTES && c->in_size > sizeof read_buffer) {
		to = c->in + c->in_have; // A large frame is read to where it belongs.
		room = c->in_size - c->in_have;
	} else if (c->in_have > 0) {
		memcpy(to, c->in, c->in_have);
		to += c->in_have;
		room -= c->in_have;
	}
	ssize_t n = recv(c->fd, to, room, 0);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (n == 0)
		return false;
	if (c->in != NULL && to == c->in + c->in_have) {
		c->in_have += (size_t)n;
		return c->in_have < c->in_size || reply_large(c);
	}
	size_t have = c->in_have + (size_t)n;
	ssize_t taken = take_frames(c, read_buffer, have);
	if (taken < 0)
		return false;
	size_t rest = have - (size_t)taken;
	ssize_t size = frame_size(read_buffer + taken, rest);
	size_t wanted = rest == 0 ? 0 : size > (ssize_t)rest ? (size_t)size : LENGTH_BYTES;
	if (wanted != c->in_size)
		c->in = resize(c->in, c->in_size, wanted);
	c->in_size = wanted;
	c->in_have = rest;
	if (rest > 0)
		memcpy(c->in, read_buffer + taken, rest);
	return true;
}

static void print_ready(const char *network) {
	if (strcmp(network, "unix") == 0) {
		printf("{\"ready\":{\"address\":\"@fulmar-bench-%d\"}}\n", (int)getpid());
	} else {
		struct sockaddr_in name;
		socklen_t size = sizeof name;
		if (getsockname(listener, (struct sockaddr *)&name, &size) < 0)
			fail("getsockname");
		printf("{\"ready\":{\"address\":\"127.0.0.1:%d\"}}\n", ntohs(name.sin_port));
	}
	fflush(stdout);
}

static void listen_on(const char *network) {
	bool is_unix = strcmp(network, "unix") == 0;
	listener = socket(is_unix ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (listener < 0)
		fail("socket");
	struct sockaddr_un path = {.sun_family = AF_UNIX};
	struct sockaddr_in port = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	// An abstract name: it begins with a zero byte, and no file is left behind.
	int length = snprintf(path.sun_path + 1, sizeof path.sun_path - 1, "fulmar-bench-%d", (int)getpid());
	socklen_t path_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
	if (bind(listener, is_unix ? (struct sockaddr *)&path : (struct sockaddr *)&port, is_unix ? path_size : sizeof port) < 0)
		fail("bind");
	if (listen(listener, BACKLOG) < 0)
		fail("listen");
}

static void serve(const char *network) {
	struct rlimit files;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files); // As Go programs do.
	}
	listen_on(network);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (epoll < 0 || timer < 0)
		fail("epoll and timer");
	watch(listener, EPOLL_CTL_ADD, EPOLLIN);
	watch(timer, EPOLL_CTL_ADD, EPOLLIN);
	struct epoll_event input = {.events = EPOLLIN, .data.fd = STDIN_FILENO};
	(void)epoll_ctl(epoll, EPOLL_CTL_ADD, STDIN_FILENO, &input); // A file cannot be watched, and has no end to wait for.
	print_ready(network);
	static struct epoll_event events[EVENTS];
	for (;;) {
		int n = epoll_wait(epoll, events, EVENTS, -1);
		if (n < 0 && errno != EINTR)
			fail("epoll_wait");
		for (int i = 0; i < n; i++) {
			int fd = events[i].data.fd;
			if (fd == listener)
				accept_all();
			else if (fd == timer)
				send_delayed();
			else if (fd == STDIN_FILENO) {
				char ignored[64];
				if (read(STDIN_FILENO, ignored, sizeof ignored) <= 0)
					return;
			} else if (connections[fd] != NULL) {
				struct connection *c = connections[fd];
				if (!(c->paused ? send_kept(c) : receive(c)))
					drop(c);
			}
		}
	}
}

int main(int argc, char **argv) {
	signal(SIGPIPE, SIG_IGN);
	if (argc >= 2 && strcmp(argv[1], "info") == 0) {
		puts("{\"info\":[{\"name\":\"c-epoll\"}]}");
		return 0;
	}
	const char *network = "tcp";
	for (int i = 2; i + 1 < argc; i += 2)
		if (strcmp(argv[i], "-network") == 0)
			network = argv[i + 1];
	if (argc < 2 || strcmp(argv[1], "serve") != 0 || (strcmp(network, "tcp") != 0 && strcmp(network, "unix") != 0)) {
		fputs("c-epoll: want info, or serve [-network tcp|unix]\n", stderr);
		return 1;
	}
	serve(network);
	return 0;
}
