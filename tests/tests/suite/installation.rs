//! `make install` and `make uninstall`, the manual and the completions.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use sbx_tests::{Cmd, Output, User, World, need, stage};

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

fn make(target: &str, root: &Path) -> Output {
    let root = format!("DESTDIR={}", root.display());
    let program = format!("SBX={}", stage::sbx().display());
    let words = ["-s", "-C", REPOSITORY, target, &root, "PREFIX=/usr", &program];
    Cmd::new("make").args(words).run().success()
}

/// Every file below a directory.
fn files(dir: &Path) -> BTreeSet<PathBuf> {
    let mut all = BTreeSet::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        all.extend(if path.is_dir() { files(&path) } else { BTreeSet::from([path]) });
    }
    all
}

#[test]
fn installed_files_work_and_are_removed_again() {
    need!("make");
    let world = World::new(&User::current());
    let root = world.path("root");
    let other = world.write("root/usr/share/man/man1/sbx-of-somebody-else.1", "");
    make("install", &root);
    for file in [
        "bin/sbx",
        "bin/sbx-shell",
        "bin/sbx-bash",
        "bin/sbx-sh",
        "bin/sbx-zsh",
        "lib/sbx/libsandbox.so",
        "share/man/man1/sbx.1",
        "share/man/man1/sbx-run.1",
        "share/bash-completion/completions/sbx",
        "share/zsh/site-functions/_sbx",
        "share/fish/vendor_completions.d/sbx.fish",
    ] {
        assert!(root.join("usr").join(file).metadata().is_ok_and(|meta| meta.len() > 0), "{file} is missing");
    }
    Cmd::new(root.join("usr/bin/sbx")).arg("--version").run().success();
    let shell = Cmd::new(root.join("usr/bin/sbx-shell")).args(["-c", "exit 7"]).cwd(&world.workspace);
    shell.run().exited(7);
    make("uninstall", &root);
    assert_eq!(files(&root), BTreeSet::from([other]));
    make("uninstall", &root);
}

#[test]
fn the_manual_can_be_read() {
    need!("man");
    let world = World::new(&User::ordinary());
    world.make_dir(&world.path("pages"));
    world.sbx(["man", "pages"]).run().success().silent().prints("");
    let pages = files(&world.path("pages"));
    assert!(pages.len() > 8, "{pages:?}");
    for page in &pages {
        let page = page.to_str().unwrap();
        let shown = world.bare(["man", "--warnings", "-l", page]).env("MANWIDTH", "100").run().success();
        let shown = shown.silent().out();
        assert!(shown.contains("SYNOPSIS"), "{page}: {shown}");
        if page.ends_with("sbx-run.1") {
            for word in ["--profile", "--deny-calls", "SBX_PROFILE", "EXAMPLES", "VARIABLES", "EXIT STATUS"] {
                assert!(shown.contains(word), "{word} is not in the page: {shown}");
            }
            let own_line = |line: &str| line.trim_start().starts_with("sbx run -- npm test");
            assert!(shown.lines().any(own_line), "examples are not on lines of their own: {shown}");
        }
    }
    world.sbx(["man", "missing"]).run().refused(125, &["cannot write man pages into 'missing'"]);
}

#[test]
fn bash_completes_flags_profiles_and_files() {
    need!("bash");
    let world = World::new(&User::ordinary());
    let script = world.sbx(["completions", "bash"]).run().success().silent().out();
    world.write("completions", script);
    // The arguments that bash gives the function: the command, the word and the one before.
    let complete = |words: &str, word: &str, before: &str| {
        let script = format!(
            "source ./completions; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _sbx sbx '{word}' '{before}'; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        world.bare(["bash", "--norc", "-c", &script]).run().success().out()
    };
    assert!(complete("sbx r", "r", "sbx").contains("run\n"));
    assert_eq!(complete("sbx run --prof", "--prof", "run"), "--profile\n");
    assert_eq!(complete("sbx run --profile mi", "mi", "--profile"), "minimal\n");
    assert!(complete("sbx run --report com", "com", "--report").contains("completions\n"));
    assert!(!complete("sbx ", "", "sbx").contains("man\n"), "the hidden subcommand is offered");
}

#[test]
fn zsh_and_fish_have_scripts_too() {
    let world = World::new(&User::ordinary());
    for (shell, word) in [("zsh", "#compdef sbx"), ("fish", "complete -c sbx")] {
        let script = world.sbx(["completions", shell]).run().success().silent().out();
        assert!(script.contains(word) && script.contains("profile"), "{shell}: {script}");
    }
    world.sbx(["completions", "tcsh"]).run().refused(125, &["'tcsh'", "bash, zsh, fish"]);
}
