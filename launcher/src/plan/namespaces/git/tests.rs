use crate::enforce::scratch::Scratch;
use crate::plan::namespaces::git::*;
use std::fs;

fn paths(found: &Repository) -> Vec<&Path> {
    found.protected.iter().map(|protected| &*protected.path).collect()
}

#[test]
fn a_directory_without_a_repository_has_nothing_to_protect() {
    let scratch = Scratch::create(None).unwrap();
    let found = Repository::of(scratch.path(), None);
    assert!(found.protected.is_empty() && found.writes.is_empty());
}

#[test]
fn hooks_configuration_and_what_it_names_are_found() {
    let scratch = Scratch::create(None).unwrap();
    let git = scratch.path().join(".git");
    fs::create_dir_all(git.join("modules/lib/sub/hooks")).unwrap();
    fs::create_dir_all(git.join("worktrees/other")).unwrap();
    fs::write(git.join("modules/lib/sub/HEAD"), "ref: refs/heads/main\n").unwrap();
    let text = "[core]\n\thooksPath = .husky/_\n[include]\n path = \"../more.config\"\n[user]\n path = x\n";
    fs::write(git.join("config"), text).unwrap();
    let found = Repository::of(scratch.path(), None);
    let all = paths(&found);
    for name in [
        ".git/hooks",
        ".git/config",
        ".git/commondir",
        ".husky",
        ".git/../more.config",
        ".git/modules/lib/sub/hooks",
        ".git/modules/lib/sub/config",
        ".git/worktrees/other/commondir",
    ] {
        assert!(all.contains(&&*scratch.path().join(name)), "{name}: {all:?}");
    }
    assert!(found.writes.is_empty() && !all.contains(&&*scratch.path().join("x")));
}

#[test]
fn files_with_addresses_count_where_the_configuration_has_none() {
    let scratch = Scratch::create(None).unwrap();
    let git = scratch.path().join(".git");
    fs::create_dir_all(&git).unwrap();
    for (text, has_none) in [
        ("", true),
        ("[remote \"other\"]\n\turl = x\n", true),
        ("[remote \"origin\"]\n\tfetch = x\n", true),
        ("[remote \"origin\"]\n\turl = x\n\turl =\n", true),
        ("[remote \"Origin\"]\n\turl = x\n", true),
        ("[remote \"origin\"]\n\turl\n", true),
        ("[Remote \"origin\"]\n\tURL = x\n", false),
    ] {
        fs::write(git.join("config"), text).unwrap();
        let found = Repository::of(scratch.path(), None);
        for name in ["remotes", "branches"] {
            assert_eq!(paths(&found).contains(&&*git.join(name)), has_none, "{text}");
        }
    }
}

#[test]
fn what_leads_on_is_not_lost_among_the_rest() {
    let scratch = Scratch::create(None).unwrap();
    let git = scratch.path().join(".git");
    fs::create_dir_all(&git).unwrap();
    let many: String = (0..4 * MOST).map(|n| format!("[branch \"{n}\"]\n\tremote = .\n")).collect();
    fs::write(git.join("config"), format!("{many}[core]\n\thooksPath = hooks\n")).unwrap();
    let found = Repository::of(scratch.path(), None);
    assert!(paths(&found).contains(&&*scratch.path().join("hooks")));
}

