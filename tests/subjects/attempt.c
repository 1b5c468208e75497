/* Tries one thing and reports the result: exit 0 when the kernel did it, otherwise 1 and "errno N (text)" on stdout.
 * Raw system calls throughout, so that the library's own fallbacks do not blur the answer.
 *
 *   attempt create FILE            make a file and write to it
 *   attempt read FILE              print a file
 *   attempt connect PORT           TCP to 127.0.0.1
 *   attempt connect-unix PATH      UNIX stream socket; "@name" is an abstract one
 *   attempt exec PROGRAM ARG...    replace this program
 *   attempt spawn PROGRAM ARG...   the same in a child
 *   attempt fork                   make a process that makes the file "forked"
 *   attempt thread                 start a thread and join it
 *   attempt syscall NR ARG...      ARG: a number, s:TEXT, or z:N (N zero bytes)
 *   attempt int80 NR FILE ARG...   the same as a 32-bit call, first argument a path
 *   attempt clone3 | clone3-thread through the new call, arguments in memory
 *   attempt openat2 FILE           for writing, flags in memory
 *   attempt wx                     write code into memory and run it
 *   attempt fds                    list the open descriptors
 *   attempt env                    print the environment, raw
 *   attempt argv0 | exe | comm     this program's name
 *   attempt sleep                  until a signal comes
 *   attempt close-all ACTION...    close every descriptor first
 *   attempt say-and-die SIGNAL     print a word, then die
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int verdict(long result)
{
	if (result >= 0)
		return 0;
	printf("errno %d (%s)\n", errno, strerror(errno));
	return 1;
}

static int create(const char *path)
{
	long fd = syscall(SYS_openat, AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, 0644);
	if (fd < 0)
		return verdict(fd);
	return verdict(syscall(SYS_write, fd, "made\n", 5));
}

static int show(const char *path)
{
	char buffer[4096];
	long count, fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY, 0);
	if (fd < 0)
		return verdict(fd);
	while ((count = syscall(SYS_read, fd, buffer, sizeof buffer)) > 0)
		syscall(SYS_write, 1, buffer, count);
	return verdict(count);
}

static int connect_tcp(const char *port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(atoi(port)) };
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	long fd = syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);
	if (fd < 0)
		return verdict(fd);
	return verdict(syscall(SYS_connect, fd, &to, sizeof to));
}

static int connect_unix(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t length = strlen(path);
	memcpy(to.sun_path, path, length);
	if (path[0] == '@')
		to.sun_path[0] = 0;
	long fd = syscall(SYS_socket, AF_UNIX, SOCK_STREAM, 0);
	if (fd < 0)
		return verdict(fd);
	return verdict(syscall(SYS_connect, fd, &to, offsetof(struct sockaddr_un, sun_path) + length));
}

static int finish_child(long pid, const char *mark)
{
	int status = 0;
	if (pid < 0)
		return verdict(pid);
	if (pid == 0)
		_exit(create(mark));
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int spawn(char **argv)
{
	int status = 0;
	pid_t pid = fork();
	if (pid < 0)
		return verdict(pid);
	if (pid == 0) {
		syscall(SYS_execve, argv[0], argv, environ);
		_exit(verdict(-1));
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void *nothing(void *argument)
{
	return argument;
}

static int start_thread(void)
{
	pthread_t thread;
	errno = pthread_create(&thread, NULL, nothing, NULL);
	if (errno)
		return verdict(-1);
	pthread_join(thread, NULL);
	puts("joined");
	return 0;
}

static long number(const char *text)
{
	char *end;
	if (!strncmp(text, "s:", 2))
		return (long)(text + 2);
	if (!strncmp(text, "z:", 2))
		return (long)calloc(1, atoi(text + 2));
	errno = 0;
	long value = (long)strtoull(text, &end, 0);
	if (*end || errno) {
		fprintf(stderr, "attempt: not a number: %s\n", text);
		exit(99);
	}
	return value;
}

static int any_call(char **words)
{
	long a[7] = { 0 };
	for (int i = 0; i < 7 && words[i]; i++)
		a[i] = number(words[i]);
	long result = syscall(a[0], a[1], a[2], a[3], a[4], a[5], a[6]);
	if (result >= 0)
		printf("= %ld\n", result);
	return verdict(result);
}

static int gate32(char **words)
{
#ifdef __x86_64__
	/* 32-bit calls take 32-bit pointers. */
	char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	if (low == MAP_FAILED)
		return verdict(-1);
	strncpy(low, words[1], 4095);
	long result, flags = words[2] ? number(words[2]) : 0, mode = words[2] && words[3] ? number(words[3]) : 0;
	__asm__ volatile("int $0x80" : "=a"(result)
			 : "a"(number(words[0])), "b"(low), "c"(flags), "d"(mode) : "memory", "r8", "r9", "r10", "r11");
	if ((int)result < 0) {
		errno = -(int)result;
		return verdict(-1);
	}
	return 0;
