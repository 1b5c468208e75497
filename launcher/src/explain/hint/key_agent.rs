//! The user's agent of ssh, which signs with keys that a command then need not read (ssh-agent(1)).

use crate::explain::hint::Hint;
use crate::plan::Plan;
use crate::sys::path::{canonical, is_socket};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What is said of the flags.
const NOTE: &str = "the agent then signs what the command asks for, and your keys stay unread";

/// The agent that is there outside.
pub struct KeyAgent {
    socket: PathBuf,
    /// Whether the command may connect to it.
    is_open: bool,
    /// Whether the command knows where it is.
    is_named: bool,
}

impl KeyAgent {
    /// The agent of the user, seen from the command of a plan.
    pub fn of(plan: &Plan) -> Option<KeyAgent> {
        let socket = plan.key_agent.clone()?;
        let is_open = !plan.sockets.is_empty() && plan.sockets.contains(&canonical(&socket));
        let is_named = plan.environment.iter().any(|entry| entry.as_bytes().starts_with(b"SSH_AUTH_SOCK="));
        Some(KeyAgent { socket, is_open, is_named })
    }

    /// What lets the command use a key without reading it: nothing where this agent is of no use.
    pub fn hint_for(&self, key: &Path, home: &Path) -> Option<Hint> {
        is_key(key, home).then(|| self.hint()).flatten()
    }

    /// What lets the command reach the agent: nothing where it may already, or where no agent listens.
    pub fn hint(&self) -> Option<Hint> {
        if (self.is_open && self.is_named) || !is_socket(&self.socket) {
            return None;
        }
        let mut hint = Hint::default();
        if !self.is_open {
            hint = hint.and("--unix", &self.socket);
        }
        if !self.is_named {
            hint.flags.extend(["--env".into(), "SSH_AUTH_SOCK".into()]);
        }
        Some(hint.noting(Some(NOTE)))
    }
}

/// Whether it is a private key in a file that ssh(1) looks for by itself.
fn is_key(path: &Path, home: &Path) -> bool {
    let name = path.strip_prefix(home).ok().and_then(|below| below.strip_prefix(".ssh").ok());
    let name = name.map(|name| name.as_os_str().as_bytes());
    name.is_some_and(|name| name.starts_with(b"id_") && !name.ends_with(b".pub"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ssh_looks_for_is_a_key() {
        let home = Path::new("/home/u");
        let is_key = |path: &str| is_key(Path::new(path), home);
        assert!(is_key("/home/u/.ssh/id_rsa") && is_key("/home/u/.ssh/id_ed25519_sk"));
        for other in ["id_rsa.pub", "id_rsa-cert.pub", "known_hosts", "config", "keys/id_rsa"] {
            assert!(!is_key(&format!("/home/u/.ssh/{other}")), "{other}");
        }
        assert!(!is_key("/home/u/id_rsa") && !is_key("/root/.ssh/id_rsa"));
    }
}
