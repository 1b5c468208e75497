//! The flags of `sbx run`, one row each. clap's flags, the quick path, the policy of `sbx why`, the manual and the
//! completions are all made from these rows.

use crate::profile::units::{self, Bound};
use crate::profile::{HomeMode, Level, Namespaces, NetworkMode, StaticMode};
use crate::request::{OnViolation, PortPair, Request};
use Takes::{
    Count, Descriptor, Descriptors, Duration, OneOf, Path, Paths, Patience, PortPairs, Ports, Size, Switch,
    Texts, Word, Words,
};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time;

/// A flag.
pub struct Flag {
    /// Its name, without the dashes.
    pub long: &'static str,
    /// Its letter.
    pub short: Option<char>,
    /// What `--help` calls its value. A [`Switch`] has none, a [`OneOf`] is shown its words.
    pub value: &'static str,
    /// What `--help` says about it.
    pub help: &'static str,
    /// What it takes, and where that goes.
    pub takes: Takes,
    /// Whether `sbx why` takes it too.
    pub asks: bool,
}

/// What a flag takes, and the field of the request that this goes to. A flag of a list can be given several times.
pub enum Takes {
    Switch(Field<bool>),
    OneOf(&'static [Choice]),
    Word(Field<Option<OsString>>),
    Words(Field<Vec<OsString>>),
    Texts(Field<Vec<String>>),
    Path(Field<Option<PathBuf>>),
    Paths(Field<Vec<PathBuf>>),
    Ports(Field<Vec<u16>>),
    PortPairs(Field<Vec<PortPair>>),
    Descriptor(Field<Option<i32>>),
    Descriptors(Field<Vec<i32>>),
    Duration(Field<Option<Bound<time::Duration>>>),
    Patience(Field<Option<Bound<time::Duration>>>),
    Size(Field<Option<Bound<u64>>>),
    Count(Field<Option<Bound<u64>>>, fn(&str) -> Result<Bound<u64>, String>),
}

type Field<T> = fn(&mut Request) -> &mut T;
/// A word, and what it sets.
type Choice = (&'static str, fn(&mut Request));

/// The flags below their headings, in the order of `--help`.
#[rustfmt::skip]
pub static GROUPS: &[(&str, &[Flag])] = &[
    ("Profile", &[
        valued("profile", Word(|r| &mut r.profile), "NAME|FILE", "Profile: a name ('sbx profile list') or a file")
            .short('p').asks(),
    ]),
    ("Files", &[
        valued("workspace", Path(|r| &mut r.workspace), "DIR",
            "Directory to work in [default: the current one, or its git work tree]").asks(),
        valued("ro", Paths(|r| &mut r.ro), "PATH", "Allow reading PATH and below").asks(),
        valued("rox", Paths(|r| &mut r.rox), "PATH", "Allow reading and executing").asks(),
        valued("rw", Paths(|r| &mut r.rw), "PATH", "Allow reading and changing").asks(),
        valued("rwx", Paths(|r| &mut r.rwx), "PATH", "Allow reading, changing and executing").asks(),
        valued("deny", Paths(|r| &mut r.deny), "PATH", "Deny PATH and below, whatever else allows it").asks(),
    ]),
    ("Commands", &[
        valued("allow-command", Words(|r| &mut r.allow_command), "CMD",
            "Allow only the commands listed: names or paths ('git', 'python3*', './tool')").asks(),
        valued("block-command", Words(|r| &mut r.block_command), "CMD",
            "Block this command under any of its names").asks(),
    ]),
    ("System calls", &[
        valued("allow-calls", Words(|r| &mut r.allow_calls), "LIST",
            "Allow these system calls too: call, @group or call[restriction], separated by ':' or ','").asks(),
        valued("deny-calls", Words(|r| &mut r.deny_calls), "LIST", "Deny these system calls").asks(),
        choice("on-violation", &[
            ("kill", |r| r.on_violation = Some(OnViolation::Kill)),
            ("errno", |r| r.on_violation = Some(OnViolation::Errno)),
            ("log", |r| r.on_violation = Some(OnViolation::Log)),
        ], "Action on a violation: end the run (status 159), fail the call, or allow it and list it \
            [default: the profile's]"),
        switch("log-violations", |r| &mut r.log_violations,
            "Allow every system call, and list those that would be denied; path rules stay in force"),
        switch("explain", |r| &mut r.explain,
            "Name denied paths whatever makes the call; everything stays denied (each call with a path takes longer)"),
        switch("no-explainer", |r| &mut r.no_explainer,
            "Do not load libsbx-explain.so, the library that names denied paths without --explain"),
    ]),
    ("Network", &[
        choice("net", &[
            ("none", |r| r.net = Some(NetworkMode::None)),
            ("private", |r| r.net = Some(NetworkMode::Private)),
            ("host", |r| r.net = Some(NetworkMode::Host)),
        ], "Network: none, a private one with loopback alone, or the host's [default: the profile's]").asks(),
        valued("connect", Texts(|r| &mut r.connect), "HOST[:PORT]",
            "Allow TCP connections only to the hosts listed ('example.org', '*.example.org:80', '10.0.0.0/8:22', \
             '*:8080')"),
        valued("host-port", Ports(|r| &mut r.host_port), "PORT",
            "Bring a TCP port of this machine's loopback into the run's own network").asks(),
        valued("publish", PortPairs(|r| &mut r.publish), "[PORT:]PORT",
            "Show a TCP port of the run's own loopback on this machine's ('3000'; '8080:3000': as port 8080)").asks(),
        valued("bind", Ports(|r| &mut r.bind), "PORT", "Allow listening only on the TCP ports listed"),
        valued("unix", Paths(|r| &mut r.unix), "PATH", "Allow connecting to the UNIX socket at PATH"),
    ]),
    ("Environment", &[
        valued("env", Words(|r| &mut r.env), "K[=V]", "Pass a variable on, or set it"),
        switch("inherit-env", |r| &mut r.inherit_env, "Pass every variable on, except secrets and loader hooks"),
        switch("allow-dangerous-env", |r| &mut r.allow_dangerous_env,
            "Let --env name loader and interpreter hooks (LD_PRELOAD, BASH_ENV ...)"),
    ]),
    ("Limits", &[
        valued("timeout", Duration(|r| &mut r.timeout), "DURATION",
            "End the command and all that it started after DURATION, with status 124 ('90s', '2m', 'none')").short('t'),
        valued("kill-after", Patience(|r| &mut r.kill_after), "DURATION",
            "Time from SIGTERM to SIGKILL, after --timeout or a signal to sbx [default: 5s]"),
        valued("max-output", Size(|r| &mut r.max_output), "SIZE",
            "Pass on at most SIZE of stdout, and of stderr: the head and the tail ('64K', '1MiB', 'none')"),
        valued("max-processes", Count(|r| &mut r.max_processes, units::count), "N", "Processes and threads at a time"),
        valued("max-memory", Size(|r| &mut r.max_memory), "SIZE", "Memory of all processes together"),
        valued("max-cpu", Duration(|r| &mut r.max_cpu), "DURATION", "Processor time of each process"),
        valued("max-open-files", Count(|r| &mut r.max_open_files, units::descriptors), "N",
            "Open files of each process, at least 4"),
        valued("max-file-size", Size(|r| &mut r.max_file_size), "SIZE", "Size of each file that is written"),
    ]),
    ("Running", &[
        switch("keep-background", |r| &mut r.keep_background,
            "Leave background processes running when the command ends"),
        valued("cwd", Path(|r| &mut r.cwd), "DIR", "Start the command in DIR, in its workspace").asks(),
        valued("pass-fd", Descriptors(|r| &mut r.pass_fd), "N", "Pass descriptor N on"),
        choice("static", &[
            ("block", |r| r.static_programs = Some(StaticMode::Block)),
            ("warn", |r| r.static_programs = Some(StaticMode::Warn)),
            ("allow", |r| r.static_programs = Some(StaticMode::Confine)),
            ("confine", |r| r.static_programs = Some(StaticMode::Confine)),
        ], "Programs that cannot load libsandbox.so: refuse them, or run them under the launcher's rules alone \
            [default: block]"),
        choice("require", &[
            ("full", |r| r.require = Some(Level::Full)),
            ("standard", |r| r.require = Some(Level::Standard)),
            ("minimal", |r| r.require = Some(Level::Minimal)),
        ], "Refuse to run where the kernel can enforce less than this level"),
        choice("namespaces", &[
            ("auto", |r| r.namespaces = Some(Namespaces::Auto)),
            ("none", |r| r.namespaces = Some(Namespaces::None)),
        ], "Private namespaces: where the machine allows them, or none [default: the profile's]").asks(),
        choice("home", &[
            ("private", |r| r.home = Some(HomeMode::Private)),
            ("temporary", |r| r.home = Some(HomeMode::Temporary)),
            ("closed", |r| r.home = Some(HomeMode::Closed)),
        ], "Home directory: one of the run's own, kept for the next run in the workspace or removed with this one; or \
            the user's, closed [default: the profile's]").asks(),
        switch("verify", |r| &mut r.verify,
            "First attempt what the run must refuse, on files and processes made for the test; do not start if any \
             attempt succeeds"),
        switch("exec", |r| &mut r.exec,
            "Become the command: no supervisor, no reports of violations, the fastest start"),
        switch("pool", |r| &mut r.pool,
            "Start the command in a waiting run of the pool ('sbx pool start'); if none waits, start one"),
        switch("dangerously-unconfined", |r| &mut r.dangerously_unconfined,
            "Run with profile 'unrestricted': no confinement at all"),
    ]),
    ("Messages", &[
        valued("report", Path(|r| &mut r.report), "FILE", "Write what happened to FILE, as JSON ('sbx report schema')"),
        valued("report-fd", Descriptor(|r| &mut r.report_fd), "N",
            "Write the report to descriptor N, which is not passed to the command"),
        valued("audit-log", Path(|r| &mut r.audit_log), "FILE", "Append the report to FILE as one line"),
        switch("summary", |r| &mut r.summary, "At the end, print the report as a table to standard error"),
        switch("verbose", |r| &mut r.verbose, "Print what is enforced").short('v'),
        switch("quiet", |r| &mut r.quiet, "Print only errors").short('q'),
    ]),
];

const fn valued(long: &'static str, takes: Takes, value: &'static str, help: &'static str) -> Flag {
    Flag { long, short: None, value, help, takes, asks: false }
}

const fn switch(long: &'static str, field: Field<bool>, help: &'static str) -> Flag {
    valued(long, Switch(field), "", help)
}

const fn choice(long: &'static str, choices: &'static [Choice], help: &'static str) -> Flag {
    valued(long, OneOf(choices), "", help)
}

impl Flag {
    const fn short(self, letter: char) -> Flag {
        Flag { short: Some(letter), ..self }
    }

    const fn asks(self) -> Flag {
        Flag { asks: true, ..self }
    }

    /// Whether it can be given several times.
    pub fn repeats(&self) -> bool {
        matches!(self.takes, Words(_) | Texts(_) | Paths(_) | Ports(_) | PortPairs(_) | Descriptors(_))
    }

    /// Sets the flag's field to a value, or adds the value to it. A switch looks at no value.
    pub fn set(&self, r: &mut Request, value: &OsStr) -> Result<(), String> {
        match self.takes {
            Switch(field) => *field(r) = true,
            OneOf(words) => match words.iter().find(|(word, _)| *word == value) {
                Some((_, choose)) => choose(r),
                None => return Err("unknown word".to_string()),
            },
            Word(field) => *field(r) = Some(value.to_owned()),
            Words(field) => field(r).push(value.to_owned()),
            Texts(field) => field(r).push(text(value)?.to_owned()),
            Path(field) => *field(r) = Some(path(value)?),
            Paths(field) => field(r).push(path(value)?),
            Ports(field) => field(r).push(units::port(text(value)?)?),
            PortPairs(field) => field(r).push(port_pair(text(value)?)?),
            Descriptor(field) => *field(r) = Some(units::descriptor(text(value)?)?),
            Descriptors(field) => field(r).push(units::descriptor(text(value)?)?),
            Duration(field) => *field(r) = Some(units::duration(text(value)?)?),
            Patience(field) => *field(r) = Some(units::patience(text(value)?)?),
            Size(field) => *field(r) = Some(units::size(text(value)?)?),
            Count(field, parse) => *field(r) = Some(parse(text(value)?)?),
        }
        Ok(())
    }
}

/// `PORT`, or `PORT:PORT`: of this machine, and of the run.
fn port_pair(text: &str) -> Result<PortPair, String> {
    let (here, inside) = text.split_once(':').unwrap_or((text, text));
    let port = |text: &str| units::port(text).ok().filter(|port| *port != 0);
    let pair = port(here).zip(port(inside)).map(|(here, inside)| PortPair { here, inside });
    pair.ok_or_else(|| "not PORT or PORT:PORT (1 to 65535, such as 3000 or 8080:3000)".to_string())
}

fn text(value: &OsStr) -> Result<&str, String> {
    value.to_str().ok_or_else(|| "it is not UTF-8".to_string())
}

fn path(value: &OsStr) -> Result<PathBuf, String> {
    if value.is_empty() { Err("it is empty".to_string()) } else { Ok(value.into()) }
}
