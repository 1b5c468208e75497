//! The part that runs inside: `sbx self-test` tries the acts that it is told to, and prints what the kernel
//! answered.
//!
//! What happened outside is looked at from there, not taken from what this part prints.

use crate::selftest::hosts;
use crate::sys::selftest::Errno;
use crate::sys::{descriptor, process, selftest as sys};
use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The word on the command line that starts this part. It is no subcommand, since it is of no use by itself.
pub const WORD: &str = "self-test";

/// The calls without which the self-test cannot print anything, as entries of a list of calls. No promise is
/// about them.
pub const NEEDS: &[&str] = &["exit_group", "getpid", "getppid", "mmap[no-jit]", "read", "write"];

/// An act prints its text on success: what was read, or the number of a process.
type Act = fn(&Brief) -> Result<String, Errno>;

/// Everything that can be tried; `exec`, which ends this program, is treated apart.
const ACTS: &[(&str, Act)] = &[
    ("begin", |_| Ok(process::id().to_string())),
    ("pause", |_| Ok(String::new())),
    (EXECUTED, |_| Ok(String::new())),
    ("daemon", |_| sys::daemon().map(|pid| pid.to_string())),
    ("read-workspace", |brief| read(&brief.path("home/project/readme"))),
    ("read-secret", |brief| read(&brief.path("home/.ssh/id_rsa"))),
    ("write-workspace", |brief| append(&brief.path("home/project/made"))),
    ("make-outside", |brief| append(&brief.path("home/outside/made"))),
    ("append-outside", |brief| append(&brief.path("home/outside/kept"))),
    ("chmod-outside", |brief| {
        silent(fs::set_permissions(brief.path("home/outside/attributes"), Permissions::from_mode(0o777)))
    }),
    ("leave-scratch", |_| {
        let write = |scratch| fs::write(Path::new(&scratch).join("left"), "x");
        silent(std::env::var_os("TMPDIR").map_or(Ok(()), write))
    }),
    ("tcp", |brief| {
        let address = (Ipv4Addr::LOCALHOST, brief.ports.0).into();
        silent(TcpStream::connect_timeout(&address, Duration::from_secs(1)))
    }),
    ("udp", |brief| {
        let address = (Ipv4Addr::LOCALHOST, brief.ports.1);
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
        silent(socket.and_then(|socket| {
            socket.send_to(b"x", address)?;
            // In a network of the run's own a packet can be sent to where nobody is: the next one learns of it.
            socket.set_read_timeout(Some(Duration::from_millis(50)))?;
            match socket.connect(address).and_then(|()| socket.send(b"x")).and_then(|_| socket.recv(&mut [0]))
            {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Err(error),
                _ => Ok(()),
            }
        }))
    }),
    ("unix", |brief| silent(UnixStream::connect(brief.path("home/outside/socket")))),
    ("abstract", |brief| silent(abstract_name(&brief.root).and_then(|name| UnixStream::connect_addr(&name)))),
    ("memory-outside", |brief| silent(fs::File::open(format!("/proc/{}/mem", brief.victim)))),
    ("environ-outside", |brief| silent(fs::File::open(format!("/proc/{}/environ", brief.victim)))),
    ("environ-supervisor", |_| silent(fs::File::open(format!("/proc/{}/environ", process::parent())))),
    ("signal", |brief| answered(sys::signal(brief.victim, false))),
    ("signal-thread", |brief| answered(sys::signal(brief.victim, true))),
    ("keyring", |_| answered(sys::session_keyring())),
    ("write-execute", |_| answered(sys::executable_memory(false))),
    ("write-then-execute", |_| answered(sys::executable_memory(true))),
    ("fork", |_| answered(sys::fork())),
    ("unshare", |_| answered(sys::unshare())),
];

/// Replaces this program, so it has to come last.
const EXEC: &str = "exec";
/// Tried by the program that `exec` has started.
const EXECUTED: &str = "executed";

/// What the part inside has to know.
#[derive(Clone, Debug)]
pub struct Brief {
    /// The directory of the stage.
    pub root: PathBuf,
    /// The ports on loopback of its listeners, for TCP and for UDP.
    pub ports: (u16, u16),
    /// A process outside.
    pub victim: i32,
}

