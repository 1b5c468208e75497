use super::*;
use crate::enforce::scratch::Scratch;
use std::fs::{self, File};
use std::io::{Seek, Write};
use std::os::unix::fs::{PermissionsExt, symlink};

fn look(path: impl Into<PathBuf>, at: Depth) -> Look {
    Look { path: path.into(), at }
}

/// A directory with what is looked at in the tests, on a file system that the kernel tells of.
fn ground() -> (Scratch, PathBuf) {
    let scratch = Scratch::create(None).unwrap();
    let base = scratch.path().canonicalize().unwrap();
    for directory in ["listed", "named/below", "other"] {
        fs::create_dir_all(base.join(directory)).unwrap();
    }
    for file in ["listed/one", "named/file", "named/read", "other/file"] {
        fs::write(base.join(file), "text").unwrap();
    }
    symlink("named", base.join("link")).unwrap();
    (scratch, base)
}

fn looks(base: &Path) -> Vec<Look> {
    vec![
        look(base.join("listed"), Depth::Contents),
        look(base.join("link/file"), Depth::Attributes),
        look(base.join("named/read"), Depth::Contents),
        look(base.join("named/below/none/deeper"), Depth::Attributes),
        look(base.join("other/file"), Depth::Identity),
        look("/proc/self/status", Depth::Contents),
        look("/proc/keys", Depth::Attributes),
        look("/dev/null", Depth::Attributes),
    ]
}

#[test]
fn whatever_changes_what_was_looked_at_is_noticed() {
    type Change = fn(&Path);
    let changes: [(&str, Change); 17] = [
        ("a name in a listed directory", |base| fs::write(base.join("listed/two"), "").unwrap()),
        ("one less", |base| fs::remove_file(base.join("listed/one")).unwrap()),
        ("a missing name", |base| fs::create_dir(base.join("named/below/none")).unwrap()),
        ("a link in its place", |base| symlink("/", base.join("named/below/none")).unwrap()),
        ("its name in capitals", |base| fs::write(base.join("named/below/NONE"), "").unwrap()),
        ("a name of other letters", |base| fs::write(base.join("named/below/\u{212a}"), "").unwrap()),
        ("another file", |base| fs::rename(base.join("named/read"), base.join("other/file")).unwrap()),
        ("a moved directory", |base| fs::rename(base.join("named"), base.join("moved")).unwrap()),
        ("another target of a link", |base| {
            symlink("other", base.join("new")).unwrap();
            fs::rename(base.join("new"), base.join("link")).unwrap();
        }),
        ("permissions of a directory", |base| {
            fs::set_permissions(base.join("named/below"), fs::Permissions::from_mode(0o700)).unwrap();
        }),
        ("permissions of a file", |base| {
            fs::set_permissions(base.join("named/file"), fs::Permissions::from_mode(0o600)).unwrap();
        }),
        ("permissions by another name", |base| {
            fs::hard_link(base.join("named/file"), base.join("again")).unwrap();
            fs::set_permissions(base.join("again"), fs::Permissions::from_mode(0o600)).unwrap();
        }),
        ("a longer file", |base| fs::write(base.join("named/file"), "longer").unwrap()),
        ("other contents", |base| fs::write(base.join("named/read"), "TEXT").unwrap()),
        ("other contents by another name", |base| {
            fs::hard_link(base.join("named/read"), base.join("again")).unwrap();
            fs::write(base.join("again"), "TEXT").unwrap();
        }),
        ("a removed tree", |base| fs::remove_dir_all(base.join("listed")).unwrap()),
        // The first of too many events is of another name.
        ("more than the kernel keeps", |base| {
            let most = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
            let others = ["a", "b"].map(|name| base.join("named").join(name));
            for number in 0..=most.trim().parse::<usize>().unwrap() {
                fs::create_dir(&others[number % 2]).unwrap();
                fs::remove_dir(&others[number % 2]).unwrap();
            }
        }),
    ];
    for (what, change) in changes {
        let (_scratch, base) = ground();
        let unchanged = Unchanged::from_now(&looks(&base)).unwrap();
        assert!(unchanged.holds() && unchanged.holds(), "{what}");
        change(&base);
        assert!(!unchanged.holds(), "{what}");
        assert!(!unchanged.holds(), "{what}");
    }
}

