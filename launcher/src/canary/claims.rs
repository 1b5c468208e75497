//! What a run promises, by its own rules: the calls, the paths, the network, and what this kernel can enforce.

use super::stage::Stage;
use crate::cli::{self, Run};
use crate::launch::files::Executed;
use crate::launch::landlock::{Version, canonical};
use crate::launch::policy::{Mode, Network, PathRule};
use crate::launch::{demands, files, plan};
use crate::profile::Variables;
use crate::program;
use crate::refusal::Refusal;
use crate::sys::seccomp;
use sbx_policy::bpf::{self, Insn};
use sbx_policy::calls::{Arch, Call};
use sbx_policy::interpret::{self, Data};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Whether something is promised; if not, why.
pub type Claim = Result<(), &'static str>;

const BY_CHOICE: &str = "the profile allows it";
/// Arguments of a private, anonymous mapping that is no code; a call that is always allowed is so with them too.
const ORDINARY: &[u64] =
    &[0, 4096, (libc::PROT_READ | libc::PROT_WRITE) as u64, (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64];
const NO_LANDLOCK: &str = "there is no Landlock here";

/// The rules of one run.
pub struct Claims {
    filter: Vec<Insn>,
    paths: Option<Vec<PathRule>>,
    abi: Version,
    network: Network,
    starts_processes: bool,
    passes_secrets: bool,
    unconfined: bool,
}

impl Claims {
    /// Of a run with these flags on this stage.
    pub fn of(flags: &Run, stage: &Stage) -> Result<Claims, Refusal> {
        let search = cli::search();
        let profile = plan::load(flags, &search)?;
        let abi = Version(seccomp::landlock_version());
        let network = demands::network(flags, &profile, abi)?;
        let calls = plan::calls(flags, &profile, &network, abi)?;
        let (workspace, home, tmp, cache) =
            (stage.path("home/project"), stage.path("home"), stage.path("tmp/run"), stage.path("cache/run"));
        let variables = Variables {
            workspace: Some(&workspace),
            home: Some(&home),
            tmp: Some(&tmp),
            cache: Some(&cache),
        };
        let own =
            program::examine(Path::new("/proc/self/exe")).map_err(|error| Refusal::new(error.to_string()))?;
        let environment = plan::environment(flags, &profile, &variables, stage.environment().into_iter())?;
        let is_secret = |entry: &OsString| entry.as_bytes().ends_with(stage.secret.as_bytes());
        let mut remarks = Vec::new();
        let unconfined = profile.is_unrestricted();
        let real = |rule: PathRule| PathRule { path: canonical(&rule.path), ..rule };
        let executed = Executed { program: Some(&own), commands: None };
        let paths = (abi >= Version::FILES && !unconfined)
            .then(|| {
                let given = files::Given {
                    variables: &variables,
                    executed,
                    directory: &workspace,
                    sockets: &[],
                    more: &[],
                    masks: false,
                };
                files::rules(flags, &profile, given, &mut remarks)
            })
            .transpose()?
            .map(|paths| paths.rules.into_iter().map(real).collect());
        Ok(Claims {
            filter: calls.strict_program()?,
            paths,
            abi,
            network,
            starts_processes: calls.starts_processes(),
            passes_secrets: environment.iter().any(is_secret),
            unconfined,
        })
    }

    /// Of every confined run.
    pub fn always(&self) -> Claim {
        if self.unconfined { Err(BY_CHOICE) } else { Ok(()) }
    }

    /// The filter refuses a call with these arguments.
    pub fn refuses(&self, name: &str, args: &[u64]) -> Claim {
        let number = Call::named(name.as_bytes()).and_then(|call| call.number(Arch::HOST));
        let Some(nr) = number else { return Err("this architecture has no such call") };
        let mut all = [0; 6];
        all.iter_mut().zip(args).for_each(|(slot, value)| *slot = *value);
        let answer = interpret::run(&self.filter, &Data { nr, arch: Arch::HOST.audit(), args: all });
        self.always()?;
        if matches!(answer, Some(bpf::RET_ALLOW | bpf::RET_LOG)) { Err(BY_CHOICE) } else { Ok(()) }
    }

    /// Which of these entries of a list of calls the filter does not allow.
    pub fn lacking(&self, entries: &[&'static str]) -> Vec<&'static str> {
        let refused = |entry: &&&str| {
            let name = entry.split('[').next().unwrap_or(entry);
            self.refuses(name, ORDINARY).is_ok()
        };
        entries.iter().filter(refused).copied().collect()
    }

    /// What the filter says to each of these calls that a library may do one thing with. Not every architecture
    /// has the older ones.
    fn answers(&self, calls: &[(&str, &[u64])]) -> Vec<Claim> {
        let here =
            |name: &str| Call::named(name.as_bytes()).and_then(|call| call.number(Arch::HOST)).is_some();
        calls.iter().filter(|call| here(call.0)).map(|(name, args)| self.refuses(name, args)).collect()
    }

    /// The filter refuses all of these calls that this architecture has.
    pub fn refuses_each(&self, calls: &[(&str, &[u64])]) -> Claim {
        self.answers(calls).into_iter().collect()
    }

    fn opening(&self, flags: i32, mode: u64) -> Vec<Claim> {
        let flags = (flags | libc::O_CLOEXEC) as u64;
        self.answers(&[("open", &[0, flags, mode]), ("openat", &[0, 0, flags, mode])])
    }

    /// The filter refuses to open a file so.
    pub fn refuses_to_open(&self, flags: i32, mode: u64) -> Claim {
        self.opening(flags, mode).into_iter().collect()
    }

    /// Files can be opened for reading.
    pub fn opens_files(&self) -> Claim {
        let refused = self.opening(libc::O_RDONLY, 0).iter().any(Claim::is_ok);
        if refused { Err("no file can be opened") } else { Ok(()) }
    }

    /// Whatever Landlock does by being there, whatever its rules are.
    pub fn with_landlock(&self) -> Claim {
        self.always()?;
        if self.paths.is_some() { Ok(()) } else { Err(NO_LANDLOCK) }
    }

    fn covered(&self, path: &Path, wants: impl Fn(&PathRule) -> bool) -> Claim {
        self.always()?;
        let Some(rules) = &self.paths else { return Err(NO_LANDLOCK) };
        let real = canonical(path);
        let open = rules.iter().any(|rule| wants(rule) && real.starts_with(&rule.path));
        if open { Err(BY_CHOICE) } else { Ok(()) }
    }

    /// Nothing below the path can be read.
    pub fn no_reading(&self, path: &Path) -> Claim {
        self.covered(path, |rule| rule.rights.read)
    }

    /// Nothing below the path can be made or changed: by path rules, or because the filter refuses to open for it.
    pub fn no_writing(&self, path: &Path) -> Claim {
        self.refuses_to_open(libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND, 0o666)
            .or_else(|_| self.covered(path, |rule| rule.rights.write))
    }

    /// As [`Claims::no_writing`], for what each of these calls does.
    pub fn no_change(&self, path: &Path, calls: &[&str]) -> Claim {
        let calls: Vec<(&str, &[u64])> = calls.iter().map(|name| (*name, &[][..])).collect();
        self.refuses_each(&calls).or_else(|_| self.covered(path, |rule| rule.rights.write))
    }

    /// Emptying a file takes a Landlock right of its own, from ABI 3.
    pub fn no_truncation(&self, path: &Path) -> Claim {
        self.refuses("truncate", &[]).or_else(|_| match self.abi >= Version::TRUNCATE {
            true => self.covered(path, |rule| rule.rights.write),
            false => Err("it needs Landlock ABI 3"),
        })
    }

    /// Signals stay inside: by Landlock, or because the filter refuses the call.
    pub fn scoped(&self, call: &str, args: &[u64]) -> Claim {
        self.always()?;
        self.refuses(call, args).or_else(|_| match self.abi >= Version::SCOPES && self.paths.is_some() {
            true => Ok(()),
            false => Err("it needs Landlock ABI 6"),
        })
    }

    /// No internet socket of this kind, or none that is let out by this call.
    pub fn no_socket_out(&self, kind: i32, out: (&str, &[u64])) -> Claim {
        // The host's addresses are not in it.
        if self.network.mode == Mode::Private {
            return self.always();
        }
        let made = self.refuses("socket", &[libc::AF_INET as u64, kind as u64, 0]);
        made.or_else(|_| self.refuses(out.0, out.1))
    }

    /// No TCP connection to this port: none at all, or Landlock lets others through.
    pub fn no_tcp(&self, port: u16) -> Claim {
        if self.network.mode == Mode::Ports && !self.network.connect.contains(&port) {
            return self.always();
        }
        self.no_socket_out(libc::SOCK_STREAM, ("connect", &[]))
    }

    /// No socket of the host's is connected to: before ABI 9 that is the filter's, or what it leaves to the supervisor.
    pub fn no_unix(&self, path: &Path) -> Claim {
        self.always()?;
        let made = self.refuses("socket", &[libc::AF_UNIX as u64, libc::SOCK_STREAM as u64]);
        if self.paths.is_none() {
            return made;
        }
        if self.abi < Version::UNIX {
            made.or_else(|_| self.refuses("connect", &[]))?;
        }
        self.covered(path, |rule| rule.rights.write || rule.rights.connect)
    }

    /// No variable with a secret is passed on.
    pub fn no_secrets(&self) -> Claim {
        self.always()?;
        if self.passes_secrets { Err(BY_CHOICE) } else { Ok(()) }
    }

    /// There can be processes that would outlive the run.
    pub fn ends_tree(&self) -> Claim {
        self.always()?;
        if self.starts_processes { Ok(()) } else { Err("it starts no processes that could be left") }
    }

    /// It cannot start processes.
    pub fn no_processes(&self) -> Claim {
        self.always()?;
        if self.starts_processes { Err(BY_CHOICE) } else { Ok(()) }
    }
}