impl Brief {
    fn path(&self, below: &str) -> PathBuf {
        self.root.join(below)
    }

    /// As arguments of `sbx`, its name left out.
    pub fn arguments(&self, acts: &[&str]) -> Vec<OsString> {
        let (tcp, udp) = self.ports;
        let numbers = [i32::from(tcp), udp.into(), self.victim].map(|number| number.to_string().into());
        let words = [OsString::from(WORD), self.root.clone().into()];
        words.into_iter().chain(numbers).chain([acts.join(",").into()]).collect()
    }

    fn parse(words: &[OsString]) -> Option<(Brief, Vec<&str>)> {
        let [root, tcp, udp, victim, acts] = words else { return None };
        let ports = (tcp.to_str()?.parse().ok()?, udp.to_str()?.parse().ok()?);
        let brief = Brief { root: root.into(), ports, victim: victim.to_str()?.parse().ok()? };
        Some((brief, acts.to_str()?.split(',').collect()))
    }
}

/// Tries the acts that the arguments after the word name, and prints one line each.
pub fn main(words: &[OsString]) -> i32 {
    let Some((brief, acts)) = Brief::parse(words) else {
        let _ = writeln!(
            io::stderr(),
            "sbx: '{WORD}' is what 'sbx test' runs in a sandbox; it does nothing by itself"
        );
        return crate::error::REFUSED.into();
    };
    for act in acts {
        let name = if act == EXECUTED { EXEC } else { act };
        match perform(act, &brief) {
            Ok(text) => say(&format!("{name} +{text}\n")),
            Err(errno) => say(&format!("{name} -{errno}\n")),
        }
        if act == "pause" {
            let _ = descriptor::read(0, &mut [0]);
        }
    }
    0
}

/// Prints at once, since the next act may be the last one.
fn say(line: &str) {
    if descriptor::write_all(1, line.as_bytes()).is_err() {
        process::exit_now(1);
    }
}

fn perform(act: &str, brief: &Brief) -> Result<String, Errno> {
    if act == EXEC {
        return Err(errno(&Command::new("/proc/self/exe").args(brief.arguments(&[EXECUTED])).exec()));
    }
    if let Some((_, body)) = hosts::acts::ACTS.iter().find(|(name, _)| *name == act) {
        return body().map(|()| String::new());
    }
    let (_, body) = ACTS.iter().find(|(name, _)| *name == act).ok_or(libc::EINVAL)?;
    body(brief)
}

fn errno(error: &io::Error) -> Errno {
    error.raw_os_error().unwrap_or(libc::EIO)
}

fn silent<T>(result: io::Result<T>) -> Result<String, Errno> {
    result.map(|_| String::new()).map_err(|error| errno(&error))
}

fn answered(got: sys::Got) -> Result<String, Errno> {
    got.map(|()| String::new())
}

fn read(path: &Path) -> Result<String, Errno> {
    let mut text = String::new();
    let read = fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text));
    read.map(|_| text).map_err(|error| errno(&error))
}

fn append(path: &Path) -> Result<String, Errno> {
    let opened = OpenOptions::new().append(true).create(true).open(path);
    silent(opened.and_then(|mut file| file.write_all(b"self-test\n")))
}

/// The abstract socket that the stage listens on.
pub fn abstract_name(root: &Path) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(root.file_name().unwrap_or(OsStr::new("")).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selftest::rows::{HOST_ROWS, ROWS, acts};

    #[test]
    fn every_act_of_a_row_is_known_and_a_new_program_comes_last() {
        let all = acts(&ROWS.iter().collect::<Vec<_>>());
        for act in &all {
            assert!(*act == EXEC || ACTS.iter().any(|(name, _)| name == act), "{act}");
        }
        assert_eq!(all.last(), Some(&EXEC));
        for act in acts(&HOST_ROWS.iter().collect::<Vec<_>>()) {
            assert!(hosts::acts::ACTS.iter().any(|(name, _)| *name == act), "{act}");
        }
    }
}
