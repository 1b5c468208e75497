//! The contestants: bare exec, `sbx` in its ways to run, the library alone, and other sandboxes.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::report::Outcome;
use crate::run::Subject;
use crate::scratch::Scratch;

/// Enough for the dynamic loader, a small program in C, and this one; about as long as a list written by hand.
const ALLOWED: &str = "read:write:readv:writev:pread64:close:fstat:stat:lstat:newfstatat:statx:lseek:open:openat:\
    mmap:mprotect:munmap:mremap:brk:madvise:exit:exit_group:arch_prctl:access:faccessat:faccessat2:getrandom:rseq:\
    set_tid_address:set_robust_list:prlimit64:futex:rt_sigaction:rt_sigprocmask:rt_sigreturn:sigaltstack:poll:\
    ppoll:ioctl:fcntl:dup:dup2:dup3:getpid:gettid:getppid:getuid:geteuid:getgid:getegid:uname:getcwd:readlink:\
    readlinkat:getdents64:clock_gettime:clock_nanosleep:nanosleep:sched_yield:sched_getaffinity:sysinfo:statfs:\
    fstatfs:fadvise64:pipe2:restart_syscall:tgkill:gettimeofday:time";

/// Variables that are passed on. Those that `cargo run` adds (library paths above all) would slow everybody down.
const INHERITED: [&str; 5] = ["PATH", "HOME", "USER", "TERM", "XDG_CONFIG_HOME"];

/// One way to run a command.
pub(crate) struct Contestant {
    /// Short and stable, for programs that read the JSON.
    pub(crate) id: &'static str,
    /// Its name in tables.
    pub(crate) name: String,
    /// Whether a filter has to be found inside.
    confined: bool,
    /// The words before the command, or why there are none.
    pub(crate) prefix: Availability,
    /// Variables in addition to the common ones.
    env: Vec<OsString>,
    /// The words as shown in a table, if the name does not tell them.
    pub(crate) form: Option<&'static str>,
}

/// A command with the words and variables of its contestant.
pub(crate) struct Words {
    pub(crate) argv: Vec<OsString>,
    pub(crate) env: Vec<OsString>,
}

/// Whether a contestant can take part.
pub(crate) enum Availability {
    Here(Vec<OsString>),
    Absent(String),
    Broken(String),
}

impl Contestant {
    /// The contestant running `command`, or why it cannot take part.
    pub(crate) fn running(
        &self,
        command: &[OsString],
        common: &[OsString],
    ) -> std::result::Result<Subject, Outcome> {
        let words = self.words(command, common)?;
        Subject::new(&words.argv, &words.env).map_err(Outcome::Failed)
    }

    /// The words and variables that run `command`, or why the contestant cannot take part.
    pub(crate) fn words(
        &self,
        command: &[OsString],
        common: &[OsString],
    ) -> std::result::Result<Words, Outcome> {
        let prefix = match &self.prefix {
            Availability::Here(prefix) => prefix,
            Availability::Absent(why) => return Err(Outcome::Absent(why.clone())),
            Availability::Broken(why) => return Err(Outcome::Failed(why.clone())),
        };
        Ok(Words {
            argv: prefix.iter().chain(command).cloned().collect(),
            env: common.iter().chain(&self.env).cloned().collect(),
        })
    }

    /// The number of filters that a trial run finds on itself, if it runs and is as confined as it should be.
    pub(crate) fn tried(&self, common: &[OsString]) -> std::result::Result<u32, Outcome> {
        let look = || {
            let grep = first_program(&["/bin/grep", "/usr/bin/grep"])?;
            Ok([grep.into(), format!("^{FILTERS}").into(), "/proc/self/status".into()])
        };
        let mut looking = self.running(&look().map_err(Outcome::Failed)?, common)?;
        let mut inside = || {
            let inside = filters(&looking.output()?)?;
            self.vouch(inside, filters_here()?).map(|()| inside)
        };
        inside().map_err(Outcome::Failed)
    }

    /// Checks that what runs inside is as confined as this contestant claims, given the number of filters inside and
    /// outside: a launcher that just runs the command would be the fastest of all.
    pub(crate) fn vouch(&self, inside: u32, outside: u32) -> Result<()> {
        if self.confined && inside <= outside {
            return Err("ran the command without a filter".into());
        }
        Ok(())
    }

