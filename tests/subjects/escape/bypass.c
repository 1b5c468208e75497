/* Ways around a filter: other tables of calls, code that runs early, filters of its own. */
#define _GNU_SOURCE
#include "escape.h"
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/user.h>

#define ACT(name, body) static int name(void) { return body; }
#define X32 0x40000000

extern const char __ehdr_start[], narrow_code[], narrow_end[];

static long narrow(long number, long b, long c, long d)
{
	long result;
	__asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(b), "c"(c), "d"(d) : "memory", "r8", "r9", "r10", "r11");
	result = (int)result;
	if (result < 0 && result > -4096) {
		errno = -result;
		return -1;
	}
	return result;
}

/* Memory that a 32-bit pointer can reach. */
static char *low(void)
{
	return mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
}

static int narrow_file(void)
{
	char *path = strcpy(low(), outside("made"));
	return done(narrow(8 /* creat */, (long)path, 0600, 0));
}

static int narrow_socket(void)
{
	uint32_t *words = (uint32_t *)low();
	struct sockaddr_in *to = (void *)(words + 16);
	long fd;
	to->sin_family = AF_INET;
	to->sin_port = htons(facts.tcp);
	to->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	words[0] = AF_INET, words[1] = SOCK_STREAM, words[2] = 0;
	fd = narrow(102 /* socketcall */, 1, (long)words, 0);
	if (fd < 0)
		return done(fd);
	words[0] = fd, words[1] = (uint32_t)(long)to, words[2] = sizeof *to;
	return done(narrow(102, 3, (long)words, 0));
}

ACT(narrow_namespace, narrow(310 /* unshare */, CLONE_NEWUSER, 0, 0) ? done(-1) : (say(ESCAPED), 0))
ACT(narrow_program, done(execv("./narrow", (char *[]){ "narrow", NULL })))

/* 32-bit code in this very program's file: it makes the file that ebx names, and ends. */
__asm__(".pushsection .text\n.globl narrow_code, narrow_end\n.code32\n"
	"narrow_code: mov $8, %eax\n mov $0600, %ecx\n int $0x80\n mov $1, %eax\n xor %ebx, %ebx\n int $0x80\n"
	"narrow_end:\n.code64\n.popsection\n");

static int narrow_segment(void)
{
	char *memory = low(), *code;
	char *path = strcpy(memory, outside("made"));
	long offset = narrow_code - __ehdr_start;
	code = mmap(NULL, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_32BIT, open("/proc/self/exe", O_RDONLY), offset & ~4095L);
	if (code == MAP_FAILED)
		return done(-1);
	code += offset & 4095;
	__asm__ volatile("mov %2, %%rsp\n push $0x23\n push %1\n lretq"
			 :: "b"(path), "r"(code), "r"(memory + 8000) : "memory");
	return 1;
}

ACT(x32_call, done(syscall(X32 | SYS_getpid)))
ACT(x32_namespace, syscall(X32 | SYS_unshare, CLONE_NEWUSER) ? done(-1) : (say(ESCAPED), 0))
ACT(high_number, syscall(HIGH | SYS_unshare, CLONE_NEWUSER) ? done(-1) : (say(ESCAPED), 0))

static int in_child(int flags)
{
	int status;
	long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		_exit(forbidden());
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return done(-1);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

ACT(child, in_child(0))
ACT(executed, done(execv("/proc/self/exe", again("forbidden"))))
ACT(second_exec, done(execv("/proc/self/exe", again("say"))))
ACT(executed_at, done(syscall(SYS_execveat, AT_FDCWD, "/proc/self/exe", again("say"), environ, 0)))
ACT(by_loader, done(execv("/lib64/ld-linux-x86-64.so.2", (char *[]){ "ld.so", "./escape", "forbidden", NULL })))
ACT(static_program, done(execv("./escape-static", again("forbidden"))))
ACT(own_loader, done(execv("./own-loader", again("forbidden"))))
ACT(early_code, done(execv("./early", again("forbidden"))))
ACT(resolver_code, done(execv("./early-resolver", again("forbidden"))))

static int memory_file(void)
{
	int fd = memfd_create("escape", 0), from = open("/proc/self/exe", O_RDONLY);
	struct stat size;
	if (fd < 0 || from < 0 || fstat(from, &size))
		return done(-1);
	while (syscall(SYS_sendfile, fd, from, NULL, size.st_size) > 0)
		;
	return done(syscall(SYS_execveat, fd, "", again("forbidden"), environ, AT_EMPTY_PATH));
}

/* A filter of its own with one answer to unshare(2). */
static long filter(unsigned answer, unsigned flags)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, answer),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { LENGTH(code), code };
	if (syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

ACT(filter_allows, filter(SECCOMP_RET_ALLOW, 0) < 0 ? done(-1) : forbidden())
ACT(filter_logs, filter(SECCOMP_RET_LOG, SECCOMP_FILTER_FLAG_TSYNC) < 0 ? done(-1) : forbidden())
ACT(filter_off, (syscall(SYS_prctl, PR_SET_SECCOMP, 0, 0, 0, 0), forbidden()))

/* Answers its own notification with "go on". */
static int filter_continues(void)
{
	struct seccomp_notif asked = { 0 };
	struct seccomp_notif_resp answer = { .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };
	long listener = filter(SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER);
	int status;
	pid_t pid;
	if (listener < 0)
		return done(listener);
	pid = fork();
	if (pid == 0)
		_exit(forbidden());
	if (pid < 0 || ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked))
		return done(-1);
	answer.id = asked.id;
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer) || waitpid(pid, &status, 0) < 0)
		return done(-1);
	return WEXITSTATUS(status);
}

