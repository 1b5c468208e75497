//! The built-in profiles mean the same on arm64, which was never given the older calls of 64-bit x86: what a
//! program does there by one of them it does on arm64 by its successor, and is answered alike.

use sbx::plan::calls::{self as resolve, Unix};
use sbx::plan::rules::Network;
use sbx::profile::Profile;
use sbx_policy::bpf;
use sbx_policy::calls::{Arch, Call};
use sbx_policy::interpret::{Data, run};
use sbx_policy::program::assemble;
use sbx_policy::rules::{Actions, Layout};

use crate::{Shelf, built_in_profile};

const ACTIONS: Actions =
    Actions { violation: bpf::RET_USER_NOTIF, log: bpf::RET_LOG, unknown: Some(bpf::RET_ERRNO | 38) };

const AT: u64 = -100_i64 as u64;
const SIGCHLD: u64 = 17;
const VFORK: u64 = 0x4100 | SIGCHLD; // CLONE_VM | CLONE_VFORK
const CREATES: u64 = 0o1101; // O_CREAT | O_WRONLY | O_TRUNC

/// The arguments of the successor that do the same.
type Translate = fn([u64; 6]) -> [u64; 6];

const SAME: Translate = |a| a;
const BELOW_AT: Translate = |a| [AT, a[0], a[1], a[2], 0, 0];

/// An older call, its successor, and how arguments move.
const SUCCESSORS: [(&str, &str, Translate); 36] = [
    ("access", "faccessat", BELOW_AT),
    ("alarm", "setitimer", SAME),
    ("chmod", "fchmodat", BELOW_AT),
    ("chown", "fchownat", BELOW_AT),
    ("creat", "openat", |a| [AT, a[0], CREATES, a[1], 0, 0]),
    ("dup2", "dup3", |a| [a[0], a[1], 0, 0, 0, 0]),
    ("epoll_create", "epoll_create1", |_| [0; 6]),
    ("epoll_wait", "epoll_pwait", |a| [a[0], a[1], a[2], a[3], 0, 0]),
    ("eventfd", "eventfd2", |a| [a[0], 0, 0, 0, 0, 0]),
    ("fork", "clone", |_| [SIGCHLD, 0, 0, 0, 0, 0]),
    ("futimesat", "utimensat", SAME),
    ("getdents", "getdents64", SAME),
    ("getpgrp", "getpgid", |_| [0; 6]),
    ("inotify_init", "inotify_init1", |_| [0; 6]),
    ("lchown", "fchownat", |a| [AT, a[0], a[1], a[2], 0x100, 0]),
    ("link", "linkat", |a| [AT, a[0], AT, a[1], 0, 0]),
    ("lstat", "newfstatat", |a| [AT, a[0], a[1], 0x100, 0, 0]),
    ("mkdir", "mkdirat", BELOW_AT),
    ("mknod", "mknodat", BELOW_AT),
    ("open", "openat", BELOW_AT),
    ("pause", "rt_sigsuspend", SAME),
    ("pipe", "pipe2", |a| [a[0], 0, 0, 0, 0, 0]),
    ("poll", "ppoll", |a| [a[0], a[1], a[2], 0, 0, 0]),
    ("readlink", "readlinkat", BELOW_AT),
    ("rename", "renameat", |a| [AT, a[0], AT, a[1], 0, 0]),
    ("rmdir", "unlinkat", |a| [AT, a[0], 0x200, 0, 0, 0]),
    ("select", "pselect6", SAME),
    ("signalfd", "signalfd4", SAME),
    ("stat", "newfstatat", |a| [AT, a[0], a[1], 0, 0, 0]),
    ("symlink", "symlinkat", |a| [a[0], AT, a[1], 0, 0, 0]),
    ("time", "clock_gettime", SAME),
    ("unlink", "unlinkat", |a| [AT, a[0], 0, 0, 0, 0]),
    ("utime", "utimensat", BELOW_AT),
    ("utimes", "utimensat", BELOW_AT),
    ("vfork", "clone", |_| [VFORK, 0, 0, 0, 0, 0]),
    ("rename", "renameat2", |a| [AT, a[0], AT, a[1], 0, 0]),
];

/// What has no successor: it belongs to x86, or no kernel has it any more.
const WITHOUT: &str = "_sysctl afs_syscall arch_prctl create_module epoll_ctl_old epoll_wait_old get_kernel_syms \
    get_thread_area getpmsg ioperm iopl modify_ldt putpmsg query_module security set_thread_area sysfs tuxcall uprobe \
    uretprobe uselib ustat vserver";

/// At and beside everything that the named restrictions of these calls look at, and with an upper half that the
/// kernel does not.
fn values() -> Vec<u64> {
    let plain =
        [0, 1, 2, 3, 0o100, 0o101, 0o1000, 0o2000, 0o20_000_002, 0o4755, 0o2755, 0o6000, 0o755, 0o777];
    plain.into_iter().flat_map(|value| [value, value | 1 << 32]).collect()
}

/// What a profile's program answers to a call, on a machine that has it.
struct Answers {
    arch: Arch,
    program: Vec<bpf::Insn>,
}