    /// The same under another name.
    pub(crate) fn named(self, name: &str) -> Self {
        Self { name: name.into(), ..self }
    }

    fn new(id: &'static str, name: &str, prefix: Availability) -> Self {
        Self { id, name: name.into(), confined: false, prefix, env: Vec::new(), form: None }
    }
}

/// The one that all are compared with.
pub(crate) const BARE: &str = "bare";

/// The command without anything around it.
pub(crate) fn bare() -> Contestant {
    Contestant::new(BARE, BARE, Availability::Here(Vec::new()))
}

/// `sbx run` with these flags.
pub(crate) fn sbx(id: &'static str, sbx: &Path, flags: &str) -> Contestant {
    let words = std::iter::once("run").chain(flags.split_whitespace()).chain(["--"]);
    let prefix = std::iter::once(sbx.into()).chain(words.map(OsString::from)).collect();
    let name = match flags {
        "" => "`sbx run --`".into(),
        flags => format!("`sbx run {flags} --`"),
    };
    Contestant { confined: true, ..Contestant::new(id, &name, Availability::Here(prefix)) }
}

/// A pool of runs that wait in this directory. It is ended when it is dropped.
pub(crate) struct Pool<'a> {
    sbx: &'a Path,
    env: &'a [OsString],
}

impl<'a> Pool<'a> {
    /// Starts it, or tells why there is none.
    pub(crate) fn start(sbx: &'a Path, env: &'a [OsString]) -> Result<Self> {
        let pool = Self { sbx, env };
        pool.sbx(&["pool", "start"])?;
        // What is not taken starts as always, which is not what is measured.
        let said = pool.sbx(&["run", "--pool", "-v", "--", "true"]).err().unwrap_or_default();
        match said.lines().find(|line| line.contains("no warm start")) {
            Some(line) => Err(line.into()),
            None => Ok(pool),
        }
    }

    fn sbx(&self, words: &[&str]) -> Result<String> {
        let words = words.iter().map(OsString::from);
        let argv: Vec<OsString> = std::iter::once(self.sbx.into()).chain(words).collect();
        Subject::new(&argv, self.env)?.output()
    }
}

impl Drop for Pool<'_> {
    fn drop(&mut self) {
        // One that goes on ends by itself.
        let _ = self.sbx(&["pool", "stop"]);
    }
}

/// `sbx run --pool`, where there is a pool.
pub(crate) fn warm(sbx: &Path, pool: &Result<Pool<'_>>) -> Contestant {
    let contestant = self::sbx("pool", sbx, "--pool");
    match pool {
        Ok(_) => contestant,
        Err(why) => Contestant { prefix: Availability::Broken(why.clone()), ..contestant },
    }
}

/// The library with its variables alone. `sbx shim` writes it into the scratch directory first.
pub(crate) fn shim(sbx: &Path, scratch: &Scratch) -> Contestant {
    let name = "`LD_PRELOAD=libsandbox.so SECCOMP_SYSCALL_ALLOW=...`";
    let library = scratch.path().join("libsandbox.so");
    let write: Vec<OsString> = vec![sbx.into(), "shim".into(), "-o".into(), library.clone().into()];
    let written = Subject::new(&write, &environment(scratch)).and_then(|mut s| s.output());
    let prefix = match written {
        Ok(_) => Availability::Here(Vec::new()),
        Err(e) => Availability::Broken(format!("`sbx shim -o FILE`: {e}")),
    };
    let mut preload = OsString::from("LD_PRELOAD=");
    preload.push(library);
    let env = vec![preload, format!("SECCOMP_SYSCALL_ALLOW={}", allowed()).into()];
    Contestant { confined: true, env, ..Contestant::new("shim", name, prefix) }
}

/// The other sandboxes that people start commands with.
pub(crate) fn others() -> Vec<Contestant> {
    let row = |id, flags| Contestant::new(id, &format!("`{flags}`"), installed(flags));
    vec![row("bwrap", BWRAP), row("bwrap-minimal", BWRAP_LEAST), row("firejail", FIREJAIL)]
}