#else
	(void)words;
	return 99;
#endif
}

/* clone3(2) for a thread that leaves at once. On its new stack there is nothing to return to, so not even the
 * C library's syscall() may stand between the call and the end. */
static long clone3_thread(struct clone_args *args)
{
	long result;
#ifdef __x86_64__
	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "mov $60, %%eax\n\t"
			 "xor %%edi, %%edi\n\t"
			 "syscall\n\t"
			 "1:"
			 : "=a"(result)
			 : "a"(SYS_clone3), "D"(args), "S"(sizeof *args)
			 : "rcx", "r11", "memory");
#else
	register long call __asm__("x8") = SYS_clone3;
	register long first __asm__("x0") = (long)args;
	register long second __asm__("x1") = sizeof *args;
	__asm__ volatile("svc #0\n\t"
			 "cbnz x0, 1f\n\t"
			 "mov x8, #93\n\t"
			 "svc #0\n\t"
			 "1:"
			 : "+r"(first)
			 : "r"(call), "r"(second)
			 : "memory");
	result = first;
#endif
	if (result < 0) {
		errno = (int)-result;
		return -1;
	}
	return result;
}

static int new_clone(int thread)
{
	struct clone_args args = { .exit_signal = SIGCHLD };
	if (thread) {
		args.exit_signal = 0;
		args.flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
		args.stack_size = 65536;
		args.stack = (uintptr_t)mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		return verdict(clone3_thread(&args));
	}
	return finish_child(syscall(SYS_clone3, &args, sizeof args), "cloned");
}

static int new_open(const char *path)
{
	struct open_how how = { .flags = O_CREAT | O_WRONLY, .mode = 0644 };
	return verdict(syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how));
}

static int written_code(void)
{
#ifdef __x86_64__
	static const unsigned char code[] = { 0xb8, 42, 0, 0, 0, 0xc3 };
#else
	static const unsigned char code[] = { 0x40, 0x05, 0x80, 0x52, 0xc0, 0x03, 0x5f, 0xd6 };
#endif
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(page, code, sizeof code);
	__builtin___clear_cache(page, (char *)page + sizeof code);
	if (mprotect(page, 4096, PROT_READ | PROT_EXEC))
		return verdict(-1);
	printf("%d\n", ((int (*)(void))page)());
	return 0;
}

static int list_descriptors(void)
{
	for (int fd = 0; fd < 256; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			printf("%d\n", fd);
	return 0;
}

static int name(const char *what, char **argv)
{
	char text[4096] = "";
	if (!strcmp(what, "argv0"))
		snprintf(text, sizeof text, "%s", argv[0]);
	else if (!strcmp(what, "comm"))
		prctl(PR_GET_NAME, text);
	else if (readlink("/proc/self/exe", text, sizeof text - 1) < 0)
		return verdict(-1);
	puts(text);
	return 0;
}

static int act(char **argv, char **words)
{
	const char *what = words[0], *one = what ? words[1] : NULL;
	if (!what)
		return 99;
	if (!strcmp(what, "close-all")) {
		syscall(SYS_close_range, 0u, ~0u, 0);
		return act(argv, words + 1);
	}
	if (!strcmp(what, "fork"))
		return finish_child(fork(), "forked");
	if (!strcmp(what, "thread"))
		return start_thread();
	if (!strcmp(what, "clone3"))
		return new_clone(0);
	if (!strcmp(what, "clone3-thread"))
		return new_clone(1);
	if (!strcmp(what, "wx"))
		return written_code();
	if (!strcmp(what, "fds"))
		return list_descriptors();
	if (!strcmp(what, "argv0") || !strcmp(what, "exe") || !strcmp(what, "comm"))
		return name(what, argv);
	if (!strcmp(what, "env")) {
		for (char **entry = environ; *entry; entry++)
			puts(*entry);
		return 0;
	}
	if (!strcmp(what, "sleep")) {
		puts("sleeping");
		fflush(stdout);
		return pause();
	}
	if (!one)
		return 99;
	if (!strcmp(what, "create"))
		return create(one);
	if (!strcmp(what, "read"))
		return show(one);
	if (!strcmp(what, "connect"))
		return connect_tcp(one);
	if (!strcmp(what, "connect-unix"))
		return connect_unix(one);
	if (!strcmp(what, "exec"))
		return verdict(syscall(SYS_execve, one, words + 1, environ));
	if (!strcmp(what, "spawn"))
		return spawn(words + 1);
	if (!strcmp(what, "syscall"))
		return any_call(words + 1);
	if (!strcmp(what, "int80"))
		return gate32(words + 1);
	if (!strcmp(what, "openat2"))
		return new_open(one);
	if (!strcmp(what, "say-and-die")) {
		puts("last words");
		fflush(stdout);
		kill(getpid(), atoi(one));
		return 99;
	}
	return 99;
}

int main(int argc, char **argv)
{
	(void)argc;
	return act(argv, argv + 1);
}
