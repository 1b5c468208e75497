/* What a tracer of one's own processes could change about them, and about the sandbox above them. */
#define _GNU_SOURCE
#include "escape.h"
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/user.h>

#define ACT(name, body) static int name(void) { return body; }
#define TARGET outside("attributes")

/* Call number, and the arguments that attempts change. */
#ifdef __x86_64__
#define CALL orig_rax
#define FIRST rdi
#define SECOND rsi
#else
#error "the names of the registers are needed"
#endif

/* A child that does nothing but make one call, again and again. */
static pid_t caller(const char *path)
{
	pid_t pid = fork();
	if (pid == 0)
		for (;;)
			syscall(SYS_chmod, path, 0777);
	return pid;
}

/* Ends the child, if there is one: -1 would mean every process of the user. Where that is refused, nobody waits: it
 * ends with the run. */
static int ended(pid_t pid, int result)
{
	if (pid > 0 && kill(pid, SIGKILL) == 0)
		waitpid(pid, NULL, __WALL);
	return result;
}

static int stopped(pid_t pid)
{
	int status;
	return waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status);
}

/* Has the child stop at the entry of its next call, and makes that call another one. */
static int change_call(pid_t pid, long number, long first, long second)
{
	struct user_regs_struct registers;
	if (ptrace(PTRACE_SYSCALL, pid, 0, 0) || !stopped(pid))
		return -1;
	if (ptrace(PTRACE_GETREGS, pid, 0, &registers))
		return -1;
	registers.CALL = number, registers.FIRST = first, registers.SECOND = second;
	if (ptrace(PTRACE_SETREGS, pid, 0, &registers))
		return -1;
	return ptrace(PTRACE_SYSCALL, pid, 0, 0) || !stopped(pid) ? -1 : 0;
}

static pid_t traced(unsigned long options)
{
	pid_t pid = caller("inside");
	if (pid < 0)
		return -1;
	if (ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL | options)
	    || ptrace(PTRACE_INTERRUPT, pid, 0, 0) || !stopped(pid)) {
		int why = errno;
		ended(pid, 0);
		errno = why;
		return -1;
	}
	return pid;
}

static int changed_call(long number, const char *path, long second)
{
	pid_t pid = traced(0);
	/* The child is a copy, so what is here is there. */
	return pid < 0 ? done(-1) : ended(pid, done(change_call(pid, number, (long)path, second)));
}

ACT(changed_path, changed_call(SYS_chmod, TARGET, 0777))
ACT(injected_call, changed_call(SYS_creat, outside("made"), 0600))

/* Interrupts the call while others look at its arguments, and changes the path in registers and in memory. */
static int interrupted(void)
{
	char *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const char *other = TARGET;
	struct user_regs_struct registers;
	long until = now() + RACE;
	pid_t pid = fork();
	strcpy(shared, "inside");
	if (pid == 0)
		for (;;) {
			strcpy(shared, "inside");
			syscall(SYS_chmod, shared, 0777);
		}
	if (pid < 0)
		return done(-1);
	if (ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_EXITKILL))
		return ended(pid, done(-1));
	for (unsigned round = 0; now() < until; round++) {
		if (ptrace(PTRACE_INTERRUPT, pid, 0, 0) || !stopped(pid) || ptrace(PTRACE_GETREGS, pid, 0, &registers))
			return ended(pid, done(-1));
		if (round % 2) {
			registers.FIRST = (long)other;
			ptrace(PTRACE_SETREGS, pid, 0, &registers);
		} else {
			strcpy(shared, other);
		}
		if (ptrace(PTRACE_CONT, pid, 0, 0))
			return ended(pid, done(-1));
	}
	if (ptrace(PTRACE_INTERRUPT, pid, 0, 0) || !stopped(pid))
		return ended(pid, done(-1));
	return ended(pid, done(change_call(pid, SYS_chmod, (long)other, 0777)));
}

static int without_filter(void)
{
	pid_t pid = traced(PTRACE_O_SUSPEND_SECCOMP);
	return pid < 0 ? done(-1) : ended(pid, 0);
}

/* The filter itself, in which the address of the one exec stands. */
static int filter_program(void)
{
	pid_t pid = traced(0);
	char program[8 * 4096];
	return pid < 0 ? done(-1) : ended(pid, reached(ptrace(0x420c /* PTRACE_SECCOMP_GET_FILTER */, pid, 0, program)));
}

static int above(int number)
{
	char text[16];
	struct iovec here = { text, 16 }, there = { (void *)4096, 16 };
	return reached(syscall(number, getppid(), &here, 1, &there, 1, 0));
}

ACT(read_above, above(SYS_process_vm_readv))
ACT(write_above, above(SYS_process_vm_writev))
ACT(priority_above, done(syscall(SYS_setpriority, PRIO_PROCESS, getppid(), 5)))
ACT(priority_above_high, done(syscall(SYS_setpriority, PRIO_PROCESS | HIGH, getppid() | HIGH, 5)))
ACT(priority_of_own_group, done(syscall(SYS_setpriority, PRIO_PGRP, 0, 5)))
ACT(priority_of_user, done(syscall(SYS_setpriority, PRIO_USER, 0, 0)))

const struct attempt tracing[] = {
	{ "changed-path", changed_path },
	{ "injected-call", injected_call },
	{ "interrupted-call", interrupted },
	{ "suspended-own-filter", without_filter },
	{ "filter-program", filter_program },
	{ "read-above", read_above },
	{ "write-above", write_above },
	{ "priority-above", priority_above },
	{ "priority-above-high", priority_above_high },
	{ "priority-of-own-group", priority_of_own_group },
	{ "priority-of-user", priority_of_user },
	{ NULL, NULL },
};
