//! An environment as restrictive as a container engine's default: no user namespaces, no mounts, no ptrace, no
//! pidfd_getfd, `clone3` unknown, and for root only the capabilities that such a container has.

use std::process::Command;

use libc::{c_long, sock_filter};

use crate::sys;
use crate::users::User;

/// The calls that a default container refuses, and the errors.
const REFUSED: &[(c_long, i32)] = &[
    (libc::SYS_unshare, libc::EPERM),
    (libc::SYS_setns, libc::EPERM),
    (libc::SYS_clone3, libc::ENOSYS),
    (libc::SYS_ptrace, libc::EPERM),
    (libc::SYS_process_vm_readv, libc::EPERM),
    (libc::SYS_process_vm_writev, libc::EPERM),
    (libc::SYS_pidfd_getfd, libc::EPERM),
    (libc::SYS_mount, libc::EPERM),
    (libc::SYS_umount2, libc::EPERM),
    (libc::SYS_pivot_root, libc::EPERM),
    (libc::SYS_move_mount, libc::EPERM),
    (libc::SYS_open_tree, libc::EPERM),
    (libc::SYS_fsopen, libc::EPERM),
    (libc::SYS_keyctl, libc::EPERM),
    (libc::SYS_add_key, libc::EPERM),
    (libc::SYS_request_key, libc::EPERM),
    (libc::SYS_bpf, libc::EPERM),
    (libc::SYS_perf_event_open, libc::EPERM),
    (libc::SYS_userfaultfd, libc::EPERM),
    (libc::SYS_io_uring_setup, libc::EPERM),
];

/// chown, dac_override, fowner, fsetid, kill, setgid, setuid, setpcap, net_bind_service, net_raw, sys_chroot, mknod,
/// audit_write, setfcap.
const CAPABILITIES: &[u32] = &[0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31];

const NUMBER: u32 = 0;
const FIRST_ARGUMENT: u32 = 16;

/// Makes the command start inside such an environment.
pub fn apply(command: &mut Command) {
    sys::keep_only_capabilities(command, CAPABILITIES);
    sys::install_filter(command, program());
}

/// Makes the command start where these calls are answered with these error numbers. 0 answers as if the call had
/// succeeded, although nothing has happened.
pub fn answer(command: &mut Command, answers: &[(c_long, i32)]) {
    let mut code = answered(answers);
    code.push(instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW));
    sys::install_filter(command, code);
}

/// Does that before the command becomes an ordinary user, so that root needs no `no_new_privs` for it.
pub fn answer_as(command: &mut Command, answers: &[(c_long, i32)], user: &User) {
    let mut code = answered(answers);
    code.push(instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW));
    if User::current().is_root() {
        sys::install_filter_as_root(command, code);
        sys::become_user(command, user.id);
    } else {
        sys::install_filter(command, code);
    }
}

fn answered(answers: &[(c_long, i32)]) -> Vec<sock_filter> {
    let mut code = vec![load(NUMBER)];
    for &(call, errno) in answers {
        code.push(jump_if_equal(u32::try_from(call).unwrap(), 0, 1));
        code.push(answer_errno(errno));
    }
    code
}

fn program() -> Vec<sock_filter> {
    let mut code = answered(REFUSED);
    code.push(jump_if_equal(u32::try_from(libc::SYS_clone).unwrap(), 0, 3));
    code.push(load(FIRST_ARGUMENT));
    code.push(jump_if_any_bit(libc::CLONE_NEWUSER.cast_unsigned(), 0, 1));
    code.push(answer_errno(libc::EPERM));
    code.push(instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW));
    code
}

fn load(offset: u32) -> sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset)
}

fn jump_if_equal(value: u32, yes: u8, no: u8) -> sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, yes, no, value)
}

fn jump_if_any_bit(bits: u32, yes: u8, no: u8) -> sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, yes, no, bits)
}

fn answer_errno(errno: i32) -> sock_filter {
    let data = errno.cast_unsigned() & libc::SECCOMP_RET_DATA;
    instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | data)
}

fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code: u16::try_from(code).unwrap(), jt, jf, k }
}
