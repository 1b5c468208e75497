/* Namespaces, in which one is root and sees parts of the kernel that are closed to ordinary users. */
#define _GNU_SOURCE
#include "escape.h"
#include <linux/sched.h>

#define ACT(name, body) static int name(void) { return body; }
#define LEAVES(name, flags) ACT(name, done(syscall(SYS_unshare, (long)(flags))))

LEAVES(user, CLONE_NEWUSER)
LEAVES(mounts, CLONE_NEWNS)
LEAVES(net, CLONE_NEWNET)
LEAVES(numbers, CLONE_NEWPID)
LEAVES(ipc, CLONE_NEWIPC)
LEAVES(names, CLONE_NEWUTS)
LEAVES(groups, CLONE_NEWCGROUP)
LEAVES(times, 0x80)
LEAVES(user_and_mounts, CLONE_NEWUSER | CLONE_NEWNS)
LEAVES(user_and_net, CLONE_NEWUSER | CLONE_NEWNET)

static int ended(long pid)
{
	if (pid == 0)
		_exit(0);
	if (pid > 0)
		waitpid(pid, NULL, __WALL);
	return done(pid);
}

ACT(cloned, ended(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0)))
ACT(cloned_high, ended(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD | HIGH, 0, 0, 0, 0)))

static int cloned_by_memory(void)
{
	struct clone_args args = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
	return ended(syscall(SYS_clone3, &args, sizeof args));
}

static int entered(const char *name)
{
	return done(setns(open(of_victim(name), O_RDONLY), 0));
}

ACT(entered_net, entered("ns/net"))
ACT(entered_mounts, entered("ns/mnt"))
ACT(entered_by_process, done(setns(syscall(SYS_pidfd_open, facts.victim, 0), CLONE_NEWNET)))

const struct attempt namespaces[] = {
	{ "user-namespace", user },
	{ "mount-namespace", mounts },
	{ "net-namespace", net },
	{ "pid-namespace", numbers },
	{ "ipc-namespace", ipc },
	{ "uts-namespace", names },
	{ "cgroup-namespace", groups },
	{ "time-namespace", times },
	{ "user-and-mount-namespace", user_and_mounts },
	{ "user-and-net-namespace", user_and_net },
	{ "cloned-namespace", cloned },
	{ "cloned-namespace-high", cloned_high },
	{ "namespace-by-memory", cloned_by_memory },
	{ "enter-net-namespace", entered_net },
	{ "enter-mount-namespace", entered_mounts },
	{ "enter-by-process", entered_by_process },
	{ NULL, NULL },
};
