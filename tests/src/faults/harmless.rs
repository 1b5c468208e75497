//! Calls that may fail silently, and why: the run goes on, and is confined as before.

/// The beginning of a call as it is shown, and why its failure changes nothing that is promised.
const HARMLESS: &[(&str, &str)] = &[
    ("access", "looks whether a file is there to be chosen; the next one is taken"),
    ("capget", "the run is then made as for an ordinary user, with a user namespace"),
    ("clone(0x20008411)", "of the first process in a network that is there: as `clone(0x511)`"),
    (
        "clone(0x511)",
        "of the helper that makes the run's network while it is planned: the first process then makes it",
    ),
    ("close_range", "descriptors are then marked one by one"),
    (
        "eventfd2",
        "the path rules are then there before the command's process is made, which takes a little longer",
    ),
    ("fcntl(0x1)", "builds for debugging make sure that a descriptor is open before they close it"),
    ("flock", "there are file systems without locks: nothing on them is ever taken for left behind"),
    ("fstatfs", "asks whether a listing tells what is not there; each name is then looked at"),
    ("futex", "the supervisor and the helper that makes the network wait for each other: as `clone(0x511)`"),
    ("getdents64", "what cannot be listed is protected as a whole"),
    (
        "getrandom",
        "of seeds for tables of the C library; where an address has to be random, the run is refused",
    ),
    ("getsockopt", "asks who is at the other end of standard input"),
    ("ioctl(0x8914)", "starts the interface of a network that is made ahead: as `clone(0x511)`"),
    ("ioctl(0x5401)", "asks whether a descriptor is a terminal; it then counts as none"),
    ("ioctl(0x5413)", "as `ioctl(0x5401)`"),
    ("ioctl(0x802c542a)", "as `ioctl(0x5401)`"),
    ("keyctl", "a sandbox around may refuse it (EPERM), and then refuses it to the command as well"),
    (
        "kill",
        "the helper makes sure that its signals stay in; otherwise it ends the tree one process at a time",
    ),
    ("landlock_add_rule", "of the helper: as `kill`"),
    ("landlock_create_ruleset", "of the helper: as `kill`"),
    ("landlock_restrict_self", "of the helper: as `kill`"),
    ("linkat", "what keeps git's `commondir` from being made is then made under its name, and written there"),
    ("listmount", "the table of all mounts then tells what is mounted twice"),
    ("lseek", "says how long a file is before it is read"),
    (
        "mkdir '/sys/fs/cgroup",
        "limits are then held by other means, which the report names (`limits`, `mechanism`)",
    ),
    ("mmap(0x3, 0x20022)", "memory for the stack of a process: as `clone(0x511)`"),
    ("mount '/dev/pts'", "of root's terminals with the group that they have outside: they then have none"),
    ("newfstatat", "as `statx`"),
    ("open", "as `openat`"),
    (
        "openat",
        "a rule about what the user may not reach (EACCES) is passed over, so less is allowed; what cannot be \
         looked into is protected as a whole",
    ),
    (
        "openat2",
        "a sandbox around may not know it (ENOSYS): the path is then opened in the old way, and where that is \
         has to be the path",
    ),
    ("pidfd_open", "as `eventfd2`, where the run has no namespaces"),
    ("poll", "is made again (EINTR)"),
    ("pread64", "is made again (EINTR)"),
    ("prctl(0x1, 0x9)", "of the helper that makes the network: as `clone(0x511)`"),
    ("prctl(0x4, ", "of the helper that makes the network, while it maps the user: as `clone(0x511)`"),
    ("prctl(0x17)", "asks whether a capability is in the bounding set; without an answer it is taken out"),
    ("prctl(0x18)", "past the last capability; of the helper: the first process of the run does it then"),
    ("prctl(0x26, 0x1)", "of the helper: as `kill`"),
    (
        "prctl(0x41555856",
        "asks for the auxiliary vector; which processor this is, is then asked without the vDSO",
    ),
    ("prctl(0x53425831", "asks whether the same filter is there already; every error but one says no"),
    ("prctl(0x53425834", "asks whether an `sbx` is around; every error but one says no"),
    ("prctl(0x53425835", "asks whether one is around that makes connections; every error but one says no"),
    (
        "prlimit64(0x1, 0x0)",
        "without the size that a file may have, the explainer is left out; it only names refusals",
    ),
    ("prlimit64(0x3, 0x0)", "the C library asks for the size of the stack"),
    ("read", "is made again (EINTR), or looks for what may not be there"),
    ("readlink", "asks whether a name is a link; it is then used as it is"),
    ("rt_sigaction(0xd, 0x0)", "asks what the caller had set; the command gets the default"),
    ("rt_sigprocmask(0x0, 0x0)", "asks what the caller had blocked; the command gets the default"),
    (
        "rmdir '/sys/fs/cgroup",
        "is tried again for a while, for what has just died is in the group for a moment",
    ),
    ("set_robust_list", "of a fork by the C library: nobody shares locks with that process"),
    (
        "set_tid_address",
        "tells of the end of the helper that makes the network; its supervisor waits a while for it",
    ),
    ("socket", "of the helper that makes the network: as `clone(0x511)`"),
    ("statmount", "as `listmount`"),
    (
        "statx",
        "looks what is there: what is to be protected, hidden or denied counts as there, what is to be \
         allowed does not",
    ),
    ("unshare", "of the helper that makes the network: as `clone(0x511)`"),
    (
        "utimensat",
        "gives back to a directory the times that it had before something was in it for a moment; a build may \
         look at it once more",
    ),
    ("waitid", "is made again (EINTR)"),
    ("write", "is made again (EINTR)"),
];

/// Why a call may fail silently; `None` where it may not.
pub fn reason(shown: &str) -> Option<&'static str> {
    HARMLESS.iter().find(|(start, _)| begins(shown, start)).map(|(_, why)| *why)
}

/// Whether a call as it is shown begins so, and not with a longer name.
fn begins(shown: &str, start: &str) -> bool {
    let ends = |rest: &str| start.contains(['(', '\'']) || rest.starts_with([' ', '(']);
    shown.strip_prefix(start).is_some_and(ends)
}

/// All of them, for the document.
pub fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    HARMLESS.iter().copied()
}
