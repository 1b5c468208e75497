//! A hint for who commits: where git is to sign what it makes, it fails for want of the keys, and says so in a way that
//! does not lead to the sandbox; or it leaves the signature out. Nothing is read unless a command looks like that.

use crate::plan::Plan;
use crate::plan::namespaces::Setting;
use crate::plan::namespaces::git_config::{self, settings};
use crate::supervise::Ending;
use crate::sys::path::canonical;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What makes something that can be signed.
const MAKING: [&str; 7] = ["commit", "merge", "tag", "rebase", "revert", "cherry-pick", "am"];

/// The configurations that may have git sign.
pub struct Signing {
    /// In the run.
    inside: Vec<PathBuf>,
    /// The user's, where the run has a copy in its place, which asks for no signatures.
    outside: Vec<PathBuf>,
}

impl Signing {
    /// Of a run whose command may commit, and has nobody who signs for it.
    pub fn of(plan: &Plan) -> Option<Signing> {
        if has_agent(plan) {
            return None;
        }
        let words = plan.arguments.iter().flat_map(|argument| {
            argument.as_bytes().split(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'-' | b'.'))
        });
        if !may_commit(words) {
            return None;
        }
        // In a home of its own the command has a copy that does not ask for signatures, unless it changed that.
        let private = plan.private_home.as_ref().map(|home| &home.directory);
        let of_user =
            |home: Option<&PathBuf>| home.map(|home| git_config::of_user(home)).into_iter().flatten();
        Some(Signing {
            inside: of_user(private.or(plan.home.as_ref()))
                .chain(plan.workspace.iter().map(|path| path.join(".git/config")))
                .collect(),
            outside: of_user(plan.home.as_ref().filter(|_| private.is_some())).collect(),
        })
    }

    /// The hint, after a run that ended like this.
    pub fn hint(&self, ending: Ending) -> Option<&'static str> {
        let asks = |files: &[PathBuf]| {
            files.iter().filter_map(|path| settings(path).ok()).flatten().any(|setting| signs(&setting))
        };
        match ending {
            Ending::Exited(0) if asks(&self.outside) && !asks(&self.inside) => Some(
                "what git made here is not signed, though your configuration says so (commit.gpgsign): the run has a \
                 copy without that, and does not reach your keys; to sign it, outside: git commit --amend --no-edit -S",
            ),
            Ending::Exited(status) if status != 0 && asks(&self.inside) => Some(
                "git is configured to sign here (commit.gpgsign), and the command does not reach your keys; to commit \
                 without a signature: git -c commit.gpgsign=false commit",
            ),
            _ => None,
        }
    }
}

/// Whether the command reaches an agent that has keys: the one that it is told of by the variable, or gpg's.
fn has_agent(plan: &Plan) -> bool {
    const VARIABLE: &[u8] = b"SSH_AUTH_SOCK=";
    let told = plan.environment.iter().find_map(|variable| variable.as_bytes().strip_prefix(VARIABLE));
    let told = told.map(|path| canonical(Path::new(OsStr::from_bytes(path))));
    let is_agents = |socket: &PathBuf| {
        let name = socket.file_name().unwrap_or_default();
        told.as_ref() == Some(socket) || name.as_bytes().starts_with(b"S.gpg-agent")
    };
    plan.sockets.iter().any(is_agents)
}

/// Whether git is told to make something, and not to leave the signature out.
fn may_commit<'w>(words: impl Iterator<Item = &'w [u8]>) -> bool {
    let (mut git, mut makes) = (false, false);
    for word in words {
        git |= word == b"git";
        makes |= git && MAKING.iter().any(|made| made.as_bytes() == word);
        if matches!(word, b"--no-gpg-sign" | b"commit.gpgsign") {
            return false;
        }
    }
    makes
}

/// Whether a configuration of git asks for signatures.
fn signs(setting: &Setting) -> bool {
    (setting.is("commit", "gpgsign") || setting.is("tag", "gpgsign")) && setting.holds()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::namespaces::git_config::parse;

    #[test]
    fn only_who_commits_is_helped() {
        for (command, helps) in [
            ("git commit -m x", true),
            ("sh -c cd a && git -C b commit", true),
            ("git -c user.name=x tag v1", true),
            ("git status", false),
            ("commit", false),
            ("git commit --no-gpg-sign", false),
            ("git -c commit.gpgsign=false commit", false),
        ] {
            assert_eq!(may_commit(command.split([' ', '=']).map(str::as_bytes)), helps, "{command}");
        }
    }

    #[test]
    fn only_a_configuration_that_asks_for_signatures_counts() {
        for text in [
            "[commit]\n\tgpgsign = true\n",
            "[user]\nname=x\n[Commit]\nGPGSign\n",
            "[tag]\ngpgSign=\"yes\" ; x",
        ] {
            assert!(parse(text.as_bytes()).iter().any(signs), "{text}");
        }
        for text in [
            "",
            "[commit]\n\tgpgsign = false\n",
            "[other]\ngpgsign = true",
            "gpgsign",
            "[commit]\nverbose = true",
        ] {
            assert!(!parse(text.as_bytes()).iter().any(signs), "{text}");
        }
    }
}
