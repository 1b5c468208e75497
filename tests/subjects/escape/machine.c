/* Mounts, device nodes, and the files that control a machine. Everything is restored. */
#define _GNU_SOURCE
#include "escape.h"
#include <linux/fs.h>
#include <linux/mount.h>
#include <sys/acct.h>
#include <sys/fanotify.h>
#include <sys/mount.h>
#include <sys/swap.h>
#include <sys/sysmacros.h>

#define ACT(name, body) static int name(void) { return body; }

ACT(pivot, reached(syscall(SYS_pivot_root, ".", ".")))
ACT(unmount, reached(umount2("mount", UMOUNT_NOFOLLOW)))
ACT(change_root, done(chroot(".")))
ACT(mount_attributes, reached(syscall(SYS_mount_setattr, AT_FDCWD, "mount", 0, &(struct mount_attr){ 0 }, sizeof(struct mount_attr))))
ACT(account, reached(acct("/nowhere/at/all")))
ACT(swap_on, reached(swapon("inside", 0)))
ACT(swap_off, reached(swapoff("/nowhere/at/all")))
ACT(quota, reached(syscall(SYS_quotactl, 0x800002 << 8, "/nowhere/at/all", 0, 0)))
ACT(character_device, done(mknod("made", S_IFCHR | 0600, makedev(1, 3))))
ACT(block_device, done(mknod("made", S_IFBLK | 0600, makedev(7, 0))))
ACT(core_pattern, opens("/proc/sys/kernel/core_pattern", O_WRONLY))
ACT(hostname_file, opens("/proc/sys/kernel/hostname", O_WRONLY))
ACT(uevent_helper, opens("/sys/kernel/uevent_helper", O_WRONLY))
ACT(sysrq, opens("/proc/sysrq-trigger", O_WRONLY))
ACT(binfmt, opens("/proc/sys/fs/binfmt_misc/register", O_WRONLY))
ACT(kernel_memory, opens("/proc/kcore", O_RDONLY))
ACT(physical_memory, opens("/dev/mem", O_RDONLY))
ACT(kernel_messages, opens("/proc/kmsg", O_RDONLY | O_NONBLOCK))
ACT(message_device, opens("/dev/kmsg", O_RDONLY | O_NONBLOCK))
ACT(symbols, opens("/proc/kallsyms", O_RDONLY))
ACT(key_names, opens("/proc/keys", O_RDONLY))
ACT(fuse, opens("/dev/fuse", O_RDWR))
ACT(tun, opens("/dev/net/tun", O_RDWR))
ACT(kvm, opens("/dev/kvm", O_RDWR))
ACT(loop_control, opens("/dev/loop-control", O_RDWR))
ACT(console, opens("/dev/tty1", O_RDWR | O_NOCTTY))
ACT(block_read, opens("/dev/loop0", O_RDONLY))
ACT(password_file, opens("/etc/passwd", O_WRONLY))
ACT(program_file, opens("/usr/bin/env", O_WRONLY))

static int first_of(const char *const *paths, int flags)
{
	int got = 1;
	for (; *paths && got; paths++)
		got = done(open(*paths, flags));
	return got;
}

static int control_group(void)
{
	static const char *const paths[] = {
		"/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/unified/cgroup.procs", "/sys/fs/cgroup/cpu/cgroup.procs",
		"/sys/fs/cgroup/hugetlb/cgroup.procs", "/sys/fs/cgroup/memory/release_agent", NULL,
	};
	return first_of(paths, O_WRONLY);
}

static int temporary_file(void)
{
	char path[64];
	snprintf(path, sizeof path, "/var/tmp/escape-%d", getpid());
	if (append(path))
		return 1;
	return done(unlink(path));
}

static int bind_mount(void)
{
	int got;
	if (mkdir("mount", 0700) && errno != EEXIST)
		return done(-1);
	if (mount(facts.outside, "mount", NULL, MS_BIND, NULL))
		return done(-1);
	got = leak("mount/secret");
	umount2("mount", MNT_DETACH);
	return got;
}

static int memory_mount(void)
{
	if (mkdir("mount", 0700) && errno != EEXIST)
		return done(-1);
	if (mount("none", "mount", "tmpfs", 0, "size=4k"))
		return done(-1);
	return done(umount2("mount", MNT_DETACH));
}

static int cloned_tree(void)
{
	return show(openat(syscall(SYS_open_tree, AT_FDCWD, facts.outside, OPEN_TREE_CLONE), "secret", O_RDONLY));
}

static int opened_tree(void)
{
	return show(openat(syscall(SYS_open_tree, AT_FDCWD, facts.outside, 0), "secret", O_RDONLY));
}

static int moved_mount(void)
{
	long tree = syscall(SYS_open_tree, AT_FDCWD, facts.outside, OPEN_TREE_CLONE);
	int got;
	if (mkdir("mount", 0700) && errno != EEXIST)
		return done(-1);
	if (tree < 0 || syscall(SYS_move_mount, (int)tree, "", AT_FDCWD, "mount", MOVE_MOUNT_F_EMPTY_PATH))
		return done(-1);
	got = leak("mount/secret");
	umount2("mount", MNT_DETACH);
	return got;
}

static int new_file_system(void)
{
	return done(syscall(SYS_fsopen, "tmpfs", 0));
}

static int picked_file_system(void)
{
	return done(syscall(SYS_fspick, AT_FDCWD, "/", 0));
}

static int file_notification(void)
{
	int fd = fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_FID, O_RDONLY);
	return fd < 0 ? done(fd) : done(fanotify_mark(fd, FAN_MARK_ADD, FAN_CREATE | FAN_ONDIR, AT_FDCWD, facts.outside));
}

static int supervisors_program(void)
{
	long fd = open(below_proc(getppid(), "exe"), O_RDWR);
	/* The question of rights comes first. */
	return fd < 0 && errno == ETXTBSY ? 0 : done(fd);
}

const struct attempt machine[] = {
	{ "bind-mount", bind_mount },
	{ "memory-mount", memory_mount },
	{ "cloned-tree", cloned_tree },
	{ "opened-tree", opened_tree },
	{ "moved-mount", moved_mount },
	{ "new-file-system", new_file_system },
	{ "picked-file-system", picked_file_system },
	{ "mount-attributes", mount_attributes },
	{ "unmount", unmount },
	{ "pivot-root", pivot },
	{ "change-root", change_root },
	{ "fanotify", file_notification },
	{ "account", account },
	{ "swap-on", swap_on },
	{ "swap-off", swap_off },
	{ "quota", quota },
	{ "character-device", character_device },
	{ "block-device", block_device },
	{ "block-read", block_read },
	{ "core-pattern", core_pattern },
	{ "hostname-file", hostname_file },
	{ "uevent-helper", uevent_helper },
	{ "sysrq", sysrq },
	{ "binfmt-register", binfmt },
	{ "control-group", control_group },
	{ "kernel-memory", kernel_memory },
	{ "physical-memory", physical_memory },
	{ "kernel-messages", kernel_messages },
	{ "message-device", message_device },
	{ "kernel-symbols", symbols },
	{ "key-names", key_names },
	{ "fuse", fuse },
	{ "tun", tun },
	{ "kvm", kvm },
	{ "loop-control", loop_control },
	{ "console", console },
	{ "password-file", password_file },
	{ "program-file", program_file },
	{ "temporary-file", temporary_file },
	{ "supervisors-program", supervisors_program },
	{ NULL, NULL },
};
