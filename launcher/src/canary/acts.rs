//! What runs inside: `sbx canary`, which tries what it is told to and says what came of it.
//!
//! It is not trusted to tell the truth about what happened outside, which the tester looks at itself; but it is this
//! program, so what it says the kernel answered is taken for that.

use crate::sys::canary as sys;
use crate::sys::canary::Errno;
use crate::sys::{descriptor, process};
use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The word on the command line that makes `sbx` the canary. Not one of the subcommands: it is of no use by itself.
pub const WORD: &str = "canary";

/// What the canary cannot speak, be told apart and end without, as entries of a list of calls. No promise is about
/// any of it.
pub const NEEDS: &[&str] = &["exit_group", "getpid", "getppid", "mmap[no-jit]", "read", "write"];

/// What the canary is told about its surroundings.
#[derive(Clone, Debug)]
pub struct Brief {
    /// The directory that the tester has made.
    pub root: PathBuf,
    /// A port on loopback where the tester listens for TCP, and one for UDP.
    pub ports: (u16, u16),
    /// A process to attack.
    pub victim: i32,
    /// Where a secret stands in the victim's memory, and its length.
    pub memory: (usize, usize),
}

impl Brief {
    /// As arguments of `sbx`, its name left out.
    pub fn arguments(&self, acts: &[&str]) -> Vec<OsString> {
        let numbers = [
            self.ports.0 as usize,
            self.ports.1 as usize,
            self.victim as usize,
            self.memory.0,
            self.memory.1,
        ];
        let mut words = vec![OsString::from(WORD), self.root.clone().into()];
        words.extend(numbers.iter().map(|number| number.to_string().into()));
        words.push(acts.join(",").into());
        words
    }

    fn parse(words: &[OsString]) -> Option<(Brief, Vec<&str>)> {
        let [root, numbers @ .., acts] = words else { return None };
        let numbers: Vec<usize> = numbers.iter().map_while(|word| word.to_str()?.parse().ok()).collect();
        let [tcp, udp, victim, address, length] = *numbers.as_slice() else { return None };
        let brief = Brief {
            root: root.into(),
            ports: (u16::try_from(tcp).ok()?, u16::try_from(udp).ok()?),
            victim: i32::try_from(victim).ok()?,
            memory: (address, length),
        };
        Some((brief, acts.to_str()?.split(',').collect()))
    }
}

/// Tries the acts that the arguments after the word name; one line each.
pub fn main(words: &[OsString]) -> i32 {
    let Some((brief, acts)) = Brief::parse(words) else {
        let _ = writeln!(
            io::stderr(),
            "sbx: 'canary' is what 'sbx test' runs in a sandbox; it does nothing by itself"
        );
        return crate::refusal::REFUSED.into();
    };
    for (index, act) in acts.iter().enumerate() {
        let rest = acts.get(index + 1..).unwrap_or(&[]);
        match perform(act, &brief, rest) {
            Ok(text) => say(&format!("{act} +{text}\n")),
            Err(errno) => say(&format!("{act} -{errno}\n")),
        }
    }
    0
}

/// At once, since the next act may be the last. Where that is refused there is nothing to go on for.
fn say(line: &str) {
    if descriptor::write_all(1, line.as_bytes()).is_err() {
        process::exit_now(1);
    }
}

fn perform(act: &str, brief: &Brief, rest: &[&str]) -> Result<String, Errno> {
    match act {
        "begin" => return Ok(process::id().to_string()),
        "daemon" => return sys::daemon().map(|pid| pid.to_string()),
        // The next program has got here.
        "executed" => {
            say("exec +\n");
            return Ok(String::new());
        }
        "exec" => return Err(errno(&execute(brief, rest))),
        "pause" => {
            say("here +\n");
            let _ = descriptor::read(0, &mut [0]);
            return Ok(String::new());
        }
        _ => {}
    }
    on_files(act, &brief.root)
        .or_else(|| on_sockets(act, brief))
        .or_else(|| on_processes(act, brief))
        .unwrap_or_else(|| on_kernel(act).map(|()| String::new()))
}

fn errno(error: &io::Error) -> Errno {
    error.raw_os_error().unwrap_or(libc::EIO)
}

/// Becomes this program once more, for the acts that are left.
fn execute(brief: &Brief, rest: &[&str]) -> io::Error {
    let acts = [&["executed"], rest].concat();
    Command::new("/proc/self/exe").args(brief.arguments(&acts)).exec()
}

