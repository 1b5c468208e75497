//! The machine, and what confines this process already.

use crate::program::{self, FileKind as Kind};
use crate::selftest::status::trial::Attempt;
use crate::sys::status::Status;
use crate::sys::{descriptor, plain, probe, seccomp, setting};
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::Path;

/// Maximum length of a file that is read.
const LONGEST: u64 = 1 << 20;

/// A short file, trimmed.
pub fn read(path: impl AsRef<Path>) -> Option<String> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(LONGEST).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).trim().to_string())
}

/// Kernel, architecture, libc.
pub fn facts() -> Map<String, Value> {
    let (release, machine) = probe::kernel();
    let shell = system_libc();
    let modules = read("/sys/kernel/security/lsm");
    let facts = [
        ("kernel", json!(release)),
        ("architecture", json!(machine)),
        ("libc", json!(shell)),
        ("security-modules", json!(modules)),
    ];
    facts.into_iter().map(|(key, value)| (key.to_string(), value)).collect()
}

/// The libc of the system's programs, recognized by the loader of its shell.
fn system_libc() -> String {
    let examined = match program::examine(Path::new("/bin/sh")) {
        Ok(examined) => examined,
        Err(error) => return format!("unknown ({error})"),
    };
    match examined.last().map(|link| &link.kind) {
        Some(Kind::Dynamic { interpreter } | Kind::ForeignLoader { interpreter }) => {
            let name = interpreter.file_name().unwrap_or_default().to_string_lossy().into_owned();
            match name {
                name if name.starts_with("ld-musl") => "musl".to_string(),
                name if name.starts_with("ld-linux") || name.starts_with("ld64") => "glibc".to_string(),
                name => format!("unknown (loader {name})"),
            }
        }
        Some(Kind::Static | Kind::StaticPie) => "unknown (/bin/sh is static)".to_string(),
        _ => "unknown".to_string(),
    }
}

/// What confines this process already.
pub fn around() -> Map<String, Value> {
    let (mode, no_new_privs) = probe::confinement();
    let status = Status::own().ok();
    let filters = status.as_ref().and_then(|status| status.field("Seccomp_filters")?.parse::<u32>().ok());
    let facts = [
        ("sbx", json!(seccomp::is_confined())),
        ("seccomp", json!(mode == Some(2))),
        ("seccomp-filters", json!(filters)),
        ("no-new-privs", json!(no_new_privs)),
        ("proc", json!(status.is_some())),
    ];
    facts.into_iter().map(|(key, value)| (key.to_string(), value)).collect()
}

/// Makes an executable memory file, as those from which libsandbox.so is loaded.
pub fn memory_files() -> Attempt {
    let file = descriptor::sealed_memory_file(c"sbx-status", b"x")?;
    let path = descriptor::own_name(file.as_raw_fd());
    let opened = File::open(path).and_then(|file| file.take(LONGEST).read_to_end(&mut Vec::new()));
    Ok(match opened {
        Ok(_) => "a sealed executable one was made and opened by its name in /proc".to_string(),
        Err(error) => {
            format!("a sealed executable one was made; opening it by its name in /proc: {}", plain(&error))
        }
    })
}

pub fn memory_facts() -> Vec<(&'static str, Value)> {
    vec![("memfd-noexec", json!(setting::number("vm/memfd_noexec")))]
}
