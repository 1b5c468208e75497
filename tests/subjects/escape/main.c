/* Tries to get out of a sandbox, one way at a time.
 *
 *   escape NAME [FACT=VALUE]...    tries this one; exit status 0 if it succeeded
 *   escape --list                  the names
 *   escape --victim                waits to be attacked; prints the address of its secret
 */
#define _GNU_SOURCE
#include "escape.h"

struct facts facts;
static char **arguments;

static int say_escaped(void)
{
	say(ESCAPED);
	return 0;
}

static int nothing(void)
{
	return 1;
}

/* The purposes for which attempts start this program again. */
static const struct attempt parts[] = {
	{ "say", say_escaped },
	{ "nothing", nothing },
	{ "forbidden", forbidden },
	{ "has-rights", has_rights },
	{ NULL, NULL },
};

static const struct attempt *const classes[] = {
	files, attributes, machine, network, local_sockets, processes, tracing, privileges, namespaces, kernel, bypass,
	memory, supervisor, environment, parts,
};

void say(const char *text)
{
	if (syscall(SYS_write, 1, text, strlen(text)) < 0)
		_exit(97);
}

int refused(const char *why)
{
	say(why);
	say("\n");
	return 1;
}

int done(long result)
{
	char line[128];
	if (result >= 0)
		return 0;
	snprintf(line, sizeof line, "errno %d (%s)", errno, strerror(errno));
	return refused(line);
}

int reached(long result)
{
	if (result < 0 && errno != EPERM && errno != EACCES && errno != ENOSYS && errno != EAFNOSUPPORT)
		return 0;
	return done(result);
}

const char *below(const char *directory, const char *name)
{
	static char room[8][4096];
	static unsigned next;
	char *path = room[next++ % LENGTH(room)];
	snprintf(path, sizeof room[0], "%s/%s", directory, name);
	return path;
}

const char *below_proc(int pid, const char *name)
{
	char directory[32];
	snprintf(directory, sizeof directory, "/proc/%d", pid);
	return below(directory, name);
}

int show(long fd)
{
	char buffer[4096];
	long count;
	if (fd < 0)
		return done(fd);
	count = syscall(SYS_read, (int)fd, buffer, sizeof buffer);
	if (count > 0 && syscall(SYS_write, 1, buffer, count) < 0)
		return done(-1);
	return done(count);
}

int leak(const char *path)
{
	return show(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY, 0));
}

int opens(const char *path, int flags)
{
	return done(syscall(SYS_openat, AT_FDCWD, path, flags, 0600));
}

int append(const char *path)
{
	long fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT, 0600);
	return fd < 0 ? done(fd) : done(syscall(SYS_write, (int)fd, "escape\n", 7));
}

int forbidden(void)
{
	long result = syscall(SYS_unshare, CLONE_NEWUSER);
	if (result == 0)
		say(ESCAPED);
	return done(result);
}

char **again(const char *attempt)
{
	arguments[1] = (char *)attempt;
	return arguments;
}

void rest(int milliseconds)
{
	struct timespec time = { milliseconds / 1000, milliseconds % 1000 * 1000000L };
	while (syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, &time) && errno == EINTR)
		;
}

long now(void)
{
	struct timespec time = { 0 };
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* Every signal stays pending, where it can be seen. */
static void victim(const char *secret)
{
	static char memory[64];
	char line[64];
	sigset_t all;
	strncpy(memory, secret, sizeof memory - 1);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setpgid(0, 0);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(line, sizeof line, "%lu\n", (unsigned long)memory);
	say(line);
	for (;;)
		rest(1000);
}

static void learn(const char *word)
{
	const char *value = strchr(word, '=');
	if (!value)
		return;
	value++;
#define TEXT(fact) if (!strncmp(word, #fact "=", sizeof #fact)) facts.fact = value
#define NUMBER(fact) if (!strncmp(word, #fact "=", sizeof #fact)) facts.fact = strtoul(value, NULL, 10)
	TEXT(home);
	TEXT(outside);
	TEXT(abstract);
	TEXT(key);
	TEXT(extra);
	NUMBER(victim);
	NUMBER(secret);
	NUMBER(tcp);
	NUMBER(tcp6);
	NUMBER(udp);
	NUMBER(udp6);
}

static const struct attempt *find(const char *name)
{
	for (size_t class = 0; class < LENGTH(classes); class++)
		for (const struct attempt *each = classes[class]; each->name; each++)
			if (!strcmp(each->name, name))
				return each;
	return NULL;
}

static int list(void)
{
	for (size_t class = 0; classes[class] != parts; class++)
		for (const struct attempt *each = classes[class]; each->name; each++)
			puts(each->name);
	return 0;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	const struct attempt *attempt;
	arguments = argv;
	if (!strcmp(name, "--list"))
		return list();
	if (!strcmp(name, "--victim"))
		victim(argc > 2 ? argv[2] : "");
	for (int word = 2; word < argc; word++)
		learn(argv[word]);
	attempt = find(name);
	if (!attempt)
		return 99;
	say("trying\n");
	return attempt->act();
}
