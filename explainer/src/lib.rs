//! `libsbx-explain.so`: remembers which calls on paths were refused, and tells the supervisor when the program fails.
//!
//! The kernel does not say what Landlock refused. To be told, the supervisor would have to be notified of every call on
//! a path, which costs each of them some ten microseconds. So this library stands before libc: it passes each call on,
//! looks at nothing but the result, and keeps the last refused ones in its memory. Where the program ends with a status
//! other than 0, or turns the error into words, one notified prctl(2) tells the supervisor where they are. A program
//! that gets what it asks for, or does without, tells nothing.
//!
//! A hard link between two mounts that are one outside it asks the supervisor for.
//!
//! **Nothing depends on this library.** It enforces nothing. What it tells is a hint: the supervisor asks the rules
//! about each call before it prints a line. A program that loads no libraries, or makes its calls itself, is explained
//! by `--explain`.
#![no_std]
#![deny(unsafe_code)]
// Only the shared library is used.
#![cfg_attr(not(feature = "library"), allow(dead_code))]

mod kinds;
mod record;
mod sys;

use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, Ordering};
use record::{Kept, Why};

const ENOENT: c_int = 2;
const ESRCH: c_int = 3;
const EPERM: c_int = 1;
const EACCES: c_int = 13;
const EBUSY: c_int = 16;
const EXDEV: c_int = 18;
const EMFILE: c_int = 24;
const EFBIG: c_int = 27;
const EROFS: c_int = 30;
const ENOSYS: c_int = 38;
const ENETUNREACH: c_int = 101;

/// What an error may mean: a sandbox or a limit refused the call, or the file is out of sight.
fn why(error: c_int, kind: &kinds::Kind) -> Option<Why> {
    match error {
        EMFILE | EFBIG | EACCES | EPERM | EROFS | ENETUNREACH => Some(Why::Refused),
        // A process outside has no number inside. Some calls are refused as if the kernel did not know them.
        ESRCH | ENOSYS => Some(Why::Missing),
        _ if kind.paths.is_empty() => None,
        // What is mounted for the run alone can be neither removed nor renamed.
        EBUSY => Some(Why::Refused),
        // Landlock's answer to a file that would gain rights in another directory.
        EXDEV if kind.moves => Some(Why::Refused),
        ENOENT => Some(Why::Missing),
        _ => None,
    }
}

/// Remembers a call that has failed. Returns whether the supervisor has done it instead: no hard link leads from one
/// mount to another, though outside they may be one.
#[cold]
#[inline(never)]
fn failed(kind: &kinds::Kind, args: [u64; 6]) -> bool {
    let error = sys::error();
    if error == EXDEV && kind.moves && kind.number == kinds::LINKAT.number && sys::link_by_supervisor(args) {
        return true;
    }
    if let Some(why) = why(error, kind) {
        Kept::begin(|kept| kept.remember(why, kind, args, error));
        sys::set_error(error);
    }
    false
}

/// The working directory is about to be another one.
fn moves() {
    Kept::with(Kept::settle_relative);
}

/// The program says what an error is: the last call that had it is what is said.
#[cold]
#[inline(never)]
fn spoken(error: c_int) {
    let kept = sys::error();
    match error {
        EACCES | EPERM | EROFS | EMFILE | EFBIG | EBUSY => Kept::with(|all| all.tell(Why::Refused, true)),
        ENOENT | ESRCH | ENOSYS => Kept::with(|all| all.speak(error)),
        _ => {}
    }
    sys::set_error(kept);
}

/// A child was ended by this signal. Only limits are told: of others the program knows as much as anybody.
#[cold]
#[inline(never)]
fn child_killed(signal: c_int) {
    const SIGXCPU: c_int = 24;
    const SIGXFSZ: c_int = 25;
    if matches!(signal, SIGXCPU | SIGXFSZ) {
        let error = sys::error();
        Kept::begin(|kept| {
            kept.remember(Why::Refused, &kinds::WAIT4, [0; 6], signal);
            kept.tell(Why::Refused, false);
        });
        sys::set_error(error);
    }
}

/// The program ends with this status.
#[cold]
#[inline(never)]
fn ends(status: c_int) {
    // By way of exit(3), and again by what that calls.
    static ENDED: AtomicI32 = AtomicI32::new(0);
    let process = sys::process();
    if status != 0 && ENDED.swap(process, Ordering::Relaxed) != process {
        if sys::would_gain() {
            Kept::begin(Kept::remember_program);
        }
        if let Some((kind, args)) = sys::last_datagram() {
            Kept::begin(|kept| kept.remember(Why::Missing, kind, args, 0));
        }
        Kept::with(|kept| {
            kept.tell(Why::Refused, false);
            kept.tell(Why::Missing, false);
        });
    }
}
