"""Tries to read, change, replace, remove and make files, each in every way there is, and prints the kernel's answers:

    protected.py TARGET...      one line for each attempt: TARGET, ATTEMPT, and "done" or the error

New files have the name of the attempt, below `free`, which has to be a directory; everything written is "planted".
"""
import ctypes
import errno
import os
import socket
import stat
import sys

C = ctypes.CDLL(None, use_errno=True)
HERE = -100
PLANTED = b"planted\n"
PIVOT_ROOT = 155 if os.uname().machine == "x86_64" else 41


def call(name, *args):
    """A function of the C library, or a system call by its number."""
    words = [a.encode() if isinstance(a, str) else a for a in args]
    words = [a if isinstance(a, (bytes, ctypes.Array)) or a is None else ctypes.c_long(a) for a in words]
    function = getattr(C, name) if isinstance(name, str) else C.syscall
    words = words if isinstance(name, str) else [ctypes.c_long(name), *words]
    ctypes.set_errno(0)
    result = function(*words)
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def put(fd):
    try:
        os.write(fd, PLANTED)
    finally:
        os.close(fd)


def show(fd):
    try:
        while os.path.stat.S_ISREG(os.fstat(fd).st_mode):
            text = os.read(fd, 65536)
            if not text:
                return
            sys.stdout.write(text.decode(errors="replace"))
        raise OSError(errno.EINVAL, "no file")
    finally:
        os.close(fd)


def fresh(name):
    path = f"free/{name}"
    with open(path, "wb") as made:
        made.write(PLANTED)
    return path


def fresh_directory(name):
    os.mkdir(f"free/{name}")
    with open(f"free/{name}/{name}", "wb") as made:
        made.write(PLANTED)
    return f"free/{name}"


def others(target):
    """The same file under other names."""
    whole = os.path.abspath(target)
    parent, name = os.path.split(whole)
    yield "dot-dot", f"{parent}/../{os.path.basename(parent)}/./{name}"
    yield "proc-self-root", f"/proc/self/root{whole}"
    yield "proc-self-cwd", f"/proc/self/cwd/{target}"
    yield "proc-1-root", f"/proc/1/root{whole}"
    yield "proc-1-cwd", f"/proc/1/cwd/{target}"
    yield "parent-root", f"/proc/{os.getppid()}/root{whole}"
    for attempt, to in (("symlink", whole), ("symlink-to-parent", parent)):
        try:
            os.unlink(f"free/{attempt}")
        except OSError:
            pass
        os.symlink(to, f"free/{attempt}")
    yield "symlink", "free/symlink"
    yield "symlink-to-parent", f"free/symlink-to-parent/{name}"


def through_descriptor(target, flags):
    place = os.open(target, os.O_PATH)
    try:
        return os.open(f"/proc/self/fd/{place}", flags)
    finally:
        os.close(place)


def through_parent(target, flags):
    parent = os.open(os.path.dirname(target) or ".", os.O_PATH | os.O_DIRECTORY)
    try:
        return os.open(os.path.basename(target), flags, 0o644, dir_fd=parent)
    finally:
        os.close(parent)


def through_socket(target, flags):
    """A directory held by another process, sent over."""
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        try:
            os.chdir(os.path.dirname(target) or ".")
            socket.send_fds(theirs, [b"x"], [os.open(".", os.O_PATH)])
        finally:
            os._exit(0)
    theirs.close()
    _, numbers, _, _ = socket.recv_fds(ours, 1, 1)
    os.wait()
    if not numbers:
        raise OSError(errno.ENOENT, "nothing was sent")
    return os.open(os.path.basename(target), flags, 0o644, dir_fd=numbers[0])


def by_handle(target, flags):
    handle = ctypes.create_string_buffer(8 + 128)
    handle[0:4] = (128).to_bytes(4, "little")
    mount = ctypes.create_string_buffer(4)
    call("name_to_handle_at", HERE, target, handle, mount, 0)
    return call("open_by_handle_at", HERE, handle, flags)


