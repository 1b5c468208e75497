//! What each contestant really confines, found by trying from inside: a copy of this program reads and writes
//! beside the workspace, connects to this process and names its namespaces. The effects are observed outside.

use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::Result;
use crate::contestants::{self, Contestant};
use crate::options::Probe;
use crate::report::Outcome;

/// The hidden command under which the copy looks around.
pub(crate) const CHILD: &str = "look-around-inside";

/// Their names in /proc/PID/ns.
const NAMESPACES: [&str; 7] = ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"];

/// A file in the home directory that must not be read.
const SECRET: (&str, &str) = (".ssh/id_bench", "not for sandboxed eyes");

/// A file that must not be written.
const PLANTED: &str = ".profile-planted";

/// What a child found, and its effects outside.
#[derive(Debug, PartialEq)]
pub(crate) struct Confinement {
    filters: u32,
    reads: bool,
    writes: bool,
    connects: bool,
    /// One number for each of `NAMESPACES`; 0 where it cannot be told.
    namespaces: Vec<u64>,
}

/// Runs inside. The caller judges what can be seen from outside; a refusal is a result here, not an error.
pub(crate) fn child(probe: &Probe) -> Result<()> {
    println!("{} {}", contestants::FILTERS, contestants::filters_here()?);
    let secret = fs::read_to_string(probe.home.join(SECRET.0)).unwrap_or_default();
    println!("read: {secret}");
    // Whether these succeeded shows in the directory and at the port.
    let _ = fs::write(probe.home.join(PLANTED), "planted");
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, probe.port));
    let _ = TcpStream::connect_timeout(&address, Duration::from_secs(5));
    let number = |name| fs::metadata(format!("/proc/self/ns/{name}")).map_or(0, |m| m.ino()).to_string();
    println!("namespaces: {}", NAMESPACES.map(number).join(" "));
    Ok(())
}

/// The surroundings of a workspace, which a contestant should keep its command out of.
pub(crate) struct Surroundings {
    home: PathBuf,
    listener: TcpListener,
    port: u16,
}

impl Surroundings {
    /// Writes the secret and opens a port on loopback.
    pub(crate) fn new(home: &Path) -> Result<Self> {
        let secret = home.join(SECRET.0);
        let directory = secret.parent().unwrap_or(home);
        fs::create_dir_all(directory)
            .and_then(|()| fs::write(&secret, SECRET.1))
            .map_err(|e| format!("cannot make '{}': {e}", secret.display()))?;
        let listen = || {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            listener.set_nonblocking(true)?;
            let port = listener.local_addr()?.port();
            Ok((listener, port))
        };
        let (listener, port) =
            listen().map_err(|e: std::io::Error| format!("cannot listen on loopback: {e}"))?;
        Ok(Self { home: home.into(), listener, port })
    }

    /// What this contestant confines, found by a copy of this program that it runs.
    fn look(
        &self,
        contestant: &Contestant,
        copy: &Path,
        env: &[OsString],
    ) -> std::result::Result<Confinement, Outcome> {
        let port = self.port.to_string().into();
        let command: [OsString; 4] = [copy.into(), CHILD.into(), self.home.clone().into(), port];
        let mut subject = contestant.running(&command, env)?;
        let said = subject.output_despite_complaints().map_err(Outcome::Failed);
        // Both are cleared, whatever the result of the run.
        let (writes, connects) = (self.planted(), self.connected());
        understand(&said?, writes, connects).map_err(Outcome::Failed)
    }

    fn planted(&self) -> bool {
        fs::remove_file(self.home.join(PLANTED)).is_ok()
    }

    fn connected(&self) -> bool {
        let mut any = false;
        loop {
            match self.listener.accept() {
                Ok(_) => any = true,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => return any,
            }
        }
    }
}

/// The child's output, with the effects outside.
fn understand(said: &str, writes: bool, connects: bool) -> Result<Confinement> {
    let line = |key: &str| said.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    let missing = |what| format!("the command did not say {what}: it printed {said:?}");
    let namespaces = line("namespaces:").ok_or_else(|| missing("its namespaces"))?;
    let namespaces: Vec<u64> = namespaces.split(' ').filter_map(|n| n.parse().ok()).collect();
    if namespaces.len() != NAMESPACES.len() {
        return Err(missing("its namespaces"));
    }
    let reads = line("read:").ok_or_else(|| missing("what it read"))? == SECRET.1;
    Ok(Confinement { filters: contestants::filters(said)?, reads, writes, connects, namespaces })
}

/// A contestant, with what it confines or why that is not known.
pub(crate) struct Seen {
    pub(crate) contestant: Contestant,
    pub(crate) confinement: std::result::Result<Confinement, Outcome>,
}

