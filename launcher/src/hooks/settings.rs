//! The files of settings that count for an agent beside the one that its hook is written to, and what they say.

use crate::hooks::{Agent, edit, install};
use crate::host::Host;
use crate::plan::namespaces::git::shape;
use crate::sys::path::{canonical, is_there, says_missing};
use crate::sys::plain;
use crate::text::shown;
use serde_json::Value;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

impl Agent {
    /// Further files of settings that may keep the agent from asking hooks, or have rules of the user's, for a session
    /// in this directory: the machine's, those that the agent's vendor sent, and those that a project brings. Some may
    /// be missing.
    pub(super) fn other_settings(self, directory: &Path, host: &Host) -> Result<Vec<PathBuf>, String> {
        match self {
            Agent::Claude => {
                let mut files = of_machine(Path::new("/etc/claude-code"))?;
                files.extend(self.file(host).map(|own| own.with_file_name("remote-settings.json")));
                files.extend(places_of_project(directory).iter().flat_map(|place| {
                    ["settings.json", "settings.local.json"].map(|name| place.join(".claude").join(name))
                }));
                Ok(files)
            }
            Agent::Gemini => Ok(vec![PathBuf::from("/etc/gemini-cli/settings.json")]),
            Agent::Codex | Agent::Cursor | Agent::Opencode => Ok(Vec::new()),
        }
    }
}

/// What a file of settings says; `None` where there is none. One that is not understood may have a rule about any
/// command: then it is an error, which says what to do.
pub(super) fn said_in(file: &Path) -> Result<Option<Value>, String> {
    let cannot = |why: &str| format!("cannot read the settings in '{}': {why}; {MEND}", shown(file));
    let content = match install::content(file) {
        Ok(content) => content,
        Err(error) if says_missing(&error) => return Ok(None),
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            return Err(cannot("it is no regular file, or longer than settings are"));
        }
        Err(error) => return Err(cannot(&plain(&error))),
    };
    // Agents read other bytes too, and put this character in their place.
    let text = String::from_utf8_lossy(&content);
    edit::value_of(&text).map(Some).map_err(|error| cannot(&error.to_string()))
}

/// What a user does about a file of settings that is not understood.
pub(super) const MEND: &str = "correct the file, or move it away";

/// The machine's settings of Claude Code: a file, and those in a directory beside it. Hidden ones do not count there.
fn of_machine(place: &Path) -> Result<Vec<PathBuf>, String> {
    let parts = place.join("managed-settings.d");
    let cannot = |error: io::Error| {
        format!("cannot list the settings in '{}': {}; let yourself read it", shown(&parts), plain(&error))
    };
    let mut files = vec![place.join("managed-settings.json")];
    let entries = match fs::read_dir(&parts) {
        Err(error) if says_missing(&error) => return Ok(files),
        entries => entries.map_err(cannot)?,
    };
    for entry in entries {
        let name = entry.map_err(cannot)?.file_name();
        if name.as_bytes().ends_with(b".json") && !name.as_bytes().starts_with(b".") {
            files.push(parts.join(name));
        }
    }
    Ok(files)
}

/// Where a session in a directory may find settings of its project: there, in all directories above as far as the
/// topmost with a `.git`, and for a linked work tree also in the main one. An agent stops at the first `.git`, but a
/// command may have made that.
fn places_of_project(directory: &Path) -> Vec<PathBuf> {
    let real = canonical(directory);
    let above: Vec<&Path> = real.ancestors().collect();
    let top = above.iter().rposition(|place| is_there(&place.join(".git"))).unwrap_or(0);
    let mut places: Vec<PathBuf> = above.into_iter().take(top + 1).map(Path::to_path_buf).collect();
    let shared: Vec<PathBuf> = places.iter().filter_map(|place| shared_by(&place.join(".git"))).collect();
    // The `.git` of the main work tree, or a bare repository.
    places.extend(shared.iter().flat_map(|shared| shared.ancestors().take(2)).map(Path::to_path_buf));
    places
}

