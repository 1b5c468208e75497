//! What of a configuration that nobody has looked at git may act on.

use super::harmless::{Harm, is_harmless, is_plain_url, is_written_plainly, may_vary, remote};
use crate::plan::namespaces::{Setting, Settings};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What somebody else's configuration comes down to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sifted {
    /// The variables that are harmless.
    pub kept: Vec<u8>,
    /// The names of the others.
    pub harmful: Vec<Vec<u8>>,
}

/// Takes the harmless variables of a configuration that nobody has looked at: those that git itself writes for a new
/// repository, and those that may be changed in any. `holds` is asked about variables that lead somewhere.
pub fn sift(text: &[u8], mut holds: impl FnMut(&Setting) -> bool) -> Result<Sifted, Harm> {
    if text.contains(&0) {
        return Err(Harm::Unreadable);
    }
    let settings = Settings::of(text).collect::<Result<Vec<Setting>, _>>()?;
    let known: Vec<(&Setting, bool)> =
        settings.iter().map(|setting| (setting, is_of_new_repository(setting) || holds(setting))).collect();
    let are_kept = known.iter().filter(|(setting, is_new)| *is_new && is_written_plainly(setting));
    let remotes = are_kept.filter_map(|(setting, _)| remote(setting)).collect();
    let (mut sifted, mut section) = (Sifted::default(), None);
    for (setting, is_new) in known {
        let is_kept = is_new || may_vary(setting) && is_harmless(setting, &remotes);
        if !is_kept || !is_written_plainly(setting) {
            sifted.harmful.push(setting.key.clone());
            continue;
        }
        let Some((name, subsection, _)) = setting.parts() else { continue };
        if section.replace((name, subsection)) != Some((name, subsection)) {
            sifted.kept.extend(header(name, subsection));
        }
        sifted.kept.extend([b"\t", &setting.written[..], b"\n"].concat());
    }
    Ok(sifted)
}

/// The line that a section begins with.
fn header(name: &[u8], subsection: Option<&[u8]>) -> Vec<u8> {
    let quoted = |text: &[u8]| -> Vec<u8> {
        let escaped = |byte: &u8| match byte {
            b'"' | b'\\' => vec![b'\\', *byte],
            other => vec![*other],
        };
        text.iter().flat_map(escaped).collect()
    };
    let subsection = subsection.map(|text| [b" \"", &quoted(text)[..], b"\""].concat());
    [b"[", name, &subsection.unwrap_or_default(), b"]\n"].concat()
}

/// What `git init`, `git clone`, `git submodule` and `git sparse-checkout` write, and what leads nowhere.
fn is_of_new_repository(setting: &Setting) -> bool {
    let Some((section, subsection, name)) = setting.parts() else { return false };
    let Some(value) = setting.value.as_deref() else { return false };
    let is_word = is_word(value);
    match (section, subsection, name) {
        (b"core", None, b"repositoryformatversion" | b"filemode" | b"bare" | b"logallrefupdates") => is_word,
        (b"core", None, b"symlinks" | b"ignorecase" | b"precomposeunicode") => is_word,
        (b"core", None, b"sparsecheckout" | b"sparsecheckoutcone") => is_word,
        (b"extensions", None, b"objectformat" | b"compatobjectformat" | b"refstorage") => is_word,
        (b"extensions", None, b"worktreeconfig" | b"relativeworktrees") => is_word,
        // What is not checked out, git looks up in objects, and a look at an index does not.
        (b"index", None, b"sparse") => !setting.holds(),
        (b"lfs", None, b"repositoryformatversion") => is_word,
        (b"submodule", None, b"active") => !value.starts_with(b"-"),
        (b"submodule", None, b"alternatelocation" | b"alternateerrorstrategy") => is_word,
        (b"remote", Some(_), b"url") => is_plain_url(value) && local(value).is_none(),
        (b"remote", Some(_), b"fetch") => value.starts_with(b"+refs/") || value.starts_with(b"refs/"),
        (b"remote", Some(_), b"mirror" | b"tagopt") => is_word,
        _ => false,
    }
}

/// What `git clone --filter` writes besides: where git fetches what is missing, whenever it looks for that. A name that
/// is missing is a message to whoever is asked.
pub fn is_of_partial_clone(setting: &Setting) -> bool {
    let Some((section, subsection, name)) = setting.parts() else { return false };
    let Some(value) = setting.value.as_deref() else { return false };
    match (section, subsection, name) {
        (b"extensions", None, b"partialclone") | (b"remote", Some(_), b"promisor") => is_word(value),
        (b"remote", Some(_), b"partialclonefilter") => !value.starts_with(b"-"),
        _ => false,
    }
}

