//! The search for a command.

use crate::error::EndsRun;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::program::access::Obstacle;
use crate::program::error::ProgramCause;
use crate::program::tests::Scratch;
use crate::program::{ProgramError, find};
use crate::sys::executable::testing::{as_ordinary_user, make_fifo};

fn look(command: &str, path_var: &str, cwd: &Path) -> Result<std::path::PathBuf, ProgramError> {
    find(OsStr::new(command), Some(OsStr::new(path_var)), cwd)
}

/// The exit status and the message of a search that must fail.
fn failure(command: &str, path_var: &str, cwd: &Path) -> (u8, String) {
    let error = look(command, path_var, cwd).expect_err(command);
    (error.outcome().status(), error.to_string())
}

#[test]
fn a_path_is_relative_to_the_working_directory_and_kept_as_given() {
    let scratch = Scratch::new();
    let tool = scratch.file("tool", "", 0o755);
    let link = scratch.link("link", &tool);
    assert_eq!(look("./tool", "/bin", &scratch.0).unwrap().as_os_str(), scratch.path("./tool").as_os_str());
    assert_eq!(look("./link", "", &scratch.0).unwrap().as_os_str(), scratch.path("./link").as_os_str());
    assert_eq!(look(link.to_str().unwrap(), "", Path::new("/")).unwrap(), link);
    assert_eq!(look("/bin/sh", "", &scratch.0).unwrap(), Path::new("/bin/sh"));
    let parent = format!("../{}/tool", scratch.0.file_name().unwrap().to_str().unwrap());
    assert_eq!(look(&parent, "", &scratch.0).unwrap(), scratch.0.join(parent));
}

#[test]
fn the_first_executable_in_path_wins() {
    let scratch = Scratch::new();
    for name in ["a", "b", "c", "d"] {
        scratch.directory(name);
    }
    scratch.file("a/tool", "", 0o644);
    scratch.directory("b/tool");
    let third = scratch.file("c/tool", "", 0o755);
    scratch.file("d/tool", "", 0o755);
    assert_eq!(look("tool", "nowhere:a:b:c:d", &scratch.0).unwrap(), third);
    let absolute = format!("{0}/a:{0}/c", scratch.0.display());
    assert_eq!(look("tool", &absolute, Path::new("/")).unwrap(), third);
}

#[test]
fn an_empty_entry_is_the_working_directory() {
    let scratch = Scratch::new();
    let tool = scratch.file("tool", "", 0o755);
    for path_var in ["", ":/nowhere", "/nowhere:", "/nowhere::/bin", "."] {
        let found = look("tool", path_var, &scratch.0).unwrap();
        assert_eq!(found.canonicalize().unwrap(), tool.canonicalize().unwrap(), "{path_var}");
    }
    assert_eq!(look("tool", "", &scratch.0).unwrap().as_os_str(), tool.as_os_str());
    assert_eq!(failure("tool", "/nowhere", &scratch.0).0, 127);
}

#[test]
fn without_path_the_default_is_searched_and_not_the_working_directory() {
    let scratch = Scratch::new();
    scratch.file("tool", "", 0o755);
    assert_eq!(find(OsStr::new("sh"), None, &scratch.0).unwrap(), Path::new("/bin/sh"));
    assert_eq!(find(OsStr::new("tool"), None, &scratch.0).unwrap_err().outcome().status(), 127);
}

#[test]
fn names_are_bytes() {
    let scratch = Scratch::new();
    let name = OsStr::from_bytes(b"to\xff\xfeol");
    let tool = scratch.0.join(name);
    std::fs::copy("/bin/sh", &tool).unwrap();
    assert_eq!(find(name, Some(scratch.0.as_os_str()), Path::new("/")).unwrap(), tool);
}

#[test]
fn says_why_nothing_was_found() {
    let scratch = Scratch::new();
    let cwd = scratch.0.as_path();
    scratch.file("plain", "", 0o644);
    scratch.directory("dir");
    scratch.link("loop", "loop");
    scratch.link("dangling", "nothing");
    make_fifo(&scratch.path("fifo"));

    let cases = [
        ("", 127, "the command is empty"),
        ("nosuch", 127, "not found in PATH"),
        ("ls -l | wc -l", 127, "sh -c 'ls -l | wc -l'"),
        ("while", 127, "it is a command of shells"),
        ("setopt", 127, "it is a command of shells"),
        ("min", 127, "a unit stands beside its number"),
        ("GB", 127, "as in --timeout 5m"),
        ("./nosuch", 127, "no such file"),
        ("./dangling", 127, "symbolic link whose target"),
        ("dangling", 127, "not found in PATH"),
        ("./plain/x", 127, "not a directory"),
        ("plain", 126, "no execute permission"),
        ("./plain", 126, "chmod +x"),
        ("./dir", 126, "is a directory"),
        ("dir", 126, "is a directory"),
        ("./loop", 126, "loop"),
        ("loop", 126, "loop"),
        ("./fifo", 126, "not a regular file"),
        ("/dev/null", 126, "not a regular file"),
        ("..", 126, "is a directory"),
        ("a\0b", 127, "NUL"),
    ];
    for (command, code, text) in cases {
        let (exit, message) = failure(command, "", cwd);
        assert_eq!(exit, code, "{command}: {message}");
        assert!(message.starts_with("cannot run ") && message.contains(text), "{command}: {message}");
    }
    assert_eq!(failure(&"x".repeat(300), "", cwd).0, 127);
    assert!(failure(&format!("./{}", "x".repeat(300)), "", cwd).1.contains("too long"));
}

#[test]
fn a_directory_that_may_not_be_entered_is_denied_and_passed_over() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new();
    let closed = scratch.directory("closed");
    scratch.file("closed/tool", "", 0o755);
    std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o000)).unwrap();
    as_ordinary_user(|| {
        let error = look("./closed/tool", "", &scratch.0).unwrap_err();
        assert!(matches!(error.cause, ProgramCause::Obstacle(Obstacle::Denied)), "{error}");
        assert_eq!(error.outcome().status(), 126);
        assert_eq!(failure("tool", "closed", &scratch.0).0, 126);
        assert_eq!(look("sh", "closed:/bin", &scratch.0).unwrap(), Path::new("/bin/sh"));
    });
    std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o700)).unwrap();
}

#[test]
fn messages_cannot_steer_the_terminal() {
    let (_, message) = failure("a\x1b[2J\nb\u{202e}\u{61c}\u{2028}c", "/bin", Path::new("/"));
    assert!(!message.contains(['\x1b', '\n', '\u{202e}', '\u{61c}', '\u{2028}']), "{message:?}");
}