def openat2(target, flags):
    how = b"".join(number.to_bytes(8, "little") for number in (flags, 0, 0))
    return call(437, HERE, target, ctypes.create_string_buffer(how, 24), 24)


def after_chroot(target, flags):
    call("chroot", os.path.dirname(os.path.abspath(target)))
    return os.open("/" + os.path.basename(target), flags)


def after_unshare(target, flags):
    call("unshare", 0x10000000 | 0x20000)
    call("umount2", os.path.abspath(target), 2)
    return os.open(target, flags)


def after_setns(target, flags):
    place = os.open("/proc/1/ns/mnt", os.O_RDONLY)
    call("setns", place, 0)
    return os.open(target, flags)


OPENERS = [through_descriptor, through_parent, through_socket, by_handle, openat2, after_chroot, after_unshare, after_setns]


def reads(target):
    yield "read", lambda: show(os.open(target, os.O_RDONLY))
    for name, other in others(target):
        yield f"read-{name}", lambda other=other: show(os.open(other, os.O_RDONLY))
    for opener in OPENERS:
        yield f"read-{opener.__name__}", lambda opener=opener: show(opener(target, os.O_RDONLY))
    yield "list", lambda: print(os.listdir(target))
    yield "read-inside", lambda: show(os.open(f"{target}/inside", os.O_RDONLY))
    yield "enter", lambda: os.chdir(target)
    yield "read-link", lambda: (os.link(target, "free/read-link"), show(os.open("free/read-link", os.O_RDONLY)))
    yield "read-link-followed", lambda: (call("linkat", HERE, target, HERE, "free/read-linked", 0x400), show(os.open("free/read-linked", os.O_RDONLY)))
    yield "read-renamed", lambda: (os.rename(target, "free/read-renamed"), os.rename("free/read-renamed", target), show(os.open(target, os.O_RDONLY)))
    yield "copy", lambda: os.sendfile(1, os.open(target, os.O_RDONLY), 0, 100)
    yield "execute", lambda: os.execv(target, [target])


def writes(target):
    for name, flags in (("write", 0), ("append", os.O_APPEND), ("truncate-open", os.O_TRUNC), ("create", os.O_CREAT), ("create-new", os.O_CREAT | os.O_EXCL)):
        yield name, lambda flags=flags: put(os.open(target, os.O_WRONLY | flags, 0o644))
    yield "truncate", lambda: os.truncate(target, 0)
    for name, other in others(target):
        yield f"write-{name}", lambda other=other: put(os.open(other, os.O_WRONLY | os.O_CREAT, 0o644))
    for opener in OPENERS:
        yield f"write-{opener.__name__}", lambda opener=opener: put(opener(target, os.O_WRONLY))
    yield "write-inside", lambda: put(os.open(f"{target}/inside", os.O_WRONLY | os.O_CREAT, 0o644))
    yield "unlink-inside", lambda: os.unlink(f"{target}/inside")
    yield "make-directory", lambda: os.mkdir(target)
    yield "make-inside", lambda: os.mkdir(f"{target}/made")
    yield "make-fifo", lambda: os.mkfifo(target)
    yield "make-socket", lambda: socket.socket(socket.AF_UNIX).bind(target)
    yield "symlink-over", lambda: os.symlink("free", target)
    yield "link-over", lambda: os.link(fresh("link-over"), target)
    yield "rename-over", lambda: os.rename(fresh("rename-over"), target)
    yield "rename-directory-over", lambda: os.rename(fresh_directory("inside"), target)
    yield "exchange", lambda: call("renameat2", HERE, fresh("exchange"), HERE, target, 2)
    yield "exchange-directory", lambda: call("renameat2", HERE, fresh_directory("exchange-directory"), HERE, target, 2)
    yield "temporary-linked", lambda: temporary(target)
    yield "rename-away", lambda: os.rename(target, "free/rename-away")
    yield "unlink", lambda: os.unlink(target)
    yield "remove", lambda: os.rmdir(target)
    yield "link", lambda: (os.link(target, "free/hard"), put(os.open("free/hard", os.O_WRONLY)))
    yield "clone-over", lambda: clone(target)


