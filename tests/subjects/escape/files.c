/* Contents and names of files outside. */
#define _GNU_SOURCE
#include "escape.h"
#include <linux/fs.h>
#include <pthread.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/un.h>

#define SECRET ".ssh/id_rsa"
#define ACT(name, body) static int name(void) { return body; }
#define AT_HERE AT_FDCWD

ACT(read_secret, leak(home(SECRET)))
ACT(dotdot, leak("../" SECRET))
ACT(dotdot_of_descriptor, show(openat(open(".", O_RDONLY | O_DIRECTORY), "../" SECRET, O_RDONLY)))
ACT(own_cwd, leak("/proc/self/cwd/../" SECRET))
ACT(own_root, leak(below("/proc/self/root", home(SECRET))))
ACT(thread_root, leak(below("/proc/thread-self/root", home(SECRET))))
ACT(victims_root, leak(below(of_victim("root"), home(SECRET))))
ACT(victims_cwd, leak(of_victim("cwd/secret")))
ACT(victims_file, leak(below(of_victim("fd"), "7")))
/* Links that came with the workspace. */
ACT(link_read, leak("way-to-secret"))
ACT(link_write, append("way-outside/kept"))
ACT(link_made, symlink(home(SECRET), "made-link") ? done(-1) : leak("made-link"))
ACT(append_outside, append(outside("kept")))
ACT(create_outside, append(outside("made")))
ACT(create_by_open, done(syscall(SYS_creat, outside("made"), 0600)))
ACT(mkdir_outside, done(mkdir(outside("made"), 0700)))
ACT(fifo_outside, done(mknod(outside("made"), S_IFIFO | 0600, 0)))
ACT(symlink_outside, done(symlink("/", outside("made"))))
ACT(unlink_outside, done(unlink(outside("kept"))))
ACT(rmdir_outside, done(rmdir(outside("empty"))))
ACT(truncate_outside, done(truncate(outside("kept"), 0)))
ACT(open_truncate_outside, opens(outside("kept"), O_RDONLY | O_TRUNC))
ACT(rename_out, done(rename("inside", outside("made"))))
ACT(rename_in, done(rename(outside("kept"), "taken")))
ACT(rename_beside, done(rename(outside("kept"), outside("made"))))
ACT(exchange, done(syscall(SYS_renameat2, AT_HERE, "inside", AT_HERE, outside("kept"), RENAME_EXCHANGE)))
ACT(hard_link_in, link(outside("kept"), "link") ? done(-1) : append("link"))
ACT(hard_link_out, done(link("inside", outside("made"))))
ACT(read_shadow, opens("/etc/shadow", O_RDONLY))
ACT(leaked_file, show(LEAKED_FILE))
ACT(leaked_directory, done(openat(LEAKED_DIRECTORY, "kept", O_WRONLY | O_TRUNC)))
ACT(leaked_place, fchdir(LEAKED_DIRECTORY) ? done(-1) : leak("secret"))
ACT(leaked_by_proc, leak("/proc/self/fd/209/secret"))
ACT(execute_outside, done(execv(outside("program"), again("say"))))
ACT(stat_hidden, done(access(home(SECRET), F_OK)))
ACT(link_hidden, done(readlink(outside("link"), (char[64]){ 0 }, 64)))
ACT(watch_hidden, done(inotify_add_watch(inotify_init1(0), facts.outside, IN_CREATE)))
ACT(mark_hidden, done(syscall(SYS_name_to_handle_at, AT_HERE, outside("kept"), &(struct file_handle){ .handle_bytes = 0 }, &(int){ 0 }, 0) < 0 && errno == EOVERFLOW ? 0 : -1))
ACT(lock_readable, done(syscall(SYS_fcntl, open(home(".gitconfig"), O_RDONLY), F_SETLEASE, F_RDLCK)))

static int hard_link_of_descriptor(void)
{
	int fd = open(outside("kept"), O_PATH);
	return linkat(fd, "", AT_HERE, "link", AT_EMPTY_PATH) ? done(-1) : append("link");
}

static int hard_link_of_magic_link(void)
{
	char path[32];
	snprintf(path, sizeof path, "/proc/self/fd/%d", open(outside("kept"), O_PATH));
	return linkat(AT_HERE, path, AT_HERE, "link", AT_SYMLINK_FOLLOW) ? done(-1) : append("link");
}

static int nameless_outside(void)
{
	char path[32];
	int fd = open(facts.outside, O_TMPFILE | O_RDWR, 0600);
	if (fd < 0)
		return done(fd);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return done(linkat(AT_HERE, path, AT_HERE, outside("made"), AT_SYMLINK_FOLLOW));
}

static int reopen_place(void)
{
	char path[32];
	int fd = open(outside("secret"), O_PATH);
	if (fd < 0)
		return done(fd);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return leak(path);
}

