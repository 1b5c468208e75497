/* Outliving the run, getting round its limits, and the supervisor itself.
   What is still there after the time says so. */
#define _GNU_SOURCE
#include "escape.h"
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#define ACT(name, body) static int name(void) { return body; }

/* Longer than a run with a limit of half a second lasts, the time to clean up included. */
enum { LATER = 1200 };

static int later(void)
{
	rest(LATER);
	say(ESCAPED);
	return 0;
}

/* Leaves as soon as the other one runs. */
static int in_background(int (*body)(void))
{
	pid_t pid = fork();
	if (pid)
		return done(pid);
	setsid();
	pid = fork();
	if (pid == 0)
		body();
	_exit(0);
}

static int unkillable(void)
{
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	return later();
}

/* A new process every few milliseconds. */
static int always_another(void)
{
	for (long start = now(); now() - start < LATER;) {
		rest(5);
		if (fork())
			_exit(0);
	}
	say(ESCAPED);
	return 0;
}

static int adopting(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	return in_background(later);
}

ACT(daemon_stays, in_background(later))
ACT(stubborn_daemon, in_background(unkillable))
ACT(moving_daemon, in_background(always_another))
ACT(adopting_daemon, in_background(adopting))
ACT(ignores_the_end, unkillable())

static int stops_itself(void)
{
	pid_t own = getpid(), pid = fork();
	if (pid == 0) {
		rest(LATER);
		kill(own, SIGCONT);
		_exit(0);
	}
	if (pid < 0 || kill(own, SIGSTOP))
		return done(-1);
	say(ESCAPED);
	return 0;
}

static int waits_in_vfork(void)
{
	pid_t pid = vfork();
	if (pid == 0) {
		later();
		_exit(0);
	}
	return done(pid);
}

/* A supervisor that connects in the command's place must not wait. */
static void *joins(void *to)
{
	connect(socket(AF_UNIX, SOCK_STREAM, 0), to, sizeof(struct sockaddr_un));
	return NULL;
}

static int full_listener(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX, .sun_path = "full" };
	pthread_t threads[4];
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, 0))
		return done(-1);
	for (size_t index = 0; index < LENGTH(threads); index++)
		if (pthread_create(&threads[index], NULL, joins, &at))
			return refused("no thread");
	return later();
}

/* Only ever the shell or sandbox that has started this program. */
static int parent(int above, int signal)
{
	char line[256] = "";
	int pid = getppid(), fd;
	for (; above; above--) {
		fd = open(below_proc(pid, "stat"), O_RDONLY);
		if (fd < 0 || read(fd, line, sizeof line - 1) < 0 || !strrchr(line, ')'))
			return refused("no parent to be seen");
		close(fd);
		pid = atoi(strrchr(line, ')') + 4);
	}
	fd = open(below_proc(pid, "comm"), O_RDONLY);
	if (fd < 0 || read(fd, line, 4) < 3 || (strncmp(line, "sh\n", 3) && strncmp(line, "sbx\n", 4)))
		return refused("the parent is neither a shell nor sbx");
	return kill(pid, signal) ? done(-1) : 0;
}

static int without(int above, int signal)
{
	if (parent(above, signal))
		return 1;
	later();
	if (signal == SIGSTOP)
		parent(above, SIGCONT);
	return 0;
}

ACT(kills_parent, without(0, SIGKILL))
ACT(kills_grandparent, without(1, SIGKILL))
ACT(stops_parent, without(0, SIGSTOP))
ACT(stops_grandparent, without(1, SIGSTOP))

/* More than any of the limits under which this is tried. */
static int floods(const char *path)
{
	static char block[65536];
	int fd = path ? open(path, O_WRONLY) : 1;
	memset(block, '.', sizeof block);
	for (int turn = 0; turn < 16; turn++)
		if (fd < 0 || write(fd, block, sizeof block) < 0)
			return done(-1);
	say("\n" ESCAPED);
	return 0;
}

ACT(much_output, floods(NULL))
ACT(much_output_by_name, floods("/proc/self/fd/1"))