def temporary(target):
    made = os.open("free", os.O_TMPFILE | os.O_RDWR, 0o644)
    os.write(made, PLANTED)
    call("linkat", HERE, f"/proc/self/fd/{made}", HERE, target, 0x400)


def clone(target):
    import fcntl
    source, place = os.open(fresh("clone"), os.O_RDONLY), os.open(target, os.O_RDWR)
    os.copy_file_range(source, place, 8, 0, 0)
    fcntl.ioctl(place, 0x40049409, source)


def attributes(target):
    yield "chmod", lambda: os.chmod(target, 0o777)
    yield "fchmod", lambda: os.fchmod(os.open(target, os.O_RDONLY), 0o777)
    yield "chmod-root", lambda: os.chmod("/proc/self/root" + os.path.abspath(target), 0o777)
    yield "times", lambda: os.utime(target, (1, 1))
    yield "owner", lambda: os.chown(target, os.getuid(), os.getgid())
    yield "attribute", lambda: os.setxattr(target, "user.planted", b"x")


def parents(target):
    parent = os.path.dirname(target)
    if not parent or parent == "free":
        return
    yield "rename-parent", lambda: os.rename(parent, "free/parent")
    yield "remove-parent", lambda: os.rmdir(parent)
    yield "rename-over-parent", lambda: os.rename(fresh_directory("over-parent"), parent)
    yield "exchange-parent", lambda: call("renameat2", HERE, fresh_directory("exchange-parent"), HERE, parent, 2)
    top = parent.split("/")[0]
    yield "rename-top", lambda: os.rename(top, "free/top")


def mounts(target):
    whole = os.path.abspath(target)
    yield "mount", lambda: call("mount", os.path.abspath("free"), whole, None, 4096, None)
    yield "mount-away", lambda: call("mount", whole, os.path.abspath("free"), None, 4096, None)
    yield "remount", lambda: call("mount", None, whole, None, 32 | 4096, None)
    yield "umount", lambda: call("umount2", whole, 0)
    yield "umount-detached", lambda: call("umount2", whole, 2)
    yield "umount-parent", lambda: call("umount2", os.path.dirname(whole), 2)
    yield "umount-proc", lambda: call("umount2", "/proc", 2)
    yield "open-tree", lambda: call(428, HERE, whole, 1)
    yield "move-mount", lambda: call(429, HERE, whole, HERE, os.path.abspath("free"), 0)
    yield "mount-attributes", lambda: call(442, HERE, whole, 0, ctypes.create_string_buffer(32), 32)
    yield "pivot-root", lambda: call(PIVOT_ROOT, ".", ".")
    yield "new-user-namespace", lambda: call("unshare", 0x10000000)
    yield "new-mount-namespace", lambda: call("unshare", 0x20000)
    yield "trace-the-first", lambda: call("ptrace", 16, 1, 0, 0)
    yield "seize-the-first", lambda: call("ptrace", 0x4206, 1, 0, 0)
    yield "memory-of-the-first", lambda: os.open("/proc/1/mem", os.O_RDWR)
    yield "descriptors-of-the-first", lambda: [os.readlink(f"/proc/1/fd/{number}") for number in os.listdir("/proc/1/fd")]
    yield "root-of-the-first", lambda: os.listdir("/proc/1/root/")
    yield "map-files-of-the-first", lambda: os.listdir("/proc/1/map_files")


def try_out(target, name, attempt):
    """In a process of its own, so that the next one starts as this one did."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            attempt()
            outcome = "done"
        except OSError as error:
            outcome = errno.errorcode.get(error.errno, "error")
        except AttributeError:
            outcome = "ENOSYS"
        sys.stdout.write(f"{target}\t{name}\t{outcome}\n")
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)


for target in sys.argv[1:]:
    for group in (attributes, reads, writes, parents, mounts):
        for name, attempt in group(target):
            try_out(target, name, attempt)
