//! What rules about places come to.

use serde_json::{Value, json};

use super::split;
use crate::profile::foreign::Losses;
use crate::profile::foreign::files::Lists;
use crate::profile::foreign::systemd::read;
use crate::profile::location::Variables;

/// The lists that a unit with these lines makes, and what is lost.
fn made(lines: &str) -> (Lists, Vec<String>) {
    let mut losses = Losses::default();
    let meaning = read(format!("[Service]\n{lines}\n").as_bytes(), &mut losses).unwrap();
    let lists = meaning.files.settle(&[], &Variables::default(), &mut losses);
    (lists, losses.lines().to_vec())
}

/// The same of a unit of which nothing is lost.
fn whole(lines: &str) -> Lists {
    let (lists, lost) = made(lines);
    assert_eq!(lost, Vec::<String>::new(), "{lines}");
    lists
}

fn has(list: &[Value], path: &str) -> bool {
    list.iter().any(|entry| *entry == path || entry["path"] == path)
}

/// An entry of what stays as it is where it is there.
fn kept(path: &str) -> Value {
    json!({ "path": path, "readers": [path] })
}

#[test]
fn a_guess_leaves_out_nothing_that_takes_away() {
    for closed in ["ProtectHome=yes", "InaccessiblePaths=/home", "InaccessiblePaths=/root"] {
        for secret in ["InaccessiblePaths=%h/secret", "InaccessiblePaths=-%h/secret"] {
            assert!(has(&whole(&format!("{closed}\n{secret}")).deny, "${HOME}/secret"), "{closed} {secret}");
        }
        let hidden = whole(&format!("{closed}\nTemporaryFileSystem=%h/secret:ro"));
        assert!(has(&hidden.deny, "${HOME}/secret"), "{closed}");
        for fixed in ["ReadOnlyPaths=%h/conf", "ReadOnlyPaths=-%h/conf", "BindReadOnlyPaths=%h/conf"] {
            let lists = whole(&format!("{closed}\nReadWritePaths=/var/tmp/x/home\n{fixed}"));
            assert!(lists.protect.contains(&kept("${HOME}/conf")), "{closed} {fixed}: {:?}", lists.protect);
            assert!(!has(&lists.execute, "${HOME}/conf"), "{closed} {fixed}: {:?}", lists.execute);
            assert!(has(&lists.write, "/var/tmp/x/home"), "{closed} {fixed}");
        }
        // What would open something is left out.
        for opened in ["ReadWritePaths=%h/x", "BindPaths=%h/x", "BindReadOnlyPaths=%h/x"] {
            let lists = whole(&format!("{closed}\n{opened}"));
            assert!(
                !has(&lists.write, "${HOME}/x") && !has(&lists.execute, "${HOME}/x"),
                "{closed} {opened}"
            );
        }
    }
    // The home need not hold those of others.
    let deny = whole("InaccessiblePaths=%h\nInaccessiblePaths=/home/other/x\nProtectHome=yes").deny;
    assert!(["${HOME}", "/home", "/root", "/run/user"].iter().all(|path| has(&deny, path)), "{deny:?}");
    let deny = whole("InaccessiblePaths=%h\nInaccessiblePaths=/home/other/x").deny;
    assert!(has(&deny, "/home/other/x"), "{deny:?}");
    // What always lies in a closed place is closed with it.
    assert_eq!(whole("InaccessiblePaths=/srv\nInaccessiblePaths=/srv/a").deny, ["/srv"]);
}

#[test]
fn what_is_hidden_by_a_guess_stays_as_it_is() {
    let (lists, lost) =
        made("ProtectHome=tmpfs\nReadWritePaths=/var/tmp/x/home\nReadOnlyPaths=%h/conf\nReadWritePaths=%h/x");
    assert!(lists.protect.contains(&kept("${HOME}/conf")), "{:?}", lists.protect);
    assert!(!has(&lists.write, "${HOME}/x") && !has(&lists.execute, "${HOME}/conf"));
    for place in ["${HOME}/conf", "${HOME}/x"] {
        assert!(
            lost.iter().any(|line| line.contains(&format!("'{place}' stays closed"))),
            "{place}: {lost:?}"
        );
    }
    // What a guess shows is not opened either.
    let empty = "TemporaryFileSystem=/:ro\nBindPaths=/home";
    let (lists, lost) = made(&format!("{empty}\nReadOnlyPaths=%h/conf"));
    assert!(!has(&lists.execute, "${HOME}/conf") && lists.protect.contains(&kept("${HOME}/conf")));
    assert!(!lost.iter().any(|line| line.contains("stays closed")), "{lost:?}");
    let (lists, lost) = made(&format!("{empty}\nReadWritePaths=%h/x"));
    assert!(!has(&lists.write, "${HOME}/x"), "{:?}", lists.write);
    assert!(lost.iter().any(|line| line.contains("'${HOME}/x' stays closed")), "{lost:?}");
}

