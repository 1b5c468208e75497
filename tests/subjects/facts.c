/* Prints how it is confined, a line for each fact: the state of its process, and the results of what profiles
 * refuse. Two runs that print the same were confined alike. It removes the files that it makes, if it may.
 *
 *   facts HOME OUTSIDE PORT PID     the home with secrets, a directory and a port of the host's, a process outside
 *
 * Before anything else it tries to make OUTSIDE/witness; its output shows that it ran.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static char name[4096];

static const char *below(const char *directory, const char *path)
{
	snprintf(name, sizeof name, "%s/%s", directory, path);
	return name;
}

static void say(const char *what, const char *object, long result)
{
	printf("%s %s: %s\n", what, object, result < 0 ? strerrorname_np(errno) : "done");
}

/* The lines of a file of /proc; with words, only those that begin with one of them. */
static void lines(const char *path, const char *const *words)
{
	FILE *file = fopen(path, "re");
	char line[4096];
	if (!file) {
		say("read", path, -1);
		return;
	}
	while (fgets(line, sizeof line, file)) {
		int wanted = !words;
		for (int i = 0; words && words[i]; i++)
			wanted |= strncmp(line, words[i], strlen(words[i])) == 0;
		if (wanted)
			printf("%s: %s", path, line);
	}
	fclose(file);
}

static void descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	for (struct dirent *entry; directory && (entry = readdir(directory));)
		if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(directory))
			printf("descriptor %s\n", entry->d_name);
	if (directory)
		closedir(directory);
}

/* Whether it leads a session and a process group. */
static void session(void)
{
	int group = 0, own = 0, pid = 0;
	FILE *file = fopen("/proc/self/stat", "re");
	if (file && fscanf(file, "%d %*s %*c %*d %d %d", &pid, &group, &own) == 3)
		printf("leads a session: %d\nleads a group: %d\n", own == pid, group == pid);
	if (file)
		fclose(file);
}

static void opening(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK, 0600);
	say(flags & O_CREAT ? "make" : flags & O_WRONLY ? "write" : "read", path, fd);
	if (fd >= 0)
		close(fd);
	if (fd >= 0 && flags & O_CREAT)
		unlink(path);
}

static void directory(const char *path)
{
	long result = mkdir(path, 0700);
	say("make directory", path, result);
	if (result == 0)
		rmdir(path);
}

static void moving(const char *path, const char *other)
{
	char from[4096], to[4096];
	snprintf(from, sizeof from, "%s", path);
	snprintf(to, sizeof to, "%s", other);
	long result = rename(from, to);
	say("rename", from, result);
	if (result == 0)
		rename(to, from);
}

static void reaching(int family, const char *what, const struct sockaddr *address, socklen_t length)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	say("socket", what, fd);
	if (fd < 0)
		return;
	if (address)
		say("connect", what, connect(fd, address, length));
	close(fd);
}

