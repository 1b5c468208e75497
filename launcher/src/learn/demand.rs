//! From a refused call of a report to the rights that would allow it. The report has the narrowest flags that do, which
//! were tried when the call was refused; here they are read strictly, for a report may be anybody's.

use crate::hosts::{HostPattern, HostRule};
use crate::learn::right::{Access, Evidence, Right};
use crate::profile::{self, Grants, Profile, Search, When};
use crate::sys::path::way;
use crate::sys::within::is_within;
use crate::text::{escape, tame};
use sbx_client::report::{Address, Bytes, Fate, ViolationKind, ViolationRecord};
use sbx_policy::calls::Call;
use sbx_policy::list::{self, Target};
use sbx_policy::restrictions;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Longest name of a process that is kept.
const NAME: usize = 40;
/// Longest text of a rule that is kept.
const TEXT: usize = 300;

/// What a refused call is told of.
#[derive(Clone, Debug)]
pub struct Demand {
    /// What happened, for people.
    pub what: String,
    /// Who did it.
    pub evidence: Evidence,
    /// What would allow it, or why nothing that a profile says does.
    pub rights: Result<Vec<Asked>, Unlearnable>,
}

/// Why no rule of a profile can be learned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unlearnable {
    /// In words.
    pub why: String,
    /// A flag gives it, and no profile does: to begin from another one is of no use.
    pub by_flag_alone: bool,
}

impl From<String> for Unlearnable {
    fn from(why: String) -> Unlearnable {
        Unlearnable { why, by_flag_alone: false }
    }
}

/// A right that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// This one.
    Right(Right),
    /// A place, of a call that is refused wherever it is.
    Place(PathBuf, Access),
    /// The network, whatever of it.
    Network(String),
}

/// Whose word a record is.
#[derive(Clone, Copy)]
pub enum Teller<'a> {
    /// A run of ours has told it.
    OwnRun,
    /// It stands in a file, which anybody may have written. It is read for a workspace.
    File(Option<&'a Path>),
}

/// The demand of a record; `None` where nothing was refused.
pub fn of(record: &ViolationRecord, round: usize, teller: Teller<'_>) -> Option<Demand> {
    if matches!(record.fate, Fate::Noted | Fate::Unknown) {
        return None;
    }
    let call = escape(record.call.as_bytes(), NAME);
    let evidence = Evidence::Refused {
        round,
        process: escape(&record.process.0, NAME),
        call: call.clone(),
        path: record.path.as_ref().map(|path| OsStr::from_bytes(&path.0).into()),
        count: record.count,
    };
    // Like the names, these texts are those of whoever wrote the report.
    let arguments = sentence(&record.args);
    let rule = record.rule.as_ref().map_or("", |rule| &rule.text);
    let what = format!("{call}({arguments})");
    let rights = match &record.suggestion {
        Some(suggestion) => read(&suggestion.flags, record, teller),
        None => Err(sentence(rule).into()),
    };
    Some(Demand { what, evidence, rights })
}

/// A text that was made for people, of a report that may be anybody's.
fn sentence(text: &str) -> String {
    text.chars().take(TEXT).map(tame).collect()
}

/// The rights that flags give.
fn read(flags: &[Bytes], record: &ViolationRecord, teller: Teller<'_>) -> Result<Vec<Asked>, Unlearnable> {
    let words: Vec<&[u8]> = flags.iter().map(|word| &word.0[..]).collect();
    let mut asked = Vec::new();
    let (pairs, rest) = words.as_chunks::<2>();
    if pairs.is_empty() || !rest.is_empty() {
        return Err("the flags of the report are none of sbx's".to_string().into());
    }
    if is_agents(pairs, record) {
        let flags: Vec<String> = words.iter().map(|word| escape(word, TEXT)).collect();
        let why = format!("the agent of ssh signs in place of the key; run with {}", flags.join(" "));
        return Err(Unlearnable { why, by_flag_alone: true });
    }
    for [flag, value] in pairs {
        asked.extend(one(flag, value, record, teller)?);
    }
    Ok(asked)
}

/// Whether flags lead to an agent that does what a refused file is for, and not to the file.
fn is_agents(flags: &[[&[u8]; 2]], record: &ViolationRecord) -> bool {
    let of = |[flag, value]: &[&[u8]; 2]| match *flag {
        b"--unix" => record.path.as_ref().is_some_and(|path| path.0 != *value),
        flag => flag == b"--env",
    };
    record.address.is_none() && flags.iter().all(of)
}

