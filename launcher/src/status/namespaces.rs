//! Namespaces: each kind, and all that a run makes of them together.

use super::system::{read, read_number};
use super::trial::{Fault, Layer, State, attempt};
use crate::launch::namespaces::{self, Layout};
use crate::sys::process::Change;
use crate::sys::{descriptor, namespace, probe, process, seccomp};
use std::os::fd::AsRawFd;

/// Kinds of namespaces: names, and flags of unshare(2).
const KINDS: [(&str, libc::c_int); 5] = [
    ("mount-namespace", libc::CLONE_NEWNS),
    ("pid-namespace", libc::CLONE_NEWPID),
    ("ipc-namespace", libc::CLONE_NEWIPC),
    ("uts-namespace", libc::CLONE_NEWUTS),
    ("net-namespace", libc::CLONE_NEWNET),
];

/// The layers.
pub fn layers() -> Vec<Layer> {
    let user = attempt(user).map_err(explained);
    let mut layers = vec![Layer::of("user-namespace", user)];
    layers.extend(
        KINDS.iter().map(|(name, flag)| Layer::of(name, attempt(|| other(*flag)).map_err(explained))),
    );
    layers.push(Layer::of(super::VIEW, own_view()));
    layers
}

/// Whether a run gets namespaces of its own, with what it mounts in them.
pub fn own_view() -> Result<String, Fault> {
    attempt(view).map_err(explained)
}

/// What a run does: all namespaces at once, and its file systems in them.
fn view() -> Result<String, Fault> {
    let layout = Layout::smallest();
    let (reader, writer) = descriptor::pipe()?;
    let child = namespace::fork_into(layout.kinds)?;
    if child == 0 {
        let told = namespaces::enter(&layout).map(drop).map_err(|stop| stop.to_string());
        let why = told.err().unwrap_or_default();
        let sent = descriptor::write_all(writer.as_raw_fd(), why.as_bytes());
        process::exit_now(i32::from(!why.is_empty() || sent.is_err()));
    }
    // It shares our descriptors until it has ended.
    let ended = process::wait(Some(child), true, false);
    drop(writer);
    if let Some((_, Change::Exited(0))) = ended {
        return Ok("made, with /proc and /run of their own in them".to_string());
    }
    let mut why = [0; 400];
    let length = descriptor::read(reader.as_raw_fd(), &mut why)?;
    let why = String::from_utf8_lossy(why.get(..length).unwrap_or_default()).into_owned();
    Err(Fault { errno: libc::EPERM, ..Fault::new(State::Refused, why) })
}

/// A user namespace is of use only if its maker has capabilities in it.
fn user() -> Result<String, Fault> {
    probe::unshare(libc::CLONE_NEWUSER)?;
    probe::unshare(libc::CLONE_NEWUTS).map_err(|failed| Fault {
        errno: failed.errno(),
        ..Fault::new(State::Refused, "it can be made, but gives no capabilities")
    })?;
    Ok("made, with capabilities in it".to_string())
}

/// By itself, or else in a new user namespace; then something that only works in it.
fn other(flag: libc::c_int) -> Result<String, Fault> {
    let how = match probe::unshare(flag) {
        Ok(()) => "made by privilege",
        Err(failed) if failed.errno() == libc::EPERM => {
            probe::unshare(libc::CLONE_NEWUSER | flag)?;
            "made, in a user namespace"
        }
        Err(failed) => return Err(failed.into()),
    };
    match flag {
        libc::CLONE_NEWNS => probe::make_mounts_private()?,
        libc::CLONE_NEWPID => first_process()?,
        _ => {}
    }
    Ok(how.to_string())
}

fn first_process() -> Result<(), Fault> {
    let child = probe::fork()?;
    if child == 0 {
        process::exit_now(i32::from(process::id() != 1));
    }
    match process::wait(Some(child), true, false) {
        Some((_, Change::Exited(0))) => Ok(()),
        _ => Err(Fault::new(State::Missing, "the first process in it is not number 1")),
    }
}

/// Why the kernel says no, as far as its settings tell.
fn explained(fault: Fault) -> Fault {
    let number = |name: &str| read_number(&format!("/proc/sys/{name}"));
    let filtered = probe::confinement().0 == Some(2);
    let why = if fault.errno == libc::ENOSPC && number("user/max_user_namespaces") == Some(0) {
        "user.max_user_namespaces is 0"
    } else if !matches!(fault.errno, libc::EPERM | libc::EACCES) {
        return fault;
    } else if seccomp::is_confined() {
        "an sbx around this process refuses it"
    } else if number("user/max_user_namespaces") == Some(0) {
        "user.max_user_namespaces is 0"
    } else if number("kernel/unprivileged_userns_clone") == Some(0) {
        "kernel.unprivileged_userns_clone is 0"
    } else if number("kernel/apparmor_restrict_unprivileged_userns") == Some(1) {
        "kernel.apparmor_restrict_unprivileged_userns is 1, and no AppArmor profile allows it"
    } else if filtered {
        "a filter around this process, such as a container's, refuses it"
    } else if read("/proc/sys/kernel/ostype").is_none() {
        "/proc is not there to tell why"
    } else {
        "no setting that sbx knows tells why: a security module, or a chroot, perhaps"
    };
    Fault { why: format!("{}: {why}", fault.why), ..fault }
}
