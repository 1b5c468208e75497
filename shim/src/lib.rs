//! `libsandbox.so`: installs a seccomp filter from environment variables before `main` runs.
//!
//! The library is one constructor. It is linked with `-z initfirst`, so it runs before the constructors of all other
//! libraries and before the program's DT_PREINIT_ARRAY. libc is not initialised at that time, so the library uses
//! nothing of it. It needs no library at all, so it loads under any libc.
//!
//! A variable that cannot be understood or enforced ends the process with status 125 and a message.
#![no_std]
#![deny(unsafe_code)]

mod environment;
mod sys;

use environment::Environment;
use sbx_policy::calls::Arch;
use sbx_policy::env::{self, Variables};
use sbx_policy::program::TooLong;
use sbx_policy::rules::{Layout, QUERY, Rules};
use sbx_policy::{Program, bpf, errno};

/// The exit status of a refusal, the same as that of `sbx`.
const REFUSED: i32 = 125;
const VERBOSE: &[u8] = b"SBX_VERBOSE";
/// Set by the launcher: the number of the descriptor that this library was loaded from.
const SHIM_FD: &[u8] = b"SBX_SHIM_FD";
/// Variables of the kernel's Landlock sample program. This version cannot enforce them.
const LANDLOCK: [&[u8]; 5] = [b"LL_FS_RO", b"LL_FS_RW", b"LL_TCP_BIND", b"LL_TCP_CONNECT", b"LL_SCOPED"];

fn start(environment: &mut Environment) {
    if let Some(name) = LANDLOCK.into_iter().find(|name| environment.get(name).is_some()) {
        refuse(&|out| {
            out(name);
            out(b" is set, but this version cannot enforce it; unset it, or use 'sbx run'");
        });
    }
    let own = [env::ALLOW.as_bytes(), env::DENY.as_bytes(), env::ACTION.as_bytes(), VERBOSE, SHIM_FD];
    if let Some(name) = own.into_iter().find(|name| environment.is_twice(name)) {
        refuse(&|out| {
            out(name);
            out(b" is set twice; set it once");
        });
    }
    if let Some(misspelt) = environment.names().find_map(env::misspelt) {
        refuse(&|out| misspelt.write(out));
    }
    let variables = Variables {
        allow: environment.get(env::ALLOW.as_bytes()),
        deny: environment.get(env::DENY.as_bytes()),
        action: environment.get(env::ACTION.as_bytes()),
    };
    let verbose = environment.get(VERBOSE) == Some(b"1");
    let rules = match env::rules(&variables, Arch::HOST) {
        Ok(rules) => rules,
        Err(error) => refuse(&|out| error.write(out)),
    };
    // Before the filter is installed: the filter may refuse close(2).
    close_own_descriptor(environment);
    for name in own {
        environment.remove(name);
    }
    if let Some(rules) = rules {
        environment.remove_preload();
        confine(&rules, verbose);
    }
}

fn confine(rules: &Rules, verbose: bool) {
    let answer = sys::query(QUERY, rules.identity());
    if answer == -i64::from(errno::EALREADY) {
        return;
    }
    let already_bound = answer == -i64::from(errno::EISCONN);
    // Most programs are short, and stack that is not touched costs nothing.
    install::<SHORT>(rules, already_bound, verbose)
        .or_else(|TooLong| long(rules, already_bound, verbose))
        .unwrap_or_else(|TooLong| refuse(&|out| out(b"cannot build the filter: too many rules")));
}

const SHORT: usize = 640;

#[inline(never)]
fn long(rules: &Rules, already_bound: bool, verbose: bool) -> Result<(), TooLong> {
    install::<{ bpf::MAX_INSNS }>(rules, already_bound, verbose)
}

#[inline(never)]
fn install<const ROOM: usize>(rules: &Rules, already_bound: bool, verbose: bool) -> Result<(), TooLong> {
    let mut buffer = [bpf::stmt(bpf::RET, bpf::RET_KILL_PROCESS); ROOM];
    let program = Program::build(&Layout { rules, extra: None }, &mut buffer)?;
    if verbose {
        announce(&program, rules);
    }
    // Inside an sbx sandbox no_new_privs is already set, and its filter may refuse prctl(2).
    if !already_bound {
        let result = sys::set_no_new_privs();
        if result < 0 {
            fail(b"set no_new_privs: prctl(PR_SET_NO_NEW_PRIVS)", result);
        }
    }
    let result = sys::install(program.insns());
    if result < 0 {
        fail(b"install the filter: seccomp(SECCOMP_SET_MODE_FILTER)", result);
    }
    if result > 0 {
        refuse(&|out| out(b"cannot install the filter: another thread has another filter"));
    }
    Ok(())
}

/// Runs before the filter is installed: the filter may refuse write(2).
fn announce(program: &Program<'_>, rules: &Rules) {
    let mut line = Line::new();
    line.add(if rules.unnamed_allowed {
        b"installing a deny-list of "
    } else {
        b"installing an allow-list of "
    });
    line.number(program.insns().len() as u64);
    line.add(b" instructions\n");
    line.print();
}

/// Closes the descriptor through which the launcher passed this library: it is not needed any more.
fn close_own_descriptor(environment: &Environment) {
    if let Some(number) = environment.get(SHIM_FD).and_then(environment::parse_number) {
        sys::close(number);
    }
}

fn fail(operation: &[u8], result: i64) -> ! {
    refuse(&|out| {
        out(b"cannot ");
        out(operation);
        out(b": ");
        match u16::try_from(-result).ok().and_then(errno::name) {
            Some("ENOSYS" | "EINVAL") => out(b"this kernel has no seccomp filters"),
            Some(name) => out(name.as_bytes()),
            None => out(b"unexpected error"),
        }
    })
}

/// A function that passes the parts of a message to the function it is given.
type Message<'a> = &'a dyn Fn(&mut dyn FnMut(&[u8]));

fn refuse(message: Message<'_>) -> ! {
    let mut line = Line::new();
    message(&mut |part| line.add(part));
    line.add(b"\n");
    line.print();
    sys::exit(REFUSED)
}

/// One line for stderr, written with a single system call.
struct Line {
    bytes: [u8; 512],
    len: usize,
}

impl Line {
    fn new() -> Line {
        let mut line = Line { bytes: [0; 512], len: 0 };
        line.add(b"libsandbox.so: ");
        line
    }

    fn add(&mut self, part: &[u8]) {
        for byte in part {
            // The last place is reserved for the line feed.
            let room = self.len < self.bytes.len() - 1 || *byte == b'\n';
            if let Some(slot) = self.bytes.get_mut(self.len).filter(|_| room) {
                *slot = *byte;
                self.len += 1;
            }
        }
    }

    fn number(&mut self, number: u64) {
        if number >= 10 {
            self.number(number / 10);
        }
        self.add(&[b'0' + (number % 10) as u8]);
    }

    fn print(&self) {
        sys::write(2, self.bytes.get(..self.len).unwrap_or(&[]));
    }
}
