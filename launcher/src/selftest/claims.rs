//! What a run promises, computed from its plan: system calls, paths, network, and what this kernel can enforce.

use crate::error::Refusal;
use crate::host::landlock::Version;
use crate::host::{Host, Open};
use crate::hosts::HostRules;
use crate::plan::namespaces::{Layout, Unavailable};
use crate::plan::rules::{Network, PathRule};
use crate::plan::{Draft, Inputs, Plan, Provided};
use crate::profile::NetworkMode;
use crate::request::Request;
use crate::selftest::stage::Stage;
use crate::sys::path::canonical;
use sbx_policy::bpf::{self, Insn};
use sbx_policy::calls::{Arch, Call};
use sbx_policy::interpret::{self, Data};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;

/// Whether something is promised. The error says why it is not.
pub type Claim = Result<(), &'static str>;

const BY_CHOICE: &str = "the profile allows it";
/// The arguments of an mmap(2) of private, anonymous memory that is not executable. Other calls ignore them.
const ORDINARY: &[u64] =
    &[0, 4096, (libc::PROT_READ | libc::PROT_WRITE) as u64, (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64];
const NO_LANDLOCK: &str = "there is no Landlock here";

/// The parts of a plan that promises follow from.
pub struct Claims {
    filter: Vec<Insn>,
    /// With real paths.
    paths: Option<Vec<PathRule>>,
    layout: Option<Rc<Layout>>,
    abi: Version,
    network: Network,
    starts_processes: bool,
    passes_secrets: bool,
    unconfined: bool,
}

impl Claims {
    /// The claims of a run with this request on this stage.
    pub fn of(request: &Request, stage: &Stage) -> Result<Claims, Refusal> {
        let plan = plan(request, stage)?;
        let is_secret = |entry: &OsString| entry.as_bytes().ends_with(stage.secret.as_bytes());
        let real = |rule: PathRule| PathRule { path: rule.place().into_owned(), ..rule };
        Ok(Claims {
            filter: plan.calls.strict_program()?,
            starts_processes: plan.calls.starts_processes(),
            passes_secrets: plan.environment.iter().any(is_secret),
            paths: plan.paths.map(|rules| rules.into_iter().map(real).collect()),
            layout: plan.namespaces.ok(),
            abi: plan.landlock,
            network: plan.network,
            unconfined: plan.unconfined,
        })
    }

    /// Every confined run promises it.
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

    /// The filter refuses each of these calls. An architecture may lack the older ones.
    fn refuses_each(&self, calls: &[(&str, &[u64])]) -> Claim {
        let here =
            |name: &str| Call::named(name.as_bytes()).is_some_and(|call| call.number(Arch::HOST).is_some());
        calls.iter().filter(|call| here(call.0)).try_for_each(|(name, args)| self.refuses(name, args))
    }

    /// Files can be opened for reading, by any call for it.
    pub fn opens_files(&self) -> Claim {
        let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as u64;
        let allowed = |name, args: &[u64]| self.refuses(name, args) != Ok(());
        let opens = allowed("open", &[0, flags]) && allowed("openat", &[0, 0, flags]);
        if opens { Ok(()) } else { Err("no file can be opened") }
    }

    /// Landlock promises it, whatever its rules are.
    pub fn with_landlock(&self) -> Claim {
        self.always()?;
        if self.paths.is_some() { Ok(()) } else { Err(NO_LANDLOCK) }
    }

    fn covered(&self, path: &Path, wants: impl Fn(&PathRule) -> bool) -> Claim {
        self.always()?;
        let Some(rules) = &self.paths else { return Err(NO_LANDLOCK) };
        let real = canonical(path);
        let denied = self.layout.as_ref().is_some_and(|layout| layout.denies(&real));
        let open = !denied && rules.iter().any(|rule| wants(rule) && real.starts_with(&rule.path));
        if open { Err(BY_CHOICE) } else { Ok(()) }
    }

    /// Nothing below the path can be read.
    pub fn no_reading(&self, path: &Path) -> Claim {
        self.covered(path, |rule| rule.rights.read)
    }

    /// Nothing below the path can be made or changed: the filter refuses to open files for it, or no path
    /// rule allows it.
    pub fn no_writing(&self, path: &Path) -> Claim {
        let flags = (libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_CLOEXEC) as u64;
        self.refuses_each(&[("open", &[0, flags, 0o666]), ("openat", &[0, 0, flags, 0o666])])
            .or_else(|_| self.covered(path, |rule| rule.rights.write))
    }

    /// Files below the path can be written.
    pub fn writes(&self, path: &Path) -> Claim {
        self.no_writing(path).map_or(Ok(()), |()| Err("nothing can be written"))
    }

    /// Nothing below the path can be changed by these calls.
    pub fn no_change(&self, path: &Path, calls: &[&str]) -> Claim {
        let calls: Vec<(&str, &[u64])> = calls.iter().map(|name| (*name, &[][..])).collect();
        self.refuses_each(&calls).or_else(|_| self.covered(path, |rule| rule.rights.write))
    }

    /// The call does not reach what is outside: the filter refuses it, or Landlock keeps it inside.
    pub fn scoped(&self, call: &str) -> Claim {
        self.always()?;
        self.refuses(call, &[]).or_else(|_| match self.abi >= Version::SCOPES && self.paths.is_some() {
            true => Ok(()),
            false => Err("it needs Landlock ABI 6"),
        })
    }

    /// No internet socket of this type can be made, or this call refuses to send from it.
    pub fn no_socket_out(&self, kind: i32, out: (&str, &[u64])) -> Claim {
        // The host's addresses are not reachable from a private network.
        if self.network.mode == NetworkMode::Private {
            return self.always();
        }
        let made = self.refuses("socket", &[libc::AF_INET as u64, kind as u64, 0]);
        made.or_else(|_| self.refuses(out.0, out.1))
    }

    /// No TCP connection can be made to this port. Landlock may allow other ports.
    pub fn no_tcp(&self, port: u16) -> Claim {
        if self.network.mode == NetworkMode::Ports && !self.network.connect.contains(&port) {
            return self.always();
        }
        if matches!(self.network.mode, NetworkMode::Host | NetworkMode::Ports) {
            // What the filter refuses of connect(2), the supervisor does.
            return self.refuses("socket", &[libc::AF_INET as u64, libc::SOCK_STREAM as u64, 0]);
        }
        self.no_socket_out(libc::SOCK_STREAM, ("connect", &[]))
    }

    /// The UNIX socket at this path cannot be connected to. Before ABI 9 the filter or the supervisor refuses it.
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

    /// Its rules name hosts, so that it has a network of its own with ways to them.
    pub fn names_hosts(&self) -> Claim {
        self.host_rules().map(drop)
    }

    /// The rules about hosts.
    pub fn host_rules(&self) -> Result<&HostRules, &'static str> {
        self.always()?;
        self.network.hosts.as_ref().map(|hosts| &hosts.rules).ok_or("its rules name no hosts")
    }

    /// Whether it has the network of the machine that it is on.
    pub fn has_whole_network(&self) -> bool {
        self.network.mode == NetworkMode::Host
    }

    /// Promised, unless the rules allow it.
    pub fn unless(&self, allowed: bool) -> Claim {
        if allowed { Err(BY_CHOICE) } else { Ok(()) }
    }

    /// No variable with a secret is passed on.
    pub fn no_secrets(&self) -> Claim {
        self.always()?;
        if self.passes_secrets { Err(BY_CHOICE) } else { Ok(()) }
    }

    /// No process outlives the run.
    pub fn ends_tree(&self) -> Claim {
        self.always()?;
        if self.starts_processes { Ok(()) } else { Err("it starts no processes that could be left") }
    }

    /// No process can be started.
    pub fn no_processes(&self) -> Claim {
        self.always()?;
        if self.starts_processes { Err(BY_CHOICE) } else { Ok(()) }
    }
}

/// Plans the run, with its own directories below the stage. Nothing is created.
fn plan(request: &Request, stage: &Stage) -> Result<Plan, Refusal> {
    let mut host = Host::with_environment(stage.environment());
    // The run will have other descriptors than this process has.
    host.opened = |_| Open::Other;
    let draft = Draft::new(Inputs::read(request, &host)?, &Unavailable::default())?;
    draft.complete(Provided {
        scratch: Some(stage.path("tmp/run")),
        cache: Some(stage.path("cache/run")),
        watches_memory: true,
        ..Provided::default()
    })
}