impl Answers {
    fn of(profile: &Profile, arch: Arch) -> Answers {
        let (rules, free) = profile.syscalls.to_rules(arch, ACTIONS, true).unwrap();
        Answers { arch, program: assemble(&Layout { rules: &rules, extra: Some(&free) }).unwrap() }
    }

    fn to(&self, name: &str, args: [u64; 6]) -> u32 {
        let nr = Call::named(name.as_bytes()).and_then(|call| call.number(self.arch));
        let nr = nr.unwrap_or_else(|| panic!("{:?} has no {name}", self.arch));
        run(&self.program, &Data { nr, arch: self.arch.audit(), args }).unwrap()
    }
}

#[test]
fn what_arm64_lacks_has_a_successor_or_is_nothing_of_its() {
    let lacking = Call::all().filter(|call| call.number(Arch::Aarch64).is_none());
    for name in lacking.map(Call::name) {
        let succeeded = SUCCESSORS.iter().any(|(older, ..)| *older == name);
        assert!(succeeded != WITHOUT.split(' ').any(|other| other == name), "{name}");
    }
    for (older, younger, _) in SUCCESSORS {
        let number = |name: &str, arch| Call::named(name.as_bytes()).unwrap().number(arch);
        assert_eq!(number(older, Arch::Aarch64), None, "{older}");
        assert!(
            number(younger, Arch::Aarch64).is_some() && number(younger, Arch::X86_64).is_some(),
            "{younger}"
        );
    }
    let only_arm64 = Call::all().find(|call| call.number(Arch::X86_64).is_none());
    assert_eq!(only_arm64, None, "a call that x86 lacks: what does each profile say to it?");
}

/// The first older call that is answered otherwise than its successor.
fn first_difference(profile: &Profile) -> Option<String> {
    let (x86, arm) = (Answers::of(profile, Arch::X86_64), Answers::of(profile, Arch::Aarch64));
    for (older, younger, translate) in SUCCESSORS {
        for second in values() {
            for third in values() {
                let args = [0x1000, second, third, 0, 0, 0];
                let by_older = x86.to(older, args);
                let by_younger = [&arm, &x86].map(|answers| answers.to(younger, translate(args)));
                if by_younger != [by_older; 2] {
                    return Some(format!("{older} {by_older:x}, {younger} {by_younger:x?}: {args:x?}"));
                }
            }
        }
    }
    None
}

#[test]
fn every_built_in_answers_the_older_call_and_its_successor_alike() {
    for name in sbx_profiles::NAMES {
        assert_eq!(first_difference(&built_in_profile(name)), None, "{name}");
    }
    // That one which does not would be noticed.
    let shelf = Shelf::new();
    for (rule, noticed) in [
        (r#""allow": ["mkdir"]"#, "mkdir "),
        (r#""allow": ["openat[read]"]"#, "open "),
        (r#""allow": ["chmod[no-setid]", "fchmodat"]"#, "chmod "),
        (r#""allow": ["fork", "vfork", "clone[thread]"]"#, "fork "),
        (r#""default": "allow", "deny": ["stat"]"#, "stat "),
    ] {
        let profile = shelf.file(&format!(r#"{{"syscalls": {{{rule}}}}}"#)).unwrap();
        let found = first_difference(&profile);
        assert!(found.as_ref().is_some_and(|found| found.starts_with(noticed)), "{rule}: {found:?}");
    }
}

#[test]
fn every_built_in_answers_what_both_have_alike() {
    for name in sbx_profiles::NAMES {
        let profile = built_in_profile(name);
        let (x86, arm) = (Answers::of(&profile, Arch::X86_64), Answers::of(&profile, Arch::Aarch64));
        for call in Call::all().filter(|call| call.number(Arch::Aarch64).is_some()) {
            for first in values() {
                for second in values() {
                    let args = [first, second, first, second, first, second];
                    let call = call.name();
                    assert_eq!(x86.to(call, args), arm.to(call, args), "{name}: {call}, {args:x?}");
                }
            }
        }
    }
}

#[test]
fn the_loader_gets_the_calls_that_it_makes_there_and_loses_them_again() {
    let profile = built_in_profile("custom");
    for (arch, makes, does_not) in [
        (Arch::X86_64, ["access", "readlink"], ["faccessat", "readlinkat"]),
        (Arch::Aarch64, ["faccessat", "readlinkat"], ["access", "readlink"]),
    ] {
        let calls = resolve::calls(&profile, &Network::default(), false, Unix::Refused, arch).unwrap();
        let seal = calls.seal(bpf::RET_TRAP).unwrap().unwrap();
        let needs: Vec<_> = seal.needs.iter().map(|(name, _)| name).collect();
        let denied = seal.text.deny.unwrap();
        for name in makes {
            assert!(
                needs.contains(&name) && denied.split(':').any(|denied| denied == name),
                "{arch:?} {name}"
            );
        }
        assert!(does_not.iter().all(|name| !needs.contains(name)), "{arch:?} {needs:?}");
    }
}