/// The repository that a linked work tree with this `.git` shares with others.
fn shared_by(entry: &Path) -> Option<PathBuf> {
    shape::common_named(&shape::led_to(entry)?).map(|shared| canonical(&shared))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::scratch::Scratch;
    use std::os::unix::fs::symlink;

    fn scratch() -> (Scratch, PathBuf) {
        let scratch = Scratch::create(None).unwrap();
        let path = scratch.path().to_path_buf();
        (scratch, path)
    }

    #[test]
    fn settings_are_understood_or_refused() {
        let (_scratch, place) = scratch();
        let file = place.join("settings.json");
        assert_eq!(said_in(&file), Ok(None));
        assert_eq!(said_in(&file.join("below")), Ok(None));
        let deep = "[".repeat(100_000);
        let cases: [(&[u8], Result<&str, &str>); 8] = [
            (b"{\"a\": 1}", Ok("{\"a\":1}")),
            (b"\xef\xbb\xbf{\"a\": 1}", Ok("{\"a\":1}")),
            (b"{ // why\n \"a\": 1, /* x */ }", Ok("{\"a\":1}")),
            (b"{\"a\": \"\xff\"}", Ok("{\"a\":\"\u{fffd}\"}")),
            (b"", Ok("null")),
            (b"{\"a\": ", Err("unexpected end of input")),
            (b"\xff\xfe{\0}\0", Err("Unexpected token")),
            (deep.as_bytes(), Err("nesting depth")),
        ];
        for (text, expected) in cases {
            fs::write(&file, text).unwrap();
            match (said_in(&file), expected) {
                (Ok(Some(said)), Ok(expected)) => assert_eq!(said.to_string(), expected),
                (Err(why), Err(expected)) => assert!(
                    why.contains(expected) && why.contains(&shown(&file)) && why.ends_with(MEND),
                    "{why}"
                ),
                (said, expected) => panic!("{said:?} instead of {expected:?}"),
            }
        }
    }

    #[test]
    fn what_is_no_file_of_settings_is_refused() {
        let (_scratch, place) = scratch();
        let long = place.join("long");
        fs::File::create(&long).unwrap().set_len(1 << 30).unwrap();
        for file in [place.as_path(), &long, Path::new("/dev/zero")] {
            let why = said_in(file).unwrap_err();
            assert!(why.contains(&shown(file)) && why.contains("no regular file, or longer"), "{why}");
        }
    }

    #[test]
    fn the_machine_has_settings_in_parts() {
        let (_scratch, place) = scratch();
        assert_eq!(of_machine(&place), Ok(vec![place.join("managed-settings.json")]));
        let parts = place.join("managed-settings.d");
        fs::create_dir(&parts).unwrap();
        for name in ["10-a.json", ".b.json", "c.json~", "README"] {
            fs::write(parts.join(name), "{}").unwrap();
        }
        let files = of_machine(&place).unwrap();
        assert_eq!(files, [place.join("managed-settings.json"), parts.join("10-a.json")]);
        fs::remove_dir_all(&parts).unwrap();
        fs::write(&parts, "").unwrap();
        assert_eq!(of_machine(&place).map(|files| files.len()), Ok(1));
    }

    #[test]
    fn a_project_has_settings_up_to_its_top() {
        let (_scratch, place) = scratch();
        let (top, start) = (place.join("top"), place.join("top/a/b"));
        fs::create_dir_all(&start).unwrap();
        assert_eq!(places_of_project(&start), [&*start]);
        fs::create_dir(top.join(".git")).unwrap();
        let expected = [start.clone(), place.join("top/a"), top.clone()];
        assert_eq!(places_of_project(&start), expected);
        assert_eq!(places_of_project(&top), [&*top]);
        // One that a command made.
        fs::create_dir(start.join(".git")).unwrap();
        assert_eq!(places_of_project(&start), expected);
        symlink(&start, place.join("link")).unwrap();
        assert_eq!(places_of_project(&place.join("link")), expected);
        let files = Agent::Claude.other_settings(&start, &Host::with_environment(Vec::new())).unwrap();
        for file in ["top/.claude/settings.json", "top/a/.claude/settings.local.json"] {
            assert!(files.contains(&place.join(file)), "{file}: {files:?}");
        }
    }

    #[test]
    fn a_linked_work_tree_has_the_settings_of_the_main_one() {
        let (_scratch, place) = scratch();
        for (main, repository) in [("main", "main/.git"), ("bare", "bare/x.git")] {
            let own = place.join(repository).join("worktrees/linked");
            let linked = place.join(format!("linked-{main}"));
            fs::create_dir_all(&own).unwrap();
            fs::create_dir_all(linked.join("a")).unwrap();
            fs::write(own.join("commondir"), "../..\n").unwrap();
            fs::write(linked.join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
            let places = places_of_project(&linked.join("a"));
            assert_eq!(places, [linked.join("a"), linked, place.join(repository), place.join(main)]);
        }
    }

    #[test]
    fn settings_that_were_sent_lie_beside_the_users() {
        let host = Host::with_environment(vec![("CLAUDE_CONFIG_DIR".into(), "/x/claude".into())]);
        let files = Agent::Claude.other_settings(Path::new("/nowhere"), &host).unwrap();
        assert!(files.contains(&PathBuf::from("/x/claude/remote-settings.json")), "{files:?}");
    }
}
