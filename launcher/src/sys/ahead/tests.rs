//! Tests of namespaces that are made ahead.

use super::*;
use std::os::fd::AsFd;

#[test]
fn the_first_process_is_in_the_network_that_was_made_ahead_and_a_child_of_this_one() {
    let user = !privilege::is_administrator();
    let own = Own { kinds: Kinds { user, view: true, network: true }, identity: namespace::identity() };
    let here = namespace::network().unwrap();
    let Some(ahead) = Ahead::begin(own, false).unwrap() else { return };
    // Nothing of what this process does meanwhile is in the helper's way.
    let memory: Vec<_> = (0..1000).map(|number| number.to_string()).collect();
    assert_eq!(memory.len(), 1000);
    let Some(made) = ahead.made(Some(&own)) else { return };
    let first = made.fork_into(own.kinds, &mut || {
        let settled = made.settle().is_ok() && process::id() == 1 && process::parent() == 0;
        let apart = namespace::network().is_ok_and(|there| there != here);
        if settled && apart { 7 } else { 1 }
    });
    let first = first.unwrap();
    assert_eq!(process::wait(Some(first), true, false), Some((first, process::Change::Exited(7))));
    assert!(namespace::network().is_ok_and(|now| now == here));
    assert!(made.settle().is_err());
    // It was used once.
    assert!(made.fork_into(own.kinds, &mut || 0).is_err());
}

/// It may be asked for before the helper waits for orders, and after.
#[test]
fn an_overlay_is_laid_ahead_once_and_is_the_first_processes() {
    let user = !privilege::is_administrator();
    let own = Own { kinds: Kinds { user, view: true, network: true }, identity: namespace::identity() };
    let mut all = Vec::new();
    for late in [true, false] {
        let top = std::env::temp_dir().join(format!("sbx-ahead-{}-{late}", process::id()));
        let [below, upper, work] = ["below", "upper", "work"].map(|name| top.join(name));
        [&below, &upper, &work].into_iter().for_each(|path| std::fs::create_dir_all(path).unwrap());
        let layers = Layers::new(&below, &upper, &work).unwrap();
        let others = Layers::new(&below, &work, &upper).unwrap();
        let Some(ahead) = Ahead::begin(own, false).unwrap() else { return };
        if late {
            ahead.shared().waits_while(WORKS, Some(Ahead::LONGEST));
        }
        ahead.lay(layers.clone());
        ahead.lay(others.clone());
        let Some(made) = ahead.made(Some(&own)) else { return };
        let first = made.fork_into(own.kinds, &mut || {
            if made.laid(&others).is_some() {
                return 1;
            }
            // Not every file system can have an upper layer.
            let Some(laid) = made.laid(&layers) else { return 2 };
            let place = std::fs::File::open(&below).unwrap();
            let marked = laid.cover(place.as_fd()).unwrap();
            std::fs::write(below.join("new"), "x").unwrap();
            marked.unmark();
            0
        });
        let ended = process::wait(Some(first.unwrap()), true, false).unwrap().1;
        let places = [&upper, &below].map(|path| path.join("new").exists());
        std::fs::remove_dir_all(&top).unwrap();
        match ended {
            process::Change::Exited(2) => {}
            ended => assert_eq!((ended, places), (process::Change::Exited(0), [true, false])),
        }
        all.push(ended);
    }
    // Who waits for the helper waits for that as well.
    assert_eq!(all[0], all[1]);
}

#[test]
fn a_helper_that_is_not_wanted_ends() {
    let user = !privilege::is_administrator();
    let own = Own { kinds: Kinds { user, view: true, network: true }, identity: namespace::identity() };
    let Some(ahead) = Ahead::begin(own, false).unwrap() else { return };
    let helper = ahead.helper.get().unwrap();
    assert!(ahead.made(None).is_none());
    assert!(!process::exists(helper));
}

/// It could run beside another one that is started instead, and nobody would give it orders.
#[test]
fn a_first_process_that_a_killed_helper_may_have_started_is_not_taken_for_none() {
    let user = !privilege::is_administrator();
    let own = Own { kinds: Kinds { user, view: true, network: true }, identity: namespace::identity() };
    let Some(ahead) = Ahead::begin(own, false).unwrap() else { return };
    let Some(made) = ahead.made(Some(&own)) else { return };
    let helper = made.ahead.helper.get().unwrap();
    let network = |of: Pid| std::fs::read_link(format!("/proc/{of}/ns/net")).ok();
    let there = network(helper).unwrap();
    let (mut ended, mut waiting) = io::pipe().unwrap();
    let killer = std::thread::spawn(move || {
        use io::Read;
        ended.read_exact(&mut [0]).unwrap();
        process::signal(helper, libc::SIGKILL);
    });
    // The helper waits for the first process, which has told that it is there.
    let started = made.fork_with(libc::CLONE_VFORK, &mut || {
        use io::Write;
        waiting.write_all(b"!").unwrap();
        std::thread::sleep(Duration::from_secs(60));
        0
    });
    killer.join().unwrap();
    assert!(matches!(started, Err(Unstarted::Unknown(_))));
    let this = rustix::thread::gettid().as_raw_nonzero().get();
    let children = process::children_of(process::id(), this);
    let stray = children.into_iter().find(|child| network(*child).as_ref() == Some(&there)).unwrap();
    process::signal(stray, libc::SIGKILL);
    process::wait(Some(stray), true, false);
}

#[test]
fn an_order_that_no_helper_has_taken_starts_nothing() {
    let user = !privilege::is_administrator();
    let own = Own { kinds: Kinds { user, view: true, network: true }, identity: namespace::identity() };
    let Some(ahead) = Ahead::begin(own, false).unwrap() else { return };
    let Some(made) = ahead.made(Some(&own)) else { return };
    let helper = made.ahead.helper.get().unwrap();
    process::signal(helper, libc::SIGKILL);
    // Until the kernel has noted its end.
    made.ahead.shared().waits_while(WAITS, Some(Ahead::LONGEST));
    assert!(matches!(made.fork_into(own.kinds, &mut || 0), Err(Unstarted::Nothing(_))));
}

#[test]
fn nobody_waits_for_a_helper_that_was_killed() {
    let user = !privilege::is_administrator();
    let own = Own { kinds: Kinds { user, view: true, network: true }, identity: namespace::identity() };
    let Some(ahead) = Ahead::begin(own, false).unwrap() else { return };
    let start = Instant::now();
    ahead.shared().waits_while(WORKS, Some(Ahead::LONGEST));
    process::signal(ahead.helper.get().unwrap(), libc::SIGKILL);
    ahead.shared().waits_while(WAITS, Some(Ahead::LONGEST));
    assert!(matches!(ahead.shared().does(), 0 | FAILED));
    assert!(ahead.made(Some(&own)).is_none() && start.elapsed() < Ahead::LONGEST);
}
