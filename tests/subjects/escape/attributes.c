/* Modes, owners, times and flags of files outside, which Landlock has no right for. */
#define _GNU_SOURCE
#include "escape.h"
#include <linux/fs.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <sys/xattr.h>

#ifndef SYS_setxattrat
#define SYS_setxattrat 463
#endif
#ifndef SYS_file_setattr
#define SYS_file_setattr 469
#endif
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#define ACT(name, body) static int name(void) { return body; }
#define TARGET outside("attributes")

static const struct timeval long_ago[2] = { { 1000, 0 }, { 1000, 0 } };

ACT(chmod_outside, done(chmod(TARGET, 0777)))
ACT(fchmodat2_outside, done(syscall(SYS_fchmodat2, AT_FDCWD, TARGET, 0777, 0)))
ACT(chmod_by_link, done(chmod("way-outside/attributes", 0777)))
ACT(chown_outside, done(chown(TARGET, getuid(), getgid())))
ACT(utimes_outside, done(utimes(TARGET, long_ago)))
ACT(set_attribute, done(setxattr(TARGET, "user.escape", "x", 1, 0)))
ACT(remove_attribute, setxattr(TARGET, "user.escape", "x", 1, 0) ? done(-1) : done(removexattr(TARGET, "user.escape")))

static int chmod_place(void)
{
	char path[32];
	int fd = open(TARGET, O_PATH);
	if (fd < 0)
		return done(fd);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return done(chmod(path, 0777));
}

static int set_attribute_at(void)
{
	struct { uint64_t value; uint32_t size, flags; } what = { (uint64_t)"x", 1, 0 };
	return done(syscall(SYS_setxattrat, AT_FDCWD, TARGET, 0, "user.escape", &what, sizeof what));
}

static int set_flags(void)
{
	long flags = 0;
	int fd = open(home(".local/bin/readable"), O_RDONLY);
	if (fd < 0 || ioctl(fd, FS_IOC_GETFLAGS, &flags))
		return done(-1);
	flags |= FS_NODUMP_FL;
	return done(ioctl(fd, FS_IOC_SETFLAGS, &flags));
}

static int set_flags_by_call(void)
{
	uint64_t attr[3] = { FS_XFLAG_NODUMP, 0, 0 };
	return done(syscall(SYS_file_setattr, AT_FDCWD, TARGET, attr, sizeof attr, 0));
}

static int set_project(void)
{
	struct fsxattr attr;
	int fd = open(home(".local/bin/readable"), O_RDONLY);
	if (fd < 0 || ioctl(fd, FS_IOC_FSGETXATTR, &attr))
		return done(-1);
	attr.fsx_xflags |= FS_XFLAG_NOATIME;
	return done(ioctl(fd, FS_IOC_FSSETXATTR, &attr));
}

/* A decision by a path that the caller can change meanwhile is about another file. */
static volatile int changing;
static char path[4096], good[4096], bad[4096];

static void *change_memory(void *nothing)
{
	while (changing) {
		memcpy(path, bad, sizeof path);
		SEEN;
		memcpy(path, good, sizeof path);
		SEEN;
	}
	return nothing;
}

static void *change_names(void *nothing)
{
	while (changing)
		syscall(SYS_renameat2, AT_FDCWD, "swing", AT_FDCWD, "other", RENAME_EXCHANGE);
	return nothing;
}

static int race(void *(*change)(void *), const char *what)
{
	pthread_t thread;
	long last = -1, start = now();
	changing = 1;
	if (pthread_create(&thread, NULL, change, NULL))
		return refused("no thread");
	for (; now() - start < RACE; sched_yield())
		last = chmod(what, 0777);
	changing = 0;
	pthread_join(thread, NULL);
	return done(last);
}

static int chmod_changed_memory(void)
{
	snprintf(good, sizeof good, "inside");
	snprintf(bad, sizeof bad, "%s", TARGET);
	return race(change_memory, path);
}

static int chmod_exchanged_links(void)
{
	if (symlink("inside", "swing") || symlink(TARGET, "other"))
		return done(-1);
	return race(change_names, "swing");
}

static int chmod_exchanged_directories(void)
{
	if (mkdir("swing", 0755) || append("swing/attributes") || symlink(facts.outside, "other"))
		return done(-1);
	return race(change_names, "swing/attributes");
}

const struct attempt attributes[] = {
	{ "chmod-outside", chmod_outside },
	{ "fchmodat2-outside", fchmodat2_outside },
	{ "chmod-by-link", chmod_by_link },
	{ "chmod-place", chmod_place },
	{ "chmod-changed-memory", chmod_changed_memory },
	{ "chmod-exchanged-links", chmod_exchanged_links },
	{ "chmod-exchanged-directories", chmod_exchanged_directories },
	{ "chown-outside", chown_outside },
	{ "utimes-outside", utimes_outside },
	{ "setxattr-outside", set_attribute },
	{ "setxattrat-outside", set_attribute_at },
	{ "removexattr-outside", remove_attribute },
	{ "set-flags", set_flags },
	{ "set-flags-by-call", set_flags_by_call },
	{ "set-project", set_project },
	{ NULL, NULL },
};