const BWRAP: &str = "bwrap --unshare-all --die-with-parent --ro-bind / / --dev /dev --proc /proc --";
const BWRAP_LEAST: &str = "bwrap --ro-bind / / --";
const FIREJAIL: &str = "firejail --quiet --noprofile --";

/// Forms of other sandboxes: a name, and the words before a command. Most have one that resembles what `sbx run`
/// does by default: the system to read, the home directory hidden, the workspace to write, the host's network.
/// `$PWD` is the workspace and `$HOME` the directory around it.
const PEERS: [(&str, &str); 14] = [
    ("bwrap", BWRAP),
    ("bwrap-minimal", BWRAP_LEAST),
    (
        "bwrap-workspace",
        "bwrap --unshare-all --share-net --die-with-parent --new-session --ro-bind / / --dev /dev --proc /proc \
         --tmpfs /tmp --tmpfs $HOME --bind $PWD $PWD --",
    ),
    ("firejail", FIREJAIL),
    (
        "firejail-workspace",
        "firejail --quiet --noprofile --seccomp --caps.drop=all --nonewprivs --private-dev --read-only=/ \
         --read-write=/tmp --read-only=$HOME --read-write=$PWD --blacklist=$HOME/.ssh --",
    ),
    (
        "nsjail",
        "nsjail -Mo -Q -e --disable_rlimits --nice_level 0 --chroot / --bindmount /dev --tmpfsmount /tmp \
         --tmpfsmount $HOME --bindmount $PWD --cwd $PWD --",
    ),
    (
        "nsjail-workspace",
        "nsjail -Mo -Q -e --disable_rlimits --nice_level 0 --disable_clone_newnet --chroot / --bindmount /dev \
         --tmpfsmount /tmp --tmpfsmount $HOME --bindmount $PWD --cwd $PWD --seccomp_string \
         ERRNO(1){ptrace,process_vm_readv,process_vm_writev,keyctl,add_key,bpf}DEFAULT/**/ALLOW --",
    ),
    ("minijail", "minijail0 -U -m -M -v -p -l -n --"),
    ("landrun", "landrun --rox / --rwx $PWD --rw /dev --unrestricted-network --env PATH --env HOME --"),
    ("sandlock", "sandlock run --no-supervisor -r / -w $PWD -w /dev --env TMPDIR=$PWD --"),
    ("sandlock-workspace", "sandlock run -r / -w $PWD -w /dev --env TMPDIR=$PWD --fs-deny $HOME/.ssh --"),
    (
        "hakoniwa",
        "hakoniwa run --unshare-all --devfs /dev --tmpfs /tmp --workdir $PWD --setenv PATH=/usr/bin:/bin --",
    ),
    (
        "hakoniwa-workspace",
        "hakoniwa run --unshare-cgroup --unshare-ipc --unshare-uts --devfs /dev --tmpfs /tmp --workdir $PWD \
         --setenv PATH=/usr/bin:/bin --",
    ),
    ("landstrip", "landstrip run --policy $HOME/landstrip.json --"),
];

/// The installed ones; the others report that they are not installed.
pub(crate) fn peers(home: &Path, workspace: &Path) -> Vec<Contestant> {
    let in_place = |word: &OsString| {
        let Some(text) = word.to_str().filter(|text| text.contains('$')) else { return word.clone() };
        let place = |path: &Path| path.to_string_lossy().into_owned();
        text.replace("$PWD", &place(workspace)).replace("$HOME", &place(home)).into()
    };
    let row = |(id, form)| {
        let prefix = match installed(form) {
            Availability::Here(words) => Availability::Here(words.iter().map(in_place).collect()),
            absent => absent,
        };
        Contestant { form: Some(form), ..Contestant::new(id, id, prefix) }
    };
    PEERS.into_iter().map(row).collect()
}

/// The programs of the peers, each once.
pub(crate) fn peer_programs() -> Vec<&'static str> {
    let mut programs: Vec<&str> = PEERS.iter().filter_map(|(_, form)| form.split(' ').next()).collect();
    programs.dedup();
    programs
}

