# Sets attributes of a file by every call there is, and prints which of them succeeded. The file is also its standard
# input.
import ctypes, fcntl, os, struct, sys

target = sys.argv[1]
libc = ctypes.CDLL(None, use_errno=True)
HERE = -100


def call(number, *args):
    word = lambda a: ctypes.c_long(a) if isinstance(a, int) else ctypes.c_char_p(a) if isinstance(a, bytes) else a
    if libc.syscall(ctypes.c_long(number), *map(word, args)) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def newest(name):
    value = ctypes.create_string_buffer(b"v")
    args = ctypes.create_string_buffer(struct.pack("QII", ctypes.addressof(value), 1, 0))
    call(463, HERE, os.fsencode(target), 0, name, args, 16)


def by_directory():
    value = ctypes.create_string_buffer(b"v")
    args = ctypes.create_string_buffer(struct.pack("QII", ctypes.addressof(value), 1, 0))
    directory = os.open(os.path.dirname(os.path.abspath(target)), os.O_PATH)
    call(463, directory, os.fsencode(os.path.basename(target)), 0, b"user.by-directory", args, 16)


def linked():
    os.symlink(target, "link-to-it")
    try:
        os.setxattr("link-to-it", "user.link", b"v")
    finally:
        os.unlink("link-to-it")


def flags():
    fd = os.open(target, os.O_RDONLY)
    present = struct.unpack("i", fcntl.ioctl(fd, 0x80086601, b"\0" * 4))[0]
    fcntl.ioctl(fd, 0x40086602, struct.pack("l", present | 0x40))


def access_list():
    entries = [(1, 6, -1), (2, 4, 1), (4, 4, -1), (0x10, 4, -1), (0x20, 4, -1)]
    acl = struct.pack("I", 2) + b"".join(struct.pack("HHi", *entry) for entry in entries)
    os.setxattr(target, "system.posix_acl_access", acl)


ATTEMPTS = {
    "set": lambda: os.setxattr(target, "user.set", b"v"),
    "empty": lambda: os.setxattr(target, "user.empty", b""),
    "long": lambda: os.setxattr(target, "user.long", b"v" * 1000),
    "entry": lambda: os.setxattr(target, "user.entry", b"v", follow_symlinks=False),
    "descriptor": lambda: os.setxattr(0, "user.descriptor", b"v"),
    "named-descriptor": lambda: os.setxattr("/proc/self/fd/0", "user.named-descriptor", b"v"),
    "root": lambda: os.setxattr("/proc/self/root" + os.path.abspath(target), "user.root", b"v"),
    "link": linked,
    "newest": lambda: newest(b"user.newest"),
    "by-directory": by_directory,
    "access-list": access_list,
    "flags": flags,
    "remove": lambda: os.removexattr(target, sys.argv[2]),
    "remove-by-descriptor": lambda: os.removexattr(0, sys.argv[3]),
}
for name, attempt in ATTEMPTS.items():
    try:
        attempt()
        print(name)
    except OSError as error:
        print(name, error.errno, error.strerror, file=sys.stderr)