#[test]
fn a_repository_elsewhere_counts_only_if_it_knows_the_worktree() {
    let scratch = Scratch::create(None).unwrap();
    let (main, tree) = (scratch.path().join("main/.git"), scratch.path().join("tree"));
    let own = main.join("worktrees/tree");
    fs::create_dir_all(&own).unwrap();
    fs::create_dir_all(&tree).unwrap();
    make_whole(&main);
    fs::write(own.join("commondir"), "../..\n").unwrap();
    fs::write(tree.join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
    let claimed = Repository::of(&tree, None);
    assert!(claimed.writes.is_empty(), "{claimed:?}");
    // git goes there all the same.
    assert!(
        paths(&claimed).contains(&&*tree.join(".git")) && paths(&claimed).contains(&&*main.join("hooks")),
        "{claimed:?}"
    );
    fs::write(own.join("gitdir"), format!("{}\n", tree.join(".git").display())).unwrap();
    let known = Repository::of(&tree, None);
    assert_eq!(known.writes, std::slice::from_ref(&main));
    assert!(
        paths(&known).contains(&&*main.join("hooks")) && paths(&known).contains(&&*own.join("commondir"))
    );
    // It is in none of these.
    let other = scratch.path().join("other/.git");
    make_whole(&other);
    for place in [&other, &scratch.path().join("main"), &own, &tree] {
        fs::write(own.join("commondir"), place.as_os_str().as_bytes()).unwrap();
        assert!(Repository::of(&tree, None).writes.is_empty(), "{}", place.display());
    }
}

#[test]
fn a_bare_repository_is_one() {
    let scratch = Scratch::create(None).unwrap();
    make_whole(scratch.path());
    let found = Repository::of(scratch.path(), None);
    assert!(
        ["hooks", "config", "commondir"]
            .iter()
            .all(|name| paths(&found).contains(&&*scratch.path().join(name)))
    );
    assert!(found.writes.is_empty());
    fs::remove_dir(scratch.path().join("refs")).unwrap();
    assert!(Repository::of(scratch.path(), None).protected.is_empty());
}

/// What every repository has.
fn make_whole(at: &Path) {
    ["objects", "refs"].iter().for_each(|name| fs::create_dir_all(at.join(name)).unwrap());
    fs::write(at.join("HEAD"), "ref: refs/heads/main\n").unwrap();
}

#[test]
fn runs_in_a_repository_and_in_its_submodule_meet_whatever_a_command_removes() {
    let scratch = Scratch::create(None).unwrap();
    for (top, removed) in [("main/.git", "HEAD"), ("bare", "none"), ("bare", "HEAD")] {
        let top = scratch.path().join(top);
        let part = top.join("modules/lib/modules/deep");
        fs::create_dir_all(&part).unwrap();
        make_whole(&top);
        make_whole(&part);
        fs::write(top.join("commondir"), ".\n").unwrap();
        let _ = fs::remove_file(top.join(removed));
        assert_eq!(outermost(&part), top);
        assert_eq!(outermost(&top), top);
    }
    let apart = scratch.path().join("some/modules/own/.git");
    assert_eq!(outermost(&apart), apart);
}

#[test]
fn a_directory_that_a_repository_is_in_is_none() {
    let scratch = Scratch::create(None).unwrap();
    let (main, tree) = (scratch.path().join("main"), scratch.path().join("main/tree"));
    let own = main.join("worktrees/tree");
    fs::create_dir_all(&own).unwrap();
    fs::create_dir_all(&tree).unwrap();
    make_whole(&main);
    fs::write(own.join("commondir"), "../..\n").unwrap();
    fs::write(own.join("gitdir"), format!("{}\n", tree.join(".git").display())).unwrap();
    fs::write(tree.join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
    let bare = Repository::of(&tree, None);
    assert_eq!(bare.workspaces().collect::<Vec<_>>(), [&*main]);
    fs::create_dir(main.join(".git")).unwrap();
    assert!(Repository::of(&tree, None).writes.is_empty());
    fs::remove_dir(main.join(".git")).unwrap();
    fs::remove_dir(main.join("objects")).unwrap();
    assert!(Repository::of(&tree, None).writes.is_empty());
}

#[test]
fn a_submodule_is_known_by_where_its_files_are() {
    let scratch = Scratch::create(None).unwrap();
    let (own, files) = (scratch.path().join("top/.git/modules/sub"), scratch.path().join("top/sub"));
    fs::create_dir_all(&own).unwrap();
    fs::create_dir_all(&files).unwrap();
    make_whole(&own);
    fs::write(own.join("config"), "[core]\n\tworktree = ../../../sub\n").unwrap();
    fs::write(files.join(".git"), "gitdir: ../.git/modules/sub\n").unwrap();
    assert_eq!(Repository::of(&files, None).writes, std::slice::from_ref(&own));
    fs::write(own.join("config"), "[core]\n\tworktree = ../../../other\n").unwrap();
    assert!(Repository::of(&files, None).writes.is_empty());
}