static int reopen_stdin(void)
{
	long fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/fd/0", O_WRONLY | O_APPEND, 0);
	return fd < 0 ? done(fd) : done(write(fd, "escape\n", 7));
}

static int execute_place(void)
{
	int fd = open(outside("program"), O_PATH);
	return fd < 0 ? done(fd) : done(syscall(SYS_execveat, fd, "", again("say"), environ, AT_EMPTY_PATH));
}

static int execute_by_loader(void)
{
	char *words[] = { "ld.so", (char *)outside("program"), "say", NULL };
	return done(execv("/lib64/ld-linux-x86-64.so.2", words));
}

static int moved_directory(void)
{
	int fd;
	if (mkdir("deep", 0700) || mkdir("deep/inner", 0700))
		return done(-1);
	fd = open("deep/inner", O_RDONLY | O_DIRECTORY);
	if (fd < 0 || rename("deep/inner", "inner"))
		return done(-1);
	return show(openat(fd, "../../" SECRET, O_RDONLY));
}

static int socket_outside(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	strcpy(at.sun_path, outside("made"));
	return done(bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&at, sizeof at));
}

static int by_handle(void)
{
	struct { struct file_handle head; char room[128]; } handle = { .head.handle_bytes = 128 };
	int mount;
	if (name_to_handle_at(AT_FDCWD, outside("secret"), &handle.head, &mount, 0))
		return done(-1);
	return show(open_by_handle_at(open(".", O_RDONLY | O_DIRECTORY), &handle.head, O_RDONLY));
}

/* Two links are swapped over and over, as long as the attempt lasts. */
static volatile int swinging;

static void *swing(void *nothing)
{
	while (swinging)
		syscall(SYS_renameat2, AT_HERE, "swing", AT_HERE, "other", RENAME_EXCHANGE);
	return nothing;
}

static int exchanged_links(void)
{
	pthread_t thread;
	int got = 1;
	if (symlink("inside", "swing") || symlink(home(SECRET), "other"))
		return done(-1);
	swinging = 1;
	if (pthread_create(&thread, NULL, swing, NULL))
		return refused("no thread");
	for (long start = now(); now() - start < RACE && got; sched_yield()) {
		char byte;
		int fd = open("swing", O_RDONLY);
		if (fd >= 0 && read(fd, &byte, 1) == 1 && byte == 'p')
			got = lseek(fd, 0, SEEK_SET) ? 1 : show(fd);
		close(fd);
	}
	swinging = 0;
	pthread_join(thread, NULL);
	return got;
}

const struct attempt files[] = {
	{ "read-secret", read_secret },
	{ "dotdot", dotdot },
	{ "dotdot-of-descriptor", dotdot_of_descriptor },
	{ "moved-directory", moved_directory },
	{ "own-cwd", own_cwd },
	{ "own-root", own_root },
	{ "thread-root", thread_root },
	{ "victims-root", victims_root },
	{ "victims-cwd", victims_cwd },
	{ "victims-file", victims_file },
	{ "link-read", link_read },
	{ "link-write", link_write },
	{ "link-made", link_made },
	{ "exchanged-links", exchanged_links },
	{ "append-outside", append_outside },
	{ "create-outside", create_outside },
	{ "creat-outside", create_by_open },
	{ "mkdir-outside", mkdir_outside },
	{ "fifo-outside", fifo_outside },
	{ "symlink-outside", symlink_outside },
	{ "socket-outside", socket_outside },
	{ "nameless-outside", nameless_outside },
	{ "unlink-outside", unlink_outside },
	{ "rmdir-outside", rmdir_outside },
	{ "truncate-outside", truncate_outside },
	{ "open-truncate-outside", open_truncate_outside },
	{ "rename-out", rename_out },
	{ "rename-in", rename_in },
	{ "rename-beside", rename_beside },
	{ "exchange", exchange },
	{ "hard-link-in", hard_link_in },
	{ "hard-link-out", hard_link_out },
	{ "hard-link-of-descriptor", hard_link_of_descriptor },
	{ "hard-link-of-magic-link", hard_link_of_magic_link },
	{ "reopen-place", reopen_place },
	{ "reopen-stdin", reopen_stdin },
	{ "leaked-file", leaked_file },
	{ "leaked-directory", leaked_directory },
	{ "leaked-place", leaked_place },
	{ "leaked-by-proc", leaked_by_proc },
	{ "by-handle", by_handle },
	{ "execute-outside", execute_outside },
	{ "execute-place", execute_place },
	{ "execute-by-loader", execute_by_loader },
	{ "read-shadow", read_shadow },
	{ "stat-hidden", stat_hidden },
	{ "link-hidden", link_hidden },
	{ "watch-hidden", watch_hidden },
	{ "handle-of-hidden", mark_hidden },
	{ "lock-readable", lock_readable },
	{ NULL, NULL },
};
