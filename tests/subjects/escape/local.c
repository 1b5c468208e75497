/* Sockets that lead to other programs of this machine. */
#define _GNU_SOURCE
#include "escape.h"
#include <pthread.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#define ACT(name, body) static int name(void) { return body; }

static socklen_t named(struct sockaddr_un *to, const char *path)
{
	memset(to, 0, sizeof *to);
	to->sun_family = AF_UNIX;
	strncpy(to->sun_path, path, sizeof to->sun_path - 1);
	return sizeof *to;
}

static socklen_t abstract(struct sockaddr_un *to, const char *suffix)
{
	int length;
	memset(to, 0, sizeof *to);
	to->sun_family = AF_UNIX;
	length = snprintf(to->sun_path + 1, sizeof to->sun_path - 1, "%s%s", facts.abstract, suffix);
	return offsetof(struct sockaddr_un, sun_path) + 1 + length;
}

static int joins(int kind, const char *path, int as_abstract)
{
	struct sockaddr_un to;
	socklen_t length = as_abstract ? abstract(&to, path) : named(&to, path);
	int fd = socket(AF_UNIX, kind, 0);
	if (fd < 0)
		return done(fd);
	if (kind == SOCK_DGRAM)
		return done(sendto(fd, "x", 1, 0, (struct sockaddr *)&to, length));
	return done(connect(fd, (struct sockaddr *)&to, length));
}

ACT(by_path, joins(SOCK_STREAM, outside("socket"), 0))
ACT(by_link, joins(SOCK_STREAM, "way-outside/socket", 0))
ACT(by_root, joins(SOCK_STREAM, "/proc/self/cwd/../../outside/socket", 0))
ACT(datagram, joins(SOCK_DGRAM, outside("datagrams"), 0))
ACT(by_abstract_name, joins(SOCK_STREAM, "", 1))
ACT(abstract_datagram, joins(SOCK_DGRAM, "-dgram", 1))

static int by_place(void)
{
	char path[32];
	int fd = open(outside("socket"), O_PATH);
	if (fd < 0)
		return done(fd);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return joins(SOCK_STREAM, path, 0);
}

/* One of a pair leads to the other, until it gets another address. */
static int pair(int as_abstract)
{
	struct sockaddr_un to;
	socklen_t length = as_abstract ? abstract(&to, "-dgram") : named(&to, outside("datagrams"));
	struct iovec part = { "x", 1 };
	struct msghdr message = { .msg_name = &to, .msg_namelen = length, .msg_iov = &part, .msg_iovlen = 1 };
	int both[2];
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, both))
		return done(-1);
	return done(sendmsg(both[0], &message, 0));
}

ACT(pair_by_path, pair(0))
ACT(pair_by_abstract_name, pair(1))

static int listen_abstract(void)
{
	struct sockaddr_un at;
	socklen_t length = abstract(&at, "-made");
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, length))
		return done(-1);
	return done(listen(fd, 1));
}

/* A listener of its own and one outside are swapped. */
static volatile int changing;
static struct sockaddr_un shared, mine, theirs;

static void *change_memory(void *nothing)
{
	while (changing) {
		memcpy(&shared, &theirs, sizeof shared);
		SEEN;
		memcpy(&shared, &mine, sizeof shared);
		SEEN;
	}
	return nothing;
}

static void *change_names(void *nothing)
{
	while (changing)
		syscall(SYS_renameat2, AT_FDCWD, "swing", AT_FDCWD, "other", 2 /* RENAME_EXCHANGE */);
	return nothing;
}

static int race(void *(*change)(void *))
{
	pthread_t thread;
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), last = -1;
	struct sockaddr_un own;
	long start = now();
	socklen_t length = named(&own, "own");
	if (listener < 0 || bind(listener, (struct sockaddr *)&own, length) || listen(listener, 100))
		return done(-1);
	changing = 1;
	if (pthread_create(&thread, NULL, change, NULL))
		return refused("no thread");
	fcntl(listener, F_SETFL, O_NONBLOCK);
	for (; now() - start < RACE; sched_yield()) {
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);
		last = connect(fd, (struct sockaddr *)&shared, sizeof shared);
		close(fd);
		close(accept4(listener, NULL, NULL, SOCK_NONBLOCK));
	}
	changing = 0;
	pthread_join(thread, NULL);
	return done(last);
}

static int changed_memory(void)
{
	named(&mine, "own");
	named(&theirs, outside("socket"));
	named(&shared, "own");
	return race(change_memory);
}

static int exchanged_links(void)
{
	named(&shared, "swing");
	if (symlink("own", "swing") || symlink(outside("socket"), "other"))
		return done(-1);
	return race(change_names);
}

const struct attempt local_sockets[] = {
	{ "socket-by-path", by_path },
	{ "socket-by-link", by_link },
	{ "socket-by-proc", by_root },
	{ "socket-by-place", by_place },
	{ "socket-changed-memory", changed_memory },
	{ "socket-exchanged-links", exchanged_links },
	{ "datagram-by-path", datagram },
	{ "pair-by-path", pair_by_path },
	{ "abstract-socket", by_abstract_name },
	{ "abstract-datagram", abstract_datagram },
	{ "pair-by-abstract-name", pair_by_abstract_name },
	{ "listen-abstract", listen_abstract },
	{ NULL, NULL },
};
