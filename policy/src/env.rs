//! Reads and writes the environment variables of `libsandbox.so`.

use crate::bpf;
use crate::calls::{Arch, Call, nearest};
use crate::errno;
use crate::list::{List, Problem};
use crate::message;
use crate::rules::{Actions, Grant, Row, Rules};

/// The variable of allowed system calls.
pub const ALLOW: &str = "SECCOMP_SYSCALL_ALLOW";
/// The variable of denied system calls.
pub const DENY: &str = "SECCOMP_SYSCALL_DENY";
/// The variable of the action on a violation.
pub const ACTION: &str = "SECCOMP_DEFAULT_ACTION";

/// The values of the variables that are set.
#[derive(Clone, Copy, Debug, Default)]
pub struct Variables<'a> {
    /// [`ALLOW`].
    pub allow: Option<&'a [u8]>,
    /// [`DENY`].
    pub deny: Option<&'a [u8]>,
    /// [`ACTION`].
    pub action: Option<&'a [u8]>,
}

/// A variable that cannot be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error<'a> {
    /// The name of the variable.
    pub variable: &'static str,
    /// The cause.
    pub cause: Cause<'a>,
}

/// Why a variable cannot be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause<'a> {
    /// A list has a wrong entry.
    Entry(Problem<'a>),
    /// There is no such action; the most similar one.
    UnknownAction(&'a [u8], Option<&'static str>),
    /// An action is set, but no list.
    NoLists,
}

/// A variable whose name is nearly that of one of these: a list under it would not be obeyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misspelt<'a> {
    name: &'a [u8],
    meant: &'static str,
}

/// Finds the variable that was meant by a name which is nearly its own.
pub fn misspelt(name: &[u8]) -> Option<Misspelt<'_>> {
    const KNOWN: [&str; 3] = [ALLOW, DENY, ACTION];
    if !name.starts_with(b"SEC") || KNOWN.iter().any(|known| known.as_bytes() == name) {
        return None;
    }
    let meant = nearest(name, KNOWN.into_iter())?;
    Some(Misspelt { name, meant })
}

impl Misspelt<'_> {
    /// Writes the message, in pieces.
    pub fn write(&self, out: &mut dyn FnMut(&[u8])) {
        out(b"unknown variable '");
        message::quote(self.name, out);
        out(b"' (did you mean '");
        out(self.meant.as_bytes());
        out(b"'?)");
    }
}

const ACTIONS: [&str; 4] = ["kill", "log", "errno", "trap"];

/// The rules that the variables ask for; `None` if none is set.
pub fn rules<'a>(variables: &Variables<'a>, arch: Arch) -> Result<Option<Rules>, Error<'a>> {
    let fail = |variable| move |cause| Error { variable, cause };
    let violation = variables.action.map_or(Ok(bpf::RET_KILL_PROCESS), action).map_err(fail(ACTION))?;
    if variables.allow.is_none() && variables.deny.is_none() {
        return if variables.action.is_some() { Err(fail(ACTION)(Cause::NoLists)) } else { Ok(None) };
    }
    let actions = Actions { violation, log: bpf::RET_LOG, unknown: None };
    let mut rules = Rules::new(arch, variables.allow.is_none(), actions);
    for (variable, list, text) in [(ALLOW, List::Allow, variables.allow), (DENY, List::Deny, variables.deny)]
    {
        for entry in text.unwrap_or(b"").split(|b| *b == b':').filter(|entry| !entry.is_empty()) {
            rules.add(list, entry).map_err(|problem| fail(variable)(Cause::Entry(problem)))?;
        }
    }
    if !rules.unnamed_allowed && violation == bpf::RET_KILL_PROCESS {
        spare_random_bytes(&mut rules);
    }
    Ok(Some(rules))
}

/// Answers getrandom(2) with an error where no list names it: glibc's first malloc asks for random bytes (since 2.36)
/// and does without them, so a list that names what a program calls by itself would end every program that allocates.
fn spare_random_bytes(rules: &mut Rules) {
    let row = Call::named(b"getrandom").and_then(|call| rules.row_mut(call));
    if let Some(row) = row.filter(|row| **row == Row::default()) {
        (row.deny, row.errno) = (Grant::All, errno::ENOSYS);
    }
}