fn one(
    flag: &[u8],
    value: &[u8],
    record: &ViolationRecord,
    teller: Teller<'_>,
) -> Result<Vec<Asked>, Unlearnable> {
    let told = || format!("{} {}", escape(flag, NAME), escape(value, TEXT));
    let unfit = || Unlearnable::from(format!("the report's flag '{}' is not about this call", told()));
    let by_flag_alone = |why: String| Err(Unlearnable { why, by_flag_alone: true });
    let right = |right| Ok(vec![Asked::Right(right)]);
    if let Some(access) = Access::of_flag(flag) {
        let path = named(value)?;
        if !is_about(record, &path, access, teller) {
            return Err(unfit());
        }
        if !access.write || !is_call(record) {
            return right(Right::Path(path, access));
        }
        let calls = writing(&record.call).into_iter().map(|entry| Asked::Right(Right::Call(entry)));
        return Ok([Asked::Place(path, access)].into_iter().chain(calls).collect());
    }
    let text = || std::str::from_utf8(value).map_err(|_| unfit());
    match flag {
        b"--allow-calls" => {
            let entries = text()?.split([':', ',']).map(|entry| call(entry, record).ok_or_else(unfit));
            entries.map(|entry| Ok(Asked::Right(Right::Call(entry?)))).collect()
        }
        b"--connect" => {
            let rule = HostRule::parse(text()?).map_err(|_| unfit())?;
            if reaches(record, &rule) { Ok(vec![Asked::Network(rule.to_string())]) } else { Err(unfit()) }
        }
        b"--net" if is_of_sockets(record) => Ok(vec![Asked::Network(String::new())]),
        b"--bind" if is_of_sockets(record) => {
            right(Right::Bind(text()?.parse().ok().filter(|port| *port != 0).ok_or_else(unfit)?))
        }
        b"--unix" => {
            let path = named(value)?;
            if is_socket_of(record, &path) { right(Right::Unix(path)) } else { Err(unfit()) }
        }
        b"--allow-command" => {
            let path = named(value)?;
            if record.path.as_ref().is_some_and(|of| of.0 == path.as_os_str().as_bytes()) {
                right(Right::Command(OsString::from(path)))
            } else {
                Err(unfit())
            }
        }
        b"--host-port" => by_flag_alone(format!(
            "it is a service of this machine, and no profile can name it; run with {}",
            told()
        )),
        b"--profile" => Err(format!("it takes another profile; begin with {}", told()).into()),
        b"--home" => Err(format!("it takes a home of the run's own; begin with {}", told()).into()),
        _ => by_flag_alone(format!("no profile can say it; the flag is {}", told())),
    }
}

/// A path that a profile can name.
fn named(value: &[u8]) -> Result<PathBuf, String> {
    let path = PathBuf::from(OsStr::from_bytes(value));
    let is_plain = path.is_absolute() && path.components().all(|part| part != Component::ParentDir);
    let text = path.to_str().filter(|text| is_plain && !text.contains(['*', '\0']) && !text.contains("${"));
    match text {
        Some(_) => Ok(path.components().collect()),
        None => Err(format!("no profile can name '{}'", escape(value, TEXT))),
    }
}

/// Whether a rule about a path is about what was refused: the path itself, or, to make and remove what is in it, a
/// directory above.
fn is_about(record: &ViolationRecord, path: &Path, access: Access, teller: Teller<'_>) -> bool {
    let Some(of) = &record.path else { return false };
    let of = PathBuf::from(OsStr::from_bytes(&of.0));
    if of == path {
        return true;
    }
    // The path that Landlock refused is the real one. A refused call has its paths as they were given: they may lead
    // through links, or begin in a directory that nothing names.
    let is_given = is_call(record);
    let is_above = |of: &PathBuf| {
        is_within(of, path) || (is_given && of.is_absolute() && is_within(&way(of).real, path))
    };
    let begins_there = |of: &PathBuf| match teller {
        Teller::File(workspace) => of.is_relative() && workspace.is_some_and(|own| is_within(path, own)),
        Teller::OwnRun => true,
    };
    let mut given = std::iter::once(of).chain(if is_given { quoted(&record.args) } else { Vec::new() });
    access.write && given.any(|of| is_above(&of) || (is_given && begins_there(&of)))
}