/// The address of a remote, if it is one on this machine: git runs the hooks of a repository there (githooks(5)).
pub fn address_here(setting: &Setting) -> Option<&[u8]> {
    let url = setting.value.as_deref().filter(|_| remote(setting).is_some())?;
    Some(url).filter(|url| is_plain_url(url) && local(url).is_some())
}

/// The path in such an address, as it stands there.
pub fn path_in(address: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(local(address).unwrap_or(address)))
}

/// The same if git finds it there, wherever it is called: it decodes `%` in an address of `file:`, takes what stands
/// before the path there for a part of it, expands `~`, and begins with a relative path where it is.
pub fn plain_path(address: &[u8]) -> Option<&Path> {
    let path = path_in(address);
    let is_decoded = path.as_os_str().len() < address.len() && address.contains(&b'%');
    (path.is_absolute() && !is_decoded && address.len() < libc::PATH_MAX as usize).then_some(path)
}

/// The path in an address without a host.
fn local(url: &[u8]) -> Option<&[u8]> {
    let first = |wanted: u8| url.iter().position(|byte| *byte == wanted);
    match url.strip_prefix(b"file://") {
        Some(path) => Some(path),
        None if first(b':').is_some_and(|colon| first(b'/').is_none_or(|slash| colon < slash)) => None,
        None => Some(url),
    }
}

fn is_word(value: &[u8]) -> bool {
    !value.starts_with(b"-")
        && value.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sifted(text: &str) -> (String, Vec<String>) {
        let Sifted { kept, harmful } = sift(text.as_bytes(), |_| false).unwrap();
        let harmful = harmful.into_iter().map(|key| String::from_utf8(key).unwrap()).collect();
        (String::from_utf8(kept).unwrap(), harmful)
    }

    #[test]
    fn a_configuration_is_sifted_to_what_leads_nowhere() {
        let text = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = x\n\
            [remote \"a b\"]\n\turl = https://example.org/x\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\
            [branch \"main\"]\n\tremote = a b\n[alias]\n\tst = !x\n[core]\n\tfilemode = true\n";
        let kept = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\
            [remote \"a b\"]\n\turl = https://example.org/x\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\
            [branch \"main\"]\n\tremote = a b\n[core]\n\tfilemode = true\n";
        assert_eq!(
            sifted(text),
            (kept.to_string(), vec!["core.fsmonitor".to_string(), "alias.st".to_string()])
        );
        assert_eq!(sifted(kept), (kept.to_string(), Vec::new()));
        assert_eq!(sift(b"[core", |_| true), Err(Harm::Unreadable));
        assert_eq!(sift(b"[user]\n\tname = \0", |_| true), Err(Harm::Unreadable));
    }

    #[test]
    fn a_path_is_plain_where_git_finds_it_as_it_stands() {
        for (address, path) in [("/a/b", "/a/b"), ("/a%20b", "/a%20b"), ("file:///a b", "/a b")] {
            assert_eq!(plain_path(address.as_bytes()), Some(Path::new(path)));
        }
        for address in
            ["a", "../a", "~/a", "~a/b", "file://host/a", "file:///a%20b", "file://%2fa", "file://~/a"]
        {
            assert_eq!(plain_path(address.as_bytes()), None, "{address}");
        }
    }

    #[test]
    fn git_finds_in_what_is_sifted_only_what_is_harmless() {
        for more in [
            "[remote \"x\"]\n\turl = ext::sh -c x\n",
            "[remote \"x\"]\n\tuploadpack = x\n\tvcs = x\n\tproxy = x\n",
            "[remote \"x\"]\n\turl = a\\\n b\n",
            "[remote \"x\"]\n\tfetch = x\n\turl\n",
            "[remote \"--exec=x\"]\n\turl = https://example.org/x\n[branch \"main\"]\n\tremote = --exec=x\n",
            "[extensions]\n\tpartialClone = --x\n[remote \"-x\"]\n\tfetch = +refs/*:refs/*\n\tpromisor = true\n",
            "[core]\n\tworktree = /\n\tgitProxy = x\n\taskPass = x\n\tattributesFile = x\n",
            "[extensions]\n\tx = y\n[includeIf \"gitdir:/\"]\n\tpath = x\n[protocol \"ext\"]\n\tallow = always\n",
            "[filter \"lfs\"]\n\tprocess = x\n[lfs \"customtransfer.x\"]\n\tpath = x\n[merge]\n\ttool = x\n",
        ] {
            let (kept, harmful) = sifted(more);
            assert_eq!(kept, "", "{more}");
            assert!(!harmful.is_empty(), "{more}");
        }
    }
}
