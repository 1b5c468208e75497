/* Other processes of the same user. */
#define _GNU_SOURCE
#include "escape.h"
#include <linux/futex.h>
#include <linux/kcmp.h>
#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/uio.h>

#define ACT(name, body) static int name(void) { return body; }
#define CALL(...) done(syscall(__VA_ARGS__))
#define VICTIM facts.victim
#define THROUGH_PROC(name, file, flags) ACT(name, opens(of_victim(file), flags))

static long held(void)
{
	return syscall(SYS_pidfd_open, VICTIM, 0);
}

static siginfo_t *queued(void)
{
	static siginfo_t info;
	info.si_code = SI_QUEUE;
	return &info;
}

ACT(signal_process, CALL(SYS_kill, VICTIM, SIGUSR1))
ACT(signal_group, CALL(SYS_kill, -VICTIM, SIGUSR1))
ACT(signal_high, CALL(SYS_kill, VICTIM | HIGH, SIGUSR1))
ACT(signal_thread, CALL(SYS_tgkill, VICTIM, VICTIM, SIGUSR1))
ACT(signal_any_thread, CALL(SYS_tkill, VICTIM, SIGUSR1))
ACT(signal_queued, CALL(SYS_rt_sigqueueinfo, VICTIM, SIGUSR1, queued()))
ACT(signal_thread_queued, CALL(SYS_rt_tgsigqueueinfo, VICTIM, VICTIM, SIGUSR1, queued()))
ACT(signal_held, CALL(SYS_pidfd_send_signal, held(), SIGUSR1, NULL, 0))
ACT(attach, CALL(SYS_ptrace, PTRACE_ATTACH, VICTIM, 0, 0))
ACT(take_descriptor, show(syscall(SYS_pidfd_getfd, held(), VICTIMS_FILE, 0)))
ACT(set_limit, CALL(SYS_prlimit64, VICTIM, RLIMIT_NOFILE, &((struct rlimit){ 64, 64 }), NULL))
ACT(set_limit_high, CALL(SYS_prlimit64, VICTIM | HIGH, RLIMIT_NOFILE, &((struct rlimit){ 64, 64 }), NULL))
ACT(set_priority, CALL(SYS_setpriority, PRIO_PROCESS, VICTIM, 5))
ACT(set_priority_high, CALL(SYS_setpriority, PRIO_PROCESS | HIGH, VICTIM | HIGH, 5))
ACT(set_group_priority, CALL(SYS_setpriority, PRIO_PGRP, VICTIM, 5))
ACT(set_io_priority, CALL(SYS_ioprio_set, 1, VICTIM, 3 << 13))
ACT(set_group_io_priority, CALL(SYS_ioprio_set, 2, VICTIM, 3 << 13))
ACT(set_scheduler, CALL(SYS_sched_setscheduler, VICTIM, SCHED_BATCH, &(struct sched_param){ 0 }))
ACT(set_parameters, CALL(SYS_sched_setparam, VICTIM, &(struct sched_param){ 0 }))
ACT(set_processor, CALL(SYS_sched_setaffinity, VICTIM, sizeof(long), &(long){ 1 }))
ACT(set_processor_high, CALL(SYS_sched_setaffinity, VICTIM | HIGH, sizeof(long), &(long){ 1 }))
ACT(compare, CALL(SYS_kcmp, getpid(), VICTIM, KCMP_VM, 0, 0))
ACT(futex_list, CALL(SYS_get_robust_list, VICTIM, &(void *){ 0 }, &(size_t){ 0 }))
ACT(move_memory, CALL(SYS_move_pages, VICTIM, 0, NULL, NULL, NULL, 0))
ACT(migrate_memory, CALL(SYS_migrate_pages, VICTIM, sizeof(long) * 8, &(long){ 1 }, &(long){ 1 }))
THROUGH_PROC(memory_for_writing, "mem", O_RDWR)
THROUGH_PROC(maps, "maps", O_RDONLY)
THROUGH_PROC(auxiliary, "auxv", O_RDONLY)
THROUGH_PROC(descriptor_numbers, "fd", O_RDONLY | O_DIRECTORY)
ACT(descriptor_list, done(readlink(of_victim("fd/7"), (char[64]){ 0 }, 64)))
THROUGH_PROC(page_map, "pagemap", O_RDONLY)
ACT(kernel_stack, leak(of_victim("stack")))
ACT(current_call, leak(of_victim("syscall")))
THROUGH_PROC(oom_score, "oom_score_adj", O_WRONLY)
THROUGH_PROC(core_filter, "coredump_filter", O_WRONLY)
THROUGH_PROC(clear_references, "clear_refs", O_WRONLY)
THROUGH_PROC(login, "loginuid", O_WRONLY)
ACT(command_line, leak(of_victim("cmdline")))
ACT(environment_of_victim, leak(of_victim("environ")))
ACT(memory_of_supervisor, opens(below_proc(getppid(), "mem"), O_RDONLY))
ACT(descriptors_of_supervisor, done(readlink(below_proc(getppid(), "fd/0"), (char[64]){ 0 }, 64)))
ACT(attach_supervisor, CALL(SYS_ptrace, PTRACE_SEIZE, getppid(), 0, 0))
ACT(take_supervisors_descriptor, CALL(SYS_pidfd_getfd, syscall(SYS_pidfd_open, getppid(), 0), 0, 0))
ACT(scheduling_group, CALL(SYS_prctl, 62, 2, VICTIM, 0, 0))

/* The first bytes of the parent's environment do not say anything; all of it does. */
static int environment_of_supervisor(void)
{
	char buffer[16384];
	int fd = open(below_proc(getppid(), "environ"), O_RDONLY);
	long count = fd < 0 ? -1 : read(fd, buffer, sizeof buffer);
	return count < 0 ? done(count) : done(write(1, buffer, count));
}