fn on_files(act: &str, root: &Path) -> Option<Result<String, Errno>> {
    let (outside, project) = (root.join("home/outside"), root.join("home/project"));
    let text = |path: PathBuf| {
        let mut text = String::new();
        fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text)).map(|_| text)
    };
    let done = |result: io::Result<()>| result.map(|()| String::new());
    let write = |path: PathBuf| {
        let opened = OpenOptions::new().append(true).create(true).open(path);
        done(opened.and_then(|mut file| file.write_all(b"canary\n")))
    };
    let plain = |result: sys::Got| result.map(|()| String::new()).map_err(io::Error::from_raw_os_error);
    let result = match act {
        "read-secret" => text(root.join("home/.ssh/id_rsa")),
        "read-through-link" => text(project.join("way-out")),
        // What it says is nobody's business.
        "read-shadow" => done(fs::File::open("/etc/shadow").and_then(|mut file| file.read_exact(&mut [0]))),
        "read-workspace" => text(project.join("readme")),
        "read-granted" => text(root.join("home/granted/file")),
        "write-granted" => write(root.join("home/granted/file")),
        "write-workspace" => write(project.join("made")),
        "make-outside" => write(outside.join("made")),
        "append-outside" => write(outside.join("kept")),
        "truncate-outside" => plain(sys::truncate(&outside.join("emptied"))),
        "remove-outside" => done(fs::remove_file(outside.join("removed"))),
        "rename-outside" => done(fs::rename(outside.join("renamed"), outside.join("moved"))),
        "link-in" => done(fs::hard_link(outside.join("secret"), project.join("link"))),
        "chmod-outside" => {
            done(fs::set_permissions(outside.join("attributes"), Permissions::from_mode(0o777)))
        }
        "times-outside" => plain(sys::set_times(&outside.join("attributes"))),
        "xattr-outside" => plain(sys::set_attribute(&outside.join("attributes"))),
        "set-id-made" => plain(sys::make_set_id(&project.join("set-id"))),
        "set-id-changed" => done(fs::set_permissions(project.join("readme"), Permissions::from_mode(0o4755))),
        "leave-scratch" => done(
            std::env::var_os("TMPDIR")
                .map_or(Ok(()), |scratch| fs::write(Path::new(&scratch).join("left"), "x")),
        ),
        "device" => plain(sys::make_device(&project.join("device"))),
        _ => return None,
    };
    Some(result.map_err(|error| errno(&error)))
}

/// The abstract socket that the tester listens on.
pub fn abstract_name(root: &Path) -> io::Result<SocketAddr> {
    use std::os::unix::ffi::OsStrExt;
    SocketAddr::from_abstract_name(root.file_name().unwrap_or(OsStr::new("")).as_bytes())
}

fn on_sockets(act: &str, brief: &Brief) -> Option<Result<String, Errno>> {
    let loopback = |port| (Ipv4Addr::LOCALHOST, port);
    let result = match act {
        "tcp" => {
            TcpStream::connect_timeout(&loopback(brief.ports.0).into(), Duration::from_secs(1)).map(drop)
        }
        "udp" => UdpSocket::bind(loopback(0))
            .and_then(|socket| socket.send_to(b"x", loopback(brief.ports.1)))
            .map(drop),
        "unix" => UnixStream::connect(brief.root.join("home/outside/socket")).map(drop),
        "abstract" => abstract_name(&brief.root).and_then(|name| UnixStream::connect_addr(&name)).map(drop),
        "inet6" => return Some(empty(sys::socket(libc::AF_INET6, libc::SOCK_STREAM, 0))),
        "netlink" => {
            return Some(empty(sys::socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_KOBJECT_UEVENT)));
        }
        "raw" => return Some(empty(sys::socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP))),
        "packet" => return Some(empty(sys::socket(libc::AF_PACKET, libc::SOCK_RAW, 0))),
        "vsock" => return Some(empty(sys::socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0))),
        "alg" => return Some(empty(sys::socket(libc::AF_ALG, libc::SOCK_SEQPACKET, 0))),
        _ => return None,
    };
    Some(result.map(|()| String::new()).map_err(|error| errno(&error)))
}

fn empty(got: sys::Got) -> Result<String, Errno> {
    got.map(|()| String::new())
}

fn on_processes(act: &str, brief: &Brief) -> Option<Result<String, Errno>> {
    let victim = brief.victim;
    let open = |path: String| fs::File::open(path).map(drop).map_err(|error| errno(&error));
    Some(empty(match act {
        "fork" => sys::fork(),
        "trace" => sys::trace(victim),
        "read-memory" => {
            let (address, length) = brief.memory;
            let memory = sys::read_memory(victim, address, length);
            return Some(memory.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()));
        }
        "memory-file" => open(format!("/proc/{victim}/mem")),
        "environ-outside" => open(format!("/proc/{victim}/environ")),
        "environ-supervisor" => open(format!("/proc/{}/environ", process::parent())),
        "take-descriptor" => sys::take_descriptor(victim),
        "signal" => sys::signal(victim, false),
        "signal-thread" => sys::signal(victim, true),
        "priority" => sys::lower_priority(victim),
        "limits" => sys::file_limit(victim, true).map(drop),
        "untie" => sys::untie(),
        _ => return None,
    }))
}

fn on_kernel(act: &str) -> sys::Got {
    match act {
        "namespace" => sys::fork_into_namespace(),
        "unshare" => sys::unshare(),
        "keyring" => sys::session_keyring(),
        "type" => sys::type_into_terminal(false),
        "type-high" => sys::type_into_terminal(true),
        "write-execute" => sys::executable_memory(false),
        "write-then-execute" => sys::executable_memory(true),
        "x32" => sys::x32(),
        "narrow" => sys::narrow_call(),
        other => sys::kernel(other),
    }
}