/// The texts between quotes of arguments, as [`escape`] writes them: a call can have two paths. What has more escaped
/// than quotes and backslashes, or was shortened, is left out.
fn quoted(arguments: &str) -> Vec<PathBuf> {
    let (mut all, mut open): (Vec<PathBuf>, Option<String>) = (Vec::new(), None);
    let mut letters = arguments.chars();
    while let Some(letter) = letters.next() {
        match (&mut open, letter) {
            (None, '"') => open = Some(String::new()),
            (None, _) => {}
            (Some(_), '"') => all.extend(open.take().filter(|text| !text.contains('\0')).map(PathBuf::from)),
            (Some(text), '\\') => {
                text.push(letters.next().filter(|next| matches!(next, '\\' | '"')).unwrap_or('\0'))
            }
            (Some(text), '…') => text.push('\0'),
            (Some(text), _) => text.push(letter),
        }
    }
    all
}

/// Calls on sockets, and what is told of hosts.
const OF_SOCKETS: [&str; 10] = [
    "socket",
    "socketpair",
    "connect",
    "bind",
    "listen",
    "sendto",
    "sendmsg",
    "sendmmsg",
    "dns",
    "connection",
];

fn is_of_sockets(record: &ViolationRecord) -> bool {
    OF_SOCKETS.contains(&&*record.call)
}

/// Whether a rule about hosts is about the one that was refused.
fn reaches(record: &ViolationRecord, rule: &HostRule) -> bool {
    is_of_sockets(record)
        && match (&record.address, &rule.hosts) {
            (Some(Address::Inet { ip, port }), HostPattern::Range(_)) => {
                rule.is_about_address(ip.to_canonical()) && rule.has_port(*port)
            }
            _ => true,
        }
}

/// Whether a socket is the one that was refused.
fn is_socket_of(record: &ViolationRecord, path: &Path) -> bool {
    match &record.address {
        Some(Address::Unix { path: of }) => {
            let of = Path::new(OsStr::from_bytes(&of.0));
            of == path
                || of.is_relative()
                || of.file_name() == path.file_name()
                || of.canonicalize().is_ok_and(|of| of == path)
        }
        _ => record.path.as_ref().is_some_and(|of| of.0 == path.as_os_str().as_bytes()),
    }
}

/// An entry of a list of calls that is about the refused call.
fn call(entry: &str, record: &ViolationRecord) -> Option<String> {
    let parsed = list::parse(entry.as_bytes()).ok().filter(|parsed| parsed.errno == 0)?;
    let Target::Call(call) = parsed.target else { return None };
    (Some(call) == Call::named(record.call.as_bytes())).then(|| entry.to_string())
}

/// Whether the call itself was refused, and not what it is about.
fn is_call(record: &ViolationRecord) -> bool {
    record.kind == ViolationKind::Syscall
}

/// How a call that changes files is allowed where files may be changed. A flag for writing brings all such calls; a
/// profile names each. Whoever makes files may remove them: a round that cannot clean up leaves what the next one trips
/// over.
fn writing(call: &str) -> Vec<String> {
    const REMOVING: [&str; 2] = ["unlink", "unlinkat"];
    let Ok(profile) = profile::load(OsStr::new("write"), &Search::default()) else { return Vec::new() };
    let mut names = vec![call];
    names.extend(REMOVING.iter().filter(|name| **name != call));
    names.iter().flat_map(|name| entries(&profile, name)).collect()
}

/// What a profile allows of a call, as entries of a list.
fn entries(profile: &Profile, name: &str) -> Vec<String> {
    let rules = Call::named(name.as_bytes()).and_then(|call| profile.syscalls.calls.get(call));
    match rules.map_or(&Grants::None, |rules| rules.allowed(false)) {
        Grants::None => Vec::new(),
        Grants::All(_) => vec![name.to_string()],
        Grants::Some(alternatives) => alternatives
            .iter()
            .filter_map(|alternative| match alternative.when {
                When::Named(place) => Some(format!("{name}[{}]", restrictions::name(place))),
                When::Free(_) => None,
            })
            .collect(),
    }
}
