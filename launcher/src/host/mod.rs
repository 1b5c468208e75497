//! What is found on this machine and in this process: read once, and handed to whoever decides.
//!
//! The planning of a run reads nothing of this by itself, so a test can hand in any machine. What is at a path is not
//! here: the plan looks at files, and changes none.

mod fact;
pub mod landlock;
pub mod mounts;

pub use fact::Fact;

use crate::error::Refusal;
use crate::profile::Search;
use crate::sys::descriptor::OpenFile;
use crate::sys::namespace::{self, Identity};
use crate::sys::number::FileNumber;
use crate::sys::privilege::{CapabilitySet, Limit};
use crate::sys::{account, descriptor, path, plain, privilege, process, seccomp, socket, terminal};
use landlock::Version;
use mounts::Mounts;
use std::cell::OnceCell;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The variables of an environment.
pub type Environment = Vec<(OsString, OsString)>;

/// An open descriptor of this process, as far as handing it to a command matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Open {
    /// It is closed.
    Nothing,
    /// A directory, by the path that it was opened by.
    Directory(PathBuf),
    /// A regular file, and the path that it was opened by.
    File(PathBuf, FileNumber),
    /// A socket that belongs to a network: any but a UNIX socket.
    NetworkSocket,
    /// Anything else.
    Other,
    /// It cannot be told, and why.
    Unseen(String),
}

/// The facts.
pub struct Host {
    /// When these facts were read first.
    pub began: SystemTime,
    /// The environment of this process.
    pub environment: Environment,
    /// The working directory (getcwd(3)).
    pub directory: Fact<io::Result<PathBuf>>,
    /// The kernel's Landlock.
    pub landlock: Fact<landlock::Answer>,
    /// Whether an `sbx` confines this process already.
    pub nested: Fact<bool>,
    /// Whether the supervisor of one makes the connections of this process.
    pub has_connections_made: Fact<bool>,
    /// Whether the effective user is root.
    pub root: Fact<bool>,
    /// The home directory of the user's account (passwd(5)).
    pub account_home: Fact<Option<PathBuf>>,
    /// The real user, whose processes the kernel counts together.
    pub real_user: Fact<u32>,
    /// Whether real and effective user and group are the same.
    pub one_identity: Fact<bool>,
    /// The bytes that a file of this process may have (RLIMIT_FSIZE); none where nobody can say.
    pub largest_file: Fact<u64>,
    /// Whether this process has CAP_SYS_ADMIN.
    pub administrator: Fact<bool>,
    /// The capabilities of this process. The command gets none of them.
    pub capabilities: Fact<CapabilitySet>,
    /// Whether descriptors of other processes can be taken (pidfd_getfd(2)), as far as filters are concerned.
    pub takes_descriptors: Fact<bool>,
    /// Whether the kernel tells by a socket alone which network it is of.
    pub network_cookies: Fact<bool>,
    /// User and group.
    pub identity: Fact<Identity>,
    /// How many processes and threads the real user has.
    pub tasks: Fact<u64>,
    /// What is mounted where.
    pub mounts: Fact<Result<Mounts, String>>,
    /// Whether descriptors 0 to 2 read from a terminal in whose background this process is.
    pub overhears: Fact<bool>,
    /// The terminals on descriptors 0 to 2, by their paths.
    pub terminals: Fact<Vec<PathBuf>>,
    /// The file of the program that is running.
    pub own_program: Fact<Option<FileNumber>>,
    /// Those of this process that the command gets as descriptors 0 to 2.
    pub streams: [RawFd; 3],
    /// What they are, as far as it was asked for.
    pub standard: [OnceCell<Open>; 3],
    /// Tells what a descriptor of this process is.
    pub opened: fn(RawFd) -> Open,
    /// The real path of the home directory, once it was asked for.
    pub real_home: OnceCell<Option<PathBuf>>,
    /// That of where `sbx` keeps what lasts, once it was asked for.
    pub state: OnceCell<Option<PathBuf>>,
}

impl Host {
    /// The facts about this machine and this process.
    pub fn of_this_process() -> Host {
        Host::with_environment(std::env::vars_os().collect())
    }