/// Inspects all contestants, bare being the first. One that confines no more than bare is no sandbox here, and is out.
pub(crate) fn look_at_all(
    all: Vec<Contestant>,
    surroundings: &Surroundings,
    copy: &Path,
    env: &[OsString],
) -> Result<Vec<Seen>> {
    let mut seen: Vec<Seen> = Vec::new();
    for contestant in all {
        let mut confinement = surroundings.look(&contestant, copy, env);
        match (seen.first().map(|bare| &bare.confinement), &confinement) {
            (None, Err(why)) => return Err(format!("{}: {}", contestant.name, why.reason())),
            (Some(bare), found) if bare == found => {
                confinement = Err(Outcome::Failed("confines nothing of what is looked at".into()));
            }
            _ => {}
        }
        seen.push(Seen { contestant, confinement });
    }
    Ok(seen)
}

impl Seen {
    fn form(&self) -> String {
        self.contestant.form.map_or_else(String::new, |form| format!("`{form}`"))
    }
}

impl Confinement {
    /// The namespaces that differ from those of bare; one that a sandbox does not show does not count.
    fn own_namespaces(&self, bare: &Self) -> Vec<&'static str> {
        let both = NAMESPACES.iter().zip(self.namespaces.iter().zip(&bare.namespaces));
        let name = |(name, (inside, outside)): (&&'static str, (&u64, &u64))| match *inside {
            0 => None,
            inside => (inside != *outside).then_some(*name),
        };
        let unknown = self.namespaces.contains(&0).then_some("(not all shown)");
        both.filter_map(name).chain(unknown).collect()
    }
}

fn bare(all: &[Seen]) -> Option<&Confinement> {
    all.first()?.confinement.as_ref().ok()
}

/// The table of what is compared, and who is missing.
pub(crate) fn to_markdown(all: &[Seen]) -> String {
    let mut text = "| contestant | filters | reads `~` | writes `~` | reaches loopback | namespaces of its own | form |\n\
        |---|--:|---|---|---|---|---|\n"
        .to_owned();
    let word = |yes: bool| if yes { "yes" } else { "no" };
    let mut reasons = String::new();
    for seen in all {
        let (name, form) = (&seen.contestant.name, seen.form());
        // Writing into a String cannot fail.
        let _ = match &seen.confinement {
            Ok(found) => {
                let own = bare(all).map_or_else(Vec::new, |bare| found.own_namespaces(bare)).join(" ");
                let (reads, writes, connects) = (word(found.reads), word(found.writes), word(found.connects));
                let own = if own.is_empty() { "none" } else { &own };
                let filters = found.filters;
                writeln!(text, "| {name} | {filters} | {reads} | {writes} | {connects} | {own} | {form} |")
            }
            Err(outcome) => {
                let _ = writeln!(reasons, "- {name}: {}", outcome.short_reason());
                writeln!(text, "| {name} | {} | | | | | {form} |", outcome.verdict())
            }
        };
    }
    if reasons.is_empty() { text } else { format!("{text}\nNot compared:\n\n{reasons}") }
}

/// The same for programs.
pub(crate) fn to_json(all: &[Seen]) -> Value {
    let row = |seen: &Seen| {
        let (id, name, form) = (seen.contestant.id, &seen.contestant.name, seen.contestant.form);
        match &seen.confinement {
            Ok(found) => json!({
                "id": id,
                "name": name,
                "form": form,
                "filters": found.filters,
                "reads_home": found.reads,
                "writes_home": found.writes,
                "reaches_loopback": found.connects,
                "namespaces": bare(all).map(|bare| found.own_namespaces(bare)),
            }),
            Err(outcome) => {
                json!({ "id": id, "name": name, "form": form, outcome.verdict(): outcome.reason() })
            }
        }
    };
    all.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_outside_joins_what_was_said_inside() {
        let said = format!("{}\t1\nread: {}\nnamespaces: 1 2 3 4 5 6 7\n", contestants::FILTERS, SECRET.1);
        let found = understand(&said, false, true).unwrap();
        assert_eq!((found.filters, found.reads, found.writes, found.connects), (1, true, false, true));
        assert_eq!(found.namespaces, [1, 2, 3, 4, 5, 6, 7]);
        let hidden = said.replace(SECRET.1, "");
        assert!(!understand(&hidden, false, false).unwrap().reads);
        assert!(understand(&said.replace(" 7", ""), false, false).is_err());
        assert!(understand("", true, true).is_err());
        let other = understand(&said.replace(" 1 2", " 9 0"), false, true).unwrap();
        assert_eq!(other.own_namespaces(&found), ["user", "(not all shown)"]);
    }
}
