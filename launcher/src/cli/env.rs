//! `sbx env`: a profile's system calls as variables.

use crate::cli::flags::Env;
use crate::cli::print;
use crate::error::Refusal;
use crate::host::Host;
use crate::plan::calls::{self, Unix};
use crate::plan::rules::Network;
use crate::profile;
use crate::text::escape;
use sbx_policy::bpf;
use sbx_policy::calls::Arch;
use sbx_policy::env::{ACTION, ALLOW, DENY, action};
use sbx_policy::list::List;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

/// Prints the variables.
pub fn run(flags: &Env) -> Result<i32, Refusal> {
    let profile = profile::load(&flags.profile, &Host::of_this_process().search())?;
    let network = Network { mode: calls::mode(&profile), ..Network::default() };
    // Without Landlock nothing tells one UNIX socket from another.
    let mut calls = calls::calls(&profile, &network, false, Unix::Refused, Arch::HOST)?;
    for list in &flags.allow_calls {
        calls.add(List::Allow, "--allow-calls", list.as_bytes())?;
    }
    for list in &flags.deny_calls {
        calls.add(List::Deny, "--deny-calls", list.as_bytes())?;
    }
    let violation = match &flags.action {
        Some(text) => action(text.as_bytes()).map_err(|_| {
            let text = escape(text.as_bytes(), 100);
            Refusal::new(format!("unknown action '{text}'; it is one of kill, log, errno, errno=NAME, trap"))
        })?,
        None => {
            profile.syscalls.default.as_deref().and_then(|d| d.violation()).unwrap_or(bpf::RET_KILL_PROCESS)
        }
    };
    let text = calls.text(violation)?;
    let mut lines = String::new();
    for (name, value) in [(ALLOW, text.allow), (DENY, text.deny), (ACTION, Some(text.action))] {
        // Nothing in the values needs more quoting than the brackets do.
        let _ = match value {
            Some(value) if flags.file => writeln!(lines, "{name}={value}"),
            Some(value) => writeln!(lines, "export {name}='{value}'"),
            // What an earlier profile has left there would be mixed into this one.
            None if !flags.file => writeln!(lines, "unset {name}"),
            None => Ok(()),
        };
    }
    print(lines.as_bytes())?;
    Ok(0)
}
