//! What the kernel tells of a process (proc_pid_status(5)).

use crate::sys::file;
use crate::sys::process::{self, Pid};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The status of a process or thread at one moment. Its name may be any bytes.
pub struct Status(Vec<u8>);

impl Status {
    /// Of a process or thread.
    pub fn of(process: Pid) -> io::Result<Status> {
        file::read(Path::new(&format!("/proc/{process}/status"))).map(Status)
    }

    /// Of this process.
    pub fn own() -> io::Result<Status> {
        file::read(Path::new("/proc/self/status")).map(Status)
    }

    /// The first lines, which tell who it is: of those that follow, the list of groups may be long.
    pub fn beginning(thread: Pid) -> io::Result<Status> {
        const ENOUGH: u64 = 8192;
        let mut text = Vec::new();
        File::open(format!("/proc/{thread}/status"))?.take(ENOUGH).read_to_end(&mut text)?;
        Ok(Status(text))
    }

    /// Such a text.
    pub fn from_text(text: impl Into<Vec<u8>>) -> Status {
        Status(text.into())
    }

    /// What stands behind a name and its colon, as it is. Older kernels lack some names.
    pub fn bytes(&self, name: &str) -> Option<&[u8]> {
        let after = |line: &[u8]| line.strip_prefix(name.as_bytes())?.strip_prefix(b":").map(|_| ());
        let line = self.0.split(|byte| *byte == b'\n').find(|line| after(line).is_some())?;
        let value = line.get(name.len() + 1..)?;
        Some(value.strip_prefix(b"\t").unwrap_or(value))
    }

    /// The same as text, without blanks around it.
    pub fn field(&self, name: &str) -> Option<&str> {
        str::from_utf8(self.bytes(name)?).ok().map(str::trim)
    }

    /// A set of signals or capabilities, which the kernel writes in hexadecimal digits; 0 if it is not there.
    pub fn set(&self, name: &str) -> u64 {
        self.field(name).and_then(|text| u64::from_str_radix(text, 16).ok()).unwrap_or(0)
    }
}

/// A number that proc_pid_stat(5) tells of a process, by its field there.
pub fn stat_number(process: Pid, field: usize) -> Option<i32> {
    stat_field(&process::about(process, "stat").ok()?, field)?.parse().ok()
}

/// A field of proc_pid_stat(5) in its text, by its number there. The name before it may hold anything.
pub fn stat_field(text: &str, number: usize) -> Option<&str> {
    text.rsplit_once(')')?.1.split_whitespace().nth(number.checked_sub(3)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let status =
            Status::from_text("Name:\tSigPnd: x \nSigPndX:\t2\nSigPnd:\t0000000000000010\nThreads:\t3\n");
        assert_eq!((status.set("SigPnd"), status.set("SigBlk")), (16, 0));
        assert_eq!((status.field("Threads"), status.field("Thread")), (Some("3"), None));
        assert!(Status::own().is_ok_and(|own| own.field("Pid") == Some(&std::process::id().to_string())));
    }

    #[test]
    fn the_name_of_a_process_is_no_field() {
        let text = "7 (a) R 1 2) S 9 7 7 34816 7";
        assert_eq!(
            (stat_field(text, 3), stat_field(text, 4), stat_field(text, 7)),
            (Some("S"), Some("9"), Some("34816"))
        );
        assert_eq!(stat_field(text, 2), None);
    }
}