static int traced(void)
{
	struct user_regs_struct registers;
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0))
			_exit(1);
		raise(SIGSTOP);
		_exit(syscall(SYS_getppid, CLONE_NEWUSER) ? 1 : 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return done(-1);
	if (!WIFSTOPPED(status) || ptrace(PTRACE_SYSCALL, pid, 0, 0) || waitpid(pid, &status, 0) < 0)
		return refused("not traced");
	if (!WIFSTOPPED(status) || ptrace(PTRACE_GETREGS, pid, 0, &registers))
		return refused("not traced");
	registers.orig_rax = SYS_unshare;
	if (ptrace(PTRACE_SETREGS, pid, 0, &registers) || ptrace(PTRACE_CONT, pid, 0, 0) || waitpid(pid, &status, 0) < 0)
		return done(-1);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		say(ESCAPED);
	return !WIFEXITED(status) || WEXITSTATUS(status);
}

static int suspended_filter(void)
{
	return done(ptrace(PTRACE_SEIZE, facts.victim, 0, PTRACE_O_SUSPEND_SECCOMP));
}

static int wider_rules(void)
{
	struct landlock_ruleset_attr attr = { .handled_access_fs = LANDLOCK_ACCESS_FS_READ_FILE };
	struct landlock_path_beneath_attr rule = { LANDLOCK_ACCESS_FS_READ_FILE, open("/", O_PATH) };
	long rules = syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
	if (rules < 0 || syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0))
		return done(-1);
	syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return syscall(SYS_landlock_restrict_self, rules, 0) ? done(-1) : leak(home(".ssh/id_rsa"));
}

ACT(open_high, opens("inside", 0) ? 1 : done(syscall(SYS_openat, AT_FDCWD, "inside", O_WRONLY | HIGH, 0)))
ACT(personality_high, done(syscall(SYS_personality, 0x0400000 | HIGH)))
ACT(untie, done(syscall(SYS_prctl, PR_SET_PDEATHSIG, 0, 0, 0, 0)))
ACT(untie_high, done(syscall(SYS_prctl, PR_SET_PDEATHSIG | HIGH, 0, 0, 0, 0)))

static int open_by_memory(void)
{
	uint64_t how[3] = { O_WRONLY | O_CREAT, 0600, 0 };
	return done(syscall(SYS_openat2, AT_FDCWD, outside("made"), how, sizeof how));
}

const struct attempt bypass[] = {
	{ "narrow-file", narrow_file },
	{ "narrow-socket", narrow_socket },
	{ "narrow-namespace", narrow_namespace },
	{ "narrow-segment", narrow_segment },
	{ "narrow-program", narrow_program },
	{ "x32-call", x32_call },
	{ "x32-namespace", x32_namespace },
	{ "high-number", high_number },
	{ "child", child },
	{ "executed", executed },
	{ "second-exec", second_exec },
	{ "second-exec-at", executed_at },
	{ "by-loader", by_loader },
	{ "static-program", static_program },
	{ "own-loader", own_loader },
	{ "early-code", early_code },
	{ "resolver-code", resolver_code },
	{ "memory-file-program", memory_file },
	{ "filter-allows", filter_allows },
	{ "filter-logs", filter_logs },
	{ "filter-off", filter_off },
	{ "filter-continues", filter_continues },
	{ "changed-number", traced },
	{ "suspended-filter", suspended_filter },
	{ "wider-rules", wider_rules },
	{ "open-high", open_high },
	{ "personality-high", personality_high },
	{ "open-by-memory", open_by_memory },
	{ "untie", untie },
	{ "untie-high", untie_high },
	{ NULL, NULL },
};
