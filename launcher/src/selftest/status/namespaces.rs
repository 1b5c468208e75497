//! Namespaces: each kind, and those of a run with its mounts in them.

use crate::enforce::mounts::{self, ViewError};
use crate::host::Host;
use crate::plan::namespaces::Layout;
use crate::selftest::status::system::read;
use crate::selftest::status::trial::{Attempt, Fault, State, attempt};
use crate::sys::namespace::{Kinds, Own};
use crate::sys::process::{self, Change};
use crate::sys::{descriptor, mount, namespace, probe, seccomp, setting};
use std::os::fd::AsRawFd;

/// Whether a run gets its own namespaces, with its mounts in them.
pub fn own_view() -> Attempt {
    explained(view)
}

/// Makes an attempt, and says why it failed as far as the settings of the kernel tell.
pub fn explained(body: impl FnOnce() -> Attempt) -> Attempt {
    attempt(body).map_err(reason)
}

/// Whether a run gets a network of its own, with a loopback interface that is up.
pub fn own_network() -> Attempt {
    explained(network)
}

/// Does what a run does: makes all namespaces at once, and its mounts in them.
fn view() -> Attempt {
    let host = Host::of_this_process();
    let layout = Layout::smallest(&host);
    let kinds = Kinds { user: !host.administrator.get(), view: true, network: false };
    enter(&host, kinds, || mounts::enter(&layout, None, None).map(drop))?;
    Ok("made, with /proc and /run of their own in them".to_string())
}

fn network() -> Attempt {
    let host = Host::of_this_process();
    let user = !(*host.administrator.get() && *host.network_cookies.get());
    enter(&host, Kinds { user, view: false, network: true }, || Ok::<_, ViewError>(()))?;
    Ok("made, with a loopback interface that is up".to_string())
}

/// Makes namespaces, and does something in them.
pub fn enter<E>(host: &Host, kinds: Kinds, then: impl FnOnce() -> Result<(), E>) -> Result<(), Fault>
where
    E: std::fmt::Display,
{
    let own = Own { kinds, identity: *host.identity.get() };
    let (reader, writer) = descriptor::pipe()?;
    let child = namespace::fork_into(kinds)?;
    if child == 0 {
        let settled = mounts::settle(&own, None, None).map_err(|stop| stop.to_string());
        let told = settled.and_then(|_| then().map_err(|stop| stop.to_string()));
        let why = told.err().unwrap_or_default();
        let sent = descriptor::write_all(writer.as_raw_fd(), why.as_bytes());
        process::exit_now(i32::from(!why.is_empty() || sent.is_err()));
    }
    // The child shares our descriptor table until it has ended.
    let ended = process::wait(Some(child), true, false);
    drop(writer);
    if let Some((_, Change::Exited(0))) = ended {
        return Ok(());
    }
    let mut why = [0; 400];
    let length = descriptor::read(reader.as_raw_fd(), &mut why)?;
    let why = String::from_utf8_lossy(why.get(..length).unwrap_or_default()).into_owned();
    Err(Fault { errno: libc::EPERM, ..Fault::new(State::Refused, why) })
}

/// Makes a user namespace. It is of use only if its maker has capabilities in it.
pub fn user() -> Attempt {
    namespace::unshare(libc::CLONE_NEWUSER)?;
    namespace::unshare(libc::CLONE_NEWUTS).map_err(|failed| Fault {
        errno: failed.errno(),
        ..Fault::new(State::Refused, "it can be made, but gives no capabilities")
    })?;
    Ok("made, with capabilities in it".to_string())
}

/// Makes another namespace, by itself or in a new user namespace, and does something that works only in it.
pub fn other(flag: libc::c_int) -> Attempt {
    let how = match namespace::unshare(flag) {
        Ok(()) => "made by privilege",
        Err(failed) if failed.errno() == libc::EPERM => {
            namespace::unshare(libc::CLONE_NEWUSER | flag)?;
            "made, in a user namespace"
        }
        Err(failed) => return Err(failed.into()),
    };
    match flag {
        libc::CLONE_NEWNS => mount::keep_apart()?,
        libc::CLONE_NEWPID => first_process()?,
        _ => {}
    }
    Ok(how.to_string())
}

fn first_process() -> Result<(), Fault> {
    let child = process::fork()?;
    if child == 0 {
        process::exit_now(i32::from(process::id() != 1));
    }
    match process::wait(Some(child), true, false) {
        Some((_, Change::Exited(0))) => Ok(()),
        _ => Err(Fault::new(State::Missing, "the first process in it is not number 1")),
    }
}

fn reason(fault: Fault) -> Fault {
    let filtered = probe::confinement().0 == Some(2);
    let why = if fault.errno == libc::ENOSPC && setting::number("user/max_user_namespaces") == Some(0) {
        "user.max_user_namespaces is 0"
    } else if fault.why.ends_with("fsopen: no such device") {
        "the kernel has no such file system; load its module (modprobe overlay)"
    } else if !matches!(fault.errno, libc::EPERM | libc::EACCES) {
        return fault;
    } else if seccomp::is_confined() {
        "an sbx around this process refuses it"
    } else if setting::number("user/max_user_namespaces") == Some(0) {
        "user.max_user_namespaces is 0"
    } else if setting::number("kernel/unprivileged_userns_clone") == Some(0) {
        "kernel.unprivileged_userns_clone is 0"
    } else if setting::number("kernel/apparmor_restrict_unprivileged_userns") == Some(1) {
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