    /// The same with another environment.
    pub fn with_environment(environment: Environment) -> Host {
        Host {
            began: SystemTime::now(),
            environment,
            directory: Fact::read_by(std::env::current_dir),
            landlock: Fact::read_by(landlock::ask),
            nested: Fact::read_by(seccomp::is_confined),
            has_connections_made: Fact::read_by(seccomp::has_connections_made),
            root: Fact::read_by(process::is_root),
            account_home: Fact::read_by(|| account::home_of(process::user())),
            real_user: Fact::read_by(process::real_user),
            one_identity: Fact::read_by(process::has_one_identity),
            largest_file: Fact::read_by(|| Limit::FileSize.soft().unwrap_or(0)),
            administrator: Fact::read_by(privilege::is_administrator),
            capabilities: Fact::read_by(privilege::effective),
            takes_descriptors: Fact::read_by(socket::can_take),
            network_cookies: Fact::read_by(socket::has_cookies),
            identity: Fact::read_by(namespace::identity),
            tasks: Fact::read_by(|| process::tasks_of_user(process::real_user())),
            mounts: Fact::read_by(Mounts::now),
            overhears: Fact::read_by(terminal::overhears),
            terminals: Fact::read_by(|| terminals([0, 1, 2])),
            own_program: Fact::read_by(|| number_of(Path::new("/proc/self/exe"))),
            streams: [0, 1, 2],
            standard: Default::default(),
            opened,
            real_home: OnceCell::new(),
            state: OnceCell::new(),
        }
    }

    /// The same where the command is another process's: with its environment, and with its standard input, output and
    /// error, which have these numbers here.
    pub fn of_caller(environment: Environment, streams: [RawFd; 3]) -> Host {
        let host = Host::with_environment(environment);
        Host { terminals: host.terminals.known(terminals(streams)), streams, ..host }
    }

    /// What the command gets as this descriptor.
    pub fn passed(&self, number: RawFd) -> Open {
        let place = usize::try_from(number).ok();
        let stream = place.and_then(|place| self.streams.get(place).zip(self.standard.get(place)));
        match stream {
            Some((stream, known)) => known.get_or_init(|| (self.opened)(*stream)).clone(),
            None => (self.opened)(number),
        }
    }

    /// The value of a variable.
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        self.environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str())
    }

    /// Where an agent of ssh listens (ssh-agent(1)), if SSH_AUTH_SOCK says so by an absolute path.
    pub fn key_agent(&self) -> Option<&Path> {
        self.variable("SSH_AUTH_SOCK").map(Path::new).filter(|socket| socket.is_absolute())
    }

    /// The home directory, where HOME is an absolute path.
    pub fn home(&self) -> Option<&Path> {
        self.variable("HOME").map(Path::new).filter(|home| home.is_absolute())
    }

    /// Its real path, or the same one where it cannot be resolved.
    pub fn real_home(&self) -> Option<&Path> {
        self.real_home.get_or_init(|| self.home().map(path::canonical)).as_deref()
    }

    /// Where profiles are looked for.
    pub fn search(&self) -> Search {
        Search::from_environment(self.variable("HOME"), self.variable("XDG_CONFIG_HOME"))
    }

    /// The working directory.
    pub fn directory(&self) -> Result<&Path, Refusal> {
        self.directory.get().as_deref().map_err(|error| {
            Refusal::new(format!("cannot find the working directory: {}; name one with --cwd", plain(error)))
        })
    }

    /// Landlock's version; an error where the kernel could not answer just now.
    pub fn landlock(&self) -> Result<Version, Refusal> {
        landlock::version(self.landlock.get())
    }

    /// Why there is no Landlock, as the beginning of a sentence.
    pub fn why_no_landlock(&self) -> String {
        match self.landlock.get() {
            Err(failed) => landlock::why_none(failed),
            Ok(_) => "the kernel did not say which Landlock it has".to_string(),
        }
    }

    /// What is mounted where.
    pub fn mounts(&self) -> Result<&Mounts, Refusal> {
        self.mounts.get().as_ref().map_err(|why| Refusal::new(why.clone()))
    }

    /// Whether a file is the program that is running.
    pub fn is_own_program(&self, path: &Path) -> bool {
        self.own_program.get().is_some_and(|own| number_of(path) == Some(own))
    }
}

/// Device and inode number of what a path leads to.
pub fn number_of(path: &Path) -> Option<FileNumber> {
    path.metadata().map(|meta| FileNumber::of(&meta)).ok()
}

fn terminals(streams: [RawFd; 3]) -> Vec<PathBuf> {
    // By its name, a terminal could be opened to read what is typed for others.
    if terminal::is_in_background() {
        return Vec::new();
    }
    let terminals = streams.into_iter().filter(|number| descriptor::is_terminal(*number));
    terminals.filter_map(descriptor::path_of).collect()
}

fn opened(descriptor: RawFd) -> Open {
    let OpenFile { kind, number } = match descriptor::file_of(descriptor) {
        Ok(Some(found)) => found,
        Ok(None) => return Open::Nothing,
        Err(failed) => return Open::Unseen(failed.to_string()),
    };
    let path = || descriptor::path_of(descriptor);
    let unseen = || Open::Unseen("/proc does not tell its path".to_string());
    match kind {
        libc::S_IFDIR => path().map_or_else(unseen, Open::Directory),
        libc::S_IFREG => path().map_or_else(unseen, |path| Open::File(path, number)),
        libc::S_IFSOCK if socket::is_of_network(descriptor) => Open::NetworkSocket,
        _ => Open::Other,
    }
}