static int signal_by_descriptor(void)
{
	int both[2];
	if (pipe(both) || fcntl(both[0], F_SETOWN, VICTIM) || fcntl(both[0], F_SETSIG, SIGUSR1)
	    || fcntl(both[0], F_SETFL, O_ASYNC | O_NONBLOCK))
		return done(-1);
	return done(write(both[1], "x", 1));
}

static int peek(void)
{
	char text[32] = "";
	if (ptrace(PTRACE_SEIZE, VICTIM, 0, 0))
		return done(-1);
	if (ptrace(PTRACE_INTERRUPT, VICTIM, 0, 0) || waitpid(VICTIM, NULL, __WALL) < 0)
		return done(-1);
	for (size_t part = 0; part < 3; part++) {
		long word = ptrace(PTRACE_PEEKDATA, VICTIM, facts.secret + part * sizeof word, 0);
		memcpy(text + part * sizeof word, &word, sizeof word);
	}
	ptrace(PTRACE_DETACH, VICTIM, 0, 0);
	say(text);
	return 0;
}

static int other_memory(int number)
{
	char text[32] = "overwritten";
	struct iovec here = { text, 16 }, there = { (void *)facts.secret, 16 };
	long count = syscall(number, VICTIM, &here, 1, &there, 1, 0);
	if (count > 0)
		say(text);
	return done(count);
}

ACT(read_memory, other_memory(SYS_process_vm_readv))
ACT(write_memory, other_memory(SYS_process_vm_writev))

static int memory_file(void)
{
	char text[32] = "";
	int fd = open(of_victim("mem"), O_RDONLY);
	if (fd < 0 || pread(fd, text, 16, facts.secret) < 0)
		return done(-1);
	say(text);
	return 0;
}

static int advise(void)
{
	struct iovec there = { (void *)(facts.secret & ~4095UL), 4096 };
	return CALL(SYS_process_madvise, held(), &there, 1, 20 /* MADV_COLD */, 0);
}

static int set_attributes(void)
{
	struct { uint32_t size, policy; uint64_t flags; int32_t nice; uint32_t priority; uint64_t times[3]; } attributes =
		{ 48, SCHED_BATCH, 0, 5, 0, { 0 } };
	return CALL(SYS_sched_setattr, VICTIM, &attributes, 0);
}

/* Keys of what the suite has made. */
static int shared_memory(void)
{
	int id = shmget(atoi(facts.extra), 0, 0);
	const char *memory = id < 0 ? (void *)-1 : shmat(id, NULL, SHM_RDONLY);
	if (memory == (void *)-1)
		return done(-1);
	say(memory);
	return 0;
}

static int shared_file(void)
{
	return leak(facts.extra);
}

ACT(message_queue, done(msgget(IPC_PRIVATE, 0600) < 0 ? -1 : 0))
ACT(semaphores, done(semget(IPC_PRIVATE, 1, 0600)))
ACT(posix_queue, done(mq_open("/sbx-escape", O_RDWR | O_CREAT, 0600, NULL) < 0 ? -1 : mq_unlink("/sbx-escape")))

const struct attempt processes[] = {
	{ "signal", signal_process },
	{ "signal-group", signal_group },
	{ "signal-high", signal_high },
	{ "signal-thread", signal_thread },
	{ "signal-any-thread", signal_any_thread },
	{ "signal-queued", signal_queued },
	{ "signal-thread-queued", signal_thread_queued },
	{ "signal-held", signal_held },
	{ "signal-by-descriptor", signal_by_descriptor },
	{ "attach", attach },
	{ "peek", peek },
	{ "read-memory", read_memory },
	{ "write-memory", write_memory },
	{ "memory-file", memory_file },
	{ "memory-for-writing", memory_for_writing },
	{ "advise-memory", advise },
	{ "move-memory", move_memory },
	{ "migrate-memory", migrate_memory },
	{ "take-descriptor", take_descriptor },
	{ "environment-of-victim", environment_of_victim },
	{ "command-line", command_line },
	{ "maps", maps },
	{ "auxiliary-vector", auxiliary },
	{ "descriptor-list", descriptor_list },
	{ "descriptor-numbers", descriptor_numbers },
	{ "page-map", page_map },
	{ "kernel-stack", kernel_stack },
	{ "current-call", current_call },
	{ "oom-score", oom_score },
	{ "core-filter", core_filter },
	{ "clear-references", clear_references },
	{ "login-user", login },
	{ "set-limit", set_limit },
	{ "set-limit-high", set_limit_high },
	{ "set-priority", set_priority },
	{ "set-priority-high", set_priority_high },
	{ "set-group-priority", set_group_priority },
	{ "set-io-priority", set_io_priority },
	{ "set-group-io-priority", set_group_io_priority },
	{ "set-scheduler", set_scheduler },
	{ "set-parameters", set_parameters },
	{ "set-attributes", set_attributes },
	{ "set-processor", set_processor },
	{ "set-processor-high", set_processor_high },
	{ "scheduling-group", scheduling_group },
	{ "compare", compare },
	{ "futex-list", futex_list },
	{ "shared-memory", shared_memory },
	{ "shared-file", shared_file },
	{ "message-queue", message_queue },
	{ "semaphores", semaphores },
	{ "posix-queue", posix_queue },
	{ "memory-of-supervisor", memory_of_supervisor },
	{ "environment-of-supervisor", environment_of_supervisor },
	{ "descriptors-of-supervisor", descriptors_of_supervisor },
	{ "attach-supervisor", attach_supervisor },
	{ "take-supervisors-descriptor", take_supervisors_descriptor },
	{ NULL, NULL },
};