/// The words of a form, if its program is in the path.
fn installed(form: &str) -> Availability {
    let (program, words) = form.split_once(' ').unwrap_or((form, ""));
    match in_path(program) {
        Some(path) => {
            let words = words.split_whitespace().map(OsString::from);
            Availability::Here(std::iter::once(path.into()).chain(words).collect())
        }
        None => Availability::Absent(format!("{program} is not installed")),
    }
}

/// The name of the number of filters in a process's status file.
pub(crate) const FILTERS: &str = "Seccomp_filters:";

/// The number of filters, from a status file or the line of it.
pub(crate) fn filters(status: &str) -> Result<u32> {
    let number = status.lines().find_map(|line| line.strip_prefix(FILTERS)?.trim().parse().ok());
    number.ok_or_else(|| format!("the command did not say how many filters are on it: it printed {status:?}"))
}

/// The number of filters on this very process.
pub(crate) fn filters_here() -> Result<u32> {
    let status = fs::read_to_string("/proc/self/status");
    filters(&status.map_err(|e| format!("cannot read '/proc/self/status': {e}"))?)
}

/// The environment that every contestant starts from; private caches land in the scratch directory.
pub(crate) fn environment(scratch: &Scratch) -> Vec<OsString> {
    let assignment = |name: &str, value: &OsStr| {
        let mut entry = OsString::from(format!("{name}="));
        entry.push(value);
        entry
    };
    let inherited = INHERITED.iter().filter_map(|n| Some(assignment(n, &std::env::var_os(n)?)));
    let cache = scratch.path().join("cache");
    inherited.chain([assignment("XDG_CACHE_HOME", cache.as_os_str()), "LANG=C.UTF-8".into()]).collect()
}

/// The two parts of an entry of an environment.
pub(crate) fn assignment_parts(entry: &OsStr) -> Option<(&OsStr, &OsStr)> {
    let bytes = entry.as_bytes();
    let at = bytes.iter().position(|byte| *byte == b'=')?;
    Some((OsStr::from_bytes(bytes.get(..at)?), OsStr::from_bytes(bytes.get(at + 1..)?)))
}

/// The `sbx` to measure: the one named, else the one built beside this program, the release build first.
pub(crate) fn find_sbx(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) =
        named.map(Path::to_path_buf).or_else(|| std::env::var_os("SBX_BIN").map(PathBuf::from))
    {
        return path.canonicalize().map_err(|e| format!("cannot use '{}' as sbx: {e}", path.display()));
    }
    let own = std::env::current_exe().map_err(|e| format!("cannot find this program's own file: {e}"))?;
    let beside = own.parent().unwrap_or(Path::new("/"));
    // The release script writes the path of its last build here.
    let released = fs::read(beside.join("../dist/product")).unwrap_or_default();
    let places = [PathBuf::from(OsStr::from_bytes(released.trim_ascii_end())), beside.join("sbx")];
    let found = places.iter().filter_map(|p| p.canonicalize().ok()).find(|p| is_program(p));
    found.ok_or_else(|| "no sbx beside this program; build it, or name one with --sbx or SBX_BIN".into())
}

/// The allow-list without the names that only some architectures have.
fn allowed() -> String {
    const X86_ONLY: [&str; 11] = [
        "stat",
        "lstat",
        "open",
        "arch_prctl",
        "access",
        "poll",
        "dup2",
        "readlink",
        "time",
        "getdents",
        "pipe",
    ];
    let here = |name: &&str| cfg!(target_arch = "x86_64") || !X86_ONLY.contains(name);
    ALLOWED.split(':').filter(here).collect::<Vec<_>>().join(":")
}

fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|d| d.join(program)).find(|p| p.is_absolute() && is_program(p))
}

/// A program that does nothing.
pub(crate) fn idle() -> Result<[OsString; 1]> {
    first_program(&["/bin/true", "/usr/bin/true"]).map(|path| [path.into()])
}

/// The first of these that exists.
pub(crate) fn first_program(places: &[&str]) -> Result<PathBuf> {
    let found = places.iter().map(PathBuf::from).find(|p| is_program(p));
    found.ok_or_else(|| format!("none of these exists here: {}", places.join(", ")))
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}