#[test]
fn a_home_that_may_be_anywhere_holds_what_directives_keep() {
    let lists = whole("ProtectSystem=full\nReadWritePaths=%h");
    assert!(["/usr", "/etc", "/boot"].iter().all(|path| lists.protect.contains(&kept(path))), "{lists:?}");
    assert!(has(&lists.write, "${HOME}"));
    let lists = whole("ProtectSystem=strict\nProtectKernelTunables=yes\nReadWritePaths=%h/.cache");
    assert!(lists.protect.is_empty() && has(&lists.write, "${HOME}/.cache"), "{lists:?}");
}

#[test]
fn a_prefix_that_systemd_does_not_know_is_part_of_the_path() {
    for (word, parts) in [
        ("/p", (false, "/p")),
        ("-/p", (true, "/p")),
        ("+/p", (false, "/p")),
        ("-+/p", (true, "/p")),
        ("+-/p", (false, "-/p")),
        ("--/p", (true, "-/p")),
        ("++/p", (false, "+/p")),
        ("!/p", (false, "!/p")),
    ] {
        assert_eq!(split(word), parts, "{word}");
    }
    for list in ["ReadWritePaths", "InaccessiblePaths", "NoExecPaths", "BindPaths", "TemporaryFileSystem"] {
        for word in ["!/p", "+-/p", "--/p"] {
            let (lists, lost) = made(&format!("{list}={word}"));
            assert!(!has(&lists.write, "/p") && !has(&lists.deny, "/p"), "{list}={word}");
            assert!(
                lost.iter().any(|line| line.contains("/p' is neither absolute")),
                "{list}={word}: {lost:?}"
            );
        }
    }
    // Binds have no '+', and empty directories no '-'.
    for line in ["BindPaths=+/p", "BindReadOnlyPaths=-+/p", "TemporaryFileSystem=-/p"] {
        assert!(made(line).1.iter().any(|line| line.contains("is neither absolute")), "{line}");
    }
}

#[test]
fn a_path_is_what_systemd_reads() {
    assert_eq!(whole(r"InaccessiblePaths=-/p/x\x41 /a\ b").deny, ["/a b", "/p/xx41"]);
    assert_eq!(whole("InaccessiblePaths=/srv/a:").deny, ["/srv/a:"]);
    assert_eq!(whole("InaccessiblePaths=/srv/a:/srv/b").deny, ["/srv/a:/srv/b"]);
    let lists = whole("ReadWritePaths=/srv/b:");
    assert!(has(&lists.write, "/srv/b:") && !has(&lists.write, "/srv/b"));
    assert_eq!(whole(r"TemporaryFileSystem=/srv/a\\:b:ro").deny, ["/srv/a:b"]);
    let lists = whole(r"BindPaths=/srv/a\:b");
    assert!(has(&lists.write, "/srv/a:b"), "{:?}", lists.write);
}

/// In a unit another directory is there, and what the machine has is out of sight.
#[test]
fn where_a_bind_has_something_else_is_closed() {
    let (lists, lost) = made("BindReadOnlyPaths=/empty:/secret\nReadWritePaths=/secret/a");
    assert_eq!(lists.deny, ["/secret"]);
    assert!(!has(&lists.write, "/secret/a"));
    assert!(
        lost.iter().any(|line| line.contains("'/empty' has no other name in a run: '/secret'")),
        "{lost:?}"
    );
    // What other rules say about that place is not said about what is bound.
    let (lists, _) = made("BindPaths=/srv/a:/srv/b\nInaccessiblePaths=/srv/b/secret");
    assert!(!has(&lists.write, "/srv/a") && has(&lists.deny, "/srv/b"), "{lists:?}");
    assert_eq!(made("BindPaths=/srv/a:/srv/b /srv/b").0.deny, ["/srv/b"]);
    assert_eq!(made("BindPaths=/srv/a:/tmp").0.deny, Vec::<Value>::new());
    for same in ["BindPaths=/srv/a:/srv/a", "BindPaths=/srv/a:/srv//a/:rbind", "BindPaths=-/srv/a:/srv/a:"] {
        assert!(has(&whole(same).write, "/srv/a"), "{same}");
    }
    for odd in ["/srv/a:", "/srv/a:b", "/srv/a:/srv/a:what", "/srv/a:/srv/a:rbind:x", "/srv/a:/srv/a:norbind"]
    {
        assert_eq!(made(&format!("BindPaths={odd}")).1.len(), 1, "{odd}");
    }
}

#[test]
fn a_directory_of_the_service_is_one_below_another() {
    for odd in ["/etc", ".", ":x", "private/x", "''"] {
        let (lists, lost) = made(&format!("StateDirectory={odd}"));
        assert!(!lists.write.iter().any(|entry| *entry != "${TMP}"), "{odd}: {:?}", lists.write);
        assert!(lost.iter().any(|line| line.contains("is no directory below '/var/lib'")), "{odd}: {lost:?}");
    }
    assert!(has(&made(r"StateDirectory=x\x41\:b").0.write, "/var/lib/xA:b"));
    assert!(has(&whole("CacheDirectory=sbx").write, "${CACHE}"));
}
