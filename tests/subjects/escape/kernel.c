/* Parts of the kernel that no command needs, and the terminal. */
#define _GNU_SOURCE
#include "escape.h"
#include <asm/ldt.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>

#define ACT(name, body) static int name(void) { return body; }
#define CALL(...) done(syscall(__VA_ARGS__))

static int bpf_map(void)
{
	union bpf_attr attr = { .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1 };
	return CALL(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof attr);
}

static int bpf_program(void)
{
	static const struct bpf_insn code[] = { { BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0 }, { BPF_JMP | BPF_EXIT, 0, 0, 0, 0 } };
	union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_SOCKET_FILTER, .insns = (uint64_t)code, .insn_cnt = 2,
				.license = (uint64_t)"GPL" };
	return CALL(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof attr);
}

static int counter(int pid)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .size = sizeof attr, .config = PERF_COUNT_SW_CPU_CLOCK };
	attr.exclude_kernel = 1;
	return CALL(SYS_perf_event_open, &attr, pid, -1, -1, 0);
}

ACT(own_counter, counter(0))
ACT(victims_counter, counter(facts.victim))
ACT(page_faults, CALL(SYS_userfaultfd, 1))
ACT(page_fault_device, opens("/dev/userfaultfd", O_RDWR))
ACT(ring, CALL(SYS_io_uring_setup, 1, &(struct io_uring_params){ 0 }))
ACT(module, reached(syscall(SYS_init_module, NULL, 0, "")))
ACT(module_file, reached(syscall(SYS_finit_module, -1, "", 0)))
ACT(module_removal, reached(syscall(SYS_delete_module, "", 0)))
ACT(other_kernel, reached(syscall(SYS_kexec_load, 0, 17, NULL, 0)))
ACT(other_kernel_file, reached(syscall(SYS_kexec_file_load, -1, -1, 0, "", 0)))
ACT(restart, reached(syscall(SYS_reboot, 0, 0, 0, 0)))
ACT(messages, CALL(SYS_syslog, 3, (char[64]){ 0 }, 64))
ACT(log_size, CALL(SYS_syslog, 10, NULL, 0))
ACT(segments, CALL(SYS_modify_ldt, 1, &(struct user_desc){ .entry_number = 0, .limit = 1, .read_exec_only = 1 }, sizeof(struct user_desc)))
ACT(security_attribute, reached(syscall(460, 100, (long[8]){ 0 }, 64, 0)))
ACT(message, CALL(SYS_ioctl, 0, TIOCSTI, "x"))
ACT(message_high, CALL(SYS_ioctl, 0, TIOCSTI | HIGH, "x"))
ACT(paste, reached(syscall(SYS_ioctl, open("/dev/tty1", O_RDWR | O_NOCTTY), TIOCLINUX, "\6")))
ACT(discipline, CALL(SYS_ioctl, 0, TIOCSETD, &(int){ 0 }))
ACT(discipline_high, CALL(SYS_ioctl, 0, TIOCSETD | HIGH, &(int){ 0 }))

static int message_by_name(void)
{
	int fd = open("/dev/tty", O_RDWR);
	return fd < 0 ? done(fd) : CALL(SYS_ioctl, fd, TIOCSTI, "x");
}

ACT(other_terminal, append(facts.extra))
ACT(escape_sequences, (say("\033]0;escaped\a"), 0))

const struct attempt kernel[] = {
	{ "bpf-map", bpf_map },
	{ "bpf-program", bpf_program },
	{ "own-counter", own_counter },
	{ "victims-counter", victims_counter },
	{ "page-faults", page_faults },
	{ "page-fault-device", page_fault_device },
	{ "ring", ring },
	{ "module", module },
	{ "module-file", module_file },
	{ "module-removal", module_removal },
	{ "other-kernel", other_kernel },
	{ "other-kernel-file", other_kernel_file },
	{ "restart", restart },
	{ "log", messages },
	{ "log-size", log_size },
	{ "segments", segments },
	{ "security-attribute", security_attribute },
	{ "type-into-terminal", message },
	{ "type-into-terminal-high", message_high },
	{ "type-by-name", message_by_name },
	{ "paste-into-console", paste },
	{ "line-discipline", discipline },
	{ "line-discipline-high", discipline_high },
	{ "other-terminal", other_terminal },
	{ "escape-sequences", escape_sequences },
	{ NULL, NULL },
};