static int much_output_of_many(void)
{
	for (int child = 0; child < 8; child++) {
		pid_t pid = fork();
		if (pid < 0)
			return done(pid);
		if (pid == 0)
			_exit(floods(NULL));
	}
	while (wait(NULL) > 0)
		;
	return 0;
}

static int many_processes(void)
{
	int made = 0;
	for (; made < 24; made++) {
		pid_t pid = fork();
		if (pid == 0) {
			rest(500);
			_exit(0);
		}
		if (pid < 0)
			break;
	}
	if (made > 12)
		say(ESCAPED);
	while (wait(NULL) > 0)
		;
	return made < 24;
}

static void *sleeps(void *nothing)
{
	rest(500);
	return nothing;
}

static int many_threads(void)
{
	pthread_t threads[24];
	int made = 0;
	while (made < 24 && pthread_create(&threads[made], NULL, sleeps, NULL) == 0)
		made++;
	if (made > 12)
		say(ESCAPED);
	return made < 24;
}

static int much_memory(void)
{
	enum { SIZE = 256 << 20 };
	char *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return done(-1);
	for (size_t at = 0; at < SIZE; at += 4096)
		memory[at] = 1;
	rest(400);
	say(ESCAPED);
	return 0;
}

static int much_memory_of_many(void)
{
	for (int child = 0; child < 8; child++) {
		pid_t pid = fork();
		if (pid == 0) {
			volatile char *memory = malloc(32 << 20);
			for (size_t at = 0; memory && at < 32 << 20; at += 4096)
				memory[at] = 1;
			rest(600);
			_exit(0);
		}
		if (pid < 0)
			return done(pid);
	}
	while (wait(NULL) > 0)
		;
	say(ESCAPED);
	return 0;
}

static int many_files(void)
{
	for (int made = 0; made < 64; made++)
		if (open("/dev/null", O_RDONLY) < 0)
			return done(-1);
	say(ESCAPED);
	return 0;
}

static int raised_limit(void)
{
	struct rlimit limit = { 4096, 4096 };
	if (setrlimit(RLIMIT_NOFILE, &limit))
		return done(-1);
	return many_files();
}

static int large_file(void)
{
	static char block[65536];
	int fd = open("large", O_CREAT | O_WRONLY, 0600);
	signal(SIGXFSZ, SIG_IGN);
	for (int turn = 0; turn < 32; turn++)
		if (fd < 0 || write(fd, block, sizeof block) != (long)sizeof block)
			return done(-1);
	say(ESCAPED);
	return 0;
}

/* Into every descriptor that could be the report. */
static int forged_report(void)
{
	for (int fd = 3; fd < 256; fd++)
		if (fd != LEAKED_FILE && fd != LEAKED_DIRECTORY && fd != LEAKED_SOCKET && write(fd, "forged\n", 7) == 7)
			say(ESCAPED);
	return 0;
}

const struct attempt supervisor[] = {
	{ "daemon", daemon_stays },
	{ "stubborn-daemon", stubborn_daemon },
	{ "moving-daemon", moving_daemon },
	{ "adopting-daemon", adopting_daemon },
	{ "ignores-the-end", ignores_the_end },
	{ "stops-itself", stops_itself },
	{ "waits-in-vfork", waits_in_vfork },
	{ "full-listener", full_listener },
	{ "kills-parent", kills_parent },
	{ "kills-grandparent", kills_grandparent },
	{ "stops-parent", stops_parent },
	{ "stops-grandparent", stops_grandparent },
	{ "much-output", much_output },
	{ "much-output-by-name", much_output_by_name },
	{ "much-output-of-many", much_output_of_many },
	{ "many-processes", many_processes },
	{ "many-threads", many_threads },
	{ "much-memory", much_memory },
	{ "much-memory-of-many", much_memory_of_many },
	{ "many-files", many_files },
	{ "raised-limit", raised_limit },
	{ "large-file", large_file },
	{ "forged-report", forged_report },
	{ NULL, NULL },
};
