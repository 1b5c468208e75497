//! One round: the command runs under the profile as it is so far, and its report is read.

use crate::error::{Refusal, cannot};
use crate::explain::hint::shell_word;
use crate::sys::descriptor::{self, Interest};
use crate::sys::signal::{self, Set};
use crate::sys::within::is_within;
use crate::sys::{plain, process};
use crate::text::json_document;
use sbx_client::report::{Report, ViolationRecord};
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Longest report, in bytes.
const LONGEST: u64 = 64 << 20;
/// The program that is running, whatever became of its name.
const OWN_PROGRAM: &str = "/proc/self/exe";
/// Signals that ask for an end.
const REQUESTS: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// How rounds are run.
pub struct Rounds<'a> {
    /// The command.
    pub command: &'a [OsString],
    /// Whether standard output is for something else, and the command writes to standard error.
    pub diverts: bool,
    /// What `--deny` names, as given and in full.
    denied: Vec<(PathBuf, PathBuf)>,
    requests: OwnedFd,
}

/// How a round ended.
pub enum Ended {
    /// With a report.
    Reported(Box<Report>),
    /// A signal asked for the end.
    Asked(i32),
}

impl<'a> Rounds<'a> {
    /// From now on a signal that asks for an end ends the round first.
    pub fn new(
        command: &'a [OsString],
        diverts: bool,
        denied: Vec<(PathBuf, PathBuf)>,
    ) -> Result<Rounds<'a>, Refusal> {
        let set = Set::of(&REQUESTS);
        let requests = signal::descriptor(&set).map_err(cannot("hear of signals"))?;
        signal::set_mask(&set).map_err(cannot("hear of signals"))?;
        Ok(Rounds { command, diverts, denied, requests })
    }

    /// Runs one, with these flags of `sbx run`.
    pub fn run(&self, flags: &[OsString], profile: &Value) -> Result<Ended, Refusal> {
        let text = json_document(profile);
        // In memory, sealed: no run can change it, and no name leads to it.
        let profile = descriptor::sealed_memory_file(c"learned", text.as_bytes());
        let profile = profile.map_err(cannot("keep the profile in memory"))?;
        let (reader, writer) = descriptor::pipe().map_err(cannot("make a pipe for the report"))?;
        descriptor::keep_on_exec(writer.as_raw_fd()).map_err(cannot("hand on the pipe for the report"))?;
        let mut command = Command::new(OWN_PROGRAM);
        command.arg0("sbx").arg("run").arg(format!("--report-fd={}", writer.as_raw_fd()));
        command
            .args(["--quiet", "--explain"])
            .arg(format!("--profile=/proc/self/fd/{}", profile.as_raw_fd()));
        command.args(flags).arg("--").args(self.command);
        if self.diverts {
            let stderr = std::io::stderr().as_fd().try_clone_to_owned();
            let stderr = stderr
                .map_err(|error| Refusal::new(format!("cannot use standard error: {}", plain(&error))))?;
            command.stdout(Stdio::from(stderr));
        }
        signal::unblock_in(&mut command);
        let child = command.spawn();
        let child =
            child.map_err(|error| Refusal::new(format!("cannot start sbx run: {}", plain(&error))))?;
        let name = profile.as_raw_fd().to_string();
        drop((writer, profile));
        let mut ended = self.wait(child, reader)?;
        if let Ended::Reported(report) = &mut ended {
            report.violations.iter_mut().for_each(|record| self.name_rule(record, &name));
        }
        Ok(ended)
    }

    /// The file of a round's profile has a number for a name, which says nothing to anybody: the rule of a flag is
    /// named by that flag.
    fn name_rule(&self, record: &mut ViolationRecord, name: &str) {
        let Some(rule) = record.rule.as_mut().filter(|rule| rule.profile.as_deref() == Some(name)) else {
            return;
        };
        let path = record.path.as_ref().map(|path| Path::new(OsStr::from_bytes(&path.0)));
        let is_about = |denied: &Path| path.is_some_and(|path| is_within(path, denied));
        let of_flag = self.denied.iter().find(|(_, real)| is_about(real));
        let of_flag = of_flag.filter(|_| rule.key.as_deref() == Some("paths.deny"));
        let whose = match of_flag {
            Some((given, _)) => format!("--deny {}", shell_word(given.as_os_str())),
            None => "the profile so far".to_string(),
        };
        rule.text = rule.text.replacen(&format!("profile '{name}'"), &whose, 1);
    }

    /// Reads the report to its end. A signal from a process is passed on; one of the terminal reaches both.
    fn wait(&self, mut child: Child, reader: OwnedFd) -> Result<Ended, Refusal> {
        let mut asked = None;
        let (mut text, mut pipe) = (Vec::new(), File::from(reader));
        loop {
            let interests =
                [Interest::read(Some(pipe.as_raw_fd())), Interest::read(Some(self.requests.as_raw_fd()))];
            let [report, request] =
                descriptor::poll(interests, None).map_err(cannot("wait for the end of the command"))?;
            if request.now
                && let Some(arrived) = signal::next(self.requests.as_fd())
            {
                asked.get_or_insert(arrived.number);
                if !arrived.from_kernel {
                    process::signal(child.id().cast_signed(), arrived.number);
                }
            }
            if report.now || report.gone {
                let mut chunk = vec![0; 1 << 16];
                match pipe.read(&mut chunk) {
                    Ok(0) => break,
                    Ok(count) => text.extend_from_slice(chunk.get(..count).unwrap_or_default()),
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(error) => {
                        return Err(Refusal::new(format!("cannot read the report: {}", plain(&error))));
                    }
                }
            }
            if text.len() as u64 > LONGEST {
                return Err(Refusal::new("cannot read the report: it is longer than any that sbx writes"));
            }
        }
        let status = child
            .wait()
            .map_err(|error| Refusal::new(format!("cannot wait for sbx run: {}", plain(&error))))?;
        if let Some(signal) = asked {
            return Ok(Ended::Asked(signal));
        }
        match serde_json::from_slice(&text) {
            Ok(report) => Ok(Ended::Reported(Box::new(report))),
            Err(_) => Err(Refusal::new(format!(
                "cannot tell what the command asked for: sbx run left no report ({status})"
            ))),
        }
    }
}