#[test]
fn what_was_not_looked_at_may_change() {
    let (_scratch, base) = ground();
    let unchanged = Unchanged::from_now(&looks(&base)).unwrap();
    fs::write(base.join("named/new"), "").unwrap();
    fs::create_dir(base.join("named/below/other")).unwrap();
    fs::write(base.join("other/file"), "it is still this file").unwrap();
    fs::write(base.join("listed/one"), "").unwrap();
    fs::remove_file(base.join("named/new")).unwrap();
    assert!(unchanged.holds());
}

/// Such a write is told of by no event, and by the times only if the page was clean.
#[test]
fn contents_that_change_through_a_mapping_are_noticed() {
    let (_scratch, base) = ground();
    let mut file = File::options().read(true).write(true).open(base.join("named/read")).unwrap();
    // SAFETY: a new mapping of four bytes of a file that nobody shortens.
    let mapped = unsafe {
        use rustix::mm::{MapFlags, ProtFlags};
        let access = ProtFlags::READ | ProtFlags::WRITE;
        rustix::mm::mmap(std::ptr::null_mut(), 4, access, MapFlags::SHARED, &file, 0).unwrap().cast::<u8>()
    };
    // SAFETY: within the mapping, as are the next ones.
    unsafe { mapped.write(b't') };
    let unchanged = Unchanged::from_now(&looks(&base)).unwrap();
    assert!(unchanged.holds());
    // SAFETY: as above.
    unsafe { mapped.write(b'T') };
    assert!(!unchanged.holds());
    // SAFETY: nobody uses it any more.
    unsafe { rustix::mm::munmap(mapped.cast(), 4).unwrap() };
    file.rewind().and_then(|()| file.write_all(b"x")).unwrap();
}

#[test]
fn nothing_holds_that_the_kernel_does_not_tell_of() {
    let (_scratch, base) = ground();
    fs::write(base.join("named/read"), vec![b'x'; LONGEST as usize + 1]).unwrap();
    assert!(Unchanged::from_now(&looks(&base)).is_none());
    fs::write(base.join("named/read"), vec![b'x'; LONGEST as usize]).unwrap();
    assert!(Unchanged::from_now(&looks(&base)).is_some());
    // The processes that there are.
    assert!(Unchanged::from_now(&[look("/proc", Depth::Contents)]).is_none());
}

/// A command can exchange the two as often as it likes, and whoever opens the pipe waits for somebody who writes.
#[test]
fn a_pipe_that_comes_between_two_looks_is_not_waited_for() {
    use rustix::fs::{CWD, FileType, Mode, RenameFlags};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, mpsc};
    let (_scratch, base) = ground();
    let [file, pipe] = ["named/read", "named/pipe"].map(|name| base.join(name));
    rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let goes_on = Arc::new(AtomicBool::new(true));
    let exchanging = {
        let (goes_on, file) = (goes_on.clone(), file.clone());
        std::thread::spawn(move || {
            while goes_on.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(CWD, &file, CWD, &pipe, RenameFlags::EXCHANGE).unwrap();
            }
        })
    };
    let (done, looked) = mpsc::channel();
    std::thread::spawn(move || {
        let seen = (0..20_000).filter(|_| matches!(State::of(&file, true), Some(State::Read(..)))).count();
        let _ = done.send(seen);
    });
    let seen = looked.recv_timeout(std::time::Duration::from_secs(60));
    goes_on.store(false, Ordering::Relaxed);
    exchanging.join().unwrap();
    assert!(seen.expect("it waits for the other end of a pipe") > 0);
}