/// The return value of a filter for the action `kill`, `log`, `errno`, `errno=NAME` or `trap`.
pub fn action(text: &[u8]) -> Result<u32, Cause<'_>> {
    let unknown = || Cause::UnknownAction(text, nearest(text, ACTIONS.into_iter()));
    match text {
        b"kill" => Ok(bpf::RET_KILL_PROCESS),
        b"log" => Ok(bpf::RET_LOG),
        b"trap" => Ok(bpf::RET_TRAP),
        b"errno" => Ok(bpf::RET_ERRNO | u32::from(errno::EPERM)),
        _ => {
            let number = text.strip_prefix(b"errno=").and_then(errno::parse).ok_or_else(unknown)?;
            Ok(bpf::RET_ERRNO | u32::from(number))
        }
    }
}

impl Error<'_> {
    /// Writes the message, in pieces.
    pub fn write(&self, out: &mut dyn FnMut(&[u8])) {
        out(b"cannot read ");
        out(self.variable.as_bytes());
        out(b": ");
        match self.cause {
            Cause::Entry(problem) => problem.write(out),
            Cause::NoLists => {
                out(b"neither SECCOMP_SYSCALL_ALLOW nor SECCOMP_SYSCALL_DENY is set; set one, or unset this")
            }
            Cause::UnknownAction(text, near) => {
                out(b"unknown action '");
                message::quote(text, out);
                match near {
                    Some(near) => {
                        out(b"' (did you mean '");
                        out(near.as_bytes());
                        out(b"'?)");
                    }
                    None => out(b"'; it is one of kill, log, errno, errno=NAME, trap"),
                }
            }
        }
    }
}

#[cfg(any(feature = "std", test))]
mod text {
    use super::*;
    use crate::calls::Call;
    use crate::restrictions;
    use crate::rules::{Grant, Row};

    impl std::fmt::Display for Error<'_> {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(&message::whole(|out| self.write(out)))
        }
    }

    /// The variables that ask for given rules.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Text {
        /// [`ALLOW`].
        pub allow: Option<String>,
        /// [`DENY`].
        pub deny: Option<String>,
        /// [`ACTION`].
        pub action: String,
    }

    /// Writes rules as variables; [`rules`] reads them back. `None` if the action has no text. `None` also if all
    /// unnamed system calls are allowed and a named one is allowed under conditions: a deny-list cannot express that.
    pub fn text(rules: &Rules) -> Option<Text> {
        let conditional = |row: &Row| row.deny != Grant::All && matches!(row.allow, Grant::Some(_));
        if rules.unnamed_allowed && Call::all().filter_map(|call| rules.row(call)).any(conditional) {
            return None;
        }
        let allow = list(rules, |row| row.allow, |_| 0);
        let deny = list(rules, |row| row.deny, |row| row.errno);
        Some(Text {
            allow: (!rules.unnamed_allowed).then_some(allow),
            deny: (rules.unnamed_allowed || !deny.is_empty()).then_some(deny),
            action: action_text(rules.actions.violation)?,
        })
    }

    fn list(rules: &Rules, grant: fn(&Row) -> Grant, errno: fn(&Row) -> u16) -> String {
        let mut entries = Vec::new();
        for call in Call::all() {
            let Some(row) = rules.row(call) else { continue };
            let suffix = match errno(row) {
                0 => String::new(),
                number => format!("={}", errno::name(number).map_or(number.to_string(), str::to_string)),
            };
            match grant(row) {
                Grant::None => {}
                Grant::All => entries.push(format!("{}{suffix}", call.name())),
                Grant::Some(mask) => {
                    let all = restrictions::of_call(call);
                    let named = all.enumerate().filter(|(bit, _)| mask & (1 << bit) != 0);
                    entries.extend(
                        named.map(|(_, i)| format!("{}[{}]{suffix}", call.name(), restrictions::name(i))),
                    );
                }
            }
        }
        entries.join(":")
    }

    fn action_text(value: u32) -> Option<String> {
        let errno = value as u16;
        match value {
            bpf::RET_KILL_PROCESS => Some("kill".to_string()),
            bpf::RET_LOG => Some("log".to_string()),
            bpf::RET_TRAP => Some("trap".to_string()),
            _ if value == bpf::RET_ERRNO | u32::from(errno) => {
                Some(format!("errno={}", errno::name(errno).map_or(errno.to_string(), str::to_string)))
            }
            _ => None,
        }
    }
}
#[cfg(any(feature = "std", test))]
pub use text::{Text, text};