static void network(const char *port)
{
	struct sockaddr_in inet = {.sin_family = AF_INET, .sin_port = htons(atoi(port)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_un local = {.sun_family = AF_UNIX};
	snprintf(local.sun_path + 1, sizeof local.sun_path - 1, "sbx-facts-%s", port);
	reaching(AF_INET, "AF_INET", (struct sockaddr *)&inet, sizeof inet);
	reaching(AF_UNIX, "AF_UNIX", (struct sockaddr *)&local, offsetof(struct sockaddr_un, sun_path) + 1 + strlen(local.sun_path + 1));
	reaching(AF_NETLINK, "AF_NETLINK", NULL, 0);
	reaching(AF_INET6, "AF_INET6", NULL, 0);
}

static void files(const char *home, const char *outside, const char *pid)
{
	opening(below(outside, "witness"), O_WRONLY | O_CREAT | O_EXCL);
	opening(below(outside, "kept"), O_RDONLY);
	opening(below(outside, "kept"), O_WRONLY);
	opening(below(home, ".ssh/id_rsa"), O_RDONLY);
	opening(below(home, ".bashrc"), O_WRONLY);
	opening("/etc/shadow", O_RDONLY);
	opening("/etc/passwd", O_RDONLY);
	opening("/dev/null", O_WRONLY);
	opening("/dev/ptmx", O_RDONLY | O_NOCTTY);
	opening("made", O_WRONLY | O_CREAT | O_EXCL);
	opening("denied/secret", O_RDONLY);
	opening(below("/tmp", pid), O_WRONLY | O_CREAT | O_EXCL);
	if (getenv("TMPDIR"))
		opening(below(getenv("TMPDIR"), "made"), O_WRONLY | O_CREAT | O_EXCL);
	if (getenv("XDG_CACHE_HOME"))
		opening(below(getenv("XDG_CACHE_HOME"), "made"), O_WRONLY | O_CREAT | O_EXCL);
	opening(".git/config", O_WRONLY);
	opening(".git/hooks/pre-commit", O_WRONLY | O_CREAT | O_EXCL);
	opening(".git/commondir", O_WRONLY | O_CREAT | O_EXCL);
	opening(".git/made", O_WRONLY | O_CREAT | O_EXCL);
	opening(".envrc", O_WRONLY);
	opening(".claude/settings.json", O_WRONLY);
	opening(".mcp.json", O_WRONLY | O_CREAT | O_EXCL);
	directory(".vscode");
	moving(".git", "moved");
	moving(".claude", "moved");
	moving(".envrc", "moved");
	say("chmod", "outside", chmod(below(outside, "kept"), 0644));
	say("link", "outside", link(below(outside, "kept"), "linked"));
	unlink("linked");
	say("access", "/run", access("/run/lock", F_OK));
}

static void others(int pid)
{
	say("signal", "a process outside", kill(pid, 0));
	snprintf(name, sizeof name, "/proc/%d", pid);
	printf("%s of a process outside: %d\n", "/proc", access(name, F_OK));
	snprintf(name, sizeof name, "/proc/%d/environ", getppid());
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	printf("environment of the parent: %s\n", fd < 0 ? strerrorname_np(errno) : "done");
	if (fd >= 0)
		close(fd);
}

static void kernel(void)
{
	char attributes[128] = {0};
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	say("map", "executable memory", memory == MAP_FAILED ? -1 : 0);
	say("call", "unshare", syscall(SYS_unshare, 0x10000000));
	say("call", "keyctl", syscall(SYS_keyctl, 0, -3, 0));
	say("call", "bpf", syscall(SYS_bpf, 0, attributes, 64));
	say("call", "io_uring_setup", syscall(SYS_io_uring_setup, 1, attributes));
	say("call", "perf_event_open", syscall(SYS_perf_event_open, attributes, 0, -1, -1, 0));
	say("call", "mount", syscall(SYS_mount, "none", "/nowhere", "tmpfs", 0, 0));
	say("call", "ptrace", syscall(SYS_ptrace, PTRACE_CONT, 0, 0, 0));
}

int main(int argc, char **argv, char **environment)
{
	static const char *const status[] = {"Umask", "Groups", "NoNewPrivs", "Seccomp", "Cap", "SigBlk", "SigIgn", NULL};
	if (argc < 5)
		return 2;
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	puts("ran");
	for (char **entry = environment; *entry; entry++)
		printf("variable %s\n", *entry);
	printf("in %s\n", getcwd(name, sizeof name) ? name : "nowhere");
	lines("/proc/self/status", status);
	lines("/proc/self/limits", NULL);
	lines("/proc/self/cgroup", NULL);
	lines("/proc/self/mountinfo", NULL);
	session();
	descriptors();
	files(argv[1], argv[2], argv[4]);
	network(argv[3]);
	others(atoi(argv[4]));
	kernel();
	fflush(stdout);
	/* Where it may execute something, that is the end, and this line is missing. */
	execl("/bin/true", "true", NULL);
	say("execute", "/bin/true", -1);
	return 0;
}
