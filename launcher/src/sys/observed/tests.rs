use super::*;
use crate::enforce::scratch::Scratch;
use std::fs;
use std::os::fd::AsFd;

const LIMIT: Duration = Duration::from_secs(20);

fn look(path: impl Into<PathBuf>, at: Depth) -> Look {
    Look { path: path.into(), at }
}

#[test]
fn each_look_is_noted_down_by_whatever_call_it_is_taken() {
    let scratch = Scratch::create(None).unwrap();
    let base = scratch.path().canonicalize().unwrap();
    fs::write(base.join("file"), "text").unwrap();
    std::os::unix::fs::symlink("file", base.join("link")).unwrap();
    let directory = fs::File::open(&base).unwrap();
    let here = std::env::current_dir().unwrap();
    let looks = observe(
        || {
            let there = base.join("file").metadata().is_ok() && base.join("link").read_link().is_ok();
            let missing = base.join("none").symlink_metadata().is_err();
            let read = fs::read(base.join("file")).is_ok_and(|text| text == b"text");
            let listed = base.read_dir().is_ok_and(|entries| entries.count() == 2);
            let below = rustix::fs::openat2(
                directory.as_fd(),
                c"below",
                rustix::fs::OFlags::PATH,
                rustix::fs::Mode::empty(),
                rustix::fs::ResolveFlags::BENEATH,
            );
            let _ = Path::new("relative").exists();
            let _ = crate::sys::file::born(&base, true);
            there && missing && read && listed && below.is_err() && base.canonicalize().is_ok()
        },
        LIMIT,
    );
    let looks = looks.unwrap();
    let wanted = [
        look(base.join("file"), Depth::Attributes),
        look(base.join("file"), Depth::Contents),
        look(base.join("link"), Depth::Attributes),
        look(base.join("none"), Depth::Attributes),
        look(&base, Depth::Identity),
        look(&base, Depth::Contents),
        look(base.join("below"), Depth::Attributes),
        look(here.join("relative"), Depth::Attributes),
    ];
    for look in wanted {
        assert!(looks.contains(&look), "{look:?} is none of {looks:?}");
    }
    assert!(!looks.contains(&look(base.join("none"), Depth::Contents)));
}

/// A listing stands for the names that are asked for, of which it is told.
#[test]
fn what_was_listed_aside_is_observed_by_the_names_that_were_asked_for() {
    let scratch = Scratch::create(None).unwrap();
    let base = scratch.path().canonicalize().unwrap();
    let list = || base.read_dir().is_ok();
    let looks = observe(
        || {
            let listed = aside(list);
            tell(&base, b"name", Depth::Attributes);
            listed
        },
        LIMIT,
    );
    let looks = looks.unwrap();
    assert!(looks.contains(&look(base.join("name"), Depth::Attributes)));
    assert!(
        looks.contains(&look(&base, Depth::Attributes)) && !looks.contains(&look(&base, Depth::Contents))
    );
    // Outside of it, everything counts.
    assert!(observe(|| aside(|| true) && list(), LIMIT).unwrap().contains(&look(&base, Depth::Contents)));
    // Here nobody observes.
    tell(&base, b"name", Depth::Attributes);
}

#[test]
fn nothing_is_observed_where_a_file_would_be_changed_or_a_call_is_unknown() {
    let scratch = Scratch::create(None).unwrap();
    let base = scratch.path();
    fs::write(base.join("kept"), "text").unwrap();
    assert_eq!(observe(|| true, LIMIT), Some(BTreeSet::new()));
    assert_eq!(observe(|| false, LIMIT), None);
    assert_eq!(observe(|| fs::write(base.join("new"), "").is_ok(), LIMIT), None);
    assert_eq!(observe(|| fs::write(base.join("kept"), "").is_ok(), LIMIT), None);
    assert_eq!(observe(|| fs::create_dir(base.join("new")).is_ok(), LIMIT), None);
    assert_eq!(observe(|| fs::remove_file(base.join("kept")).is_ok(), LIMIT), None);
    let waits = || {
        std::thread::sleep(Duration::from_secs(60));
        true
    };
    assert_eq!(observe(waits, Duration::from_millis(50)), None);
    assert!(!base.join("new").exists());
    assert_eq!(fs::read_to_string(base.join("kept")).unwrap(), "text");
}
