/* Set-id bits, capabilities, identities, keys. */
#define _GNU_SOURCE
#include "escape.h"
#include <grp.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <sys/io.h>
#include <sys/resource.h>
#include <sys/timex.h>
#include <sys/xattr.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#define ACT(name, body) static int name(void) { return body; }
#define CALL(...) done(syscall(__VA_ARGS__))
#define SET_ID 04755

int has_rights(void)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { { 0 } };
	syscall(SYS_capget, &head, data);
	if (geteuid() == getuid() && getegid() == getgid() && !data[0].effective)
		return refused("no rights but those of the caller");
	say(ESCAPED);
	return 0;
}

ACT(set_user_program, done(execv("./rooted", again("has-rights"))))
ACT(set_group_program, done(execv("./grouped", again("has-rights"))))
ACT(capable_program, done(execv("./capable", again("has-rights"))))
ACT(exec_again, done(execv("/proc/self/exe", again("has-rights"))))

/* Made means that the bit is there. */
static int has_bit(long result, const char *path)
{
	struct stat found;
	if (result < 0)
		return done(result);
	return stat(path, &found) == 0 && found.st_mode & 06000 ? 0 : refused("the bit was not set");
}

ACT(bit_by_chmod, has_bit(syscall(SYS_chmod, "inside", SET_ID), "inside"))
ACT(bit_by_fchmod, has_bit(syscall(SYS_fchmod, open("inside", O_RDONLY), SET_ID), "inside"))
ACT(bit_by_fchmodat, has_bit(syscall(SYS_fchmodat, AT_FDCWD, "inside", SET_ID), "inside"))
ACT(bit_by_fchmodat2, has_bit(syscall(SYS_fchmodat2, AT_FDCWD, "inside", SET_ID, 0), "inside"))
ACT(bit_by_high_mode, has_bit(syscall(SYS_chmod, "inside", SET_ID | HIGH | 1 << 20), "inside"))
ACT(bit_by_open, has_bit(syscall(SYS_openat, AT_FDCWD, "made", O_CREAT | O_WRONLY, SET_ID), "made"))
ACT(bit_by_creat, has_bit(syscall(SYS_creat, "made", SET_ID), "made"))
ACT(bit_by_mknod, has_bit(syscall(SYS_mknod, "made", S_IFREG | SET_ID, 0), "made"))

static int file_capability(void)
{
	static const uint32_t raw[5] = { 0x02000001, 1 << 13, 0, 0, 0 };
	return done(setxattr("inside", "security.capability", raw, sizeof raw, 0));
}

static int set_capabilities(int inheritable)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { { 1 << CAP_NET_RAW, 1 << CAP_NET_RAW, 0 }, { 0 } };
	data[0].inheritable = inheritable ? 1 << CAP_NET_RAW : 0;
	return CALL(SYS_capset, &head, data);
}

ACT(raise_capability, set_capabilities(0))

static int ambient_capability(void)
{
	if (set_capabilities(1))
		return 1;
	return CALL(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_RAW, 0, 0);
}

ACT(secure_bits, CALL(SYS_prctl, PR_SET_SECUREBITS, 1, 0, 0, 0))
ACT(other_user, CALL(SYS_setresuid, 65533, 65533, 65533))
ACT(other_group, CALL(SYS_setresgid, 65533, 65533, 65533))
ACT(other_groups, done(setgroups(1, &(gid_t){ 65533 })))
ACT(owner, done(chown("inside", 65533, 65533)))
ACT(all_ports, done(ioperm(0x80, 1, 1)))
ACT(port_level, done(iopl(3)))
ACT(priority, done(setpriority(PRIO_PROCESS, 0, -5)))
ACT(real_time, done(sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ 1 })))

static int clock_rate(void)
{
	struct timex now = { .modes = 0 };
	if (syscall(SYS_clock_adjtime, CLOCK_REALTIME, &now) < 0)
		return done(-1);
	now.modes = ADJ_TICK;
	return CALL(SYS_clock_adjtime, CLOCK_REALTIME, &now);
}

static int host_name(void)
{
	char name[256] = "";
	gethostname(name, sizeof name - 1);
	return done(sethostname(name, strlen(name)));
}

static int session_key(void)
{
	char text[64] = "";
	long key = syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user", facts.key, 0);
	if (key < 0 || syscall(SYS_keyctl, KEYCTL_READ, key, text, sizeof text - 1) < 0)
		return done(-1);
	say(ESCAPED);
	return 0;
}

ACT(add_key, CALL(SYS_add_key, "user", "sbx-escape", "x", 1, KEY_SPEC_PROCESS_KEYRING))
ACT(request_key, reached(syscall(SYS_request_key, "user", "sbx-escape-none", NULL, KEY_SPEC_PROCESS_KEYRING)))
ACT(join_session, CALL(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL))
ACT(user_keyring, CALL(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 1))
ACT(persistent_keyring, CALL(SYS_keyctl, KEYCTL_GET_PERSISTENT, -1, KEY_SPEC_PROCESS_KEYRING))

const struct attempt privileges[] = {
	{ "set-user-program", set_user_program },
	{ "set-group-program", set_group_program },
	{ "capable-program", capable_program },
	{ "exec-again-as-root", exec_again },
	{ "bit-by-chmod", bit_by_chmod },
	{ "bit-by-fchmod", bit_by_fchmod },
	{ "bit-by-fchmodat", bit_by_fchmodat },
	{ "bit-by-fchmodat2", bit_by_fchmodat2 },
	{ "bit-by-high-mode", bit_by_high_mode },
	{ "bit-by-open", bit_by_open },
	{ "bit-by-creat", bit_by_creat },
	{ "bit-by-mknod", bit_by_mknod },
	{ "file-capability", file_capability },
	{ "raise-capability", raise_capability },
	{ "ambient-capability", ambient_capability },
	{ "secure-bits", secure_bits },
	{ "other-user", other_user },
	{ "other-group", other_group },
	{ "other-groups", other_groups },
	{ "other-owner", owner },
	{ "port-access", all_ports },
	{ "port-level", port_level },
	{ "higher-priority", priority },
	{ "real-time", real_time },
	{ "clock-rate", clock_rate },
	{ "host-name", host_name },
	{ "session-key", session_key },
	{ "add-key", add_key },
	{ "request-key", request_key },
	{ "join-session", join_session },
	{ "user-keyring", user_keyring },
	{ "persistent-keyring", persistent_keyring },
	{ NULL, NULL },
};
